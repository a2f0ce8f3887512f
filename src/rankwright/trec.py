"""TREC files."""

from __future__ import annotations

import numpy as np

from rankwright.data import Floats, Queries
from rankwright.errors import InputError
from rankwright.files import StrPath, write_atomic


def write_run(queries: Queries, scores: Floats, path: StrPath, *, tag: str = "rankwright") -> None:
    """Write a TREC run, ``qid Q0 docid rank score tag``, documents by descending score, ties in row order.

    Documents without an id are named by their place in the caller's order, from 1.
    """
    if np.shape(scores) != (queries.n_docs,):
        raise InputError(f"{np.shape(scores)[0]} scores; there are {queries.n_docs} documents")
    if not tag or tag.split() != [tag]:
        raise InputError(f"tag {tag!r}; expected one word")
    source = np.arange(queries.n_docs) if queries.source is None else queries.source
    with write_atomic(path) as file:
        for query, rows in zip(queries.qid, queries, strict=True):
            order = rows.start + np.argsort(-scores[rows], kind="stable")
            for rank, row in enumerate(order, 1):
                doc = source[row] + 1 if queries.docid is None else queries.docid[row]
                file.write(f"{query} Q0 {doc} {rank} {float(scores[row])!r} {tag}\n")
