"""Squares of single documents, and the share of pairs that scores put in the wrong order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from tests.conftest import random_queries
from tests.reference import plackett_luce

import rankwright as rw
from rankwright.kernels.objectives.graded_pairs import compute_misordered_shares
from rankwright.kernels.objectives.hinge_pairs import find_grade_places
from rankwright.objectives.pointwise_objectives import Squares


class TestSquares:
    @pytest.mark.parametrize("factor", [1.0, 0.1])
    def test_the_formula_and_finite_differences(self, factor):
        rng = np.random.default_rng(6)
        queries = rw.Queries.from_arrays(np.zeros((6, 1)), [1, 0, 2, 2, 0, 1.5], group=[3, 1, 2], weight=[1, 0.5, 2])
        s, bound = rng.normal(size=6), Squares(factor).prepare(queries)
        by_query = [np.mean((s[rows] - factor * queries.y[rows]) ** 2) for rows in queries]
        found = bound(s)
        assert found.loss == pytest.approx(queries.query_weight @ by_query, rel=1e-14)
        assert found.gradient == pytest.approx(approx_fprime(s, lambda x: bound(x).loss, 1e-7), abs=1e-6)
        bends = [(bound(s + 1e-4 * e).gradient - bound(s).gradient) @ e / 1e-4 for e in np.eye(6)]
        assert found.curvature == pytest.approx(bends, rel=1e-8)
        best = bound(factor * queries.y)
        assert (best.loss, best.gradient.tolist()) == (0.0, [0.0] * 6)
        for far in (1e200, np.inf, np.nan):
            found = bound(np.array([far, 0, 0, 0, 0, 0]))
            assert (found.loss, found.gradient.tolist()) == (np.inf, [0.0] * 6)


class TestMisordered:
    @given(st.integers(0, 2**32))
    def test_the_share_of_pairs(self, seed):
        rng = np.random.default_rng(seed)
        queries = random_queries(rng, m=6, most=8)
        scores = rng.choice([rng.normal(size=queries.n_docs), rng.integers(0, 3, queries.n_docs)]).astype(float)
        scores[rng.random(queries.n_docs) < 0.1] = rng.choice([np.inf, -np.inf, 0.0])
        found = compute_misordered_shares(scores, find_grade_places(queries.y, queries.indptr), queries.indptr)
        expected = [plackett_luce.misordered(scores[rows], queries.y[rows]) for rows in queries]
        assert found == pytest.approx([np.nan if share is None else share for share in expected], nan_ok=True)

    def test_a_score_that_is_not_a_number(self):
        found = compute_misordered_shares(np.array([1.0, np.nan, 2.0]), np.array([0, 1, 1]), np.array([0, 3]))
        assert 0.0 <= found[0] <= 1.0
