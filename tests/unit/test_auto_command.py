"""The command ``auto``: what it writes and prints, wrong arguments, and signals that end it."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

import rankwright as rw
from rankwright import cli
from rankwright.basics import progress
from rankwright.basics.errors import CollectedWarning, DegenerateModelWarning, InterruptedFitWarning
from rankwright.cli.search_signals import SearchSignals
from rankwright.report.leaderboard_text import format_leaderboard_csv, format_stop_reason, name_candidates


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("auto")
    queries = rw.make_queries(40, n_docs=10, n_features=6, kind="mixed", missing=0.05, random_state=1)
    rw.write_letor(queries.take(range(30)), path / "train.txt")
    rw.write_letor(queries.take(range(30, 40)), path / "vali.txt")
    return path


@pytest.fixture(scope="module")
def fitted() -> rw.AutoRanker:
    queries = rw.make_queries(30, n_docs=10, n_features=6, kind="mixed", missing=0.05, random_state=1)
    return rw.AutoRanker(max_seconds=60.0).fit(queries)


def run(capsys, *arguments):
    status = cli.run([*map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_it_writes_a_model_a_leaderboard_and_a_page(folder, tmp_path, capsys):
    files = ["--train", folder / "train.txt", "--valid", folder / "vali.txt"]
    out = tmp_path / "new" / "folder"
    status, text, err = run(
        capsys, "auto", *files, "--minutes", 0.05, "--measure", "map", "--model", tmp_path / "best.json", "--out", out
    )
    assert status == 0
    notes = [line for line in err.splitlines() if "note: the time limit ended the search" not in line]
    assert [line.partition(": ")[2].partition(":")[0] for line in notes] == [
        "rankers that do not take these data are left out of the search"  # for missing values
    ]
    assert "regression, ranksvm" in notes[0]
    lines = text.splitlines()
    assert lines[0].split() == ["candidate", "fits", "map", "95%", "interval", "seconds", "weight"]
    assert lines[-1] == f"report: {out / 'report.html'}"
    assert lines[-2] == f"model: {tmp_path / 'best.json'}"
    assert lines[-3].startswith("time: ")
    assert "estimated on queries that neither its models nor its weights saw: map 0." in lines[-4]
    model = rw.load(tmp_path / "best.json")
    assert (model.ranker, str(model.measure)) == ("AutoRanker", "map")
    model.predict(rw.read_letor(folder / "vali.txt"))
    with (out / "leaderboard.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == lines.index("") - 2  # the head, and the line of the blend
    assert lines[1].startswith("the blend ")
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(1.0)
    page = (out / "report.html").read_text()
    for words in ("Automatic ranking", "Leaderboard", "Weights", "Validation queries joined", "How it was made"):
        assert words in page
    assert sorted(path.name for path in out.iterdir()) == ["leaderboard.csv", "report.html"]


def test_json(folder, tmp_path, capsys):
    arguments = ["--train", folder / "train.txt", "--minutes", 0.03, "--budget-ms", 1000, "--seed", 3, "--json"]
    status, text, _ = run(capsys, "auto", *arguments, "--model", tmp_path / "best.json")
    assert status == 0
    found = json.loads(text)
    assert found["measure"] == "ndcg@10"
    assert found["page"] is None
    estimate = found["estimate"]
    assert estimate["low"] < estimate["mean"] < estimate["high"]
    assert sum(row["weight"] for row in found["leaderboard"]) == pytest.approx(1.0)
    assert rw.load(tmp_path / "best.json").params["budget_ms"] == 1000


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--train": "{}/none.txt"}, "none.txt"),
        ({"--valid": "{}/none.txt"}, "none.txt"),
        ({"--minutes": "0"}, "--minutes 0: expected a number above 0"),
        ({"--minutes": "-1"}, "--minutes -1: expected a number above 0"),
        ({"--minutes": "nan"}, "--minutes nan: expected a number above 0"),
        ({"--minutes": "ten"}, "--minutes"),
        ({"--budget-ms": "0"}, "--budget-ms 0: expected a number above 0"),
        ({"--budget-ms": "-3"}, "--budget-ms -3: expected a number above 0"),
        ({"--families": "trees,forest"}, "families='forest'; expected 'linear' or 'stumps' or 'trees'"),
        ({"--measure": "ndgc"}, "did you mean ndcg"),
        ({"--model": "{}/no/best.json"}, "there is no folder"),
        ({"--model": "{}/train.txt"}, "one of the files that are read"),
        ({"--out": "{}/train.txt"}, "train.txt is not a folder; expected one to fill"),
        ({"--out": "{}/train.txt/below"}, "train.txt is not a folder; expected one to fill"),
    ],
)
def test_wrong_arguments_are_one_line_before_the_work(folder, tmp_path, capsys, changed, message):
    given = {"--train": "{}/train.txt", "--model": f"{tmp_path}/best.json", "--minutes": "5"} | changed
    arguments = [f"{name}={value.replace('{}', str(folder))}" for name, value in given.items()]
    start = time.monotonic()
    status, out, err = run(capsys, "auto", *arguments)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err
    assert time.monotonic() - start < 30
    assert not (tmp_path / "best.json").exists()


def test_a_folder_of_an_experiment_is_left_alone(folder, tmp_path, capsys):
    (tmp_path / "results.sqlite").write_bytes(b"")
    status, _, err = run(capsys, "auto", "--train", folder / "train.txt", "--model", tmp_path / "m", "--out", tmp_path)
    assert status == 2
    assert "holds an experiment" in err


def start_search(folder: Path, tmp_path: Path) -> subprocess.Popen[str]:
    """Start a search of ten minutes in a process; it prints a line after its first fits."""
    script = """
