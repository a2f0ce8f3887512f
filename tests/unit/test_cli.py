"""The command line: the whole job, and one clear line for every mistake."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankwright as rw
from rankwright import cli
from rankwright.rankers import RANKERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training, validation and test files (the test file's queries out of order), and a trained model."""
    folder = tmp_path_factory.mktemp("cli")
    queries = rw.make_queries(60, n_docs=12, n_features=8, random_state=0)
    for name, part in (("train", range(36)), ("valid", range(36, 48)), ("test", range(48, 60))):
        rw.write_letor(queries.take(part), folder / f"{name}.txt")
    lines = (folder / "test.txt").read_text().splitlines()
    (folder / "mixed.txt").write_text("\n".join(lines[::2] + lines[1::2]) + "\n")
    arguments = ["--train", folder / "train.txt", "--valid", folder / "valid.txt", "--model", folder / "model.json"]
    assert cli.run(["fit", "adarank", *map(str, arguments)]) == 0
    return folder


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = cli.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


class TestTheWholeJob:
    def test_fit_says_what_it_did(self, folder, capsys, tmp_path):
        model = tmp_path / "m.json"
        status, out, err = run(
            capsys, "fit", "Regression", "--train", folder / "train.txt", "--valid", folder / "valid.txt",
            "--measure", "NDCG@5", "--set", "alpha=10", "--set", "scale=none", "--model", model,
        )  # fmt: skip
        assert (status, err) == (0, "")
        assert "Regression: ndcg@5 train 0." in out
        assert str(model) in out
        loaded = rw.load(model)
        assert (loaded.measure, loaded.params["alpha"], loaded.params["scale"]) == ("ndcg@5", 10.0, None)

    def test_fit_json_equals_python(self, folder, capsys, tmp_path):
        _, out, _ = run(
            capsys, "fit", "adarank", "--train", folder / "train.txt", "--model", tmp_path / "m.json", "--json"
        )
        report = json.loads(out)
        train = rw.read_letor(folder / "train.txt")
        assert report["train"] == rw.AdaRank(measure="ndcg@10").fit(train).score(train)
        assert report["rounds"] == len(rw.load(tmp_path / "m.json").history)

    def test_a_saved_model_is_gone_on_from(self, folder, capsys, tmp_path):
        fit = ("fit", "rankboost", "--train", folder / "train.txt", "--set")
        assert run(capsys, *fit, "n_estimators=5", "--model", tmp_path / "a.json")[0] == 0
        resumed = ("n_estimators=9", "--set", f"init_model={tmp_path / 'a.json'}", "--model", tmp_path / "b.json")
        assert run(capsys, *fit, *resumed)[0] == 0
        assert run(capsys, *fit, "n_estimators=9", "--model", tmp_path / "c.json")[0] == 0
        assert rw.load(tmp_path / "b.json").history == rw.load(tmp_path / "c.json").history
        status, _, err = run(capsys, *fit, "warm_start=true", "--model", tmp_path / "d.json")
        assert (status, "init_model=PATH" in err) == (2, True)
        status, _, err = run(capsys, *fit, "init_model=absent.json", "--model", tmp_path / "d.json")
        assert (status, err) == (2, "rankwright: absent.json: No such file or directory\n")
        assert not (tmp_path / "d.json").exists()

    def test_explain(self, folder, capsys, tmp_path):
        model = tmp_path / "m.json"
        assert run(capsys, "fit", "rankboost", "--train", folder / "train.txt", "--model", model)[0] == 0
        status, out, err = run(capsys, "explain", "--model", model)
        assert (status, err, out) == (0, "", f"{rw.explain(rw.load(model))}\n")
        status, _, err = run(capsys, "explain", "--model", folder / "train.txt")
        assert status == 2
        assert "expected a saved model" in err

    @pytest.mark.parametrize(
        ("ranker", "settings", "params"),
        [
            (
                "lambdamart",
                ["lambdas=lightgbm", "num_leaves=8", "lightgbm_params.lambda_l2=1", "lightgbm_params.max_depth=3", "early_stopping_rounds=2"],
                {"lambdas": "lightgbm", "num_leaves": 8, "lightgbm_params": {"lambda_l2": 1, "max_depth": 3}, "early_stopping_rounds": 2},
            ),
            ("lambda-mart", ['lightgbm_params={"lambda_l2": 2.5}'], {"lightgbm_params": {"lambda_l2": 2.5}}),
            ("mart", ["polish_rounds=3", "learning_rate=1", "lightgbm_params.extra_trees=true"],
             {"polish_rounds": 3, "learning_rate": 1.0, "lightgbm_params": {"extra_trees": True}}),
            ("directrank-trees", ["weight_range=none"], {"weight_range": None}),
            ("directrank-trees", ["weight_range=0.2,0.4"], {"weight_range": [0.2, 0.4]}),
            ("DirectRankTrees", ["weight_range=[0.2, 0.4]", "interval_point=middle"], {"weight_range": [0.2, 0.4], "interval_point": "middle"}),
            ("boosted-trees", ["objective=fidelity"], {"objective": "fidelity"}),
        ],
    )  # fmt: skip
    def test_trees(self, folder, capsys, tmp_path, ranker, settings, params):
        model = tmp_path / "m.json"
        options = [x for setting in ("n_estimators=4", "min_child_samples=3", *settings) for x in ("--set", setting)]
        files = ("--train", folder / "train.txt", "--valid", folder / "valid.txt", "--model", model)
        status, out, err = run(capsys, "fit", ranker, *files, *options, "--json")
        assert (status, err) == (0, "")
        loaded, train = rw.load(model), rw.read_letor(folder / "train.txt")
        kept = json.loads(json.dumps(loaded.params))
        assert {name: kept[name] for name in params} == params
        assert json.loads(out)["train"] == loaded.score(train)
        status, out, err = run(capsys, "explain", "--model", model)
        assert (status, err, out) == (0, "", f"{rw.explain(loaded)}\n")
        status, out, err = run(capsys, "evaluate", "--data", folder / "train.txt", "--model", model, "--json")
        assert (status, err) == (0, "")
        assert json.loads(out)["means"]["ndcg@10"] == pytest.approx(loaded.score(train), abs=1e-12)
        assert run(capsys, "predict", "--model", model, "--data", folder / "mixed.txt", "--out", tmp_path / "s")[0] == 0
        queries = rw.read_letor(folder / "mixed.txt")
        assert np.loadtxt(tmp_path / "s").tolist() == loaded.predict(queries).tolist()

    @pytest.mark.parametrize("ranker", ["mart", "lambdamart", "directranktrees", "boostedtrees"])
    def test_saved_trees_are_gone_on_from(self, folder, capsys, tmp_path, ranker):
        fit = ("fit", ranker, "--train", folder / "train.txt", "--set", "min_child_samples=3", "--set")
        assert run(capsys, *fit, "n_estimators=2", "--model", tmp_path / "a.json")[0] == 0
        resumed = ("n_estimators=4", "--set", f"init_model={tmp_path / 'a.json'}", "--model", tmp_path / "b.json")
        assert run(capsys, *fit, *resumed)[0] == 0
        assert run(capsys, *fit, "n_estimators=4", "--model", tmp_path / "c.json")[0] == 0
        train = rw.read_letor(folder / "train.txt")
        whole, parts = (rw.load(tmp_path / name).predict(train) for name in ("c.json", "b.json"))
        assert whole.tobytes() == parts.tobytes()

    def test_several_training_files_are_one(self, folder, capsys, tmp_path):
        for files in (["train.txt", "valid.txt"], ["valid.txt", "train.txt"]):
            options = [x for name in files for x in ("--train", folder / name)]
            assert run(capsys, "fit", "regression", *options, "--model", tmp_path / "m.json")[0] == 0

    def test_predict_writes_scores_in_the_files_order(self, folder, capsys, tmp_path):
        for name in ("test.txt", "mixed.txt"):
            assert run(
                capsys, "predict", "--model", folder / "model.json", "--data", folder / name, "--out", tmp_path / "s"
            ) == (0, "", "")
            scores = np.loadtxt(tmp_path / "s")
            queries = rw.read_letor(folder / name)
            expected = rw.load(folder / "model.json").predict(queries)
            assert scores.tolist() == expected.tolist()

    @pytest.mark.parametrize("name", ["test.txt", "mixed.txt"])
    def test_predict_writes_a_table_of_ids_and_scores(self, folder, capsys, tmp_path, name):
        predict = ("predict", "--model", folder / "model.json", "--data", folder / name, "--out")
        for out in ("s.csv", "s.txt"):
            assert run(capsys, *predict, tmp_path / out) == (0, "", "")
        with (tmp_path / "s.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        queries = rw.read_letor(folder / name)
        assert header == ["qid", "docid", "score"]
        assert [row[0] for row in rows] == [str(qid) for qid in queries.row_qid]
        assert [row[1] for row in rows] == [str(name) for name in queries.doc_names]
        assert "".join(f"{row[2]}\n" for row in rows) == (tmp_path / "s.txt").read_text()
        options = ("evaluate", "--data", folder / name, "--measures", "ndcg@5", "--json", "--scores")
        assert len({run(capsys, *options, tmp_path / out) for out in ("s.csv", "s.txt")}) == 1

    def test_tables_of_scores_have_the_ids_of_tables(self, capsys, tmp_path):
        text = 'search,sku,label,a\n"red, shoes",x,1,0.5\nred shoes 2,y,0,0.25\n"red, shoes",z,0,0.125\n'
        (tmp_path / "d.csv").write_text(text)
        data = rw.read(tmp_path / "d.csv", qid="search", docid="sku")
        rw.save(rw.Regression().fit(data), tmp_path / "m.json")
        roles = ("--data", tmp_path / "d.csv", "--qid", "search", "--docid", "sku")
        assert run(capsys, "predict", "--model", tmp_path / "m.json", *roles, "--out", tmp_path / "S.CSV")[0] == 0
        with (tmp_path / "S.CSV").open(newline="") as file:
            found = [row[:2] for row in csv.reader(file)]
        assert found == [["qid", "docid"], ["red, shoes", "x"], ["red shoes 2", "y"], ["red, shoes", "z"]]
        (tmp_path / "bad.csv").write_text("qid,docid,score\n1,a,0.5\n1,b,much\n1,c,1\n")
        code, _, error = run(capsys, "evaluate", *roles, "--scores", tmp_path / "bad.csv", "--measures", "map")
        assert code == 2
        assert "bad.csv:3: found 'much'; expected one score per line" in error

    def test_predict_writes_a_run(self, folder, capsys, tmp_path):
        run(capsys, "predict", "--model", folder / "model.json", "--data", folder / "test.txt", "--run", tmp_path / "r")
        first = (tmp_path / "r").read_text().splitlines()[0].split()
        assert (first[1], first[3], first[5]) == ("Q0", "1", "AdaRank")

    @pytest.mark.parametrize("data", ["test.txt", "mixed.txt"])
    def test_evaluate_model_and_scores_agree(self, folder, capsys, tmp_path, data):
        options = [
            "evaluate",
            "--data",
            folder / data,
            "--measures",
            "ndcg@5,map(rel=2),ndcg@3(gain=linear,empty=skip)",
        ]
        run(capsys, "predict", "--model", folder / "model.json", "--data", folder / data, "--out", tmp_path / "s")
        _, by_model, _ = run(capsys, *options, "--model", folder / "model.json", "--json")
        _, by_scores, _ = run(capsys, *options, "--scores", tmp_path / "s", "--json")
        assert json.loads(by_model) == json.loads(by_scores)
        test = rw.read_letor(folder / "test.txt")
        expected = rw.evaluate(rw.load(folder / "model.json"), test, "ndcg@5")["ndcg@5"]
        assert json.loads(by_model)["means"]["ndcg@5"] == pytest.approx(expected, abs=1e-12)

    def test_evaluate_prints_and_writes_per_query_values(self, folder, capsys, tmp_path):
        status, out, _ = run(
            capsys, "evaluate", "--data", folder / "test.txt", "--model", folder / "model.json",
            "--measures", "map,p@3", "--per-query", tmp_path / "q.tsv",
        )  # fmt: skip
        assert status == 0
        assert out.splitlines()[0].startswith("map")
        rows = [line.split("\t") for line in (tmp_path / "q.tsv").read_text().splitlines()]
        assert rows[0] == ["qid", "map", "p@3"]
        assert len(rows) == 13
        assert f"{np.mean([float(row[1]) for row in rows[1:]]):.4f}" in out

    def test_json_has_no_nan(self, capsys, tmp_path):
        (tmp_path / "none.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
        (tmp_path / "s").write_text("1\n2\n")
        options = [
            "--data",
            tmp_path / "none.txt",
            "--scores",
            tmp_path / "s",
            "--measures",
            "map(empty=skip)",
            "--json",
        ]
        _, out, _ = run(capsys, "evaluate", *options)
        assert json.loads(out, parse_constant=pytest.fail)["means"] == {"map(empty=skip)": None}

    def test_lists(self, capsys):
        _, out, _ = run(capsys, "rankers")
        assert "adarank\n  AdaRank: boosting" in out
        assert "n_estimators=500" in out
        for name in ("mart", "lambdamart", "directranktrees", "boostedtrees"):
            assert re.search(rf"\n{name}\n  .*[Bb]oosted", out)
        assert "weight_range=(0.03, 0.15)" in out
        _, out, _ = run(capsys, "rankers", "--json")
        names = {ranker.__name__.lower() for ranker in RANKERS}
        assert {row["name"] for row in json.loads(out)} == names
        _, out, _ = run(capsys, "measures")
        assert "ndcg@k" in out
        assert "letor3" in out
        _, out, _ = run(capsys, "measures", "--json")
        assert "err" not in json.loads(out)["dialects"]["catboost"]

    def test_help_of_every_command(self, capsys):
        assert run(capsys) == run(capsys, "--help")
        for command in ([], ["fit"], ["predict"], ["evaluate"], ["rankers"], ["measures"], ["demo"],
                        ["experiment"], ["report"], ["compare"], ["reproduce"], ["tune"],
                        ["simulate"]):  # fmt: skip
            status, out, _ = run(capsys, *command, "--help")
            assert status == 0
            assert "Usage: rankwright" in out


TREES = [
    ("lambdamart", "num_leaves=1", "num_leaves=1; expected a whole number of at least 2"),
    ("lambdamart", "num_leaves=a", "--set num_leaves=a: expected a value like 31"),
    ("lambdamart", "learning_rate=0", "learning_rate=0"),
    ("lambdamart", "learning_rate=nan", "learning_rate=nan"),
    ("lambdamart", "polish_rounds=-1", "polish_rounds=-1; expected a whole number of at least 0"),
    ("lambdamart", "early_stopping_rounds=0", "early_stopping_rounds=0; expected a whole number of at least 1"),
    ("lambdamart", "lambdas=x", "lambdas='x'; expected 'exact' or 'lightgbm'"),
    ("lambdamart", "lightgbm_params=5", "lightgbm_params=5; expected a mapping"),
    (
        "lambdamart",
        "lightgbm_params.num_leaves=3",
        "lightgbm_params has 'num_leaves'; pass num_leaves to the ranker itself",
    ),
    ("lambdamart", "lightgbm_params.lamda_l2=3", "lightgbm_params has 'lamda_l2'; did you mean lambda_l2?"),
    ("lambdamart", "lightgbm_params.objective=binary", "lightgbm_params has 'objective'"),
    ("lambdamart", "lightgbm_params.lambda_l2=-1", "(lambda_l2) >= (0.0)"),
    ("lambdamart", "params.=4", "params"),
    ("lambdamart", "num_leaves.x=4", "LambdaMART has no parameter 'num_leaves.x'"),
    ("lambdamart", "init_model=nothere.json", "nothere.json: No such file or directory"),
    ("lambdamart", "warm_start=true", "init_model=PATH"),
    ("lambdamart", "init_model={f}/model.json", "init_model: a model of AdaRank; expected one of trees"),
    ("lambdamart", "init_model={f}/train.txt", "train.txt:1: not a whole JSON file"),
    ("lambdamart", "objective=map", "LambdaMART has no parameter 'objective'"),
    ("mart", "lambdas=lightgbm", "MART has no parameter 'lambdas'"),
    ("directranktrees", "learning_rate=0.1", "DirectRankTrees has no parameter 'learning_rate'"),
    ("directranktrees", "weight_range=0.5,0.1", "expected 0 < low <= high"),
    ("directranktrees", "weight_range=0.5", "weight_range"),
    ("directranktrees", "weight_range=a,b", "weight_range"),
    ("directranktrees", "weight_range=1,2,3", "weight_range"),
    ("directranktrees", "weight_range=-1,2", "weight"),
    ("directranktrees", "interval_point=x", "interval_point='x'; expected"),
    ("boostedtrees", "objective=nothing", "objective='nothing'"),
]


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["fit", "adarnk", "--train", "{f}/train.txt", "--model", "{t}/m"], "unknown ranker 'adarnk'; did you mean adarank?"),
            (["fit", "adarank", "--train", "{f}/train.txt"], "Missing option '--model'"),
            (["fit", "adarank", "--train", "{f}/no.txt", "--model", "{t}/m"], "no.txt: No such file or directory"),
            (["fit", "adarank", "--train", "{f}", "--model", "{t}/m"], "a folder without tables; expected Parquet, CSV, Arrow or JSON lines in it. For LETOR text name the files"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--measure", "ndgc", "--model", "{t}/m"], "did you mean ndcg?"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--set", "rounds=5", "--model", "{t}/m"], "it is called n_estimators here"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--set", "n_estimators", "--model", "{t}/m"], "expected NAME=VALUE"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--set", "n_estimators=x", "--model", "{t}/m"], "a value like 500"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--set", "n_estimators=0", "--model", "{t}/m"], "at least 1"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--model", "{t}/no/m"], "there is no folder"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--model", "{t}"], "is a folder"),
            (["predict", "--model", "{f}/model.json", "--data", "{f}/test.txt"], "nothing to write; give --out or --run"),
            (["predict", "--model", "{f}/test.txt", "--data", "{f}/test.txt", "--out", "{t}/s"], "test.txt:1: not a whole JSON"),
            (["predict", "--model", "{f}/model.json", "--data", "{t}/wide.txt", "--out", "{t}/s"], "wide.txt:1: feature index '9'; expected at most 8"),
            (["evaluate", "--data", "{f}/test.txt"], "expected either --model or --scores"),
            (["evaluate", "--data", "{f}/test.txt", "--scores", "{t}/few"], "few: 2 scores; the data has"),
            (["evaluate", "--data", "{f}/test.txt", "--scores", "{t}/words"], "words:2: found 'hello'; expected one score per line"),
            (["evaluate", "--data", "{f}/test.txt", "--scores", "{t}/nan"], "nan:1: found 'nan'; expected one score per line, a finite number"),
            (["evaluate", "--data", "{f}/test.txt", "--model", "{f}/model.json", "--measures", "err(dialect=catboost)"], "is refused"),
            (["evaluate", "--data", "{f}/test.txt", "--model", "{f}/model.json", "--per-query", "/proc/nope/x"], "cannot be written"),
            (["evaluate", "--data", "{f}/test.txt", "--scores", "{t}/cut.gz"], "cut.gz: the compressed file is damaged"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--set", "n_estimators=none", "--model", "{t}/m"], "n_estimators=None; expected"),
            (["fit", "regression", "--train", "{f}/train.txt", "--set", "alpha=none", "--model", "{t}/m"], "alpha=None; expected"),
            (["fit", "singlefeature", "--train", "{f}/train.txt", "--set", "feature=[1]", "--model", "{t}/m"], "feature=[1]; expected"),
            (["fit", "adarank", "--train", "{f}/train.txt", "--measure", "err(max=nan)", "--model", "{t}/m"], "whole number"),
            *(
                (["fit", ranker, "--train", "{f}/train.txt", "--set", setting, "--model", "{t}/m"], message)
                for ranker, setting, message in TREES
            ),
            (["nonsense"], "No such command"),
            (["fit", "--bogus"], "No such option"),
        ],
    )  # fmt: skip
    def test_one_line_and_status_2(self, folder, tmp_path, capsys, arguments, message):
        (tmp_path / "few").write_text("1\n2\n")
        (tmp_path / "words").write_text("1\nhello\n")
        (tmp_path / "nan").write_text("nan\n")
        (tmp_path / "wide.txt").write_text("0 qid:1 9:1\n")
        (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1.5\n" * 999)[:20])
        before = sorted(tmp_path.iterdir())
        status, out, err = run(capsys, *(a.format(f=folder, t=tmp_path) for a in arguments))
        assert (status, out) == (2, "")
        assert err.startswith("rankwright: ")
        assert message in err
        assert err.count("\n") == 1
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make files")
    def test_unwritable_for_everybody(self, folder, capsys):
        arguments = ["--train", folder / "train.txt", "--model", "/proc/self/model.json"]
        status, out, err = run(capsys, "fit", "regression", *arguments)
        assert (status, out) == (2, "")
        assert err.startswith("rankwright: /proc/")
        assert "/model.json: " in err
        assert err.count("\n") == 1

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind the superuser")
    def test_unwritable_folder(self, folder, tmp_path, capsys):
        tmp_path.chmod(0o500)
        arguments = ["--model", folder / "model.json", "--data", folder / "test.txt", "--out", tmp_path / "s"]
        status, _, err = run(capsys, "predict", *arguments)
        tmp_path.chmod(0o700)
        assert status == 2
        assert "Permission denied" in err

    def test_an_error_of_the_system_without_a_file_names_none(self, capsys, monkeypatch):
        def full(ranker):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cli.catalogue, "list_parameters", full)
        assert cli.run(["rankers"]) == 2
        assert capsys.readouterr().err == "rankwright: [Errno 28] No space left on device\n"

    def test_our_own_errors_are_not_hidden(self, capsys, monkeypatch):
        def broken(ranker):
            raise RuntimeError("a bug")

        monkeypatch.setattr(cli.catalogue, "list_parameters", broken)
        with pytest.raises(RuntimeError, match="a bug"):
            cli.run(["rankers"])

    def test_progress_goes_to_a_terminal_only(self, folder, capsys, monkeypatch, tmp_path):
        _, _, err = run(capsys, "fit", "adarank", "--train", folder / "train.txt", "--model", tmp_path / "m")
        assert err == ""
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        _, _, err = run(capsys, "fit", "adarank", "--train", folder / "train.txt", "--model", tmp_path / "m")
        assert "rounds" in err


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class TestStarting:
    def test_import_is_lazy(self):
        heavy = "{'numpy', 'numba', 'sklearn', 'scipy', 'lightgbm', 'torch', 'distributed', 'pandas', 'rich'}"
        assert python(f"import rankwright, sys; print(sorted({heavy} & set(sys.modules)))") == "[]"

    def test_evaluating_needs_no_scikit_learn(self):
        """It takes longer to import than the evaluation itself."""
        assert (
            python("import rankwright as rw, sys; rw.evaluate, rw.read_letor; print('sklearn' in sys.modules)")
            == "False"
        )

    def test_training_needs_no_optional_package_and_no_lightgbm(self):
        code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"lightgbm", "torch", "distributed", "dask", "pandas", "polars", "onnx"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import rankwright as rw
