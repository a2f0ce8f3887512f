"""Objectives by name, or as the user wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse
from rankwright.objectives.base import Evaluation, Objective, infinite_evaluation
from rankwright.objectives.listwise import Cosine, ExpectedMeasure, Likelihood, TopOne
from rankwright.objectives.pairwise import Exponential, Fidelity, Hinge, Logistic, SquaredHinge
from rankwright.objectives.pointwise import Squares
from rankwright.objectives.smooth import SoftPositions, SoftRanks
from rankwright.objectives.swap_lambdas import Lambdas

UserFunction = Callable[[Floats, Queries], tuple[float, Floats]]

OBJECTIVES: Mapping[str, Callable[[Measure], Objective]] = {
    "hinge": lambda measure: Hinge(),
    "squared_hinge": lambda measure: SquaredHinge(),
    "squares": lambda measure: Squares(),
    "logistic": lambda measure: Logistic(),
    "exponential": lambda measure: Exponential(),
    "fidelity": lambda measure: Fidelity(),
    "top_one": lambda measure: TopOne(),
    "likelihood": lambda measure: Likelihood(),
    "cosine": lambda measure: Cosine(),
    "expected": ExpectedMeasure,
    "lambdas": Lambdas,
    "positions": SoftPositions,
    "ranks": lambda measure: SoftRanks(measure.cut_at(None)),  # which with a cut-off have no slope while they are soft
}


@dataclass(frozen=True, slots=True)
class UserObjective:
    """A user's function: (scores, queries) -> (loss, gradient), the sum over the queries it is given.

    It is called with parts of the queries, each with its scores, and the results are added up.
    """

    function: UserFunction

    def prepare(self, queries: Queries) -> PreparedUserObjective:
        """Keep the queries."""
        return PreparedUserObjective(self.function, queries)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedUserObjective:
    """A user's function with some queries."""

    function: UserFunction
    queries: Queries

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """What the function says, checked."""
        theirs = scores.view()
        theirs.flags.writeable = False
        found = self.function(theirs, self.queries)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise InputError(f"the objective returned a {type(found).__name__}; expected a pair (loss, gradient)")
        loss, gradient = _numbers(found[0], "a loss", ()), _numbers(found[1], "a gradient", scores.shape)
        if np.isnan(loss):
            raise InputError("the objective returned a loss that is NaN; expected a number")
        if np.isnan(gradient).any():
            at = int(np.argmax(np.isnan(gradient)))
            raise InputError(f"the objective returned nan as its derivative by score {at}; expected a number")
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):  # too far: a line search comes back
            return infinite_evaluation(len(scores))
        return Evaluation(float(loss), gradient)


def _numbers(value: Any, what: str, shape: tuple[int, ...]) -> Floats:
    try:
        found: Floats = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the objective returned {quote(value)} as {what}; expected numbers") from None
    if found.shape != shape:
        expected = "one number, the sum over the queries" if shape == () else f"{shape}, a derivative by each score"
        raise InputError(f"the objective returned {what} of shape {found.shape}; expected {expected}")
    return found


def is_builtin(objective: Objective) -> bool:
    """Whether it looks at scores and grades alone, as all of ours do; a user's may look at anything."""
    return type(objective).__module__.startswith("rankwright.") and not isinstance(objective, UserObjective)


def settled(objective: Objective, highest: float) -> Objective:
    """The same objective for data in parts: a measure that asks for the highest grade gets that of the whole."""
    measure = getattr(objective, "measure", None)
    if not isinstance(measure, (str, Measure)) or not is_dataclass(objective) or isinstance(objective, type):
        return objective
    return replace(objective, measure=parse(measure).with_max_grade(highest))


def as_objective(value: Any, measure: Measure) -> Objective:
    """An objective: one by its name, for this measure; one itself; or a user's function.

    >>> from rankwright.measures import NDCG
    >>> as_objective("lambdas", NDCG(10))
    Lambdas(measure=ndcg@10)
    """
    if isinstance(value, str):
        if value not in OBJECTIVES:
            raise InputError(f"objective={value!r}; {suggest(value, OBJECTIVES)}")
        return OBJECTIVES[value](measure)
    if hasattr(value, "prepare") and not isinstance(value, type):
        objective: Objective = value
        return objective
    if callable(value) and not isinstance(value, type):
        return UserObjective(value)
    raise InputError(
        f"objective={value!r}; expected a name, an objective, or a function (scores, queries) -> (loss, gradient)"
    )
