"""The options that name columns: declared once, the same on every command that reads documents."""

from __future__ import annotations

import logging

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.cli.column_options import add_column_options
from rankwright.data.column_roles import ColumnRoles

OPTIONS = ["--qid", "--label", "--docid", "--weight", "--doc-weight", "--ignore", "--features", "--categorical"]


def collect(**given) -> ColumnRoles:
    """Return the roles that a command gets for values of its options."""
    found = []
    command = add_column_options(lambda columns: found.append(columns))
    empty = {"qid", "label", "docid", "weight", "doc_weight", "ignore", "features", "categorical"}
    command(**dict.fromkeys(empty) | given)
    return found[0]


def test_lists_are_separated_by_commas_and_repeated():
    assert collect() == ColumnRoles()
    assert collect(qid="q", ignore=["a,b", "c*"], features=['"x,y", z']) == ColumnRoles(
        qid="q", ignore=("a", "b", "c*"), features=("x,y", "z")
    )


@pytest.mark.parametrize("text", ["", "a,,b", ","])
def test_an_empty_name_is_an_error(text):
    with pytest.raises(rw.InputError, match=r"--ignore .*: expected names of columns, separated by commas"):
        collect(ignore=[text])


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "compare", "experiment"])
def test_every_command_that_reads_documents_has_them(command, capsys):
    assert cli.run([command, "--help"]) == 0
    printed = capsys.readouterr().out
    for option in OPTIONS:
        assert f"{option} NAME" in printed


@pytest.mark.parametrize("option", OPTIONS)
def test_letor_text_has_no_columns(option, tmp_path, capsys):
    rw.write_letor(rw.make_queries(3, random_state=0), tmp_path / "a.txt")
    said = ["fit", "regression", "--train", str(tmp_path / "a.txt"), "--model", str(tmp_path / "m"), option, "x"]
    assert cli.run(said) == 2
    role = option.removeprefix("--").replace("-", "_")
    expected = f"a.txt: LETOR text has no columns; expected no {role} ({option}), which names columns of tables"
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_a_model_knows_its_features(tmp_path, capsys):
    queries = rw.make_queries(3, random_state=0)
    rw.write_letor(queries, tmp_path / "a.txt")
    rw.save(rw.Regression().fit(queries), tmp_path / "m.json")
    said = ["--model", tmp_path / "m.json", "--data", tmp_path / "a.txt", "--features", "x"]
    for command in (["predict", *said, "--out", tmp_path / "s"], ["evaluate", *said], ["compare", *said]):
        assert cli.run([str(each) for each in command]) == 2
        assert "features (--features) with a model" in capsys.readouterr().err


def test_what_is_logged_is_a_line_on_standard_error(tmp_path, capsys, monkeypatch):
    rw.write_letor(rw.make_queries(3, random_state=0), tmp_path / "a.txt")
    logger = logging.getLogger("rankwright")

    def read(*paths, **options):
        for _ in range(2):
            logger.info("a.csv: qid is column query")
        raise rw.InputError("end")

    monkeypatch.setattr("rankwright.data.reading.open_source", read)
    said = ["fit", "regression", "--train", str(tmp_path / "a.txt"), "--model", str(tmp_path / "m")]
    assert cli.run(said) == 2
    assert capsys.readouterr().err == "rankwright: a.csv: qid is column query\nrankwright: end\n"
    assert logger.level == logging.NOTSET
    assert logger.handlers == []
