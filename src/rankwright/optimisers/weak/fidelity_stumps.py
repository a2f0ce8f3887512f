"""The stump that lowers the fidelity loss most, found exactly without trying them all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.optimisers.feature_bins import accumulate_bins
from rankwright.kernels.optimisers.fidelity_sums import (
    FLATTER,
    HEAVIER,
    LIGHTER,
    WEIGHT,
    compute_fresh_bounds,
    compute_stale_bounds,
)
from rankwright.optimisers.weak.long_fidelity import sum_gains, sum_splits
from rankwright.optimisers.weak.threshold_stumps import SAME, BinnedShard, FeatureBins, sum_above_thresholds
from rankwright.runtime.backends import Backend, Shards

_MIN_GAIN = 2.0 * SAME  # of a stump worth adding: more than rounding
_FIRST_BATCH = 8  # features scanned first, and candidates tried first; then twice as many, and so on


class ScoredPairs(Protocol):
    """The interface of a shard of training documents with their scores and potentials."""

    @property
    def binned(self) -> BinnedShard:
        """The documents with the bins of their features."""

    @property
    def scores(self) -> Floats:
        """The scores, in the order of grades."""

    @property
    def potentials(self) -> Floats:
        """The sums of W and of F''' over the pairs of each document, in two rows."""


class FidelityStump(NamedTuple):
    """A stump found by the search: its slot (feature and threshold), its weight alpha, and the loss it takes away."""

    slot: int
    alpha: float
    gain: float
    n_scanned: int  # features of which all thresholds were looked at
    n_tried: int  # stumps whose loss was summed over all pairs


class FidelityStumpSearch:
    """A search for FRank's next stump: the one with the least fidelity loss, at the alpha of equation (3).

    This is step (a) of figure 2; equation (2) is the loss.

    W+ - W- of every threshold costs one pass over the documents, since it is a sum of potentials. W+ + W- costs a
    pass over the pairs, and so it is computed for few features only. Its value some rounds ago, less all that any pair
    has lost since, is a lower bound, which bounds the gain. Features that may hold the best stump are scanned again,
    the most promising ones first. Taylor's formula bounds the gain of their stumps closely; those that remain are
    tried, pair by pair. All bounds are rigorous, so the stump found is that of the full search.

    Parameters
    ----------
    bins : FeatureBins
        The thresholds of the features.
    smoothing : float
        A number added to W+ and to W- in (3).
    backend : Backend
        Where the shards are.
    """

    def __init__(self, bins: FeatureBins, smoothing: float, backend: Backend) -> None:
        self.bins, self.smoothing, self.backend = bins, smoothing, backend
        self.lower = np.zeros(bins.n_slots)  # bounds of W+ + W-
        self.upper = np.full(bins.n_slots, np.inf)
        self.curvature = np.full(bins.n_slots, -np.inf)  # a lower bound of the sum of F''
        self.possible = ~np.isnan(bins.thresholds)

    def relax_bounds(self, state: Floats) -> None:
        """Widen the bounds by the changes of the weights of pairs in a round."""
        slack = SAME * state[WEIGHT]
        self.lower -= state[LIGHTER] + slack
        self.upper += state[HEAVIER] + slack
        self.curvature -= state[FLATTER] + slack

    def find(self, parts: Shards[ScoredPairs], potential_sums: Floats) -> FidelityStump | None:
        """Return the best stump, from the sums of W potentials in every slot; None if none gains anything."""
        r = sum_above_thresholds(potential_sums, self.bins, np.arange(self.bins.n_features)).above  # W+ - W-
        bounds = np.empty(self.bins.n_slots)
        compute_stale_bounds(r, self.lower, self.upper, self.curvature, self.smoothing, bounds)
        bounds[~self.possible] = -np.inf
        alphas = np.zeros(self.bins.n_slots)
        highest = np.maximum.reduceat(bounds, self.bins.starts[:-1])
        promising = np.argsort(-highest, kind="stable")
        trial = _StumpTrials(self, parts, alphas, bounds)
        at, size = 0, _FIRST_BATCH
        while at < len(promising) and highest[promising[at]] + SAME >= trial.best:
            batch = promising[at : at + size]
            batch = np.sort(batch[highest[batch] + SAME >= trial.best])
            self._scan(parts, batch, r, alphas, bounds)
            trial.try_most_promising(batch)
            at, size = at + len(batch), 2 * size
        trial.try_rest(promising[:at])
        slot = trial.find_winner()
        return (
            None if slot is None else FidelityStump(slot, float(alphas[slot]), trial.gains[slot], at, len(trial.gains))
        )

    def _scan(self, parts: Shards[ScoredPairs], features: Ints, r: Floats, alphas: Floats, bounds: Floats) -> None:
        """Compute W+ + W- and the sum of F'' of all thresholds of some features; set their alphas and bounds."""
        for group in self.bins.group_features(features):
            slots = self.bins.list_slots(group)
            split = self.backend.sum(_sum_splits, parts, self.bins, group)
            for row in split:
                accumulate_bins(row, self.bins.starts, group)
            third = sum_above_thresholds(
                self.backend.sum(_sum_third_derivatives, parts, self.bins, group), self.bins, group
            ).above
            known = np.empty((len(slots), 2))
            compute_fresh_bounds(r[slots], split[0], split[1], third, self.smoothing, known)
            self.lower[slots], self.upper[slots], self.curvature[slots] = split[0], split[0], split[1]
            alphas[slots] = known[:, 0]
            bounds[slots] = np.where(self.possible[slots], known[:, 1], -np.inf)

    def compute_gains(self, parts: Shards[ScoredPairs], slots: Ints, alphas: Floats) -> Floats:
        """Return the decrease of the loss by each of some stumps."""
        features = self.bins.find_features(slots)
        found: Floats = self.backend.sum(_sum_gains, parts, features, slots - self.bins.starts[features], alphas)
        return found


class _StumpTrials:
    """The stumps that have been tried in a round with their gains, and the best gain."""

    def __init__(self, search: FidelityStumpSearch, parts: Shards[ScoredPairs], alphas: Floats, bounds: Floats) -> None:
        self.search, self.parts, self.alphas, self.bounds = search, parts, alphas, bounds
        self.gains: dict[int, float] = {}
        self.best = _MIN_GAIN

    def try_most_promising(self, features: Ints) -> None:
        """Try the stump of the highest bound among some features."""
        slots = self.search.bins.list_slots(features)
        slot = slots[int(np.argmax(self.bounds[slots]))]
        if self.bounds[slot] + SAME >= self.best:
            self._try(np.array([slot]))

    def try_rest(self, features: Ints) -> None:
        """Try all stumps of some features whose bounds reach the best gain so far."""
        slots = self.search.bins.list_slots(np.sort(features))
        slots = slots[np.argsort(-self.bounds[slots], kind="stable")]
        at, size = 0, _FIRST_BATCH
        while at < len(slots) and self.bounds[slots[at]] + SAME >= self.best:
            batch = slots[at : at + size]
            wanted = [
                slot for slot in batch.tolist() if self.bounds[slot] + SAME >= self.best and slot not in self.gains
            ]
            if wanted:
                self._try(np.array(wanted))
            at, size = at + len(batch), 2 * size

    def find_winner(self) -> int | None:
        """Return the first of the best stumps; None if none gains enough."""
        best = [slot for slot, gain in self.gains.items() if gain + SAME >= self.best]
        return min(best) if best and self.best > _MIN_GAIN else None

    def _try(self, slots: Ints) -> None:
        gains = self.search.compute_gains(self.parts, slots, self.alphas[slots])
        self.gains.update(zip(slots.tolist(), gains.tolist(), strict=True))
        self.best = max(self.best, float(gains.max()))


def _sum_third_derivatives(part: ScoredPairs, bins: FeatureBins, features: Ints) -> Floats:
    """Return for each slot the sum of its documents' potentials of the third derivative of the pair loss."""
    return part.binned.sum_by_slot(part.potentials[1], bins, features)


def _sum_splits(part: ScoredPairs, bins: FeatureBins, features: Ints) -> Floats:
    """Return sums over the pairs that each threshold splits, of weights and F'', as differences from slot to slot."""
    out = np.zeros((2, bins.count_slots(features)))
    sum_splits(part.binned.graded, part.scores, part.binned.codes, bins.starts, features, out)
    return out


def _sum_gains(part: ScoredPairs, features: Ints, cuts: Ints, alphas: Floats) -> Floats:
    """Return by how much each of some stumps lowers the fidelity loss of a shard."""
    out = np.zeros(len(features))
    sum_gains(part.binned.graded, part.scores, part.binned.codes, features, cuts, alphas, out)
    return out
