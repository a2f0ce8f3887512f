"""Running an experiment: what is not finished is run, and every finished trial is kept at once."""

from __future__ import annotations

import json
import secrets
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.results import Results
from rankwright.basics import progress
from rankwright.basics.errors import InputError, TrialWarning, warn
from rankwright.basics.files import StrPath
from rankwright.data.queries import Queries
from rankwright.experiments.data_sources import SavedQueries, Source, read_fold, save_data, state_of
from rankwright.experiments.parameter_search import Params
from rankwright.experiments.result_reading import read_results
from rankwright.experiments.spec import Experiment
from rankwright.experiments.storage.salvaging import open_store
from rankwright.experiments.storage.schema import row_checksum
from rankwright.experiments.storage.store import Store
from rankwright.experiments.trials import Key, Task, describe_queries, forget, run_trial
from rankwright.measures import CustomMeasure, parse
from rankwright.runtime.workers import WorkerDiedError, WorkersLostError, open_workers

_MOST_TRIALS = 1_000_000


class Plan(NamedTuple):
    """A trial of an experiment, and its parameters."""

    key: Key
    method: int
    params: Params
    task: int  # the checksum of what it computes: a finished trial is this one's if it has the same


def run_experiment(experiment: Experiment, out: StrPath, workers: Any = None) -> Results:
    """Run what is not finished of an experiment and return its results.

    Trials that finished before, in this or an earlier run, are not run again. A trial that fails is written down,
    and tried again by the next run; the others go on.

    Parameters
    ----------
    experiment : Experiment
        What to run. Methods and seeds may be added to an experiment that has results.
    out : path
        The folder of the results. Only one process may run an experiment in a folder at a time.
    workers : int, Serial, Threads, Executor, Dask client or None
        Where trials run: that many spawned processes (None: one a core), in place, on threads, or on a cluster.
        Rankers work serially within their trial. The results are the same.
    """
    folder, run = Path(out), secrets.token_hex(8)
    _check_before(experiment)
    try:
        with open_workers(workers) as pool, open_store(folder) as store:
            if not pool.shares_memory:
                _check_names(experiment)
            experiment, plans = _agree(store, experiment, folder / "data", run)
            finished = store.finished()
            waiting = [plan for plan in plans if plan.key not in finished]
            by_key = {plan.key: plan for plan in waiting}
            done = len(plans) - len(waiting)
            progress.report("trials", done, len(plans))
            for outcome in pool.run(run_trial, TrialsByFold(experiment, waiting, store, run)):
                plan = by_key[outcome.task.key]
                if outcome.result is not None:
                    store.add(plan.key, plan.params, plan.task, outcome.result, experiment.measures)
                else:
                    store.fail(plan.key, plan.params, plan.task, _said(outcome.error))
                done += 1
                progress.report("trials", done, len(plans))
            if not store.finished():  # what is wrong with all of them is wrong with the data or the spec
                method, error = store.rows("SELECT method, error FROM trials LIMIT 1")[0]
                raise InputError(f"no trial could be run, such as {method}'s: {error}")
        results = read_results(folder)
    except WorkersLostError as error:
        raise WorkersLostError(f"{error}; what is finished is kept in {folder}: run it again to go on") from None
    finally:
        forget()
    _warn_about(results)
    return results


def _warn_about(results: Results) -> None:
    """Issue one warning if trials have any; such as one that was chosen, if there is one."""
    trials = results.tables["trials"]
    warned = trials["warnings"] != ""
    if warned.any():
        chosen = warned & trials["chosen"]
        at = int(np.argmax(chosen if chosen.any() else warned))
        where = f"{results.methods[trials['method'][at]]} on fold {trials['fold'][at]}"
        said = f"{warned.sum()} of {len(warned)} trials issued warnings, {chosen.sum()} of them chosen ones"
        warn(f"{said}, such as {where}: {trials['warnings'][at]}", TrialWarning)


def _check_before(experiment: Experiment) -> None:
    """Raise InputError for what is known to fail before there is a folder: files, folds, trials, parameters."""
    data = experiment.data
    if isinstance(data, list):
        n_folds = len(data)
    elif isinstance(data, Queries):
        cut = SavedQueries()
        cut.check_count(len(data))
        n_folds = cut.n_folds
    else:
        state_of(data)  # raises for files that are not there
        data.check_folds()
        n_folds = data.n_folds
    n_trials = experiment.n_trials(n_folds)
    if n_trials > _MOST_TRIALS:
        raise InputError(
            f"{n_trials:,} trials on {n_folds} folds; expected at most {_MOST_TRIALS:,}: "
            "choose fewer folds, methods, values or seeds"
        )
    for method in experiment.methods:
        method.check_candidates(experiment.measure)


def _check_published(experiment: Experiment, n_folds: int) -> None:
    """Refuse published figures of other folds than there are."""
    for figure in experiment.published:
        if len(figure.by_fold) not in (0, n_folds):
            which = f"published: {figure.method}, {figure.measure}"
            raise InputError(f"{which}: by_fold has {len(figure.by_fold)} figures; there are {n_folds} folds")


