"""Lists with padding of every kind, and the same documents as queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import rankwright as rw

KINDS = ("full", "prefix", "scattered", "tied", "wide", "equal", "sparse")


class Padded(NamedTuple):
    """Lists of one length; the documents of those that have any are also queries, in the same order."""

    y: np.ndarray  # labels, -1 for padding
    mask: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    queries: rw.Queries

    def spread(self, by_document: np.ndarray) -> np.ndarray:
        """Numbers of the documents of the queries, where they are in the lists; 0 elsewhere."""
        found = np.zeros(self.mask.shape)
        found[self.mask] = by_document
        return found


def padded(kind: str, seed: int = 0, top: int = 2, n_lists: int = 8, longest: int = 12) -> Padded:
    """Random lists: one with a single document, one with nothing relevant, one of one grade, one that weighs nothing."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    sizes = rng.integers(2, longest, n_lists)
    sizes[0], sizes[1] = longest - 1 if kind == "sparse" else longest, 1
    if kind == "full":
        sizes[:] = longest
    mask = np.arange(longest) < sizes[:, None]
    if kind in ("scattered", "sparse"):
        mask = rng.permuted(mask, axis=1)
    if kind == "sparse":  # lists without documents
        mask[[2, -1]] = False
    y = np.where(mask, rng.integers(0, top + 1, mask.shape), -1)
    y[3][mask[3]], y[4][mask[4]] = 0, 2
    y[5][mask[5]] = rng.integers(0, top + 1) / 2
    scores = rng.normal(size=mask.shape)
    scores = {"tied": np.round(scores), "wide": 30 * scores, "equal": 0 * scores + 0.1}.get(kind, scores)
    weight = rng.uniform(0.5, 2.0, n_lists)
    weight[6] = 0.0
    there = mask.any(axis=1)
    queries = rw.Queries.from_arrays(
        np.zeros((mask.sum(), 1)), y[mask], group=mask.sum(axis=1)[there], weight=weight[there]
    )
    return Padded(y, mask, scores, weight, queries)
