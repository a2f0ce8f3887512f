"""The interface of every objective: a loss of scores, with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries


def check_scores(scores: Any, n_docs: int) -> Floats:
    """Scores as kernels take them: one number for each document."""
    found: Floats = np.ascontiguousarray(scores, dtype=np.float64)
    if found.shape != (n_docs,):
        raise InputError(f"scores have shape {found.shape}; there are {n_docs} documents")
    return found


def infinite_evaluation(n_docs: int) -> Evaluation:
    """An objective at scores that are not finite, where a line search has gone too far: infinitely bad."""
    return Evaluation(np.inf, np.zeros(n_docs))


class Evaluation(NamedTuple):
    """An objective at some scores: the weighted sum over the queries, and its derivatives by every score."""

    loss: float
    gradient: Floats
    curvature: Floats | None = None  # the diagonal of the second derivative, where an objective has one


class PreparedObjective(Protocol):
    """An objective with everything that the labels of one set of queries determine."""

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its gradient."""
        ...


class Objective(Protocol):
    """A loss in score space."""

    def prepare(self, queries: Queries) -> PreparedObjective:
        """Compute once what depends on the judged documents only: ideals, pair counts, tables."""
        ...
