"""Process groups: the workers of a cluster that have a data set, and work on one task at the same time.

Other calls give each worker work of its own. The processes of a group wait for each other in the middle of a task, as
LightGBM does when it grows a tree on several machines. All of them must be at work at once: a task that begins on some
workers while the others do something else that waits for the first would never end. So only one process group of a
cluster works at a time, and when a process dies the task ends on all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from rankwright.basics.optional_imports import require
from rankwright.runtime.backends import Shards, enter_pool
from rankwright.runtime.communicator import Communicator, ConnectionLostError, Listener
from rankwright.runtime.dask_backend import Dask
from rankwright.runtime.dask_calls import make_groups
from rankwright.runtime.dask_groups import Group, list_groups
from rankwright.runtime.dask_session import ATTEMPTS, Session
from rankwright.runtime.dask_store import WorkerStores
from rankwright.runtime.workers.base import WorkersLostError

_LOOK = 0.5  # seconds between two looks at which workers there are
_LOCK = "rankwright-process-group"


class ProcessesLostError(Exception):
    """The error of a task that ended because a process of the group was lost."""


class GroupProcess:
    """A worker of a process group, as an object on that worker: its connections, and what it keeps between tasks.

    Attributes
    ----------
    communicator : Communicator
        The connections with the other processes.
    n_threads : int
        The number of threads of the worker.
    state : object
        What the last task left for the next one.
    """

    communicator: Communicator

    def __init__(self) -> None:
        distributed = require("distributed")
        worker = distributed.get_worker()
        self.listener = Listener(distributed.comm.get_address_host(worker.address))
        self.n_threads = int(worker.state.nthreads)
        self.state: Any = None

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        raise TypeError("a process of a group cannot leave its worker")

    def close(self) -> None:
        """Close the connections, so that the other processes stop waiting for this one."""
        self.listener.close()
        if hasattr(self, "communicator"):
            self.communicator.close()

    def __del__(self) -> None:
        self.close()


class ProcessGroup:
    """The workers that have the shards of a data set, as processes of one group.

    Parameters
    ----------
    shards : Shards
        The shards. Each worker works on those that it has.
    """

    def __init__(self, shards: Shards[Any]) -> None:
        groups = list_groups(shards)
        self.session: Session = groups[0].session
        places = _find_workers(self.session, groups)
        self.workers = sorted(set(places))
        self._ranks = [self.workers.index(place) for place in places]
        self.ranks = [
            rank for rank, group in zip(self._ranks, groups, strict=True) for _ in range(group.recipe.n_parts)
        ]
        self._processes: list[Any] = []
        try:
            self._processes = [self._submit(rank, _open_process) for rank in range(len(self.workers))]
            addresses = self._finish(
                [self._submit(rank, _get_address, own) for rank, own in enumerate(self._processes)]
            )
            self._run(_connect, uuid4().bytes, addresses)
        except BaseException:
            self.close()
            raise

    def call(self, fn: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``fn(process, *arguments)`` of each process; of an argument that is shards it gets a list of its own.

        Raise ProcessesLostError if a process is lost. After that, and after any other error, the group is closed.
        """
        try:
            return self._run(fn, *arguments)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the processes, and what they keep."""
        for process in self._processes:
            with suppress(Exception):  # the cluster may be gone
                process.release()
        self._processes = []

    def _run(self, fn: Callable[..., Any], *arguments: Any) -> list[Any]:
        columns = [list_groups(each) if isinstance(each, Shards) else None for each in arguments]
        for column in columns:
            make_groups(column or [])
            self._check_places(column or [])
        with self._work_alone():
            futures = []
            for rank, process in enumerate(self._processes):
                own: list[Any] = []
                for argument, groups in zip(arguments, columns, strict=True):
                    if groups is None:
                        own.append(argument)
                    else:
                        mine = [each.recipe.kept for each, at in zip(groups, self._ranks, strict=True) if at == rank]
                        own.append([kept.name for kept in mine if kept is not None])
                is_shards = [groups is not None for groups in columns]
                futures.append(self._submit(rank, _call_process, process, fn, self.session.name, is_shards, *own))
            return self._finish(futures)

    def _check_places(self, groups: Sequence[Group]) -> None:
        """Raise ProcessesLostError if groups are not where this process group works, because a worker was lost."""
        for group, rank in zip(groups, self._ranks, strict=False):
            kept = group.recipe.kept
            if kept is None or kept.place.worker != self.workers[rank]:
                raise ProcessesLostError(f"a worker of the Dask cluster at {self.session.address} was lost")

    @contextmanager
    def _work_alone(self) -> Iterator[None]:
        """Keep other process groups of the cluster waiting inside the block."""
        with self.session.detect_lost_scheduler():
            lock = _find_lock(self.session)
            lock.acquire()
        try:
            yield
        finally:
            with suppress(Exception):  # the scheduler may be gone
                lock.release()

    def _submit(self, rank: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a task on a process's worker, and on no other."""
        with self.session.detect_lost_scheduler():
            return self.session.client.submit(
                task,
                *arguments,
                workers=[self.workers[rank]],
                pure=False,
                key=f"rankwright-process-group-{uuid4().hex}",
            )

    def _finish(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results of tasks on all processes; raise ProcessesLostError if one of them is lost."""
        distributed, client = require("distributed"), self.session.client
        lost = (ConnectionLostError, distributed.CancelledError, distributed.scheduler.KilledWorker)
        gone = False
        while any(future.status == "pending" for future in futures) and not gone:
            with self.session.detect_lost_scheduler(), client.as_current():
                try:
                    distributed.wait(futures, timeout=_LOOK)
                except TimeoutError:
                    gone = not set(self.workers) <= set(client.nthreads())
                except distributed.CancelledError:
                    gone = True
        errors = [future.exception() for future in futures if future.status == "error"]
        for error in errors:
            if not isinstance(error, lost):
                raise error
        if gone or errors or any(future.status != "finished" for future in futures):
            raise ProcessesLostError(f"a worker of the Dask cluster at {self.session.address} was lost")
        with self.session.detect_lost_scheduler():
            try:
                found: list[Any] = client.gather(list(futures))
            except lost as error:
                raise ProcessesLostError(str(error)) from None
        return found


_locks: WeakKeyDictionary[Session, Any] = WeakKeyDictionary()  # of the clusters


def _find_lock(session: Session) -> Any:
    """Return the lock that one process group of a cluster has at a time."""
    if session not in _locks:
        options = {"scheduler_rpc": session.client.scheduler, "loop": session.client.loop}
        _locks[session] = require("distributed").Semaphore(max_leases=1, name=_LOCK, **options)
    return _locks[session]


def restore_shards(shards: Shards[Any]) -> None:
    """Make parts again that were lost with workers."""
    make_groups(list_groups(shards))


def count_workers(backend: Any) -> int:
    """Return how many processes of a backend can form a group: the workers of a cluster, or else none."""
    return backend.n_workers if isinstance(backend, Dask) else 0


def _find_workers(session: Session, groups: Sequence[Group]) -> list[str]:
    """Return for each group the worker that has it; those that were lost are made again first."""
    for _ in range(ATTEMPTS):
        make_groups(groups)
        session.update_workers()  # which may find that others are lost
        found = [group.recipe.kept for group in groups]
        workers = [kept.place.worker for kept in found if kept is not None and session.is_open(kept.place)]
        if len(workers) == len(groups):
            return workers
    raise WorkersLostError(
        f"workers of the Dask cluster at {session.address} die again and again: look into their logs"
    )


def _open_process() -> GroupProcess:
    """Make a process, on its worker."""
    return GroupProcess()


def _get_address(process: GroupProcess) -> tuple[str, int]:
    """Return where a process can be reached."""
    return process.listener.address


def _connect(process: GroupProcess, secret: bytes, addresses: Sequence[tuple[str, int]]) -> None:
    """Connect a process with all others."""
    rank = list(addresses).index(process.listener.address)
    process.communicator = process.listener.connect(secret, rank, addresses)


def _call_process(
    process: GroupProcess, fn: Callable[..., Any], session: str, is_shards: Sequence[bool], *arguments: Any
) -> Any:
    """Call a function on a process, on its worker, which has the groups of parts that arguments name."""
    enter_pool()
    if fn is not _connect and not hasattr(process, "communicator"):
        raise ConnectionLostError(f"the worker process {os.getpid()} was started anew")
    try:
        own = [
            _list_parts(session, argument) if flag else argument
            for argument, flag in zip(arguments, is_shards, strict=True)
        ]
        return fn(process, *own)
    except BaseException:
        process.close()
        raise


def _list_parts(session: str, names: Sequence[int]) -> list[Any]:
    """Return the parts of groups of a session, on their worker."""
    store = WorkerStores.of(require("distributed").get_worker()).stores.get(session)
    if store is None or not all(name in store.groups for name in names):
        raise ConnectionLostError("the worker has lost parts of the data")
    return [part for name in names for part in store.groups[name]]
