"""Expected measures under Gaussian noise of the scores: the objective of SoftRank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.rank_distributions import compute_noisy_ranks
from rankwright.measures import Measure, MeasureArrays, parse_measure
from rankwright.objectives.smooth_objectives import (
    PreparedSmoothObjective,
    SmoothObjective,
    check_sigma,
    prepare_gains,
)

SIGMA = 0.3  # the standard deviation of the noise unless one is given


@dataclass(frozen=True, slots=True)
class NoisyRanks(SmoothObjective):
    """The loss of SoftRank: 1 - the expected measure where scores have Gaussian noise.

    Document i comes before document j with the probability Phi((s_i - s_j) / (sqrt(2) sigma)). The rank of j is 1 plus
    the number of documents before it, whose distribution p_j is that of independent trials with these probabilities.
    The loss is 1 - sum over j of g_j sum over ranks r of D(r) p_j(r).

    Parameters
    ----------
    measure : Measure or str
        NDCG, DCG, P, recall, RBP or WTA: a sum of discounted gains.
    sigma : float
        The standard deviation of the noise of a score.

    Notes
    -----
    Taylor et al. (2008). Differentiable everywhere. For sigma -> 0 it is 1 - measure where no scores are equal. O(n k)
    for each document with a gain, with a cut-off k (``kernels/objectives/rank_distributions.py``). Trials are not
    independent, so that p_j is an approximation, exact for two documents: for sigma -> infinity all ranks are not
    equally probable, but binomial. A document that has many more than k others near it or above it has no slope, so
    that a cut-off needs a smaller sigma.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright.measures import NDCG
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> prepared = NoisyRanks(NDCG()).prepare(queries)
    >>> [round(prepared.with_sigma(sigma)(np.array([1.0, 2.0, 0.0])).loss, 3) for sigma in (0.01, 1.0, 100.0)]
    [0.203, 0.199, 0.239]
    """

    measure: Measure | str
    sigma: float = SIGMA

    @classmethod
    def for_measure(cls, measure: Measure) -> Self:
        """Return the objective of the measure without its cut-off, beyond which documents have hardly any slope."""
        return cls(measure.with_cut_off(None))

    def prepare(self, queries: Queries) -> PreparedNoisyRanks:
        """Compute gains, ideals and discounts."""
        measure = parse_measure(self.measure)
        data, lost = prepare_gains(measure, queries)
        if measure.family != "additive":
            raise InputError(
                f"{measure} is no sum over documents of a gain times a discount; expected one that is, such as NDCG, "
                "or the objective SoftPositions"
            )
        return PreparedNoisyRanks(data, float(lost.sum()), check_sigma(self.sigma))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedNoisyRanks(PreparedSmoothObjective):
    """The loss 1 - expected measure under noise of the scores, prepared for some queries."""

    data: MeasureArrays
    offset: float
    sigma: float

    def _approximate(self, scores: Floats, gradient: Floats) -> float:
        return compute_noisy_ranks(self.data, scores, self.sigma, gradient)
