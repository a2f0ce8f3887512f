"""Label-first text with the sizes of queries in a file beside it, as LightGBM and XGBoost read it."""

from __future__ import annotations

import gzip
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import rankwright as rw
from rankwright import cli
from rankwright.data import group_lines

SPARSE = "2 0:1.5 2:3\n0 1:2.25\n1 0:7 2:-1\n0 3:1e-3\n"
DENSE = "2,1.5,,3\n0,NA,2,nan\n1,0,1,-1\n0,5,6,7.5\n"


def write(folder, text=SPARSE, name="train.txt", suffix=".query", sizes="1\n3\n", **beside):
    (folder / name).write_text(text)
    (folder / (name + suffix)).write_text(sizes)
    for ending, content in beside.items():
        (folder / f"{name}.{ending}").write_text(content)
    return folder / name


@pytest.mark.parametrize("suffix", [".query", ".group"])
def test_indices_are_those_of_lightgbm_and_xgboost(tmp_path, suffix):
    path = write(tmp_path, suffix=suffix)
    queries = rw.read(path)
    assert queries.features == ("0", "1", "2", "3")
    assert queries.qid.tolist() == [1, 2]
    assert queries.sizes.tolist() == [1, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the format is deprecated
        matrix = xgb.DMatrix(f"{path}?format=libsvm")
    assert matrix.get_label().tolist() == queries.y.tolist()
    assert matrix.get_data().toarray().tolist() == queries.X.tolist()  # what is absent is missing there, 0 here
    data = lgb.Dataset(str(path), params={"verbosity": -1}).construct()
    assert data.num_feature() == queries.n_features
    assert data.get_label().tolist() == queries.y.tolist()
    if suffix == ".query":
        assert data.get_group().tolist() == queries.sizes.tolist()


def test_text_that_counts_from_1_is_not_shifted(tmp_path):
    path = write(tmp_path, "1 1:5 2:6\n0 1:7\n", sizes="2\n")
    queries = rw.read(path)
    assert queries.features == ("0", "1", "2")
    assert queries.X.tolist() == [[0, 5, 6], [0, 7, 0]]
    data = lgb.Dataset(str(path), params={"verbosity": -1}).construct()
    assert data.num_feature() == 3


def test_lightgbm_predicts_alike_from_the_file_and_from_what_was_read(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)).astype(np.float32), rng.integers(0, 3, 300)
    for name, text in (
        (
            "a.txt",
            "".join(f"{g} " + " ".join(f"{i}:{v}" for i, v in enumerate(x)) + "\n" for g, x in zip(y, X, strict=True)),
        ),
        ("a.csv", "".join(f"{g}," + ",".join(map(str, x)) + "\n" for g, x in zip(y, X, strict=True))),
        ("a.tsv", "".join(f"{g}\t" + "\t".join(map(str, x)) + "\n" for g, x in zip(y, X, strict=True))),
    ):
        path = write(tmp_path, text, name, sizes="30\n" * 10)
        queries = rw.read(path)
        assert queries.X.tolist() == X.tolist()
        params = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 5}
        trained = lgb.train(params, lgb.Dataset(str(path)), 5)
        assert trained.predict(str(path)).tolist() == pytest.approx(trained.predict(queries.X).tolist(), abs=1e-12)


@pytest.mark.parametrize("separator", [",", "\t"])
def test_columns_without_a_header(tmp_path, separator):
    path = write(tmp_path, DENSE.replace(",", separator), "a.txt")
    queries = rw.read(path)
    assert queries.features is None
    assert queries.y.tolist() == [2, 0, 1, 0]
    assert np.isnan(queries.X).tolist() == [[False, True, False], [True, False, True], [False] * 3, [False] * 3]
    data = lgb.Dataset(str(path), params={"verbosity": -1}).construct()
    assert (data.num_feature(), data.get_label().tolist()) == (3, [2, 0, 1, 0])


def test_weights_are_of_queries_or_of_documents(tmp_path):
    queries = rw.read(write(tmp_path, weight="1\n0.5\n"))
    assert (queries.weight.tolist(), queries.doc_weight) == ([1, 0.5], None)
    path = write(tmp_path, weight="1\n2\n3\n4\n")
    queries = rw.read(path)
    assert (queries.weight, queries.doc_weight.tolist()) == (None, [1, 2, 3, 4])
    data = lgb.Dataset(str(path), params={"verbosity": -1}).construct()
    assert data.get_weight().tolist() == queries.doc_weight.tolist()


@pytest.mark.parametrize("ending", ["init", "position", "base_margin"])
def test_other_files_are_ignored_with_a_warning(tmp_path, ending):
    with pytest.warns(rw.IgnoredFileWarning, match=f"train.txt.{ending} is ignored"):
        rw.read(write(tmp_path, **{ending: "0\n" * 4}))


