"""The interface of workers, their tasks and outcomes, and workers that run tasks one by one or in an executor."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from rankwright.basics.errors import InputError

T = TypeVar("T")
R = TypeVar("R")


class WorkerDiedError(Exception):
    """The error of a task whose worker process died before it returned a result."""


class WorkersLostError(InputError):
    """The error that is raised when all workers are gone, with the tasks they were running."""


@dataclass(frozen=True, slots=True)
class TaskOutcome(Generic[T, R]):
    """The outcome of a task that has ended: the task, with its result or with the error it raised."""

    task: T
    result: R | None
    error: BaseException | None = None


class TaskQueue(Protocol[T]):
    """The interface of a queue of tasks, which may choose the next task by what the worker did before."""

    def next(self, previous: T | None) -> T | None:
        """Return a task for a worker that has just finished ``previous``; None if no task is left."""


class Workers(Protocol):
    """The interface of what runs a function on queued tasks; what crosses to other processes must be picklable.

    A task is taken from the queue when a worker is free, and outcomes are yielded as they come.
    """

    @property
    def shares_memory(self) -> bool:
        """Whether tasks run in this process and see what is defined in it."""

    def run(self, fn: Callable[[T], R], queue: TaskQueue[T]) -> Iterator[TaskOutcome[T, R]]:
        """Yield the outcomes in the order in which they come."""


@dataclass(frozen=True, slots=True)
class SerialWorkers:
    """A single worker, the calling thread, that runs one task after the other."""

    shares_memory: ClassVar[bool] = True

    def run(self, fn: Callable[[T], R], queue: TaskQueue[T]) -> Iterator[TaskOutcome[T, R]]:
        """Yield the outcome of each task."""
        task = queue.next(None)
        while task is not None:
            yield run_task(fn, task)
            task = queue.next(task)


def run_task(fn: Callable[[T], R], task: T) -> TaskOutcome[T, R]:
    """Run a function on a task; return the outcome, with the error if it raises one."""
    try:
        return TaskOutcome(task, fn(task))
    except Exception as error:
        return TaskOutcome(task, None, _make_picklable(error))


def _make_picklable(error: Exception) -> Exception:
    """Return the error if it can be pickled and read back, or else a RuntimeError with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


_CANCELLED = (CancelledError, asyncio.CancelledError, BrokenExecutor)


@dataclass(frozen=True, slots=True)
class ExecutorWorkers:
    """The workers of an executor as in ``concurrent.futures``: threads, processes, or those of a Dask client.

    Parameters
    ----------
    executor : Executor
        The executor that runs the tasks.
    n_in_flight : callable
        Returns how many tasks may be submitted at a time; asked again and again, because a cluster may grow.
    shares_memory : bool
        Whether tasks run in this process.
    """

    executor: Executor
    n_in_flight: Callable[[], int]
    shares_memory: bool

    def run(self, fn: Callable[[T], R], queue: TaskQueue[T]) -> Iterator[TaskOutcome[T, R]]:
        """Yield the outcomes as they come; tasks that have not begun are cancelled when the caller stops iterating.

        A task is taken from the queue when a place is free and the caller has received the outcomes before it.
        """
        waiting: dict[Future[TaskOutcome[T, R]], T] = {}
        done: deque[T] = deque()  # finished tasks whose places are free
        try:
            while True:
                with _detect_lost_workers():
                    most = self.n_in_flight()
                while len(waiting) < most and (task := queue.next(done.popleft() if done else None)) is not None:
                    with _detect_lost_workers():
                        waiting[self.executor.submit(run_task, fn, task)] = task
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    task = waiting.pop(future)
                    done.append(task)
                    yield _get_outcome(future, task)
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _detect_lost_workers() -> Iterator[None]:
    """Raise WorkersLostError if a call of the executor inside the block fails."""
    try:
        yield
    except (OSError, RuntimeError, *_CANCELLED) as error:
        raise WorkersLostError(f"the workers are gone ({type(error).__name__})") from None


def _get_outcome(future: Future[TaskOutcome[T, R]], task: T) -> TaskOutcome[T, R]:
    """Return the outcome of a task's future; raise WorkersLostError if the future was cancelled."""
    with _detect_lost_workers():
        error = future.exception()
        if isinstance(error, _CANCELLED):
            raise error
    return future.result() if error is None else TaskOutcome(task, None, error)
