"""Timing tools side by side: repetitions take turns, so that a noisy machine disturbs all of them alike."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any

THREADS = min(2, os.cpu_count() or 1)  # for every tool that can be told
REPETITIONS = 5
_FEWEST, _LONG = 3, 3.0  # repetitions where one takes longer than this many seconds


def find_peer(name: str) -> Any | None:
    """The module of a peer, or None where it is not installed."""
    return import_module(name) if find_spec(name) else None


def take_turns(
    tasks: Mapping[str, Callable[[], object]],
    repetitions: int = REPETITIONS,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, list[float]]:
    """The seconds of every repetition of every task: first, second, ..., first, second, ...

    With ``clock=process_time`` they are those of the processor, for tasks of one thread on a machine with other work.
    What a task returns is freed outside its time, and the garbage collector rests meanwhile, as in ``timeit``.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for done in range(repetitions):
        if done >= _FEWEST and any(max(times) > _LONG for times in seconds.values()):
            break
        for name, task in tasks.items():
            seconds[name].append(timed(task, clock))
    return seconds


def timed(task: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """The seconds one call takes."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = task()
        seconds = clock() - start
    finally:
        gc.enable()
    del result
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """The median of each task."""
    return {name: median(times) for name, times in seconds.items()}
