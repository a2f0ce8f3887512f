"""Objectives by name, or as the user wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.data import Floats, Queries
from rankwright.errors import InputError, suggest
from rankwright.measures import Measure
from rankwright.objectives.base import Evaluation, Objective
from rankwright.objectives.lambdas import Lambdas
from rankwright.objectives.listwise import Cosine, Likelihood, TopOne
from rankwright.objectives.pairwise import Exponential, Fidelity, Hinge, Logistic, SquaredHinge
from rankwright.objectives.smooth import SoftPositions, SoftRanks

UserFunction = Callable[[Floats, Queries], tuple[float, Floats]]

OBJECTIVES: Mapping[str, Callable[[Measure], Objective]] = {
    "hinge": lambda measure: Hinge(),
    "squared_hinge": lambda measure: SquaredHinge(),
    "logistic": lambda measure: Logistic(),
    "exponential": lambda measure: Exponential(),
    "fidelity": lambda measure: Fidelity(),
    "top_one": lambda measure: TopOne(),
    "likelihood": lambda measure: Likelihood(),
    "cosine": lambda measure: Cosine(),
    "lambdas": Lambdas,
    "positions": SoftPositions,
    "ranks": SoftRanks,
}


@dataclass(frozen=True, slots=True)
class Written:
    """A user's function: (scores, queries) -> (loss, gradient), the sum over the queries it is given.

    It is called with parts of the queries, each with its scores, and the results are added up.
    """

    function: UserFunction

    def bind(self, queries: Queries) -> BoundWritten:
        """Keep the queries."""
        return BoundWritten(self.function, queries)


@dataclass(frozen=True, slots=True, eq=False)
class BoundWritten:
    """A user's function with some queries."""

    function: UserFunction
    queries: Queries

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """What the function says, checked."""
        found = self.function(scores, self.queries)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise InputError(f"the objective returned {type(found).__name__}; expected a pair (loss, gradient)")
        loss, gradient = float(found[0]), np.asarray(found[1], dtype=np.float64)
        if gradient.shape != scores.shape:
            raise InputError(
                f"the objective returned a gradient of shape {gradient.shape}; expected {scores.shape}, one per score"
            )
        if np.isnan(loss) or not np.isfinite(gradient).all():
            raise InputError(f"the objective returned the loss {loss:g} with a gradient that is not all finite numbers")
        return Evaluation(loss, gradient)


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
    if hasattr(value, "bind") and not isinstance(value, type):
        objective: Objective = value
        return objective
    if callable(value) and not isinstance(value, type):
        return Written(value)
    raise InputError(
        f"objective={value!r}; expected a name, an objective, or a function (scores, queries) -> (loss, gradient)"
    )
