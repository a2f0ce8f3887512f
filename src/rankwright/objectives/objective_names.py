"""Objectives by name, and objectives made from a user's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.base import BuiltinObjective, Evaluation, Objective, PreparedObjective
from rankwright.objectives.listwise_objectives import Cosine, ExpectedMeasure, Likelihood, TopOne
from rankwright.objectives.noisy_objectives import NoisyRanks
from rankwright.objectives.pairwise_objectives import Exponential, Fidelity, Hinge, Logistic, SquaredHinge
from rankwright.objectives.pointwise_objectives import Squares
from rankwright.objectives.smooth_objectives import SigmoidRanks, SoftPositions
from rankwright.objectives.swap_lambdas import Lambdas

UserFunction = Callable[[Floats, Queries], tuple[float, Floats]]

OBJECTIVES: Mapping[str, type[BuiltinObjective]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "squares": Squares,
    "logistic": Logistic,
    "exponential": Exponential,
    "fidelity": Fidelity,
    "top_one": TopOne,
    "likelihood": Likelihood,
    "cosine": Cosine,
    "expected": ExpectedMeasure,
    "lambdas": Lambdas,
    "positions": SoftPositions,
    "ranks": SigmoidRanks,
    "noisy_ranks": NoisyRanks,
}


@dataclass(frozen=True, slots=True)
class UserObjective(Objective):
    """An objective made of a user's function, which takes scores and queries and returns loss and gradient.

    The function is called with parts of the queries, each with its scores, and returns the sum over them; the results
    are added up.
    """

    function: UserFunction

    def prepare(self, queries: Queries) -> PreparedUserObjective:
        """Keep the queries for the function."""
        return PreparedUserObjective(self.function, queries)

    @property
    def takes_doc_weight(self) -> bool:
        """Whether the function has an attribute ``takes_doc_weight`` that says so: it uses ``queries.doc_weight``."""
        return bool(getattr(self.function, "takes_doc_weight", False))

    @property
    def identity(self) -> str:
        """The function's name with a digest of its code: text that is the same in every process."""
        function: Any = self.function
        code = getattr(getattr(function, "__code__", None), "co_code", b"")
        named = function if hasattr(function, "__qualname__") else type(function)
        return f"{named.__module__}.{named.__qualname__} {blake2b(code, digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True, eq=False)
class PreparedUserObjective(PreparedObjective):
    """A user's objective with the queries that its function will be called with."""

    function: UserFunction
    queries: Queries

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the function's loss and gradient, or raise if they are no finite numbers of the right shape."""
        theirs = scores.view()
        theirs.flags.writeable = False
        found = self.function(theirs, self.queries)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise InputError(f"the objective returned a {type(found).__name__}; expected a pair (loss, gradient)")
        loss, gradient = _check_numbers(found[0], "a loss", ()), _check_numbers(found[1], "a gradient", scores.shape)
        if np.isnan(loss):
            raise InputError("the objective returned a loss that is NaN; expected a number")
        if np.isnan(gradient).any():
            at = int(np.argmax(np.isnan(gradient)))
            raise InputError(f"the objective returned nan as its derivative by score {at}; expected a number")
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):  # a line search went too far: it will step back
            return Evaluation.infinite(len(scores))
        return Evaluation(float(loss), gradient)


def _check_numbers(value: Any, what: str, shape: tuple[int, ...]) -> Floats:
    """Return a user's loss or gradient as an array; raise InputError unless it is numbers of this shape."""
    try:
        found: Floats = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the objective returned {quote(value)} as {what}; expected numbers") from None
    if found.shape != shape:
        expected = "one number, the sum over the queries" if shape == () else f"{shape}, a derivative by each score"
        raise InputError(f"the objective returned {what} of shape {found.shape}; expected {expected}")
    return found


def as_objective(value: Any, measure: Measure) -> Objective:
    """Return the objective that is given by name, as an object, or as a user's function.

    >>> from rankwright.measures import NDCG
    >>> as_objective("lambdas", NDCG(10))
    Lambdas(measure=ndcg@10)
    """
    if isinstance(value, str):
        if value not in OBJECTIVES:
            raise InputError(f"objective={value!r}; {suggest(value, OBJECTIVES)}")
        return OBJECTIVES[value].for_measure(measure)
    if isinstance(value, Objective):
        return value
    if callable(value) and not isinstance(value, type):
        return UserObjective(value)
    raise InputError(
        f"objective={value!r}; expected a name, an instance of rankwright.objectives.Objective, or a function "
        "(scores, queries) -> (loss, gradient)"
    )
