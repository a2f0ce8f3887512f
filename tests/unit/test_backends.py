"""Backends: order, laziness, errors, one level of parallelism."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
import time

import numpy as np
import pytest
from tests.remote_backend import Remote, SealedQueries

import rankwright as rw
from rankwright.kernels.scorers.linear_scores import compute_weighted_moments, sum_weighted_columns
from rankwright.optimisers.rounds import Deadline
from rankwright.runtime.backends import choose_nearest, count_shards, resolve

BACKENDS = [rw.Serial(), rw.Threads(1), rw.Threads(2), rw.Threads(5)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_map_keeps_the_order_and_is_lazy(backend):
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    def slow_first(i):
        time.sleep(0.01 if i % 7 == 0 else 0)
        return i * i

    results = backend.map(slow_first, items())
    assert next(results) == 0
    assert len(taken) <= 12
    assert list(results) == [i * i for i in range(1, 100)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_reach_the_caller(backend):
    def fail(i):
        if i == 3:
            raise KeyError("three")
        return i

    with pytest.raises(KeyError, match="three"):
        list(backend.map(fail, range(10)))
    assert list(backend.map(abs, [-1])) == [1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_scatter_sum_concat(backend):
    queries = rw.make_queries(700, n_docs=30, random_state=0)
    shards = backend.scatter(queries)
    assert len(shards) == count_shards(queries.n_docs) > 3
    X = queries.X.astype(float)
    total = backend.sum(lambda part, power: (part.X.astype(float) ** power).sum(axis=0), shards, 2)
    assert total == pytest.approx((X**2).sum(axis=0))
    assert total.tobytes() == rw.Serial().sum(lambda p: (p.X.astype(float) ** 2).sum(axis=0), shards).tobytes()
    doubled = backend.apply(lambda part: part.y * 2, shards)
    assert backend.concat(lambda part: part, doubled).tolist() == (queries.y * 2).tolist()


@pytest.mark.parametrize("backend", [rw.Serial(), rw.Threads(3)])
def test_folds_go_through_the_parts_in_order(backend):
    shards = backend.distribute("abcdefghi")
    assert backend.fold(lambda part, value: value + part, shards, ["", "x"]) == ["abcdefghi", "xabcdefghi"]


def test_work_done_once_stays_where_the_features_are():
    queries = rw.make_queries(3, random_state=0)
    sealed = SealedQueries(queries, Remote())
    for backend in (rw.Serial(), rw.Threads(2)):
        assert choose_nearest(queries, backend) is backend
        assert choose_nearest(sealed, backend) is sealed.backend
    assert choose_nearest(queries, Remote()) == rw.Threads(1)
    assert resolve(None, queries, None) == resolve(None)
    assert resolve(None, queries, sealed) is resolve(sealed.backend, sealed) is sealed.backend
    with pytest.raises(rw.InputError, match=r"backend=Serial\(\); leave backend out"):
        resolve(rw.Serial(), sealed)


def test_the_number_of_shards_depends_on_the_data_only():
    queries = rw.make_queries(700, n_docs=30, random_state=0)
    assert len({len(backend.scatter(queries)) for backend in BACKENDS}) == 1
    assert (count_shards(1), count_shards(10**4), count_shards(10**6), count_shards(4_194_304)) == (1, 2, 16, 16)
    assert (count_shards(4_194_305), count_shards(10**9)) == (32, 3824)
    assert 10**9 / 3824 <= 2**18


def test_sums_of_many_shards_are_made_in_blocks():
    values = 0.1 * np.arange(301.0) ** 3
    expected = sum(sum(values[at + 1 : at + 4], start=values[at]) for at in range(0, 301, 4))
    for backend in BACKENDS:
        assert backend.sum(lambda value: value, backend.distribute(values)) == expected
        few = backend.distribute(values[:255])
        assert backend.sum(lambda value: value, few) == sum(values[:255])  # from left to right


def test_threads_inside_threads_do_not_wait_for_each_other():
    backend = rw.Threads(2)
    nested = list(backend.map(lambda i: sum(backend.map(abs, range(i))), range(8)))
    assert nested == [sum(range(i)) for i in range(8)]


def test_threads_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=10)
    assert list(rw.Threads(2).map(lambda i: barrier.wait() >= 0, range(2))) == [True, True]


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_are_values(backend):
    assert pickle.loads(pickle.dumps(backend)) == backend


def test_resolve():
    assert resolve(rw.Threads(3)) == rw.Threads(3)
    assert isinstance(resolve(None), (rw.Serial, rw.Threads))
    with pytest.raises(rw.InputError, match="expected Serial"):
        resolve("threads")
    for n in (0, 1.5, "2", True):
        with pytest.raises(rw.InputError, match="whole number of at least 1"):
            rw.Threads(n)


def _resolved_name(queue):
    queue.put(repr(resolve(None)))


def test_one_thread_inside_a_worker_process():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_resolved_name, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == "Serial()"
    process.join()


def test_moments_have_the_same_bits_and_the_right_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_001, 7)).astype(np.float32)
    queries = rw.Queries.from_arrays(X, rng.integers(0, 3, 30_001), np.arange(30_001) // 10)

    def moments(part):
        ones = np.ones(len(part.y))
        return compute_weighted_moments(part.X, np.zeros(7), np.ones(7), part.y + 1, ones)

    found = [b.sum(moments, b.scatter(queries)) for b in BACKENDS]
    assert len({each.tobytes() for each in found}) == 1
    z = np.column_stack([X.astype(float), np.ones((30_001, 2))])
    assert found[0] == pytest.approx(np.triu(z.T @ ((queries.y + 1)[:, None] * z)), rel=1e-9, abs=1e-7)


def test_weighted_columns():
    rng = np.random.default_rng(0)
    weight, values = rng.random(50), rng.random((50, 7))
    assert sum_weighted_columns(weight, values) == pytest.approx(weight @ values, rel=1e-12)


def test_an_interrupt_stops_the_helpers():
    done = []

    def work(i):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        rw.Threads(2).each(work, range(100))
    finished = len(done)
    time.sleep(0.2)
    assert len(done) == finished < 5
    assert rw.Threads(2).each(abs, [-1, -2]) == [1, 2]


def test_the_first_error_is_raised():
    def fail(i):
        time.sleep(0.02 if i == 1 else 0)
        if i >= 1:
            raise KeyError(i)
        return i

    for backend in BACKENDS:
        with pytest.raises(KeyError, match="1"):
            backend.each(fail, range(10))


def test_work_that_nobody_waits_for_ends_at_its_next_look_at_the_time():
    """As the fits of a search that Ctrl-C ended; the threads then work for others."""
    begun, ended, shared = threading.Event(), threading.Event(), Deadline(None)

    def work(number):
        if number == 0:
            assert begun.wait(30)
            raise KeyboardInterrupt
        begun.set()
        deadline = Deadline(None)
        while not deadline():
            shared()
            time.sleep(0.001)
        assert shared()
        ended.set()
        return deadline.explain()

    with pytest.raises(KeyboardInterrupt):
        list(rw.Threads(2).map(work, [0, 1]))
    assert ended.wait(30)
    assert not shared()  # others may still wait for theirs
    assert list(rw.Threads(2).map(lambda _: Deadline(None)(), range(4))) == [False] * 4
    assert rw.Threads(2).each(lambda _: Deadline(None)(), range(4)) == [False] * 4
