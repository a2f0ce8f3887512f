"""Trees that grow on the workers of a real cluster of two processes: the bits of one machine, and workers that die."""

from __future__ import annotations

import contextvars
import gc
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from tests.remote_backend import Remote, SealedQueries

import rankwright as rw
from rankwright.optimisers.functional_gradient import round_for_exact_sums
from rankwright.optimisers.weak.distributed_trees import DistributedGrower, explain_refusal
from rankwright.optimisers.weak.lightgbm_bins import draw_rows, make_bins, open_bins, read_bins
from rankwright.optimisers.weak.lightgbm_network import connect_lightgbm
from rankwright.optimisers.weak.regression_trees import RegressionTree, TreeGrower
from rankwright.optimisers.weak.split_counts import SplitCounter
from rankwright.rankers.trees import tree_boosting
from rankwright.runtime.communicator import ConnectionLostError, Listener
from rankwright.runtime.process_group import ProcessesLostError, ProcessGroup
from rankwright.runtime.workers import WorkersLostError

distributed = pytest.importorskip("distributed")
lightgbm = pytest.importorskip("lightgbm")
SMALL = {"n_estimators": 3, "num_leaves": 12, "min_child_samples": 15, "measure": "ndcg@5"}
SQUARES = {"objective": lambda scores, queries: (0.0, scores - queries.y)}


def make_train(n_queries=280, seed=0):
    """Return queries with missing values and rare values; those of each query are in several places."""
    queries = rw.make_queries(n_queries, n_docs=30, n_features=5, random_state=seed)
    X, rng = queries.X.copy(), np.random.default_rng(seed)
    X[:, 1][rng.random(len(X)) < 0.1] = np.nan
    X[:, 2][rng.random(len(X)) < 0.97] = 0.0
    return queries.with_X(X)


TRAIN, VALID = make_train(), make_train(30, seed=1)
WEIGHTED = TRAIN.replace(weight=np.random.default_rng(2).random(len(TRAIN)) + 0.5)


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def backend(client):
    return rw.Dask(client)


@pytest.fixture(scope="module")
def sets(backend):
    """Return the data sets, with their features on the workers."""
    return {id(each): rw.DistributedQueries.from_queries(each, backend) for each in (TRAIN, WEIGHTED, VALID)}


@pytest.fixture(autouse=True)
def small_data_are_sent(monkeypatch):
    monkeypatch.setattr(tree_boosting, "_SENT", 0)


