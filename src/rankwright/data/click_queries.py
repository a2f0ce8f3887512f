"""Data sets of click logs: features joined with grades and counts of clicks by query and document."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import ClickLogWarning, InputError, make_printable, suggest, warn
from rankwright.data.click_cells import sum_by
from rankwright.data.click_counts import ClickCounts
from rankwright.data.click_grades import CUTS, KINDS, choose_cells, grade_clicks
from rankwright.data.click_log import ClickLog
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.examination import Examination
from rankwright.data.ids import ids_as_text
from rankwright.data.queries import Queries
from rankwright.data.table_columns import logger


def make_click_queries(
    log: ClickLog,
    features: Any = None,
    *,
    grades: str | None = "coec",
    cuts: Sequence[float] | int | None = CUTS,
    prior: float | None = None,
    examination: Examination | None = None,
    max_position: int | None = None,
    min_shown: int = 1,
    qid: str | None = None,
    docid: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> Queries:
    """Join a click log with features by query and document, and return the documents with grades made of the clicks.

    Rows are the documents that were shown and have features, in the order of the features. What is not joined is
    named in a warning with its count: documents that were shown without features are left out, and so are documents
    that were never shown, of which clicks say nothing.

    Parameters
    ----------
    log : ClickLog
        The log.
    features : Queries, data frame, path or sequence of paths, optional
        Features with query ids and document ids; its own grades are not used. Without them the documents have no
        features: they can be evaluated on, with scores by row.
    grades : "coec", "ctr" or None
        Clicks over expected clicks, or click rates; None makes no grades.
    cuts : sequence of float, int or None
        The values at which the next grade begins: by default half as many clicks as expected, as many, and twice as
        many, for grades 0 to 3. A whole number is a number of grades of about equally many documents. None keeps the
        values as fractional grades.
    prior : float, optional
        How many expected clicks the average counts for; by default it is estimated from the log.
    examination : Examination, optional
        The probability that positions are looked at. Expected clicks follow it, and the counts go into
        ``queries.clicks`` for measures from clicks.
    max_position : int, optional
        Leave out impressions at larger positions.
    min_shown : int
        Leave out documents with fewer impressions.
    qid, docid : str, optional
        The columns of the query ids and document ids in a table of features.
    ignore, categorical : sequence of str
        Columns of a table of features to leave out, and those whose values are categories: names or patterns.

    Returns
    -------
    Queries
        The documents. Except with ``grades="coec"``, ``position`` is where each was shown most often; clicks over
        expected clicks are corrected for positions already, and LightGBM's lambdas, which correct by ``position``,
        would do it twice.

    Examples
    --------
    >>> from rankwright import make_queries, simulate_clicks
    >>> queries = make_queries(50, random_state=0)
    >>> log = simulate_clicks(queries, queries.X[:, 0], random_state=0)
    >>> train = log.to_queries(queries, examination=log.truth.examination)
    >>> sorted(set(train.y.tolist()))
    [0.0, 1.0, 2.0, 3.0]
    >>> train.clicks
    ClickCounts(497 documents, 993778 impressions, 66633 clicks)
    """
    if grades is not None and grades not in KINDS:
        raise InputError(f"grades={grades!r}; {suggest(str(grades), KINDS)}, or None")
    Examination.check(examination)
    cells = choose_cells(log, max_position)
    if examination is not None:
        examination.look_up(log.position[cells])
    shown = sum_by(log.cell_pair[cells], log.n_shown[cells], log.n_pairs)
    usable = shown >= max(min_shown, 1)
    if not usable.any():
        raise InputError(f"no document has {min_shown} impressions; the most is {shown.max():.0f}. Lower min_shown")
    if not usable.all():
        logger.info(
            "%d of %d documents with fewer than %d impressions are left out", *_count(~usable), max(min_shown, 1)
        )
    y = np.zeros(log.n_pairs)
    if grades is not None:
        found = grade_clicks(log, grades, prior=prior, examination=examination, max_position=max_position)
        y[shown > 0] = found.cut(cuts)
    position = None if grades == "coec" else _find_positions(log, cells)
    if features is None:
        own = None if grades is None else y
        return _make_bare_queries(log, np.flatnonzero(usable), own, position, cells, examination)
    roles = ColumnRoles(qid=qid, docid=docid, ignore=ignore, categorical=categorical)
    source = _read_features(features, roles)
    rows, pairs = _join_pairs(log, source, usable, shown)
    joined = Queries.from_arrays(
        source.X[rows],
        None if grades is None else y[pairs],
        source.row_qid[rows],
        docid=np.asarray(source.docid)[rows],
        doc_weight=None if source.doc_weight is None else source.doc_weight[rows],
        features=source.features,
        categories=source.categories,
        position=None if position is None else position[pairs],
    )
    if source.weight is not None:
        places = {name: i for i, name in enumerate(source.qid.tolist())}
        joined = joined.replace(weight=source.weight[[places[name] for name in joined.qid.tolist()]])
    if examination is None:
        return joined
    of_query = log.pair_query[pairs[_find_first_rows(joined)]]
    return joined.replace(clicks=_count_cells(log, pairs, of_query, cells, examination))


def _count(flags: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many of these flags are set, and their number."""
    return int(flags.sum()), len(flags)


def _find_first_rows(queries: Queries) -> Ints:
    """Return a row of each query, in the caller's order of rows."""
    first: Ints = np.empty(len(queries), np.int64)
    number = queries.restore(np.repeat(np.arange(len(queries)), queries.sizes))
    first[number[::-1]] = np.arange(queries.n_docs)[::-1]
    return first


