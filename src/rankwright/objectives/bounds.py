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
from itertools import permutations
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.kernels.lattice import SLACK
from rankwright.kernels.surrogates import EXPONENTIAL, HINGE, LOGISTIC, MARGIN, STEP, violations
from rankwright.measures import Measure
from rankwright.objectives.base import Evaluation
from rankwright.objectives.rankings import PHIS, rankings

KINDS: Mapping[str, int] = {
    "step": STEP,
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "hinge": HINGE,
    "margin": MARGIN,
}
SHORT = 7  # documents: all n! rankings of a query are listed
_TRADES = (0.25, 1.0, 4.0)  # between losing E and keeping F, where that search begins


class Losses(NamedTuple):
    """A bound at some scores."""

    values: Floats  # by query
    gradient: Floats  # of their weighted sum, by score
    exact: NDArray[np.bool_]  # by query; otherwise the true value may be larger, and this one bounds the basic loss too


class BoundLoss(ABC):
    """A loss of some queries."""

    def __init__(self, measure: Measure, queries: Queries, phi: str = "pairs") -> None:
        self.rankings = rankings(measure, queries, phi)
        self.weight, self.sizes = queries.query_weight, queries.sizes

    def at(self, scores: Floats) -> Losses:
        """The loss of each query at these scores."""
        scores = np.asarray(scores, dtype=np.float64)
        if not np.isfinite(scores).all():
            raise InputError(f"score {int(np.argmin(np.isfinite(scores)))} is not finite; bounds are of numbers")
        # from the highest of the query: F does not change, and ties stay ties to the last bit
        return self._at(scores - np.repeat(np.maximum.reduceat(scores, self.rankings.indptr[:-1]), self.sizes))

    @abstractmethod
    def _at(self, scores: Floats) -> Losses:
        """The same, where 0 is the highest score of each query."""

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The weighted sum over the queries, and its gradient."""
        found = self.at(scores)
        return Evaluation(float(found.values @ self.weight), found.gradient)

    def _flat(self, values: Floats) -> Losses:
        """Values that do not change with the scores but at ties; queries that do not count have none."""
        dead = np.ones(len(values), dtype=bool)
        dead[self.rankings.live] = False
        return Losses(np.where(dead, 0.0, values), np.zeros(self.sizes.sum()), np.ones(len(values), dtype=bool))


class Bound(ABC):
    """An objective that is nowhere below the sum over the queries of 1 - E."""

    measure: Measure

    @property
    @abstractmethod
    def label(self) -> str:
        """For people to read."""

    @abstractmethod
    def bind(self, queries: Queries) -> BoundLoss:
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

    def bind(self, queries: Queries) -> BoundLoss:
        """Find the ideals."""
        return _BoundBasic(self.measure, queries)


class _BoundBasic(BoundLoss):
    def _at(self, scores: Floats) -> Losses:
        return self._flat(1.0 - self.rankings.E(self.rankings.by_score(scores)))


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

    def bind(self, queries: Queries) -> BoundLoss:
        """Find the ideals."""
        return _BoundTypeOne(self.measure, queries, KINDS[self.surrogate])


class _BoundTypeOne(BoundLoss):
    def __init__(self, measure: Measure, queries: Queries, kind: int) -> None:
        super().__init__(measure, queries)
        self.kind = kind

    def _at(self, scores: Floats) -> Losses:
        E = self.rankings.E(self.rankings.by_score(scores))
        return self._flat(violations(self.kind, np.ones(len(E)), -E)[0])


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
    >>> bound, basic = TypeTwo(parse("ndcg@10")).bind(queries), Basic(parse("ndcg@10")).bind(queries)
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

    def bind(self, queries: Queries) -> BoundLoss:
        """Find classes and ideals; list the rankings of short queries for a sum."""
        make = _BoundMax if self.over == "max" else _BoundSum
        return make(self, queries)


class _BoundTypeTwo(BoundLoss):
    def at(self, scores: Floats) -> Losses:
        """The loss of each query; the step knows no scale, but rounding does."""
        if self.kind == STEP:
            lows, highs = (find.reduceat(scores, self.rankings.indptr[:-1]) for find in (np.minimum, np.maximum))
            scores = (scores - np.repeat(highs, self.sizes)) / np.repeat(np.maximum(highs - lows, 1e-300), self.sizes)
        return super().at(scores)

    def __init__(self, bound: TypeTwo, queries: Queries) -> None:
        super().__init__(bound.measure, queries, bound.phi)
        self.kind, self.by_grade, self.effort = KINDS[bound.surrogate], bound.perfect == "grades", bound.effort
        self.same: Floats | None = None
        if self.rankings.same_F or (self.by_grade and bound.phi == "pairs"):
            self.same = self.rankings.coefficients(self.rankings.hardest_by_grade(np.zeros(queries.n_docs)))

    def perfect(self, scores: Floats) -> Floats:
        """The derivatives of F of the hardest perfect rankings; under the pair Phi all may have the same."""
        if self.same is not None:
            return self.same
        r = self.rankings
        return r.coefficients(r.hardest_by_grade(scores) if self.by_grade else r.hardest_perfect(scores))

    def F(self, coefficients: Floats, scores: Floats) -> Floats:
        """By query."""
        total: Floats = np.add.reduceat(coefficients * scores, self.rankings.indptr[:-1])
        return total


class _BoundMax(_BoundTypeTwo):
    def _at(self, scores: Floats) -> Losses:
        r = self.rankings
        perfect = self.perfect(scores)
        F_perfect = self.F(perfect, scores)
        if self.kind == MARGIN:
            found, exact = r.most_violated(scores), r.searches_all
        else:
            found, exact = self._search(scores, F_perfect)
        own = r.coefficients(found)
        values, slopes = violations(self.kind, 1.0 - r.E(found), self.F(own, scores) - F_perfect)
        counts = np.zeros(len(values))
        counts[r.live] = 1.0
        by_row = np.repeat(slopes * counts * self.weight, self.sizes)
        return Losses(values * counts, by_row * (own - perfect), exact)

    def _search(self, scores: Floats, F_perfect: Floats) -> tuple[Ints, NDArray[np.bool_]]:
        r = self.rankings
        found = r.best_imperfect(scores)
        values = self._violations(found, scores, F_perfect)
        for other in r.violated(scores, _TRADES):
            its = self._violations(other, scores, F_perfect)
            found = np.where(np.repeat(its > values, self.sizes), other, found)
            values = np.maximum(values, its)
        return found, r.worst(scores, self.kind, F_perfect, values, found, self.effort)

    def _violations(self, order: Ints, scores: Floats, F_perfect: Floats) -> Floats:
        r = self.rankings
        return violations(self.kind, 1.0 - r.E(order), r.F(order, scores) - F_perfect)[0]


class _BoundSum(_BoundTypeTwo):
    def __init__(self, bound: TypeTwo, queries: Queries) -> None:
        super().__init__(bound, queries)
        short = [int(q) for q in self.rankings.live if self.sizes[q] <= SHORT]
        self.listed = {q: _Listed.of(bound, queries.slice(q, q + 1)) for q in short}

    def _at(self, scores: Floats) -> Losses:
        values, gradient = np.zeros(len(self.sizes)), np.zeros(len(scores))
        exact = np.zeros(len(self.sizes), dtype=bool)
        for q, listed in self.listed.items():
            rows = slice(int(self.rankings.indptr[q]), int(self.rankings.indptr[q + 1]))
            values[q], by_score = listed.total(self.kind, scores[rows])
            gradient[rows], exact[q] = self.weight[q] * by_score, True
        self._add_working_sets(scores, values, gradient, ~exact)
        exact[np.setdiff1d(np.arange(len(exact)), self.rankings.live)] = True
        return Losses(values, gradient, exact)

    def _add_working_sets(self, scores: Floats, values: Floats, gradient: Floats, wanted: NDArray[np.bool_]) -> None:
        r = self.rankings
        counts = np.zeros(len(values))
        counts[r.live] = wanted[r.live]
        if not counts.any():
            return
        perfect, best, violated = self.perfect(scores), r.best_imperfect(scores), r.most_violated(scores)
        differ = np.add.reduceat(best != violated, r.indptr[:-1]) > 0
        F_perfect = self.F(perfect, scores)
        for order, weight in ((best, counts), (violated, counts * differ)):
            its, slopes = violations(self.kind, 1.0 - r.E(order), r.F(order, scores) - F_perfect)
            values += weight * its
            gradient += np.repeat(weight * slopes * self.weight, self.sizes) * (r.coefficients(order) - perfect)


class _Listed(NamedTuple):
    """All rankings of a short query."""

    lost: Floats  # 1 - E of the imperfect ones
    imperfect: Floats  # coefficients of F, a row each
    perfect: Floats

    @classmethod
    def of(cls, bound: TypeTwo, query: Queries) -> _Listed:
        """List them."""
        n = query.n_docs
        all_orders = np.array(list(permutations(range(n))))
        many = len(all_orders)
        copies = Queries(
            np.zeros((many * n, 1), dtype=np.float32),
            np.tile(query.y, many),
            np.arange(many + 1) * n,
            np.arange(many),
        )
        copied = rankings(bound.measure, copies, bound.phi)
        order = (all_orders + np.arange(many)[:, None] * n).ravel()
        E, coefficients = copied.E(order), copied.coefficients(order).reshape(many, n)
        imperfect = E < 1.0 - SLACK
        by_grade = (np.diff(copied.classes[order].reshape(many, n)) >= 0).all(axis=1)
        perfect = by_grade if bound.perfect == "grades" else ~imperfect
        return cls(1.0 - E[imperfect], coefficients[imperfect], coefficients[perfect])

    def total(self, kind: int, scores: Floats) -> tuple[float, Floats]:
        """The sum over all pairs of rankings, and its gradient."""
        x = (self.imperfect @ scores)[None, :] - (self.perfect @ scores)[:, None]
        values, slopes = violations(kind, np.tile(self.lost, len(self.perfect)), x.ravel())
        by_pair = slopes.reshape(x.shape)
        return float(values.sum()), by_pair.sum(axis=0) @ self.imperfect - by_pair.sum(axis=1) @ self.perfect


def every_bound(measure: Measure, phi: str = "pairs") -> list[Bound]:
    """All bounds on a measure that can be evaluated on lists of any length, the basic loss first."""
    one = [TypeOne(measure, surrogate) for surrogate in TypeOne.SURROGATES]
    two = [TypeTwo(measure, surrogate, "max", phi) for surrogate in KINDS]
    return [Basic(measure), *one, *two]


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r}; expected one of {', '.join(known)}")
