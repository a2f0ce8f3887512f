"""Verdicts: rules that say what held a training back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from rankwright.analysis.diagnosis.loss_bounds import UpperBoundValues, mean
from rankwright.analysis.diagnosis.single_weights import SingleWeightGains
from rankwright.basics.errors import InputError
from rankwright.measures import Measure, parse_measure
from rankwright.models.model import Model
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
    known : bool
        Whether the ranker is one of Rankwright's; the objective of any other is not known.
    """

    measure: Measure | None
    own: UpperBound | None
    certificate: Certificate | None
    train: float | None
    validated: bool
    known: bool = True

    def matches_training(self, value: float) -> bool | None:
        """Return whether queries with this value of the ranker's measure seem to be the training queries."""
        return None if self.train is None else abs(value - self.train) <= _SAME


def read_training_facts(fitted: Any, model: Model, measure: Measure | None) -> TrainingFacts:
    """Return what training recorded in a fitted ranker and its model; ``measure`` is the one of the diagnosis."""
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
        kind is not None,
    )


def _find_measure(fitted: Any, model: Model, asked: Measure | None) -> Measure | None:
    """Return the measure that a ranker was trained on, or None if it is not known."""
    known: Measure | None = getattr(fitted, "measure_", None)
    if known is not None:
        return known
    if asked is not None and str(asked) == model.measure:
        return asked
    with suppress(InputError):
        return parse_measure(model.measure)
    return None


def _find_class(fitted: Any, model: Model) -> type[Ranker] | None:
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


