"""Several data sets as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwright.data.click_counts import join_clicks
from rankwright.data.ids import join_ids
from rankwright.data.queries import Queries
from rankwright.data.unretrieved import Unretrieved


def join_queries(parts: Sequence[Queries]) -> Queries:
    """Return the queries of several data sets, in order, as one data set whose query ids count from 0.

    The sets have the same features and categories. Rows are grouped. Ids of documents are kept if all sets have them.

    >>> one = Queries.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> join_queries([one, one]).row_qid.tolist()
    [0, 0, 1, 1]
    """
    grouped = [part.grouped() for part in parts]
    if len(grouped) == 1:
        return grouped[0]
    first = grouped[0]
    ends = np.cumsum([0, *(part.n_docs for part in grouped)])
    indptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(grouped, ends))])
    return Queries(
        np.concatenate([part.X for part in grouped]),
        np.concatenate([part.y for part in grouped]),
        indptr,
        np.arange(len(indptr) - 1),
        docid=_join_docids(grouped),
        weight=_join_weights(grouped),
        features=first.features,
        unretrieved=_join_unretrieved(grouped),
        doc_weight=_join_doc_weights(grouped),
        categories=first.categories,
        position=_join_positions(grouped),
        clicks=join_clicks([part.clicks for part in grouped]),
    )


def _join_docids(parts: Sequence[Queries]) -> Any:
    """Return the document ids of all parts; None if one has none."""
    ids = [part.docid for part in parts]
    known = [each for each in ids if each is not None]
    return join_ids(known) if len(known) == len(ids) else None


def _join_weights(parts: Sequence[Queries]) -> Any:
    """Return the query weights of all parts; None if no part has any."""
    if all(part.weight is None for part in parts):
        return None
    return np.concatenate([part.query_weight for part in parts])


def _join_doc_weights(parts: Sequence[Queries]) -> Any:
    """Return the document weights of all parts, 1 in those without; None if no part has any."""
    weights = [part.doc_weight for part in parts]
    if all(weight is None for weight in weights):
        return None
    return np.concatenate([np.ones(part.n_docs) if w is None else w for part, w in zip(parts, weights)])


def _join_positions(parts: Sequence[Queries]) -> Any:
    """Return the positions of all parts; None if one has none."""
    known = [part.position for part in parts if part.position is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _join_unretrieved(parts: Sequence[Queries]) -> Unretrieved | None:
    """Return the judged documents of all parts that cannot be ranked; None if there are none."""
    if all(part.unretrieved is None for part in parts):
        return None
    found = [part.unretrieved or Unretrieved(np.empty(0), np.zeros(len(part) + 1, np.int64)) for part in parts]
    ends = np.cumsum([0, *(len(each.y) for each in found)])
    indptr = np.concatenate([[0], *(each.indptr[1:] + end for each, end in zip(found, ends))])
    return Unretrieved(np.concatenate([each.y for each in found]), indptr)
