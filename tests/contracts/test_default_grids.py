"""The default grids of all rankers: what they try, that rankers alike have equal effort, and that they help."""

from __future__ import annotations

import re
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

import rankwright as rw
from rankwright.experiments.methods import Method
from rankwright.rankers import RANKERS

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"
TREES = (rw.LambdaMART, rw.MART, rw.BoostedTrees, rw.DirectRankTrees)
PENALISED = (rw.Regression, rw.LinearRanker, rw.ListNet, rw.ListMLE, rw.RankNet, rw.RankCosine, rw.LambdaRank)


def n_combinations(ranker):
    return prod(map(len, ranker.default_grid.values()))


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
def test_a_grid_is_small_and_has_the_defaults(ranker):
    grid = ranker.default_grid
    assert n_combinations(ranker) <= 12
    for name, values in grid.items():
        assert len(values) > 1
        assert len(set(values)) == len(values)
        assert getattr(ranker(), name) in values
    assert len(Method.with_default_grid(ranker.__name__).list_candidates()) == n_combinations(ranker)
    for values in product(*grid.values()):
        ranker(**dict(zip(grid, values, strict=True))).check_parameters()


@pytest.mark.parametrize("alike", [TREES, PENALISED], ids=["trees", "penalised"])
def test_rankers_alike_have_as_many_combinations(alike):
    assert len({n_combinations(ranker) for ranker in alike}) == 1


def test_the_steps_of_trees_are_of_like_size():
    rates, ranges = rw.MART.default_grid["learning_rate"], rw.DirectRankTrees.default_grid["weight_range"]
    assert rw.MART.default_grid["num_leaves"] == rw.DirectRankTrees.default_grid["num_leaves"]
    assert all(low <= rate <= high for rate, (low, high) in zip(rates, ranges, strict=True))


def test_the_documented_table_is_that_of_the_code():
    rows = re.findall(r"(?m)^\| ((?:`\w+`(?:, )?)+) \| (.*?) \| (\d+) \|$", PAGE.read_text())
    found = {}
    for names, grid, count in rows:
        values = dict(re.findall(r"`(\w+)`: ([^;]+)", grid))
        for name in re.findall(r"\w+", names):
            assert name not in found
            found[name] = (values, int(count))
    expected = {}
    for ranker in RANKERS:
        grid = {name: ", ".join(map(spell, values)) for name, values in ranker.default_grid.items()}
        expected[ranker.__name__] = (grid, n_combinations(ranker))
    assert found == expected


def spell(value):
    """Return a value of a grid as the table has it."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(spell, value)) + ("," if len(value) == 1 else "") + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def split(queries, n_train, n_valid):
    return (
        queries.take(range(n_train)),
        queries.take(range(n_train, n_train + n_valid)),
        queries.take(range(n_train + n_valid, len(queries))),
    )


@pytest.mark.parametrize("num_leaves", [10, 31])
def test_small_steps_of_exact_weights_overfit_less(num_leaves):
    """As the default has them; the paper's range is for far more queries."""
    train, valid, other = split(rw.make_queries(120, random_state=1), 60, 30)
    given = {"num_leaves": num_leaves, "n_estimators": 60}
    ours = rw.DirectRankTrees(**given).fit(train, valid=valid)
    papers = rw.DirectRankTrees(**given, weight_range=(0.1, 0.5)).fit(train, valid=valid)
    assert max(row["weight"] for row in ours.history_) <= 0.15
    assert ours.score(other) > papers.score(other) + 0.01


def test_the_grid_of_adarank_finds_features_that_count_against_a_document():
    queries = rw.make_queries(120, random_state=0)
    queries = queries.with_X(queries.X * np.where(np.arange(queries.n_features) % 2, 1, -1).astype(np.float32))
    train, valid, other = split(queries, 60, 30)
    best = rw.select(rw.AdaRank(), rw.AdaRank.default_grid, train, valid)
    assert not best.nonnegative
    assert (best.coef_ < 0.0).any()
    assert best.score(other) > rw.AdaRank().fit(train, valid=valid).score(other)
