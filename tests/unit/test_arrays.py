"""Arrays and data frames in place of Queries: validation data, ranking, selection and paths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import rankwright as rw

QUERIES = rw.make_queries(40, n_docs=8, n_features=5, random_state=0)
TRAIN, VALID = QUERIES.take(range(26)), QUERIES.take(range(26, 40))
NAMES = [f"f{column}" for column in range(5)]


def as_arrays(queries: rw.Queries, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of queries in random order."""
    order = np.random.default_rng(seed).permutation(queries.n_docs)
    return queries.X[order], queries.y[order], queries.row_qid[order]


def as_frames(queries: rw.Queries) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    X, y, qid = as_arrays(queries)
    return pd.DataFrame(X, columns=NAMES), pd.Series(y), pd.Series(qid)


def make_rankers() -> list[rw.Ranker]:
    return [
        rw.AdaRank(n_estimators=5),
        rw.LambdaMART(n_estimators=5, num_leaves=4, early_stopping_rounds=2),
        rw.ListNet(scale="query"),
        rw.Blend(rankers=[rw.SingleFeature(), rw.Regression()], n_folds=2),
    ]


@pytest.mark.parametrize("ranker", make_rankers(), ids=lambda ranker: type(ranker).__name__)
@pytest.mark.parametrize("convert", [as_arrays, as_frames, lambda queries: list(as_arrays(queries))])
def test_validation_arrays_are_the_queries(ranker, convert):
    X, y, qid = convert(TRAIN)
    named = {"features": NAMES} if isinstance(X, pd.DataFrame) else {}
    train, valid = (rw.Queries.from_arrays(*as_arrays(part), **named) for part in (TRAIN, VALID))
    expected = clone(ranker)
    expected.fit(train, valid=valid)
    ranker.fit(X, y, qid=qid, valid=convert(VALID))
    assert ranker.history_ == expected.history_
    assert np.array_equal(ranker.predict(valid), expected.predict(valid))


def test_queries_and_arrays_may_be_mixed():
    arrays = rw.AdaRank().fit(TRAIN, valid=as_arrays(VALID))
    shuffled = rw.Queries.from_arrays(*as_arrays(VALID))  # the order of queries is that of sums
    assert arrays.history_ == rw.AdaRank().fit(TRAIN, valid=shuffled).history_
    again = arrays.fit(TRAIN.X[:, :3], TRAIN.y, qid=TRAIN.row_qid, valid=(VALID.X[:, :3], VALID.y, VALID.row_qid))
    assert again.n_features_in_ == 3
    again.fit(TRAIN, valid=as_arrays(VALID))  # the number of features of the last fit does not matter
    assert again.n_features_in_ == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, qid: (X, y), "valid is a tuple of 2; expected a Queries, or"),
        (lambda X, y, qid: {"X": X}, "valid is a dict; expected a Queries, or"),
        (lambda X, y, qid: (X, y, None), "valid: qid is None; expected valid="),
        (lambda X, y, qid: (X, None, qid), "valid: y is None"),
        (lambda X, y, qid: (VALID, y, qid), "valid: X is a Queries"),
        (lambda X, y, qid: (X[:, :3], y, qid), "valid: X has 3 features, but AdaRank is expecting 5"),
        (lambda X, y, qid: (X, y[:-1], qid), "y has shape"),
        (lambda X, y, qid: (X, -y, qid), "grades start at 0"),
        (lambda X, y, qid: (X, y, qid[:3]), "qid has shape"),
        (lambda X, y, qid: (np.where(X.max() == X, np.nan, X), y, qid), "validation documents contain NaN"),
        (lambda X, y, qid: (np.full_like(X, np.inf), y, qid), "valid: Input X contains infinity"),
        (lambda X, y, qid: (np.full(X.shape, "a"), y, qid), "valid: could not convert"),
    ],
)
def test_wrong_validation_arrays_are_named(change, message):
    ranker = rw.AdaRank()
    with pytest.raises(rw.InputError, match=message):
        ranker.fit(*as_arrays(TRAIN)[:2], qid=as_arrays(TRAIN)[2], valid=change(*as_arrays(VALID)))
    assert not hasattr(ranker, "n_features_in_")


