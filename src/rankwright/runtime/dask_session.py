"""The connection to a Dask cluster: its workers, and the messages to them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from itertools import count, cycle
from time import monotonic, sleep
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakSet, WeakValueDictionary

from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.runtime.backends import count_in_block
from rankwright.runtime.dask_store import CALL, DROP, Place, find_worker, open_store
from rankwright.runtime.workers.base import WorkersLostError

T = TypeVar("T")

ATTEMPTS = 3  # of a call whose workers die
_CONNECT_TIMEOUT = 10.0  # seconds to wait for a scheduler
_WORKER_TIMEOUT = 60.0  # seconds to wait for another worker after one was lost
_REACH_TIMEOUT = 5.0  # seconds to wait for a worker that is called
_DROP_DELAY = 0.2  # seconds after which workers are told what is needed no more, if no call tells them before
_SIGN = 60.0  # seconds after which the scheduler is given a task, or else it may take the cluster for an idle one
_LOOK = 0.05  # seconds between two looks at which workers there are
_NOTICING = 1.0  # seconds until a client notices that its scheduler is gone


@dataclass(eq=False)
class Session:
    """A connection to a cluster: into how many groups a data set is cut, and which worker has a group.

    Parameters
    ----------
    address : str
        The address of the scheduler.
    client : distributed.Client
        The connection.
    slots : list of str
        The worker of each slot: each worker has one for each of its threads. While groups are in use, another worker
        takes a slot only if its own is gone or has too many, so that groups stay where they are.
    name : str
        The name of the session's stores on the workers, which no other session has.
    numbers : iterator of int
        The numbers of groups and tasks.
    tokens : dict of str
        The token of the store of each worker that is known to have one.
    reached : set of str
        The workers that were reached from here.
    indirect : set of str
        The workers that cannot be reached from here, but by way of the scheduler.
    dropped : deque
        The places and numbers of groups that are needed no more, and that workers are still to be told of.
    groups : WeakValueDictionary
        The groups that are in use, by the identity of their recipes.
    in_use : WeakSet
        The groups that are in use.
    checked : set of str
        The workers whose versions are known to be those that are here.
    """

    address: str
    client: Any
    slots: list[str] = field(default_factory=list)
    name: str = field(default_factory=lambda: uuid4().hex)
    numbers: Iterator[int] = field(default_factory=count)
    tokens: dict[str, str] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    indirect: set[str] = field(default_factory=set)
    dropped: deque[tuple[Place, int]] = field(default_factory=deque)
    groups: WeakValueDictionary[int, Any] = field(default_factory=WeakValueDictionary)
    in_use: WeakSet[Any] = field(default_factory=WeakSet)
    checked: set[str] = field(default_factory=set)
    _lease: Any = None  # the future of a result that Dask keeps as long as this session lives
    _sign: Any = None  # the future of the last task, with its time
    _is_dropping: bool = False

    @classmethod
    def of_client(cls, client: Any) -> Session:
        """Return the session of a client, and check the workers if it is a new one."""
        if getattr(client, "asynchronous", False) or client.status != "running":
            raise InputError(f"{client!r}: expected a client that is connected and not asynchronous")
        place = os.getpid(), client.scheduler.address
        with _opening:
            found = _sessions.get(place)
            if found is None or found.client is not client:
                found = cls(client.scheduler.address, client)
                found.update_workers()
                _sessions[place] = found
            return found

    @classmethod
    def of_address(cls, address: str) -> Session:
        """Return the session with a scheduler, connected to now if there is none."""
        if find_worker() is not None:
            raise InputError(
                f"Dask({address!r}) inside a task of a Dask worker would wait for itself; use Serial() there"
            )
        with _opening:
            found = _sessions.get((os.getpid(), address))
            if found is not None and found.client.status == "running":
                return found
            try:
                client = require("distributed").Client(address, timeout=_CONNECT_TIMEOUT, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answers at {address} ({type(error).__name__}); start one with `dask scheduler`"
                ) from None
            return cls.of_client(client)

    def update_workers(self) -> None:
        """Update the list of workers, of which there must be one; check those that are new, and open their stores."""
        end = monotonic() + _WORKER_TIMEOUT
        while True:
            with self.detect_lost_scheduler():
                try:
                    self.client.wait_for_workers(1, timeout=max(end - monotonic(), 0.1))
                except TimeoutError:
                    raise WorkersLostError(
                        f"the Dask cluster at {self.address} has no worker; start some with `dask worker "
                        f"{self.address}`"
                    ) from None
                threads = dict(sorted(self.client.nthreads().items()))
            new = [worker for worker in threads if worker not in self.checked]
            if new:
                _check_versions(self.client, new)
                self.checked.update(new)
            for worker in set(self.tokens).difference(threads):
                self.tokens.pop(worker, None)
            self._open_stores([worker for worker in threads if worker not in self.tokens])
            there = {worker: n for worker, n in threads.items() if worker in self.tokens}
            if there:
                break
            sleep(_LOOK)  # the scheduler does not know yet that they are gone
        self.slots = _assign_slots(self.slots if self.in_use else (), there)

    def _open_stores(self, workers: Sequence[str]) -> None:
        """Open this session's stores on workers, except on those that do not answer."""
        if not workers:
            return
        with self.detect_lost_scheduler():
            if self._lease is None:
                self._lease = self.client.submit(int, key=f"rankwright-{self.name}-lease", pure=False)
            found = self.client.run(open_store, self.name, self._lease.key, workers=list(workers), on_error="return")
        for worker, answer in found.items():
            if isinstance(answer, str):
                self.tokens[worker] = answer
            elif not isinstance(answer, OSError):
                raise answer

    def give_up(self, worker: str) -> None:
        """Note that a worker did not answer, or had lost its store: whether it is there is looked up."""
        token = self.tokens.pop(worker, None)
        self.update_workers()
        if token is not None and self.tokens.get(worker) == token and worker not in self.reached:
            self.indirect.add(worker)

    @contextmanager
    def detect_lost_scheduler(self) -> Iterator[None]:
        """Raise WorkersLostError if a call of the client inside the block fails because the scheduler is gone."""
        try:
            yield
        except Exception as error:  # the errors of a lost connection have no common base
            end = monotonic() + (_NOTICING if isinstance(error, OSError) else 0.0)
            while self.client.status == "running" and monotonic() < end:
                sleep(0.02)
            if self.client.status != "running":
                raise WorkersLostError(f"the Dask scheduler at {self.address} is gone") from None
            raise

    def cut_into_groups(self, parts: Sequence[T]) -> Iterator[tuple[int, Sequence[T]]]:
        """Yield groups of neighbouring parts, which are whole blocks, with the numbers of their slots.

        Fewer groups than slots are spread evenly over these, and so over the workers.
        """
        size, n_slots = count_in_block(len(parts)), max(len(self.slots), 1)
        n_blocks = -(-len(parts) // size)
        n = min(n_slots, n_blocks)
        for number in range(n):
            own = parts[size * (number * n_blocks // n) : size * ((number + 1) * n_blocks // n)]
            yield number * n_slots // n, own

    def list_places(self) -> list[Place]:
        """Return where the groups of each slot are to be."""
        return [Place(worker, self.tokens.get(worker, "")) for worker in self.slots]

    def is_open(self, place: Place) -> bool:
        """Return whether a place has kept what was put there, as far as is known."""
        return self.tokens.get(place.worker) == place.token

    def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a coroutine that runs where the connections are, in a thread of the client."""
        if self.client.status != "running":
            raise WorkersLostError(f"the Dask scheduler at {self.address} is gone")
        future = asyncio.run_coroutine_threadsafe(start(), self.client.loop.asyncio_loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def call(self, place: Place, wanted: Sequence[tuple[str, str, Sequence[int]]], frames: Any) -> dict[str, Any]:
        """Return the answer of a worker to a message; raise OSError if it does not answer."""
        message = {"session": self.name, "token": place.token, "wanted": wanted, "frames": frames}
        self._give_sign()
        answer: dict[str, Any] = await self._send(place.worker, CALL, dropped=self._list_dropped(place), **message)
        return answer

    async def _send(self, worker: str, operation: str, **message: Any) -> Any:
        """Return the answer of an operation of a worker, directly or by way of the scheduler."""
        if worker in self.indirect:
            found = await self.client.scheduler.broadcast(
                msg={"op": operation, **message}, workers=[worker], on_error="ignore"
            )
            if worker not in found:
                raise OSError(f"{worker} does not answer the scheduler")
            return found[worker]
        pool = self.client.rpc
        comm = await pool.connect(worker, timeout=_REACH_TIMEOUT)
        try:
            found = await require("distributed.core").send_recv(comm, op=operation, **message)
        finally:
            pool.reuse(worker, comm)
        self.reached.add(worker)
        return found

    def submit(self, worker: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a task of Dask on a worker, or on another one if that is gone, and return its future."""
        return self.client.submit(
            task,
            *arguments,
            key=f"rankwright-{self.name}-{next(self.numbers)}",
            pure=False,
            workers=[worker],
            allow_other_workers=True,
        )

    def drop(self, place: Place, name: int) -> None:
        """Note that a group is needed no more, which its worker is told with the next call or in a moment."""
        self.dropped.append((place, name))
        if not self._is_dropping:
            self._is_dropping = True
            with suppress(Exception):  # the client may be closed
                self.client.loop.add_callback(self._send_dropped)

    async def _send_dropped(self) -> None:
        """Tell the workers which groups are needed no more."""
        await asyncio.sleep(_DROP_DELAY)
        self._is_dropping = False
        for place in {place for place, _ in list(self.dropped)}:
            names = self._list_dropped(place)
            with suppress(Exception):  # the worker or the client may be gone
                await self._send(place.worker, DROP, session=self.name, token=place.token, names=names)

    def _list_dropped(self, place: Place) -> list[int]:
        """Return the numbers of the groups at a place that are needed no more, once."""
        entries = [self.dropped.popleft() for _ in range(len(self.dropped))]
        self.dropped.extend(entry for entry in entries if entry[0] != place)
        return [name for other, name in entries if other == place]

    def _give_sign(self) -> None:
        """Let the scheduler know from time to time that the cluster is at work."""
        if self._sign is None or monotonic() > self._sign[1] + _SIGN:
            self._sign = self.submit(self.slots[0], int), monotonic()


def _assign_slots(slots: Sequence[str], n_threads: Mapping[str, int]) -> list[str]:
    """Return the worker of each slot, its own where that is there and has a thread for it; no slots are new ones.

    >>> _assign_slots([], {"a": 2, "b": 1}), _assign_slots(["a", "a", "b"], {"a": 2, "c": 1})
    (['a', 'a', 'b'], ['a', 'a', 'c'])
    """
    free = Counter(n_threads)
    if not slots:
        return list(free.elements())
    kept: list[str | None] = []
    for worker in slots:
        kept.append(worker if free[worker] > 0 else None)
        free[worker] -= 1
    others = cycle(list(free.elements()) or list(n_threads))
    return [next(others) if worker is None else worker for worker in kept]


_opening = threading.RLock()
_sessions: dict[tuple[int, str], Session] = {}  # the latest one of each process and scheduler


def _check_versions(client: Any, workers: Sequence[str]) -> None:
    """Raise InputError if workers lack Rankwright, or have other versions of what decides the bits of results."""
    for package, ours in _list_versions().items():
        for worker, theirs in client.run(metadata.version, package, workers=list(workers), on_error="return").items():
            if isinstance(theirs, metadata.PackageNotFoundError):
                raise InputError(f"the Dask worker {worker} has no {package}: install rankwright on all workers")
            if isinstance(theirs, str) and theirs != ours:
                raise InputError(
                    f"the Dask worker {worker} has {package} {theirs}, and {ours} is here; install the same version on "
                    "all machines"
                )


def _list_versions() -> dict[str, str]:
    """Return the versions here of what decides the bits of results."""
    return {package: metadata.version(package) for package in ("rankwright", "numpy", "numba", "lightgbm")}
