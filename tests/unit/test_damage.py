"""Damaged stores, data and checkpoints are noticed, never read: no figure changes, what is intact is kept, and the rest is run again."""

from __future__ import annotations

import io
import pickle
import random
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.damage import KINDS, append_bytes, exchange_blocks, flip_bit
from tests.experiments import contents

import rankwright as rw
from rankwright.basics.array_files import read_arrays
from rankwright.experiments import experiment_run as running
from rankwright.experiments.saved_queries import load_queries, save_queries
from rankwright.experiments.storage.salvaging import open_store
from rankwright.experiments.storage.schema import FILE, SCHEMA
from rankwright.rankers.networks.epoch_training import Checkpoint


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(15, n_docs=12, n_features=3, random_state=0)


def planned(queries):
    methods = [
        rw.Method("regression", grid={"alpha": [0.1, 10.0]}),
        rw.Method("adarank", params={"n_estimators": 3}),
        rw.Method("singlefeature"),
    ]
    return rw.Experiment(list(rw.split_folds(queries, 3, 0)), methods, "ndcg@5", ["map"])


@pytest.fixture(scope="module")
def done(queries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    rw.run_experiment(planned(queries), folder, rw.Serial())
    return folder


@pytest.fixture
def copied(done, tmp_path):
    shutil.copytree(done, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def ran(monkeypatch):
    """The trials that are run."""
    run, keys = running.run_trial, []
    monkeypatch.setattr(running, "run_trial", lambda task: keys.append(task.key) or run(task))
    return keys


def exact(results) -> bytes:
    """Everything that results hold, to the last bit."""
    tables = {
        (name, column): values.tobytes() if values.dtype.kind in "fi" else values.tolist()
        for name, table in results.tables.items()
        for column, values in table.items()
    }
    return pickle.dumps((results.name, results.measure, results.measures, results.methods, results.planned, tables))


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


class TestNoFigureChanges:
    @pytest.mark.parametrize("kind", [flip_bit] * 5 + [*KINDS], ids=lambda kind: kind.__name__)
    def test_results_are_the_same_or_refused(self, done, tmp_path, kind, request):
        data, whole = (done / FILE).read_bytes(), exact(rw.read_results(done))
        model = (
            rw.save(rw.read_trial_model(done, "AdaRank", fold=2), tmp_path / "model")
            or (tmp_path / "model").read_bytes()
        )
        chance = random.Random(request.node.name)
        for _ in range(15 if kind is flip_bit else 10):
            (tmp_path / FILE).write_bytes(kind(data, chance))
            for read in (lambda: exact(rw.read_results(tmp_path)), lambda: saved(tmp_path)):
                try:
                    found = read()
                except rw.InputError as error:
                    refused = str(error)
                    assert str(tmp_path) in refused
                else:
                    assert found in (whole, model)

    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
    def test_going_on_ends_as_if_nothing_had_been(self, queries, done, tmp_path, kind, recwarn):
        """Also where nothing can be saved, if the file is moved away as the error says."""
        data, chance = (done / FILE).read_bytes(), random.Random(kind.__name__)
        for i in range(2):
            folder = tmp_path / str(i)
            shutil.copytree(done, folder)
            (folder / FILE).write_bytes(kind(data, chance))
            try:
                rw.run_experiment(planned(queries), folder, rw.Serial())
            except rw.InputError as error:
                refused = str(error)
                assert "damaged throughout; move it away" in refused
                (folder / FILE).unlink()
                rw.run_experiment(planned(queries), folder, rw.Serial())
            assert contents(folder) == contents(done)
            assert {warning.category for warning in recwarn} <= {rw.StoreWarning}

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE meta SET value = '99' WHERE key = 'n_trials'",
            "UPDATE methods SET definition = '{}' WHERE name = 'AdaRank'",
            "UPDATE folds SET digest = 'x' WHERE fold = 1",
            "UPDATE folds SET documents = NULL WHERE fold = 1",
            "UPDATE queries SET weight = 2.0 WHERE fold = 1 AND query = 0",
            "UPDATE queries SET qid = 'x' WHERE fold = 2 AND query = 1",
            "DELETE FROM queries WHERE fold = 3 AND query = 4",
            "UPDATE trials SET valid = valid + 1e-15 WHERE trial = 1",
            "UPDATE trials SET seconds = 0.5 WHERE trial = 2",
            "UPDATE per_query SET value = value + 1e-15 WHERE query = 3",
            "UPDATE per_query SET value = NULL WHERE query = 3",
            "DELETE FROM per_query WHERE query = 4",
            "UPDATE artefacts SET content = replace(content, '0', '1') WHERE name = 'curve'",
            "DELETE FROM artefacts WHERE name = 'scores'",
            "DELETE FROM artefacts WHERE name = 'model'",
            "UPDATE chosen SET fold = 4 WHERE fold = 3",
            "DELETE FROM chosen WHERE fold = 1",
            "DELETE FROM trials WHERE trial = 4",
            "DELETE FROM folds WHERE fold = 2",
            "DELETE FROM methods WHERE name = 'AdaRank'",
            "DELETE FROM meta WHERE key = 'total'",
            "DELETE FROM meta WHERE key = 'experiment'",
            "UPDATE per_query SET value = 'text' WHERE query = 3",
            "UPDATE per_query SET measure = x'ff' WHERE query = 3 AND measure = 'map'",
        ],
    )  # fmt: skip
    def test_every_table_has_checksums(self, copied, statement):
        change(copied, statement)
        with pytest.raises(rw.InputError, match=r"results\.sqlite is damaged \(.*finished trials are intact"):
            rw.read_results(copied)

    def test_a_model_is_checked(self, copied):
        change(copied, "UPDATE artefacts SET content = replace(content, '0', '1') WHERE name = 'model'")
        with pytest.raises(rw.InputError, match="damaged"):
            rw.read_trial_model(copied, "AdaRank")


