"""Running an experiment: trials that are not finished are run, and every finished trial is kept at once."""

from __future__ import annotations

import json
import secrets
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.results import Results
from rankwright.basics import progress
from rankwright.basics.errors import FixedModelWarning, InputError, TrialWarning, warn
from rankwright.basics.files import StrPath
from rankwright.experiments.data_sources import FoldSource
from rankwright.experiments.fold_cache import read_fold
from rankwright.experiments.methods import Params
from rankwright.experiments.provenance import describe_run
from rankwright.experiments.result_reading import read_results
from rankwright.experiments.spec import Experiment
from rankwright.experiments.storage.salvaging import open_store
from rankwright.experiments.storage.schema import checksum_row
from rankwright.experiments.storage.store_writer import StoreWriter
from rankwright.experiments.trials import FoldQueries, TrialKey, TrialTask, clear_caches, run_trial
from rankwright.measures import CustomMeasure, parse_measure
from rankwright.runtime.workers import WorkerDiedError, WorkersLostError, open_workers

_MOST_TRIALS = 1_000_000
_MOST_RUNS = 100  # of which the store keeps the provenance


class PlannedTrial(NamedTuple):
    """A trial that an experiment needs: its key, method and parameters, and a checksum of what determines it."""

    key: TrialKey
    method: int
    params: Params
    checksum: int  # of everything that determines its result: a finished trial with another one is run again


def run_experiment(experiment: Experiment, out: StrPath, workers: Any = None, *, command: str = "") -> Results:
    """Run the unfinished trials of an experiment and return its results.

    Trials that finished in an earlier run are not run again. A trial that fails is recorded with its error and run
    again by the next run; the others continue.

    Parameters
    ----------
    experiment : Experiment
        The experiment. Methods and seeds may be added to one that has results.
    out : path
        The folder of the results. Only one process may run an experiment in a folder at a time.
    workers : int, Serial, Threads, Executor, Dask client or None
        Runs the trials: that many spawned processes (None: one per core), this process, threads, or a cluster.
        Rankers work serially within their trial. The results are the same.
    command : str
        What was run, for the report.
    """
    folder, run = Path(out), secrets.token_hex(8)
    _check_experiment(experiment)
    try:
        with open_workers(workers) as pool, open_store(folder) as store:
            if not pool.shares_memory:
                _check_known_measures(experiment)
            experiment, plans = _store_and_plan(store, experiment, folder / "data", run)
            finished = store.read_finished_trials()
            waiting = [plan for plan in plans if plan.key not in finished]
            _store_run(store, command, waiting)
            by_key = {plan.key: plan for plan in waiting}
            done = len(plans) - len(waiting)
            progress.report("trials", done, len(plans))
            for outcome in pool.run(run_trial, TrialQueue(experiment, waiting, store, run)):
                plan = by_key[outcome.task.key]
                if outcome.result is not None:
                    store.add_result(plan.key, plan.params, plan.checksum, outcome.result, experiment.measures)
                else:
                    store.add_failure(plan.key, plan.params, plan.checksum, _describe_error(outcome.error))
                done += 1
                progress.report("trials", done, len(plans))
            if not store.read_finished_trials():  # the cause is in the data or the spec
                method, error = store.select("SELECT method, error FROM trials LIMIT 1")[0]
                raise InputError(f"no trial could be run, such as {method}'s: {error}")
        results = read_results(folder)
    except WorkersLostError as error:
        raise WorkersLostError(
            f"{error}; finished trials are kept in {folder}: run the experiment again to continue"
        ) from None
    finally:
        clear_caches()
    _warn_about_trials(results)
    if results.fixed:
        warn(results.caution, FixedModelWarning)
    return results


def _store_run(store: StoreWriter, command: str, waiting: Sequence[PlannedTrial]) -> None:
    """Write the provenance of this run to the store, after those of earlier runs; not of one that has nothing to do."""
    if waiting:
        with store.transaction():
            store.write_meta("runs", [*(store.read_meta("runs") or []), describe_run(command)][-_MOST_RUNS:])


