"""Dask: shards on the workers of a real cluster of two processes, the same bits, workers that die."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.dask_cluster import Cluster, count_kept_groups, list_kept_groups, wait_until
from tests.unit.test_remote_backend import BUDGETS, ON_SHARDS

import rankwright as rw
from rankwright.cli import run
from rankwright.runtime import dask_calls, dask_session
from rankwright.runtime.dask_backend import Dask
from rankwright.runtime.dask_groups import list_sent_parts
from rankwright.runtime.dask_store import WorkerStores
from rankwright.runtime.workers import WorkersLostError

distributed = pytest.importorskip("distributed")
TRAIN = rw.make_queries(280, n_docs=30, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def backend(client):
    return Dask(client)


@pytest.mark.parametrize("ranker", ON_SHARDS, ids=lambda cls: cls.__name__)
def test_every_ranker_has_the_bits_of_one_machine(ranker, backend):
    def scores(backend):
        small = {name: 2 for name in BUDGETS if name in ranker().get_params()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two rounds do not converge
            return ranker(measure="ndcg@5", backend=backend, **small).fit(TRAIN).predict(TRAIN)

    assert scores(backend).tobytes() == scores(rw.Serial()).tobytes()


def test_results_come_in_the_order_of_the_shards(backend):
    queries = rw.make_queries(1000, n_docs=30, n_features=3, random_state=1)
    shards = backend.scatter(queries)
    assert len(shards) == len(rw.Serial().scatter(queries)) == 7  # over two workers
    assert backend.concat(lambda part: part.y, shards).tolist() == queries.y.tolist()
    assert backend.sum(count_rows_by_value(), shards, 2).tolist() == [2 * queries.n_docs, 2_000]
    numbers = backend.distribute(range(len(shards)))
    assert backend.gather(lambda number, part: (number, part.n_docs), numbers, shards) == list(
        enumerate(part.n_docs for part in rw.Serial().scatter(queries).handles)
    )
    doubled = backend.apply(lambda part: part.y * 2, shards)
    assert backend.concat(lambda y, by: y * by, doubled, 0.5).tolist() == queries.y.tolist()
    large = np.arange(100_000.0)  # sent to each worker once
    assert backend.gather(lambda part, values: values[-1], shards, large) == [99_999.0] * 7


@pytest.mark.parametrize("n_parts", [1, 2, 16, 17, 100, 300])
def test_sums_have_the_bits_of_one_machine_however_many_shards_there_are(n_parts, backend):
    values = np.random.default_rng(0).normal(size=(n_parts, 50)) ** 5
    one = rw.Serial()
    expected = one.sum(lambda row, by: row * by, one.distribute(values), 0.1)
    shards = backend.distribute(values)
    assert backend.sum(lambda row, by: row * by, shards, 0.1).tobytes() == expected.tobytes()
    assert np.array(backend.gather(lambda row: row, shards)).tobytes() == values.tobytes()


def count_rows_by_value():
    """Return a function that travels by value: the workers cannot import the tests."""
    return lambda part, factor=1: factor * np.array([part.n_docs, len(part)])


@pytest.mark.parametrize("n_parts", [1, 17, 300])
def test_folds_go_through_the_parts_in_order(n_parts, backend):
    rows, one = np.random.default_rng(0).normal(size=(n_parts, 20)), rw.Serial()
    starts = [np.zeros(20), np.ones(20)]
    expected = one.fold(lambda row, value: 0.9 * value + row, one.distribute(rows), starts)
    found = backend.fold(lambda row, value: 0.9 * value + row, backend.distribute(rows), starts)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


def test_both_workers_have_shards(backend, client):
    shards = backend.scatter(TRAIN)
    assert len(set(backend.gather(lambda part: os.getpid(), shards))) == 2
    assert all("tcp://" in worker for worker in client.nthreads())


@pytest.mark.parametrize("n_parts", [2, 3, 4, 5, 8, 16, 100])
def test_parts_are_spread_evenly_over_workers_with_many_threads(n_parts):
    session = dask_session.Session("tcp://host:8786", None, ["a"] * 4 + ["b"] * 4 + ["c"] * 4 + ["d"] * 4)
    groups = list(session.cut_into_groups(range(n_parts)))
    counts = Counter(dict.fromkeys("abcd", 0))
    for slot, parts in groups:
        counts[session.slots[slot]] += len(parts)
    assert [part for _, parts in groups for part in parts] == list(range(n_parts))
    assert max(counts.values()) == -(-n_parts // 4)


def test_groups_stay_where_they_are_when_workers_join_or_die():
    session = dask_session.Session(
        "tcp://host:8786",
        SimpleNamespace(
            status="running",
            wait_for_workers=lambda *_, **__: None,
            submit=lambda *_, **__: SimpleNamespace(key="lease"),
            run=lambda *_, workers, **__: dict.fromkeys(workers, "token"),
        ),
    )
    session.checked.update("abcd")

    def update(**n_threads):
        session.client.nthreads = lambda: n_threads
        session.update_workers()
        return "".join(session.slots)

    assert update(a=2, b=2) == "aabb"
    assert update(a=1, b=2) == "abb"  # no data are there
    group = list_sent_parts(0, [])
    session.in_use.add(group)
    assert update(a=1, b=2, c=4) == "abb"
    assert update(a=1) == "aaa"
    assert update(a=1, c=1) == "acc"
    assert update(a=1, d=4) == "add"
    del group
    assert update(a=1, d=4) == "adddd"


@pytest.mark.parametrize("is_derived", [False, True])
def test_what_a_dead_worker_had_is_sent_again(is_derived, backend, client):
    shards = backend.scatter(TRAIN)
    if is_derived:
        shards = backend.apply(lambda part, by: part.y * by, shards, np.full(20_000, 3.0)[0])
    count = (lambda part: float(part.sum())) if is_derived else (lambda part: float(part.X.sum()))
    before = backend.gather(count, shards)
    kill_one(client)
    assert backend.gather(count, shards) == before
    assert backend.gather(count, shards) == before


def kill_one(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_data_are_sent_after_a_worker_died(backend, client):
    backend.scatter(TRAIN)
    kill_one(client)
    shards = backend.scatter(TRAIN)
    assert backend.concat(lambda part: part.y, shards).tolist() == TRAIN.y.tolist()
    large = np.arange(100_000.0)
    kill_one(client)
    assert backend.gather(lambda part, values: values[-1], shards, large) == [99_999.0] * len(shards)


def test_calls_on_results_of_many_calls_are_made_again(backend, client):
    shards = backend.distribute(np.arange(8.0))
    twice = backend.apply(lambda one, two: one + two, shards, shards)
    for _ in range(120):  # paths through the calls double each time
        twice = backend.apply(lambda one, two: one / 2 + two / 2, twice, twice)
    backend.wait(twice)
    assert wait_until(lambda: count_kept_groups(client) <= 12)  # those of former rounds were freed
    expected = [2.0 * each for each in range(8)]
    assert backend.gather(lambda part: float(part), twice) == expected
    kill_one(client)
    assert backend.gather(lambda part: float(part), twice) == expected
    assert backend.gather(lambda part: float(part), shards) == [float(each) for each in range(8)]


def test_nothing_stays_on_the_workers_after_a_fit(backend, client):
    before, others = list_kept_groups(client)
    rw.AdaRank(n_estimators=5, backend=backend).fit(TRAIN)
    gc.collect()
    assert set(dask_session.Session.of_client(client).in_use) <= others
    assert wait_until(lambda: count_kept_groups(client) <= before)


def test_a_fit_survives_the_death_of_a_worker_to_the_same_bits(backend, tmp_path):
    def make_objective(marker):
        def squares(scores, queries):
            if marker is not None and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return 0.5 * float(((scores - queries.y) ** 2).sum()), scores - queries.y

        return squares

    def fit(backend, marker):
        ranker = rw.LinearRanker(objective=make_objective(marker), measure="ndcg@5", backend=backend)
        return ranker.fit(TRAIN).predict(TRAIN)

    found = fit(backend, tmp_path / "killed")
    assert (tmp_path / "killed").exists()
    assert found.tobytes() == fit(rw.Serial(), None).tobytes()


def count_messages(monkeypatch):
    """Return a list to which the number of messages is added whenever some are sent."""
    sent, own = [], dask_calls._send_all

    def send_all(session, messages):
        sent.append(len(messages))
        return own(session, messages)

    monkeypatch.setattr(dask_calls, "_send_all", send_all)
    return sent


def test_what_stays_on_the_workers_is_made_once_by_the_message_that_uses_it(backend, client, monkeypatch):
    client.wait_for_workers(2)
    sent = count_messages(monkeypatch)
    drawn = backend.apply(lambda part: np.random.default_rng().normal(size=3), backend.scatter(TRAIN))
    doubled = backend.apply(lambda values: 2 * values, drawn)
    del drawn
    assert not sent
    first = backend.sum(lambda values: values, doubled)
    assert sent == [2]  # one to each worker
    assert backend.sum(lambda values: values, doubled).tobytes() == first.tobytes()
    assert sent == [2, 2]


def test_what_failed_leaves_nothing_behind(backend, client):
    before, others = list_kept_groups(client)
    shards = backend.scatter(TRAIN)
    with pytest.raises(ZeroDivisionError):
        backend.gather(lambda part: part / 0, backend.apply(lambda part: part.n_docs, shards))
    assert backend.gather(lambda part: part.n_docs, shards)
    assert set(dask_session.Session.of_client(client).in_use) > others
    del shards
    gc.collect()
    assert set(dask_session.Session.of_client(client).in_use) <= others
    assert wait_until(lambda: count_kept_groups(client) <= before)


def test_several_threads_call_at_once(backend):
    shards = backend.scatter(TRAIN)

    def work(factor):
        made = backend.apply(lambda part, by: part.y * by, shards, factor)
        return [float(backend.sum(lambda y, by: y.sum() * by, made, by)) for by in (1, 2)]

    expected = float(TRAIN.y.sum())
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == [[n * expected, 2 * n * expected] for n in range(16)]


def test_workers_that_cannot_be_reached_are_called_by_way_of_the_scheduler(client, monkeypatch):
    own, workers = client.rpc.connect, set(client.nthreads())

    async def connect(address, *arguments, **options):
        if address in workers:
            raise OSError("no route to host")
        return await own(address, *arguments, **options)

    monkeypatch.setattr(dask_session, "_sessions", {})
    monkeypatch.setattr(client.rpc, "connect", connect)
    backend = Dask(client)
    session = dask_session.Session.of_client(client)
    shards = backend.scatter(TRAIN)
    assert backend.concat(lambda part: part.y, shards).tolist() == TRAIN.y.tolist()
    assert session.indirect == set(session.slots)
    with pytest.raises(ZeroDivisionError):
        backend.gather(lambda part: 1 / 0, shards)


@pytest.mark.skipif(sys.platform == "win32", reason="needs timers that send signals")
def test_an_interrupt_ends_a_call(backend):
    def interrupt(*_):
        raise KeyboardInterrupt

    def wait(part):
        time.sleep(0.5)

    shards = backend.scatter(TRAIN)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            backend.gather(wait, shards)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert sum(backend.gather(lambda part: part.n_docs, shards)) == TRAIN.n_docs


def test_parts_of_a_client_that_is_gone_are_freed(client, monkeypatch):
    monkeypatch.setattr(dask_session, "_sessions", {})
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        backend = Dask(other)
        name = dask_session.Session.of_client(other).name
        shards = backend.scatter(TRAIN)
        backend.wait(shards)

    async def look(dask_worker):
        stores = WorkerStores.of(dask_worker)
        await stores.free_abandoned()
        return name in stores.stores

    assert wait_until(lambda: not any(client.run(look).values()))
    del shards


def test_a_measure_of_the_user_travels_to_the_workers(backend):
    rw.make_measure(lambda grades: float((grades[:3] > 1).mean()), name="first_three_of_dask")

    def scores(backend):
        return rw.AdaRank(measure="first_three_of_dask", n_estimators=3, backend=backend).fit(TRAIN).predict(TRAIN)

    assert scores(backend).tobytes() == scores(rw.Serial()).tobytes()


class TestErrors:
    def test_those_of_functions_reach_the_caller(self, backend):
        def fail(part):
            raise KeyError("of the user")

        shards = backend.scatter(TRAIN)
        for use in (backend.wait, lambda made: backend.gather(len, made)):
            with pytest.raises(KeyError, match="of the user"):
                use(backend.apply(fail, shards))
        with pytest.raises(KeyError, match="of the user") as raised:
            backend.gather(fail, shards)
        assert "raise KeyError" in "".join(raised.value.__notes__)  # where on the worker
        assert backend.gather(lambda part: part.n_docs, shards)

    def test_what_cannot_be_pickled_is_named(self, backend, tmp_path):
        shards = backend.scatter(TRAIN)
        with (
            (tmp_path / "open").open("w") as file,
            pytest.raises(rw.InputError, match=r"cannot be sent to the workers"),
        ):
            backend.gather(lambda part: file.name, shards)

    def test_shards_that_were_cut_differently(self, backend):
        with pytest.raises(ValueError, match="cut differently"):
            backend.gather(lambda one, two: 0, backend.scatter(TRAIN), backend.distribute(range(5)))

    def test_no_scheduler(self, monkeypatch):
        monkeypatch.setattr(dask_session, "_CONNECT_TIMEOUT", 0.5)
        with pytest.raises(rw.InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*dask scheduler"):
            rw.RankSVM(backend=Dask("tcp://127.0.0.1:9")).fit(TRAIN)

    @pytest.mark.parametrize("address", ["localhost:8786", 8786, None])
    def test_no_address(self, address):
        with pytest.raises(rw.InputError, match="expected the address of a scheduler"):
            Dask(address)

    @pytest.mark.parametrize("package", ["rankwright", "numba"])
    def test_other_versions(self, package, client, monkeypatch):
        monkeypatch.setattr(dask_session, "_sessions", {})
        monkeypatch.setattr(dask_session, "_list_versions", lambda: {package: "0.0.1"})
        with pytest.raises(rw.InputError, match=rf"the Dask worker tcp://\S+ has {package} \S+, and 0.0.1 is here"):
            Dask(client)

    def test_workers_without_the_package(self, client, monkeypatch):
        monkeypatch.setattr(dask_session, "_sessions", {})
        monkeypatch.setattr(dask_session, "_list_versions", lambda: {"nothing-of-the-kind": "1.0"})
        with pytest.raises(rw.InputError, match="has no nothing-of-the-kind: install rankwright on all workers"):
            Dask(client)

    def test_a_function_that_workers_cannot_import_is_named(self, backend, tmp_path, monkeypatch):
        (tmp_path / "only_here.py").write_text("def work(part):\n    return 0\n")
        monkeypatch.syspath_prepend(tmp_path)
        import only_here

        with pytest.raises(rw.InputError, match=r"a worker of the cluster cannot import .*only_here"):
            backend.gather(only_here.work, backend.scatter(TRAIN))

    def test_a_cluster_inside_a_task_of_its_own(self, backend):
        address = backend.address

        def fit(part):
            return rw.RankSVM(backend=Dask(address)).fit(part)

        with pytest.raises(rw.InputError, match=r"inside a task of a Dask worker would wait for itself; use Serial"):
            backend.gather(fit, backend.scatter(TRAIN))

    def test_a_client_that_was_closed(self):
        cluster = distributed.LocalCluster(
            1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs="CRITICAL"
        )
        with cluster, distributed.Client(cluster) as client:
            backend = Dask(client)
            shards = backend.scatter(TRAIN)
        with pytest.raises(WorkersLostError, match=r"the Dask scheduler at inproc://.* is gone"):
            backend.gather(lambda part: 0, shards)
        with pytest.raises(rw.InputError, match="expected a client that is connected"):
            Dask(client)

    @pytest.mark.skipif(sys.platform == "win32", reason="kills processes")
    def test_the_death_of_the_scheduler_ends_a_fit(self, tmp_path):
        with Cluster(tmp_path) as cluster:
            backend = Dask(cluster.address)

            def squares(scores, queries):
                return 0.5 * float(((scores - queries.y) ** 2).sum()), scores - queries.y

            shards = backend.scatter(TRAIN)
            assert backend.gather(lambda part: part.n_docs, shards)
            cluster.kill_scheduler()
            with pytest.raises(
                (WorkersLostError, rw.InputError), match=r"scheduler.* is gone|no Dask scheduler answers"
            ):
                rw.LinearRanker(objective=squares, backend=backend).fit(TRAIN)
            with pytest.raises(WorkersLostError, match="is gone"):
                backend.gather(lambda part: part.n_docs, shards)


def test_a_backend_is_a_value(backend, client):
    assert pickle.loads(pickle.dumps(backend)) == backend == Dask(client) == Dask(client.scheduler.address)
    assert repr(backend) == f"Dask(address='{client.scheduler.address}')"
    ranker = rw.RankSVM(backend=backend)
    assert pickle.loads(pickle.dumps(ranker)).backend == backend


def test_the_package_starts_without_dask():
    for path in Path(dask_session.__file__).parent.glob("dask_*.py"):
        assert "\nimport distributed" not in path.read_text()
        assert "\nfrom distributed" not in path.read_text()


class TestCommandLine:
    def test_fits_on_a_cluster_have_the_bits_of_one_machine(self, client, tmp_path):
        rw.write_letor(TRAIN, tmp_path / "train.txt")
        models = {}
        for name in (client.scheduler.address, "serial", "threads:2"):
            path = tmp_path / f"{len(models)}.json"
            options = ["--train", str(tmp_path / "train.txt"), "--model", str(path), "--set", "max_iter=3"]
            command = [sys.executable, "-m", "rankwright", "fit", "listnet", *options, "--backend", name]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.stdout.startswith("ListNet: ndcg@10 train"), done.stderr
            assert done.stderr.count("\n") <= 1  # that it did not converge
            models[name] = rw.load(path).predict(TRAIN).tobytes()
        assert len(set(models.values())) == 1

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
            ("threads", "--backend threads: expected serial, threads:N, or an address such as tcp://scheduler:8786"),
            ("host:8786", "--backend host:8786: expected serial, threads:N, or an address"),
            ("threads:0", "Threads(0); expected a whole number of at least 1"),
        ],
    )
    def test_wrong_backends_are_refused_before_anything_is_read(self, text, said, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(dask_session, "_CONNECT_TIMEOUT", 0.5)
        (tmp_path / "train.txt").write_text("no judgments")
        options = ["--train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "m.json")]
        for command in (["fit", "listnet"], ["auto"]):
            assert run([*command, *options, "--backend", text]) == 2
            assert said in capsys.readouterr().err
        assert not (tmp_path / "m.json").exists()