def saved(folder: Path) -> bytes:
    rw.save(rw.read_trial_model(folder, "AdaRank", fold=2), folder / "model")
    return (folder / "model").read_bytes()


def files_of_arrays(folder, queries):
    """Write queries and a checkpoint, and yield files of them with a function for each that reads them."""
    path = save_queries(queries, folder)
    checkpoint = Checkpoint(folder / "c.npz", {"seed": 1})
    arrays = {"w": np.linspace(0, 1, 7), "kept": np.arange(6.0).reshape(2, 3), "number": np.array(3)}
    checkpoint.save(arrays, {"done": 2, "history": [{"loss": 0.5}]})
    for name in ("header.json", "X.npy", "docid.npy", "source.npy"):
        yield path / name, lambda: pickle.dumps(load_queries(path)._parts())
    yield checkpoint.path, lambda: pickle.dumps(checkpoint.load())


class TestFilesOfArrays:
    @pytest.fixture(scope="class")
    @classmethod
    def queries(cls):
        rng = np.random.default_rng(0)
        ids = [f"query {i}" for i in (0, 1, 0, 2, 1, 2, 2)]
        docs, weight = [f"d{i}" for i in range(7)], [1.0, 2.0, 3.0]
        X, y = rng.normal(size=(7, 3)), rng.integers(0, 3, 7)
        return rw.Queries.from_arrays(X, y, ids, docid=docs, weight=weight, features=["a", "b", "c"])

    @pytest.mark.parametrize("kind", [flip_bit] * 3 + [*KINDS], ids=lambda kind: kind.__name__)
    def test_the_same_or_refused(self, queries, tmp_path, kind, request):
        chance = random.Random(request.node.name)
        for path, read in files_of_arrays(tmp_path, queries):
            data, whole = path.read_bytes(), read()
            refused = 0
            for _ in range(100):
                path.write_bytes(kind(data, chance))
                try:
                    found = read()
                except rw.InputError as error:
                    message = str(error)
                    assert message.startswith(f"{path}: ")
                    refused += 1
                else:
                    assert found == whole
            path.write_bytes(data)
            assert refused > 30 or kind in (append_bytes, exchange_blocks)

    def test_queries_under_another_name(self, queries, tmp_path):
        path = save_queries(queries, tmp_path)
        other = save_queries(queries.take([0]), tmp_path)
        shutil.rmtree(path)
        other.rename(path)
        with pytest.raises(rw.InputError, match="damaged: its content does not fit its name"):
            load_queries(path)

    def test_damaged_queries_are_saved_again(self, queries, tmp_path):
        path = save_queries(queries, tmp_path)
        (path / "X.npy").write_bytes((path / "X.npy").read_bytes()[:-4] + b"1234")
        assert save_queries(queries, tmp_path) == path
        assert load_queries(path).qid.tolist() == queries.qid.tolist()

    @pytest.mark.parametrize("shape", [(10**15,), (10**9, 10**9), (0,), (3, 3), (-1,)])
    def test_shapes_are_checked_before_memory_is_taken(self, tmp_path, shape):
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("w.npy", header.getvalue() + bytes(64))
        with pytest.raises(rw.InputError, match=r"a\.npz: damaged; expected arrays"):
            read_arrays(tmp_path / "a.npz", "arrays")

    def test_python_objects_and_compressed_arrays_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", w=np.array([{}], dtype=object))
        np.savez_compressed(tmp_path / "b.npz", w=np.zeros(10**6))
        for name in ("a.npz", "b.npz"):
            with pytest.raises(rw.InputError, match="damaged; expected arrays"):
                read_arrays(tmp_path / name, "arrays")

    def test_a_run_that_has_the_data_writes_a_damaged_file_again(self, tmp_path):
        data = rw.make_queries(20, n_docs=12, n_features=3, random_state=0)
        methods = [rw.Method("singlefeature")]
        rw.run_experiment(rw.Experiment(data, methods), tmp_path, rw.Serial())
        [path] = (tmp_path / "data").iterdir()
        whole = load_queries(path)
        (path / "y.npy").unlink()
        rw.run_experiment(rw.Experiment(data, [*methods, rw.Method("regression")]), tmp_path, rw.Serial())
        np.testing.assert_array_equal(load_queries(path).X, whole.X)


