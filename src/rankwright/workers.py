"""Workers: independent tasks in parallel, each answer handed back as soon as it is there.

Where a backend cuts one computation into parts, workers run whole tasks: the trials of an experiment. The tasks of
``Processes`` run in spawned processes, so that each has its own memory, which can be measured, and a task that is
killed takes nothing else with it. When the parent dies, however it dies, its workers follow.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from rankwright import progress
from rankwright.backends import Backend, Serial, Threads, enter_pool, n_cores
from rankwright.errors import InputError
from rankwright.kernels.caching import warn_if_not_kept

T = TypeVar("T")
R = TypeVar("R")

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REPORT_EVERY = 0.1  # seconds between a task's progress reports


_NO_GUARD = (
    'a worker process imported the script, which starts workers again; start them under `if __name__ == "__main__":`'
)
_NO_GUARD_STATUS = 97  # what such a process ends with
_GIVEN_UP = (CancelledError, asyncio.CancelledError, BrokenExecutor)
_SPARE = 2  # tasks that wait on the machines of a cluster, so that none is idle while an answer travels


class Lost(Exception):
    """The process that ran a task died."""


class WorkersLostError(InputError):
    """All workers are gone, and with them the tasks that they were at."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T, R]):
    """A finished task: its result, or the error it raised."""

    task: T
    result: R | None
    error: BaseException | None = None


class Agenda(Protocol[T]):
    """Tasks to be done, which may suit one worker better than another."""

    def next(self, previous: T | None) -> T | None:
        """A task for a worker that has just done another; None if there is none left."""
        ...


class InOrder(Generic[T]):
    """Tasks in their order, whoever asks."""

    def __init__(self, tasks: Iterable[T]) -> None:
        self._tasks = iter(tasks)

    def next(self, previous: T | None) -> T | None:
        """The next task."""
        return next(self._tasks, None)


class Workers(Protocol):
    """What runs tasks. ``fn``, tasks and results must be picklable where they cross to other processes.

    Tasks are taken when there is room for them, and answers are yielded as they come.
    """

    @property
    def shares_memory(self) -> bool:
        """Whether tasks run in this process, and know what was defined in it."""
        ...

    def run(self, fn: Callable[[T], R], agenda: Agenda[T]) -> Iterator[Answer[T, R]]:
        """Yield the answers in the order in which they come."""
        ...


def _chain(agenda: Agenda[T]) -> Iterator[T]:
    """The tasks as one worker would take them."""
    task = agenda.next(None)
    while task is not None:
        yield task
        task = agenda.next(task)


@dataclass(frozen=True, slots=True)
class InPlace:
    """One task after the other, here."""

    shares_memory: ClassVar[bool] = True

    def run(self, fn: Callable[[T], R], agenda: Agenda[T]) -> Iterator[Answer[T, R]]:
        """Yield each answer."""
        return (_attempt(fn, task) for task in _chain(agenda))


@dataclass(frozen=True, slots=True)
class Pooled:
    """Tasks on any executor of ``concurrent.futures``: threads, or a Dask client's.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    n_in_flight : callable
        How many tasks may be there at a time, by now: a cluster may grow.
    shares_memory : bool
        Whether tasks run in this process.
    """

    executor: Executor
    n_in_flight: Callable[[], int]
    shares_memory: bool

    def run(self, fn: Callable[[T], R], agenda: Agenda[T]) -> Iterator[Answer[T, R]]:
        """Yield the answers as they come; what has not begun is given up when the caller stops asking.

        A task is asked for when there is room for it and the caller has taken the answers before it.
        """
        waiting: dict[Future[Answer[T, R]], T] = {}
        done: deque[T] = deque()  # the tasks whose places are free
        try:
            while True:
                with _workers_there():
                    most = self.n_in_flight()
                while len(waiting) < most and (task := agenda.next(done.popleft() if done else None)) is not None:
                    with _workers_there():
                        waiting[self.executor.submit(_attempt, fn, task)] = task
                if not waiting:
                    return
                for future in wait_for_futures(waiting, return_when=FIRST_COMPLETED).done:
                    task = waiting.pop(future)
                    done.append(task)
                    yield _answer(future, task)
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _workers_there() -> Iterator[None]:
    """Raise WorkersLostError if what is done with an executor inside fails."""
    try:
        yield
    except (OSError, RuntimeError, *_GIVEN_UP) as error:
        raise WorkersLostError(f"the workers are gone ({type(error).__name__})") from None


def _answer(future: Future[Answer[T, R]], task: T) -> Answer[T, R]:
    """Return the answer of a future, or raise if it was given up: nobody here did, so its workers are gone."""
    with _workers_there():
        error = future.exception()
        if isinstance(error, _GIVEN_UP):
            raise error
    return future.result() if error is None else Answer(task, None, error)


