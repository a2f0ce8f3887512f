"""Run independent tasks in parallel and yield each outcome as soon as it is there.

A backend cuts one computation into parts; workers run whole tasks, such as the trials of an experiment.
``ProcessWorkers`` run tasks in spawned processes: each has its own memory, which can be measured, and a task that is
killed does not harm the others. When the parent process dies, its workers end too.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from rankwright.basics.errors import InputError
from rankwright.runtime.backends import Backend, Serial, Threads, count_cores, enter_pool
from rankwright.runtime.workers.base import ExecutorWorkers as ExecutorWorkers
from rankwright.runtime.workers.base import SerialWorkers as SerialWorkers
from rankwright.runtime.workers.base import TaskOutcome as TaskOutcome
from rankwright.runtime.workers.base import TaskQueue as TaskQueue
from rankwright.runtime.workers.base import WorkerDiedError as WorkerDiedError
from rankwright.runtime.workers.base import Workers as Workers
from rankwright.runtime.workers.base import WorkersLostError as WorkersLostError
from rankwright.runtime.workers.process_workers import ProcessWorkers as ProcessWorkers

_SPARE = 2  # extra tasks queued on a cluster, so that no machine is idle while an outcome is sent


@contextmanager
def open_workers(wanted: int | Backend | Executor | Any | None) -> Iterator[Workers]:
    """Yield workers made of a number of processes (None: one per core), a backend, an executor or a Dask client."""
    if wanted is None or isinstance(wanted, int):
        yield ProcessWorkers(count_cores() if wanted is None else wanted)
    elif isinstance(wanted, Serial):
        yield SerialWorkers()
    elif isinstance(wanted, Threads):
        with ThreadPoolExecutor(wanted.n, initializer=enter_pool) as pool:
            yield ExecutorWorkers(pool, lambda: wanted.n, shares_memory=True)
    elif isinstance(wanted, Executor):
        n = int(getattr(wanted, "_max_workers", 0) or count_cores())  # executors have no public attribute for it
        yield ExecutorWorkers(wanted, lambda: n, shares_memory=isinstance(wanted, ThreadPoolExecutor))
    elif hasattr(wanted, "get_executor"):  # a Dask client
        client: Any = wanted
        executor = client.get_executor()
        shares_memory = client.scheduler.address.startswith("inproc:")
        try:
            yield ExecutorWorkers(executor, lambda: sum(client.nthreads().values()) + _SPARE, shares_memory)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                executor.shutdown(wait=False)
    else:
        raise InputError(f"workers={wanted!r}; expected a number, Serial(), Threads(n), an executor or a Dask client")