def fit(ranker, train, valid=None, backend=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ranker(**SMALL | params, backend=backend).fit(train, valid=valid)


def count_trees(monkeypatch):
    """Return a list that gets an entry for each tree that grows on workers."""
    grown, grow = [], DistributedGrower._grow
    monkeypatch.setattr(DistributedGrower, "_grow", lambda self, fn, *rest: grown.append(1) or grow(self, fn, *rest))
    return grown


EXACT = [
    pytest.param(rw.LambdaMART, {}, TRAIN, id="LambdaMART"),
    pytest.param(rw.LambdaMART, {"measure": "err"}, WEIGHTED, id="LambdaMART with weights"),
    pytest.param(rw.GBRank, {}, TRAIN, id="GBRank"),
    pytest.param(rw.BoostedTrees, {"n_warmup_trees": 1}, WEIGHTED, id="BoostedTrees"),
    pytest.param(rw.BoostedTrees, SQUARES, TRAIN, id="BoostedTrees of a user"),
    pytest.param(rw.DirectRankTrees, {}, WEIGHTED, id="DirectRankTrees"),
    pytest.param(rw.LambdaMART, {"polish_rounds": 1}, TRAIN, id="polished"),
    pytest.param(
        rw.LambdaMART,
        {"lightgbm_params": {"bin_construct_sample_cnt": 2000}, "random_state": 5},
        TRAIN,
        id="sampled bins",
    ),
    pytest.param(rw.LambdaMART, {"lightgbm_params": {"max_depth": 3, "lambda_l2": 2.0}}, TRAIN, id="parameters"),
]


@pytest.mark.parametrize(("ranker", "params", "train"), EXACT)
def test_every_ranker_has_the_bits_of_one_machine(ranker, params, train, backend, sets, monkeypatch):
    expected = fit(ranker, train, VALID, rw.Serial(), **params)
    grown = count_trees(monkeypatch)
    found = fit(ranker, sets[id(train)], sets[id(VALID)], **params)
    assert len(grown) >= 3
    assert found.history_ == expected.history_
    assert found.predict(VALID).tobytes() == expected.predict(VALID).tobytes()
    assert found.booster_.model_to_string() == expected.booster_.model_to_string()


@pytest.mark.parametrize(
    ("ranker", "params"),
    [
        (rw.MART, {}),
        (rw.LambdaMART, {"lambdas": "lightgbm"}),
        (rw.LambdaMART, {"lightgbm_params": {"feature_fraction": 0.6, "feature_fraction_seed": 3}}),
    ],
)
@pytest.mark.parametrize("train", [TRAIN, WEIGHTED], ids=["", "weighted"])
def test_sums_that_are_not_exact_differ_by_their_rounding(ranker, params, train, sets):
    expected = fit(ranker, train, VALID, rw.Serial(), **params)
    found = fit(ranker, sets[id(train)], sets[id(VALID)], **params)
    np.testing.assert_allclose(found.predict(VALID), expected.predict(VALID), rtol=1e-9)


def test_monotone_trees_are_monotone(sets):
    params = {"lightgbm_params": {"monotone_constraints": [1, 0, 0, 0, -1]}}
    forest = fit(rw.LambdaMART, sets[id(TRAIN)], **params)
    rows = np.repeat(TRAIN.X[:50], 9, axis=0)
    rows[:, 0] = np.tile(np.linspace(-3, 3, 9), 50)
    assert (np.diff(forest.predict(rows).reshape(50, 9), axis=1) >= 0.0).all()


def test_categories_split_by_category(backend):
    X = TRAIN.X.copy()
    X[:, 3] = np.random.default_rng(0).integers(0, 4, len(X))
    train = rw.Queries.from_arrays(
        X, TRAIN.y + (X[:, 3] == 2), TRAIN.row_qid, categories=(None,) * 3 + (tuple("abcd"), None)
    )
    found = fit(rw.MART, rw.DistributedQueries.from_queries(train, backend), n_estimators=5)
    assert found.scorer_.categorical == {3}
    expected = fit(rw.MART, train, backend=rw.Serial(), n_estimators=5)
    np.testing.assert_allclose(found.predict(train), expected.predict(train), rtol=1e-9)


class TestWhere:
    """Which trees of data in memory grow on workers."""

    def test_large_data_with_the_same_bits(self, backend, monkeypatch):
        grown = count_trees(monkeypatch)
        found = fit(rw.LambdaMART, TRAIN, backend=backend)
        assert len(grown) == 3
        expected = fit(rw.LambdaMART, TRAIN, backend=rw.Serial())
        assert found.predict(VALID).tobytes() == expected.predict(VALID).tobytes()

    @pytest.mark.parametrize(
        ("ranker", "params"),
        [
            (rw.MART, {}),
            (rw.LambdaMART, {"lambdas": "lightgbm"}),
            (rw.GBRank, {"lightgbm_params": {"bagging_fraction": 0.5, "bagging_freq": 1}}),
            (rw.GBRank, {"lightgbm_params": {"monotone_constraints": [1, 0, 0, 0, 0]}}),
        ],
    )
    def test_others_stay_here(self, ranker, params, backend, monkeypatch):
        grown = count_trees(monkeypatch)
        found = fit(ranker, TRAIN, backend=backend, n_estimators=1, **params)
        expected = fit(ranker, TRAIN, backend=rw.Serial(), n_estimators=1, **params)
        assert not grown
        assert found.predict(VALID).tobytes() == expected.predict(VALID).tobytes()

    def test_small_data(self, backend, monkeypatch):
        monkeypatch.setattr(tree_boosting, "_SENT", 1_000_000)
        grown = count_trees(monkeypatch)
        fit(rw.GBRank, TRAIN, backend=backend, n_estimators=1)
        assert not grown


def test_early_stopping_is_that_of_one_machine(sets):
    params = {"n_estimators": 30, "early_stopping_rounds": 2, "learning_rate": 0.9}
    expected = fit(rw.LambdaMART, TRAIN, VALID, rw.Serial(), **params)
    found = fit(rw.LambdaMART, sets[id(TRAIN)], sets[id(VALID)], **params)
    assert len(expected.history_) < 30
    assert found.history_ == expected.history_


def test_own_lambdas_on_large_data(sets, client, monkeypatch):
    monkeypatch.setattr(tree_boosting, "_MANY", 1_000)
    params = {"lambdas": "lightgbm", "n_estimators": 6}
    expected = fit(rw.LambdaMART, TRAIN, backend=rw.Serial(), **params)
    assert ["train" in record for record in expected.history_] == [True, True, False, True, False, True]
    for at in (0, 8):  # no worker dies, or one while a later tree is grown
        killed = kill_once(monkeypatch, client, at)
        found = fit(rw.LambdaMART, sets[id(TRAIN)], **params)
        assert len(killed) == bool(at)
        for one, other in zip(found.history_, expected.history_, strict=True):
            assert one == pytest.approx(other)
        np.testing.assert_allclose(found.predict(VALID), expected.predict(VALID), rtol=1e-9)


def test_a_cluster_whose_client_is_not_the_default_one(sets, monkeypatch):
    """As of ``rw.Dask("tcp://...")``, whose client is Rankwright's own."""
    monkeypatch.setattr(distributed.client, "_global_clients", {})
    found = contextvars.Context().run(fit, rw.LambdaMART, sets[id(TRAIN)])
    assert found.predict(VALID).tobytes() == fit(rw.LambdaMART, TRAIN, backend=rw.Serial()).predict(VALID).tobytes()


def test_going_on_from_a_model(sets, tmp_path):
    for params in ({}, {"lambdas": "lightgbm"}):
        first = fit(rw.LambdaMART, TRAIN, backend=rw.Serial(), **params)
        rw.save(first, tmp_path / "first.json")
        again = {"init_model": tmp_path / "first.json", "n_estimators": 5} | params
        expected = fit(rw.LambdaMART, TRAIN, backend=rw.Serial(), **again)
        found = fit(rw.LambdaMART, sets[id(TRAIN)], **again)
        np.testing.assert_allclose(found.predict(VALID), expected.predict(VALID), rtol=0.0 if not params else 1e-9)


def kill_once(monkeypatch, client, at):
    """Let one worker die while the task number ``at`` of a process group is under way; return a list of the killed."""
    killed, calls, finish = [], [], ProcessGroup._finish

    def finish_without_one(self, futures):
        calls.append(1)
        if len(calls) == at:
            worker, pid = next(iter(client.run(os.getpid, workers=self.workers[:1]).items()))
            killed.append(worker)
            os.kill(pid, signal.SIGKILL)
        return finish(self, futures)

    monkeypatch.setattr(ProcessGroup, "_finish", finish_without_one)
    return killed


@pytest.mark.parametrize(
    "params",
    [{}, pytest.param({"lightgbm_params": {"feature_fraction": 0.6}}, marks=pytest.mark.slow)],
    ids=["", "feature_fraction"],
)
def test_a_fit_survives_the_death_of_a_worker_to_the_same_bits(params, backend, client, monkeypatch):
    expected = fit(rw.LambdaMART, TRAIN, VALID, rw.Serial(), n_estimators=6, **params)
    train = rw.DistributedQueries.from_queries(TRAIN, backend)
    killed = kill_once(monkeypatch, client, at=7)  # tree 4, after three calls to prepare
    found = fit(rw.LambdaMART, train, VALID, n_estimators=6, **params)
    assert len(killed) == 1
    assert found.history_ == expected.history_
    assert found.predict(VALID).tobytes() == expected.predict(VALID).tobytes()


class TestProcessGroup:
    @pytest.fixture
    def shards(self, client, backend):
        client.wait_for_workers(2)
        return backend.scatter(TRAIN)

    def test_each_member_has_its_own_shards(self, shards):
        group = ProcessGroup(shards)

        def count(process, parts, factor):
            return process.communicator.rank, factor * sum(part.n_docs for part in parts)

        found = group.call(count, shards, 2)
        assert [rank for rank, _ in found] == [0, 1]
        assert sum(n for _, n in found) == 2 * TRAIN.n_docs
        assert len(group.ranks) == len(shards)
        group.close()

    def test_an_error_on_one_member_ends_the_task_on_all(self, shards):
        def fail(process, parts):
            if process.communicator.rank == 1:
                raise KeyError("of one process")
            process.communicator.broadcast(None if process.communicator.rank else b"") and None
            process.communicator.gather_at_first(memoryview(b""), [memoryview(bytearray(1))] * 2)

        with pytest.raises(KeyError, match="of one process"):
            ProcessGroup(shards).call(fail, shards)

    def test_two_gangs_take_turns(self, shards):
        def work(process, parts):
            return len(process.communicator.broadcast(b"x" * 1_000_000 if process.communicator.rank == 0 else None))

        found = []

        def run():
            group = ProcessGroup(shards)
            found.extend(group.call(work, shards) for _ in range(3))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(timeout=60)
        assert found == [[1_000_000] * 2] * 6

    def test_after_three_losses_the_fit_ends(self, sets, monkeypatch):
        def lose(self, fn, *arguments):
            raise ProcessesLostError("gone")

        monkeypatch.setattr(ProcessGroup, "call", lose)
        with pytest.raises(WorkersLostError, match="died 3 times while one tree was grown"):
            fit(rw.LambdaMART, sets[id(TRAIN)])

    def test_members_are_freed_after_a_fit(self, client, sets):
        def list_keys():
            return {str(key) for keys in client.has_what().values() for key in keys if "process-group" in str(key)}

        before = list_keys()  # errors of other tests may keep theirs
        fit(rw.GBRank, sets[id(TRAIN)], n_estimators=1)
        end = time.monotonic() + 10
        while list_keys() - before and time.monotonic() < end:
            gc.collect()
            time.sleep(0.05)
        assert not list_keys() - before


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"bagging_fraction": 0.5, "bagging_freq": 1}, "with bagging_fraction each worker would draw other documents"),
        ({"data_sample_strategy": "goss"}, "goss"),
        ({"feature_fraction_bynode": 0.5}, "feature_fraction_bynode"),
        ({"extra_trees": True}, "extra_trees"),
        ({"interaction_constraints": [[0, 1], [2]]}, "interaction_constraints"),
        ({"monotone_constraints": [1, 0, 0, 0, 0], "monotone_constraints_method": "advanced"}, "'basic' only"),
        ({"cegb_penalty_split": 0.1}, "cegb_penalty"),
        ({"max_cat_threshold": 1000}, "max_cat_threshold=1000"),
    ],
)
def test_parameters_of_one_machine_are_refused_before_anything_starts(params, said):
    remote = Remote()
    with pytest.raises(rw.InputError, match=f"LambdaMART needs the features in the memory of this machine: .*{said}"):
        rw.LambdaMART(lightgbm_params=params).fit(SealedQueries(VALID, remote))
    assert not remote.stored