q = rw.make_queries(20, random_state=0)
print(all(r(measure="map").fit(q).score(q) > 0.2 for r in (rw.AdaRank, rw.Regression, rw.SingleFeature)))
try:
    rw.evaluate(q.y, q, "map").to_pandas()
except ImportError as error:
    print(error)
"""
        assert python(code).splitlines() == [
            "True",
            "this needs pandas; install it with: pip install 'rankwright[pandas]'",
        ]

    def test_a_second_process_compiles_nothing(self, folder):
        code = f"""
import importlib, pkgutil, rankwright as rw, rankwright.kernels
train = rw.read_letor({str(folder / "train.txt")!r})
model = rw.AdaRank(measure="map", n_estimators=3).fit(train, valid=train)
rw.evaluate(model, train, "ndcg@10,map,err")
rw.SingleFeature().fit(train); rw.Regression().fit(train)
misses = 0
for info in pkgutil.iter_modules(rankwright.kernels.__path__):
    for name, value in vars(importlib.import_module("rankwright.kernels." + info.name)).items():
        if hasattr(value, "stats"):
            misses += sum(value.stats.cache_misses.values())
print(misses)
"""
        python(code)
        # Tests at the same time compile, too, and what one process has just noted another may not have seen.
        assert any(python(code) == "0" for _ in range(2))

    def test_public_names_exist(self):
        for name in rw.__all__:
            assert getattr(rw, name) is not None
        assert set(rw.__all__) <= set(dir(rw))
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = rw.nothing

    def test_python_m(self):
        done = subprocess.run([sys.executable, "-m", "rankwright", "nope"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (2, "rankwright: No such command 'nope' (see rankwright --help)\n")
