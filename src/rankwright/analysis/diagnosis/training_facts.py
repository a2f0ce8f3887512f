"""Training: what a fitted ranker or a model still tells of how it was trained."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from rankwright.basics.errors import InputError
from rankwright.measures import Measure, parse
from rankwright.models.model import Fitted, Model, as_model
from rankwright.objectives.upper_bounds import Bound
from rankwright.rankers import Ranker, find_ranker

_SAME = 1e-9


class Certificate(NamedTuple):
    """No weights have an objective below ``objective - gap``."""

    objective: float
    gap: float

    @property
    def relative(self) -> float:
        """The gap in parts of the objective."""
        return self.gap / self.objective if self.objective > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Training:
    """What is known of a training.

    Parameters
    ----------
    measure : Measure, optional
        The ranker's own; None if it was a user's, which a saved model does not hold.
    own : Bound, optional
        What it minimised.
    certificate : Certificate, optional
        How far from the least objective the model is at most.
    train : float, optional
        Its measure on the training queries.
    validated : bool
        Whether validation queries chose the round that was kept.
    """

    measure: Measure | None
    own: Bound | None
    certificate: Certificate | None
    train: float | None
    validated: bool

    def saw(self, value: float) -> bool | None:
        """Whether queries on which the ranker's measure has this value seem to be the training queries."""
        return None if self.train is None else abs(value - self.train) <= _SAME


def training_of(fitted: Fitted, measure: Measure | None) -> Training:
    """Read it from a fitted ranker or a model; ``measure`` is what a diagnosis was asked about."""
    model = as_model(fitted)
    own = _measure(fitted, model, measure)
    kind = _class(fitted, model)
    record = _kept(model.history, kind is not None and kind.keeps_last)
    objective, gap, train = (_number(record.get(name)) for name in ("objective", "gap", "train"))
    return Training(
        own,
        None if kind is None or own is None else _minimised(kind, model, own),
        None if objective is None or gap is None else Certificate(objective, gap),
        train,
        _number(record.get("valid")) is not None
        and (record.get("kept") is True or not (kind is not None and kind.keeps_last)),
    )


def _measure(fitted: Fitted, model: Model, asked: Measure | None) -> Measure | None:
    known: Measure | None = getattr(fitted, "measure_", None)
    if known is not None:
        return known
    if asked is not None and str(asked) == model.measure:
        return asked
    with suppress(InputError):
        return parse(model.measure)
    return None


def _class(fitted: Fitted, model: Model) -> type[Ranker] | None:
    if isinstance(fitted, Ranker):
        return type(fitted)
    with suppress(InputError):
        return find_ranker(model.ranker)
    return None


def _minimised(kind: type[Ranker], model: Model, measure: Measure) -> Bound | None:
    """By the parameters as of the fit, which are in the model."""
    params = {name: value for name, value in model.params.items() if name not in ("measure", "backend")}
    with suppress(TypeError, InputError):  # a model of another release, or a user's own class
        return kind(**params).minimises(measure)
    return None


def _kept(history: list[dict[str, Any]], last: bool) -> dict[str, Any]:
    """The record of the model: the one that says so, the last, or the first of the best."""
    for record in history:
        if record.get("kept") is True:
            return record
    if not history or last:
        return history[-1] if history else {}
    for name in ("valid", "train"):
        known = [(value, record) for record in history if (value := _number(record.get(name))) is not None]
        if known:
            return max(known, key=lambda pair: pair[0])[1]
    return history[-1]


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and isfinite(value)
    return float(value) if is_number else None
