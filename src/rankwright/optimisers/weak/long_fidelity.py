"""The sums of ``kernels/optimisers/fidelity_sums.py`` for queries of thousands of documents, without their pairs.

With o = s_i - s_j, the pair weight W = exp(o / 2) / (1 + exp(o))^(3/2) falls exponentially on either side, and its
Fourier transform is a beta function, B(1/2 - i w, 1 + i w), which falls as exp(-pi |w|). So some 200 modes give W, and
by F' = -W / 2 also F and its derivatives, to the last digits. The decreases of W and F'' are needed as upper bounds
only: these come from the number of pairs by difference of scores, which is counted exactly, in cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.objectives.graded_pairs import GradedDocuments
from rankwright.kernels.optimisers.fidelity_modes import (
    add_mode_potentials,
    add_mode_splits,
    fill_modes,
    multiply_moments,
    sum_above,
    sum_after,
    sum_modes,
)
from rankwright.kernels.optimisers.fidelity_sums import (
    N_STATE,
    compute_fidelity_gains,
    compute_fidelity_state,
    sum_split_pairs,
)

Complexes = NDArray[np.complexfloating[Any, Any]]

_DECAY = 76.0  # W is below 1e-16 where o is below minus this
_FASTEST = 13.5  # frequency that counts
_WIDEST = 200.0  # span of scores
_MIN_PAIRS = 3  # for each mode and document: with fewer, going through the pairs is faster
_MAX_GRADES = 32
_MIN_DOCS = 1000  # of a long query
_MAX_STEPS = 2  # different changes of scores: a stump changes some documents, and others not
_CELLS = 2048
_STEEPEST = 1.4  # times W is above the second derivatives of W and of F''
_HIGHEST = 0.385  # value of W
_ROUNDING = 1e-12  # of a sum of products by the fast Fourier transform, relative to all products


def sum_state(graded: GradedDocuments, before: Floats, scores: Floats, potentials: Floats) -> Floats:
    """Return the sums over all pairs that ``compute_fidelity_state`` defines, and fill in the potentials."""
    change = scores - before
    long = [
        q for q in _find_long(graded, before, scores) if len(np.unique(change[_find_rows(graded, q)])) <= _MAX_STEPS
    ]
    totals = compute_fidelity_state(_ignore_queries(graded, long), before, scores, potentials)
    for q in long:
        rows = _find_rows(graded, q)
        totals += _LongQuery.of(graded, q, scores).state(before[rows], change[rows], potentials[:, rows])
    return totals


def sum_splits(graded: GradedDocuments, scores: Floats, codes: Ints, starts: Ints, features: Ints, out: Floats) -> None:
    """Add to ``out`` the sums over the pairs that each threshold splits, as ``sum_split_pairs`` does."""
    long = _find_long(graded, scores, scores)
    sum_split_pairs(_ignore_queries(graded, long), scores, codes, starts, features, out)
    for q in long:
        query, rows, to = _LongQuery.of(graded, q, scores), _find_rows(graded, q), 0
        for feature in features.tolist():
            n_slots = int(starts[feature + 1] - starts[feature])
            query.add_splits(codes[feature, rows], n_slots, out[:, to : to + n_slots])
            to += n_slots


def sum_gains(
    graded: GradedDocuments, scores: Floats, codes: Ints, features: Ints, cuts: Ints, alphas: Floats, out: Floats
) -> None:
    """Add each stump's decrease of the fidelity loss to ``out``; long queries are summed without visiting pairs."""
    long = _find_long(graded, scores, scores)
    compute_fidelity_gains(_ignore_queries(graded, long), scores, codes, features, cuts, alphas, out)
    for q in long:
        query, rows = _LongQuery.of(graded, q, scores), _find_rows(graded, q)
        for c, (feature, cut, alpha) in enumerate(zip(features, cuts, alphas, strict=True)):
            out[c] += query.gain(codes[feature, rows], int(cut), float(alpha))


