"""TREC runs on the command line: trec_eval's figures to the last digit, several runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

import rankwright as rw
from rankwright import cli

NAMES = {
    "map": "map", "ap@5": "map_cut_5", "ndcg": "ndcg", "ndcg@3": "ndcg_cut_3", "ndcg@10": "ndcg_cut_10",
    "p@5": "P_5", "recall@5": "recall_5", "mrr": "recip_rank",
}  # fmt: skip


def draw(seed: int):
    """Return judgments and two runs with ties, missing documents, unjudged queries, graded and negative judgments."""
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(30)]

    def choose(least: int, most: int):
        return rng.choice(documents, int(rng.integers(least, most)), replace=False).tolist()

    qrels = {f"q{i}": {d: int(rng.integers(-1, 4)) for d in choose(1, 25)} for i in range(25)}
    runs = []
    for lost in (3, 9):
        queries = [f"q{i}" for i in range(lost, 28)]  # some are not answered, some are not judged
        runs.append({q: {d: float(rng.integers(0, 8)) / 4 for d in choose(1, 28)} for q in queries})
    return qrels, runs


def write(folder, qrels, runs):
    lines = [f"{q} 0 {d} {g}" for q, grades in qrels.items() for d, g in grades.items()]
    (folder / "qrels").write_text("\n".join(lines) + "\n")
    for name, run in zip("ab", runs, strict=True):
        lines = [f"{q} Q0 {d} 1 {s!r} x" for q, scores in run.items() for d, s in scores.items()]
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    return ["--qrels", str(folder / "qrels"), "--run", str(folder / "a.run"), "--run", f"b={folder / 'b.run'}"]


@pytest.mark.parametrize("seed", range(6))
def test_every_figure_is_that_of_trec_eval(tmp_path, capsys, seed):
    qrels, runs = draw(seed)
    said = write(tmp_path, qrels, runs)
    measures = [f"{name}(dialect=trec_eval)" for name in NAMES]
    values = str(tmp_path / "values.tsv")
    assert cli.run(["evaluate", *said, "--measures", ",".join(measures), "--json", "--per-query", values]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    rows = [line.split("\t") for line in Path(values).read_text().splitlines()]
    for name, run in zip("ab", runs, strict=True):
        expected = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values())).evaluate(run)
        assert found[name]["queries"] == len(expected)
        assert found[name]["unanswered"] == len(qrels.keys() - run.keys())
        assert found[name]["unjudged"] == len(run.keys() - qrels.keys())
        for ours, theirs in NAMES.items():
            mean = np.mean([each[theirs] for each in expected.values()])
            assert found[name]["means"][f"{ours}(dialect=trec_eval)"] == pytest.approx(mean, abs=1e-14)
        for run_name, query, *row in rows[1:]:
            if run_name == name:
                theirs = [expected[query][each] for each in NAMES.values()]
                assert [float(value) for value in row] == pytest.approx(theirs, abs=1e-15)


def test_runs_stand_side_by_side(tmp_path, capsys):
    said = write(tmp_path, *draw(0))
    assert cli.run(["evaluate", *said, "--measures", "map(dialect=trec_eval),p@5(dialect=trec_eval)"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["a", "b"]
    assert [line.split()[0] for line in lines] == [
        "map(dialect=trec_eval)", "p@5(dialect=trec_eval)", "queries", "unanswered", "unjudged"
    ]  # fmt: skip
    assert all(len(line.split()) == 3 for line in lines)
    assert lines[2].split()[1:] == ["22", "16"]


def test_comparison_has_tests_of_significance(tmp_path, capsys):
    qrels, runs = draw(1)
    said = write(tmp_path, qrels, runs)
    assert cli.run(["compare", *said, "--measures", "map(dialect=trec_eval)", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    evaluated = [pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run) for run in runs]
    answered = set(evaluated[0]) | set(evaluated[1])
    for name, each in zip("ab", evaluated, strict=True):  # a query that a run does not answer has the value 0
        mean = sum(values["map"] for values in each.values()) / len(answered)
        assert found["means"][name]["map(dialect=trec_eval)"] == pytest.approx(mean, abs=1e-14)
    [compared] = found["tests"]
    assert all(0 < p <= 1 for p in compared["p"].values())


def test_columns_have_no_meaning_for_runs(tmp_path, capsys):
    said = write(tmp_path, *draw(0))
    for command in ("evaluate", "compare"):
        assert cli.run([command, *said, "--qid", "q"]) == 2
        assert "expected no qid (--qid)" in capsys.readouterr().err


def test_python_has_the_same_figures(tmp_path):
    qrels, runs = draw(2)
    write(tmp_path, qrels, runs)
    found = rw.evaluate(tmp_path / "a.run", tmp_path / "qrels", "map(dialect=trec_eval)")
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(runs[0])
    assert found["map(dialect=trec_eval)"] == pytest.approx(np.mean([e["map"] for e in expected.values()]), abs=1e-14)
