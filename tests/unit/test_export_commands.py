"""The commands export and import: files, names, notes and errors of one line."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pytest
from tests.exported import N_FEATURES, NAMES, make_data, make_model

import rankwright as rw
from rankwright import cli
from rankwright.cli.export_commands import TARGET_NAMES
from rankwright.models.export.exporting import TARGETS
from rankwright.models.export.feature_names import read_names
from rankwright.models.export.parity import read_parity


@pytest.fixture
def folder(tmp_path):
    rw.save(make_model("trees with missing"), tmp_path / "m.json")
    return tmp_path


def run(capsys, *arguments):
    status = cli.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_export_prints_the_files_and_they_can_be_imported(folder, capsys):
    status, out, _ = run(capsys, "export", folder / "m.json", "--to", "lightgbm", "--out", folder / "m.txt")
    assert status == 0
    assert out.splitlines() == [str(folder / "m.txt"), str(folder / "m.txt.parity.json")]
    status, out, _ = run(capsys, "import", folder / "m.txt", "--model", folder / "back.json")
    assert (status, out.splitlines()[0]) == (0, f"LightGBM: trees of {N_FEATURES} features")
    X = read_parity(folder / "m.txt.parity.json").X
    assert np.array_equal(rw.load(folder / "back.json").predict(X), make_model("trees with missing").predict(X))


def test_names_and_data_are_used(folder, capsys):
    (folder / "names.csv").write_text("feature,name\nbm25,title_bm25\n\nage,days\n")
    X, y = make_data()
    data = rw.Queries.from_arrays(X, y, group=[len(X)])
    rw.write_letor(data, folder / "data.txt")
    arguments = ["--names", folder / "names.csv", "--data", folder / "data.txt", "--name", "best", "--json"]
    status, out, _ = run(capsys, "export", folder / "m.json", "--to", "lightgbm", "--out", folder / "m.txt", *arguments)
    assert status == 0
    note = "3 of 5 features are not in the names and keep theirs: clicks, ratio, kind"
    files = [str(folder / "m.txt"), str(folder / "m.txt.parity.json")]
    assert json.loads(out) == {"to": "lightgbm", "files": files, "notes": [note]}
    booster = lightgbm.Booster(model_file=str(folder / "m.txt"))
    assert booster.feature_name() == ["title_bm25", "clicks", "days", "ratio", "kind"]
    parity = read_parity(folder / "m.txt.parity.json")
    assert (parity.model_name, parity.names) == ("best", ("title_bm25", "clicks", "days", "ratio", "kind"))
    known = {row.tobytes() for row in X}
    assert sum(row.tobytes() in known for row in parity.X) >= 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm52,x\n", r"n\.csv:1: the model has no feature 'bm52'; did you mean bm25\?"),
        ("feature,name\nbm25,x\nbm25,y\n", r"n\.csv:3: a second name for the feature 'bm25'"),
        ("bm25,x\nage,x\n", r"n\.csv:2: the name 'x' is on line 1 too"),
        ("bm25\n", r"n\.csv:1: found 'bm25'; expected two values, feature,name"),
        ("bm25,\n", r"n\.csv:1: found 'bm25,'; expected two values"),
        ('bm25,"x\n', r"n\.csv:1: not CSV"),
        ("feature,name\n", r"n\.csv: no names"),
        ("", r"n\.csv: no names"),
        ("bm25,\xff\n", r"n\.csv:1: not UTF-8"),
    ],
)
def test_a_bad_file_of_names_is_refused_with_its_line(text, message, tmp_path):
    (tmp_path / "n.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(rw.InputError, match=message):
        read_names(tmp_path / "n.csv", NAMES)


def test_names_may_be_quoted_and_have_a_byte_order_mark(tmp_path):
    (tmp_path / "n.csv").write_text('\ufeffFeature, Name\nbm25,"bm25(title, 2)"\n', "utf-8")
    assert read_names(tmp_path / "n.csv", NAMES) == {"bm25": "bm25(title, 2)"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "lucene"], "target 'lucene'; there are onnx, c, "),
        (["--to", "lightgbm", "--out", "{}/none/m.txt"], "there is no folder"),
        (["--to", "lightgbm", "--out", "{}/m.json"], "one of the files that are read"),
        (["--to", "lightgbm", "--out", "{}/m.txt.gz"], "not compressed"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, capsys, arguments, message):
    before = sorted(folder.iterdir())
    given = [argument.format(folder) for argument in arguments]
    given += [] if "--out" in given else ["--out", str(folder / "m.txt")]
    status, out, err = run(capsys, "export", folder / "m.json", *given)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert sorted(folder.iterdir()) == before


def test_the_help_names_every_target(capsys):
    assert set(TARGETS) == set(TARGET_NAMES.replace(" or ", ", ").split(", "))
    status, out, _ = run(capsys, "export", "--help")
    assert status == 0
    assert all(target in out for target in TARGETS)
