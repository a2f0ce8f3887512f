"""The framework of Xu et al. (2008), section 4: the basic loss of a measure and upper bounds on it, as objectives.

All losses are functions of E, the measure divided by the query's highest value, so that perfect rankings have E = 1 as
in the paper. (E is the measure itself for NDCG and MAP; ERR and P@k cannot reach 1 on every query.) Queries on which
every ranking is perfect have loss 0 under every objective. Ties are broken pessimistically.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.surrogates import EXPONENTIAL, HINGE, LOGISTIC, MARGIN, STEP
from rankwright.measures import Measure
from rankwright.objectives.base import MeasureObjective
from rankwright.objectives.phi import PHIS
from rankwright.objectives.prepared_bounds import (
    PreparedBasicLoss,
    PreparedBound,
    PreparedMax,
    PreparedSum,
    PreparedTypeOne,
    TypeTwoOptions,
)

SURROGATES: Mapping[str, int] = {
    "step": STEP,
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "hinge": HINGE,
    "margin": MARGIN,
}


class UpperBound(MeasureObjective):
    """An upper bound on the sum over queries of 1 - E, where E is the measure divided by its highest value."""

    __slots__ = ()
    measure: Measure

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of the bound in tables and charts."""

    @abstractmethod
    def prepare(self, queries: Queries) -> PreparedBound:
        """Compute classes and ideals of these queries."""


@final
@dataclass(frozen=True, slots=True)
class Basic(UpperBound):
    """The basic loss, eq. (5) of Xu et al. (2008): 1 - E, E the measure divided by the query's highest value."""

    measure: Measure

    @property
    def label(self) -> str:
        """The name of the bound in tables and charts."""
        return "basic loss"

    def prepare(self, queries: Queries) -> PreparedBound:
        """Compute the ideals."""
        return PreparedBasicLoss(self.measure, queries)


@final
@dataclass(frozen=True, slots=True)
class TypeOne(UpperBound):
    """A type one bound, section 4.1 of Xu et al. (2008): exp(-E) or log2(1 + exp(-E)), E as in ``Basic``.

    Parameters
    ----------
    measure : Measure
        A measure with values from 0 to 1.
    surrogate : "exponential" or "logistic"
        AdaRank minimises the first, which is the tighter.
    """

    SURROGATES: ClassVar[tuple[str, ...]] = ("exponential", "logistic")
    measure: Measure
    surrogate: str = "exponential"

    def __post_init__(self) -> None:
        _check_option("surrogate", self.surrogate, self.SURROGATES)

    @property
    def label(self) -> str:
        """The name of the bound in tables and charts."""
        return f"type one, {self.surrogate}"

    def prepare(self, queries: Queries) -> PreparedBound:
        """Compute the ideals."""
        return PreparedTypeOne(self.measure, queries, SURROGATES[self.surrogate])


@final
@dataclass(frozen=True, slots=True)
class TypeTwo(UpperBound):
    """A type two bound, section 4.2 of Xu et al. (2008): it compares perfect rankings with imperfect ones.

    It is the largest value, or the sum, over pairs of a perfect ranking b and an imperfect one c, of

        (1 - E(c)) phi(F(c) - F(b))      or, as "margin" (eq. 10),      [(1 - E(c)) - (F(b) - F(c))]_+

    where phi(x) is at least [x >= 0]: the step of eq. (6) itself, log2(1 + e^x), e^x, or [1 + x]_+.

    Parameters
    ----------
    measure : Measure
        A measure with values from 0 to 1.
    surrogate : "step", "logistic", "exponential", "hinge" or "margin"
        The function phi, or the margin form.
    over : "max" or "sum"
        The largest value over pairs of rankings, or the sum (eq. 7).
    phi : "pairs" or "ranks"
        F sums over pairs of documents of different gains, or over all pairs (eq. 2).
    perfect : "measure" or "grades"
        The perfect rankings: all with the highest measure, as in the paper, or those by descending gain down to the
        last document. They differ for a measure with a cut-off: its hardest perfect ranking reverses everything after
        the cut-off, so that only scores of 0 have no loss.
    effort : int
        The most nodes that a search for the worst ranking of a query visits. Where a few thousand do not suffice, a
        hundred times as many seldom do.

    Notes
    -----
    *max*: b is the hardest perfect ranking, found on its own. "margin" is exact, by loss-augmented inference. The other
    surrogates search for c by branch and bound among the rankings that keep every class in the order of its scores,
    starting from loss-augmented inference. A query that takes too long keeps the worst ranking found and is marked as
    not exact. Under "ranks", the assignment that replaces a lattice that is too large may return a perfect ranking.

    *sum*: exact for queries of up to 7 documents, by listing all rankings. For longer ones the working sets are the
    hardest perfect ranking, the best imperfect and the most violated one: still an upper bound, but not exact.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> from rankwright.measures import parse_measure
    >>> queries = make_queries(3, n_docs=20, random_state=0)
    >>> ndcg = parse_measure("ndcg@10")
    >>> bound, basic = TypeTwo(ndcg).prepare(queries), Basic(ndcg).prepare(queries)
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
        _check_option("perfect", self.perfect, self.PERFECT)
        _check_option("surrogate", self.surrogate, tuple(SURROGATES))
        _check_option("over", self.over, self.OVER)
        _check_option("phi", self.phi, tuple(PHIS))

    @property
    def label(self) -> str:
        """The name of the bound in tables and charts."""
        return f"type two, {self.surrogate}" + (", sum" if self.over == "sum" else "")

    def prepare(self, queries: Queries) -> PreparedBound:
        """Compute classes and ideals, and for a sum list the rankings of short queries."""
        options = TypeTwoOptions(SURROGATES[self.surrogate], self.phi, self.perfect == "grades", self.effort)
        make = PreparedMax if self.over == "max" else PreparedSum
        return make(self.measure, queries, options)


def list_bounds(measure: Measure, phi: str = "pairs") -> list[UpperBound]:
    """Return the basic loss and all bounds on a measure that can be evaluated on queries of any length."""
    one = [TypeOne(measure, surrogate) for surrogate in TypeOne.SURROGATES]
    two = [TypeTwo(measure, surrogate, "max", phi) for surrogate in SURROGATES]
    return [Basic(measure), *one, *two]


def _check_option(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise InputError unless the value of an option is one of the known ones."""
    if value not in known:
        raise InputError(f"{name}={value!r}; expected one of {', '.join(known)}")