@dataclass(frozen=True, slots=True)
class Processes:
    """Tasks in ``n`` spawned processes, one at a time in each."""

    n: int
    shares_memory: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise InputError(f"{self.n!r} workers; expected a whole number of at least 1")

    def run(self, fn: Callable[[T], R], agenda: Agenda[T]) -> Iterator[Answer[T, R]]:
        """Yield the answers as they come. A process that dies loses its task, and another takes its place."""
        warn_if_not_kept()  # on behalf of all of them
        crew = [process for _ in range(self.n) if (process := _start(fn, agenda)) is not None]
        try:
            while crew:
                ready = wait([process.connection for process in crew])
                for process in [process for process in crew if process.connection in ready]:
                    answer = process.take()
                    if answer is None:  # a report
                        continue
                    if not process.alive or not process.give(agenda):
                        process.stop()
                        crew.remove(process)
                    if not process.alive:
                        crew.extend(filter(None, [_start(fn, agenda)]))
                    yield answer
        finally:
            for process in crew:
                process.stop()


def _start(fn: Callable[[Any], Any], agenda: Agenda[Any]) -> _Process | None:
    """A process at a task, or nothing if there is none."""
    task = agenda.next(None)
    return None if task is None else _Process(fn, task)


class _Process:
    """A worker process and the task it is at."""

    def __init__(self, fn: Callable[[Any], Any], task: Any) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker that imports the script
            os._exit(_NO_GUARD_STATUS)
        self.connection, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_work, args=(fn, theirs), daemon=True)
        with _one_thread_each():
            self.process.start()
        theirs.close()
        self.task, self.alive, self.started = task, True, False
        self._send()

    def give(self, agenda: Agenda[Any]) -> bool:
        """Give it another task; whether there was one."""
        task = agenda.next(self.task)
        if task is None:
            return False
        self.task = task
        self._send()
        return True

    def _send(self) -> None:
        with suppress(BrokenPipeError):  # it died: reading will say so
            self.connection.send(self.task)

    def take(self) -> Answer[Any, Any] | None:
        """The answer; None if it was a report."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):  # also half a message
            self.process.join()
            self.alive = False
            if self.process.exitcode == _NO_GUARD_STATUS:
                raise InputError(_NO_GUARD) from None
            return Answer(self.task, None, Lost(self._describe_end()))
        self.started = True
        if isinstance(message, Answer):
            return Answer(self.task, message.result, message.error)
        if message is not None:
            progress.report(*message)
        return None

    def _describe_end(self) -> str:
        """Return how the process ended, and that it had not begun if so."""
        code = self.process.exitcode
        when = "" if self.started else " before it began"
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            cause = " (perhaps for want of memory)" if name == "SIGKILL" else ""
            return f"its process was ended by {name}{when}{cause}"
        cause = "" if self.started else "; what it printed says why: it imports the script that starts workers"
        return f"its process ended with status {code}{when}{cause}"

    def stop(self) -> None:
        """End it, whatever it is at."""
        self.connection.close()
        self.process.kill()
        self.process.join()
        self.process.close()


def _work(fn: Callable[[Any], Any], connection: Connection) -> None:
    """What a worker process does all its life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and stops its workers
    threading.Thread(target=_follow_parent, daemon=True).start()
    last = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _REPORT_EVERY or done == total:
            last = now
            connection.send((what, done, total))

    with suppress(EOFError, BrokenPipeError), progress.listening(report):
        connection.send(None)  # it has started
        while True:
            answer = _attempt(fn, connection.recv())
            try:
                connection.send(Answer(None, answer.result, answer.error))
            except (TypeError, AttributeError, ValueError) as error:  # what cannot be pickled
                connection.send(Answer(None, None, TypeError(f"the answer cannot be sent: {error}")))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _attempt(fn: Callable[[T], R], task: T) -> Answer[T, R]:
    try:
        return Answer(task, fn(task))
    except Exception as error:
        return Answer(task, None, _portable(error))


def _portable(error: Exception) -> Exception:
    """An error that can cross to another process: itself if it survives that."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside leave the other cores to the others."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def workers_of(wanted: int | Backend | Executor | Any | None) -> Iterator[Workers]:
    """Workers from what a user says: a number of processes (None: one a core), a backend, an executor, a client."""
    if wanted is None or isinstance(wanted, int):
        yield Processes(n_cores() if wanted is None else wanted)
    elif isinstance(wanted, Serial):
        yield InPlace()
    elif isinstance(wanted, Threads):
        with ThreadPoolExecutor(wanted.n, initializer=enter_pool) as pool:
            yield Pooled(pool, lambda: wanted.n, shares_memory=True)
    elif isinstance(wanted, Executor):
        n = int(getattr(wanted, "_max_workers", 0) or n_cores())  # no executor says it in public
        yield Pooled(wanted, lambda: n, shares_memory=isinstance(wanted, ThreadPoolExecutor))
    elif hasattr(wanted, "get_executor"):  # a Dask client
        client: Any = wanted
        executor = client.get_executor()
        shares_memory = client.scheduler.address.startswith("inproc:")
        try:
            yield Pooled(executor, lambda: sum(client.nthreads().values()) + _SPARE, shares_memory)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                executor.shutdown(wait=False)
    else:
        raise InputError(f"workers={wanted!r}; expected a number, Serial(), Threads(n), an executor or a Dask client")
