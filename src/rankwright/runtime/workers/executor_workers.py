"""Workers that use an executor: threads, a pool of processes, a Dask cluster."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rankwright.runtime.workers.base import TaskOutcome, TaskQueue, WorkersLostError, run_task

T = TypeVar("T")
R = TypeVar("R")

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
