"""Trials: a trial fits one ranker with one set of parameters on one fold, or tests a fixed model on it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from rankwright.analysis.results import Table, make_documents_table, make_queries_table
from rankwright.analysis.selection import find_deciding_value
from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import CollectedWarning, InputError, collect_warnings
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.data.synthetic import make_queries
from rankwright.experiments.data_sources import FoldSource
from rankwright.experiments.fixed_models import AnyMethod, FixedModel
from rankwright.experiments.fold_cache import clear_folds, read_fold
from rankwright.experiments.methods import Method, Params
from rankwright.experiments.tables.data_tables import make_data_table
from rankwright.experiments.tables.trial_tables import TRIAL_TABLES, TrainedRanker, compute_deviations
from rankwright.measures import Measure, PreparedMeasure, check_counted, compute_values, parse_measure, weighted_mean
from rankwright.models.model import Model
from rankwright.models.model_json import format_model
from rankwright.rankers import Ranker
from rankwright.runtime.backends import Serial

NAN = float("nan")

_LOADING_SECONDS = 5.0  # at most, before the first trial of a ranker that can have a time limit

Preference = tuple[float, int]  # the larger one is preferred


class TrialKey(NamedTuple):
    """The key of a trial: the method's name, the fold, the seed and the number of the candidate parameters."""

    method: str
    fold: int
    seed: int
    candidate: int

    @property
    def group(self) -> tuple[str, int, int]:
        """The method, fold and seed: of the trials of a group one is chosen."""
        return self.method, self.fold, self.seed

    def make_preference(self, valid: float) -> Preference:
        """Return the key by which trials of a group are compared: higher validation measure, then lower candidate."""
        return valid, -self.candidate


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A trial to run: its data, method, parameters and measures, and the best trial so far, which it has to beat."""

    key: TrialKey
    source: FoldSource
    method: AnyMethod
    params: Params
    measure: str
    measures: tuple[str, ...]
    curve_measures: tuple[str, ...]
    to_beat: Preference | None  # of the group's best trial so far: one that is not better is not tested
    wants_queries: bool  # whether the store does not know the fold's test queries yet
    run: str  # the id of this run of the experiment: folds that another run read are not reused

    @property
    def label(self) -> str:
        """The words that progress reports show."""
        return f"{self.key.method}, fold {self.key.fold}"


@dataclass(frozen=True, slots=True, eq=False)
class TestedModel:
    """The tested model of a trial: as text, with its values by measure and test query, and its tables by name."""

    values: Floats
    model: str
    tables: Mapping[str, Table]


@dataclass(frozen=True, slots=True, eq=False)
class FoldQueries:
    """The tables of a fold: its test queries, their documents unless there are too many, and facts on all parts."""

    queries: Table
    documents: Table | None
    data: Table

    @classmethod
    def from_fold(cls, fold: Fold) -> FoldQueries:
        """Return the tables of a fold."""
        return cls(make_queries_table(fold.test.grouped()), make_documents_table(fold.test), make_data_table(fold))


@dataclass(frozen=True, slots=True, eq=False)
class TrialResult:
    """The result of a finished trial: its validation measure, times, memory, warnings and, if tested, its model."""

    digest: str
    valid: float
    seconds: float
    predict_seconds: float = NAN
    memory_start: float = NAN
    memory_peak: float = NAN
    tested: TestedModel | None = None
    queries: FoldQueries | None = None
    warnings: str = ""  # in one line; empty where there were none


class _Fitted(NamedTuple):
    """A ranker that was fitted on a fold, or a fixed model, with the costs of the fit and its warnings."""

    ranker: Ranker | Model
    seconds: float = NAN
    memory_start: float = NAN
    memory_peak: float = NAN
    warnings: Sequence[CollectedWarning] = ()


def run_trial(task: TrialTask) -> TrialResult:
    """Fit a ranker, measure it on validation queries and, if it is the best so far, on test queries.

    A fixed model is not fitted. This runs in a worker. Warnings are kept in the result, not issued.
    """
    with progress.add_label(task.label), collect_warnings() as issued:
        of_caller, digest = read_fold(task.source, task.key.fold - 1, task.run)
        fold = Fold(*(part.grouped() for part in of_caller))
        max_grade = max(part.max_grade for part in fold)  # so that all parts are measured alike
        selecting = parse_measure(task.measure).with_max_grade(max_grade)
        check_counted(selecting, fold.valid, "validation")
        if isinstance(task.method, FixedModel):
            fold = Fold(*map(task.method.choose_features, fold))
            fitted = _Fitted(task.method.model, warnings=issued)
        else:
            fitted = _fit(task.method, task, fold)
        [prepared] = _prepare_measures(fold.valid, (selecting,))
        valid = find_deciding_value(fitted.ranker, prepared, fold.valid)
        if not isfinite(valid):
            raise InputError(f"{selecting} is not defined on the validation queries: none of them has any weight")
        is_better = task.to_beat is None or task.key.make_preference(valid) > task.to_beat
        predict_seconds, tested = _test(task, fitted.ranker, fold, max_grade) if is_better else (NAN, None)
        queries = FoldQueries.from_fold(of_caller) if task.wants_queries else None
    warned = "; ".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in fitted.warnings))
    costs = (fitted.seconds, predict_seconds, fitted.memory_start, fitted.memory_peak)
    return TrialResult(digest, valid, *costs, tested, queries, " ".join(warned.split()))


def _fit(method: Method, task: TrialTask, fold: Fold) -> _Fitted:
    """Fit the ranker of a trial on a fold."""
    ranker = method.make_ranker(task.params, task.key.seed, task.measure)
    _load_kernels(method.ranker_class, str(ranker.measure))
    memory_start = _start_memory_peak()
    start = time.perf_counter()
    ranker.fit(fold.train, valid=fold.valid)
    return _Fitted(ranker, time.perf_counter() - start, memory_start, _read_memory("VmHWM"), ranker.fit_warnings_)


@lru_cache
def _load_kernels(ranker: type[Ranker], measure: str) -> None:
    """Fit the ranker to tiny data, so that the time of its first trial does not include loading kernels."""
    with suppress(Exception), progress.mute():
        few = make_queries(6, n_docs=6, n_features=3, random_state=0)
        unfitted = ranker(measure=measure, backend=Serial())
        if "max_seconds" in ranker.parameter_names():  # a search among many rankers would take longer than some fits
            unfitted.set_params(max_seconds=_LOADING_SECONDS)
        unfitted.fit(few, valid=few)


def _test(task: TrialTask, ranker: Ranker | Model, fold: Fold, max_grade: float) -> tuple[float, TestedModel]:
    """Return the seconds that a fitted ranker takes to score the test queries, and the tested model."""
    start = time.perf_counter()
    scores = ranker.predict(fold.test)
    seconds = time.perf_counter() - start
    names = tuple(dict.fromkeys((*task.measures, *task.curve_measures)))
    values = _measure(fold.test, scores, tuple(parse_measure(name).with_max_grade(max_grade) for name in names))
    selecting = parse_measure(task.measure).with_max_grade(max_grade)
    means = {name: weighted_mean(row, fold.test.query_weight) for name, row in zip(names, values, strict=True)}
    trained = TrainedRanker(ranker, fold, scores, {name: means[name] for name in task.curve_measures}, selecting)
    made = {name: make(trained) for name, make in TRIAL_TABLES.items()}
    tables = {name: table for name, table in made.items() if table is not None}
    return seconds, TestedModel(values[: len(task.measures)], format_model(ranker.to_model()), tables)


def _measure(queries: Queries, scores: Floats, measures: tuple[Measure, ...]) -> Floats:
    """Return the values of measures by query, a row per measure; trials of a fold share prepared measures."""
    return compute_values(_prepare_measures(queries, measures), scores, Serial())


@lru_cache(maxsize=2)  # validation and test queries
def _prepare_measures(queries: Queries, measures: tuple[Measure, ...]) -> list[PreparedMeasure]:
    """Return measures prepared for these queries; the last results are cached."""
    return [measure.prepare(queries) for measure in measures]


def clear_caches() -> None:
    """Free the prepared measures and other data that the trials of a fold share."""
    for cached in (_prepare_measures, compute_deviations):
        cached.cache_clear()
    clear_folds()


def _start_memory_peak() -> float:
    """Reset the peak of this process's memory, and return the bytes in use now; NaN if they are not known."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _read_memory("VmRSS")


def _read_memory(key: str) -> float:
    """Return a number of bytes, such as the peak of memory, from this process's status on Linux; else NaN."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return float(line.split()[1]) * 1024
    return NAN
