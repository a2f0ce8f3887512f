"""Models on disk: whole or not at all, and never code."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.basics.errors import make_printable
from rankwright.basics.files import write_atomic
from rankwright.cli import run
from rankwright.scorers import Linear


@pytest.fixture
def saved(tmp_path):
    queries = rw.make_queries(20, random_state=0)
    path = tmp_path / "model.json"
    rw.save(rw.AdaRank(n_estimators=5).fit(queries, valid=queries), path)
    return path


def test_the_format_is_the_documented_one(saved):
    content = json.loads(saved.read_text())
    assert set(content) == {
        "format", "version", "ranker", "params", "measure", "n_features", "features", "categories", "scaling", "scorer",
            "history",
    }  # fmt: skip
    assert (content["format"], content["version"], content["ranker"]) == ("rankwright", 1, "AdaRank")
    assert content["scorer"]["kind"] == "linear"
    assert content["params"]["n_estimators"] == 5
    assert len(content["history"]) == 5


OLD_MODEL = """{"format": "rankwright", "version": 1, "ranker": "AdaRank",
 "params": {"backend": null, "measure": "ndcg@10", "n_rounds": 3, "scale": "standard", "signed": false, "warm_start": false},
 "measure": "ndcg@10", "n_features": 2, "features": null, "scaling": null,
 "scorer": {"kind": "linear", "coef": [0.5, -2.0], "intercept": 1.0},
 "history": [{"round": 1, "feature": 1, "alpha": 0.25, "loss": 0.75, "train": 0.5}]}"""


def test_a_model_with_former_parameter_names_loads(tmp_path):
    """The parameters of a saved model are a record: renaming one does not make old files unreadable."""
    (tmp_path / "old.json").write_text(OLD_MODEL)
    model = rw.load(tmp_path / "old.json")
    assert model.predict(np.array([[2.0, 1.0], [0.0, 0.0]])).tolist() == [0.0, 1.0]
    assert model.params["n_rounds"] == 3
    queries = rw.make_queries(5, n_features=2, random_state=0)
    assert rw.diagnose(model, queries).own is None  # its parameters do not name the bound it minimised
    rw.save(model, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == {**json.loads(OLD_MODEL), "categories": None}


def test_cut_in_half(saved):
    text = saved.read_text()
    saved.write_text(text[: len(text) // 2])
    with pytest.raises(rw.InputError, match=r"model\.json:\d+: not a whole JSON file"):
        rw.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a Rankwright model"),
        ({"version": 99}, "model version 99; this release reads version 1"),
        ({"scorer": {"kind": "pickle"}}, "scorer of kind 'pickle'"),
        ({"scorer": {"kind": "linear", "coef": "abc", "intercept": 0}}, "damaged model"),
        ({"scorer": {"kind": "linear", "coef": [[1]], "intercept": 0}}, "damaged model"),
        ({"scorer": None}, "damaged model"),
        ({"scorer": {"kind": "linear", "coef": [1.0], "intercept": 0}}, "does not fit 20 features"),
        ({"scorer": {"kind": "linear", "coef": [None] * 20, "intercept": 0}}, "damaged model"),
        ({"scorer": {"kind": "feature", "index": 20, "sign": 1}}, "does not fit 20 features"),
        ({"scorer": {"kind": "feature", "index": -1, "sign": 1}}, "does not fit 20 features"),
        ({"n_features": None}, "damaged model"),
        ({"n_features": 20.0}, "damaged model"),
        ({"n_features": "20"}, "damaged model"),
        ({"scorer": {"kind": "linear", "coef": [True] * 20, "intercept": 0}}, "in place of a weight"),
        ({"scorer": {"kind": "linear", "coef": ["1"] * 20, "intercept": 0}}, "in place of a weight"),
        (
            {"scorer": {"kind": "linear", "coef": [1] * 20, "intercept": float("nan")}},
            "found NaN, which JSON does not have",
        ),
        ({"scorer": {"kind": "feature", "index": 0.9, "sign": 1}}, "expected a column"),
        ({"scorer": {"kind": "feature", "index": 1, "sign": 0}}, "expected a column"),
        ({"features": "abc"}, "expected 20 names"),
        ({"features": ["a"]}, "expected 20 names"),
        ({"version": True}, "model version True"),
        ({"scaling": {"kind": "magic"}}, "expected that of kind 'query'"),
        ({"scaling": "query"}, "expected that of kind 'query'"),
        ({"scorer": {"kind": ["linear"]}}, "scorer of kind"),
        ({"scorer": {"kind": "feature", "index": 1, "sign": True}}, "expected a column"),
        ({"params": [["a", 1]]}, "params is"),
        ({"measure": 7}, "measure is 7"),
        ({"ranker": None}, "ranker is None"),
        ({"history": "abc"}, "history is 'abc'"),
        ({"history": [1]}, "not a list of records"),
        ({"features": list(range(20))}, "expected 20 names"),
        ({"history": None}, "damaged model"),
    ],
)
def test_damaged(saved, change, message):
    saved.write_text(json.dumps({**json.loads(saved.read_text()), **change}))
    with pytest.raises(rw.InputError, match=message):
        rw.load(saved)


def test_lacking_a_part(saved):
    content = json.loads(saved.read_text())
    del content["scorer"]
    saved.write_text(json.dumps(content))
    with pytest.raises(rw.InputError, match="the model lacks 'scorer'"):
        rw.load(saved)


@pytest.mark.parametrize(
    "content", [b"[1, 2]", b'"text"', b"\x80\x04\x95 pickle", b"", b"[" * 100_000, b"9" * 5000, b'{"a": 1']
)
def test_something_else(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(rw.InputError, match="m"):
        rw.load(tmp_path / "m")


def test_a_model_with_an_unknown_measure_still_predicts(saved):
    saved.write_text(json.dumps({**json.loads(saved.read_text()), "measure": "someone_elses"}))
    queries = rw.make_queries(3, random_state=0)
    model = rw.load(saved)
    assert model.predict(queries).shape == (queries.n_docs,)
    with pytest.raises(rw.InputError, match="unknown measure"):
        model.score(queries)


def test_compressed(tmp_path):
    queries = rw.make_queries(5, random_state=0)
    for name in ("m.json.gz", "m.json.xz"):
        rw.save(rw.Regression().fit(queries), tmp_path / name)
        assert rw.load(tmp_path / name).ranker == "Regression"


def test_weights_that_are_not_finite_are_not_written(tmp_path):
    model = rw.Regression().fit(rw.make_queries(5, random_state=0)).to_model()
    broken = dataclasses.replace(model, scorer=Linear(np.full(20, np.inf)))
    with pytest.raises(rw.InputError, match="not finite"):
        rw.save(broken, tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_infinite_history_becomes_null(tmp_path):
    y = [1, 0, 0, 1]
    queries = rw.Queries.from_arrays(np.array(y)[:, None], y, [1, 1, 2, 2])
    rw.save(rw.AdaRank().fit(queries), tmp_path / "m.json")
    assert rw.load(tmp_path / "m.json").history[0]["log_bound"] is None


class TestAtomicWriting:
    def test_a_failure_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with pytest.raises(RuntimeError), write_atomic(path) as file:
            file.write("half")
            raise RuntimeError
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_reader_never_sees_half(self, tmp_path):
        """The new file takes the old one's name; who has the old one open keeps it whole."""
        path = tmp_path / "a.txt"
        path.write_text("old")
        with path.open() as reader:
            with write_atomic(path) as file:
                file.write("new")
            assert reader.read() == "old"
        assert path.read_text() == "new"

    def test_permissions_are_the_usual(self, tmp_path):
        (tmp_path / "usual").touch()
        with write_atomic(tmp_path / "a.txt") as file:
            file.write("x")
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)

    def test_no_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no folder"), write_atomic(tmp_path / "no" / "a.txt"):
            pass
        with pytest.raises(IsADirectoryError, match="is a folder"), write_atomic(tmp_path):
            pass

    def test_devices_are_written_directly(self):
        with write_atomic("/dev/null") as file:
            file.write("x")

    def test_standard_output_even_if_it_is_a_file(self, tmp_path):
        code = (
            "from rankwright.basics.files import write_atomic\nwith write_atomic('/dev/stdout') as f: f.write('hello')"
        )
        with (tmp_path / "out").open("wb") as out:
            subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
        assert (tmp_path / "out").read_text() == "hello"

    def test_a_folder_in_memory_is_a_folder(self):
        shared = Path("/dev/shm")
        if not os.access(shared, os.W_OK):
            pytest.skip("there is no /dev/shm")
        path = shared / f"rankwright-{os.getpid()}.txt"
        for text in ("first", "second"):
            with write_atomic(path) as file:
                file.write(text)
        content = path.read_text()
        path.unlink()
        assert content == "second"

    def test_permissions_stay(self, tmp_path):
        path = tmp_path / "a.txt"
        path.touch()
        path.chmod(0o600)
        with write_atomic(path) as file:
            file.write("x")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "real.txt").write_text("old")
        (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
        with write_atomic(tmp_path / "link.txt") as file:
            file.write("new")
        assert (tmp_path / "link.txt").is_symlink()
        assert (tmp_path / "real.txt").read_text() == "new"


def test_a_run_in_a_dictionary_is_written(tmp_path):
    run = {"q1": {"a": 0.5, "b": 2.0, "c": 0.5}, "q2": {"x": -1.0}}
    rw.write_run(run, tmp_path / "a.run", tag="me")
    assert (tmp_path / "a.run").read_text().splitlines() == [
        "q1 Q0 b 1 2.0 me",
        "q1 Q0 c 2 0.5 me",  # ties as trec_eval breaks them
        "q1 Q0 a 3 0.5 me",
        "q2 Q0 x 1 -1.0 me",
    ]
    assert rw.read_run(tmp_path / "a.run") == run
    for bad in ([1.0], rw.make_queries(2)):
        with pytest.raises(rw.InputError, match=r"expected \(queries, scores, path\), or \(run, path\)"):
            rw.write_run(bad, tmp_path / "b.run")
    with pytest.raises(rw.InputError, match="the run has no documents"):
        rw.write_run({}, tmp_path / "b.run")
    with pytest.raises(rw.InputError, match="score 0 is NaN"):
        rw.write_run({"q": {"a": float("nan")}}, tmp_path / "b.run")
    assert not (tmp_path / "b.run").exists()


def test_write_run(tmp_path):
    queries = rw.Queries.from_arrays(np.zeros((3, 1)), [0, 1, 0], ["b", "a", "b"], docid=["x", "y", "z"])
    rw.write_run(queries, np.array([0.5, 1.5, 2.0]), tmp_path / "a.run", tag="me")
    assert (tmp_path / "a.run").read_text() == "b Q0 z 1 2.0 me\nb Q0 x 2 0.5 me\na Q0 y 1 1.5 me\n"
    with pytest.raises(rw.InputError, match="there are 3 documents"):
        rw.write_run(queries, np.zeros(2), tmp_path / "b.run")
    with pytest.raises(rw.InputError, match="one word"):
        rw.write_run(queries, np.zeros(3), tmp_path / "b.run", tag="two words")
    bad = rw.Queries.from_arrays(np.zeros((1, 1)), [0], ["q 1"])
    with pytest.raises(rw.InputError, match="query id 'q 1' cannot be written"):
        rw.write_run(bad, [0.0], tmp_path / "b.run")
    bad = rw.Queries.from_arrays(np.zeros((1, 1)), [0], [1], docid=["a b"])
    with pytest.raises(rw.InputError, match="document id 'a b' cannot be written"):
        rw.write_run(bad, [0.0], tmp_path / "b.run")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.run"]


@may_learn_nothing
def test_rank_names_rows_without_ids():
    queries = rw.Queries.from_arrays([[1.0], [3.0], [2.0]], [0, 1, 0], [5, 6, 5])
    ranked = rw.SingleFeature(feature=0, sign=1).fit(queries).rank(queries)
    assert {q: rows.tolist() for q, rows in ranked.items()} == {5: [2, 0], 6: [1]}


class TestHostileText:
    """A model from elsewhere is read as JSON has it, within bounds, and in time and memory that its size explains."""

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('"version": 1', '"version": 1, "version": 1', "found 'version' twice"),
            ('"intercept": 0.0', '"intercept": NaN', "found NaN, which JSON does not have"),
            ('"intercept": 0.0', '"intercept": -Infinity', "found -Infinity"),
            ('"intercept": 0.0', '"intercept": 1e400', "inf in place of a weight"),
            ('"intercept": 0.0', '"intercept": ' + "1" * 400, "in place of a weight"),
            ('"intercept": 0.0', '"intercept": ' + "1" * 5000, "not a model: .*digits"),
            ('"history": [', '"history": [{"a": 1e999},', "history has a number that is too large"),
            ('"history": [', '"history": [{"a": ' + "[" * 40 + "]" * 40 + "},", "inside each other"),
            ('"history": [', '"history": [' + "[" * 100_000, "without end"),
            ('"n_features": 20', '"n_features": 0', "n_features is 0; expected 1 to 10000000"),
            ('"n_features": 20', '"n_features": -3', "n_features is -3"),
            ('"n_features": 20', '"n_features": 1' + "0" * 30, "n_features is 1000000"),
            ('"n_features": 20', '"n_features": 1e30', "n_features is 1e\\+30"),
        ],
    )
    def test_it_is_refused_in_one_line(self, saved, old, new, message):
        text = saved.read_text()
        assert old in text
        saved.write_text(text.replace(old, new))
        with pytest.raises(rw.InputError, match=message) as caught:
            rw.load(saved)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400

    @pytest.mark.parametrize("scorer", [
        {"kind": "linear", "coef": "", "intercept": 0},
        {"kind": "linear", "coef": {}, "intercept": 0},
        {"kind": "stumps", "feature": "", "threshold": {}, "weight": "", "missing": {}},
        {"kind": "stumps", "feature": [2**70], "threshold": [1], "weight": [1], "missing": None},
        {"kind": "network", "activation": "relu", "mean": "", "factor": {}, "layers": {}},
        {"kind": "network", "activation": "relu", "mean": [0], "factor": [1], "layers": [[]]},
        {"kind": "feature", "index": 10**30, "sign": 1},
    ])  # fmt: skip
    def test_an_empty_text_is_no_list(self, saved, scorer):
        content = json.loads(saved.read_text())
        saved.write_text(json.dumps({**content, "scorer": scorer, "features": None}))
        with pytest.raises(rw.InputError, match="damaged model"):
            rw.load(saved)

    @pytest.mark.parametrize("scorer", [
        {"kind": "linear", "coef": [1e308] * 20, "intercept": 0},
        {"kind": "linear", "coef": [1e308, -1e308] * 10, "intercept": 0},
        {"kind": "kernel", "kernel": "poly", "gamma": 1e300, "coef0": 0, "degree": 100, "mean": [0] * 20,
         "factor": [1e300] * 20, "landmarks": [[1e300] * 20], "dual": [1], "intercept": 0},
        {"kind": "network", "activation": "relu", "mean": [-1e300] * 20, "factor": [1e300] * 20,
         "layers": [{"weights": [[1]] * 20, "bias": [0]}]},
    ])  # fmt: skip
    def test_scores_that_are_no_numbers_are_refused(self, saved, scorer):
        content = json.loads(saved.read_text())
        saved.write_text(json.dumps({**content, "scorer": scorer, "features": None}))
        model, queries = rw.load(saved), rw.Queries.from_arrays(np.full((3, 20), 1e30), [0, 1, 2], [1, 1, 2])
        for predict in (model.predict, model.rank, model.score):
            with pytest.raises(rw.InputError, match=r"the AdaRank model scores row 0 with -?(inf|nan)"):
                predict(queries)

    def test_loading_and_explaining_a_claim_of_many_features_takes_no_time(self, saved):
        content = json.loads(saved.read_text()) | {"n_features": 10**7, "features": None}
        n = 20_000  # each of another feature: what is quadratic in them takes a minute
        stumps = {"feature": list(range(n)), "threshold": [0.5] * n, "weight": [1.0] * n, "missing": [1] * n}
        for scorer in ({"kind": "feature", "index": 10**7 - 1, "sign": 1}, {"kind": "stumps", **stumps}):
            saved.write_text(json.dumps({**content, "scorer": scorer}))
            tracemalloc.start()
            start = time.process_time()
            str(rw.explain(rw.load(saved)))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert time.process_time() - start < 5
            assert peak < 100e6


