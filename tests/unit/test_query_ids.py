"""Query ids that are missing, and splits that cut queries apart, are noticed."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, KFold, cross_validate
from tests.warned import allow_warnings

import rankwright as rw
from rankwright.models.model import NAN_RANKERS
from rankwright.rankers import RANKERS


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(30, n_docs=12, n_features=5, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_fit_and_score_without_qid_warn_with_the_way_out(queries):
    said = r"{} was called without qid: all \d+ documents count as one query. Pass qid=.*enable_metadata_routing=True"
    with pytest.warns(rw.MissingQueryIdWarning, match=said.format("fit")):
        ranker = rw.Regression().fit(queries.X, queries.y)
    with pytest.warns(rw.MissingQueryIdWarning, match=said.format("score")):
        ranker.score(queries.X, queries.y)
    rw.Regression().fit(queries.X, queries.y, qid=queries.row_qid).score(queries.X, queries.y, qid=queries.row_qid)
    rw.Regression().fit(queries).score(queries)
    with pytest.warns(rw.MissingQueryIdWarning):
        rw.Regression().fit_path([0.1, 1.0], queries.X, queries.y)


def test_groups_of_group_k_fold_are_not_query_ids(queries):
    with allow_warnings(rw.MissingQueryIdWarning) as found:
        cross_validate(rw.Regression(), queries.X, queries.y, cv=GroupKFold(3), groups=queries.row_qid)
    assert len(found) == 6  # of fit and score, three times
    assert all("groups, as of GroupKFold, only split the rows" in str(each.message) for each in found)


@pytest.mark.usefixtures("routing")
class TestSplits:
    @pytest.mark.parametrize("name", ["numbers", "text", "far apart"])
    @pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), KFold(3), KFold(5)], ids=str)
    def test_a_split_that_cuts_queries_apart_is_noticed(self, queries, name, cv):
        ids = {
            "numbers": queries.row_qid,
            "text": np.array([f"q{query}" for query in queries.row_qid]),
            "far apart": queries.row_qid * 1000 + 7,
        }[name]
        with pytest.warns(rw.SplitQueryWarning, match=r"test queries .* split by rw\.QueryKFold") as found:
            cross_validate(rw.Regression(), queries.X, queries.y, cv=cv, params={"qid": ids}, error_score="raise")
        assert len(found) == cv.n_splits

    def test_whole_queries_are_not(self, queries):
        params = {"qid": queries.row_qid}
        cross_validate(
            rw.Regression(), queries.X, queries.y, cv=rw.QueryKFold(3), params=params, return_train_score=True
        )


class TestSeenQueries:
    def test_training_queries_may_be_scored_in_any_order_and_number(self, queries):
        ranker = rw.Regression().fit(queries)
        ranker.score(queries)
        ranker.score(queries.take([4, 2, 9]))
        rows = np.random.default_rng(0).permutation(queries.n_docs)
        ranker.score(queries.X[rows].astype(float), queries.y[rows], qid=queries.row_qid[rows])
        rw.evaluate(ranker, queries, "ndcg@10")
        scaled = rw.Regression(scale="query").fit(queries)
        scaled.score(queries)

    def test_other_data_that_is_numbered_alike_is_not_a_split(self, queries):
        ranker = rw.Regression().fit(queries)
        for n_queries in (10, 30, 50):
            other = rw.make_queries(n_queries, n_docs=12, n_features=5, random_state=1)
            ranker.score(other)
            ranker.score(other.X, other.y, qid=other.row_qid)
            rw.evaluate(ranker, other, "map")
        grouped = rw.Queries.from_arrays(other.X, other.y, group=other.sizes)
        rw.Regression().fit(grouped).score(rw.Queries.from_arrays(queries.X, queries.y, group=queries.sizes))

    def test_ids_that_are_no_numbering_count_in_score_and_evaluate(self, queries):
        ids = queries.row_qid + 1000
        half = np.arange(queries.n_docs) % 2 == 0
        ranker = rw.Regression().fit(queries.X[half], queries.y[half], qid=ids[half])
        rest = rw.Queries.from_arrays(queries.X[~half], queries.y[~half], ids[~half])
        with pytest.warns(rw.SplitQueryWarning, match=r"(29|30) of (29|30) test queries \(such as 100\d\)"):
            ranker.score(rest)
        with pytest.warns(rw.SplitQueryWarning):
            rw.evaluate(ranker, rest, "map")

    def test_a_ranker_without_query_ids_knows_no_queries(self, queries):
        with pytest.warns(rw.MissingQueryIdWarning):
            ranker = rw.Regression().fit(queries.X, queries.y)
        ranker.score(queries)

    def test_little_is_remembered_and_nothing_is_saved(self, queries, tmp_path):
        large = rw.make_queries(50, n_docs=400, n_features=20, random_state=0)
        assert len(pickle.dumps(rw.Regression().fit(large)._seen)) < 50 * 40 + 1000
        rw.save(rw.Regression().fit(queries), tmp_path / "m.json")
        assert set(json.loads((tmp_path / "m.json").read_text())) == {
            *("format", "version", "ranker", "params", "measure", "n_features", "features", "categories", "scaling"),
            *("scorer", "history"),
        }
        copy = pickle.loads(pickle.dumps(rw.Regression().fit(queries)))
        assert copy.score(queries) == rw.Regression().fit(queries).score(queries)


def test_the_rankers_that_are_named_for_missing_values_take_them():
    assert sorted(NAN_RANKERS) == sorted(ranker.__name__ for ranker in RANKERS if ranker.allow_nan)


def test_missing_values_in_a_frame_are_named_and_only_our_rankers_are_recommended(queries):
    frame = pd.DataFrame(queries.X, columns=list("abcde"))
    frame.loc[[7, 5, 9], "d"] = np.nan
    # row 9 is grouped before row 5
    qid = np.where(np.arange(len(frame)) == 9, "a", np.where(np.arange(len(frame)) < 5, "a", "b"))
    place = rf"in 3 of {len(frame)} rows, first in row 5, counted from 0, feature d"
    said = rf"the training documents contain NaN \({place}\).* ranker that takes NaN \(BoostedTrees, "
    with pytest.raises(rw.InputError, match=said):
        rw.Regression().fit(frame, queries.y, qid=qid)
    ranker = rw.Regression().fit(frame.fillna(0.0), queries.y, qid=qid)
    with pytest.raises(rw.InputError, match=rf"the documents contain NaN \({place}\)"):
        ranker.predict(frame)
    with pytest.raises(rw.InputError, match=rf"the documents contain NaN \({place}\)"):
        ranker.predict(rw.Queries.from_arrays(frame, None, qid))
