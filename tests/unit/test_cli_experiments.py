"""The commands that compare: experiment, report, compare, reproduce, demo."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.experiments import contents

import rankwright as rw
from rankwright import cli
from rankwright.cli import demo
from rankwright.rankers.blend import blend


def run(capsys, *arguments) -> tuple[int, str, str]:
    try:
        status = cli.run([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "all.txt"
    rw.write_letor(rw.make_queries(50, n_docs=10, n_features=6, noise=1.5, random_state=8), path)
    return path


class TestExperiment:
    def test_from_options(self, file, capsys, tmp_path):
        arguments = ["--data", file, "--rankers", "regression, single-feature", "--measure", "map", "--folds", 3]
        out = tmp_path / "out"
        status, told, err = run(capsys, "experiment", *arguments, "--measures", "map,ndcg@5(gain=linear,empty=skip)",
                                "--seeds", "0,1", "--out", out, "--workers", "threads:2")  # fmt: skip
        assert (status, err) == (0, "")
        assert "Regression" in told
        assert f"report: {out / 'report.html'}" in told
        results = rw.read_results(out)
        assert results.measures == ("map", "ndcg@5(gain=linear,empty=skip)")
        assert len(results.tables["trials"]["method"]) == 3 * (10 + 1)
        assert f"{results.means()[0]:.4f}" in told
        assert sorted(path.name for path in (out / "tables").iterdir()) == sorted(
            f"{name}.{ending}" for name in ("results", "comparisons") for ending in ("csv", "md", "tex")
        )
        before = (out / "report.html").read_bytes()
        (out / "report.html").unlink()
        status, told, _ = run(capsys, "report", out)
        assert status == 0
        assert (out / "report.html").read_bytes() == before

    def test_from_a_spec_in_processes(self, file, capsys, tmp_path):
        (tmp_path / "spec.toml").write_text(f'[data]\nfile = "{file}"\nn_folds = 3\n[[methods]]\nranker = "adarank"\n')
        status, _, err = run(capsys, "experiment", tmp_path / "spec.toml", "--out", tmp_path / "a", "--workers", 1)
        assert (status, err) == (0, "")
        run(capsys, "experiment", tmp_path / "spec.toml", "--out", tmp_path / "b", "--workers", "threads:1")
        assert contents(tmp_path / "a") == contents(tmp_path / "b")

    def test_trees(self, file, capsys, tmp_path):
        """Tables in a spec, as LightGBM's parameters; the page; and what is finished is not run again."""
        (tmp_path / "spec.toml").write_text(
            f'[data]\nfile = "{file}"\nn_folds = 3\n'
            '[[methods]]\nranker = "lambdamart"\ngrid = { num_leaves = [2, 6] }\n'
            "[methods.set]\nn_estimators = 4\nmin_child_samples = 3\n[methods.set.lightgbm_params]\nlambda_l2 = 1.0\nmax_depth = 3\n"
            '[[methods]]\nranker = "directrank-trees"\n'
            "set = { n_estimators = 4, min_child_samples = 3, weight_range = [0.2, 0.4], polish_rounds = 1, lightgbm_params.lambda_l1 = 0.1 }\n"
        )
        arguments = ("experiment", tmp_path / "spec.toml", "--out", tmp_path / "out", "--workers", "threads:2")
        status, told, err = run(capsys, *arguments)
        assert (status, err) == (0, "")
        assert "LambdaMART" in told
        assert "DirectRankTrees" in told
        model = rw.read_trial_model(tmp_path / "out", "LambdaMART", fold=1)
        assert model.params["lightgbm_params"] == {"lambda_l2": 1.0, "max_depth": 3}
        assert len(model.scorer) <= 4
        page = (tmp_path / "out" / "report.html").read_bytes()
        before = contents(tmp_path / "out")
        assert run(capsys, *arguments)[:2] == (0, told)
        assert contents(tmp_path / "out") == before
        assert (tmp_path / "out" / "report.html").read_bytes() == page

    def test_a_failed_trial_is_said(self, file, capsys, tmp_path):
        (tmp_path / "spec.toml").write_text(
            f'[data]\nfile = "{file}"\nn_folds = 3\n[[methods]]\nranker = "regression"\n[[methods]]\nranker = "singlefeature"\n'
            "set = { feature = 999 }\n"  # which is known when the data are
        )
        arguments = (tmp_path / "spec.toml", "--out", tmp_path / "out", "--workers", "threads:1")
        status, told, err = run(capsys, "experiment", *arguments)
        assert status == 1
        assert "Regression" in told
        assert err.startswith(
            "rankwright: 3 of 6 trials failed, such as SingleFeature on fold 1: feature: there is no feature 999"
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "Missing option '--out'"),
            (["--out", "{t}/o"], "expected a spec, or --data and --rankers"),
            (["{t}/no.toml", "--out", "{t}/o"], "no.toml: No such file"),
            (["{t}/no.toml", "--out", "{t}/o", "--measure", "map"], "--measure and a spec; expected one or the other"),
            (["--out", "{t}/o", "--rankers", "adarank"], "expected --data, or --qrels with one --run or several"),
            (["--out", "{t}/o", "--rankers", "adarnk", "--data", "{f}"], "unknown ranker 'adarnk'"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{t}/nothing"], "nothing: No such file"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{t}"], "no folds"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{t}", "--folds", "3"], "is a folder of folds already"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--folds", "2"], "expected at least 3"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--folds", "99"], "50 queries cannot make 99"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", "a"], "--seeds 'a': expected whole"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", "1_000"], "--seeds '1_000': expected whole"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", "٣"], "--seeds '٣': expected whole"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", ""], "--seeds '': expected whole"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", "-1"], "--seeds '-1': expected whole numbers from 0 up"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", "9" * 30], "expected whole"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--seeds", "9" * 15], "seeds=999999999999999; expected a whole number"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--measures", ","], "--measures ',': no measure"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--folds", "1000000"], "queries cannot make 1000000 folds"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--workers", "many"], "--workers many: expected"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--workers", "0"], "0 workers"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--workers", "no://x"], "no Dask scheduler answers"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--folds", "0"], "0 folds"),
            (["--out", "{t}/o", "--rankers", "adarank", "--data", "{f}", "--measures", ","], "no measure"),
            (["--out", "{f}", "--rankers", "adarank", "--data", "{f}"], "one of the files that are read"),
            (["--out", "/dev/null", "--rankers", "adarank", "--data", "{f}"], "not a folder"),
            (["--out", "/proc/self/o", "--rankers", "adarank", "--data", "{f}"], "/proc/self/o: No such file"),
        ],
    )  # fmt: skip
    def test_mistakes(self, file, capsys, tmp_path, arguments, message):
        filled = [argument.format(f=file, t=tmp_path) for argument in arguments]
        status, out, err = run(capsys, "experiment", *filled)
        assert (status, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
        assert "Traceback" not in err
        if "workers" not in message:
            assert not (tmp_path / "o").exists()

    def test_an_interruption_keeps_what_is_finished(self, file, tmp_path):
        spec = f'[data]\nfile = "{file}"\n[[methods]]\nranker = "regression"\nsearch = {{ n_candidates = 500, alpha = {{ log_uniform = [0.1, 10] }} }}\n'
        (tmp_path / "spec.toml").write_text(spec)
        command = [sys.executable, "-m", "rankwright", "experiment", "spec.toml", "--out", "out", "--workers", "1"]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts)
        while _trials(tmp_path / "out") < 3:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert err == "rankwright: interrupted; finished trials are kept in out: run the experiment again to continue\n"
        assert 3 <= _trials(tmp_path / "out") < 2_500

    @pytest.mark.skipif(os.name == "nt", reason="needs limits on the size of files")
    def test_a_disk_that_fills_up(self, file, tmp_path):
        (tmp_path / "spec.toml").write_text(f'[data]\nfile = "{file}"\n[[methods]]\nranker = "adarank"\n')
        command = [
            sys.executable,
            "-m",
            "rankwright",
            "experiment",
            "spec.toml",
            "--out",
            "out",
            "--workers",
            "threads:1",
        ]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

        full = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit, check=False)
        assert full.returncode == 2
        assert full.stderr.startswith("rankwright: ")
        assert "every trial that finished before is kept" in full.stderr
        assert full.stderr.count("\n") == 1
        assert 0 < _trials(tmp_path / "out") < 5
        experiment = rw.read_experiment(tmp_path / "spec.toml")
        assert len(rw.run_experiment(experiment, tmp_path / "out", rw.Serial()).tables["trials"]["method"]) == 5


