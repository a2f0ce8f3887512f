"""The theorems of Xu et al. as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import random_queries
from tests.reference import adarank
from tests.reference import bounds as reference
from tests.reference.measures import averaged
from tests.scored import by_query, problems

import rankwright as rw
from rankwright.objectives.rankings import prepare_rankings
from rankwright.objectives.upper_bounds import SURROGATES, Basic, TypeOne, TypeTwo
from rankwright.scorers.linear import StandardScaling

PHIS = ["pairs", "ranks"]


def one_query(grades):
    return rw.Queries.from_arrays(np.zeros((len(grades), 1)), grades, qid=[1] * len(grades))


class TestTheorem1:
    """The ranking by f is the one with the highest F."""

    @pytest.mark.parametrize("phi", PHIS)
    @given(problem=problems())
    def test_no_ranking_has_a_higher_F_than_the_order_of_the_scores(self, phi, problem):
        queries, scores = problem
        found = prepare_rankings(rw.parse_measure("ndcg"), queries, phi)
        F = found.F(found.rank_by_score(scores), scores)
        for q, (_, grades, s) in enumerate(by_query(queries, scores)):
            listed = reference.listing("ndcg", grades)
            if listed.live or phi == "ranks":
                assert F[q] == pytest.approx(reference.F(listed, s, phi).max(), rel=1e-9, abs=1e-12)

    @given(seed=st.integers(0, 2**32), n=st.integers(2, 6), tied=st.booleans())
    def test_over_all_pairs_no_other_ranking_has_as_high_a_F(self, seed, n, tied):
        """Under eq. (2) the rankings with the highest F are those whose scores descend."""
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 3, n).astype(float) if tied else rng.normal(size=n)
        listed = reference.listing("ndcg", tuple(rng.integers(0, 3, n).tolist()))
        values = reference.F(listed, scores, "ranks")
        descends = (np.diff(scores[listed.orders]) <= 0).all(axis=1)
        assert ((values >= values.max() - 1e-12) == descends).all()


class TestTheorem2:
    """The basic loss is at most eq. (6), which is at most each of its relaxations, of which sums are the largest."""

    @pytest.mark.parametrize("perfect", TypeTwo.PERFECT)
    @pytest.mark.parametrize("phi", PHIS)
    @pytest.mark.parametrize("name", ["map", "ndcg@3", "err", "wta"])
    @settings(max_examples=10)
    @given(problem=problems(most=5))
    def test_a_chain_of_bounds(self, name, phi, perfect, problem):
        queries, scores = problem
        measure = rw.parse_measure(name)
        values = {
            (kind, over): TypeTwo(measure, kind, over, phi, perfect).prepare(queries).at(scores).values
            for kind in SURROGATES
            for over in TypeTwo.OVER
        }
        basic = Basic(measure).prepare(queries).at(scores).values
        assert (basic <= values["step", "max"] + 1e-9).all()
        for kind in SURROGATES:
            assert (values["step", "max"] <= values[kind, "max"] + 1e-9).all()
            assert (values[kind, "max"] <= values[kind, "sum"] * (1 + 1e-9) + 1e-9).all()

    @pytest.mark.parametrize("name", ["map", "ndcg@3", "err", "wta"])
    @given(problem=problems(most=5))
    def test_type_one_bounds(self, name, problem):
        """1 - E <= exp(-E) <= log2(1 + exp(-E)) for E from 0 to 1."""
        queries, scores = problem
        chain = [
            Basic(rw.parse_measure(name)),
            *(TypeOne(rw.parse_measure(name), kind) for kind in ("exponential", "logistic")),
        ]
        basic, exponential, logistic = (bound.prepare(queries).at(scores).values for bound in chain)
        assert (basic <= exponential + 1e-12).all()
        assert (exponential <= logistic + 1e-12).all()


def type_one(kind, name, queries, scores):
    """phi(-E); for the hinge [1 - E]_+ is the basic loss itself."""
    bound = Basic(rw.parse_measure(name)) if kind == "hinge" else TypeOne(rw.parse_measure(name), kind)
    return bound.prepare(queries).at(scores).values[0]


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("kind", ["exponential", "logistic", "hinge"])
class TestTheorem3:
    """Under condition (9) the type two bound is at most the type one bound of the same function; elsewhere it may not be."""

    @pytest.mark.parametrize("name", ["map", "ndcg", "err"])
    @settings(max_examples=15)
    @given(seed=st.integers(0, 2**32), n=st.integers(2, 6))
    def test_scores_that_separate_the_grades_widely(self, name, kind, phi, seed, n):
        rng = np.random.default_rng(seed)
        grades = rng.integers(0, 2 if name == "map" else 3, n)
        grades[:2] = 0, 1
        gap = n * (n - 1) * rng.uniform(1, 2)  # at least the norm of either F, so that each swap costs 1
        scores = gap * (grades + rng.uniform(0, 0.01, n))
        assert reference.condition_9(name, grades, scores, phi)
        queries = one_query(grades)
        found = TypeTwo(rw.parse_measure(name), kind, "max", phi).prepare(queries).at(scores)
        assert found.exact.all()
        assert found.values[0] <= type_one(kind, name, queries, scores) + 1e-12

    @pytest.mark.parametrize("name", ["ndcg@1", "wta", "p@2"])
    def test_equal_scores_where_nothing_is_right(self, name, kind, phi):
        """If E of the ranking by score is 0, equal scores satisfy the condition, and the bounds are equal."""
        grades, scores = (0, 2, 0, 0), np.full(4, 0.5)
        assert reference.condition_9(name, grades, scores, phi)
        queries = one_query(grades)
        value = TypeTwo(rw.parse_measure(name), kind, "max", phi).prepare(queries).at(scores).values[0]
        assert value == pytest.approx(type_one(kind, name, queries, scores))

    @pytest.mark.parametrize("name", ["map", "ndcg"])
    def test_outside_the_condition_either_may_be_larger(self, name, kind, phi):
        rng = np.random.default_rng(0)
        larger = {True: 0, False: 0}
        for _ in range(80):
            grades, scores = rng.integers(0, 2, 5), rng.normal(size=5) * rng.choice([0.3, 3.0, 30.0])
            grades[:2], scores = (0, 1), scores + 10 * grades * rng.integers(0, 2)
            queries = one_query(grades)
            two = TypeTwo(rw.parse_measure(name), kind, "max", phi).prepare(queries).at(scores).values[0]
            is_larger = two > type_one(kind, name, queries, scores) + 1e-9
            if reference.condition_9(name, grades, scores, phi):
                assert not is_larger
            else:
                larger[bool(is_larger)] += 1
        assert larger[True] > 0
        if kind != "hinge":  # no type two bound is below the basic loss
            assert larger[False] > 0


@pytest.mark.parametrize("name", ["map", "ndcg@3"])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_4_step_by_step(name, seed):
    """Every line of the proof, with E, P and delta from the slow twin and alpha, phi and the bound from the ranker."""
    queries, measure = random_queries(np.random.default_rng(seed), most=5), reference.MEASURES[name]
    history = rw.AdaRank(measure=name, n_estimators=12).fit(queries).history_
    twin = list(adarank.adarank(queries, measure, 12, StandardScaling.fit(queries).factor))
    assert len(history) == len(twin) > 2
    E_before, log_bound, m = np.zeros(len(queries)), 0.0, len(queries)
    for record, (feature, _, _, P, E) in zip(history, twin, strict=True):
        E_h = np.array([averaged(measure, queries.y[r].tolist(), queries.X[r, feature].tolist()) for r in queries])
        alpha, phi = record["alpha"], P @ E_h
        delta = E - E_before - alpha * E_h
        z_before, z = np.exp(-E_before).sum(), np.exp(-np.array(E)).sum()
        assert record["phi"] == pytest.approx(phi)
        assert record["delta_min"] == pytest.approx(delta.min())
        assert np.exp(-E_before) / z_before == pytest.approx(np.array(P))
        weighted = P @ np.exp(-alpha * E_h)
        chord = P @ ((1 + E_h) / 2 * np.exp(-alpha) + (1 - E_h) / 2 * np.exp(alpha))
        assert z == pytest.approx(z_before * (P @ np.exp(-alpha * E_h - delta)))
        assert z <= np.exp(-delta.min()) * z_before * weighted * (1 + 1e-12)
        assert weighted <= chord * (1 + 1e-12)
        assert chord == pytest.approx(np.sqrt(1 - phi**2))
        log_bound += np.log(np.exp(-delta.min()) * np.sqrt(1 - phi**2))
        assert record["log_bound"] == pytest.approx(log_bound)
        assert np.mean(E) >= 1 - z / m >= 1 - np.exp(log_bound) - 1e-12
        E_before = np.array(E)
