"""TREC files."""

from __future__ import annotations

import numpy as np

from rankwright.data import Floats, Queries, check_tokens
from rankwright.errors import InputError
from rankwright.files import StrPath, write_atomic


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
