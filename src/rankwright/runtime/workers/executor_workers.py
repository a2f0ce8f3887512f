"""Workers of any executor: threads, a pool of processes, a Dask cluster."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rankwright.runtime.workers.base import Agenda, Answer, WorkersLostError, attempt

T = TypeVar("T")
R = TypeVar("R")

_GIVEN_UP = (CancelledError, asyncio.CancelledError, BrokenExecutor)


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
                        waiting[self.executor.submit(attempt, fn, task)] = task
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
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
