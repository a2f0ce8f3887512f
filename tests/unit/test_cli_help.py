"""The help of the command line, the description of rankers, and what goes to standard error."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.basics import progress
from rankwright.cli.app import make_command, progress_bar
from rankwright.cli.parameter_table import describe_parameters
from rankwright.rankers import RANKERS

COMMANDS = sorted(make_command().commands)


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = cli.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its model, a TREC run, and files that are none of these."""
    folder = tmp_path_factory.mktemp("help")
    (folder / "data.csv").write_text("query_id,grade,f\n" + "".join(f"{i // 3},{i % 3},{i % 3}\n" for i in range(12)))
    rw.save(rw.Regression().fit(rw.read(folder / "data.csv")), folder / "model.json")
    (folder / "run").write_text("1 Q0 a 1 2.0 x\n")
    (folder / "words").write_text("hello world\n")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_help_uses_metavars_that_people_know(capsys, command):
    status, out, err = run(capsys, command, "--help")
    assert (status, err) == (0, "")
    assert not re.search(r"[<{]|\b(TEXT|INTEGER|PATH\b.*required)", out.replace("PATH", "")), out
    for line in out.splitlines():
        found = re.match(r"  --([\w-]+)( \S+)?(  |$)", line)
        flags = {"json", "quiet", "help", "shift", "check", "negative", "drop-first", "allow-shift"}
        assert found is None or (found[2] is None) == (found[1] in flags), line


