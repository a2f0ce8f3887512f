"""Facts about a training that a fitted ranker or a model records."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from rankwright.basics.errors import InputError
from rankwright.measures import Measure, parse_measure
from rankwright.models.model import Fitted, Model, as_model
from rankwright.objectives.upper_bounds import UpperBound
from rankwright.rankers import Ranker, find_ranker

_SAME = 1e-9


class Certificate(NamedTuple):
    """A proof from training that no weights have an objective below ``objective - gap``."""

    objective: float
    gap: float

    @property
    def relative(self) -> float:
        """The gap in parts of the objective."""
        return self.gap / self.objective if self.objective > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """The facts that a ranker's training recorded: its measure, the bound it minimised, and how well it did.

    Parameters
    ----------
    measure : Measure, optional
        The ranker's own; None if it was a user's, which a saved model does not hold.
    own : UpperBound, optional
        The upper bound that it minimised.
    certificate : Certificate, optional
        How far from the least objective the model is at most.
    train : float, optional
        Its measure on the training queries.
    validated : bool
        Whether validation queries chose the round that was kept.
    """

    measure: Measure | None
    own: UpperBound | None
    certificate: Certificate | None
    train: float | None
    validated: bool

    def matches_training(self, value: float) -> bool | None:
        """Return whether queries with this value of the ranker's measure seem to be the training queries."""
        return None if self.train is None else abs(value - self.train) <= _SAME


def read_training_facts(fitted: Fitted, measure: Measure | None) -> TrainingFacts:
    """Return what training recorded in a fitted ranker or a model; ``measure`` is the one of the diagnosis."""
    model = as_model(fitted)
    own = _find_measure(fitted, model, measure)
    kind = _find_class(fitted, model)
    record = next((row for row in model.history if row.get("kept") is True), (model.history or [{}])[-1])
    is_optimum = kind is not None and kind.keeps_last and model.scorer.kind not in ("network", "torch")
    objective, gap, train = (_as_number(record.get(name)) for name in ("objective", "gap", "train"))
    return TrainingFacts(
        own,
        None if kind is None or own is None else _find_bound(kind, model, own),
        None if objective is None or gap is None else Certificate(objective, gap),
        train,
        _as_number(record.get("valid")) is not None and not is_optimum,
    )


def _find_measure(fitted: Fitted, model: Model, asked: Measure | None) -> Measure | None:
    """Return the measure that a ranker was trained on, or None if it is not known."""
    known: Measure | None = getattr(fitted, "measure_", None)
    if known is not None:
        return known
    if asked is not None and str(asked) == model.measure:
        return asked
    with suppress(InputError):
        return parse_measure(model.measure)
    return None


def _find_class(fitted: Fitted, model: Model) -> type[Ranker] | None:
    """Return the class of ranker that made a model, or None if it is not known."""
    if isinstance(fitted, Ranker):
        return type(fitted)
    with suppress(InputError):
        return find_ranker(model.ranker)
    return None


def _find_bound(kind: type[Ranker], model: Model, measure: Measure) -> UpperBound | None:
    """Return the upper bound that a class of ranker minimises with the model's parameters, or None."""
    params = {name: value for name, value in model.params.items() if name not in ("measure", "backend")}
    with suppress(TypeError, InputError):  # a model of another release, or a user's own class
        return kind(**params).find_minimised_bound(measure)
    return None


def _as_number(value: Any) -> float | None:
    """Return a recorded value as a float, or None if it is not a finite number."""
    is_number = isinstance(value, (int, float)) and isfinite(value)
    return float(value) if is_number else None