def test_names_of_validation_columns_are_compared():
    X, y, qid = as_frames(VALID)
    train = as_frames(TRAIN)
    with pytest.raises(rw.InputError, match=r"training has .f0. in its place"):
        rw.AdaRank().fit(train[0], train[1], qid=train[2], valid=(X[NAMES[::-1]], y, qid))


def test_select_and_paths_take_arrays():
    grid = {"alpha": [0.1, 10.0, 1000.0]}
    expected = rw.select(rw.Regression(), grid, TRAIN, VALID)
    for convert in (as_arrays, as_frames):
        found = rw.select(rw.Regression(), grid, convert(TRAIN), convert(VALID))
        assert [row["value"] for row in found.selection_] == pytest.approx(
            [row["value"] for row in expected.selection_]
        )
        assert found.alpha == expected.alpha
    X, y, qid = as_arrays(TRAIN)
    one, two = rw.RankSVM().fit_path([0.1, 1.0], X, y, qid=qid, valid=as_arrays(VALID))
    train, valid = (rw.Queries.from_arrays(*as_arrays(part)) for part in (TRAIN, VALID))
    assert one.history_ == rw.RankSVM(C=0.1).fit(train, valid=valid).history_ != two.history_
    with pytest.raises(rw.InputError, match="train is a tuple of 2"):
        rw.select(rw.Regression(), grid, (X, y), VALID)
    with pytest.raises(rw.InputError, match="valid is None"):
        rw.select(rw.Regression(), grid, TRAIN, None)


class TestRank:
    def test_arrays_rank_as_queries_do(self):
        ranker = rw.LambdaMART(n_estimators=5).fit(TRAIN)
        X, _, qid = as_arrays(VALID, seed=1)
        for fitted in (ranker, ranker.to_model()):
            expected = fitted.rank(rw.Queries.from_arrays(X, None, qid), 3)
            for given in (X, X.tolist(), scipy.sparse.csr_matrix(X)):
                found = fitted.rank(given, qid=qid, k=3)
                assert list(found) == list(expected)
                assert all(np.array_equal(found[query], expected[query]) for query in expected)

    def test_rows_are_the_callers(self):
        X, qid = np.array([[1.0], [5.0], [3.0], [2.0]]), ["b", "a", "b", "a"]
        ranker = rw.SingleFeature(feature=0, sign=1).fit(X, [0, 1, 1, 0], qid=qid)
        assert {query: rows.tolist() for query, rows in ranker.rank(X, qid=qid).items()} == {"b": [2, 0], "a": [1, 3]}

    def test_frames(self):
        X, y, qid = as_frames(TRAIN)
        ranker = rw.AdaRank().fit(X, y, qid=qid)
        frame, _, ids = as_frames(VALID)
        expected = ranker.rank(rw.Queries.from_arrays(frame, None, ids))
        for fitted in (ranker, ranker.to_model()):
            found = fitted.rank(frame, qid=ids)
            assert all(np.array_equal(found[query], expected[query]) for query in expected)
            with pytest.raises(ValueError, match=r"feature names should match|is called 'f4'"):
                fitted.rank(frame[NAMES[::-1]], qid=ids)

    def test_wrong_calls_say_what_to_pass(self):
        ranker = rw.AdaRank().fit(TRAIN)
        for fitted in (ranker, ranker.to_model()):
            with pytest.raises(rw.InputError, match="pass qid="):
                fitted.rank(VALID.X)
            with pytest.raises(rw.InputError, match="part of the Queries"):
                fitted.rank(VALID, qid=VALID.row_qid)
            with pytest.raises(rw.InputError, match="k=0"):
                fitted.rank(VALID.X, 0, qid=VALID.row_qid)
            with pytest.raises(rw.InputError, match="qid has shape"):
                fitted.rank(VALID.X, qid=[1, 2])