def test_what_has_no_effect_is_not_refused():
    assert explain_refusal({"bagging_fraction": 0.5, "bagging_freq": 0, "extra_trees": False, "max_bin": 15}) is None


def test_a_cluster_of_another_kind_is_refused():
    with pytest.raises(rw.InputError, match=r"trees grow on the workers of rw\.Dask"):
        rw.MART().fit(SealedQueries(VALID, Remote()))


def grow_on_two_threads(X, targets, weak):
    """Return trees grown on two machines, which are threads of this process."""
    params = weak.to_lightgbm(1)
    bins = make_bins(X[draw_rows(len(X), params)], len(X), params)
    listeners, found = [Listener("127.0.0.1") for _ in range(2)], {}

    def work(rank):
        own = slice(0, len(X) // 3) if rank == 0 else slice(len(X) // 3, None)
        communicator = listeners[rank].connect(b"s" * 16, rank, [each.address for each in listeners])
        parallel = params | {"tree_learner": "data", "num_machines": 2}
        data = open_bins(bins, len(X[own]), parallel)
        data._push_rows(X[own])
        counter = SplitCounter([X[own]], read_bins(bins), parallel, communicator)
        with connect_lightgbm(communicator):
            grower = TreeGrower(data, lightgbm.Booster(parallel, data), True, False)
        for target in targets:
            gradient, curvature = (each[own] for each in target)
            counter.begin_tree((float(gradient.sum(dtype=float)), float(curvature.sum(dtype=float))))
            with connect_lightgbm(communicator, counter):
                tree = grower.fit(gradient, curvature)
            counter.check_tree(tree.trees[0])
            found.setdefault(rank, []).append(tree.trees[0].text())
        communicator.close()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(timeout=60)
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("seed", range(4))
def test_trees_of_rare_values_and_uneven_curvatures_have_the_bits_of_one_machine(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 12)).astype(np.float32)
    X[:, :4] = np.round(np.maximum(X[:, :4], 0.0), 1)
    X[:, 6:][rng.random((1500, 6)) < 0.95] = 0.0
    X[:, 4:8][rng.random((1500, 4)) < 0.05] = np.nan
    targets = []
    for t in range(4):
        gradient = rng.normal(size=1500) + np.nan_to_num(X[:, t]) - np.nan_to_num(X[:, 11 - t]) ** 2
        targets.append([round_for_exact_sums(each) for each in (gradient, np.exp(1.5 * rng.normal(size=1500)))])
    weak = RegressionTree(31, 20)
    queries = rw.Queries.from_arrays(X, rng.integers(0, 2, 1500), group=[10] * 150)
    grower = weak.prepare(queries, 1)
    expected = [grower.fit(*target).trees[0].text() for target in targets]
    assert grow_on_two_threads(X, targets, weak) == expected