def _warn_about_trials(results: Results) -> None:
    """Issue one warning if any trials issued warnings, with an example, from a chosen trial if possible."""
    trials = results.tables["trials"]
    warned = trials["warnings"] != ""
    if warned.any():
        chosen = warned & trials["chosen"]
        at = int(np.argmax(chosen if chosen.any() else warned))
        where = f"{results.methods[trials['method'][at]]} on fold {trials['fold'][at]}"
        counts = f"{warned.sum()} of {len(warned)} trials issued warnings, {chosen.sum()} of them chosen ones"
        warn(f"{counts}, such as {where}: {trials['warnings'][at]}", TrialWarning)


def _check_experiment(experiment: Experiment) -> None:
    """Raise InputError if an experiment has wrong files, folds, numbers of trials or parameters."""
    _read_file_state(experiment.data)  # raises for files that are missing
    experiment.data.check_folds()
    n_trials = experiment.count_trials()
    if n_trials > _MOST_TRIALS:
        raise InputError(
            f"{n_trials:,} trials on {experiment.data.n_folds} folds; expected at most {_MOST_TRIALS:,}: "
            "choose fewer folds, methods, values or seeds"
        )
    for method in experiment.methods:
        method.check_candidates(experiment.measure)


def _read_file_state(source: FoldSource) -> list[tuple[str, int, int]]:
    """Return the path, size and modification time of each file of a source, which show whether data changed."""
    return [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in source.files]


def _check_published(experiment: Experiment) -> None:
    """Raise InputError if a published figure has values for more or fewer folds than there are."""
    n_folds = experiment.data.n_folds
    for figure in experiment.published:
        if len(figure.by_fold) not in (0, n_folds):
            which = f"published: {figure.method}, {figure.measure}"
            raise InputError(f"{which}: by_fold has {len(figure.by_fold)} figures; there are {n_folds} folds")


def _plan_trials(experiment: Experiment) -> Iterator[PlannedTrial]:
    """Yield all trials of an experiment, fold by fold.

    Candidates are shuffled: in the order of a sorted grid many are the best so far, and each of these is tested.
    """
    common = (experiment.measure, experiment.measures, experiment.curve_measures)
    for fold in range(1, experiment.data.n_folds + 1):
        for number, method in enumerate(experiment.methods):
            for seed in method.filter_seeds(experiment.seeds):
                candidates = method.list_candidates()
                for candidate in np.random.default_rng(0).permutation(len(candidates)).tolist():
                    params = candidates[candidate]
                    checksum = checksum_row("task", *common, *method.identity, params)
                    yield PlannedTrial(TrialKey(method.name, fold, seed, candidate), number, params, checksum)


class TrialQueue:
    """A queue of trials that gives a worker trials of the fold it has already read, while there are any.

    A task is made when a worker asks for it, so that it includes the best result so far.
    """

    def __init__(self, experiment: Experiment, waiting: Sequence[PlannedTrial], store: StoreWriter, run: str) -> None:
        self._experiment, self._store, self._run = experiment, store, run
        self._waiting: dict[int, deque[PlannedTrial]] = {}
        self._workers: Counter[int] = Counter()  # by fold
        for plan in waiting:
            self._waiting.setdefault(plan.key.fold, deque()).append(plan)

    def next(self, previous: TrialTask | None) -> TrialTask | None:
        """Return a trial of the same fold, or else of the fold with the most trials left per worker."""
        if previous is not None:
            self._workers[previous.key.fold] -= 1
        left = [fold for fold, plans in self._waiting.items() if plans]
        if not left:
            return None
        same = previous is not None and previous.key.fold in left
        most = max(left, key=lambda fold: len(self._waiting[fold]) / (1 + self._workers[fold]))
        fold = previous.key.fold if same and previous is not None else most
        self._workers[fold] += 1
        return self._make_task(self._waiting[fold].popleft())

    def _make_task(self, plan: PlannedTrial) -> TrialTask:
        experiment = self._experiment
        return TrialTask(
            key=plan.key,
            source=experiment.data,
            method=experiment.methods[plan.method],
            params=plan.params,
            measure=experiment.measure,
            measures=experiment.measures,
            curve_measures=experiment.curve_measures,
            to_beat=self._store.read_best().get(plan.key.group),
            wants_queries=plan.key.fold not in self._store.read_described_folds(),
            run=self._run,
        )


