"""Smoothed measures: by the soft gain at each position, or by the soft rank of each document."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import DiscountFunction
from rankwright.kernels.objectives.smooth_measures import compute_soft_positions, compute_soft_ranks
from rankwright.measures import Measure, MeasureArrays, TableMeasure, parse_measure
from rankwright.objectives.base import Evaluation, MeasureObjective, PreparedObjective, check_scores


class SmoothObjective(MeasureObjective):
    """A smooth approximation of the loss 1 - measure, which it approaches as ``sigma`` goes to 0."""

    __slots__ = ()
    sigma: float

    @abstractmethod
    def prepare(self, queries: Queries) -> PreparedSmoothObjective:
        """Compute gains, ideals and discounts."""


class PreparedSmoothObjective(PreparedObjective):
    """A smooth approximation of 1 - measure, prepared for some queries."""

    __slots__ = ()
    data: MeasureArrays
    offset: float  # the loss where all gains are 0
    sigma: float

    @abstractmethod
    def _approximate(self, scores: Floats, gradient: Floats) -> float:
        """Return the summed approximation of the measure at these scores, and write its gradient."""

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its gradient."""
        scores = check_scores(scores, len(self.data.gain))
        if not np.isfinite(scores).all():  # they cannot be sorted
            return Evaluation.infinite(len(scores))
        gradient = np.empty(len(scores))
        return Evaluation(self.offset - self._approximate(scores, gradient), -gradient)

    def with_sigma(self, sigma: float) -> Self:
        """Return the objective with this smoothing; the prepared arrays are shared."""
        return replace(self, sigma=check_sigma(sigma))  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class SoftPositions(SmoothObjective):
    """The loss 1 - measure, where the gain at a position is a mean over documents with scores near that position.

        m_j = sum over i of h_ij g_i,    h_ij = exp(-(s_i - s_d(j))^2 / sigma) / sum over k of the same,

    d(j) being the document at position j. The m_j take the place of the gains in the measure: in sums of discounted
    gains such as NDCG as in eq. (8), in average precision as in section 4.2, and in cascade measures (ERR, RR) by the
    same rule, which the paper does not have.

    Parameters
    ----------
    measure : Measure or str
        Any built-in measure.
    sigma : float
        The smoothing, in squares of scores.

    Notes
    -----
    Chapelle & Wu (2010), eq. (7), (8) and (10). Continuous everywhere (proposition 1), differentiable but at ties. The
    error is O(exp(-mu / sigma)), mu the least squared difference of scores. O(k n) for each query with a cut-off k:
    documents whose exp is below 4e-18 are skipped. Tied documents have no order here, whatever the measure's rule.

    Examples
    --------
    >>> from rankwright.measures import NDCG
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> prepared = SoftPositions(NDCG()).prepare(queries)
    >>> [round(prepared.with_sigma(sigma)(np.array([1.0, 2.0, 0.0])).loss, 3) for sigma in (0.01, 1.0, 100.0)]
    [0.203, 0.133, 0.213]
    """

    measure: Measure | str
    sigma: float = 1.0

    def prepare(self, queries: Queries) -> PreparedSoftPositions:
        """Compute gains, ideals and discounts."""
        data, lost = prepare_gains(parse_measure(self.measure), queries)
        return PreparedSoftPositions(data, float(lost.sum()), check_sigma(self.sigma))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSoftPositions(PreparedSmoothObjective):
    """The approximation of 1 - measure by soft positions, prepared for some queries."""

    data: MeasureArrays
    offset: float
    sigma: float

    def _approximate(self, scores: Floats, gradient: Floats) -> float:
        return compute_soft_positions(self.data, scores, self.sigma, gradient)


