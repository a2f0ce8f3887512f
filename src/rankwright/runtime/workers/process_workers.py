"""Workers in spawned processes: each has its own memory, which can be measured, and dies with its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, ClassVar, TypeVar

from rankwright.basics import progress
from rankwright.basics.errors import InputError
from rankwright.kernels.caching import warn_if_not_kept
from rankwright.runtime.workers.base import Agenda, Answer, Lost, attempt

T = TypeVar("T")
R = TypeVar("R")

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REPORT_EVERY = 0.1  # seconds between a task's progress reports
_NO_GUARD = (
    'a worker process imported the script, which starts workers again; start them under `if __name__ == "__main__":`'
)
_NO_GUARD_STATUS = 97  # what such a process ends with


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
            answer = attempt(fn, connection.recv())
            try:
                connection.send(Answer(None, answer.result, answer.error))
            except (TypeError, AttributeError, ValueError) as error:  # what cannot be pickled
                connection.send(Answer(None, None, TypeError(f"the answer cannot be sent: {error}")))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


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
