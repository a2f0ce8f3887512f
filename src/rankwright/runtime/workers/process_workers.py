"""Workers in spawned processes: each has its own memory, which can be measured, and ends with its parent."""

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
from rankwright.runtime.workers.base import TaskOutcome, TaskQueue, WorkerDiedError, run_task

T = TypeVar("T")
R = TypeVar("R")

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REPORT_EVERY = 0.1  # seconds between a task's progress reports
_NO_GUARD = (
    'a worker process imported the script, which starts workers again; start them under `if __name__ == "__main__":`'
)
_NO_GUARD_STATUS = 97  # the exit status of such a process


@dataclass(frozen=True, slots=True)
class ProcessWorkers:
    """A pool of ``n`` spawned processes, each of which runs one task at a time."""

    n: int
    shares_memory: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise InputError(f"{self.n!r} workers; expected a whole number of at least 1")

    def run(self, fn: Callable[[T], R], queue: TaskQueue[T]) -> Iterator[TaskOutcome[T, R]]:
        """Yield the outcomes as they come; a process that dies loses its task and is replaced by another."""
        warn_if_not_kept()  # once, for all processes
        processes = [process for _ in range(self.n) if (process := _start_process(fn, queue)) is not None]
        try:
            while processes:
                ready = wait([process.connection for process in processes])
                for process in [process for process in processes if process.connection in ready]:
                    outcome = process.receive()
                    if outcome is None:  # a progress report
                        continue
                    if not process.alive or not process.send_next(queue):
                        process.stop()
                        processes.remove(process)
                    if not process.alive:
                        processes.extend(filter(None, [_start_process(fn, queue)]))
                    yield outcome
        finally:
            for process in processes:
                process.stop()


def _start_process(fn: Callable[[Any], Any], queue: TaskQueue[Any]) -> _WorkerProcess | None:
    """Start a worker process with the next task of the queue; return None if no task is left."""
    task = queue.next(None)
    return None if task is None else _WorkerProcess(fn, task)


class _WorkerProcess:
    """A worker process, the pipe to it, and the task it is running."""

    def __init__(self, fn: Callable[[Any], Any], task: Any) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker that imports the script
            os._exit(_NO_GUARD_STATUS)
        self.connection, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_serve_tasks, args=(fn, theirs), daemon=True)
        with _limit_threads():
            self.process.start()
        theirs.close()
        self.task, self.alive, self.started = task, True, False
        self._send()

    def send_next(self, queue: TaskQueue[Any]) -> bool:
        """Send another task to the process and return whether there was one."""
        task = queue.next(self.task)
        if task is None:
            return False
        self.task = task
        self._send()
        return True

    def _send(self) -> None:
        with suppress(BrokenPipeError):  # the process died: receive() reports it
            self.connection.send(self.task)

    def receive(self) -> TaskOutcome[Any, Any] | None:
        """Return the outcome that the process sent, or None if it sent a progress report."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):  # also half a message
            self.process.join()
            self.alive = False
            if self.process.exitcode == _NO_GUARD_STATUS:
                raise InputError(_NO_GUARD) from None
            return TaskOutcome(self.task, None, WorkerDiedError(self._describe_end()))
        self.started = True
        if isinstance(message, TaskOutcome):
            return TaskOutcome(self.task, message.result, message.error)
        if message is not None:
            progress.report(*message)
        return None

    def _describe_end(self) -> str:
        """Return how the process ended, and whether it had begun."""
        code = self.process.exitcode
        when = "" if self.started else " before it began"
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            cause = " (perhaps for want of memory)" if name == "SIGKILL" else ""
            return f"its process was ended by {name}{when}{cause}"
        cause = "" if self.started else "; what it printed says why: it imports the script that starts workers"
        return f"its process ended with status {code}{when}{cause}"

    def stop(self) -> None:
        """Kill the process, whatever it is doing."""
        self.connection.close()
        self.process.kill()
        self.process.join()
        self.process.close()


def _serve_tasks(fn: Callable[[Any], Any], connection: Connection) -> None:
    """Run the tasks that the parent process sends, and send back their outcomes, until the parent closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and stops its workers
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    last = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _REPORT_EVERY or done == total:
            last = now
            connection.send((what, done, total))

    with suppress(EOFError, BrokenPipeError), progress.listen(report):
        connection.send(None)  # the process has started
        while True:
            outcome = run_task(fn, connection.recv())
            try:
                connection.send(TaskOutcome(None, outcome.result, outcome.error))
            except (TypeError, AttributeError, ValueError) as error:  # the result cannot be pickled
                connection.send(TaskOutcome(None, None, TypeError(f"the result cannot be sent: {error}")))


def _exit_with_parent() -> None:
    """Wait until the parent process ends, and then end this worker process at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


@contextmanager
def _limit_threads() -> Iterator[None]:
    """Set the environment so that processes started inside the block use one thread for linear algebra."""
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