@dataclass(frozen=True, slots=True, eq=False)
class _LongQuery:
    """A query of many documents, by descending grade, and the Fourier modes of their scores."""

    scores: Floats  # from the middle
    starts: Ints  # of the grades
    weight: float  # of a pair
    step: float  # between frequencies
    w: Complexes  # the coefficients of W; with those of -w counted in
    modes: Floats
    moments: Floats  # of each grade
    doc_weight: Floats | None  # of each document, if documents are weighted

    @classmethod
    def of(cls, graded: GradedDocuments, q: int, scores: Floats) -> _LongQuery:
        """Compute the modes of the scores."""
        rows = _find_rows(graded, q)
        own = scores[rows] - (scores[rows].min() + scores[rows].max()) / 2.0
        starts = np.concatenate([[0], np.unique(graded.lower[rows]) - rows.start])
        step, w = _compute_coefficients(_choose_period(float(np.ptp(own))))
        modes = np.empty((len(own), 2, len(w)))
        fill_modes(own, step, modes)
        doc_weight = None if graded.doc_weight is None else graded.doc_weight[rows]
        weighted = _weight_modes(modes, doc_weight)
        return cls(own, starts, float(graded.weight[q]), step, w, weighted, sum_modes(weighted, starts), doc_weight)

    @property
    def frequencies(self) -> Floats:
        """The frequency of each mode."""
        return self.step * np.arange(len(self.w))

    def kinds(self, *factors: Any) -> Floats:
        """Return the coefficients of W times factors, times the weight of a pair, as real and imaginary parts."""
        found = [self.weight * self.w * factor for factor in factors]
        return np.array([[kind.real, kind.imag] for kind in found])

    def state(self, before: Floats, change: Floats, potentials: Floats) -> Floats:
        """Return the sums of ``compute_fidelity_state`` for this query, and add to the potentials."""
        one = np.ones(len(self.w), dtype=complex)
        add_mode_potentials(
            self.modes, self.starts, self.moments, self.kinds(one, 0.5 * self.frequencies**2 * one), potentials
        )
        real, imaginary = multiply_moments(self.moments, sum_after(self.moments))
        weight = self.weight * float((self.w * (real + 1j * imaginary)).real.sum())
        totals = np.array([self._loss(), weight, *self._changes(before, change)])
        assert len(totals) == N_STATE
        return totals

    def add_splits(self, codes: Ints, n_slots: int, out: Floats) -> None:
        """Add the sums of W and F'' over the pairs that each threshold of a feature splits."""
        one = np.ones(len(self.w), dtype=complex)
        kinds = self.kinds(one, -0.5j * self.frequencies)  # F'' = -W' / 2
        add_mode_splits(self.modes, self.starts, self.moments, codes, n_slots, kinds / self.weight, self.weight, out)

    def gain(self, codes: Ints, cut: int, alpha: float) -> float:
        """Return by how much the loss falls when the documents above a cut are moved by ``alpha``."""
        above = sum_above(self.modes, self.starts, codes, cut)
        below = self.moments - above
        total = 0.0
        for upper, lower, shift in ((above, below, alpha), (below, above, -alpha)):
            real, imaginary = multiply_moments(upper, sum_after(lower))
            kind = self.w * _compute_integral_factors(self.frequencies, shift)
            total += float((kind * (real + 1j * imaginary)).real.sum())
        return self.weight * total

    def _loss(self) -> float:
        """Return the sum of F: half the integral of W from o to where F is 0."""
        far = float(np.ptp(self.scores)) + 40.0
        step, w = _compute_coefficients(_choose_period(float(np.ptp(self.scores))) + far)
        modes = np.empty((len(self.scores), 2, len(w)))
        fill_modes(self.scores, step, modes)
        moments = sum_modes(_weight_modes(modes, self.doc_weight), self.starts)
        real, imaginary = multiply_moments(moments, sum_after(moments))
        kind = w * _compute_integral_factors(step * np.arange(len(w)), far)
        return self.weight * float((kind * (real + 1j * imaginary)).real.sum())

    def _changes(self, before: Floats, change: Floats) -> tuple[float, float, float]:
        """Return upper bounds of the decrease and increase of W and of the decrease of F'' by a change of scores."""
        steps = np.unique(change)
        if len(steps) == 1:
            return 0.0, 0.0, 0.0
        moved, alpha, fell, rose, flatter = change == steps[1], float(steps[1] - steps[0]), 0.0, 0.0, 0.0
        low, span = float(before.min()), max(float(np.ptp(before)), 1e-9)
        cell = np.minimum((before - low) * (_CELLS / span), _CELLS - 1).astype(np.int64)
        width = span / _CELLS
        o = np.arange(-_CELLS, _CELLS) * width
        for upper, lower, shift in ((moved, ~moved, alpha), (~moved, moved, -alpha)):
            pairs = self._count(cell, upper, lower)
            (W0, curvature0), (W1, curvature1) = (
                _compute_weight_and_curvature(o),
                _compute_weight_and_curvature(o + shift),
            )
            highest = np.minimum(W0 * np.exp(abs(shift) + width), _HIGHEST)  # of W anywhere near
            slack = _STEEPEST * abs(shift) * width * highest
            fell += float((pairs * np.maximum(W0 - W1 + slack, 0.0)).sum())
            rose += float((pairs * np.maximum(W1 - W0 + slack, 0.0)).sum())
            flatter += float((pairs * np.maximum(curvature0 - curvature1 + slack, 0.0)).sum())
        return self.weight * fell, self.weight * rose, self.weight * flatter

    def _count(self, cell: Ints, upper: NDArray[np.bool_], lower: NDArray[np.bool_]) -> Floats:
        """Return the weight of the pairs by how many cells the upper document is above the lower one, from the least.

        The number of pairs is exact; a sum of weights is rounded up, since it bounds the changes from above.
        """
        total = np.zeros(2 * _CELLS)
        below = np.zeros(_CELLS)
        for g in range(len(self.starts) - 2, -1, -1):
            rows = slice(int(self.starts[g]), int(self.starts[g + 1]))
            here = self._sum_cells(cell, upper, rows)
            spectrum = np.fft.rfft(here, 2 * _CELLS) * np.conj(np.fft.rfft(below, 2 * _CELLS))
            pairs = np.fft.irfft(spectrum, 2 * _CELLS)
            slack = _ROUNDING * float(here.sum() * below.sum())
            total += np.rint(pairs) if self.doc_weight is None else np.maximum(pairs, 0.0) + slack
            below += self._sum_cells(cell, lower, rows)
        counts: Floats = np.roll(total, _CELLS)
        return counts

    def _sum_cells(self, cell: Ints, chosen: NDArray[np.bool_], rows: slice) -> Floats:
        """Return for each cell the number, or the summed weight, of the chosen documents among these rows."""
        weight = None if self.doc_weight is None else self.doc_weight[rows][chosen[rows]]
        return np.bincount(cell[rows][chosen[rows]], weight, minlength=_CELLS).astype(np.float64)


