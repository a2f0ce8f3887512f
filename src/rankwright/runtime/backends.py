"""Backends: where the work runs, on one thread or on many, with the same bits.

A backend is a small picklable value; thread pools live outside it. The data alone, never the number of workers,
decide how work is cut into parts, and results are combined in the order of the parts. Sums within a part are made by
kernels in a fixed order. BLAS is not used for them: its sums depend on its number of threads.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from itertools import count, islice, repeat
from multiprocessing import parent_process
from operator import add, attrgetter
from typing import Any, Generic, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.runtime.process_limits import read_core_limit

T = TypeVar("T")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

_DOCS_PER_SHARD = 4096
_SMALL = 200_000  # documents up to which several fits run side by side; beyond, the parts of each fit do
_FEW_SHARDS = 16  # of data that are not large: with more, threads would wait for the interpreter lock
_MOST_DOCS_PER_SHARD = 1 << 18  # large data have more shards, so that more machines can share them
_MANY_SHARDS, _BLOCK = 256, 4  # from so many on, neighbours are added up first, on the worker that has them
BLOCKS_TOGETHER = 16  # then the sums of so many neighbouring blocks, on a worker as well: the client gets few sums


class Divisible(Protocol):
    """The interface of a data set that can be cut into parts of whole queries."""

    @property
    def n_docs(self) -> int:
        """The number of documents."""

    def shards(self, n: int) -> Sequence[Self]:
        """Return at most ``n`` parts of about equal size, in order."""


D = TypeVar("D", bound=Divisible)


@runtime_checkable
class Distributed(Protocol):
    """The interface of a data set whose parts are where a backend works on them."""

    @property
    def backend(self) -> Backend:
        """The backend that has the parts."""

    def make_shards(self) -> Shards[Any]:
        """Return the shards of the data set, which stay where they are."""


@dataclass(frozen=True, slots=True)
class Shards(Generic[T_co]):
    """The parts of a data set, in order, as references that only the backend which made them can use.

    Parameters
    ----------
    handles : tuple
        The backend's own references to the parts, which may be on other machines. Only the backend that made the
        shards may use them.
    """

    handles: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.handles)


@runtime_checkable
class Backend(Protocol):
    """The interface of what runs functions on items (``map``, ``each``) or on the shards of a data set, in parallel.

    A function that works on shards is called once for every part, as ``fn(part, *arguments)``: of an argument that is
    a ``Shards`` it gets the corresponding part. It must be picklable, and its result may depend on nothing else.
    """

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(item)`` in the order of the items, few of them in memory at a time."""

    def each(self, fn: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return ``fn(item)`` for all items, in order; ``fn`` shares the memory of the caller."""

    def scatter(self, queries: D) -> Shards[D]:
        """Cut into shards of whole queries; their number depends on the data only."""

    def distribute(self, parts: Iterable[T]) -> Shards[T]:
        """Make shards of these parts, one each."""

    def apply(self, fn: Callable[..., R], shards: Shards[Any], *arguments: Any) -> Shards[R]:
        """Return shards of the results for every part, which stay where they are."""

    def gather(self, fn: Callable[..., R], shards: Shards[Any], *arguments: Any) -> list[R]:
        """Return the results for every part, in order."""

    def sum(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        """Add up the results for every part, in order."""

    def concat(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        """Concatenate the arrays that are the results for every part, in order."""

    def fold(self, fn: Callable[[Any, T], T], shards: Shards[Any], values: Sequence[T]) -> list[T]:
        """Return each of the values after ``value = fn(part, value)`` for one part after another, in order."""


class _LocalBackend(ABC):
    """The base of backends on one machine, which need only define ``each``; its shards are the parts themselves."""

    __slots__ = ()

    @abstractmethod
    def each(self, fn: Callable[[T], R], items: Sequence[T]) -> list[R]: ...

    def scatter(self, queries: D) -> Shards[D]:
        return self.distribute(queries.shards(count_shards(queries.n_docs)))

    def distribute(self, parts: Iterable[T]) -> Shards[T]:
        return Shards(tuple(parts))

    def apply(self, fn: Callable[..., R], shards: Shards[Any], *arguments: Any) -> Shards[R]:
        return Shards(tuple(self.gather(fn, shards, *arguments)))

    def gather(self, fn: Callable[..., R], shards: Shards[Any], *arguments: Any) -> list[R]:
        parts = shards.handles
        if isinstance(fn, attrgetter):  # too little work for threads
            return [fn(part) for part in parts]
        if not any(isinstance(argument, Shards) for argument in arguments):
            return self.each(lambda part: fn(part, *arguments), parts)
        columns = (each.handles if isinstance(each, Shards) else repeat(each, len(parts)) for each in arguments)
        return self.each(lambda row: fn(*row), list(zip(parts, *columns, strict=True)))

    def sum(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        found, size = self.gather(fn, shards, *arguments), count_in_block(len(shards))
        return reduce(add, found if size == 1 else sum_in_blocks(sum_in_blocks(found, size), BLOCKS_TOGETHER))

    def concat(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        return np.concatenate(self.gather(fn, shards, *arguments))

    def fold(self, fn: Callable[[Any, T], T], shards: Shards[Any], values: Sequence[T]) -> list[T]:
        found, parts = list(values), shards.handles
        for at in range(0, len(parts), _BLOCK):  # few at a time: those of data on a disk are read once
            found = self.each(partial(reduce, lambda value, part: fn(part, value), parts[at : at + _BLOCK]), found)
        return found


@dataclass(frozen=True, slots=True)
class Serial(_LocalBackend):
    """A backend that does everything on the calling thread.

    >>> list(Serial().map(abs, [-1, 2]))
    [1, 2]
    """

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(item)`` for each item."""
        return map(fn, items)

    def each(self, fn: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return ``fn(item)`` for all items."""
        return [fn(item) for item in items]


@dataclass(frozen=True, slots=True)
class Threads(_LocalBackend):
    """A backend that works on items and shards in parallel on ``n`` threads; the kernels release the GIL.

    >>> list(Threads(2).map(abs, [-1, 2]))
    [1, 2]
    """

    n: int

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise InputError(f"Threads({self.n!r}); expected a whole number of at least 1")

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(item)`` in order, at most ``2 n`` of them in flight."""
        return map(fn, items) if _inside.pool else self._map(fn, items)

    def _map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        remaining, is_abandoned = iter(items), threading.Event()

        def work(item: T) -> R:
            _inside.is_abandoned = is_abandoned
            try:
                return fn(item)
            finally:
                _inside.is_abandoned = None

        pool = _find_pool(self.n, os.getpid())
        waiting: deque[Future[R]] = deque(pool.submit(work, item) for item in islice(remaining, 2 * self.n))
        try:
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(remaining, 1))
        finally:
            is_abandoned.set()  # work that goes on ends at its next look at the time
            for future in waiting:
                future.cancel()

    def each(self, fn: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return ``fn(item)`` for all items: the caller and ``n - 1`` helpers take the next one until none is left."""
        helpers = min(self.n, len(items)) - 1
        if _inside.pool or helpers < 1:
            return [fn(item) for item in items]
        done: dict[int, R] = {}
        errors: dict[int, BaseException] = {}
        next_item = count()  # next() is atomic

        def work() -> None:
            while not errors and (i := next(next_item)) < len(items):
                try:
                    done[i] = fn(items[i])
                except BaseException as error:
                    errors[i] = error

        pool = _find_pool(self.n, os.getpid())
        futures = [pool.submit(work) for _ in range(helpers)]
        try:
            _inside.pool = True
            work()
            for future in futures:
                if not future.cancel():  # one that has not begun has nothing left to do
                    future.result()
        except BaseException as error:  # an interrupt while waiting: the helpers stop after their items
            errors.setdefault(len(items), error)
            wait(futures)
        finally:
            _inside.pool = False
        if errors:  # items are taken in order, so the first of them all is among these
            raise errors[min(errors)]
        return [done[i] for i in range(len(items))]


class _WorkerFlag(threading.local):
    """A set of flags per thread: whether it is a worker of a pool, which works in place, and if anyone still waits."""

    pool = False
    is_abandoned: threading.Event | None = None


_inside = _WorkerFlag()


def is_abandoned() -> bool:
    """Return whether nobody waits for the result of this thread's work any more, as after an interrupt."""
    return _inside.is_abandoned is not None and _inside.is_abandoned.is_set()


def map_fits(backend: Backend, fn: Callable[[T], R], items: Sequence[T], n_docs: int) -> Iterator[R]:
    """Yield ``fn(item)`` of each item, a whole fit: several at a time if the data is small, else one by one."""
    return backend.map(fn, items) if len(items) > 1 and n_docs <= _SMALL else map(fn, items)


def count_fits(backend: Backend, n_docs: int) -> int:
    """Return how many fits ``map_fits`` has in work at a time."""
    return getattr(backend, "n", 1) if n_docs <= _SMALL else 1


_blas_alone = threading.Lock()  # only one thread of a process can limit BLAS at a time


@contextmanager
def limit_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the block, so that its results are the same in every process."""
    with _blas_alone, _get_blas_controller().limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _get_blas_controller() -> Any:
    """Return the controller of the number of threads of the BLAS libraries in this process."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def resolve(backend: Backend | None, *sets: Any) -> Backend:
    """Return the backend to use: ``None`` means all cores, or one thread inside a worker process.

    Data sets whose features are on a cluster are worked on there, and on no other backend.
    """
    owners = [part.backend for part in sets if getattr(part, "backend", None) is not None]
    if owners:
        if any(each != owners[0] for each in (owners if backend is None else [*owners, backend])):
            other = "other documents are elsewhere" if backend is None else f"backend={backend!r}"
            raise InputError(f"features are on the workers of {owners[0]!r}, and {other}; leave backend out")
        return cast(Backend, owners[0])
    if backend is not None:
        if not isinstance(backend, _LocalBackend) and not isinstance(backend, Backend):  # the latter is slow to check
            raise InputError(f"backend={backend!r}; expected Serial(), Threads(n), Dask(address) or None")
        return backend
    cores = count_cores()
    return Serial() if cores == 1 or parent_process() is not None else Threads(cores)


def choose_nearest(queries: Any, backend: Backend) -> Backend:
    """Return the backend that works where the features of a data set are: its own, or threads of this machine.

    It is for work that is done once: sending the features to a cluster would take longer.
    """
    if queries.backend is not None:
        return cast(Backend, queries.backend)
    return backend if isinstance(backend, _LocalBackend) else Threads(getattr(backend, "n", 1))


def count_cores() -> int:
    """Return how many cores this process may use: those it may run on, at most the limit of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(cores, _core_limit())))


@lru_cache(maxsize=1)
def _core_limit() -> float:
    """Return how many cores the container allows this process, read once; infinity without a limit."""
    return read_core_limit()


def count_threads(backend: Backend) -> int:
    """Return how many threads a library such as LightGBM may start: one in a pool's worker, at most the cores."""
    return 1 if _inside.pool else min(getattr(backend, "n", 1), count_cores())


def count_shards(n_docs: int) -> int:
    """Return into how many shards a data set of ``n_docs`` documents is cut, on any backend."""
    few = max(1, min(_FEW_SHARDS, n_docs // _DOCS_PER_SHARD))
    return few if few < _FEW_SHARDS else few * -(-n_docs // (few * _MOST_DOCS_PER_SHARD))


@dataclass(slots=True)
class CarriedValues(Generic[T]):
    """A function of a part that carries values from call to call, for backends that fold on other machines."""

    fn: Callable[[Any, T], T]
    values: list[T]

    def __call__(self, part: Any) -> list[T]:
        """Return the values after the part."""
        self.values = [self.fn(part, value) for value in self.values]
        return self.values


def count_in_block(n_shards: int) -> int:
    """Return how many neighbouring shards are added up before others, on any backend: one where there are few."""
    return 1 if n_shards < _MANY_SHARDS else _BLOCK


def sum_in_blocks(results: Sequence[Any], size: int) -> list[Any]:
    """Return the sums of so many neighbouring results each, in order."""
    return [reduce(add, results[at : at + size]) for at in range(0, len(results), size)]


def enter_pool() -> None:
    """Mark the calling thread as a worker of a pool, so that its own parallel work runs in place."""
    _inside.pool = True


@lru_cache(maxsize=8)
def _find_pool(n: int, process: int) -> ThreadPoolExecutor:  # a forked child must not use its parent's pool
    """Return the pool of ``n`` threads of the process with the id ``process``, made at the first call."""
    return ThreadPoolExecutor(n, thread_name_prefix="rankwright", initializer=enter_pool)