class TestCommunicator:
    @pytest.fixture
    def connect(self):
        opened = []
        yield lambda n: opened.extend(self.open(n)) or opened
        for each in opened:
            each.close()

    def open(self, n):
        listeners, found = [Listener("127.0.0.1") for _ in range(n)], {}

        def work(rank):
            found[rank] = listeners[rank].connect(b"0123456789abcdef", rank, [each.address for each in listeners])

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(n)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(timeout=10)
        return [found[rank] for rank in range(n)]

    def test_large_messages_cross_each_other(self, connect):
        processes = connect(3)
        values = np.random.default_rng(0).integers(0, 256, (3, 3, 3_000_000), dtype=np.uint8)
        received = np.zeros_like(values)

        def work(rank):
            processes[rank].exchange(
                [memoryview(row) for row in values[rank]], [memoryview(row) for row in received[rank]]
            )

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(timeout=30)
        for one in range(3):
            for other in range(3):
                if one != other:
                    assert (received[one, other] == values[other, one]).all()

    def test_a_process_that_is_gone_is_noticed_at_once(self, connect):
        first, second = connect(2)
        second.close()
        start = time.monotonic()
        with pytest.raises(ConnectionLostError):
            first.exchange([memoryview(b"")] * 2, [memoryview(b""), memoryview(bytearray(8))])
        assert time.monotonic() - start < 1.0

    def test_strangers_are_not_let_in(self, monkeypatch):
        monkeypatch.setattr("rankwright.runtime.communicator._CONNECT_SECONDS", 0.3)
        listener, other = Listener("127.0.0.1"), Listener("127.0.0.1")
        addresses = [listener.address, other.address]
        stranger = threading.Thread(target=lambda: other.connect(b"another secret!!", 1, addresses).close())
        stranger.start()
        with pytest.raises(ConnectionLostError, match="cannot connect with the others"):
            listener.connect(b"0123456789abcdef", 0, addresses)
        stranger.join()

    def test_they_stay_in_their_process(self, connect):
        with pytest.raises(TypeError, match="cannot be sent"):
            connect(1)[0].__reduce__()