def test_text_with_query_ids_needs_no_sizes(tmp_path):
    with pytest.warns(rw.IgnoredFileWarning, match=r"query is ignored: .* has query ids or a header of its own"):
        queries = rw.read(write(tmp_path, "1 qid:7 1:2\n"))
    assert queries.qid.tolist() == [7]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sizes": "2\n3\n"}, r"train.txt.query: the sizes add up to 5; .*train.txt has 4 documents"),
        ({"sizes": "1\n\nx\n"}, r"train.txt.query:3: found 'x'; expected the size of a query"),
        ({"sizes": "0\n4\n"}, "query:1: found '0'"),
        ({"sizes": "\n"}, "query: empty"),
        ({"group": "2\n2\n"}, r"query and .*group differ"),
        ({"weight": "1\n2\n3\n"}, r"weight: 3 weights; expected 2 \(one per query\) or 4 \(one per document\)"),
        ({"weight": "1\n-2\n"}, "weight:2: found '-2'; expected a weight"),
        ({"text": "1 0:1\n0 0:1\n1 1:x\n0 0:1\n"}, "train.txt:3: found 'x' for a feature value"),
        ({"text": "1 0:1\n0 0:1\n1 qid:1 0:2\n0 0:1\n"}, "train.txt:3: found 'qid:1'; expected index:value"),
        ({"text": "1 0:1\n0 0:1 0:2\n1 0:2\n0 0:1\n"}, "train.txt:2: feature index '0' after an equal or higher one"),
        ({"text": "1,2\n0,x\n1,3\n1,3\n"}, "train.txt:2: found 'x' in column 2; expected a finite number, or nan"),
        ({"text": "1,2\n,2\n1,3\n1,3\n"}, "train.txt:2: found '' in column 1; expected a finite number as label"),
        ({"text": "1,2\n0,inf\n1,3\n1,3\n"}, "train.txt:2: found 'inf' in column 2"),
        ({"text": "1,2\n0,2,3\n1,3\n1,3\n"}, "train.txt:2: 3 columns; expected 2"),
    ],
)
def test_bad_files_are_named(tmp_path, given, message):
    path = write(tmp_path, **given)
    with pytest.raises(rw.InputError, match=message):
        rw.read(path)


def test_small_pieces_and_compressed_text(tmp_path, monkeypatch):
    whole = rw.read(write(tmp_path))
    dense = rw.read(write(tmp_path, DENSE, "a.csv"))
    monkeypatch.setattr(group_lines, "_BLOCK", 16)
    assert rw.read(tmp_path / "train.txt").X.tolist() == whole.X.tolist()
    assert np.array_equal(rw.read(tmp_path / "a.csv").X, dense.X, equal_nan=True)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(SPARSE.encode()))
    (tmp_path / "b.txt.query").write_text("1\n3\n")
    assert rw.read(tmp_path / "b.txt.gz").X.tolist() == whole.X.tolist()


def test_several_files_are_one(tmp_path):
    first, second = write(tmp_path), write(tmp_path, "1 5:2\n", "other.txt", sizes="1\n")
    queries = rw.read(first, second)
    assert (queries.qid.tolist(), queries.n_features) == ([1, 2, 3], 6)
    (tmp_path / "other.txt.query").unlink()
    with pytest.raises(rw.InputError, match=r"other.txt: no file of query sizes"):
        rw.read(first, second)


def test_a_model_finds_its_features_by_their_indices(tmp_path, capsys):
    train, letor = write(tmp_path), tmp_path / "letor.txt"
    letor.write_text("2 qid:1 1:1 2:2\n0 qid:1 1:3\n1 qid:2 2:1\n0 qid:2 1:1 2:1\n")
    for data, name in ((train, "zero.json"), (letor, "one.json")):
        said = ["fit", "regression", "--train", str(data), "--model", str(tmp_path / name)]
        assert cli.run(said) == 0
    capsys.readouterr()
    predict = ["predict", "--out", str(tmp_path / "s"), "--data"]
    assert cli.run([*predict, str(letor), "--model", str(tmp_path / "zero.json")]) == 2
    assert "LETOR text counts features from 1; the model has a feature 0" in capsys.readouterr().err
    assert cli.run([*predict, str(train), "--model", str(tmp_path / "one.json")]) == 0  # its features 1 and 2
    expected = rw.load(tmp_path / "one.json").predict(rw.read(train).X[:, 1:3])
    assert [float(line) for line in (tmp_path / "s").read_text().split()] == expected.tolist()
    other = write(tmp_path, "1 0:1\n", "narrow.txt", sizes="1\n")
    assert cli.run([*predict, str(other), "--model", str(tmp_path / "zero.json")]) == 2
    assert "no feature '1'; there are the indices 0 to 0" in capsys.readouterr().err
