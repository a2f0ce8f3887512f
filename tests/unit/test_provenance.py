"""Facts on the data and on the runs of an experiment, in its store and on its page."""

from __future__ import annotations

import json
import platform
import shlex

import numpy as np
import pytest

import rankwright as rw
from rankwright import cli
from rankwright.experiments.storage.schema import FILE


@pytest.fixture(scope="module")
def queries():
    made = rw.make_queries(30, n_docs=6, n_features=4, noise=1.0, random_state=5)
    X = np.array(made.X)
    X[:7, 2] = np.nan
    return made.replace(X=X)


def experiment(queries, *methods):
    return rw.Experiment(rw.split_folds(queries, 3, random_state=0), methods, measure="map", name="Small")


TREES = rw.Method("mart", params={"n_estimators": 3, "min_child_samples": 3})


@pytest.fixture(scope="module")
def done(queries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    return folder, rw.run_experiment(experiment(queries, TREES), folder, rw.Serial(), command="compare <them>")


def test_facts_on_every_part_of_every_fold(queries, done):
    table = done[1].tables["data"]
    assert len(table["part"]) == 9
    for number, fold in enumerate(rw.split_folds(queries, 3, random_state=0), 1):
        for part, name in zip(fold, ("training", "validation", "test"), strict=True):
            [row] = np.flatnonzero((table["fold"] == number) & (table["part"] == name))
            assert (table["queries"][row], table["documents"][row]) == (len(part), part.n_docs)
            assert table["features"][row] == 4
            assert table["missing"][row] == np.isnan(part.X).sum()
            sizes = part.sizes
            assert (table["fewest"][row], table["median"][row], table["most"][row]) == (
                sizes.min(), np.median(sizes), sizes.max(),
            )  # fmt: skip
            grades, counts = np.unique(part.y, return_counts=True)
            assert json.loads(table["grades"][row]) == {
                f"{grade:g}": int(n) for grade, n in zip(grades, counts, strict=True)
            }
            best = [part.grouped().y[rows].max() for rows in part.grouped()]
            assert table["irrelevant"][row] == np.sum(np.array(best) <= 0)
    assert table["missing"].sum() == 7 * 3  # every document is in three folds
    assert len(set(table["digest"])) == 3


def test_a_run_is_described(done):
    runs = done[1].tables["runs"]
    assert runs["command"].tolist() == ["compare <them>"]
    assert runs["Rankwright"].tolist() == [rw.__version__]
    assert runs["numpy"].tolist() == [np.__version__]
    assert "cores" in runs["machine"][0]
    assert platform.node() not in " ".join(str(column[0]) for column in runs.values()) or len(platform.node()) < 4


def test_the_same_store_gives_the_same_page(done, tmp_path):
    folder, results = done
    page = rw.write_report(results, tmp_path / "a").read_bytes()
    assert rw.write_report(rw.read_results(folder), tmp_path / "b").read_bytes() == page


def test_runs_are_added_but_not_those_that_have_nothing_to_do(queries, done):
    folder, results = done
    same = rw.run_experiment(experiment(queries, TREES), folder, rw.Serial(), command="again")
    assert same.tables["runs"]["date"].tolist() == results.tables["runs"]["date"].tolist()
    more = rw.Method("mart", "Fewer trees", params={"n_estimators": 1, "min_child_samples": 3})
    later = rw.run_experiment(experiment(queries, TREES, more), folder, rw.Serial(), command="more")
    assert later.tables["runs"]["command"].tolist() == ["compare <them>", "more"]
    assert set(later.tables["permutation"]["method"]) == {0, 1}
    for fold in (1, 2, 3):
        model = rw.read_trial_model(folder, "Fewer trees", fold)
        test = rw.split_folds(queries, 3, random_state=0)[fold - 1].test
        own = (later.tables["permutation"]["method"] == 1) & (later.tables["permutation"]["fold"] == fold)
        expected = rw.permutation_importance(model, test, "map", n_repeats=3)
        assert later.tables["permutation"]["fall"][own].tolist() == expected.means.tolist()


def test_the_command_line_is_kept(queries, tmp_path, monkeypatch, capsys):
    rw.write_letor(queries.replace(X=np.nan_to_num(queries.X)), tmp_path / "my data.txt")
    arguments = ["experiment", "--data", str(tmp_path / "my data.txt"), "--rankers", "singlefeature", "--folds", "3",
                 "--out", str(tmp_path / "out"), "--workers", "threads:1"]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["/usr/bin/rankwright", *arguments])
    cli.run(arguments)
    capsys.readouterr()
    assert (tmp_path / "out" / FILE).exists()
    assert rw.read_results(tmp_path / "out").tables["runs"]["command"].tolist() == [
        shlex.join(["rankwright", *arguments])
    ]
