"""Weights for hybrid search: the weighted sum of runs that is best by a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.run_fusion import Source, check_normalisation, name_runs, open_qrels, open_runs
from rankwright.data.trec import DocumentPool, Table, TrecTable, pool_documents
from rankwright.measures import Measure, parse
from rankwright.runtime.backends import Backend, resolve
from rankwright.tuning.fusion_result import ROWS, TUNED, Counts, FusionResult, gains_over
from rankwright.tuning.fusion_task import Mask, Starts, Task

_FIRST_DIGITS, _ALL_DIGITS = 4, 17


def tune_fusion(
    qrels: Source,
    runs: Mapping[str, Source] | Sequence[Source],
    *,
    measure: str | Measure = "ndcg@10",
    normalise: str = "min-max",
    folds: int | None = 5,
    nonnegative: bool = True,
    random_state: int | np.random.Generator | None = 0,
    backend: Backend | None = None,
) -> FusionResult:
    """Find the weights of runs whose weighted sum is best by a measure.

    The search is exact along every weight: of all values that one can take, it finds the best, and it ends when no
    single weight can improve the measure. It climbs from the best few points of a grid, so it is never worse than the
    grid. For two runs and weights that are not negative that is the best there is.

    Parameters
    ----------
    qrels : path, or mapping of query id to mapping of document id to grade
        Judgments. A document without one has grade 0.
    runs : mapping of name to run, or sequence of runs
        Two or more. A run is a path, a mapping of query id to mapping of document id to score, or an object with
        ``to_dict``, such as ranx's.
    measure : str or Measure
        What is maximised and reported.
    normalise : {"min-max", "z", "rank", "rrf", "none"}
        How the scores of a run are made comparable, within each query; see ``docs/tuning.md``.
    folds : int or None
        Cross-validation: the gains are measured on queries that the weights were not fitted to. With None or 1 there
        is none, and the gains are those on the queries of the fit, which are too good.
    nonnegative : bool
        Whether weights must not be negative.
    random_state : int, Generator or None
        Seeds the cut into folds.
    backend : Backend, optional
        Where the work runs; all cores by default.

    Returns
    -------
    FusionResult
        Weights, gains with intervals, counts of what is judged; it prints as a table, fuses other runs, and writes.

    Examples
    --------
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
    >>> words = {"q1": {"x": 9.0, "a": 8.0}, "q2": {"b": 7.0, "y": 5.0}, "q3": {"z": 4.0, "c": 3.9, "y": 1.0}}
    >>> dense = {"q1": {"a": 0.9, "y": 0.8}, "q2": {"z": 0.5, "b": 0.4, "x": 0.1}, "q3": {"c": 0.7, "x": 0.6}}
    >>> found = tune_fusion(qrels, {"words": words, "dense": dense}, measure="mrr", folds=3)
    >>> found.train
    1.0
    >>> list(found.fuse()["q1"])
    ['a', 'x', 'y']
    """
    decisive = parse(measure)
    check_normalisation(normalise)
    sources = name_runs(runs)
    if len(sources) < 2:
        raise InputError(f"{len(sources)} run; expected at least two, to weigh against each other")
    for name in ROWS:
        if name in sources:
            raise InputError(f"a run cannot be called {name!r}: a line of the results is")
    cut, rng = _check_folds(folds), make_generator(random_state)
    if type(nonnegative) is not bool:
        raise InputError(f"nonnegative={nonnegative!r}; expected True or False")
    judged, found = open_qrels(qrels), open_runs(sources)
    names, tables = list(found), list(found.values())
    pool = pool_documents(_answered(judged, found), tables, judged)
    task = Task.of(pool, decisive, normalise, nonnegative, resolve(backend))
    parts = _cut(pool.qid, task.full.counted, cut, rng)
    starts, left_out = Starts.of(task.train, len(names), nonnegative), [*parts, np.arange(0)]
    *held_out, weights = [task.fit(starts, part) for part in progress.track(left_out, "fitting", len(left_out))]
    per_query = task.baselines(names) | {TUNED: task.held_out(parts, held_out) if parts else task.judge(weights)}
    return FusionResult(
        measure=str(task.measure),
        normalise=normalise,
        weights=dict(zip(names, weights.tolist(), strict=True)),
        fold_weights=[dict(zip(names, each.tolist(), strict=True)) for each in held_out],
        train=task.mean(weights),
        per_query=per_query,
        qid=np.array(pool.qid),
        gains=gains_over(per_query),
        judged_at=task.judged_at,
        judged=task.judged(names, weights),
        counts=_count(pool, judged, found),
        digits=_digits(task, weights),
        runs=found,
    )


def _check_folds(folds: int | None) -> int:
    if folds is None:
        return 1
    if isinstance(folds, bool) or not hasattr(folds, "__index__") or folds < 1:
        raise InputError(f"folds={folds!r}; expected a whole number of at least 2, or 1 for no cross-validation")
    return int(folds)


def _cut(qid: Sequence[str], counted: Mask, folds: int, rng: np.random.Generator) -> list[Ints]:
    """Deal the queries that count into folds, as many as there can be; none where there is no telling them apart.

    The queries are shuffled from the order of their ids, so that the order of the judgments does not matter.
    """
    queries = sorted(np.flatnonzero(counted).tolist(), key=qid.__getitem__)
    folds = min(folds, len(queries))
    return np.array_split(rng.permutation(queries), folds) if folds > 1 else []


def _answered(judged: TrecTable, runs: Mapping[str, Table]) -> list[str]:
    """The judged queries that a run answers; every run must answer one."""
    for name, run in runs.items():
        if run.keys().isdisjoint(judged):
            here, there = next(iter(judged)), next(iter(run))
            raise InputError(f"no query of {name} is judged: the judgments have {here!r}, the run {there!r}")
    return [query for query in judged if any(query in run for run in runs.values())]


def _count(pool: DocumentPool, judged: TrecTable, runs: Mapping[str, Table]) -> Counts:
    found, relevant = pool.found, pool.grades > 0
    answered = np.logical_or.reduceat(~np.isnan(pool.scores), pool.indptr[:-1])
    return Counts(
        queries=len(pool.qid),
        unanswered=len(judged) - len(pool.qid),
        unjudged=len({query for run in runs.values() for query in run} - judged.keys()),
        silent={name: int((~answered[:, run]).sum()) for run, name in enumerate(runs)},
        documents=int(found.sum()),
        documents_unjudged=int((found & np.isnan(pool.grades)).sum()),
        relevant=int(relevant.sum()),
        relevant_missed=int((relevant & ~found).sum()),
    )


def _digits(task: Task, weights: Floats) -> int:
    """How many decimals to show: rounded to them, the weights reach what they reach in full."""
    values = task.judge(weights)
    for digits in range(_FIRST_DIGITS, _ALL_DIGITS):
        if np.array_equal(task.judge(np.round(weights, digits)), values, equal_nan=True):
            return digits
    return _ALL_DIGITS
