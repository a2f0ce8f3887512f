"""The store of a worker of a cluster: the parts that sessions keep there, and the calls that make and use them.

A client calls the workers directly, and not by tasks of the scheduler: a message says which functions to call on
which parts, which results to keep and which to return. It runs on a thread of the worker that Dask's tasks run on.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from rankwright.basics.optional_imports import require
from rankwright.runtime.backends import enter_pool
from rankwright.runtime.dask_messages import dump_error, dump_frames, load_frames

CALL, FETCH, DROP = "rankwright-call", "rankwright-fetch", "rankwright-drop"  # operations of workers
DONE, FAILED, LOST = "done", "failed", "lost"  # the states of answers
_EXTENSION = "rankwright"
_LOOK = 30_000.0  # milliseconds between two looks at which sessions there are
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options of glibc's memory: bytes that are kept, and sizes that are not
_KEPT_FREE, _SMALL_ARRAY = 1 << 26, 1 << 22
_MISSED = 2  # looks without a session until its parts are freed


class Step(NamedTuple):
    """A step of a message: a function that makes the parts of a group of those of other groups.

    Parameters
    ----------
    name : int
        The number under which the parts are kept; those of a step without one are returned.
    task : callable
        It takes the message and the groups, and returns the list of parts.
    message : object
        What the task is to do.
    parents : sequence of int
        The numbers of the groups that it takes.
    freed : sequence of int
        The numbers of groups that are not needed after it.
    """

    name: int | None
    task: Callable[..., Any]
    message: Any
    parents: Sequence[int]
    freed: Sequence[int] = ()


class Place(NamedTuple):
    """The place where parts are kept: the address of a worker, and the token of a session's store there."""

    worker: str
    token: str


class _MissingPartsError(Exception):
    """The error of a step whose parents are not there."""


@dataclass(eq=False, slots=True)
class _Store:
    """The parts that one session keeps on a worker, by the numbers of their groups."""

    lease: str  # the key of a result that Dask keeps as long as the session lives
    token: str = field(default_factory=lambda: uuid4().hex)
    groups: dict[int, Any] = field(default_factory=dict)
    n_missed: int = 0