def test_metavars_say_what_kind_of_value(capsys):
    _, out, _ = run(capsys, "fit", "--help")
    for words in ("fit [OPTIONS] RANKER\n", "--model FILE ", "--set NAME=VALUE ", "--seed N ", "--measure MEASURE "):
        assert words in out
    _, out, _ = run(capsys, "convert", "--help")
    assert "convert [OPTIONS] FILE...\n" in out
    assert "--out DIR " in out
    _, out, _ = run(capsys, "experiment", "--help")
    assert "[SPEC]\n" in out


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"rankwright {rw.basics.version.__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    """The shell asks with its words in the environment; the answers are names of commands and of options."""
    for words, at, expected in (("rankwright eva", "1", "evaluate"), ("rankwright fit --mea", "2", "--measure")):
        asked = {"_RANKWRIGHT_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": at}
        asked |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        found = subprocess.run(
            [sys.executable, "-m", "rankwright"], env=os.environ | asked, capture_output=True, text=True, check=False
        )
        assert expected in found.stdout
        assert found.stderr == ""


class TestRankers:
    @pytest.mark.parametrize("ranker", RANKERS)
    def test_every_parameter_is_described(self, ranker):
        rows = describe_parameters(ranker)
        assert [row["name"] for row in rows if "." not in row["name"]] == ranker.parameter_names()
        assert all(row["type"] and len(row["meaning"].split()) > 2 for row in rows)
        assert not any("from 0" in row["meaning"] and "olumn" in row["meaning"] for row in rows)

    @pytest.mark.parametrize("width", [80, 120])
    def test_the_table_keeps_to_the_width_and_says_all(self, capsys, monkeypatch, width):
        monkeypatch.setenv("COLUMNS", str(width))
        for name in ("listnet", "direct-rank", "BoostedTrees"):
            status, out, err = run(capsys, "rankers", name)
            assert (status, err) == (0, "")
            assert max(map(len, out.splitlines())) <= width
            _, text, _ = run(capsys, "rankers", name, "--json")
            described = json.loads(text)
            words = out.split()
            for row in described["parameters"]:
                assert row["name"] in words
                assert all(word in words for word in row["meaning"].split())

    def test_json_has_defaults_and_options(self, capsys):
        _, out, _ = run(capsys, "rankers", "singlefeature", "--json")
        found = {row["name"]: row for row in json.loads(out)["parameters"]}
        assert found["measure"]["default"] == "ndcg@10"
        assert found["measure"]["option"] == "--measure"
        assert found["feature"]["option"] == "--set feature="
        assert "its number, from 1;" in found["feature"]["meaning"]

    def test_a_wrong_name_gets_a_hint(self, capsys):
        status, out, err = run(capsys, "rankers", "lambdamrt")
        assert (status, out) == (2, "")
        assert "did you mean lambdamart?" in err


class TestStandardError:
    def test_notes_are_on_standard_error(self, capsys, folder, tmp_path):
        arguments = ("export", folder / "model.json", "--to", "solr", "--out", tmp_path / "x")
        status, out, err = run(capsys, *arguments)
        assert status == 0
        assert all(line.startswith(str(tmp_path)) for line in out.splitlines())
        assert "rankwright: note: " in err

    @pytest.mark.parametrize("first", [True, False])
    def test_quiet_leaves_notes_out(self, capsys, folder, tmp_path, first):
        arguments = ["fit", "regression", "--train", folder / "data.csv", "--model", tmp_path / "m"]
        assert "query id 'query_id'" in run(capsys, *arguments)[2]
        status, out, err = run(capsys, *(["--quiet", *arguments] if first else [*arguments, "--quiet"]))
        assert (status, err) == (0, "")
        assert "model: " in out
        assert "query id 'query_id'" in run(capsys, *arguments)[2]

    def test_quiet_keeps_warnings_and_errors(self, capsys, folder, tmp_path):
        (tmp_path / "flat.csv").write_text("qid,label,f\n1,1,2\n1,1,3\n")
        fit = ("fit", "regression", "--quiet", "--model", tmp_path / "m", "--train")
        assert "warning: Regression learned no ranking" in run(capsys, *fit, tmp_path / "flat.csv")[2]
        assert run(capsys, *fit, folder / "words")[0] == 2

    def test_bars_show_the_time_left(self, monkeypatch):
        screen = io.StringIO()
        screen.isatty = lambda: True
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        with progress_bar():
            for _ in progress.track(range(4), "rounds", 4):
                time.sleep(0.12)
        text = re.sub(r"\x1b\[[\d;?]*\w", "", screen.getvalue())
        assert re.search(r"rounds .* [123]/4 0:00:0\d left 0:00:0\d", text)


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        (["fit", "adarank", "--train", "words", "--model", "m"], "as in the LETOR line"),
        (["fit", "adarank", "--train", "run", "--model", "m"], "are for --run and --qrels"),
        (["fit", "adarank", "--train", "model.json", "--model", "m"], "expected a JSON object on each line"),
        (["fit", "autoranker", "--train", "data.csv", "--model", "m", "--set", "families=linear,x"], "'stumps'"),
        (["predict", "--model", "words", "--data", "data.csv", "--out", "o"], "expected a saved model"),
        (["evaluate", "--data", "data.csv", "--model", "model.json", "--measures", ""], "names such as ndcg@10"),
        (["evaluate", "--data", "data.csv", "--scores", "run"], "expected one score per line"),
        (["evaluate", "--qrels", "run", "--run", "run"], "expected qrels (qid iteration docid grade)"),
        (["simulate", "bounds", "--out", "words"], "words: a file; expected a folder"),
        (["fit", "adarank", "--train", "data.csv", "--model", "m", "--set", "n_estimators"], "expected NAME=VALUE"),
    ],
)
def test_wrong_formats_are_answered_with_the_way_out(capsys, monkeypatch, folder, arguments, way_out):
    monkeypatch.chdir(folder)
    status, _, err = run(capsys, *arguments, "--quiet")
    assert status == 2
    assert err.count("\n") == 1
    assert way_out in err


def test_a_list_of_names_is_a_value(capsys, folder, tmp_path):
    settings = ("--set", "families=linear,stumps", "--set", "max_seconds=0", "--quiet")
    model = tmp_path / "m.json"
    assert run(capsys, "fit", "autoranker", "--train", folder / "data.csv", "--model", model, *settings)[0] == 0
    assert rw.load(model).params["families"] == ["linear", "stumps"]


def test_one_method_has_no_table_of_pairs(capsys, monkeypatch, folder):
    monkeypatch.chdir(folder)
    _, out, _ = run(capsys, "compare", "--data", "data.csv", "--model", "model.json")
    assert "mean rank" in out
    assert "second" not in out