def _plans(experiment: Experiment) -> Iterator[Plan]:
    """Every trial, fold by fold.

    Candidates come shuffled: of a sorted grid nearly every one is the best so far, and is tested, until the best.
    """
    common = (experiment.measure, experiment.measures, experiment.curve)
    for fold in range(1, _source(experiment).n_folds + 1):
        for number, method in enumerate(experiment.methods):
            for seed in method.seeds(experiment.seeds):
                candidates = method.candidates()
                for candidate in np.random.default_rng(0).permutation(len(candidates)).tolist():
                    params = candidates[candidate]
                    task = row_checksum("task", *common, method.ranker_class.__name__, method.measure, params)
                    yield Plan(Key(method.name, fold, seed, candidate), number, params, task)


class TrialsByFold:
    """Trials to be run: a worker stays with the fold it has read while there are trials of it.

    Tasks are made when they are asked for, with what is known then.
    """

    def __init__(self, experiment: Experiment, waiting: Sequence[Plan], store: Store, run: str) -> None:
        self._experiment, self._store, self._run = experiment, store, run
        self._waiting: dict[int, deque[Plan]] = {}
        self._workers: Counter[int] = Counter()  # by fold
        for plan in waiting:
            self._waiting.setdefault(plan.key.fold, deque()).append(plan)

    def next(self, previous: Task | None) -> Task | None:
        """A trial of the same fold, or else of the fold with the most to do for each of its workers."""
        if previous is not None:
            self._workers[previous.key.fold] -= 1
        left = [fold for fold, plans in self._waiting.items() if plans]
        if not left:
            return None
        same = previous is not None and previous.key.fold in left
        most = max(left, key=lambda fold: len(self._waiting[fold]) / (1 + self._workers[fold]))
        fold = previous.key.fold if same and previous is not None else most
        self._workers[fold] += 1
        return self._task(self._waiting[fold].popleft())

    def _task(self, plan: Plan) -> Task:
        of = self._experiment
        best = self._store.best().get(plan.key.group)
        describe = plan.key.fold not in self._store.described()
        method, source = of.methods[plan.method], _source(of)
        return Task(plan.key, source, method, plan.params, of.measure, of.measures, of.curve, best, describe, self._run)


def _source(experiment: Experiment) -> Source:
    assert not isinstance(experiment.data, (Queries, list))
    return experiment.data


def _agree(store: Store, experiment: Experiment, folder: Path, run: str) -> tuple[Experiment, list[Plan]]:
    """Write the experiment down, or refuse, before anything is written, if the folder holds another."""
    before = set(folder.glob("*"))
    if isinstance(experiment.data, (Queries, list)):
        experiment = experiment.with_source(save_data(experiment.data, folder))
    try:
        plans = list(_plans(experiment))
        _check_published(experiment, _source(experiment).n_folds)
        _check_same(store, experiment, run)
    except InputError:
        for path in set(folder.glob("*")) - before:
            path.unlink()
        raise
    with store.transaction():
        store.write_meta("experiment", experiment.to_json())
        store.write_meta("n_folds", _source(experiment).n_folds)
        store.write_meta("n_trials", len(plans))
        store.write_meta("seeds", {method.name: method.seeds(experiment.seeds) for method in experiment.methods})
        store.write_meta("files", state_of(_source(experiment)))
        for method in experiment.methods:
            store.write_method(method.name, method.to_json())
        finished = store.finished()
        store.forget(plan.key for plan in plans if finished.get(plan.key, plan.task) != plan.task)
    _describe_folds(store, _source(experiment), run)
    return experiment, plans


def _describe_folds(store: Store, source: Source, run: str) -> None:
    """Write down the queries of folds that have trials but no queries: they were damaged."""
    for fold in sorted(store.digests().keys() - store.described()):
        parts, digest = read_fold(source, fold - 1, run)
        with store.transaction():
            store.describe(fold, digest, describe_queries(parts.test))


def _check_same(store: Store, experiment: Experiment, run: str) -> None:
    """Refuse what does not go with the trials that are finished."""
    if not store.finished():
        return
    said, before, source = experiment.to_json(), store.meta("experiment"), _source(experiment)
    known: dict[str, Any] = before or {}  # the description may have been damaged
    facts = [(name, known.get(name), said[name]) for name in ("measure", "measures")]
    for name, then, now in (*facts, ("number of folds", store.meta("n_folds"), source.n_folds)):
        if then is not None and then != now:
            raise InputError(
                f"{store.path.parent}: holds an experiment whose {name} is {then}, not {now}: choose another folder"
            )
    for method in experiment.methods:
        store.check_method(method.name, method.to_json())
    unchanged = json.loads(json.dumps(state_of(source))) == store.meta("files")
    if known.get("data") == said["data"] and unchanged:
        return
    for fold, digest in store.digests().items():
        if read_fold(source, fold - 1, run)[1] != digest:
            raise InputError(f"{store.path.parent}: holds an experiment on other data (fold {fold} differs)")


def _check_names(experiment: Experiment) -> None:
    """Refuse measures that other processes do not know."""
    trained = [method.measure for method in experiment.methods if method.measure is not None]
    for name in (experiment.measure, *experiment.measures, *trained):
        if isinstance(parse(name), CustomMeasure):
            raise InputError(
                f"{name} is a measure of your own, which other processes and machines do not know: run with"
                " workers=Serial() or Threads(n)"
            )


def _said(error: BaseException | None) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, (InputError, WorkerDiedError)) else f"{type(error).__name__}: {error}"