import sys
from rankwright import cli
from rankwright.basics import progress
n = 0
def tell(what, done, total):
    global n
    n += 1
    print("fitted", n, file=sys.stderr, flush=True)
with progress.listen(tell):
    sys.exit(cli.run(sys.argv[1:]))
"""
    arguments = ["auto", "--train", folder / "train.txt", "--minutes", "10", "--model", tmp_path / "best.json"]
    command = [sys.executable, "-c", script, *map(str, arguments), "--out", str(tmp_path / "out")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search_with_a_model(folder, tmp_path, number):
    process = start_search(folder, tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("fitted 5"):
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "interrupted: the search ends with the best of what was fitted so far" in err
    assert "note: the search was interrupted; the model is the best of what was fitted by then" in err
    assert "warning" not in err
    assert "The blend of" in out
    rw.load(tmp_path / "best.json").predict(rw.read_letor(folder / "train.txt"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["best.json", "leaderboard.csv", "out", "report.html"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_any_fit_leaves_nothing(folder, tmp_path, monkeypatch, capsys, number, status):
    """In this process: the signal comes while the data are read."""
    from rankwright.cli import auto_commands

    monkeypatch.setattr(auto_commands, "_read_sets", lambda *given: signal.raise_signal(number))
    before = signal.getsignal(number)
    found, out, err = run(capsys, "auto", "--train", folder / "train.txt", "--model", tmp_path / "best.json")
    assert (found, out, err) == (status, "", "rankwright: interrupted: nothing was written\n")
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is before


def test_a_signal_after_the_search_does_not_lose_its_model(folder, tmp_path, monkeypatch, capsys):
    finish = rw.AutoRanker._finish

    def interrupt(*given):
        signal.raise_signal(signal.SIGINT)
        return finish(*given)

    monkeypatch.setattr(rw.AutoRanker, "_finish", interrupt)
    arguments = ["--train", folder / "train.txt", "--minutes", 0.03, "--model", tmp_path / "best.json"]
    status, out, err = run(capsys, "auto", *arguments)
    assert status == 0
    assert "its model is on the way" in err
    assert "The blend of" in out
    assert (tmp_path / "best.json").exists()


def test_a_second_signal_ends_without_a_model(folder, tmp_path, monkeypatch, capsys):
    def interrupt(*given):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(rw.AutoRanker, "_finish", interrupt)
    arguments = ["--train", folder / "train.txt", "--minutes", 0.03, "--model", tmp_path / "best.json"]
    status, out, err = run(capsys, "auto", *arguments)
    assert (status, out) == (143, "")
    assert err.endswith("rankwright: interrupted: nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_the_page_is_written_keeps_the_model(folder, tmp_path, monkeypatch, capsys):
    from rankwright.cli import auto_commands

    def interrupt(*given):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(auto_commands, "_write_page", interrupt)
    files = ["--model", tmp_path / "best.json", "--out", tmp_path / "out"]
    status, _, err = run(capsys, "auto", "--train", folder / "train.txt", "--minutes", 0.03, *files)
    assert status == 0
    assert f"the model was written to {tmp_path / 'best.json'}, the rest was not" in err
    rw.load(tmp_path / "best.json")


def test_a_handler_knows_whether_its_search_is_running():
    def search(handler):
        handler(signal.SIGINT, sys._getframe())

    handler = SearchSignals(search.__code__, "fitting")
    handler.note_progress("fitting mart", 1, 2)
    with pytest.raises(KeyboardInterrupt):
        search(handler)
    handler = SearchSignals(search.__code__, "fitting")
    handler.note_progress("fitting mart", 1, 2)
    handler(signal.SIGINT, sys._getframe())  # outside of the search it is noted
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGTERM, sys._getframe())
    assert handler.status == 143
    with pytest.raises(KeyboardInterrupt):  # before anything was fitted
        SearchSignals(search.__code__, "fitting")(signal.SIGINT, sys._getframe())
    handler = SearchSignals(search.__code__, "fitting")
    handler.note_progress("rounds", 1, 100)  # of the first fit, which is not done
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, sys._getframe())


def test_both_listeners_hear_of_progress():
    first, second = [], []
    with progress.listen(lambda *given: first.append(given)), progress.listen_also(lambda *given: second.append(given)):
        progress.report("fitting", 1, 2)
    assert first == second == [("fitting", 1, 2)]
    with progress.listen_also(lambda *given: second.append(given)):
        progress.report("fitting", 2, 2)
    assert second[-1] == ("fitting", 2, 2)


def test_the_text_has_every_candidate_and_the_estimate(fitted):
    lines = rw.format_leaderboard(fitted).splitlines()
    assert lines.index("") == len(fitted.leaderboard_) + 2
    assert lines[1].startswith("the blend")
    assert f"{fitted.estimate_.mean:.4f}" in lines[1]
    for line, row in zip(lines[2:], fitted.leaderboard_, strict=False):
        assert f"{row['mean']:.4f}" in line
        assert line.startswith(row["member"])
        assert line.endswith("–" if row["weight"] == 0 else f"{row['weight']:.3f}")
    assert lines[-1].endswith(str(fitted.estimate_))
    rows = list(csv.DictReader(format_leaderboard_csv(fitted).splitlines()))
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in fitted.leaderboard_]
    with pytest.raises(rw.InputError, match="expected a fitted AutoRanker"):
        rw.format_leaderboard(rw.AutoRanker())


def test_candidates_have_different_names():
    rows = [{"member": "a", "candidate": text} for text in ("A(x=1, y=(2, 3))", "A(x=2, y=(2, 3))", "A()", "A()")]
    assert name_candidates(rows) == ["a, x=1, y=(2, 3)", "a, x=2, y=(2, 3)", "a", "a (2)"]
    assert name_candidates([{"member": "b", "candidate": "RandomForest"}]) == ["b"]


def test_only_endings_are_notes():
    sampled = "the models are those of a sample of 40,123 documents"
    for start, expected in (("stopped after max_seconds=9", f"a better blend: {sampled}"), ("none", sampled)):
        ending = format_stop_reason(CollectedWarning(ConvergenceWarning, f"{start}; {sampled}"))
        assert ending is not None
        assert ending.endswith(expected)
    assert "interrupted" in format_stop_reason(CollectedWarning(InterruptedFitWarning, "x"))
    assert format_stop_reason(CollectedWarning(DegenerateModelWarning, "x")) is None


def test_a_search_is_a_method_of_an_experiment(tmp_path):
    queries = rw.make_queries(40, n_docs=8, n_features=5, kind="mixed", missing=0.05, random_state=2)
    methods = [rw.AutoRanker(max_seconds=0.01), rw.MART(n_estimators=5)]
    experiment = rw.Experiment(rw.split_folds(queries, 3, random_state=0), methods)
    with pytest.warns(rw.TrialWarning, match="max_seconds=0.01"):
        results = rw.run_experiment(experiment, tmp_path, rw.Serial())
    assert list(results.methods) == ["AutoRanker", "MART"]
    assert 0.0 < results.means()[0] < 1.0
    model = rw.read_trial_model(tmp_path, "AutoRanker")
    assert model.ranker == "AutoRanker"
    assert len(model.predict(queries)) == queries.n_docs
