"""Trials wherever they run: as few are tested as in place, data are read once, and the results are the same."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context

import numpy as np
import pytest
from tests.dask_cluster import Cluster
from tests.experiments import contents

import rankwright as rw
from rankwright import cli
from rankwright.experiments import data_sources as sources
from rankwright.experiments import fold_cache, trials


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("flight") / "data.txt"
    rw.write_letor(rw.make_queries(45, n_docs=8, n_features=6, noise=2.0, random_state=3), path)
    return path


def plan(file) -> rw.Experiment:
    search = {"alpha": np.geomspace(1e-3, 1e3, 30).tolist()}
    methods = [rw.Method("regression", grid=search), rw.Method("singlefeature")]
    return rw.Experiment(sources.DocumentFiles(n_folds=3, file=(str(file),)), methods, "ndcg@5", ["ndcg@5"])


@pytest.fixture
def tested(monkeypatch):
    """The trials that were tested."""
    keys, test = [], trials._test

    def count(task, *arguments):
        keys.append(task.key)
        return test(task, *arguments)

    monkeypatch.setattr(trials, "_test", count)
    return keys


def make_workers(stack: ExitStack, kind: str):
    if kind == "executor":
        return stack.enter_context(ThreadPoolExecutor(2))
    if kind == "dask":
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0")
        return stack.enter_context(distributed.Client(stack.enter_context(cluster)))
    return {"threads:1": rw.Threads(1), "threads:3": rw.Threads(3)}[kind]


def test_few_trials_are_tested_wherever_they_run(file, tmp_path, tested):
    rw.run_experiment(plan(file), tmp_path / "serial", rw.Serial())
    serial = len(tested)
    assert serial <= 30  # of 93 trials
    for kind in ("threads:1", "threads:3", "executor", "dask"):
        tested.clear()
        with ExitStack() as stack:
            rw.run_experiment(plan(file), tmp_path / kind, make_workers(stack, kind))
        assert len(tested) <= serial + (0 if kind == "threads:1" else 20), kind
        assert contents(tmp_path / kind) == contents(tmp_path / "serial"), kind


def test_threads_read_every_fold_once_and_share_it(file, monkeypatch):
    source = sources.DocumentFiles(n_folds=3, file=(str(file),))
    read, cut, calls = sources.DocumentFiles.read_queries, sources.DocumentFiles.cut, []

    def slow_read(self):
        calls.append("read")
        time.sleep(0.1)
        return read(self)

    def slow_cut(self, index, queries):
        calls.append(index)
        time.sleep(0.05)
        return cut(self, index, queries)

    monkeypatch.setattr(sources.DocumentFiles, "read_queries", slow_read)
    monkeypatch.setattr(sources.DocumentFiles, "cut", slow_cut)
    found: dict[int, set[int]] = {0: set(), 1: set()}
    start = threading.Barrier(6)

    def work(index: int) -> None:
        start.wait()
        for _ in range(20):
            found[index].add(id(fold_cache.read_fold(source, index, "run")[0]))

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(calls, key=str) == [0, 1, "read"]
    assert [len(ids) for ids in found.values()] == [1, 1]
    fold_cache.clear_folds()
    fold_cache.read_fold(source, 0, "run")
    assert calls.count("read") == 2
    fold_cache.clear_folds()


def test_a_fold_that_cannot_be_read_is_an_error_each_time(tmp_path):
    source = sources.DocumentFiles(n_folds=3, file=(str(tmp_path / "absent"),))
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            fold_cache.read_fold(source, 0, "run")
    fold_cache.clear_folds()


@pytest.mark.parametrize("kind", ["processes", "executor of processes", "dask"])
def test_a_measure_of_ones_own_is_refused_where_it_is_not_known(file, tmp_path, kind):
    rw.make_measure(lambda grades: float(grades[0] > 0), name="first_of_mine")
    planned = rw.Experiment(str(file), [rw.SingleFeature()], "first_of_mine")
    with ExitStack() as stack:
        workers = 1
        if kind == "executor of processes":
            workers = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        elif kind == "dask":

            class Scheduler:
                address = "tcp://127.0.0.1:1"

            class Client:
                scheduler = Scheduler()

                def get_executor(self):
                    return ThreadPoolExecutor(1)

            workers = Client()
        with pytest.raises(rw.InputError, match="first_of_mine is a measure of your own"):
            rw.run_experiment(planned, tmp_path, workers)
    with ThreadPoolExecutor(1) as pool:
        assert rw.run_experiment(planned, tmp_path, pool).measures


@pytest.mark.skipif(sys.platform == "win32", reason="kills processes")
def test_a_scheduler_that_dies_is_one_line_and_what_is_finished_is_kept(file, tmp_path):
    pytest.importorskip("distributed")
    spec, out = tmp_path / "spec.toml", tmp_path / "out"
    alphas = np.geomspace(1e-3, 1e3, 300).tolist()
    spec.write_text(
        f"[data]\nfile = '{file}'\nn_folds = 3\n[[methods]]\nranker = 'regression'\ngrid = {{ alpha = {alphas} }}\n"
    )
    with Cluster(tmp_path) as cluster:
        command = [sys.executable, "-m", "rankwright", "experiment", str(spec), "--out", str(out)]
        process = subprocess.Popen(
            [*command, "--workers", cluster.address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"},  # it tries to come back for so long
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and count_trials(out) < 3 and process.poll() is None:
            time.sleep(0.05)
        cluster.kill_scheduler()
        said = process.communicate(timeout=120)
    assert (process.returncode, said[0]) == (2, "")
    assert said[1].count("\n") == 1, said[1]
    line = said[1].strip()
    assert line.startswith("rankwright: the workers are gone")
    assert line.endswith(f"finished trials are kept in {out}: run the experiment again to continue")
    kept = count_trials(out)
    assert 3 <= kept < 900
    assert rw.read_results(out).tables["trials"]["status"].tolist() == ["done"] * kept


def count_trials(out) -> int:
    try:
        with sqlite3.connect(f"file:{out / 'results.sqlite'}?mode=ro", uri=True) as connection:
            found = connection.execute("SELECT COUNT(*) FROM trials WHERE status = 'done'").fetchone()[0]
        connection.close()
    except sqlite3.Error:
        return 0
    return found


def test_a_client_of_ours_is_closed_and_one_of_the_users_is_not(file, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    opened = []

    class Client(distributed.Client):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            opened.append(self)

    cluster = distributed.LocalCluster(
        1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp", host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster) as own:
        rw.run_experiment(rw.Experiment(str(file), [rw.SingleFeature()]), tmp_path / "a", own)
        assert own.status == "running"
        monkeypatch.setattr(distributed, "Client", Client)
        options = ["--data", str(file), "--rankers", "singlefeature", "--out", str(tmp_path / "b")]
        assert cli.run(["experiment", *options, "--workers", cluster.scheduler_address]) == 0
    assert [client.status for client in opened] == ["closed"]
    assert (tmp_path / "b" / "report.html").exists()
