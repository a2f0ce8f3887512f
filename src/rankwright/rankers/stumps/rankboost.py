"""RankBoost: boosting threshold stumps on the exponential loss of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import GradedDocuments, sum_exponential_pairs
from rankwright.measures import Measure
from rankwright.optimisers.rounds import Deadline, RoundRecorder
from rankwright.optimisers.weak.threshold_stumps import find_best_stump, round_weight, sum_stumps
from rankwright.rankers.base import FitResult
from rankwright.rankers.input_checks import check_among, check_bins
from rankwright.rankers.stumps.stump_boosting import PairSums, StumpChoice, StumpRanker, StumpStages
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class RankBoost(StumpRanker):
    """RankBoost: boosting of threshold stumps on the exponential loss of pairs of documents.

    H = sum_t alpha_t h_t, where h_t(x) is 1 if a feature of x is above a threshold and 0 if not. A pair l_i > l_j
    has the weight D_t(i, j) proportional to exp(H(x_j) - H(x_i)); round t picks the stump with the largest abs(r),
    r = sum_ij D_t(i, j) (h(x_i) - h(x_j)), and gives it the weight alpha_t = 1/2 ln((1 + r) / (1 - r)).

    Parameters
    ----------
    pair_weighting : "pair" or "query"
        Whether all pairs have equal weight in the first D, or all queries.

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``feature``, ``threshold``, ``missing`` (the stump's value of a missing feature), ``alpha``,
        ``r``, ``z`` (the normaliser Z_t, at most sqrt(1 - r^2) where abs(r) < 1), ``loss`` (the mean of exp(H(x_j) -
        H(x_i)), which is the product of all Z), ``train``, ``valid``.

    Notes
    -----
    Freund et al. (2003), with the weak learner of their section 3.2: documents that lack the feature have the value 0
    or 1, whichever makes abs(r) larger, and a feature that some lack also has a threshold below all its values.
    exp(H(x_j) - H(x_i)) is a product, so the potential of a document costs O(1) once the sums of its query are
    known, and a round is O(n d). Deviations:

    1. alpha_t is rounded to a multiple of 2^-32, so that scores are exact sums, whatever their order.
    2. With ``valid`` the model is that of the best round, not of the last.
    3. abs(r) counts as 1 - 1e-9 at most, so that a perfect stump has a finite step.
    4. A feature that no training document lacks counts 0 where it is missing.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> ranker = RankBoost(measure="map", n_estimators=20).fit(queries)
    >>> all(record["z"] <= (1 - record["r"] ** 2) ** 0.5 + 1e-12 for record in ranker.history_)
    True
    """

    pair_weighting: str = "pair"

    allow_nan: ClassVar[bool] = True
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"pair_weighting": ("pair", "query")}

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        self._check_additive()
        check_among("pair_weighting", self.pair_weighting, ("pair", "query"))
        recorder = RoundRecorder[None](deadline=Deadline(self.max_seconds))
        stages = _ExponentialStages(train, valid, measure, check_bins(self.max_bins), self.pair_weighting, backend)
        recorder.make_scorer = lambda: sum_stumps(stages.stumps[: recorder.n_kept], missing=stages.takes_missing)
        self._boost(stages, stages.restore, train, recorder)
        reason = "no threshold of a feature orders more pairs rightly than wrongly"
        return FitResult(recorder.make_scorer(), recorder.finish(), recorder.deadline.explain(), reason)


_NOTHING_LEFT = 1e-12  # of the loss
_MOST = 1.0 - 1e-9  # of r, for a finite step


def _sum_loss_of_pairs(graded: GradedDocuments, before: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Return the exponential loss summed over pairs, and its negative gradient with respect to the scores."""
    gradient = np.empty(len(scores))
    loss = sum_exponential_pairs(graded, scores, gradient)
    return np.array([loss]), -gradient[None]


class _ExponentialStages(StumpStages):
    """The state of RankBoost between rounds: a sum of stumps, with pairs weighted by their exponential loss."""

    pair_sums: ClassVar[PairSums] = staticmethod(_sum_loss_of_pairs)
    noted: ClassVar[Mapping[str, type]] = {"r": float}
    takes_missing: ClassVar[bool] = True

    def choose(self) -> StumpChoice | None:
        """Return the stump with the largest abs(r); None if the loss is about 0."""
        if self.loss <= _NOTHING_LEFT:
            return None
        slot, missing, r = find_best_stump(self.worths() / self.loss, self.bins)
        bounded = min(max(r, -_MOST), _MOST)
        alpha = round_weight(0.5 * math.log((1.0 + bounded) / (1.0 - bounded)))
        if alpha == 0.0:
            return None
        return StumpChoice(self.bins.make_stump(slot, alpha, missing), {"r": r})

    def add(self, chosen: StumpChoice) -> dict[str, Any]:
        """Add the stump; Z is by how much the loss shrinks."""
        before = self.loss
        record = super().add(chosen)
        return {**record, "z": self.loss / before if before > 0.0 else 1.0}
