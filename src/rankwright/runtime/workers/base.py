"""The interface of workers, their tasks and outcomes, and workers that run tasks one after the other."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
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
        ...


class Workers(Protocol):
    """The interface of what runs a function on queued tasks; what crosses to other processes must be picklable.

    A task is taken from the queue when a worker is free, and outcomes are yielded as they come.
    """

    @property
    def shares_memory(self) -> bool:
        """Whether tasks run in this process and see what is defined in it."""
        ...

    def run(self, fn: Callable[[T], R], queue: TaskQueue[T]) -> Iterator[TaskOutcome[T, R]]:
        """Yield the outcomes in the order in which they come."""
        ...


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
