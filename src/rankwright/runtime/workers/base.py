"""What workers are, the tasks they take and the answers they give; and the simplest of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from rankwright.basics.errors import InputError

T = TypeVar("T")
R = TypeVar("R")


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
        return (attempt(fn, task) for task in _chain(agenda))


def attempt(fn: Callable[[T], R], task: T) -> Answer[T, R]:
    """Return the answer to a task, with the error if it raises one."""
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
