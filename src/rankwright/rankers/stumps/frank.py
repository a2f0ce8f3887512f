"""FRank: boosting threshold stumps on the fidelity loss of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import GradedDocuments
from rankwright.measures import Measure
from rankwright.optimisers.rounds import Deadline, RoundRecorder
from rankwright.optimisers.weak.fidelity_stumps import FidelityStumpSearch
from rankwright.optimisers.weak.long_fidelity import sum_state
from rankwright.optimisers.weak.threshold_stumps import sum_stumps
from rankwright.rankers.base import FitResult
from rankwright.rankers.input_checks import check_bins, check_number
from rankwright.rankers.stumps.stump_boosting import PairSums, StumpChoice, StumpRanker, StumpStages
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class FRank(StumpRanker):
    """FRank: boosting of threshold stumps on the fidelity loss of pairs, with all queries weighted equally.

    H = sum_t alpha_t h_t, where h_t(x) is 1 if a feature of x is above a threshold and 0 if not. A pair l_i > l_j with
    o = H(x_i) - H(x_j) loses F = 1 - sqrt(P), P = 1 / (1 + exp(-o)): between 0 and 1, however wrong. Every round adds
    the stump that lowers the loss most, with alpha = 1/2 ln(W+ / W-), where W+ and W- are the summed weights
    W_ij = D exp(o / 2) / (1 + exp(o))^(3/2) of the pairs it orders rightly and wrongly.

    Parameters
    ----------
    smoothing : float
        The number that is added to W+ and to W-, as a share of the weight of all queries: a stump that orders no pair
        wrongly has a finite step, and one that splits hardly any a small one.

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``feature``, ``threshold``, ``missing`` (always False), ``alpha``, ``gain`` (by how much the
        stump was found to lower the loss), ``scanned`` (features whose pairs were gone through), ``tried`` (stumps
        whose loss was summed up pair by pair), ``loss`` (the mean over queries of (2)), ``train``, ``valid``. A resumed
        fit finds the same stumps with more work at first: its ``scanned`` and ``tried`` differ from those of one long
        fit.

    Notes
    -----
    Tsai et al. (2007), figure 2. Step (a) is exact: the stump found is the one with the least loss (2) at its own alpha
    (3) among all thresholds of all features (see ``fidelity_stumps.py``). Queries of thousands of documents take
    time linear in their number: sums over their pairs are made by Fourier modes of the scores, to the last digits
    (``long_fidelity.py``). Deviations:

    1. (3) has ``smoothing`` in both sums. The loss falls all the same, with any step between 0 and (3): the gain is at
       least W+ (1 - exp(-alpha)) / 2 - W- (exp(alpha) - 1) / 2.
    2. alpha is rounded to a multiple of 2^-32, so that scores are exact sums, whatever their order.
    3. With ``valid`` the model is that of the best round, not of the last.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> ranker = FRank(measure="map", n_estimators=20).fit(queries)
    >>> losses = [record["loss"] for record in ranker.history_]
    >>> losses == sorted(losses, reverse=True)
    True
    """

    smoothing: float = 1e-3

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        self._check_additive()
        smoothing = check_number("smoothing", self.smoothing, least=_LEAST_SMOOTHING)
        recorder = RoundRecorder[None](deadline=Deadline(self.max_seconds))
        stages = _FidelityStages(train, valid, measure, check_bins(self.max_bins), smoothing, backend)
        recorder.make_scorer = lambda: sum_stumps(stages.stumps[: recorder.n_kept], missing=stages.takes_missing)
        self._boost(stages, stages.restore, train, recorder)
        reason = "no threshold of a feature orders more pairs rightly than wrongly"
        return FitResult(recorder.make_scorer(), recorder.finish(), recorder.deadline.explain(), reason)


_LEAST_SMOOTHING = 1e-9  # below, rounding of the sums would show in alpha


def _sum_fidelity_pairs(graded: GradedDocuments, before: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Return the fidelity loss summed over pairs, with more sums, and by document signed sums over its pairs."""
    potentials = np.empty((2, len(scores)))
    return sum_state(graded, before, scores, potentials), potentials


class _FidelityStages(StumpStages):
    """The state of FRank between rounds: a sum of stumps, with pairs weighted by the slope of the fidelity loss."""

    pair_sums: ClassVar[PairSums] = staticmethod(_sum_fidelity_pairs)
    noted: ClassVar[Mapping[str, type]] = {"gain": float, "scanned": int, "tried": int}
    takes_missing: ClassVar[bool] = False

    def __init__(
        self,
        train: Queries,
        valid: Queries | None,
        measure: Measure,
        n_bins: int | None,
        smoothing: float,
        backend: Backend,
    ) -> None:
        super().__init__(train, valid, measure, n_bins, "query", backend)  # Eq. (1): D = 1 / #_q
        self.search = FidelityStumpSearch(self.bins, smoothing, backend)

    def choose(self) -> StumpChoice | None:
        """Return the stump with the least loss; None if no stump lowers it."""
        found = self.search.find(self.parts, self.worths())
        if found is None:
            return None
        notes = {"gain": found.gain, "scanned": found.n_scanned, "tried": found.n_tried}
        return StumpChoice(self.bins.make_stump(found.slot, found.alpha), notes)

    def add(self, chosen: StumpChoice) -> dict[str, Any]:
        """Add the stump; what was known of the weights of pairs is a little less so."""
        record = super().add(chosen)
        self.search.relax_bounds(self.totals[1:])
        return record
