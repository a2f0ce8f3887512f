"""Columns of tables in the specs of experiments, and folds of tables."""

from __future__ import annotations

import pandas as pd
import pytest

import rankwright as rw
from rankwright import cli
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.folds import has_folds
from rankwright.experiments import experiment_from_json


def make_frame(n: int = 9, seed: int = 0) -> pd.DataFrame:
    queries = rw.make_queries(n, n_docs=5, n_features=3, random_state=seed)
    values = {f"f{i}": queries.X[:, i] for i in range(3)}
    return pd.DataFrame({"session": queries.row_qid, "clicks": queries.y, **values, "note": "text"})


def make_spec(**data):
    return {"data": data, "methods": [{"ranker": "regression"}]}


def test_a_spec_names_columns_and_keeps_them(tmp_path):
    make_frame().to_csv(tmp_path / "a.csv", index=False)
    columns = {"qid": "session", "label": "clicks", "ignore": ["note"]}
    experiment = experiment_from_json(make_spec(file="a.csv", n_folds=3, columns=columns), tmp_path)
    assert experiment.data.columns == ColumnRoles(qid="session", label="clicks", ignore=("note",))
    assert experiment.data.to_json()["columns"] == columns
    assert experiment_from_json(experiment.to_json(), tmp_path).data == experiment.data
    assert experiment.data.read_fold(0).train.features == ("f0", "f1", "f2")
    assert "columns" not in experiment_from_json(make_spec(file="a.csv"), tmp_path).data.to_json()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("qid", r"data.columns is 'qid'; expected a table such as \{qid = \"query\"\}"),
        ({"query": "x"}, "data.columns: unknown key 'query'"),
        ({"qid": ["a", "b"]}, "data.columns.qid is .*; expected the name of a column"),
        ({"ignore": [1]}, "data.columns.ignore is .*; expected the names of columns"),
        ({"ignore": []}, "expected the names of columns"),
    ],
)
def test_wrong_columns_are_named(tmp_path, columns, message):
    with pytest.raises(rw.InputError, match=message):
        experiment_from_json(make_spec(file="a.csv", columns=columns), tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_folders_of_folds_may_have_tables(tmp_path, ending, capsys):
    for fold in (1, 2):
        (tmp_path / f"Fold{fold}").mkdir()
        for seed, name in enumerate(("train", "vali", "test")):
            frame = make_frame(4, 10 * fold + seed)
            if name != "train":
                frame = frame[frame.columns[::-1]].assign(extra=1.0)  # read with the features of the training file
            path = tmp_path / f"Fold{fold}" / f"{name}.{ending}"
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    assert has_folds(tmp_path)
    roles = ColumnRoles(qid="session", label="clicks", ignore=("note",))
    folds = rw.read_folds(tmp_path, columns=roles)
    assert len(folds) == 2
    for part in folds[1]:
        assert part.features == ("f0", "f1", "f2")


def test_a_folder_of_parquet_files_is_one_data_set(tmp_path):
    make_frame().to_parquet(tmp_path / "part-0.parquet")
    assert not has_folds(tmp_path)
    assert not has_folds(tmp_path / "part-0.parquet")
    (tmp_path / "empty").mkdir()
    assert has_folds(tmp_path / "empty")  # so that the error names Fold1


def test_the_command_line_gives_columns(tmp_path, capsys):
    make_frame(12).to_csv(tmp_path / "a.csv", index=False)
    said = ["experiment", "--data", tmp_path / "a.csv", "--folds", 3, "--rankers", "singlefeature", "--qid", "session"]
    said += ["--label", "clicks", "--ignore", "note", "--out", tmp_path / "out", "--workers", "threads:1"]
    assert cli.run([str(word) for word in said]) == 0
    assert cli.run(["experiment", "spec.toml", "--out", str(tmp_path / "o"), "--qid", "session"]) == 2
    assert "--qid and a spec; expected one or the other" in capsys.readouterr().err
