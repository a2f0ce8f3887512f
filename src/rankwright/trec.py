"""TREC files: judgments (qrels) and runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from rankwright.data import Floats, Queries, check_tokens
from rankwright.errors import InputError
from rankwright.files import StrPath, open_binary, write_atomic

_LARGEST = float(np.finfo(np.float32).max)  # features are float32

Judged = dict[str, dict[str, float]]  # by query id and document id, a grade or a score


def read_qrels(path: StrPath) -> Judged:
    """Read judgments, ``qid iteration docid grade``: by query and document, the grade; negative grades count as 0."""
    return _by_query(path, "qid iteration docid grade", 4, lambda fields: (fields[0], fields[2], fields[3]), least=0.0)


def read_run(path: StrPath) -> Judged:
    """Read a run, ``qid Q0 docid rank score tag``: by query and document, the score. Ranks are ignored."""
    return _by_query(path, "qid Q0 docid rank score tag", 6, lambda fields: (fields[0], fields[2], fields[4]))


def read_trec(qrels: StrPath, runs: Sequence[StrPath]) -> Queries:
    """Judged queries whose features are the scores of runs.

    The queries are the judged ones that a run answers. Their documents are those that a run found or a judge saw:
    judged documents that no run found belong to the ideal ranking, as in trec_eval. A document without a judgment has
    grade 0; where a run did not find a document, the feature is the lowest score of that run and query (0 where it
    has none). Features are named by the files.
    """
    if not runs:
        raise InputError("no run given; expected at least one")
    judged, found = read_qrels(qrels), [read_run(path) for path in runs]
    wanted = [query for query in judged if any(query in run for run in found)]
    if not wanted:
        raise InputError(f"{runs[0]}: no query of the run is judged in {qrels}")
    rows: list[list[float]] = []
    grades: list[float] = []
    qid: list[str] = []
    docid: list[str] = []
    for query in wanted:
        answers = [run.get(query, {}) for run in found]
        documents = dict.fromkeys((*(name for answer in answers for name in answer), *judged[query]))
        lowest = [min(answer.values(), default=0.0) for answer in answers]
        for name in documents:
            rows.append([answer.get(name, low) for answer, low in zip(answers, lowest, strict=True)])
            grades.append(judged[query].get(name, 0.0))
        docid.extend(documents)
        qid.extend([query] * len(documents))
    return Queries.from_arrays(np.array(rows), grades, qid, docid=docid, features=_run_names(runs))


def _run_names(runs: Sequence[StrPath]) -> list[str]:
    names = [Path(run).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".run") for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


def _by_query(
    path: StrPath,
    layout: str,
    width: int,
    choose: Callable[[list[str]], tuple[str, str, str]],
    least: float = -math.inf,
) -> Judged:
    table: Judged = {}
    for number, fields in _lines(path, layout, width):
        query, document, text = choose(fields)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not abs(value) <= _LARGEST:
            raise InputError(f"{path}:{number}: found {text!r}; expected a number in '{layout}'")
        documents = table.setdefault(query, {})
        if document in documents:
            raise InputError(f"{path}:{number}: document {document} of query {query} a second time")
        documents[document] = max(value, least)
    if not table:
        raise InputError(f"{path}: empty; expected lines '{layout}'")
    return table


def _lines(path: StrPath, layout: str, width: int) -> Iterator[tuple[int, list[str]]]:
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            encoding = "utf-8-sig" if number == 1 else "utf-8"
            fields = line.decode(encoding, errors="backslashreplace").split()
            if len(fields) == width:
                yield number, fields
            elif fields:
                raise InputError(f"{path}:{number}: {len(fields)} fields; expected '{layout}'")


def write_run(queries: Queries, scores: Floats, path: StrPath, *, tag: str = "rankwright") -> None:
    """Write a TREC run, ``qid Q0 docid rank score tag``, documents by descending score, ties in row order.

    Documents without an id are named by their place in the caller's order, from 1.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (queries.n_docs,):
        raise InputError(f"scores have shape {scores.shape}; there are {queries.n_docs} documents")
    if not tag or tag.split() != [tag]:
        raise InputError(f"tag {tag!r}; expected one word")
    names = queries.rows_of_caller + 1 if queries.docid is None else queries.docid
    check_tokens(queries.qid, "query")
    check_tokens(names, "document")
    with write_atomic(path) as file:
        for query, rows in zip(queries.qid, queries.ranked(scores), strict=True):
            for rank, row in enumerate(rows, 1):
                file.write(f"{query} Q0 {names[row]} {rank} {float(scores[row])!r} {tag}\n")
