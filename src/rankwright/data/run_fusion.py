"""Fusion of runs: scores are normalised within each query and added with weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath, write_atomic
from rankwright.data.document_pools import DocumentPool, pool_documents
from rankwright.data.judgments import read_judgments
from rankwright.data.trec import Table, TrecTable, read_run, run_names
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.scorers.linear_scores import compute_linear_scores

RRF_K = 60  # the constant of reciprocal rank fusion, as its authors chose it
_TILT = 2.0**-40

Source = StrPath | Table  # a file, or what is in it


class _RunScores(NamedTuple):
    """The scores that one run gives to the documents of a pool, query by query."""

    rows: Ints  # of the pool
    scores: Floats
    queries: Ints  # the queries that the run answers
    starts: Ints  # where each of them begins in the scores
    sizes: Ints

    def repeat(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat a value per answered query for each of its scores."""
        return np.repeat(values, self.sizes)


class Normalisation(NamedTuple):
    """A way to scale the scores of a run, such as min-max, so that they can be added to those of other runs.

    Parameters
    ----------
    title : str
        What it does, for people.
    scale : callable
        (answers) -> a value per score.
    lowest : bool
        Whether a document that the run did not find counts as its lowest one of the query, and not as 0.
    """

    title: str
    scale: Callable[[_RunScores], Floats]
    lowest: bool


def _scale_to_unit_range(answers: _RunScores) -> Floats:
    """Return a run's scores scaled to the range from 0 to 1 within each query."""
    low = np.minimum.reduceat(answers.scores, answers.starts)
    spread = answers.repeat(np.maximum.reduceat(answers.scores, answers.starts) - low)
    scaled: Floats = np.divide(answers.scores - answers.repeat(low), spread, out=np.ones(len(spread)), where=spread > 0)
    return scaled


def _standardise(answers: _RunScores) -> Floats:
    """Return a run's scores with mean 0 and standard deviation 1 within each query."""
    centred = answers.scores - answers.repeat(np.add.reduceat(answers.scores, answers.starts) / answers.sizes)
    deviation = answers.repeat(np.sqrt(np.add.reduceat(centred**2, answers.starts) / answers.sizes))
    extremes = [end.reduceat(answers.scores, answers.starts) for end in (np.minimum, np.maximum)]
    varies = answers.repeat(extremes[0] < extremes[1])  # rounding of the mean must not make a constant vary
    scaled: Floats = np.divide(centred, deviation, out=np.zeros(len(centred)), where=varies)
    return scaled


def _compute_ranks(answers: _RunScores) -> Floats:
    """Return each document's rank in a run, from 1 within its query; equal scores share their mean rank."""
    n = len(answers.scores)
    order = np.arange(n)
    sort_rows(answers.scores, np.zeros(n), np.append(answers.starts, n), 0, len(answers.starts), order)
    ranked = answers.scores[order]
    begins = np.concatenate([[True], ranked[1:] != ranked[:-1]])
    begins[answers.starts] = True
    first = np.flatnonzero(begins)
    last = np.append(first[1:], n) - 1
    ranks = np.empty(n)
    ranks[order] = np.repeat((first + last) / 2 + 1, last - first + 1) - answers.repeat(answers.starts)
    return ranks


def _compute_rank_shares(answers: _RunScores) -> Floats:
    """Return (n - rank + 1) / n for each of a run's n documents of a query."""
    n = answers.repeat(answers.sizes)
    shares: Floats = (n - _compute_ranks(answers) + 1) / n
    return shares


def _compute_reciprocal_ranks(answers: _RunScores) -> Floats:
    """Return 1 / (60 + rank) for each document of a run, as reciprocal rank fusion adds it."""
    return 1.0 / (RRF_K + _compute_ranks(answers))