def _store_and_plan(
    store: StoreWriter, experiment: Experiment, folder: Path, run: str
) -> tuple[Experiment, list[PlannedTrial]]:
    """Write the experiment to the store and plan its trials; raise InputError if the store holds another one."""
    before = set(folder.glob("*"))
    experiment = experiment.with_data(experiment.data.save(folder))
    try:
        plans = list(_plan_trials(experiment))
        _check_published(experiment)
        _check_same_experiment(store, experiment, run)
    except InputError:
        for path in set(folder.glob("*")) - before:
            shutil.rmtree(path)
        raise
    with store.transaction():
        store.write_meta("experiment", experiment.to_json())
        store.write_meta("n_folds", experiment.data.n_folds)
        store.write_meta("n_trials", len(plans))
        store.write_meta("seeds", {method.name: method.filter_seeds(experiment.seeds) for method in experiment.methods})
        store.write_meta("files", _read_file_state(experiment.data))
        for method in experiment.methods:
            store.write_method(method.name, method.to_definition())
        finished = store.read_finished_trials()
        store.delete_trials(plan.key for plan in plans if finished.get(plan.key, plan.checksum) != plan.checksum)
    _restore_fold_queries(store, experiment.data, run)
    return experiment, plans


def _restore_fold_queries(store: StoreWriter, source: FoldSource, run: str) -> None:
    """Write to the store the test queries of folds whose trials are intact but whose queries were damaged."""
    for fold in sorted(store.read_digests().keys() - store.read_described_folds()):
        parts, digest = read_fold(source, fold - 1, run)
        with store.transaction():
            store.write_fold_queries(fold, digest, FoldQueries.from_fold(parts))


def _check_same_experiment(store: StoreWriter, experiment: Experiment, run: str) -> None:
    """Raise InputError if the finished trials in the store belong to another experiment."""
    if not store.read_finished_trials():
        return
    content, source = experiment.to_json(), experiment.data
    known: dict[str, Any] = store.read_meta("experiment") or {}  # it may have been damaged
    facts = [(name, known.get(name), content[name]) for name in ("measure", "measures")]
    for name, then, now in (*facts, ("number of folds", store.read_meta("n_folds"), source.n_folds)):
        if then is not None and then != now:
            raise InputError(
                f"{store.path.parent}: holds an experiment whose {name} is {then}, not {now}: choose another folder"
            )
    for method in experiment.methods:
        store.check_method(method.name, method.to_definition())
    unchanged = json.loads(json.dumps(_read_file_state(source))) == store.read_meta("files")
    if known.get("data") == content["data"] and unchanged:
        return
    for fold, digest in store.read_digests().items():
        if read_fold(source, fold - 1, run)[1] != digest:
            raise InputError(f"{store.path.parent}: holds an experiment on other data (fold {fold} differs)")


def _check_known_measures(experiment: Experiment) -> None:
    """Raise InputError if a measure is a user's own function, which other processes do not know."""
    trained = [method.measure for method in experiment.methods if method.measure is not None]
    for name in (experiment.measure, *experiment.measures, *trained):
        if isinstance(parse_measure(name), CustomMeasure):
            raise InputError(
                f"{name} is a measure of your own, which other processes and machines do not know: run with"
                " workers=Serial() or Threads(n)"
            )


def _describe_error(error: BaseException | None) -> str:
    """Return one line of text that says why a trial failed."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, (InputError, WorkerDiedError)) else f"{type(error).__name__}: {error}"
