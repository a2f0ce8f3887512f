"""Synthetic queries whose relevance is in parts linear, saturating, joint, best in the middle, or up to the query."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats, Ints

# How a feature shows an aspect of a document, in the order the kinds take turns. Seven of eleven show one of eight
# aspects: as seven and eight have no common divisor, every kind meets every aspect.
_KINDS = (
    *("plain", "count", "heavy", "query", "bounded", "plain", "copy", "binary"),
    *("useless", "heavy", "constant"),
)
_SHOW_NO_ASPECT = ("query", "copy", "useless", "constant")
# The order in which features show aspects, so that few features show some of each kind.
_SHOWN = (0, 4, 2, 6, 5, 1, 7, 3)
_N_ASPECTS = len(_SHOWN)
# The standard deviations of the linear, saturating, joint, middle and query-dependent parts, and of what no feature
# shows. These three lines were chosen so that trees are better than linear models, and a blend better than both.
_WEIGHTS = (0.70, 0.35, 0.45, 0.30, 0.30, 0.30)
_NOISE = 0.5, 1.2  # the range of the noise of a feature, where an aspect has a standard deviation of 1
_LEVEL = 1.0  # the standard deviation of the levels of queries in a feature
_MAX_LOG = 12.0  # of heavy-tailed values, before their scale


def make_relevance(sizes: Ints, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return the relevance of documents, the eight aspects that decide it, and the kind of each query, -1 to 1.

    Aspects 0 and 1 count linearly; 2 saturates and 3 is a threshold; 4 and 5 count together; 6 is best in the middle;
    7 counts for or against a document, as the kind of its query has it.
    """
    n = int(sizes.sum())
    aspects = rng.standard_normal((_N_ASPECTS, n), dtype=np.float32)
    query = rng.uniform(-1.0, 1.0, len(sizes)).astype(np.float32)
    both = (aspects[4] > 0.0) & (aspects[5] > 0.0)
    parts = (
        aspects[0] + np.float32(0.7) * aspects[1],
        np.tanh(np.float32(1.5) * aspects[2] + np.float32(0.8)) + (aspects[3] > 0.7),
        both + np.float32(0.4) * aspects[4] * aspects[5],
        np.exp(-2.0 * aspects[6] ** 2),
        aspects[7] * np.repeat(query, sizes),
        rng.standard_normal(n, dtype=np.float32),
    )
    relevance = np.zeros(n, dtype=np.float32)
    for weight, part in zip(_WEIGHTS, parts, strict=True):
        relevance += np.float32(weight / max(float(part.std()), 1e-6)) * (part - part.mean())
    return relevance, aspects, query


def make_mixed_features(
    aspects: Floats, query: Floats, sizes: Ints, n_features: int, noise: float, rng: np.random.Generator
) -> Floats:
    """Return the features of documents, float32, a column at a time: views of their aspects through noise."""
    X = np.empty((aspects.shape[1], n_features), dtype=np.float32)
    shown = 0
    for j in range(n_features):
        kind = _KINDS[j % len(_KINDS)]
        if kind in _SHOW_NO_ASPECT:
            X[:, j] = _make_other(kind, X[:, :j], query, sizes, rng)
            continue
        X[:, j] = _show_aspect(kind, aspects[_SHOWN[shown % _N_ASPECTS]], sizes, noise, rng)
        shown += 1
    return X


def _show_aspect(kind: str, aspect: Floats, sizes: Ints, noise: float, rng: np.random.Generator) -> Floats:
    """Return a noisy view of an aspect on the level of each query: plain, a count, heavy-tailed, bounded or binary."""
    scale = _draw_scale(rng)
    level = np.repeat((_LEVEL * rng.standard_normal(len(sizes))).astype(np.float32), sizes)
    view: Floats = rng.standard_normal(len(aspect), dtype=np.float32)
    view *= np.float32(noise * rng.uniform(*_NOISE))
    view += aspect + level
    values: Floats = scale * view
    if kind == "count":
        values = rng.poisson(np.exp(np.minimum(np.float32(0.7) * view, _MAX_LOG)))
    elif kind == "heavy":
        values = scale * np.exp(np.minimum(np.float32(0.8) * view, _MAX_LOG))
    elif kind == "bounded":
        values = 0.5 + 0.5 * np.tanh(0.5 * view)
    elif kind == "binary":
        values = (view > rng.uniform(0.0, 1.0)).astype(np.float32)
    return values


def _make_other(kind: str, earlier: Floats, query: Floats, sizes: Ints, rng: np.random.Generator) -> Floats:
    """Return a feature that shows no aspect: of the query alone, a noisy copy of an earlier one, useless, constant."""
    scale, n = _draw_scale(rng), len(earlier)
    values: Floats = np.full(n, np.round(scale, 2))
    if kind == "query":
        shown = query + np.float32(0.2) * rng.standard_normal(len(query), dtype=np.float32)
        values = np.repeat(np.round(np.float32(10.0) * (shown + np.float32(2.0))), sizes)
    elif kind == "copy":
        original = earlier[:, int(rng.integers(earlier.shape[1]))]
        values = original + np.float32(0.1 * float(original.std())) * rng.standard_normal(n, dtype=np.float32)
    elif kind == "useless":
        values = scale * np.exp(rng.standard_normal(n, dtype=np.float32))
    return values


def _draw_scale(rng: np.random.Generator) -> np.float32:
    """Return a random scale from 0.01 to 1,000."""
    return np.float32(10.0 ** rng.uniform(-2, 3))
