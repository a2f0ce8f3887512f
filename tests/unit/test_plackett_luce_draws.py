"""Expected measures under Plackett-Luce by draws of its own: their probabilities, no bias, less variance."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats
from tests.drawn import ALARM, BLOCKS, may_be
from tests.reference import measures, plackett_luce

import rankwright as rw
from rankwright.objectives.listwise_objectives import ExpectedMeasure, draw_gumbel_noise


def own(ranked):
    """A user's measure, which is no sum over ranks."""
    return float(ranked[0] > 0) / (1 + abs(ranked[0] - ranked[-1]))


MEASURES = {
    "ndcg@3": partial(measures.ndcg, k=3),
    "ndcg": measures.ndcg,
    "map": measures.average_precision,
    "err": measures.err,
    "mrr": measures.reciprocal_rank,
    "rbp": measures.rbp,
    "p@4": partial(measures.precision, k=4),
    "own": own,
}


def copies_of(y, many):
    return rw.Queries.from_arrays(np.zeros((len(y) * many, 1)), np.tile(y, many), group=[len(y)] * many)


class TestDraws:
    def test_rankings_have_the_probabilities_of_eq_5(self):
        """Every ranking of four documents, by chi-square."""
        s, many = np.array([0.3, -1.0, 1.2, 0.1]), 20_000
        keys = s + draw_gumbel_noise(np.random.default_rng(0), many, 4)
        drawn = (np.argsort(-keys, axis=1) @ [64, 16, 4, 1]).tolist()
        orders, chances = plackett_luce.probabilities(s)
        counts = [drawn.count(code) for code in (orders @ [64, 16, 4, 1]).tolist()]
        assert stats.chisquare(counts, many * chances).pvalue > ALARM
        assert stats.chisquare(counts, many * chances[::-1]).pvalue < 1e-100  # it can fail

    def test_without_a_generator_they_are_the_same_every_time(self):
        bound = ExpectedMeasure("map").prepare(copies_of([1, 0, 2, 0, 1], 3))
        s, rng = np.random.default_rng(1).normal(size=15), np.random.default_rng(2)
        first, again, other, third = bound(s), bound(s), bound(s, rng), bound(s, rng)
        assert (first.loss, first.gradient.tolist()) == (again.loss, again.gradient.tolist())
        assert len({first.loss, other.loss, third.loss}) == 3


class TestBias:
    @pytest.mark.parametrize("n_samples", [1, 2, 8])
    @pytest.mark.parametrize("name", MEASURES)
    def test_value_and_gradient_have_none(self, name, n_samples):
        """Many copies of one query, whose mean is compared with the sum over all its rankings."""
        y, s, rng = [0, 2, 1, 0, 1], np.array([0.5, -0.3, 1.0, 0.0, 0.2]), np.random.default_rng(n_samples)
        many = 400 if name != "own" else 40
        measure = rw.make_measure(own, name="own") if name == "own" else name
        bound = ExpectedMeasure(measure, n_samples).prepare(copies_of(y, many))
        blocks = np.empty((BLOCKS, 1 + len(y)))
        for block in blocks:
            found = bound(np.tile(s, many), rng)
            block[0], block[1:] = found.loss / many, found.gradient.reshape(many, -1).mean(axis=0)
        loss, slopes = plackett_luce.loss(MEASURES[name], copies_of(y, 1), s)
        expected = np.array([loss, *slopes])
        assert may_be(blocks, expected)
        assert not may_be(blocks, expected + 0.1 * np.array([0, 1, -1, 0, 0, 0]))  # it can fail

    @pytest.mark.parametrize("name", MEASURES)
    def test_not_where_documents_are_far_apart_either(self, name):
        y, s, rng = [0, 2, 1, 0], np.array([9.0, 0.0, 9.5, 0.0]), np.random.default_rng(3)
        many = 400 if name != "own" else 40
        measure = rw.make_measure(own, name="own") if name == "own" else name
        bound = ExpectedMeasure(measure, 2).prepare(copies_of(y, many))
        blocks = [bound(np.tile(s, many), rng).gradient.reshape(many, -1).mean(axis=0) for _ in range(BLOCKS)]
        assert may_be(np.array(blocks), plackett_luce.loss(MEASURES[name], copies_of(y, 1), s)[1])


def list_of(rng, n, ranks_well):
    """Grades of a list, few of them high, and scores that know nothing of them or much."""
    y = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    y[:2] = 1, 2
    return y, (3.0 * y if ranks_well else 0.0) + rng.normal(size=n)


def spread(gradients):
    """The variance of a gradient, summed over the documents."""
    return float(gradients.var(axis=0, ddof=1).sum())


class TestVariance:
    """Against plain REINFORCE with as many samples: the derivative of the whole ranking's log-probability times its value.

    Asserted is half of the least factor that was measured on 15 lists of 20 to 50 documents.
    """

    @pytest.mark.parametrize(
        ("name", "n_samples", "ranks_well", "factor"),
        [
            ("ndcg@10", 1, False, 3),
            ("ndcg@10", 1, True, 8),
            ("ndcg@10", 8, False, 18),
            ("ndcg@10", 8, True, 200),
            ("map", 1, False, 1.2),
            ("map", 1, True, 3),
            ("map", 8, False, 19),
            ("map", 8, True, 110),
            ("err", 1, False, 5),
            ("err", 1, True, 23),
            ("err", 8, False, 80),
            ("err", 8, True, 500),
        ],
    )
    def test_it_is_a_small_part(self, name, n_samples, ranks_well, factor):
        many, ratios = 600, []
        for seed, n in enumerate((20, 35, 50)):
            rng = np.random.default_rng(seed)
            y, s = list_of(rng, n, ranks_well)
            queries = copies_of(y, many)
            ours = ExpectedMeasure(name, n_samples).prepare(queries)(np.tile(s, many), rng).gradient.reshape(many, n)
            keys = s + draw_gumbel_noise(rng, many, n)
            values = rw.parse_measure(name).values(queries, keys.ravel())
            plain = plackett_luce.reinforce(values, s, np.argsort(-keys, axis=1))
            ratios.append(spread(plain) / n_samples / spread(ours))
        assert min(ratios) > factor