def heed_interrupts() -> None:
    """Undo a shell's rule that commands in the background ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _trials(folder: Path) -> int:
    try:
        return len(rw.read_results(folder).tables["trials"]["method"])
    except rw.InputError:
        return 0


class TestReport:
    def test_mistakes(self, capsys, tmp_path):
        for folder, message in ((tmp_path / "no", "no results"), (tmp_path, "no results")):
            status, out, err = run(capsys, "report", folder)
            assert (status, out) == (2, "")
            assert message in err


class TestCompare:
    @pytest.fixture
    def scored(self, file, tmp_path):
        queries = rw.read_letor(file)
        rng = np.random.default_rng(0)
        scores = {
            name: queries.y + noise * rng.normal(size=queries.n_docs) for name, noise in (("good", 0.5), ("bad", 4))
        }
        for name, values in scores.items():
            (tmp_path / f"{name}.txt").write_text("".join(f"{value!r}\n" for value in values.tolist()))
        return queries, scores

    def test_means_tests_wins_and_losses(self, file, scored, capsys, tmp_path):
        queries, scores = scored
        arguments = ["--data", file, "--scores", tmp_path / "good.txt", "--scores", tmp_path / "bad.txt"]
        status, out, err = run(capsys, "compare", *arguments, "--measures", "map,ndcg@3")
        assert (status, err) == (0, "")
        found = {name: rw.evaluate(values, queries, "map,ndcg@3") for name, values in scores.items()}
        for name in scores:
            line = next(line for line in out.splitlines() if line.startswith(f"{name} "))
            assert f"{found[name]['map']:.4f}" in line
            assert f"{found[name]['ndcg@3']:.4f}" in line
        difference = found["bad"].per_query["map"] - found["good"].per_query["map"]
        line = next(line for line in out.splitlines() if line.startswith("good  ") and "bad" in line)
        words = line.replace("▼", " ").split()
        assert words[:3] == ["good", "bad", f"{difference.mean():+.4f}"]
        assert words[5:8] == [str(np.sum(difference > 0)), str(np.sum(difference == 0)), str(np.sum(difference < 0))]

    def test_json_and_report(self, file, scored, capsys, tmp_path):
        arguments = ["--data", file, "--scores", tmp_path / "good.txt", "--scores", tmp_path / "bad.txt", "--json"]
        _, out, err = run(capsys, "compare", *arguments, "--out", tmp_path / "report")
        found = json.loads(out)
        assert found["means"]["good"]["ndcg@10"] > found["means"]["bad"]["ndcg@10"]
        assert found["tests"][0]["p"]["t"] < 0.05
        assert str(tmp_path / "report" / "report.html") in err
        assert (tmp_path / "report" / "report.html").is_file()

    def test_models_too(self, file, capsys, tmp_path):
        rw.save(rw.Regression().fit(rw.read_letor(file)), tmp_path / "regression.json")
        rw.save(rw.SingleFeature().fit(rw.read_letor(file)), tmp_path / "single.json")
        status, out, _ = run(
            capsys,
            "compare",
            "--data",
            file,
            "--model",
            tmp_path / "regression.json",
            "--model",
            tmp_path / "single.json",
        )
        assert status == 0
        assert "regression  single" in " ".join(out.split()).replace("regression single", "regression  single")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "nothing to compare"),
            (["--scores", "{t}/good.txt", "--scores", "{t}/good.txt"], "given twice"),
            (["--scores", "{t}/no.txt"], "no.txt: No such file"),
            (["--scores", "{t}/good.txt", "--measures", "nope"], "unknown measure 'nope'"),
        ],
    )
    def test_mistakes(self, file, scored, capsys, tmp_path, arguments, message):
        status, out, err = run(capsys, "compare", "--data", file, *(a.format(t=tmp_path) for a in arguments))
        assert (status, out) == (2, "")
        assert message in err

    def test_the_report_of_an_experiment_is_not_replaced(self, file, scored, capsys, tmp_path):
        (tmp_path / "results.sqlite").touch()
        arguments = ["--data", file, "--scores", tmp_path / "good.txt", "--out", tmp_path]
        status, _, err = run(capsys, "compare", *arguments)
        assert status == 2
        assert "holds an experiment" in err

    def test_one_alone_has_nothing_to_be_tested_against(self, file, scored, capsys, tmp_path):
        status, out, _ = run(capsys, "compare", "--data", file, "--scores", tmp_path / "good.txt")
        assert status == 0
        assert "good" in out

    def test_scikit_learn_is_not_needed(self):
        code = "import sys; from rankwright.analysis import score_comparison; print('sklearn' in sys.modules)"
        assert (
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
        )


class TestReproduce:
    methods = ("--method", "Regression", "--method", "AdaRank on NDCG", "--method", "Best feature")

    @pytest.fixture
    def data(self, tmp_path):
        queries = rw.make_queries(40, n_docs=12, n_features=46, random_state=1)
        (tmp_path / "data" / "MQ2008").mkdir(parents=True)
        for part in range(5):
            rw.write_letor(
                queries.take(range(8 * part, 8 * part + 8)), tmp_path / "data" / "MQ2008" / f"S{part + 1}.txt"
            )
        return tmp_path / "data"

    def test_published_beside_ours(self, data, capsys, tmp_path):
        page = tmp_path / "page.md"
        arguments = ["--data", data, "--out", tmp_path / "out", "--workers", "threads:1", "--write", page]
        status, out, err = run(capsys, "reproduce", "mq2008", *self.methods, *arguments)
        assert (status, err) == (0, "")
        results = rw.read_results(tmp_path / "out" / "mq2008")
        ours = results.means("ndcg@10")[0]
        line = next(line for line in out.splitlines() if line.startswith("Regression  ndcg@10  "))
        assert line.split()[2:5] == ["0.4935", f"{ours:.4f}", f"{ours - 0.4935:+.4f}"]
        assert float(line.split()[5]) == pytest.approx(results.errors("ndcg@10")[0], abs=5e-5)
        assert "Paired t-tests on ndcg@1(dialect=letor4)" in out
        assert f"| {ours:.4f} | {ours - 0.4935:+.4f} |" in page.read_text()

    def test_a_failed_fold_is_told_and_nothing_is_written(self, capsys, tmp_path):
        queries = rw.make_queries(30, n_docs=12, n_features=46, random_state=1)
        for fold in range(1, 6):
            folder = tmp_path / "MQ2008" / f"Fold{fold}"
            folder.mkdir(parents=True)
            for name, part in zip(("train", "vali", "test"), rw.split_folds(queries, 5, 0)[fold - 1], strict=True):
                rw.write_letor(part, folder / f"{name}.txt")
        (tmp_path / "MQ2008" / "Fold2" / "test.txt").write_text("damaged\n")
        page = tmp_path / "page.md"
        arguments = ["--data", tmp_path, "--out", tmp_path / "out", "--workers", "threads:1", "--write", page]
        status, out, err = run(capsys, "reproduce", "mq2008", *self.methods, *arguments)
        assert (status, out) == (1, "")
        assert "trials failed, such as Regression on fold 2: " in err
        assert not page.exists()

    def test_failures_are_told(self, data, capsys, tmp_path):
        (data / "MQ2008" / "S2.txt").write_text("damaged\n")
        arguments = [
            "--data",
            data,
            "--out",
            tmp_path / "out",
            "--workers",
            "threads:1",
            "--write",
            tmp_path / "page.md",
        ]
        status, _, err = run(capsys, "reproduce", "mq2008", *self.methods, *arguments)
        assert status == 2  # every fold has the part
        assert "no trial could be run" in err
        assert not (tmp_path / "page.md").exists()

    def test_the_error_is_that_of_a_mean_of_means(self):
        rng = np.random.default_rng(0)
        fold = np.repeat([1, 2], [3, 5])
        draws = rng.normal(size=(4000, 8)) * np.array([1, 1, 1, 2, 2, 2, 2, 2])
        queries = {"fold": fold, "qid": np.arange(8), "weight": np.ones(8)}
        errors, means = [], []
        for draw in draws:
            values = {"method": np.zeros(8, int), "seed": np.zeros(8, int), "query": np.arange(8), "m": draw}
            results = rw.Results("x", "m", ("m",), ("a",), {"queries": queries, "values": values})
            errors.append(results.errors()[0] ** 2)
            means.append(results.means()[0])
        assert np.mean(errors) == pytest.approx(np.var(means), rel=0.1)

    def test_mistakes(self, data, capsys, tmp_path):
        for arguments, message in (
            (["mq2009", "--data", data], "unknown reproduction 'mq2009'; did you mean mq2008?"),
            (
                ["ohsumed", "--data", data],
                "no folder OHSUMED/QueryLevelNorm or QueryLevelNorm or OHSUMED; expected Fold1",
            ),
            (["mq2008", "ohsumed", "--data", data / "MQ2008"], "no folder MQ2008; expected Fold1 to Fold5"),
            (["mq2008", "--data", data, "--method", "AdaRank"], "unknown method 'AdaRank' of mq2008; did you mean"),
            (["mq2008", "--data", data, "--write", tmp_path / "no" / "page.md"], "there is no folder"),
        ):
            status, out, err = run(capsys, "reproduce", *arguments, "--out", tmp_path / "out")
            assert (status, out) == (2, "")
            assert message in err
        assert not (tmp_path / "out").exists()


def test_the_demo_keeps_what_others_wrote(capsys, tmp_path):
    (tmp_path / "spec.toml").write_text("mine")
    status, _, err = run(capsys, "demo", "--out", tmp_path)
    assert status == 2
    assert "of the demo" in err
    assert (tmp_path / "spec.toml").read_text() == "mine"


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_demo(capsys, tmp_path, monkeypatch, whole):
    if not whole:  # fewer and shorter lists, fewer members, fewer trees, and no processes
        monkeypatch.setattr(demo, "SPEC", demo.SPEC.replace("n_estimators = 200", "n_estimators = 20"))
        make, run_experiment = demo.make_queries, demo.run_experiment
        fewer = {"n_docs": 15, "n_features": 10}
        monkeypatch.setattr(demo, "make_queries", lambda n, **options: make(60, **{**options, **fewer}))
        monkeypatch.setattr(demo, "run_experiment", lambda spec, out: run_experiment(spec, out, rw.Serial()))
        list_all = blend.list_default_candidates
        monkeypatch.setattr(blend, "list_default_candidates", lambda *given: list_all(*given)[:2])
    start = time.monotonic()
    status, out, err = run(capsys, "demo", "--out", tmp_path / "demo")
    assert (status, err) == (0, "")
    assert time.monotonic() - start < 120
    for name in ("MART", "LambdaMART on NDCG", "LambdaMART on MAP", "DirectRankTrees", "RankBoost", "Blend"):
        assert name in out
    assert "of the values are missing" in out
    results = rw.read_results(tmp_path / "demo")
    best = results.methods[int(np.argmax(results.means()))]
    if whole:  # no ranker alone is at its best on these data
        assert best == "Blend"
        assert "Blend against MART: +0.05" in out
    assert f"{results.means().max():.4f}*" in out
    assert rw.load(tmp_path / "demo" / "model.json").ranker in best
    assert (tmp_path / "demo" / "report.html").stat().st_size < 8e6
    command = out.splitlines()[-1].split()
    status, again, _ = run(capsys, *command[command.index("experiment") :])  # what it suggests works
    assert status == 0
    assert f"{results.means().max():.4f}*" in again
