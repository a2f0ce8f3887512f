"""Weights for hybrid search: the weighted sum of runs that maximises a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.document_pools import DocumentPool, pool_documents
from rankwright.data.run_fusion import Source, check_normalisation, name_runs, open_qrels, open_runs
from rankwright.data.trec import Table, TrecTable
from rankwright.measures import Measure, parse_measure
from rankwright.runtime.backends import Backend, resolve
from rankwright.tuning.fusion_problem import FusionProblem, Mask, StartGrid
from rankwright.tuning.fusion_result import ROWS, TUNED, FusionCounts, FusionResult, compute_gains

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
    """Find the weights of runs with which the weighted sum of their scores maximises a measure.

    The search is exact along every weight: it finds the best of all values that the weight can take, and ends when no
    single weight can improve the measure. It climbs from the best few points of a grid, so it is never worse than the
    grid. For two runs and nonnegative weights the result is the global maximum.

    Parameters
    ----------
    qrels : path, or mapping of query id to mapping of document id to grade
        Judgments. A document without one has grade 0.
    runs : mapping of name to run, or sequence of runs
        Two or more. A run is a path, a mapping of query id to mapping of document id to score, or an object with
        ``to_dict``, such as ranx's.
    measure : str or Measure
        The measure that is maximised and reported.
    normalise : {"min-max", "z", "rank", "rrf", "none"}
        How the scores of a run are normalised within each query; see ``docs/tuning.md``.
    folds : int or None
        The number of folds of the cross-validation that measures the gains. With None or 1 there is none, and the gains
        are measured on the queries that the weights were fitted to, which is optimistic.
    nonnegative : bool
        Whether weights must not be negative.
    random_state : int, Generator or None
        The seed of the cut into folds.
    backend : Backend, optional
        Runs the work; all cores by default.

    Returns
    -------
    FusionResult
        The weights, their gains with confidence intervals, and counts of judgments. It prints as a table, fuses other
        runs and writes runs.

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
    parsed = parse_measure(measure)
    check_normalisation(normalise)
    sources = name_runs(runs)
    if len(sources) < 2:
        raise InputError(f"{len(sources)} run; expected at least two")
    for name in ROWS:
        if name in sources:
            raise InputError(f"a run cannot be called {name!r}: a line of the results has that name; choose another")
    cut, rng = _check_folds(folds), make_generator(random_state)
    if type(nonnegative) is not bool:
        raise InputError(f"nonnegative={nonnegative!r}; expected True or False")
    judged, found = open_qrels(qrels), open_runs(sources)
    names, tables = list(found), list(found.values())
    pool = pool_documents(_list_answered_queries(judged, found), tables, judged)
    problem = FusionProblem.prepare(pool, parsed, normalise, nonnegative, resolve(backend))
    parts = _cut_queries(pool.qid, problem.full.is_counted, cut, rng)
    starts, left_out = StartGrid.evaluate(problem.train, len(names), nonnegative), [*parts, np.arange(0)]
    *held_out, weights = [problem.fit(starts, part) for part in progress.track(left_out, "fitting", len(left_out))]
    tuned = problem.evaluate_held_out(parts, held_out) if parts else problem.evaluate(weights)
    per_query = problem.evaluate_baselines(names) | {TUNED: tuned}
    return FusionResult(
        measure=str(problem.measure),
        normalise=normalise,
        weights=dict(zip(names, weights.tolist(), strict=True)),
        fold_weights=[dict(zip(names, each.tolist(), strict=True)) for each in held_out],
        train=problem.compute_mean(weights),
        per_query=per_query,
        qid=np.array(pool.qid),
        gains=compute_gains(per_query),
        judged_at=problem.judged_at,
        judged=problem.compute_judged_shares(names, weights),
        counts=_count_judgments(pool, judged, found),
        digits=_choose_digits(problem, weights),
        runs=found,
    )


def _check_folds(folds: int | None) -> int:
    """Return the number of folds, 1 for None; raise InputError unless it is a whole number above 0."""
    if folds is None:
        return 1
    if isinstance(folds, bool) or not hasattr(folds, "__index__") or folds < 1:
        raise InputError(f"folds={folds!r}; expected a whole number of at least 2, or 1 for no cross-validation")
    return int(folds)


def _cut_queries(qid: Sequence[str], counted: Mask, folds: int, rng: np.random.Generator) -> list[Ints]:
    """Divide the counted queries at random into folds, at most one per query; return [] if that leaves one fold.

    The queries are sorted by id before they are shuffled, so that the order of the judgments does not matter.
    """
    queries = sorted(np.flatnonzero(counted).tolist(), key=qid.__getitem__)
    folds = min(folds, len(queries))
    return np.array_split(rng.permutation(queries), folds) if folds > 1 else []


def _list_answered_queries(judged: TrecTable, runs: Mapping[str, Table]) -> list[str]:
    """Return the judged queries that any run answers; raise InputError if a run answers no judged query."""
    for name, run in runs.items():
        if run.keys().isdisjoint(judged):
            here, there = next(iter(judged)), next(iter(run))
            raise InputError(f"no query of {name} is judged: the judgments have {here!r}, the run {there!r}")
    return [query for query in judged if any(query in run for run in runs.values())]


def _count_judgments(pool: DocumentPool, judged: TrecTable, runs: Mapping[str, Table]) -> FusionCounts:
    """Count the queries and documents that the weights are fitted to, and those left out."""
    found, relevant = pool.found, pool.grades > 0
    answered = np.logical_or.reduceat(~np.isnan(pool.scores), pool.indptr[:-1])
    return FusionCounts(
        queries=len(pool.qid),
        unanswered=len(judged) - len(pool.qid),
        unjudged=len({query for run in runs.values() for query in run} - judged.keys()),
        silent={name: int((~answered[:, run]).sum()) for run, name in enumerate(runs)},
        documents=int(found.sum()),
        documents_unjudged=int((found & np.isnan(pool.grades)).sum()),
        relevant=int(relevant.sum()),
        relevant_missed=int((relevant & ~found).sum()),
    )


def _choose_digits(problem: FusionProblem, weights: Floats) -> int:
    """Return how many decimals to show, so that weights rounded to them have the same measure on every query."""
    values = problem.evaluate(weights)
    for digits in range(_FIRST_DIGITS, _ALL_DIGITS):
        if np.array_equal(problem.evaluate(np.round(weights, digits)), values, equal_nan=True):
            return digits
    return _ALL_DIGITS