@dataclass(frozen=True, slots=True)
class SigmoidRanks(SmoothObjective):
    """The loss 1 - measure, where the rank of a document is 1 + a smooth count of the documents above it.

    The soft rank of document i is 1 + sum over j of 1 / (1 + exp((s_i - s_j) / sigma)).

    Sums of discounted gains become the sum of g_i D(r_i), D at the soft rank r_i (eq. 5; ApproxNDCG is similar).
    Average precision becomes eq. (9), the mean over relevant documents of c_i / r_i, where c_i is the soft number of
    relevant documents at or above i.

    Parameters
    ----------
    measure : Measure or str
        NDCG, DCG, P, recall, RBP, WTA, or average precision.
    sigma : float
        The smoothing, in units of scores.

    Notes
    -----
    Chapelle & Wu (2010), eq. (5) and (9). In eq. (9) a document counts itself as 1, not as the printed 1/2, with which
    sigma -> 0 would not give average precision. Beyond a cut-off k, D falls smoothly from D(k) to 0 at k + 1. O(R n)
    for each query with R documents of positive gain.

    Examples
    --------
    >>> from rankwright.measures import AP
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [1, 0, 1], qid=[1, 1, 1])
    >>> bool(np.isclose(SigmoidRanks(AP(), 1e-3).prepare(queries)(np.array([3.0, 2.0, 1.0])).loss, 1 - (1 + 2 / 3) / 2))
    True
    """

    measure: Measure | str
    sigma: float = 1.0

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the objective of the measure without its cut-off, which would leave soft ranks no gradient."""
        return cls(measure.with_cut_off(None))

    def prepare(self, queries: Queries) -> PreparedSoftRanks:
        """Compute gains, ideals and the discount."""
        measure = parse_measure(self.measure)
        data, lost = prepare_gains(measure, queries)
        if data.v != 0.0 or not isinstance(measure, TableMeasure):
            raise InputError(
                f"{measure} has no approximation by soft ranks; expected a sum of gains or AP, or SoftPositions"
            )
        return PreparedSoftRanks(data, measure.discount_function, float(lost.sum()), check_sigma(self.sigma))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSoftRanks(PreparedSmoothObjective):
    """The approximation of 1 - measure by soft ranks, prepared for some queries."""

    data: MeasureArrays
    discount_function: DiscountFunction
    offset: float
    sigma: float

    def _approximate(self, scores: Floats, gradient: Floats) -> float:
        return compute_soft_ranks(self.data, self.discount_function, scores, self.sigma, gradient)


APPROXIMATIONS: Mapping[str, Callable[[Measure, float], SmoothObjective]] = {
    "positions": SoftPositions,
    "ranks": SigmoidRanks,
}


def default_approximation(measure: Measure) -> str:
    """Return the name of the approximation that Chapelle & Wu (2010) use: "ranks" for AP, otherwise "positions"."""
    return "ranks" if measure.family == "ap" else "positions"


def smooth_measure(
    measure: Measure, sigma: float, k: int | None = None, approximation: str | None = None
) -> SmoothObjective:
    """Make the smooth approximation of 1 - measure that the ranker SmoothRank minimises.

    Discounts differ from rank to rank, and short lists are padded, whatever the dialect. Positions count to ``k``, or
    to the cut-off of the measure. Ranks count the whole list: with a cut-off soft ranks would have no gradient.
    """
    target = measure.for_upper_bounds()
    approximation = approximation or default_approximation(target)
    return APPROXIMATIONS[approximation](
        target.with_cut_off(None if approximation == "ranks" else k or target.cut_off), sigma
    )


def check_sigma(sigma: float) -> float:
    """Return the smoothing ``sigma`` as a float; raise InputError if it is not a positive number."""
    is_number = isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool)
    if not is_number or not 1e-300 <= sigma <= 1e300:
        raise InputError(f"sigma={sigma!r}; expected a number above 0")
    return float(sigma)


def prepare_gains(measure: Measure, queries: Queries) -> tuple[MeasureArrays, Floats]:
    """Return a measure's arrays with queries weighted, and by query the weighted loss where all gains are 0."""
    if not measure.has_arrays:
        raise InputError(
            f"{measure} is a function of ranked grades; expected a built-in measure, which can be smoothed"
        )
    prepared = measure.prepare(queries)
    arrays, weight = prepared.arrays, np.where(prepared.is_counted, queries.query_weight, 0.0)
    return arrays._replace(scale=weight * arrays.scale), weight * (1.0 - np.nan_to_num(arrays.base))
