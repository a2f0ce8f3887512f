"""Sums over the pairs of long lists by Fourier modes of the scores: O(n) for each mode instead of O(n^2) pairs.

A function of s_i - s_j that is a sum of c_k exp(i w_k (s_i - s_j)) is a sum of products, one for each mode. So its sum
over the pairs of two sets of documents is made of the sums of exp(i w_k s) over either set: their moments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel, loose_kernel

_STRIDE = 16  # powers that are computed anew; those between are products


class ModeCoefficients(NamedTuple):
    """The Fourier coefficients of a function of score differences: real and imaginary parts, by mode."""

    real: Floats
    imaginary: Floats


@kernel
def fill_modes(scores: Floats, step: float, out: Floats) -> None:
    """Write the Fourier modes of every score: cosines and sines of 0, 1, 2, ... times ``step`` times the score.

    Powers of exp(i step s): their errors grow with the power, but coefficients fall so quickly that none matters.
    """
    n_modes = out.shape[2]
    cosine, sine = np.empty(_STRIDE), np.empty(_STRIDE)
    for i in range(len(scores)):
        c, s = np.cos(step * scores[i]), np.sin(step * scores[i])
        cosine[0], sine[0] = 1.0, 0.0
        for r in range(1, _STRIDE):
            cosine[r], sine[r] = c * cosine[r - 1] - s * sine[r - 1], c * sine[r - 1] + s * cosine[r - 1]
        last_c, last_s = cosine[_STRIDE - 1], sine[_STRIDE - 1]
        far_c, far_s = c * last_c - s * last_s, c * last_s + s * last_c
        x, y = 1.0, 0.0
        for first in range(0, n_modes, _STRIDE):
            real, imaginary = out[i, 0, first : first + _STRIDE], out[i, 1, first : first + _STRIDE]
            for r in range(len(real)):
                real[r] = x * cosine[r] - y * sine[r]
                imaginary[r] = x * sine[r] + y * cosine[r]
            x, y = x * far_c - y * far_s, x * far_s + y * far_c


@inlined
def _add_modes(row: Floats, out: Floats) -> None:
    """Add the Fourier modes of one document to the moments ``out`` of a set of documents."""
    real, imaginary, own_real, own_imaginary = out[0], out[1], row[0], row[1]
    for k in range(len(real)):
        real[k] += own_real[k]
    for k in range(len(real)):
        imaginary[k] += own_imaginary[k]


@kernel
def sum_modes(modes: Floats, starts: Ints) -> Floats:
    """Return the moments of each class of documents: the sums of their Fourier modes.

    Class g has the rows ``starts[g]`` to ``starts[g + 1]``.
    """
    out = np.zeros((len(starts) - 1, 2, modes.shape[2]))
    for g in range(len(out)):
        for i in range(starts[g], starts[g + 1]):
            _add_modes(modes[i], out[g])
    return out


@kernel
def sum_after(moments: Floats) -> Floats:
    """Return for each class the summed moments of all classes after it, which have lower grades."""
    out = np.zeros(moments.shape)
    for g in range(len(out) - 2, -1, -1):
        for part in range(moments.shape[1]):
            for k in range(moments.shape[2]):
                out[g, part, k] = out[g + 1, part, k] + moments[g + 1, part, k]
    return out


@kernel
def multiply_moments(upper: Floats, lower: Floats) -> ModeCoefficients:
    """Return for each Fourier mode the sum over classes of ``upper[g]`` times the conjugate of ``lower[g]``."""
    n = upper.shape[2]
    real, imaginary = np.zeros(n), np.zeros(n)
    for g in range(len(upper)):
        for k in range(n):
            a, b, c, d = upper[g, 0, k], upper[g, 1, k], lower[g, 0, k], lower[g, 1, k]
            real[k] += a * c + b * d
            imaginary[k] += b * c - a * d
    return ModeCoefficients(real, imaginary)


@loose_kernel
def add_mode_potentials(modes: Floats, starts: Ints, moments: Floats, kinds: Floats, out: Floats) -> None:
    """Add each document's sum of a function over pairs that it should win, minus those it should lose, to ``out``.

    ``kinds[kind]`` has the real and the imaginary parts of the coefficients of the function.
    """
    after, n = sum_after(moments), moments.shape[2]
    total = moments.sum(axis=0)
    x, y = np.empty(n), np.empty(n)
    for g in range(len(moments)):
        for kind in range(len(kinds)):
            re, im = kinds[kind, 0], kinds[kind, 1]
            for k in range(n):
                low_x, low_y = after[g, 0, k], after[g, 1, k]
                high_x = total[0, k] - low_x - moments[g, 0, k]
                high_y = total[1, k] - low_y - moments[g, 1, k]
                # c conj(low) - conj(c high), so that the sum is Re of exp(i w s) times this
                x[k] = re[k] * low_x + im[k] * low_y - (re[k] * high_x - im[k] * high_y)
                y[k] = im[k] * low_x - re[k] * low_y + (re[k] * high_y + im[k] * high_x)
            for i in range(starts[g], starts[g + 1]):
                cosine, sine, s = modes[i, 0], modes[i, 1], 0.0
                for k in range(n):
                    s += cosine[k] * x[k] - sine[k] * y[k]
                out[kind, i] += s


@loose_kernel
def _sum_split_functions(low: Floats, total: Floats, after: Floats, c: Floats, d: Floats, out: Floats) -> None:
    """Write the sums of two functions over the pairs that a threshold splits, from the moments below it."""
    n = total.shape[2]
    low_x, low_y, first, second = np.zeros(n), np.zeros(n), 0.0, 0.0
    c0, c1, d0, d1 = c[0], c[1], d[0], d[1]
    for g in range(len(total) - 1, -1, -1):
        a, b, t, u = low[g, 0], low[g, 1], total[g, 0], total[g, 1]
        p, q = after[g, 0], after[g, 1]
        for k in range(n):
            x, y = p[k] - 2.0 * low_x[k], q[k] - 2.0 * low_y[k]
            re = a[k] * x + b[k] * y + t[k] * low_x[k] + u[k] * low_y[k]
            im = b[k] * x - a[k] * y + u[k] * low_x[k] - t[k] * low_y[k]
            first += c0[k] * re - c1[k] * im
            second += d0[k] * re - d1[k] * im
        for k in range(n):
            low_x[k] += a[k]
            low_y[k] += b[k]
    out[0], out[1] = first, second


@kernel
def add_mode_splits(
    modes: Floats, starts: Ints, total: Floats, codes: Ints, n_slots: int, kinds: Floats, weight: float, out: Floats
) -> None:
    """Add the sums over the pairs that each threshold of a feature splits to ``out``, by Fourier modes.

    The sums are of W and F''; see ``sum_split_pairs``.
    """
    shape = (n_slots, *total.shape)
    by_bin, found, after = np.zeros(shape), np.zeros(n_slots, np.int64), sum_after(total)
    for g in range(len(total)):
        for i in range(starts[g], starts[g + 1]):
            found[codes[i]] = 1
            _add_modes(modes[i], by_bin[codes[i], g])
    low, sums, last = np.zeros(total.shape), np.zeros(2), np.zeros(2)
    for slot in range(n_slots):
        if found[slot]:
            for g in range(len(total)):
                _add_modes(by_bin[slot, g], low[g])
            _sum_split_functions(low, total, after, kinds[0], kinds[1], sums)
            out[0, slot] += weight * (sums[0] - last[0])
            out[1, slot] += weight * (sums[1] - last[1])
            last[0], last[1] = sums[0], sums[1]


@kernel
def sum_above(modes: Floats, starts: Ints, codes: Ints, cut: int) -> Floats:
    """Return for each class the moments of its documents whose bin is above ``cut``."""
    out = np.zeros((len(starts) - 1, 2, modes.shape[2]))
    for g in range(len(out)):
        for i in range(starts[g], starts[g + 1]):
            if codes[i] > cut:
                _add_modes(modes[i], out[g])
    return out
