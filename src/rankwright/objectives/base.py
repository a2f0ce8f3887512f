"""The interface of every objective: a loss of scores, with its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure


class Evaluation(NamedTuple):
    """The loss of an objective at some scores, a weighted sum over the queries, with its derivatives by the scores."""

    loss: float
    gradient: Floats
    curvature: Floats | None = None  # the diagonal of the second derivative, where an objective has one

    @classmethod
    def infinite(cls, n_docs: int) -> Self:
        """Return an infinite loss with gradient 0, for scores that are not finite after too long a step."""
        return cls(np.inf, np.zeros(n_docs))


class PreparedObjective(ABC):
    """An objective prepared for some queries: called with scores, it returns the loss and its gradient."""

    __slots__ = ()
    uses_ranking: ClassVar[bool] = False  # whether it has ``fix_ranking``: see ``RankingObjective``

    @property
    def is_sampled(self) -> bool:
        """Whether loss and gradient are estimates from random samples."""
        return False

    @abstractmethod
    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""


class Objective(ABC):
    """A loss that training minimises, a function of the documents' scores; subclass it to write your own."""

    __slots__ = ()
    uses_only_grades: ClassVar[bool] = False  # whether grades and scores are all that it looks at
    is_doc_weighted: ClassVar[bool] = False  # whether it is a sum over documents or pairs that uses ``doc_weight``

    @property
    def takes_doc_weight(self) -> bool:
        """Whether document weights have a meaning: it is a sum over documents, or over pairs by their product."""
        return self.is_doc_weighted

    @abstractmethod
    def prepare(self, queries: Queries) -> PreparedObjective:
        """Compute once what depends on the judged documents only: ideals, pair counts, tables."""

    def with_max_grade(self, max_grade: float) -> Objective:
        """Return the objective for one part of data in which ``max_grade`` is the highest grade of all parts."""
        return self

    @property
    def identity(self) -> str:
        """The objective as text that is the same in every process."""
        own = type(self)
        return f"{own.__module__}.{own.__qualname__}" if own.__repr__ is object.__repr__ else str(self)


class BuiltinObjective(Objective):
    """An objective that comes with Rankwright: a dataclass whose fields are its parameters."""

    __slots__ = ()
    uses_only_grades = True

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the objective with default parameters that a ranker with this measure minimises."""
        return cls()


class MeasureObjective(BuiltinObjective):
    """An objective that is made from a measure such as NDCG, its first parameter."""

    __slots__ = ()
    measure: Measure | str

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the objective of this measure with defaults for its other parameters."""
        return cls(measure)  # type: ignore[call-arg]

    def with_max_grade(self, max_grade: float) -> Self:
        """Return the objective with a measure that takes this grade for the highest."""
        return replace(self, measure=parse_measure(self.measure).with_max_grade(max_grade))  # type: ignore[type-var]


def check_scores(scores: Any, n_docs: int) -> Floats:
    """Return scores as a float64 array; raise InputError unless there is one for each document."""
    found: Floats = np.ascontiguousarray(scores, dtype=np.float64)
    if found.shape != (n_docs,):
        raise InputError(f"scores have shape {found.shape}; there are {n_docs} documents")
    return found