class TestSalvaging:
    def resume(self, queries, folder, match):
        damaged = (folder / FILE).read_bytes()
        with pytest.warns(rw.StoreWarning, match=match):
            rw.run_experiment(planned(queries), folder, rw.Serial())
        assert (folder / "results.damaged.sqlite").read_bytes() == damaged
        assert not (folder / "results.damaged.sqlite-journal").exists()  # there was nothing to roll back
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]

    def test_a_chosen_trial_is_run_again(self, queries, done, copied, ran):
        change(copied, "UPDATE per_query SET value = 0.5 WHERE trial = (SELECT trial FROM chosen WHERE method = 'AdaRank' AND fold = 2)")  # fmt: skip
        match = r"was damaged \(the test values of AdaRank, fold 2, seed 0\); 11 finished trials are intact and kept"
        self.resume(queries, copied, match)
        assert [(key.method, key.fold) for key in ran] == [("AdaRank", 2)]
        assert contents(copied) == contents(done)

    def test_a_trial_that_was_not_chosen_is_run_again(self, queries, done, copied, ran):
        change(copied, "UPDATE trials SET valid = 2.0 WHERE method = 'Regression' AND fold = 1 AND trial NOT IN (SELECT trial FROM chosen)")  # fmt: skip
        self.resume(queries, copied, "11 finished trials are intact")
        assert [(key.method, key.fold) for key in ran] == [("Regression", 1)]
        assert contents(copied) == contents(done)

    def test_no_word_on_which_trial_was_chosen(self, queries, done, copied, ran):
        change(copied, "DELETE FROM chosen WHERE method = 'Regression' AND fold = 3")
        change(copied, "UPDATE chosen SET content_checksum = 0 WHERE method = 'AdaRank' AND fold = 1")
        self.resume(queries, copied, "10 finished trials are intact")
        assert {(key.method, key.fold) for key in ran} == {("Regression", 3), ("AdaRank", 1)}
        assert contents(copied) == contents(done)

    @pytest.mark.parametrize("table", ["meta", "methods", "folds", "queries"])
    def test_a_lost_description_costs_no_trial(self, queries, done, copied, ran, table):
        change(copied, f"DELETE FROM {table}")
        self.resume(queries, copied, "12 finished trials are intact")
        assert ran == []
        assert contents(copied) == contents(done)

    def test_another_experiment_does_not_take_the_trials_of_one_whose_description_is_lost(self, queries, copied, ran):
        change(copied, "DELETE FROM meta")
        change(copied, "DELETE FROM methods")
        other = rw.Experiment(
            list(rw.split_folds(queries, 3, 0)), [rw.Method("adarank", params={"n_estimators": 2})], "map"
        )
        with pytest.warns(rw.StoreWarning):
            found = rw.run_experiment(other, copied, rw.Serial())
        assert len(ran) == 3
        assert found.methods == ("AdaRank",)
        fold = rw.split_folds(queries, 3, 0)[0]
        expected = rw.AdaRank(measure="map", n_estimators=2).fit(fold.train, valid=fold.valid).score(fold.test)
        assert found.fold_means("map")[0, 0] == pytest.approx(expected)

    def test_other_data_are_refused_when_the_description_is_lost(self, queries, copied):
        change(copied, "DELETE FROM meta")
        change(copied, "DELETE FROM folds")
        with pytest.warns(rw.StoreWarning), pytest.raises(rw.InputError, match=r"on other data \(fold 1 differs\)"):
            rw.run_experiment(planned(queries.take(range(14))), copied, rw.Serial())

    @pytest.mark.parametrize("at", [0, 10, 16, 56, 100, 110, 2000, 4000])
    def test_the_head_of_the_file_costs_no_trial(self, queries, done, copied, ran, at):
        data = bytearray((copied / FILE).read_bytes())
        data[at] ^= 0xFF
        (copied / FILE).write_bytes(data)
        try:
            with open_store(copied) as store:
                assert len(store.read_finished_trials()) == 12
        except rw.StoreWarning:
            pass  # an error here; run_experiment repeats it
        assert len(rw.read_results(copied).tables["trials"]["method"]) == 12
        rw.run_experiment(planned(queries), copied, rw.Serial())
        assert ran == []
        assert contents(copied) == contents(done)

    def test_damaged_indexes_cost_no_trial(self, queries, done, copied, ran):
        with closing(sqlite3.connect(copied / FILE)) as connection:
            query = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_trials_1'"
            [page] = connection.execute(query).fetchone()
        data = bytearray((copied / FILE).read_bytes())
        data[(page - 1) * 4096 + 100 : page * 4096] = bytes(3996)
        (copied / FILE).write_bytes(data)
        assert exact(rw.read_results(copied)) == exact(rw.read_results(done))  # reading does without them
        self.resume(queries, copied, r"damaged \(its indexes\); 12 finished trials are intact")
        assert ran == []
        assert contents(copied) == contents(done)

    def test_damaged_files_get_numbers(self, queries, copied):
        for name in ("results.damaged.sqlite", "results.damaged-2.sqlite", "results.damaged-3.sqlite"):
            change(copied, "DELETE FROM meta")
            with pytest.warns(rw.StoreWarning, match=f"the damaged file is now {name}"):
                rw.run_experiment(planned(queries), copied, rw.Serial())
            assert (copied / name).exists()

    def test_someone_elses_file_is_left_alone(self, queries, tmp_path):
        with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
            connection.execute("CREATE TABLE trials (a)")
        before = (tmp_path / FILE).read_bytes()
        with pytest.raises(
            rw.InputError, match="not the results of an experiment, or damaged throughout; move it away"
        ):
            rw.run_experiment(planned(queries), tmp_path, rw.Serial())
        assert (tmp_path / FILE).read_bytes() == before

    def test_an_earlier_version(self, queries, tmp_path):
        with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
            connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
            connection.execute("""INSERT INTO meta VALUES ('format', '"rankwright-experiment"'), ('version', '1')""")
        for call in (lambda: rw.read_results(tmp_path), lambda: rw.run_experiment(planned(queries), tmp_path)):
            with pytest.raises(rw.InputError, match="version 1; this release reads version 4: choose another folder"):
                call()

    def test_the_first_page_is_the_same_in_all_stores(self, done, tmp_path):
        """Or else it could not be restored."""
        with closing(sqlite3.connect(tmp_path / "fresh")) as fresh, closing(sqlite3.connect(done / FILE)) as store:
            fresh.executescript(SCHEMA)
            query = "SELECT name, rootpage FROM sqlite_master"
            assert fresh.execute(query).fetchall() == store.execute(query).fetchall()

    def test_values_that_sqlite_does_not_keep_as_they_are(self, queries, tmp_path, monkeypatch):
        """-0.0 and NaN come back as 0.0 and NULL, and are no damage."""
        from rankwright.experiments import trials

        values = trials._measure

        def strange(*arguments):
            found = values(*arguments).copy()
            found[0, ::2] = -0.0
            return found

        monkeypatch.setattr(trials, "_measure", strange)
        monkeypatch.setattr(trials, "weighted_mean", lambda *_: -0.0)
        found = rw.run_experiment(planned(queries), tmp_path, rw.Serial())
        assert (found.values() == 0).any()
        assert not np.signbit(found.values()).any()
