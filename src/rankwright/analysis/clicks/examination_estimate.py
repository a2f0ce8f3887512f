"""Estimates of the examination of positions from a click log: by swaps, by harvesting, or together with relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rankwright.analysis.clicks.click_regression import estimate_with_relevance, spread_features
from rankwright.analysis.clicks.position_strata import (
    PositionEstimate,
    PositionStrata,
    estimate_positions,
    find_connected,
    keep_comparable,
)
from rankwright.basics.array_types import Ints
from rankwright.basics.errors import ClickLogWarning, InputError, suggest, warn
from rankwright.data.click_cells import sum_by
from rankwright.data.click_log import ClickLog
from rankwright.data.click_queries import join_features
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.examination import Examination
from rankwright.data.queries import Queries

METHODS = ("auto", "swaps", "harvesting", "em")
_MOST_UNEQUAL = 1.2  # times as many impressions at one position of a shuffled group as at another


def estimate_examination(
    log: ClickLog,
    method: Literal["auto", "swaps", "harvesting", "em"] = "auto",
    *,
    features: Any = None,
    qid: str | None = None,
    docid: str | None = None,
    ignore: Sequence[str] = (),
    max_position: int | None = None,
    confidence: float = 0.95,
) -> Examination:
    """Estimate how probable it is that each position is looked at, relative to position 1.

    Clicks follow the position-based model: a click needs that the position is looked at, and then that the document is
    attractive for the query. What the log allows decides how the two are told apart.

    Parameters
    ----------
    log : ClickLog
        The log.
    method : "auto", "swaps", "harvesting" or "em"
        ``"swaps"`` compares positions whose documents were put in random order (``shuffled=`` of
        :func:`rankwright.read_clicks`). ``"harvesting"`` compares the clicks of each document at the positions where
        it was shown for the same query, by several rankers or at several times. ``"em"`` estimates relevance as well,
        from ``features`` or as a number per document. ``"auto"`` takes the first of them that the log allows.
    features : Queries, data frame or path, optional
        For ``"em"``: features that relevance is a function of, joined by query and document.
    qid, docid : str, optional
        The columns of the query ids and document ids in a table of features.
    ignore : sequence of str
        Columns of a table of features to leave out: names or patterns.
    max_position : int, optional
        Leave out impressions at larger positions.
    confidence : float
        The confidence level of the intervals. They hold for clicks of a query that depend on each other.

    Returns
    -------
    Examination
        The estimate with intervals; ``reason`` says which method was used and what it rests on. A position that the
        log does not compare with position 1 is NaN.

    Examples
    --------
    >>> from rankwright import make_queries, simulate_clicks
    >>> queries = make_queries(200, random_state=0)
    >>> log = simulate_clicks(queries, queries.X[:, 0], n_sessions=100_000, swaps="first", random_state=1)
    >>> found = estimate_examination(log)
    >>> found.method, bool(found.low[1] < 0.5 < found.high[1])
    ('swaps', True)
    """
    if method not in METHODS:
        raise InputError(f"method={method!r}; {suggest(str(method), METHODS)}")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence={confidence!r}; expected a number between 0 and 1, such as 0.95")
    if max_position is not None and max_position < 1:
        raise InputError(f"max_position={max_position!r}; expected at least 1")
    n = min(log.n_positions, max_position or log.n_positions)
    chosen = _choose_method(log, n, has_features=features is not None) if method == "auto" else method
    reason = f"chosen because {_REASONS[chosen]}" if method == "auto" else f"{chosen}, as asked for"
    if chosen == "swaps":
        strata = _list_swaps(log, n)
        if not len(strata.stratum):
            raise InputError(
                "the log names no positions in random order; name their column with shuffled=, or use another method"
            )
        _check_swaps(log, strata, n)
        estimate = estimate_positions(strata, n, confidence)
    elif chosen == "harvesting":
        strata = _list_documents(log, n)
        if not len(keep_comparable(strata).stratum):
            raise InputError(f"no document that was clicked was shown at two positions for a query. {_WAYS_OUT}")
        estimate = estimate_positions(strata, n, confidence)
        names = f"the rankers {', '.join(log.rankers[:5])}" if len(log.rankers) > 1 else "reasons that the log lacks"
        reason += f"; positions differ for {names}, and must not depend on what the user wanted"
    else:
        strata = _list_documents(log, n)
        roles = ColumnRoles(qid=qid, docid=docid, ignore=ignore)
        joined = None if features is None else join_features(log, features, roles)
        estimate, used, note = _estimate_by_regression(log, strata, joined, n, confidence)
        strata, reason = used, reason + note
    found = _make_examination(estimate, strata, chosen, reason, n, confidence)
    unknown = np.flatnonzero(np.isnan(found.probability)) + 1
    if len(unknown) == n:
        raise InputError(
            f"too few clicks to compare any position with position 1 by {chosen}: "
            f"{strata.n_clicked.sum():,.0f} clicks. Collect more, or try another method. {_WAYS_OUT}"
        )
    if len(unknown):
        where = ", ".join(map(str, unknown[:10])) + (", ..." if len(unknown) > 10 else "")
        warn(
            f"the examination of {len(unknown)} of {n} positions is not known: {where}. The log has too few clicks "
            "there, or does not compare them with position 1; leave them out with max_position=",
            ClickLogWarning,
        )
    return found


_REASONS = {
    "swaps": "the log has positions whose documents were in random order, so that they differ by position alone",
    "harvesting": "documents were shown at several positions for the same query",
    "em": "nothing moves documents between positions, so that relevance is estimated as well",
}
_WAYS_OUT = (
    "Put some positions in random order for a part of the traffic (shuffled=), log lists of several rankers (ranker=), "
    "pass features=, or give the examination yourself: rw.Examination.from_power(1.0, n_positions)"
)


def _choose_method(log: ClickLog, n: int, *, has_features: bool) -> str:
    """Return the first method that the log allows; raise InputError if it allows none."""
    for method, strata in (("swaps", _list_swaps(log, n)), ("harvesting", _list_documents(log, n))):
        if len(strata.stratum):
            comparable = keep_comparable(strata)
            if len(comparable.stratum) and find_connected(comparable, n).sum() > 1:
                return method
    if has_features:
        return "em"
    if len(keep_comparable(_list_documents(log, n)).stratum):
        shown, clicked = (int(each[log.position == 1].sum()) for each in (log.n_shown, log.n_clicked))
        raise InputError(
            f"too few documents with clicks were shown at position 1 and elsewhere: position 1 has {shown:,} "
            f"impressions and {clicked:,} clicks. {_WAYS_OUT}"
        )
    raise InputError(f"each document was shown at one position only, which says nothing of positions. {_WAYS_OUT}")


def _list_swaps(log: ClickLog, n: int) -> PositionStrata:
    """Return the cells of shuffled groups, by group."""
    if log.group is None:
        return _take(log, np.zeros(0, np.int64), np.zeros(0, np.int64))
    rows = np.flatnonzero((log.group >= 0) & (log.position <= n))
    return _take(log, rows, log.group[rows])


def _list_documents(log: ClickLog, n: int) -> PositionStrata:
    """Return all cells, by document of a query."""
    rows = np.flatnonzero(log.position <= n)
    return _take(log, rows, log.cell_pair[rows])


def _take(log: ClickLog, rows: Ints, stratum: Ints) -> PositionStrata:
    """Return these cells of a log in these strata."""
    query = log.pair_query[log.cell_pair[rows]]
    shown, clicked = log.n_shown[rows].astype(np.float64), log.n_clicked[rows].astype(np.float64)
    return PositionStrata(stratum, log.position[rows], shown, clicked, query)


def _check_swaps(log: ClickLog, strata: PositionStrata, n: int) -> None:
    """Raise InputError if a shuffled group was not shown about equally often at each of its positions."""
    shown = np.bincount(strata.stratum * n + strata.position - 1, strata.n_shown, len(log.groups) * n)
    for name, counts in zip(log.groups, shown.reshape(len(log.groups), n), strict=True):
        positions = np.flatnonzero(counts)
        if len(positions) < 2:
            continue
        most, least = positions[counts[positions].argmax()], positions[counts[positions].argmin()]
        if counts[most] > _MOST_UNEQUAL * counts[least] + 5.0 * np.sqrt(counts[least]):
            raise InputError(
                f"the shuffled group {name!r} has {counts[most]:,.0f} impressions at position {most + 1} and "
                f"{counts[least]:,.0f} at position {least + 1}; expected the same number at each: every list has all "
                "positions of the group. Give lists of other lengths other names"
            )


def _estimate_by_regression(
    log: ClickLog, strata: PositionStrata, joined: tuple[Queries, Ints, Ints] | None, n: int, confidence: float
) -> tuple[PositionEstimate, PositionStrata, str]:
    """Return the estimate with relevance, the cells it is made of, and what it rests on."""
    if joined is None:
        comparable = keep_comparable(strata)
        if not len(comparable.stratum):
            raise InputError(f"each document was shown at one position only, and there are no features=. {_WAYS_OUT}")
        pairs, stratum = np.unique(comparable.stratum, return_inverse=True)
        used = comparable._replace(stratum=stratum)
        note = "; relevance is a number for each document, which is biased where documents have few impressions"
        return estimate_with_relevance(used, n, None, confidence), used, note
    source, rows, pairs = joined
    place = np.full(log.n_pairs, -1, np.int64)
    place[pairs] = np.arange(len(pairs))
    known = place[strata.stratum] >= 0
    used = strata.take(known)
    used = used._replace(stratum=place[used.stratum])
    note = "; relevance is an additive function of the features, and what it misses is taken for examination"
    return estimate_with_relevance(used, n, spread_features(source.X[rows]), confidence), used, note


def _make_examination(
    estimate: PositionEstimate, strata: PositionStrata, method: str, reason: str, n: int, confidence: float
) -> Examination:
    """Return an estimate as an examination, with the impressions and clicks that it is made of."""
    return Examination(
        *estimate,
        method=method,
        reason=reason,
        n_shown=sum_by(strata.position - 1, strata.n_shown, n),
        n_clicked=sum_by(strata.position - 1, strata.n_clicked, n),
        confidence=confidence,
    )