def test_control_characters_of_a_model_are_shown_not_sent(saved, capsys):
    hostile = "\x1b[2J\r\x07\u202e\x9b\ud800"
    content = json.loads(saved.read_text())
    content |= {"ranker": "Ada" + hostile, "features": [f"f{i}{hostile}\nfake" for i in range(20)]}
    saved.write_text(json.dumps(content))
    told = str(rw.explain(rw.load(saved)))
    assert "f15\\x1b[2J\\r\\x07\\u202e\\x9b\\ud800\\nfake" in told
    assert run(["explain", "--model", str(saved)]) == 0
    assert run(["predict", "--model", str(saved), "--data", f"no{hostile}file", "--out", "x"]) == 2
    out, err = capsys.readouterr()
    assert make_printable(out, keep="\n") == out
    assert make_printable(err, keep="\n") == err
    assert err.count("\n") == 1


def test_a_run_that_nothing_could_read_is_not_written(tmp_path):
    queries = rw.Queries.from_arrays(np.zeros((3, 1)), [0, 1, 0], ["b", "a", "b"], docid=["x", "y", "x"])
    with pytest.raises(rw.InputError, match="two documents of query b have the id 'x'"):
        rw.write_run(queries, np.arange(3.0), tmp_path / "a.run")
    for bad, message in ((np.nan, "score 1 is NaN"), (np.inf, "score 1 is inf"), (1e300, "score 1 is 1e[+]300")):
        with pytest.raises(rw.InputError, match=message):
            rw.write_run(queries, np.array([0.0, bad, 1.0]), tmp_path / "a.run")
    made = rw.make_queries(3, random_state=0).take([0, 1, 0])
    with pytest.raises(rw.InputError, match="two queries have one id"):
        rw.write_run(made, np.zeros(made.n_docs), tmp_path / "a.run")
    assert list(tmp_path.iterdir()) == []
