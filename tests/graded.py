"""Random queries for kernels of pairs: ties, single documents, equal grades, weights of 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from rankwright.kernels.objectives.graded_pairs import GradedDocuments, find_grade_order

SCORES = {
    "zero": lambda rng, n: np.zeros(n),
    "tied": lambda rng, n: rng.integers(-2, 3, n) * 0.5,
    "random": lambda rng, n: rng.normal(size=n),
    "far": lambda rng, n: 20 * rng.normal(size=n),
    "wide": lambda rng, n: rng.choice([-400.0, -1.0, 0.0, 1.0, 400.0], n) + rng.normal(size=n),
}


class Documents(NamedTuple):
    """Documents by query and descending grade, with two sets of scores."""

    y: np.ndarray
    graded: GradedDocuments
    scores: np.ndarray
    before: np.ndarray
    rng: np.random.Generator

    @property
    def indptr(self):
        return self.graded.indptr


def documents(rng, sizes, n_grades, kinds=("random", "random"), weight=None):
    """Queries of these sizes with grades at random."""
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n = int(indptr[-1])
    y = rng.integers(0, n_grades, n) / 2.0
    rows, lower = find_grade_order(y, indptr)
    weight = rng.random(len(sizes)) if weight is None else weight
    scores, before = (SCORES[kind](rng, n) for kind in kinds)
    return Documents(y[rows], GradedDocuments(indptr, lower, weight), scores, before, rng)


@st.composite
def some_documents(draw, kinds=tuple(SCORES)):
    """A few small queries."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    weight = np.where(rng.random(len(sizes)) < 0.8, rng.random(len(sizes)), 0.0)
    chosen = [draw(st.sampled_from(kinds)) for _ in range(2)]
    return documents(rng, sizes, draw(st.sampled_from([1, 2, 3, 40])), chosen, weight)