NORMALISATIONS: Mapping[str, Normalisation] = {
    "min-max": Normalisation("the lowest score of a run and query is 0, the highest 1", _scale_to_unit_range, False),
    "z": Normalisation("mean 0 and deviation 1 within each run and query", _standardise, True),
    "rank": Normalisation("(n - rank + 1) / n", _compute_rank_shares, False),
    "rrf": Normalisation(f"1 / ({RRF_K} + rank)", _compute_reciprocal_ranks, False),
    "none": Normalisation("the scores as they are", lambda answers: answers.scores, True),
}


def check_normalisation(name: str) -> None:
    """Raise InputError if no normalisation has this name."""
    if name not in NORMALISATIONS:
        raise InputError(f"normalise={name!r}; {suggest(str(name), NORMALISATIONS)}")


def normalise_scores(pool: DocumentPool, name: str) -> Floats:
    """Return a column per run: its scores of the pool's documents, normalised within each query.

    Where a run did not find a document, the value is 0 (``min-max``, ``rank``, ``rrf``) or the lowest of that run and
    query (``z``, ``none``); where a run does not answer a query at all, it is 0 for every document.

    >>> pool = pool_documents(["q"], [{"q": {"a": 2.0, "b": 4.0, "c": 3.0}}, {"q": {"b": 7.0}}], {})
    >>> normalise_scores(pool, "min-max").tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.5, 0.0]]
    """
    chosen = NORMALISATIONS[name]
    out = np.zeros((len(pool.scores), pool.n_runs), order="F")
    for run, column in enumerate(out.T):
        answers = _select_run_scores(pool, run)
        values = chosen.scale(answers)
        if chosen.lowest and len(values):
            missing = np.zeros(len(pool.sizes))
            missing[answers.queries] = np.minimum.reduceat(values, answers.starts)
            column[:] = np.repeat(missing, pool.sizes)
        column[answers.rows] = values
    return out


def make_features(pool: DocumentPool, name: str) -> Floats:
    """Return the normalised scores of the runs as a float32 feature matrix, with a row per document."""
    return np.ascontiguousarray(normalise_scores(pool, name), dtype=np.float32)


def _select_run_scores(pool: DocumentPool, run: int) -> _RunScores:
    """Return the scores of the documents that a run found, out of a pool."""
    found = ~np.isnan(pool.scores[:, run])
    before = np.concatenate([[0], np.cumsum(found)])
    starts, ends = before[pool.indptr[:-1]], before[pool.indptr[1:]]
    queries, rows = np.flatnonzero(ends > starts), np.flatnonzero(found)
    return _RunScores(rows, pool.scores[:, run][rows], queries, starts[queries], (ends - starts)[queries])


def make_equal_weights(n_runs: int) -> Floats:
    """Return a weight per run, nearly equal: a little more for earlier runs, which decide ties."""
    return (1.0 + _TILT * np.arange(n_runs, 0, -1)) / n_runs


def sum_reciprocal_ranks(pool: DocumentPool) -> Floats:
    """Return reciprocal rank fusion's score of each document: the sum of ``1 / (60 + rank)`` over the runs."""
    scores = np.zeros(len(pool.scores))
    for column, weight in zip(
        normalise_scores(pool, "rrf").T, pool.n_runs * make_equal_weights(pool.n_runs), strict=True
    ):
        scores += weight * column
    return scores


