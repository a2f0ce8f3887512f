"""Categorical features: kept by value, trained on by trees, refused elsewhere."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rankwright as rw
from rankwright.basics.errors import InputError
from rankwright.data.categories import join_categories
from rankwright.data.queries import Queries
from rankwright.experiments.saved_queries import load_queries, save_queries
from rankwright.models.model import CATEGORY_RANKERS
from rankwright.models.model_json import format_model, parse_model
from rankwright.rankers import RANKERS
from rankwright.scorers.lightgbm_text import Forest

COLORS = ["red", "green", "blue", "grey", "pink", "teal", "black"]
N = 600


def make_frame(seed: int = 0) -> tuple[pd.DataFrame, Any, Any]:
    """Return documents whose grades depend on two categorical features, with some values missing."""
    rng = np.random.default_rng(seed)
    color, size, x = rng.integers(0, 7, N), rng.integers(0, 3, N), rng.normal(size=N)
    grade = np.digitize(x + 2.0 * np.isin(color, [1, 4]) + (size == 1), [0.5, 1.5, 3.0]).astype(float)
    known = np.where(rng.random(N) < 0.1, -1, color)
    frame = pd.DataFrame(
        {
            "x": x,
            "color": pd.Categorical.from_codes(known, COLORS),
            "size": pd.Categorical.from_codes(size, [10, 20, 30]),
        }
    )
    return frame, grade, np.repeat(np.arange(N // 10), 10)


TREES: list[tuple[type[Any], dict[str, Any]]] = [
    (rw.MART, {}),
    (rw.LambdaMART, {}),
    (rw.LambdaMART, {"lambdas": "lightgbm"}),
    (rw.DirectRankTrees, {}),
    (rw.BoostedTrees, {"objective": "logistic"}),
]


@pytest.mark.parametrize(("cls", "params"), TREES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_trees_split_by_category_with_the_bits_of_lightgbm(cls: type[Any], params: dict[str, Any]) -> None:
    frame, y, qid = make_frame()
    ranker = cls(n_estimators=8, num_leaves=6, min_child_samples=5, **params).fit(frame, y, qid=qid)
    model = ranker.to_model()
    assert ranker.scorer_.forest.categorical == {1, 2}
    assert model.categories == (None, tuple(COLORS), ("10", "20", "30"))
    X = model.adapt(Queries.from_arrays(frame, None, qid)).X
    scores = ranker.predict(frame)
    assert scores.tolist() == ranker.booster_.predict(X).tolist()
    assert scores.tolist() == follow_trees(ranker.scorer_.forest, X)
    loaded = parse_model(format_model(model).encode(), "m.json")
    assert loaded.categories == model.categories
    assert loaded.predict(frame).tolist() == scores.tolist()
    np.testing.assert_allclose(ranker.contributions(frame).sum(axis=1), scores)


def follow_trees(forest: Forest, X: Any) -> list[float]:
    """Return scores by following each document through each tree: the slow twin of the kernel."""
    out = []
    for row in X:
        total = 0.0
        for tree in forest.trees:
            node, columns, sets = 0 if tree.n_splits else -1, tree.columns, tree.category_sets
            while node >= 0:
                value = float(row[columns["split_feature"][node]])
                if columns["decision_type"][node] & 1:
                    words = sets[node]
                    inside = {
                        32 * i + bit for i, word in enumerate(words.tolist()) for bit in range(32) if word >> bit & 1
                    }
                    left = value in inside
                elif np.isnan(value):
                    kind = columns["decision_type"][node]
                    left = bool(kind & 2) if kind & 8 else columns["threshold"][node] >= 0.0
                else:
                    left = value <= columns["threshold"][node]
                node = int(columns["left_child" if left else "right_child"][node])
            total += float(tree.values[~node])
        out.append(total)
    return out


def test_documents_are_recoded_by_value_and_unseen_values_are_missing() -> None:
    frame, y, qid = make_frame()
    ranker = rw.MART(n_estimators=8, min_child_samples=5).fit(frame, y, qid=qid)
    other = frame.assign(color=frame["color"].cat.reorder_categories(COLORS[::-1]))
    assert ranker.predict(other).tolist() == ranker.predict(frame).tolist()
    unseen = frame.assign(color=pd.Categorical(["mauve"] * N))
    missing = frame.assign(color=pd.Categorical([None] * N, categories=["red"]))
    assert ranker.predict(unseen).tolist() == ranker.predict(missing).tolist()
    assert ranker.predict(unseen).tolist() != ranker.predict(frame).tolist()
    as_polars = pl.DataFrame(
        {
            "x": frame["x"].to_numpy(),
            "color": pl.Series(frame["color"].astype(object).where(frame["color"].notna(), None).tolist()).cast(
                pl.Categorical
            ),
            "size": pl.Series([str(v) for v in frame["size"]]).cast(pl.Enum(["10", "20", "30"])),
        }
    )
    assert ranker.predict(as_polars).tolist() == ranker.predict(frame).tolist()


def test_validation_queries_are_recoded_to_the_values_of_training() -> None:
    frame, y, qid = make_frame()
    other, y2, qid2 = make_frame(1)
    shuffled = other.assign(color=other["color"].cat.reorder_categories(COLORS[::-1]))
    histories = [
        rw.LambdaMART(n_estimators=5).fit(frame, y, qid=qid, valid=Queries.from_arrays(each, y2, qid2)).history_
        for each in (other, shuffled)
    ]
    assert histories[0] == histories[1]


def test_a_model_is_continued_with_new_values_after_its_own(tmp_path: Any) -> None:
    frame, y, qid = make_frame()
    path = tmp_path / "m.json"
    first = rw.MART(n_estimators=5, min_child_samples=5).fit(frame, y, qid=qid)
    rw.save(first, path)
    renamed = frame.assign(
        color=frame["color"].cat.rename_categories({"red": "amber"}).cat.reorder_categories(["amber", *COLORS[:0:-1]])
    )
    more = rw.MART(n_estimators=7, min_child_samples=5, init_model=path).fit(renamed, y, qid=qid)
    assert more.to_model().categories[1] == (*COLORS, "amber")
    assert more.scorer_.forest.take_first(5).text() == first.scorer_.forest.text()
    one = rw.MART(n_estimators=7, min_child_samples=5).fit(frame, y, qid=qid)
    two = rw.MART(n_estimators=7, min_child_samples=5, init_model=path).fit(
        frame.assign(color=frame["color"].cat.reorder_categories(COLORS[::-1])), y, qid=qid
    )
    np.testing.assert_allclose(two.predict(frame), one.predict(frame))


def test_columns_without_categories_are_an_error_with_the_way_out() -> None:
    frame, y, qid = make_frame()
    ranker = rw.MART(n_estimators=2).fit(frame, y, qid=qid)
    plain = frame.assign(color=frame["color"].cat.codes, size=frame["size"].cat.codes)
    with pytest.raises(InputError, match=r"feature color has numbers here.*'red'.*categorical"):
        ranker.predict(plain)
    with pytest.raises(InputError, match="feature color has categories here"):
        rw.MART(n_estimators=2).fit(plain, y, qid=qid).predict(frame)
    with pytest.raises(InputError, match=r"column 'color' has texts.*category"):
        rw.MART(n_estimators=2).fit(frame.assign(color="red"), y, qid=qid)
    with pytest.raises(InputError, match="for color, whose categories have no order"):
        rw.MART(lightgbm_params={"monotone_constraints": [0, 1, 0]}).fit(frame, y, qid=qid)


@pytest.mark.parametrize("cls", RANKERS, ids=lambda cls: cls.__name__)
def test_every_other_ranker_refuses_categories_by_name(cls: type[Any]) -> None:
    frame, y, qid = make_frame()
    if cls.takes_categories:
        assert cls.__name__ in CATEGORY_RANKERS
        return
    with pytest.raises(InputError, match=f"features color, size have categories; {cls.__name__} takes numbers only"):
        cls().fit(frame, y, qid=qid)
    with pytest.raises(InputError, match="features color, size have categories"):
        cls().fit(Queries.from_arrays(frame, y, qid))


def test_scaling_within_queries_leaves_categories_alone() -> None:
    frame, y, qid = make_frame()
    queries = Queries.from_arrays(frame, y, qid)
    ranker = rw.MART(n_estimators=3, scale="query").fit(queries)
    X = ranker.to_model().adapt(queries).X
    np.testing.assert_array_equal(X[:, 1:], queries.X[:, 1:])
    assert X[:, 0].min() == 0.0
    assert X[:, 0].max() == 1.0


def test_polishing_and_explaining_take_categories() -> None:
    frame, y, qid = make_frame()
    queries = Queries.from_arrays(frame, y, qid)
    ranker = rw.MART(n_estimators=6, num_leaves=4).fit(queries)
    shuffled = Queries.from_arrays(frame.assign(color=frame["color"].cat.reorder_categories(COLORS[::-1])), y, qid)
    polished = rw.polish_model(ranker, shuffled)
    assert polished.score(queries) == polished.score(shuffled) > ranker.score(queries)
    assert "7 categories" in str(rw.explain(ranker))
    with pytest.raises(InputError, match="number otherwise"):
        rw.polish_model(ranker.booster_, queries)


def test_categories_are_checked() -> None:
    X, y, qid = [[0.0, 1.5], [1.0, 2.0], [np.nan, 3.0]], [0, 1, 2], [1, 1, 1]
    kept = Queries.from_arrays(X, y, qid, categories=(["a", "b"], None))
    assert kept.categories == (("a", "b"), None)
    assert Queries.from_arrays(X, y, qid, categories=(None, None)).categories is None
    for categories, message in (
        ((["a", "b"],), "one entry for each of 2"),
        ((["a"], None), "row 1, feature 1: 1 in place of a category; expected whole numbers from 0 to 0"),
        ((None, ["a", "b", "c", "d"]), "row 0, feature 2: 1.5"),
        ((["a", "a"], None), "'a' twice"),
        (([1, "1"], None), "'1' twice"),
        ((range((1 << 24) + 1), None), "at most 16,777,216"),
    ):
        with pytest.raises(InputError, match=message):
            Queries.from_arrays(X, y, qid, categories=categories)  # type: ignore[arg-type]


def test_parts_and_copies_keep_categories_and_document_weights(tmp_path: Any) -> None:
    frame, y, qid = make_frame()
    rng = np.random.default_rng(0)
    rows = rng.permutation(N)
    weight = rng.random(N)
    queries = Queries.from_arrays(frame.iloc[rows], y[rows], qid[rows], doc_weight=weight)
    assert queries.doc_weight.tolist() == weight.tolist()
    grouped = queries.grouped()
    for part in (
        pickle.loads(pickle.dumps(queries)),
        load_queries(save_queries(queries, tmp_path)),
        queries.replace(y=queries.y),
        queries.with_X(queries.X),
    ):
        assert part.categories == queries.categories
        assert part.doc_weight.tolist() == weight.tolist()
    assert grouped.take([3]).doc_weight.tolist() == weight[qid[rows] == queries.qid[3]].tolist()
    assert grouped.slice(2, 5).categories == queries.categories
    with pytest.raises(InputError, match="color is categorical"):
        rw.write_letor(queries, tmp_path / "a.txt")
    with pytest.raises(InputError, match="weights"):
        rw.write_letor(rw.make_queries(2).replace(doc_weight=np.ones(rw.make_queries(2).n_docs)), tmp_path / "a.txt")


def test_damaged_trees_and_models_with_categories_are_refused() -> None:
    frame, y, qid = make_frame()
    ranker = rw.MART(n_estimators=2, num_leaves=6, min_child_samples=5).fit(frame, y, qid=qid)
    text = ranker.scorer_.forest.text()
    assert Forest.from_text(text).text() == text
    for old, new in (
        ("num_cat=", "num_cat=1"),
        ("cat_boundaries=0 ", "cat_boundaries=1 "),
        ("cat_threshold=", "cat_threshold=4294967296 "),
        ("cat_threshold=", "cat_threshold=-1 "),
        ("cat_threshold=", "cat_threshold=7 "),
        ("decision_type=", "decision_type=5 "),
    ):
        with pytest.raises(InputError):
            Forest.from_text(text.replace(old, new, 1))
    saved = format_model(ranker.to_model())
    for old, new in (('"categories": [null, [', '"categories": [null, null, ['), ('"red"', '"green"'), ('"red"', "3")):
        with pytest.raises(InputError, match="damaged"):
            parse_model(saved.replace(old, new, 1).encode(), "m.json")
    start = saved.index('"categories": ')
    without = saved[:start] + saved[saved.index('"scaling"') :]
    with pytest.raises(InputError, match="by category"):
        parse_model(without.encode(), "m.json")
    plain = format_model(rw.MART(n_estimators=2).fit(rw.make_queries(20)).to_model())
    old = plain.replace('"categories": null, ', "")
    assert old != plain
    assert parse_model(old.encode(), "m.json").categories is None


def test_values_that_are_new_come_after_those_known() -> None:
    assert join_categories((("a",), None), (("c", "a", "b"), None)) == (("a", "c", "b"), None)
    assert join_categories(None, (("c",), None)) == (("c",), None)