def _weight_modes(modes: Floats, doc_weight: Floats | None) -> Floats:
    """Return the modes of each document times its weight: products of two documents' modes have both weights."""
    return modes if doc_weight is None else modes * doc_weight[:, np.newaxis, np.newaxis]


def _compute_weight_and_curvature(o: Floats) -> tuple[Floats, Floats]:
    """Return the weight W and the second derivative of the loss F of pairs with score differences ``o``."""
    P = 0.5 * (1.0 + np.tanh(o / 2.0))
    W = np.sqrt(P) * (0.5 * (1.0 - np.tanh(o / 2.0)))
    return W, W * (3.0 * P - 1.0) / 4.0


def _compute_integral_factors(frequencies: Floats, shift: float) -> Complexes:
    """Return the factors that turn Fourier coefficients of W into those of F(o) - F(o + shift)."""
    out = np.full(len(frequencies), 0.5 * shift, dtype=complex)
    angle = frequencies[1:] * shift
    # (exp(i angle) - 1) / (i w), without a difference of nearly equal numbers
    out[1:] = np.exp(0.5j * angle) * np.sin(0.5 * angle) / frequencies[1:]
    return out


def _choose_period(span: float) -> float:
    """Return the period of the Fourier modes for scores of this span, rounded up so that few periods occur."""
    return float(np.ceil(span + 1.0) + _DECAY)


@lru_cache(maxsize=64)
def _compute_coefficients(period: float) -> tuple[float, Complexes]:
    """Return the step between frequencies, and the Fourier coefficients of the pair weight W."""
    from scipy.special import loggamma

    step = 2.0 * np.pi / period
    w = step * np.arange(int(np.ceil(_FASTEST / step)))
    beta: Complexes = np.exp(loggamma(0.5 - 1j * w) + loggamma(1.0 + 1j * w) - loggamma(1.5))
    beta[1:] *= 2.0  # those of the frequencies below 0 are their conjugates
    return step, beta / period


def _find_long(graded: GradedDocuments, before: Floats, scores: Floats) -> list[int]:
    """Return the numbers of the queries whose sums over pairs are faster by Fourier modes."""
    found = []
    for q in np.flatnonzero((np.diff(graded.indptr) > _MIN_DOCS) & (graded.weight > 0.0)).tolist():
        rows = _find_rows(graded, q)
        span = max(float(np.ptp(scores[rows])), float(np.ptp(before[rows])))
        pairs, n = float((rows.stop - graded.lower[rows]).sum()), rows.stop - rows.start
        n_modes = _FASTEST * _choose_period(span) / (2.0 * np.pi)
        few = len(np.unique(graded.lower[rows])) <= _MAX_GRADES
        if few and span < _WIDEST and pairs > _MIN_PAIRS * n_modes * n:
            found.append(q)
    return found


def _find_rows(graded: GradedDocuments, q: int) -> slice:
    """Return the slice of the rows of query ``q``."""
    return slice(int(graded.indptr[q]), int(graded.indptr[q + 1]))


def _ignore_queries(graded: GradedDocuments, queries: list[int]) -> GradedDocuments:
    """Return the same documents, with the weight of the pairs of some queries set to 0."""
    if not queries:
        return graded
    weight = graded.weight.copy()
    weight[queries] = 0.0
    return graded._replace(weight=weight)
