"""What line searches leave for the report: profiles along their weights, and the histories of their restarts."""

from __future__ import annotations

import numpy as np
import pytest

import rankwright as rw
from rankwright.analysis.results import add_key_columns
from rankwright.data.folds import Fold
from rankwright.experiments.tables import trial_tables
from rankwright.experiments.tables.model_tables import make_profiles_table
from rankwright.report.chosen_runs import select_kept_climbs
from rankwright.report.sections.restarts_section import list_starts
from rankwright.scorers import Linear


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(60, n_docs=12, n_features=8, noise=1.5, random_state=5)


@pytest.mark.parametrize("scale", ["standard", "query"])
def test_profiles_are_exact(queries, scale):
    fold = rw.split_folds(queries, 3)[0]
    ranker = rw.DirectRank(measure="map", n_restarts=2, scale=scale).fit(fold.train, valid=fold.valid)
    table = trial_tables.tabulate_profiles(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}))
    scaled = fold if scale == "standard" else [rw.scale_features(part, "query") for part in fold]
    deviation = scaled[0].X.astype(float).std(axis=0)
    measure = ranker.measure_.for_training()
    names = [str(j + 1) for j in range(queries.n_features)]
    assert set(table["feature"]) == {name for name, weight in zip(names, ranker.coef_, strict=True) if weight}
    for i in range(0, len(table["at"]), 13):
        coef, j = ranker.coef_.copy(), names.index(table["feature"][i])
        coef[j] = table["at"][i] / deviation[j]
        for name, part in zip(("train", "valid", "test"), scaled, strict=True):
            assert table[name][i] == pytest.approx(measure.mean(part, Linear(coef)(part.X)), abs=1e-9)


def test_profiles_hold_zero_and_the_weight(queries):
    fold = rw.split_folds(queries, 3)[0]
    ranker = rw.CoordinateAscent(measure="ndcg@5", n_restarts=2).fit(fold.train, valid=fold.valid)
    table = trial_tables.tabulate_profiles(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}))
    weights = trial_tables.tabulate_weights(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}))
    effects = dict(zip(weights["feature"], weights["effect"], strict=True))
    for feature in np.unique(table["feature"]):
        own = {name: column[table["feature"] == feature] for name, column in table.items()}
        assert 50 < len(own["at"]) <= 200
        assert (np.diff(own["at"]) > 0).all()
        chosen = own["at"] == own["effect"]
        assert own["at"][chosen].tolist() == [effects[feature]]
        assert (own["at"] == 0).sum() == 1
        assert own["at"][0] < min(0, effects[feature])
        assert own["at"][-1] > max(0, effects[feature])
        for name, part in zip(("train", "valid", "test"), fold, strict=True):
            assert own[name][chosen].tolist() == [pytest.approx(ranker.score(part), abs=1e-12)]
    assert set(table["measure"]) == {"ndcg@5"}


def test_profiles_are_for_line_searches_on_data_of_some_size(queries, monkeypatch):
    fold = rw.split_folds(queries, 3)[0]
    assert (
        trial_tables.tabulate_profiles(
            trial_tables.TrainedRanker(rw.Regression().fit(fold.train), fold, np.zeros(1), {})
        )
        is None
    )
    trained = trial_tables.TrainedRanker(rw.DirectRank(n_restarts=1).fit(fold.train), fold, np.zeros(1), {})
    assert trial_tables.tabulate_profiles(trained) is not None
    monkeypatch.setattr(trial_tables, "MOST_PROFILED", queries.n_docs - 1)
    assert trial_tables.tabulate_profiles(trained) is None


def test_profiles_without_any_weight_or_any_test_query_that_counts(queries):
    fold = rw.split_folds(queries, 3)[0]
    names = np.arange(queries.n_features).astype(str)
    zero = np.zeros(queries.n_features)
    assert make_profiles_table(fold, zero, zero + 1, rw.AP(), names) is None
    for test, measure in (
        (fold.test.replace(y=np.zeros(fold.test.n_docs)), rw.parse_measure("map(empty=skip)")),
        (fold.test.replace(y=np.full(fold.test.n_docs, 9.0)), rw.parse_measure("err@5(max=2)")),
    ):
        table = make_profiles_table(fold._replace(test=test), zero + 1, zero + 1, measure, names)
        assert np.isnan(table["test"]).all()
        assert np.isfinite(table["valid"]).all()


def test_the_most_profiles():
    queries = rw.make_queries(12, n_docs=8, n_features=15, random_state=0)
    coef = np.arange(1.0, 16.0)
    fold = Fold(queries, queries, queries)
    table = make_profiles_table(fold, coef, np.ones(15), rw.AP(), np.arange(15).astype(str))
    assert list(dict.fromkeys(table["feature"])) == [str(j) for j in range(14, 2, -1)]


def test_histories_of_restarts_tell_which_was_kept(queries):
    fold = rw.split_folds(queries, 3)[0]
    ranker = rw.DirectRank(measure="map", n_restarts=4).fit(fold.train, valid=fold.valid)
    table = add_key_columns(
        trial_tables.tabulate_history(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {})), 0, 1, 0
    )
    [run] = list_starts(table)
    assert run.number.tolist() == [1, 2, 3, 4]
    assert run.valid[run.kept] == pytest.approx(ranker.score(fold.valid), abs=1e-12)
    assert run.train[run.kept] == pytest.approx(ranker.score(fold.train), abs=1e-12)
    kept = select_kept_climbs(table)
    assert kept["round"].tolist() == list(range(len(kept["round"])))
    assert len(kept["round"]) > 2
    assert (np.diff(kept["train"]) > 0).all()  # a climb, without the points of other restarts
    assert run.valid[run.kept] in kept["valid"]
