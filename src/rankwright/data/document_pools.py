"""Documents that runs found or that were judged, joined by query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.data.ids import as_ids
from rankwright.data.judgments import read_judgments
from rankwright.data.queries import Queries
from rankwright.data.trec import LARGEST, Table, read_run, run_names


def read_trec(qrels: StrPath, runs: Sequence[StrPath]) -> Queries:
    """Read judgments and run files, and return a data set whose features are the scores of the runs.

    The queries are the judged ones that a run answers. Their documents are those that a run found. Judged documents
    that no run found are not ranked; their grades are kept as ``unretrieved``, and count in ideal rankings and in the
    number of relevant documents, as in trec_eval. A document without a judgment has grade 0. Where one of several runs
    did not find a document, its feature is the lowest score of that run and query (0 where it has none). Features are
    named by the files.

    Parameters
    ----------
    qrels : str or path
        Judgments, in any format that :func:`rankwright.read_judgments` takes.
    runs : sequence of str or path
        The run files; each becomes a feature.
    """
    if not runs:
        raise InputError("no run given; expected at least one")
    judged, found = read_judgments(qrels), [read_run(path) for path in runs]
    if not any(query in run for run in found for query in judged):
        raise InputError(f"{runs[0]}: no query of the run is judged in {qrels}")
    return join_runs(judged, dict(zip(run_names(runs), found, strict=True)))[0]


def join_runs(judged: Table, runs: Mapping[str, Table]) -> tuple[Queries, Floats]:
    """Return a data set of the judged queries that a run answers, and the scores of the runs as they are.

    The scores have a column for each run, and NaN where it did not find a document.
    """
    found = list(runs.values())
    wanted = [query for query in judged if any(query in run for run in found)]
    if not wanted:
        known = [next(iter(table), "no query") for table in (judged, *found)]
        raise InputError(f"no query of the runs is judged: the judgments have {known[0]!r}, a run {known[1]!r}")
    pool = pool_documents(wanted, found, judged)
    lowest = np.nan_to_num(np.fmin.reduceat(pool.scores, pool.indptr[:-1]))
    everything = Queries.from_arrays(
        np.where(np.isnan(pool.scores), np.repeat(lowest, pool.sizes, axis=0), pool.scores),
        np.nan_to_num(pool.grades),
        np.repeat(as_ids(wanted), pool.sizes),
        docid=pool.docid,
        features=list(runs),
    )
    return everything.keep_retrieved(pool.found), pool.scores[pool.found]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentPool:
    """The documents of some queries that a run found or a judge saw, with their scores and grades, a row each.

    Parameters
    ----------
    qid : list of str
    indptr : array of shape (n_queries + 1,)
        Query ``i`` owns the rows ``indptr[i]`` to ``indptr[i + 1]``.
    docid : array of shape (n_docs,)
        Python strings, which share their memory with the tables that were joined.
    scores : array of shape (n_docs, n_runs)
        NaN where a run did not find the document. The scores of a run are adjacent in memory.
    grades : array of shape (n_docs,)
        NaN where no judge saw the document.
    """

    qid: list[str]
    indptr: Ints
    docid: NDArray[Any]
    scores: Floats
    grades: Floats

    @property
    def found(self) -> NDArray[np.bool_]:
        """A flag per document: whether a run found it, or it was judged only."""
        found: NDArray[np.bool_] = np.logical_or.reduce(~np.isnan(self.scores), axis=1)
        return found

    def keep_found(self) -> DocumentPool:
        """Return a pool of the documents that a run found."""
        found = self.found
        indptr = np.concatenate([[0], np.cumsum(found)])[self.indptr]
        scores = np.asfortranarray(self.scores[found])
        return DocumentPool(self.qid, indptr, self.docid[found], scores, self.grades[found])

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return int(self.scores.shape[1])

    @property
    def sizes(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self.indptr)


def pool_documents(wanted: Sequence[str], runs: Sequence[Table], judged: Table) -> DocumentPool:
    """Return the pool of the documents of the wanted queries, those that runs found before those only judged.

    >>> pool = pool_documents(["q"], [{"q": {"a": 2.0}}, {"q": {"b": 7.0}}], {"q": {"b": 1.0}})
    >>> pool.docid.tolist(), pool.scores.tolist(), pool.grades.tolist()
    (['a', 'b'], [[2.0, nan], [nan, 7.0]], [nan, 1.0])
    """
    documents: list[str] = []
    blocks: list[Floats] = []
    nothing: Mapping[str, float] = {}
    for query in progress.track(wanted, "joining", len(wanted)):
        columns = [table.get(query, nothing) for table in (*runs, judged)]
        following = count()
        place = defaultdict(following.__next__, zip(columns[0], following, strict=False))  # a new name gets the next
        rows = [np.fromiter(map(place.__getitem__, values), np.int64, len(values)) for values in columns[1:]]
        rows.insert(0, np.arange(len(columns[0])))
        block = np.full((len(place), len(columns)), np.nan)
        for column, values in enumerate(columns):
            block[rows[column], column] = _collect_values(values, query)
        documents.extend(place)
        blocks.append(block)
    indptr = np.concatenate([[0], np.cumsum([len(block) for block in blocks])])
    table = np.concatenate(blocks)
    docid = np.empty(len(documents), dtype=object)
    docid[:] = documents
    return DocumentPool(list(wanted), indptr, docid, np.asfortranarray(table[:, :-1]), table[:, -1].copy())


def _collect_values(documents: Mapping[str, float], query: str) -> Floats:
    """Return the values of a query's documents as an array; raise InputError if one is not a finite number."""
    try:
        values = np.fromiter(documents.values(), np.float64, len(documents))
    except (TypeError, ValueError) as error:
        raise InputError(f"query {query}: {error}; expected a number per document") from None
    right = np.abs(values) <= LARGEST
    if not right.all():
        name, value = list(documents.items())[int(np.argmin(right))]
        raise InputError(f"query {query}: found {value} for document {name}; expected a finite number")
    return values
