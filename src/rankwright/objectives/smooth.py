"""Measures made smooth: by what is softly at each position, or by the soft rank of each document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import Law
from rankwright.kernels.objectives.smooth_measures import Gained, soft_positions, soft_ranks
from rankwright.measures import Measure, TableMeasure, parse
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective, check_scores, infinite_evaluation


class Smooth(Objective, Protocol):
    """An objective that becomes the measure as ``sigma`` goes to 0."""

    @property
    def measure(self) -> Measure | str:
        """What it becomes."""
        ...

    @property
    def sigma(self) -> float:
        """How smooth it is."""
        ...

    def prepare(self, queries: Queries) -> PreparedSmoothObjective:
        """Find gains and norms."""
        ...


class PreparedSmoothObjective(PreparedObjective, Protocol):
    """A smooth measure with the gains and norms of some queries."""

    def smoothed(self, sigma: float) -> PreparedSmoothObjective:
        """The same, smoothed so much; what was bound is shared."""
        ...


@dataclass(frozen=True, slots=True)
class SoftPositions:
    """1 - measure, where the gain at a position is a mean over the documents with scores near the one that is there.

        m_j = sum over i of h_ij g_i,    h_ij = exp(-(s_i - s_d(j))^2 / sigma) / sum over k of the same,

    d(j) being the document at position j. The measure is computed of the m_j as of gains: NDCG and all that are sums of
    discounted gains as in eq. (8), average precision as the mean of precisions of section 4.2, and measures of the
    cascade (ERR, RR) by the same rule, which the paper does not have.

    Parameters
    ----------
    measure : Measure or str
        Any but a user's own.
    sigma : float
        The smoothing, in squares of scores.

    Notes
    -----
    Chapelle & Wu (2010), eq. (7), (8) and (10). Continuous everywhere (proposition 1), differentiable but at ties. The
    error is O(exp(-mu / sigma)), mu the least squared difference of scores. O(k n) a query for a cut-off k: only
    documents whose exp is above 4e-18 are looked at. Ties have no order here, whatever the measure's rule for them.

    Examples
    --------
    >>> from rankwright.measures import NDCG
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> bound = SoftPositions(NDCG()).prepare(queries)
    >>> [round(bound.smoothed(sigma)(np.array([1.0, 2.0, 0.0])).loss, 3) for sigma in (0.01, 1.0, 100.0)]
    [0.203, 0.133, 0.213]
    """

    measure: Measure | str
    sigma: float = 1.0

    def prepare(self, queries: Queries) -> PreparedSoftPositions:
        """Find gains, ideals and discounts."""
        data, lost = gained(parse(self.measure), queries)
        return PreparedSoftPositions(data, float(lost.sum()), check_sigma(self.sigma))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSoftPositions:
    """Soft positions, bound."""

    data: Gained
    offset: float  # the loss where nothing is gained
    sigma: float

    def smoothed(self, sigma: float) -> PreparedSoftPositions:
        """The same, smoothed so much."""
        return replace(self, sigma=check_sigma(sigma))

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its gradient."""
        scores = check_scores(scores, len(self.data.gain))
        if not np.isfinite(scores).all():  # which cannot be sorted
            return infinite_evaluation(len(scores))
        gradient = np.empty(len(scores))
        return Evaluation(self.offset - soft_positions(self.data, scores, self.sigma, gradient), -gradient)


@dataclass(frozen=True, slots=True)
class SoftRanks:
    """1 - measure, where the rank of a document is 1 + sum over j of 1 / (1 + exp((s_i - s_j) / sigma)).

    Sums of discounted gains become the sum of g_i D(r_i), D at the soft rank r_i (eq. 5; the relative of ApproxNDCG);
    average precision becomes eq. (9), the mean over relevant documents of c_i / r_i, c_i the relevant documents softly
    at or above i.

    Parameters
    ----------
    measure : Measure or str
        NDCG, DCG, P, recall, RBP, WTA, or average precision.
    sigma : float
        The smoothing, in units of scores.

    Notes
    -----
    Chapelle & Wu (2010), eq. (5) and (9). In eq. (9) a document counts itself as 1, not as the 1/2 that is printed,
    with which sigma -> 0 would not give average precision. Beyond a cut-off k, D falls smoothly
    from D(k) to 0 at k + 1. O(R n) a query with R documents of any gain.

    Examples
    --------
    >>> from rankwright.measures import AP
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [1, 0, 1], qid=[1, 1, 1])
    >>> bool(np.isclose(SoftRanks(AP(), 1e-3).prepare(queries)(np.array([3.0, 2.0, 1.0])).loss, 1 - (1 + 2 / 3) / 2))
    True
    """

    measure: Measure | str
    sigma: float = 1.0

    def prepare(self, queries: Queries) -> PreparedSoftRanks:
        """Find gains, ideals and the discount."""
        measure = parse(self.measure)
        data, lost = gained(measure, queries)
        if data.v != 0.0 or not isinstance(measure, TableMeasure):
            raise InputError(f"{measure} has no form by soft ranks; expected a sum of gains or AP, or SoftPositions")
        return PreparedSoftRanks(data, measure.law, float(lost.sum()), check_sigma(self.sigma))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSoftRanks:
    """Soft ranks, bound."""

    data: Gained
    law: Law
    offset: float
    sigma: float

    def smoothed(self, sigma: float) -> PreparedSoftRanks:
        """The same, smoothed so much."""
        return replace(self, sigma=check_sigma(sigma))

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its gradient."""
        scores = check_scores(scores, len(self.data.gain))
        if not np.isfinite(scores).all():  # which cannot be sorted
            return infinite_evaluation(len(scores))
        gradient = np.empty(len(scores))
        return Evaluation(self.offset - soft_ranks(self.data, self.law, scores, self.sigma, gradient), -gradient)


FORMS: Mapping[str, Callable[[Measure, float], Smooth]] = {"positions": SoftPositions, "ranks": SoftRanks}


def usual_form(measure: Measure) -> str:
    """The form of the paper: positions, eq. (8), but for average precision ranks, eq. (9)."""
    return "ranks" if measure.family == "ap" else "positions"


def smooth(measure: Measure, sigma: float, k: int | None = None, form: str | None = None) -> Smooth:
    """What SmoothRank smooths of a measure.

    Discounts tell ranks apart, and short lists are padded, whatever the dialect. Positions count to ``k``, or to the
    measure's cut-off; ranks count the whole list, since with a cut-off they have no slope while they are soft.
    """
    target = measure.for_bounds()
    form = form or usual_form(target)
    return FORMS[form](target.cut_at(None if form == "ranks" else k or target.cut_off), sigma)


def check_sigma(sigma: float) -> float:
    """Refuse a smoothing that is none."""
    is_number = isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool)
    if not is_number or not 1e-300 <= sigma <= 1e300:
        raise InputError(f"sigma={sigma!r}; expected a number above 0")
    return float(sigma)


def gained(measure: Measure, queries: Queries) -> tuple[Gained, Floats]:
    """What kernels need of a measure, and by query the weighted 1 - measure where nothing is gained."""
    bound = measure.prepare(queries)
    if bound.arrays is None:
        raise InputError(
            f"{measure} is a function of ranked grades; expected a measure that Rankwright knows how to smooth"
        )
    gain, discount, scale, base, u, v = bound.arrays
    weight = np.where(bound.counted, queries.query_weight, 0.0)
    return Gained(queries.indptr, gain, discount, weight * scale, u, v), weight * (1.0 - np.nan_to_num(base))
