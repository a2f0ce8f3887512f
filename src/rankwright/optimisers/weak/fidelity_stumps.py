"""The stump that lowers the fidelity loss most, found exactly without trying them all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.optimisers.feature_bins import sum_up
from rankwright.kernels.optimisers.fidelity_sums import FLATTER, HEAVIER, LIGHTER, WEIGHT, fresh_bounds, stale_bounds
from rankwright.optimisers.weak.long_fidelity import sum_gains, sum_splits
from rankwright.optimisers.weak.threshold_stumps import SAME, BinnedPart, FeatureBins, sums_above
from rankwright.runtime.backends import Backend, Shards

_LEAST = 2.0 * SAME  # what a stump must gain to be of interest: more than a bound of 0 allows for
_FIRST = 8  # features looked at first, and candidates tried first; then twice as many, and so on


class PairedPart(Protocol):
    """A part of the training documents with its scores, and the potentials of its documents under them."""

    @property
    def binned(self) -> BinnedPart:
        """The documents."""
        ...

    @property
    def scores(self) -> Floats:
        """Their scores, in the order of grades."""
        ...

    @property
    def potentials(self) -> Floats:
        """Rows of the sums of W and of F''' over the pairs of each; see ``kernels/fidelity.py``."""
        ...


class FidelityStump(NamedTuple):
    """The best stump, with its step and what it gains."""

    slot: int
    alpha: float
    gain: float
    n_scanned: int  # features of which all thresholds were looked at
    n_tried: int  # stumps whose loss was summed over all pairs


class FidelitySearch:
    """Figure 2, step (a): of all stumps, each with its own alpha (3), the one with the least loss (2).

    W+ - W- of every threshold costs one pass over the documents, since it is a sum of potentials. W+ + W- costs a
    pass over the pairs, and so is known of few features only: what it was some rounds ago, less all that any pair has
    lost since, is a lower bound, and that bounds the gain. Features that may hold the best stump are scanned anew,
    the most promising ones first; of their stumps Taylor's formula knows the gain closely; those that remain are
    tried, pair by pair. Every bound holds for certain, so the stump found is that of the full search.

    Parameters
    ----------
    bins : FeatureBins
        Where the features are cut.
    smoothing : float
        What is added to W+ and to W- in (3).
    backend : Backend
        Where the parts are.
    """

    def __init__(self, bins: FeatureBins, smoothing: float, backend: Backend) -> None:
        self.bins, self.smoothing, self.backend = bins, smoothing, backend
        self.least = np.zeros(bins.n_slots)  # of W+ + W-
        self.most = np.full(bins.n_slots, np.inf)
        self.bend = np.full(bins.n_slots, -np.inf)  # the least the sum of F'' can be
        self.possible = ~np.isnan(bins.thresholds)

    def age(self, state: Floats) -> None:
        """Take account of how the weights of pairs have changed."""
        slack = SAME * state[WEIGHT]
        self.least -= state[LIGHTER] + slack
        self.most += state[HEAVIER] + slack
        self.bend -= state[FLATTER] + slack

    def find(self, parts: Shards[PairedPart], worths: Floats) -> FidelityStump | None:
        """The best stump, given the sum of W potentials in every slot; None if none gains anything."""
        r = sums_above(worths, self.bins, np.arange(self.bins.n_features)).above  # W+ - W-
        bounds = np.empty(self.bins.n_slots)
        stale_bounds(r, self.least, self.most, self.bend, self.smoothing, bounds)
        bounds[~self.possible] = -np.inf
        alphas = np.zeros(self.bins.n_slots)
        highest = np.maximum.reduceat(bounds, self.bins.starts[:-1])
        promising = np.argsort(-highest, kind="stable")
        trial = _Trial(self, parts, alphas, bounds)
        at, size = 0, _FIRST
        while at < len(promising) and highest[promising[at]] + SAME >= trial.best:
            batch = promising[at : at + size]
            batch = np.sort(batch[highest[batch] + SAME >= trial.best])
            self._scan(parts, batch, r, alphas, bounds)
            trial.try_most_promising(batch)
            at, size = at + len(batch), 2 * size
        trial.try_rest(promising[:at])
        slot = trial.winner()
        return (
            None if slot is None else FidelityStump(slot, float(alphas[slot]), trial.gains[slot], at, len(trial.gains))
        )

    def _scan(self, parts: Shards[PairedPart], features: Ints, r: Floats, alphas: Floats, bounds: Floats) -> None:
        """Learn W+ + W- and the sum of F'' of all thresholds of some features; set their alphas and bounds."""
        for group in self.bins.groups(features):
            slots = self.bins.slots(group)
            split = self.backend.sum(_split_sums, parts, self.bins, group)
            for row in split:
                sum_up(row, self.bins.starts, group)
            third = sums_above(self.backend.sum(_third_sums, parts, self.bins, group), self.bins, group).above
            known = np.empty((len(slots), 2))
            fresh_bounds(r[slots], split[0], split[1], third, self.smoothing, known)
            self.least[slots], self.most[slots], self.bend[slots] = split[0], split[0], split[1]
            alphas[slots] = known[:, 0]
            bounds[slots] = np.where(self.possible[slots], known[:, 1], -np.inf)

    def gains(self, parts: Shards[PairedPart], slots: Ints, alphas: Floats) -> Floats:
        """By how much the loss falls with each of some stumps."""
        features = self.bins.of_slots(slots)
        found: Floats = self.backend.sum(_gains, parts, features, slots - self.bins.starts[features], alphas)
        return found


class _Trial:
    """Stumps that have been tried in a round."""

    def __init__(self, search: FidelitySearch, parts: Shards[PairedPart], alphas: Floats, bounds: Floats) -> None:
        self.search, self.parts, self.alphas, self.bounds = search, parts, alphas, bounds
        self.gains: dict[int, float] = {}
        self.best = _LEAST

    def try_most_promising(self, features: Ints) -> None:
        """Try the one stump of some features that may gain most."""
        slots = self.search.bins.slots(features)
        slot = slots[int(np.argmax(self.bounds[slots]))]
        if self.bounds[slot] + SAME >= self.best:
            self._try(np.array([slot]))

    def try_rest(self, features: Ints) -> None:
        """Try all stumps of some features that may gain as much as the best so far."""
        slots = self.search.bins.slots(np.sort(features))
        slots = slots[np.argsort(-self.bounds[slots], kind="stable")]
        at, size = 0, _FIRST
        while at < len(slots) and self.bounds[slots[at]] + SAME >= self.best:
            batch = slots[at : at + size]
            wanted = [
                slot for slot in batch.tolist() if self.bounds[slot] + SAME >= self.best and slot not in self.gains
            ]
            if wanted:
                self._try(np.array(wanted))
            at, size = at + len(batch), 2 * size

    def winner(self) -> int | None:
        """The first of the best stumps."""
        best = [slot for slot, gain in self.gains.items() if gain + SAME >= self.best]
        return min(best) if best and self.best > _LEAST else None

    def _try(self, slots: Ints) -> None:
        gains = self.search.gains(self.parts, slots, self.alphas[slots])
        self.gains.update(zip(slots.tolist(), gains.tolist(), strict=True))
        self.best = max(self.best, float(gains.max()))


def _third_sums(part: PairedPart, bins: FeatureBins, features: Ints) -> Floats:
    return part.binned.sums(part.potentials[1], bins, features)


def _split_sums(part: PairedPart, bins: FeatureBins, features: Ints) -> Floats:
    out = np.zeros((2, bins.n_slots_of(features)))
    sum_splits(part.binned.graded, part.scores, part.binned.codes, bins.starts, features, out)
    return out


def _gains(part: PairedPart, features: Ints, cuts: Ints, alphas: Floats) -> Floats:
    out = np.zeros(len(features))
    sum_gains(part.binned.graded, part.scores, part.binned.codes, features, cuts, alphas, out)
    return out