def fuse(
    runs: Sequence[Table], weights: Floats, normalise: str, depth: int | None = None
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield for each query its id and the fused scores of its best ``depth`` documents, best first.

    Documents with equal scores are ordered by their ids, the larger first, as trec_eval does.
    """
    check_normalisation(normalise)
    wanted = list(dict.fromkeys(chain(*runs)))
    for start in range(0, len(wanted), 1000):  # all queries of a large collection at once are too much for the memory
        pool = pool_documents(wanted[start : start + 1000], runs, {})
        scores = compute_linear_scores(make_features(pool, normalise), weights, 0.0)
        for query, first, last in zip(pool.qid, pool.indptr[:-1], pool.indptr[1:], strict=True):
            found = zip(scores[first:last].tolist(), pool.docid[first:last].tolist(), strict=True)
            yield query, {name: score for score, name in sorted(found, reverse=True)[:depth]}


def write_fused(fused: Iterable[tuple[str, Mapping[str, float]]], path: StrPath, tag: str) -> None:
    """Write fused rankings as a TREC run file, with lines ``qid Q0 docid rank score tag``."""
    with write_atomic(path) as file:
        for query, documents in fused:
            for word in (query, tag, *documents):
                if word.split() != [word]:
                    raise InputError(f"the id {word!r} cannot be written: it is empty or has spaces")
            ranked = enumerate(documents.items(), 1)
            file.writelines(f"{query} Q0 {name} {rank} {score!r} {tag}\n" for rank, (name, score) in ranked)


def open_qrels(qrels: Source) -> TrecTable:
    """Return judgments by query and document, given as a file, nested mappings, or an object with ``to_dict``."""
    source = qrels.to_dict() if hasattr(qrels, "to_dict") else qrels
    if not isinstance(source, Mapping):
        return read_judgments(source)
    table = _as_table(source, "qrels")
    return {query: {name: max(float(grade), 0.0) for name, grade in found.items()} for query, found in table.items()}


def name_runs(runs: Mapping[str, Source] | Sequence[Source]) -> dict[str, Source]:
    """Return a mapping from names to runs; runs in a list are named after their files."""
    if isinstance(runs, Mapping):
        return {str(name): source for name, source in runs.items()}
    if isinstance(runs, str | PathLike) or not isinstance(runs, Sequence):
        raise InputError(f"runs={quote(runs)}; expected a list of runs, or a mapping of names to runs")
    return dict(zip(_choose_names(runs), runs, strict=True))


def open_runs(named: Mapping[str, Source]) -> dict[str, Table]:
    """Return each run as scores by query and document, given as files, nested mappings or objects with ``to_dict``."""
    each = progress.track(named.items(), "reading runs", len(named))
    return {name: _open_run(source, name) for name, source in each}


def _open_run(run: Any, name: str) -> Table:
    """Return a run, given in any of these forms, as scores by query and document."""
    source = run.to_dict() if hasattr(run, "to_dict") else run
    if isinstance(source, str | PathLike):
        return read_run(source)
    if isinstance(source, Mapping):
        return _as_table(source, f"run {name}")
    raise InputError(f"run {name} is {quote(run)}; expected a file, or scores by query and document")


def _choose_names(runs: Sequence[Source]) -> list[str]:
    """Return a name for each run: that of its file, its own ``name``, or else its place in the list."""
    names = []
    for place, run in enumerate(runs, 1):
        if isinstance(run, str | PathLike):
            names += run_names([run])
        else:
            names.append(str(getattr(run, "name", None) or f"run{place}"))
    if len(set(names)) < len(names):
        names = [str(run) if isinstance(run, str | PathLike) else name for run, name in zip(runs, names, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: given twice; expected runs that differ")
    return names


def _as_table(source: Mapping[Any, Any], what: str) -> Table:
    """Return values by query and document, all ids as texts, without the queries that have no document."""
    table = {}
    for query, found in source.items():
        if not isinstance(found, Mapping):
            raise InputError(f"{what}: {quote(found)} for {quote(query)}; expected values by query and document")
        if len(found):
            if str(query) in table:
                raise InputError(f"{what}: {quote(query)} and its text are two queries; expected ids of one kind")
            is_text = set(map(type, found)) == {str}
            named = found if is_text else {str(name): value for name, value in found.items()}
            if len(named) < len(found):
                raise InputError(
                    f"{what}: two documents of query {query} have one id as text; expected ids of one kind"
                )
            table[str(query)] = named
    if not table:
        raise InputError(f"{what}: empty; expected values by query and document")
    return table
