"""The framework of Xu et al., section 4: the basic loss of a measure and upper bounds on it, as objectives.

Everything is per query and in terms of E, the measure divided by the query's highest value, so that perfect rankings
have E = 1 as in the paper. (For measures such as NDCG and MAP it is the measure itself; ERR and P@k cannot reach 1 on
every query.) Queries on which every ranking is perfect have loss 0 under every objective. Ties are broken
pessimistically.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.surrogates import EXPONENTIAL, HINGE, LOGISTIC, MARGIN, STEP
from rankwright.measures import Measure
from rankwright.objectives.bound_losses import (
    PreparedBasicLoss,
    PreparedBound,
    PreparedMax,
    PreparedSum,
    PreparedTypeOne,
    Rules,
)
from rankwright.objectives.phi import PHIS

KINDS: Mapping[str, int] = {
    "step": STEP,
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "hinge": HINGE,
    "margin": MARGIN,
}


class Bound(ABC):
    """An objective that is nowhere below the sum over the queries of 1 - E."""

    measure: Measure

    @property
    @abstractmethod
    def label(self) -> str:
        """For people to read."""

    @abstractmethod
    def prepare(self, queries: Queries) -> PreparedBound:
        """Find out what the grades of these queries determine."""


@final
@dataclass(frozen=True, slots=True)
class Basic(Bound):
    """The basic loss, eq. (5): 1 - E of the ranking by the scores."""

    measure: Measure

    @property
    def label(self) -> str:
        """For people to read."""
        return "basic loss"

    def prepare(self, queries: Queries) -> PreparedBound:
        """Find the ideals."""
        return PreparedBasicLoss(self.measure, queries)


@final
@dataclass(frozen=True, slots=True)
class TypeOne(Bound):
    """A type one bound, section 4.1: exp(-E) or log2(1 + exp(-E)) of the ranking by the scores.

    Parameters
    ----------
    measure : Measure
        With values from 0 to 1.
    surrogate : "exponential" or "logistic"
        The first is what AdaRank minimises, and the tighter.
    """

    SURROGATES: ClassVar[tuple[str, ...]] = ("exponential", "logistic")
    measure: Measure
    surrogate: str = "exponential"

    def __post_init__(self) -> None:
        _check("surrogate", self.surrogate, self.SURROGATES)

    @property
    def label(self) -> str:
        """For people to read."""
        return f"type one, {self.surrogate}"

    def prepare(self, queries: Queries) -> PreparedBound:
        """Find the ideals."""
        return PreparedTypeOne(self.measure, queries, KINDS[self.surrogate])


@final
@dataclass(frozen=True, slots=True)
class TypeTwo(Bound):
    """A type two bound, section 4.2: over pairs of a perfect ranking b and an imperfect one c, the largest or the sum.

    It is the largest, or the sum, of

        (1 - E(c)) phi(F(c) - F(b))      or, as "margin" (eq. 10),      [(1 - E(c)) - (F(b) - F(c))]_+

    where phi(x) is at least [x >= 0]: the step of eq. (6) itself, log2(1 + e^x), e^x, or [1 + x]_+.

    Parameters
    ----------
    measure : Measure
        With values from 0 to 1.
    surrogate : "step", "logistic", "exponential", "hinge" or "margin"
        phi.
    over : "max" or "sum"
        The sum is eq. (7).
    phi : "pairs" or "ranks"
        F: over pairs of documents that the measure tells apart, or over all (eq. 2).
    perfect : "measure" or "grades"
        The perfect rankings: all of the highest measure, as in the paper, or those by descending gain down to the last
        document. They differ for a measure with a cut-off, of whose perfect rankings the hardest has everything after
        the cut-off upside down, so that only scores of 0 please it.
    effort : int
        How many nodes a search for the worst ranking of a query may visit. Where a few thousand do not suffice, a
        hundred times as many seldom do.

    Notes
    -----
    *max*: b is the hardest perfect ranking, found on its own. "margin" is exact, by loss-augmented inference. The other
    ones look for c by branch and bound among the rankings that keep every class in the order of its scores, starting
    from loss-augmented inference; a query that takes too long is left with the worst ranking found, and marked.
    Under "ranks" the assignment that stands in for a lattice that is too large may return a perfect ranking.

    *sum*: exact for queries of up to 7 documents, by listing all rankings. For longer ones the working sets are the
    hardest perfect ranking, and the best imperfect and the most violated one: still a bound, but not exact.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> from rankwright.measures import parse
    >>> queries = make_queries(3, n_docs=20, random_state=0)
    >>> bound, basic = TypeTwo(parse("ndcg@10")).prepare(queries), Basic(parse("ndcg@10")).prepare(queries)
    >>> bool((bound.at(queries.X[:, 0]).values >= basic.at(queries.X[:, 0]).values).all())
    True
    """

    OVER: ClassVar[tuple[str, ...]] = ("max", "sum")
    PERFECT: ClassVar[tuple[str, ...]] = ("measure", "grades")
    measure: Measure
    surrogate: str = "hinge"
    over: str = "max"
    phi: str = "pairs"
    perfect: str = "measure"
    effort: int = 10_000

    def __post_init__(self) -> None:
        _check("perfect", self.perfect, self.PERFECT)
        _check("surrogate", self.surrogate, tuple(KINDS))
        _check("over", self.over, self.OVER)
        _check("phi", self.phi, tuple(PHIS))

    @property
    def label(self) -> str:
        """For people to read."""
        return f"type two, {self.surrogate}" + (", sum" if self.over == "sum" else "")

    def prepare(self, queries: Queries) -> PreparedBound:
        """Find classes and ideals; list the rankings of short queries for a sum."""
        rules = Rules(KINDS[self.surrogate], self.phi, self.perfect == "grades", self.effort)
        make = PreparedMax if self.over == "max" else PreparedSum
        return make(self.measure, queries, rules)


def every_bound(measure: Measure, phi: str = "pairs") -> list[Bound]:
    """All bounds on a measure that can be evaluated on lists of any length, the basic loss first."""
    one = [TypeOne(measure, surrogate) for surrogate in TypeOne.SURROGATES]
    two = [TypeTwo(measure, surrogate, "max", phi) for surrogate in KINDS]
    return [Basic(measure), *one, *two]


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r}; expected one of {', '.join(known)}")
