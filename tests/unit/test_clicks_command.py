"""The command that makes training data of click logs."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import rankwright as rw
from rankwright import cli


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log of two rankers with few faults, and features."""
    folder = tmp_path_factory.mktemp("clicks")
    queries = rw.make_queries(20, n_docs=8, n_features=3, random_state=0)
    log = rw.simulate_clicks(
        queries, {"a": queries.X[:, 0], "b": queries.X[:, 2]}, n_sessions=2_000, n_positions=5, random_state=0
    )
    cell = np.repeat(np.arange(len(log.position)), log.n_shown)
    pair = log.cell_pair[cell]
    order = np.arange(len(cell)) - np.repeat(np.cumsum(log.n_shown) - log.n_shown, log.n_shown)
    frame = pd.DataFrame({"query": log.qid[log.pair_query[pair]], "docid": log.docid[pair]})
    frame["position"], frame["ranker"] = log.position[cell], np.array(log.rankers)[log.ranker[cell]]
    frame["clicked"] = (order < log.n_clicked[cell]).astype(int)
    frame.to_csv(folder / "log.csv", index=False)
    features = pd.DataFrame(queries.X, columns=["f0", "f1", "f2"])
    features.loc[3, "f1"] = np.nan
    features.assign(qid=queries.row_qid, docid=queries.docid).to_csv(folder / "features.csv", index=False)
    return folder


@pytest.fixture
def folder(files, tmp_path):
    return shutil.copytree(files, tmp_path / "copy")


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = cli.run(["clicks", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_training_data_of_every_format(folder, capsys):
    log = rw.read_clicks(folder / "log.csv", ranker="ranker", min_impressions=0)
    examination = rw.estimate_examination(log)
    expected = log.to_queries(folder / "features.csv", examination=examination)
    common = (folder / "log.csv", "--ranker", "ranker", "--features", folder / "features.csv", "--examination", "auto")
    for name in ("a.csv", "a.parquet", "a.rwq"):
        status, out, _ = run(capsys, *common, "--out", folder / name)
        assert status == 0
        assert "harvesting" in out
        assert "grades by coec" in out
        assert f"{folder / name}: 20 queries, {expected.n_docs} documents, 3 features" in out
        made = rw.read(folder / name)
        assert made.y.tolist() == expected.y.tolist()
        assert made.X.tobytes() == expected.X.tobytes()
        assert made.docid.tolist() == expected.docid.tolist()
        assert made.row_qid.tolist() == expected.row_qid.tolist()
    assert made.clicks.n_clicked.tolist() == expected.clicks.n_clicked.tolist()
    assert cli.run(["fit", "regression", "--train", str(folder / "a.csv"), "--model", str(folder / "m.json")]) == 0


def test_the_examination_is_estimated_given_or_read(folder, capsys):
    status, out, _ = run(
        capsys, folder / "log.csv", "--examination", "harvesting", "--examination-out", folder / "e.json", "--json"
    )
    assert status == 0
    found = json.loads(out)["examination"]
    assert json.loads((folder / "e.json").read_text()) == found
    status, out, _ = run(capsys, folder / "log.csv", "--examination", folder / "e.json", "--json")
    assert json.loads(out)["examination"] == found
    status, out, _ = run(capsys, folder / "log.csv", "--examination", "0.5", "--json", "--cuts", "none")
    assert json.loads(out)["examination"]["examination"] == pytest.approx([k**-0.5 for k in range(1, 6)])
    content = json.loads(out)
    assert content["n_shown"] == sum(content["shown_by_position"])
    assert sum(content["grades"]["n_documents"].values()) == content["n_documents"]
    status, out, _ = run(capsys, folder / "log.csv", "--examination", "power", "--json")
    assert json.loads(out)["examination"]["method"] == "power"
    assert json.loads(out)["examination"]["examination"][1] == pytest.approx(0.5, abs=0.1)
    status, out, _ = run(capsys, folder / "log.csv", "--examination", "em", "--features", folder / "features.csv",
                         "--out", folder / "a.csv", "--max-position", "3", "--cuts", "4")  # fmt: skip
    assert (status, out.count("%")) == (0, 1)
    assert sorted(set(rw.read(folder / "a.csv").y)) == [0, 1, 2, 3]


def test_findings_are_printed_once(folder, capsys):
    frame = pd.read_csv(folder / "log.csv").assign(position=lambda f: f["position"].astype(float))
    frame.loc[:4, "position"] = np.nan
    frame.to_csv(folder / "bad.csv", index=False)
    status, out, err = run(capsys, folder / "bad.csv")
    assert status == 0
    assert "missing values: 5 of" in out
    assert "missing" not in err
    assert run(capsys, folder / "bad.csv", "--missing", "error")[0] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--out", "{}/a.csv"], "expected --out and --features together"),
        (["--features", "{}/features.csv", "--out", "{}/a.txt"], "ends in .csv, .parquet or .rwq"),
        (["--features", "{}/features.csv", "--out", "{}/log.csv"], "one of the files that are read"),
        (["--features", "{}/log.csv", "--out", "{}/a.csv"], "Leave columns out with ignore= (--ignore)"),
        (["--features", "{}/log.csv", "--out", "{}/a.csv", "--ignore", "ranker"], "rows of query '20'"),
        (["--features", "{}/none.csv", "--out", "{}/a.csv"], "No such file"),
        (["--examination-out", "{}/e.json"], "expected --examination, such as auto"),
        (["--examination", "steep"], "expected auto, swaps, harvesting, em, power, a number eta, or a file"),
        (["--examination", "{}/log.csv"], "no JSON"),
        (["--examination", "swaps"], "names no positions in random order"),
        (["--cuts", "a,b"], "--cuts 'a,b': expected numbers"),
        (["--cuts", "2,1"], "expected rising numbers"),
        (["--grades", "coecs"], "did you mean coec"),
        (["--position", "rank"], "no column 'rank' for position= (--position)"),
        (["--first-position", "3"], "expected 0 or 1"),
        (["--ubi-queries", "{}/log.csv"], "no JSON"),
    ],
)
def test_errors_are_one_line_and_write_nothing(folder, capsys, options, said):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    status, out, err = run(capsys, folder / "log.csv", *(text.replace("{}", str(folder)) for text in options))
    lines = [line for line in err.splitlines() if "query id" not in line]
    assert (status, out, len(lines)) == (2, "", 1), err
    assert said in lines[0]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_feature_with_the_name_of_an_id_is_refused(folder):
    queries = rw.Queries.from_arrays([[1.0]], [1], [1], features=["label"])
    from rankwright.data.table_writing import write_table

    with pytest.raises(rw.InputError, match="a feature is called 'label'"):
        write_table(queries, folder / "a.csv")
    kinds = rw.Queries.from_arrays([[1.0], [0.0], [np.nan]], [1, 0, 2], ["a", "a", "b"], features=["kind"],
                                   categories=[("new", "old")])  # fmt: skip
    for name in ("a.csv", "a.parquet"):
        write_table(kinds, folder / name)
        again = rw.read(folder / name, categorical=["kind"])
        assert again.categories == (("new", "old"),)
        assert np.array_equal(again.X, kinds.X, equal_nan=True)