def _make_bare_queries(
    log: ClickLog, pairs: Ints, y: Floats | None, position: Ints | None, cells: Ints, examination: Examination | None
) -> Queries:
    """Return documents without features, those of a query adjacent."""
    query = log.pair_query[pairs]
    used, sizes = np.unique(query, return_counts=True)
    return Queries(
        np.empty((len(pairs), 0), np.float32),
        None if y is None else y[pairs],
        np.concatenate([[0], np.cumsum(sizes)]),
        log.qid[used],
        docid=log.docid[pairs],
        position=None if position is None else position[pairs],
        clicks=None if examination is None else _count_cells(log, pairs, used, cells, examination),
    )


def _count_cells(log: ClickLog, pairs: Ints, queries: Ints, cells: Ints, examination: Examination) -> ClickCounts:
    """Return the counts of these pairs, in this order, by position, and the lists of these queries."""
    place = np.full(log.n_pairs, -1, np.int64)
    place[pairs] = np.arange(len(pairs))
    row = place[log.cell_pair[cells]]
    chosen, row = cells[row >= 0], row[row >= 0]
    width = log.n_positions + 1
    keys, at = np.unique(row * width + log.position[chosen], return_inverse=True)
    probability = examination.probability
    known = np.flatnonzero(np.isnan(probability))
    probability = probability[: known[0]] if len(known) else probability
    return ClickCounts(
        np.searchsorted(keys // width, np.arange(len(pairs) + 1)),
        keys % width,
        sum_by(at, log.n_shown[chosen], len(keys)),
        sum_by(at, log.n_clicked[chosen], len(keys)),
        log.n_lists[queries].astype(np.float64),
        probability / max(1.0, float(probability.max())),
    )


def _find_positions(log: ClickLog, cells: Ints) -> Ints:
    """Return the position at which each pair was shown most often, the first of several; 1 for one that was not."""
    order = np.lexsort((log.position[cells], -log.n_shown[cells], log.cell_pair[cells]))
    pair, first = np.unique(log.cell_pair[cells][order], return_index=True)
    positions = np.ones(log.n_pairs, np.int64)
    positions[pair] = log.position[cells][order[first]]
    return positions


def join_features(log: ClickLog, features: Any, roles: ColumnRoles) -> tuple[Queries, Ints, Ints]:
    """Return features as a data set, its rows that were shown, and the pair of each; name what is not joined."""
    source = _read_features(features, roles)
    shown = sum_by(log.cell_pair, log.n_shown, log.n_pairs)
    return source, *_join_pairs(log, source, shown > 0, shown)


def _read_features(features: Any, roles: ColumnRoles) -> Queries:
    """Return features as a data set; raise InputError if it has no document ids or is on other machines."""
    if isinstance(features, Queries):
        if given := roles.list_given():
            raise InputError(
                f"{given[0]}= names columns of a table; the features are a Queries, whose columns are chosen"
            )
        found = features
    elif isinstance(features, str | PathLike | list | tuple):
        from rankwright.data.reading import open_source  # it imports readers of all formats

        found = open_source([features] if isinstance(features, str | PathLike) else features, roles).read()
    else:
        from rankwright.data.frames import read_frame

        found = read_frame(features, roles)
    if found.backend is not None:
        raise InputError("the features are on a cluster; expected features in the memory of this machine")
    if found.docid is None:
        raise InputError("the features have no document ids to join clicks with; name their column with docid=")
    return found


def _join_pairs(log: ClickLog, source: Queries, usable: NDArray[np.bool_], shown: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the rows of the features that were shown, in order, and the pair of each; name what is not joined."""
    queries = {name: i for i, name in enumerate(ids_as_text(log.qid).tolist())}
    names, doc = np.unique(ids_as_text(log.docid), return_inverse=True)
    docs = {name: i for i, name in enumerate(names.tolist())}
    of_query = np.array([queries.get(name, -1) for name in ids_as_text(source.qid).tolist()])
    query = source.restore(np.repeat(of_query, source.sizes))
    document = np.array([docs.get(name, -1) for name in ids_as_text(np.asarray(source.docid)).tolist()])
    wanted = np.where((query >= 0) & (document >= 0), query * len(names) + document, -1)
    keys = log.pair_query * len(names) + doc
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    is_shown = (keys[place] == wanted) & (wanted >= 0) & usable[place]
    rows, pairs = np.flatnonzero(is_shown), place[is_shown]
    if not len(rows):
        raise InputError(
            "no document of the log has features: the log has "
            f"{_name_pair(log.qid[0], log.docid[0])}, the features have "
            f"{_name_pair(source.row_qid[0], np.asarray(source.docid)[0])}; expected the same ids in both"
        )
    times = np.bincount(pairs, minlength=log.n_pairs)
    if times.max() > 1:
        twice = int(times.argmax())
        raise InputError(
            f"the features have {times[twice]} rows of {_name_pair(log.qid[log.pair_query[twice]], log.docid[twice])}; "
            "expected one of each document: leave others out, such as by frame.drop_duplicates"
        )
    lost = usable & (times == 0)
    if lost.any():
        example = int(np.argmax(lost))
        n_lost, n_usable = int(lost.sum()), int(usable.sum())
        warn(
            make_printable(
                f"{n_lost:,} of {n_usable:,} documents that were shown have no features, with {shown[lost].sum():,.0f} "
                f"of {shown[usable].sum():,.0f} impressions, such as "
                f"{_name_pair(log.qid[log.pair_query[example]], log.docid[example])}; they are left out. Add features"
            ),
            ClickLogWarning,
        )
    if len(rows) < source.n_docs:
        left = f"{source.n_docs - len(rows):,} of {source.n_docs:,}"
        logger.info("%s documents with features were not shown often enough to have a grade; they are left out", left)
    return rows, pairs


def _name_pair(query: Any, document: Any) -> str:
    """Return how a message names a document of a query."""
    return f"query {str(query)!r}, document {str(document)!r}"
