"""The connection to a Dask cluster: its workers, what is sent to them, and the tasks that they run."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from rankwright.runtime.workers.base import WorkersLostError

T = TypeVar("T")

ATTEMPTS = 3  # of a call whose workers die
_CONNECT_TIMEOUT = 10.0  # seconds to wait for a scheduler
_WORKER_TIMEOUT = 60.0  # seconds to wait for another worker after one was lost
_SEND_TIMEOUT = 5.0  # seconds to wait for the worker that data are sent to
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
    is_direct : bool
        Whether workers can be reached from here, and not by way of the scheduler only.
    name : str
        Part of the names of all tasks, which no other session has.
    numbers : iterator of int
        The numbers of tasks.
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
    is_direct: bool = True
    name: str = field(default_factory=lambda: uuid4().hex)
    numbers: Iterator[int] = field(default_factory=count)
    groups: WeakValueDictionary[int, Any] = field(default_factory=WeakValueDictionary)
    in_use: WeakSet[Any] = field(default_factory=WeakSet)
    checked: set[str] = field(default_factory=set)

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
        if _is_on_worker():
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
        """Update the list of workers; wait for one if there is none, and check those that are new."""
        with self.detect_lost_scheduler():
            try:
                self.client.wait_for_workers(1, timeout=_WORKER_TIMEOUT)
            except TimeoutError:
                raise WorkersLostError(
                    f"the Dask cluster at {self.address} has no worker; start some with `dask worker {self.address}`"
                ) from None
            threads = sorted(self.client.nthreads().items())
        new = [worker for worker, _ in threads if worker not in self.checked]
        if new:
            _check_versions(self.client, new)
            self.checked.update(new)
        if threads:
            self.slots = _assign_slots(self.slots if self.in_use else (), dict(threads))

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

    def choose_worker(self, slot: int) -> str:
        """Return the worker of a slot."""
        slots = self.slots
        return slots[slot % len(slots)]

    def send(self, value: Any, slot: int) -> Any:
        """Send a value to the worker of a group, and return its future; to another worker if that one is gone."""
        for _ in range(ATTEMPTS):
            worker = self.choose_worker(slot)
            options = {"workers": [worker], "hash": False, "direct": self.is_direct, "timeout": _SEND_TIMEOUT}
            try:
                with self.detect_lost_scheduler():
                    return self.client.scatter([value], **options)[0]
            except (OSError, KeyError):
                self.update_workers()
                self.is_direct &= worker not in self.slots  # it is there, but cannot be reached
        raise WorkersLostError(f"the workers of the Dask cluster at {self.address} cannot be reached")

    def submit(self, slot: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a task on the worker of a group, or on another one if that is gone."""
        with self.detect_lost_scheduler():
            return self.client.submit(
                task,
                *arguments,
                key=f"rankwright-{self.name}-{next(self.numbers)}",
                pure=False,
                workers=[self.choose_worker(slot)],
                allow_other_workers=True,
            )


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


def _is_on_worker() -> bool:
    """Return whether this is the thread of a Dask worker."""
    try:
        require("distributed").get_worker()
    except ValueError:
        return False
    return True


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
