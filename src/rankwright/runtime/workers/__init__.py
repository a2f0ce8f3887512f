"""Workers: independent tasks in parallel, each answer handed back as soon as it is there.

Where a backend cuts one computation into parts, workers run whole tasks: the trials of an experiment. The tasks of
``Processes`` run in spawned processes, so that each has its own memory, which can be measured, and a task that is
killed takes nothing else with it. When the parent dies, however it dies, its workers follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from rankwright.basics.errors import InputError
from rankwright.runtime.backends import Backend, Serial, Threads, enter_pool, n_cores
from rankwright.runtime.workers.base import Agenda, Answer, InOrder, InPlace, Lost, Workers, WorkersLostError
from rankwright.runtime.workers.executor_workers import Pooled
from rankwright.runtime.workers.process_workers import Processes

__all__ = [
    "Agenda",
    "Answer",
    "InOrder",
    "InPlace",
    "Lost",
    "Pooled",
    "Processes",
    "Workers",
    "WorkersLostError",
    "workers_of",
]

_SPARE = 2  # tasks that wait on the machines of a cluster, so that none is idle while an answer travels


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