class WorkerStores:
    """The stores of all sessions on a worker, and its operations for them.

    Parameters
    ----------
    worker : distributed.Worker
        The worker.
    """

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.stores: dict[str, _Store] = {}
        worker.handlers.update({CALL: self.call, FETCH: self.fetch, DROP: self.drop})
        look = require("tornado.ioloop").PeriodicCallback(self.free_abandoned, _LOOK)
        worker.periodic_callbacks[_EXTENSION] = look
        look.start()
        _reuse_freed_memory()

    @classmethod
    def of(cls, worker: Any) -> WorkerStores:
        """Return the stores of a worker, made at the first call."""
        found: WorkerStores | None = worker.extensions.get(_EXTENSION)
        if found is None:
            found = worker.extensions[_EXTENSION] = cls(worker)
        return found

    def find(self, session: str, token: str) -> dict[int, Any] | None:
        """Return the groups of a session's store; None if it is gone, or another one."""
        store = self.stores.get(session)
        return None if store is None or store.token != token else store.groups

    async def call(
        self,
        session: str,
        token: str,
        dropped: Sequence[int],
        wanted: Sequence[tuple[str, str, Sequence[int]]],
        frames: Sequence[Any],
    ) -> dict[str, Any]:
        """Do the steps in frames, and answer with what they return; ``wanted`` are groups of other workers."""
        own = self.find(session, token)
        if own is None:
            return {"state": LOST, "frames": []}
        self.drop(session, token, dropped)
        fetched: dict[int, Any] = {}
        for worker, other, names in wanted:
            try:
                answer = await self._fetch_from(worker, session, other, names)
            except OSError:
                answer = {"state": LOST}
            if answer["state"] != DONE:
                return {"state": LOST, "frames": []}
            fetched |= zip(names, load_frames(answer["frames"]), strict=True)
        executor = self.worker.executors["default"]
        return await asyncio.get_running_loop().run_in_executor(executor, self._work, own, fetched, frames)

    async def _fetch_from(self, worker: str, session: str, token: str, names: Sequence[int]) -> dict[str, Any]:
        """Return the answer of another worker that is asked for groups."""
        comm = await self.worker.rpc.connect(worker)
        try:
            message = {"op": FETCH, "session": session, "token": token, "names": names}
            answer: dict[str, Any] = await require("distributed.core").send_recv(comm, **message)
            return answer
        finally:
            self.worker.rpc.reuse(worker, comm)

    async def fetch(self, session: str, token: str, names: Sequence[int]) -> dict[str, Any]:
        """Answer with groups, for another worker."""
        own = self.find(session, token)
        if own is None or not all(name in own for name in names):
            return {"state": LOST, "frames": []}
        frames = await require("distributed.utils").offload(dump_frames, [own[name] for name in names])
        return {"state": DONE, "frames": frames}

    def drop(self, session: str, token: str, names: Sequence[int]) -> None:
        """Free groups that are needed no more."""
        own = self.find(session, token)
        for name in names if own is not None else ():
            own.pop(name, None)  # type: ignore[union-attr]

    async def free_abandoned(self) -> None:
        """Free the stores of sessions whose client is gone."""
        for session, store in list(self.stores.items()):
            with suppress(OSError):  # the scheduler may be gone for now
                found = await self.worker.scheduler.who_has(keys=[store.lease])
                store.n_missed = 0 if any(found.values()) else store.n_missed + 1
            if store.n_missed >= _MISSED:
                self.stores.pop(session, None)

    def _work(self, own: dict[int, Any], fetched: Mapping[int, Any], frames: Sequence[Any]) -> dict[str, Any]:
        """Do steps on a thread of the worker, and answer with what they return."""
        enter_pool()
        _thread.worker = self.worker
        try:
            return {"state": DONE, "frames": dump_frames(_do_steps(own, fetched, load_frames(frames)))}
        except _MissingPartsError:
            return {"state": LOST, "frames": []}
        except Exception as error:
            return {"state": FAILED, "frames": dump_error(error)}


def _do_steps(own: dict[int, Any], fetched: Mapping[int, Any], steps: Sequence[Step]) -> list[Any]:
    """Return the results of the steps that have no name, and keep those of the others."""
    returned = []
    for step in steps:
        if step.name is None or step.name not in own:  # another thread of the client may have made it
            try:
                parents = [fetched[name] if name in fetched else own[name] for name in step.parents]
            except KeyError:
                raise _MissingPartsError from None
            found = step.task(step.message, *parents)
            if step.name is None:
                returned.append(found)
            else:
                own[step.name] = found
        for name in step.freed:
            own.pop(name, None)
    return returned


def open_store(session: str, lease: str, dask_worker: Any) -> str:
    """Open the store of a session on a worker, if it is not there, and return its token."""
    return WorkerStores.of(dask_worker).stores.setdefault(session, _Store(lease)).token


def keep_parts(session: str, place: Place, name: int, *parts: Any) -> bool:
    """Keep parts that Dask computed under the number of their group, in a task; return whether this is the place."""
    worker = find_worker()
    own = WorkerStores.of(worker).find(session, place.token)
    if own is None or worker.address != place.worker:
        return False
    own[name] = list(parts)
    return True


def _reuse_freed_memory() -> None:
    """Let glibc keep memory that was freed for the next arrays of about a number per document of a shard.

    Dask sets an environment variable for its workers by which glibc gives that of larger arrays back at once, so that
    the system clears it anew for each of them: a tenth to a fifth of the time of a call.
    """
    with suppress(AttributeError, OSError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _SMALL_ARRAY)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_FREE)


class _Thread(threading.local):
    """The worker whose thread this is, if it is at work on a call."""

    worker: Any = None


_thread = _Thread()


def find_worker() -> Any:
    """Return the worker of Dask that this thread works for; None if there is none."""
    if _thread.worker is not None:
        return _thread.worker
    try:
        return require("distributed").get_worker()
    except ValueError:
        return None