MAX_GAP = 0.01  # relative: above it the optimiser has not finished
MIN_GAIN = 0.005  # of a measure with values up to 1: below it one weight alone brings nothing that counts
MIN_FALL = 0.1  # relative: a bound that falls less at its best scale has a scale that suits it
LOOSE = 2.0  # a bound that is this many times the loss says little about it


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a diagnosis: what to change first, such as the optimiser or the surrogate, and why.

    Parameters
    ----------
    problem : {"optimiser", "scale", "surrogate", "neither", "unknown"}
        What to change first.
    text : str
        The reason, in words.
    """

    problem: str
    text: str


@dataclass(frozen=True, slots=True)
class DiagnosisFacts:
    """The facts on which a verdict is based: the loss, the bound, and what other weights would gain."""

    measure: str
    loss: float  # the mean basic loss
    own: UpperBoundValues | None
    own_after: float | None  # its mean after the best change of one weight
    certificate: Certificate | None
    weight_gains: SingleWeightGains | None
    validated: bool
    seen: bool | None  # whether the queries are the training queries
    known: bool = True  # whether the ranker, and so its objective, is known

    @property
    def gain(self) -> float:
        """The gain of the best change of one weight; 0 where it is negligible or not known."""
        if self.weight_gains is None:
            return 0.0
        gain = float(self.weight_gains.gain[self.weight_gains.best])
        return gain if gain > MIN_GAIN * self.weight_gains.highest else 0.0

    @property
    def change(self) -> str:
        """The best change of one weight as a clause."""
        if self.weight_gains is None:
            return ""
        return (
            f"another weight of feature {self.weight_gains.features[self.weight_gains.best]} alone would raise "
            f"{self.measure} by {self.gain:.4f}"
        )


def format_percent(part: float) -> str:
    """Return a fraction as a percentage in text, at least 0.01%, because it is an upper bound.

    >>> format_percent(0.0123), format_percent(1e-6)
    ('1.23%', '0.01%')
    """
    return f"{part:.2%}" if part >= 1e-4 else "0.01%"


def decide_verdict(facts: DiagnosisFacts) -> Verdict:
    """Return the verdict of the first rule that holds: no gain, optimiser, unseen queries, scale, surrogate."""
    certificate = facts.certificate
    if not facts.loss > MIN_GAIN:
        return Verdict("neither", f"There is next to nothing to gain: the loss is {facts.loss:.4f}.")
    if certificate is not None and certificate.relative > MAX_GAP:
        return Verdict(
            "optimiser",
            f"It stopped where its objective may be {format_percent(certificate.relative)} above the least. "
            "Let it run longer, or to a smaller tol, before anything else is judged.",
        )
    if facts.seen is False:
        return _decide_unseen(facts)
    scale = _decide_scale(facts)
    if scale is not None:
        return scale
    loose = _describe_loose_bound(facts)
    if facts.gain > 0.0:
        found = _decide_gain(facts)
        return found if found.problem == "optimiser" else Verdict(found.problem, f"{found.text} {loose}".strip())
    if facts.weight_gains is None:
        return Verdict("surrogate", loose) if loose else Verdict("unknown", "No weights were tried one by one.")
    text = (
        f"No weight alone raises {facts.measure} by more than {MIN_GAIN * facts.weight_gains.highest:g}: along each of "
        "them the measure itself has next to nothing left. Several weights at once, other features or another scorer "
        "may bring more."
    )
    return Verdict("neither", f"{text} {loose}".strip())


def _decide_unseen(facts: DiagnosisFacts) -> Verdict:
    """Return the verdict for queries that training did not see, whose best weights differ, if only by chance."""
    found = f"On these {facts.change}" if facts.gain > 0.0 else "On these no weight alone brings anything that counts"
    found = found if facts.weight_gains is not None else "Here no weights were tried one by one"
    return Verdict("unknown", f"{found}, but only the training queries show what held training back.")


def _decide_scale(facts: DiagnosisFacts) -> Verdict | None:
    """Return the verdict that the scores have the wrong scale, or None if another scale is not much better."""
    own = facts.own
    if own is None or own.least is None or not own.least_mean < (1.0 - MIN_FALL) * own.mean:
        return None
    if own.least.factor == 0.0:  # all scores alike are no scores
        return None
    length = "short: try a larger C" if own.least.factor > 1.0 else "long: try a smaller C"
    return Verdict(
        "scale",
        f"Times {own.least.factor:.3g}, which changes no ranking, the scores would have a bound of "
        f"{own.least_mean:.4f} instead of {own.mean:.4f}. For these queries the weights are too {length}.",
    )


def _decide_gain(facts: DiagnosisFacts) -> Verdict:
    """Return the verdict for the case that another value of one weight would raise the measure."""
    certificate, own, after = facts.certificate, facts.own, facts.own_after
    if certificate is not None:
        return Verdict(
            "surrogate",
            f"The optimiser has converged (its objective is at most {format_percent(certificate.relative)} above "
            f"the least), yet {facts.change}.",
        )
    if not facts.known:
        change = f"{facts.change[0].upper()}{facts.change[1:]}"
        return Verdict("unknown", f"{change}. What its training minimised, and on which queries, is not known.")
    if own is None or after is None:
        return Verdict("surrogate", f"Its objective is no bound on a measure, and {facts.change}.")
    what = "the loss that it minimises" if own.name == "basic loss" else f"the bound that it minimises ({own.name})"
    if after < own.mean:
        text = f"It could have gone on: {facts.change}, and lower {what} from {own.mean:.4f} to {after:.4f}."
        chosen = " Validation queries chose the round that was kept, so this may be on purpose."
        return Verdict("optimiser", text + (chosen if facts.validated else ""))
    return Verdict(
        "surrogate",
        f"{facts.change[0].upper()}{facts.change[1:]}, but raise {what} from {own.mean:.4f} to {after:.4f}.",
    )


def _describe_loose_bound(facts: DiagnosisFacts) -> str:
    """Return a sentence if the ranker's bound is far above the loss even at its best scale, else an empty text."""
    own = facts.own
    if own is None or own.least is None:
        return ""
    if own.least.factor == 0.0:
        return "Its bound is least when all scores are alike: it cannot guide."
    loss = mean(own.loss, own.weight)
    if own.least_mean <= LOOSE * loss:
        return ""
    return (
        f"Its bound is {own.least_mean:.4f} at its best scale, where the loss is {loss:.4f}: it says little about it."
    )
