"""Trials: one ranker with one set of parameters on one fold, the unit of work and of the store."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from rankwright.analysis.results import Table, documents_table, queries_table
from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, collect_warnings
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.data.synthetic import make_queries
from rankwright.experiments.data_sources import Source, forget_folds, read_fold
from rankwright.experiments.parameter_search import Params
from rankwright.experiments.spec import Method
from rankwright.experiments.tables.artefacts import ARTEFACTS, Trained, deviation
from rankwright.measures import Measure, PreparedMeasure, check_counted, compute_values, parse, weighted_mean
from rankwright.models.model import to_text
from rankwright.rankers import Ranker
from rankwright.runtime.backends import Serial

NAN = float("nan")


class Key(NamedTuple):
    """Which trial: of a method by name, with the parameters of a number."""

    method: str
    fold: int
    seed: int
    candidate: int

    @property
    def group(self) -> tuple[str, int, int]:
        """Trials of one group compete; one is chosen."""
        return self.method, self.fold, self.seed


class Standing(NamedTuple):
    """How a trial compares with others of its group: by its value, and of equals the first candidate."""

    value: float
    turn: int  # minus the number of the candidate


@dataclass(frozen=True, slots=True)
class Task:
    """A trial to run, and what the runner knows at that moment."""

    key: Key
    source: Source
    method: Method
    params: Params
    measure: str
    measures: tuple[str, ...]
    curve: tuple[str, ...]
    to_beat: Standing | None  # the best of the group so far: a trial that is not better is not tested
    describe: bool  # whether the fold's queries are still unknown
    run: str  # of this run of the experiment: what was read for another is not used

    @property
    def label(self) -> str:
        """For people to read."""
        return f"{self.key.method}, fold {self.key.fold}"


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """What is kept of a trial that may be chosen: its test values by measure and query, its model, its artefacts."""

    values: Floats
    model: str
    artefacts: Mapping[str, Table]


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """The test queries of a fold, and their documents unless there are too many."""

    queries: Table
    documents: Table | None


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A finished trial."""

    digest: str
    valid: float
    seconds: float
    predict_seconds: float = NAN
    memory_start: float = NAN
    memory_peak: float = NAN
    tested: Tested | None = None
    described: Described | None = None
    warnings: str = ""  # in one line; empty where there were none


def standing(key: Key, value: float) -> Standing:
    """How a trial with this value on validation queries stands."""
    return Standing(value, -key.candidate)


def run_trial(task: Task) -> Finished:
    """Train, choose by validation, test. Runs in a worker; warnings of training are kept, not issued."""
    with progress.labelled(task.label), collect_warnings():
        of_caller, digest = read_fold(task.source, task.key.fold - 1, task.run)
        fold = Fold(*(part.grouped() for part in of_caller))
        highest = max(part.max_grade for part in fold)  # so that every part is measured alike
        decisive = parse(task.measure).with_max_grade(highest)
        check_counted(decisive, fold.valid, "validation")
        ranker = task.method.build(task.params, task.key.seed, task.measure)
        _warm_up(task.method.ranker_class, str(ranker.measure))
        peak, memory = _memory()
        start = time.perf_counter()
        ranker.fit(fold.train, valid=fold.valid)
        seconds = time.perf_counter() - start
        memory_peak = peak()
        [values] = _values(fold.valid, ranker.predict(fold.valid), (decisive,))
        value = weighted_mean(values, fold.valid.query_weight)
        if not isfinite(value):
            raise InputError(f"{decisive} is not defined on the validation queries: none of them has any weight")
        better = task.to_beat is None or standing(task.key, value) > task.to_beat
        predict_seconds, tested = _test(task, ranker, fold, highest) if better else (NAN, None)
        described = describe_queries(of_caller.test) if task.describe else None
    warned = "; ".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in ranker.fit_warnings_))
    memories = (memory, memory_peak)
    return Finished(digest, value, seconds, predict_seconds, *memories, tested, described, " ".join(warned.split()))


def describe_queries(test: Queries) -> Described:
    """Return what results know of a fold's test queries."""
    return Described(queries_table(test.grouped()), documents_table(test))


@lru_cache
def _warm_up(ranker: type[Ranker], measure: str) -> None:
    """Train on next to nothing, so that the time of a first trial is not that of loading kernels."""
    with suppress(Exception), progress.silent():
        few = make_queries(6, n_docs=6, n_features=3, random_state=0)
        ranker(measure=measure, backend=Serial()).fit(few, valid=few)


def _test(task: Task, ranker: Ranker, fold: Fold, highest: float) -> tuple[float, Tested]:
    start = time.perf_counter()
    scores = ranker.predict(fold.test)
    seconds = time.perf_counter() - start
    names = tuple(dict.fromkeys((*task.measures, *task.curve)))
    values = _values(fold.test, scores, tuple(parse(name).with_max_grade(highest) for name in names))
    means = {name: weighted_mean(row, fold.test.query_weight) for name, row in zip(names, values, strict=True)}
    trained = Trained(ranker, fold, scores, {name: means[name] for name in task.curve})
    made = {name: make(trained) for name, make in ARTEFACTS.items()}
    artefacts = {name: table for name, table in made.items() if table is not None}
    return seconds, Tested(values[: len(task.measures)], to_text(ranker.to_model()), artefacts)


def _values(queries: Queries, scores: Floats, measures: tuple[Measure, ...]) -> Floats:
    """The values of the measures, a row each; what the labels determine is computed once for all trials of a fold."""
    return compute_values(_bound(queries, measures), scores, Serial())


@lru_cache(maxsize=2)  # of validation and test queries
def _bound(queries: Queries, measures: tuple[Measure, ...]) -> list[PreparedMeasure]:
    return [measure.prepare(queries) for measure in measures]


def forget() -> None:
    """Free what is remembered from trial to trial."""
    for remembered in (_bound, deviation):
        remembered.cache_clear()
    forget_folds()


def _memory() -> tuple[Callable[[], float], float]:
    """A function that tells this process's peak from now on, and what it holds now, in bytes; NaN if not known."""
    if sys.platform != "linux":
        return (lambda: NAN), NAN
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    return (lambda: _status("VmHWM")), _status("VmRSS")


def _status(key: str) -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return float(line.split()[1]) * 1024
    return NAN
