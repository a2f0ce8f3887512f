"""Simulated clicks on judged documents: a log whose true examination and relevance are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.randomness import make_generator
from rankwright.data.click_cells import ClickCells, join_cells
from rankwright.data.click_log import ClickLog, ClickTruth, make_click_log
from rankwright.data.examination import Examination
from rankwright.data.queries import Queries

MODELS = ("position", "cascade", "trust")
SWAPS = ("first", "adjacent", "all")
_CHUNK = 1 << 21  # shown documents that are drawn at a time
_TRUSTED = 0.65  # the probability that an irrelevant document at position 1 is clicked by trust, once looked at


class _ShownLists(NamedTuple):
    """A table of different result lists, a row of each array per list, -1 after its end."""

    query: Ints  # (n_lists,)
    ranker: Ints  # (n_lists,)
    rows: Ints  # (n_lists, n_positions): the row of the document at each position
    group: Ints  # (n_lists, n_positions): the number of the shuffled group; 0 where the position is fixed
    n_sessions: Ints  # (n_lists,): how many sessions see this list


def simulate_clicks(
    queries: Queries,
    scores: Any,
    *,
    model: str = "position",
    n_sessions: int = 100_000,
    n_positions: int = 10,
    eta: float = 1.0,
    examination: Examination | ArrayLike | None = None,
    relevance: ArrayLike | None = None,
    noise: float = 0.1,
    swaps: str | None = None,
    swap_share: float = 1.0,
    abandon: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> ClickLog:
    """Simulate sessions in which users click on ranked documents, and return their log.

    In each session a query is drawn, with the probability of its weight, a ranker shows its best documents, and the
    user clicks by the click model. The truth is in ``log.truth``. Impressions and clicks are drawn as counts where
    sessions see the same list, which is the same distribution as drawing session by session.

    Parameters
    ----------
    queries : Queries
        Judged documents.
    scores : array of shape (n_docs,), fitted ranker or model, or dict of these by name
        The rankers whose lists are shown. Of several, each session gets one at random, and the log has their names.
    model : "position", "cascade" or "trust"
        How users click. ``"position"``: on a document that is looked at, with the probability of its relevance;
        positions are looked at with the probability of ``examination``. ``"cascade"``: from the top down, until the
        first click, whatever ``eta`` is; ``abandon`` below 1 lets users go on after a click. ``"trust"``: as
        ``"position"``, but irrelevant documents at high positions are clicked because users trust the ranker, and
        relevant ones are sometimes missed, more often lower down.
    n_sessions : int
        The number of result lists that are shown.
    n_positions : int
        The number of documents in a list; lists of queries with fewer documents are shorter.
    eta : float
        Examination falls as ``1 / position ** eta``.
    examination : Examination or array-like, optional
        Instead of ``eta``: the probability that position 1, 2, ... is looked at.
    relevance : array-like of shape (n_docs,), optional
        The probability of a click on a document that is looked at; by default
        ``noise + (1 - noise) (2 ** y - 1) / (2 ** max_grade - 1)``.
    noise : float
        The probability of a click on an irrelevant document that is looked at.
    swaps : "first", "adjacent" or "all", optional
        Which positions are put in random order before the list is shown, in ``swap_share`` of the sessions: the first
        and another one, drawn at random (``"first"``); pairs of neighbours, each by a coin (``"adjacent"``, FairPairs);
        or all. The log has the names of the positions that were in random order.
    swap_share : float
        The share of sessions with such lists.
    abandon : float
        The probability that a user of the cascade model stops after a click.
    random_state : int, Generator or None
        The same seed gives the same log.

    Returns
    -------
    ClickLog
        The log; ``truth`` has the true examination and the relevance of each document.

    Examples
    --------
    >>> from rankwright import make_queries, simulate_clicks
    >>> queries = make_queries(50, random_state=0)
    >>> log = simulate_clicks(queries, queries.X[:, 0], n_sessions=10_000, random_state=0)
    >>> log
    ClickLog(50 queries, 497 documents, 99,427 impressions, 6,690 clicks)
    >>> log.truth.examination.probability[:3].round(3).tolist()
    [1.0, 0.5, 0.333]
    """
    _check_choice("model", model, MODELS)
    if swaps is not None:
        _check_choice("swaps", swaps, SWAPS)
    for name, share in (("noise", noise), ("swap_share", swap_share), ("abandon", abandon)):
        if not 0.0 <= share <= 1.0:
            raise InputError(f"{name}={share!r}; expected a probability from 0 to 1")
    if n_sessions < 1 or n_positions < 1:
        raise InputError(f"n_sessions={n_sessions!r}, n_positions={n_positions!r}; expected at least 1 of each")
    rng = make_generator(random_state)
    grouped = queries.grouped()
    names, columns = _list_scores(queries, scores)
    examined = _find_examination(eta, examination, n_positions)
    relevant = _find_relevance(queries, relevance, noise)
    clicks = _ClickModel(model, examined, relevant, abandon)

    weights = grouped.query_weight
    per_query = rng.multinomial(n_sessions, weights / weights.sum())
    shown = _rank_documents(grouped, columns, per_query, n_positions, rng)
    parts, n_groups = [], 1
    for lists in _split_chunks(_swap_documents(shown, swaps, swap_share, rng)):
        parts.append(_count_clicks(lists, clicks, rng))
        n_groups = max(n_groups, int(lists.group.max()) + 1)
    docid = grouped.docid if grouped.docid is not None else grouped.group(np.arange(1, queries.n_docs + 1))
    log = make_click_log(
        join_cells(parts),
        grouped.qid,
        np.asarray(docid),
        per_query,
        rankers=names,
        groups=[] if swaps is None else _name_groups(swaps, n_positions)[: n_groups - 1],
    )
    return replace(log, truth=_find_truth(log, grouped, np.asarray(docid), clicks))


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise InputError if a value is not one of the known ones."""
    if value not in known:
        raise InputError(f"{name}={value!r}; {suggest(str(value), known)}")


def _list_scores(queries: Queries, scores: Any) -> tuple[tuple[str, ...], list[Floats]]:
    """Return the names of the rankers, none if there is one, and the scores of each by row of ``grouped()``."""
    if not isinstance(scores, Mapping):
        return (), [_compute_scores(queries, scores)]
    if not scores:
        raise InputError("scores has no ranker; expected at least one")
    return tuple(map(str, scores)), [_compute_scores(queries, each) for each in scores.values()]


def _compute_scores(queries: Queries, ranker: Any) -> Floats:
    """Return the scores of a ranker by row of ``grouped()``."""
    values = np.asarray(ranker.predict(queries) if hasattr(ranker, "predict") else ranker, dtype=np.float64)
    if values.shape != (queries.n_docs,):
        raise InputError(f"scores have shape {values.shape}; the queries have {queries.n_docs} documents")
    if not np.isfinite(values).all():
        raise InputError(f"scores[{int(np.argmin(np.isfinite(values)))}] is NaN or infinite; expected numbers")
    return queries.group(values)


def _find_examination(eta: float, examination: Examination | ArrayLike | None, n_positions: int) -> Floats:
    """Return the probability that each position is looked at."""
    if examination is None:
        return Examination.from_power(eta, n_positions).probability
    if isinstance(examination, Examination):
        return examination.look_up(np.arange(1, n_positions + 1))
    values = np.array(examination, dtype=np.float64)
    if values.ndim != 1 or len(values) < n_positions or not ((values > 0) & (values <= 1)).all():
        raise InputError(
            f"examination is {quote(values.tolist())}; expected the probability of positions 1 to {n_positions}, each "
            "above 0 and at most 1"
        )
    return values[:n_positions]


def _find_relevance(queries: Queries, relevance: ArrayLike | None, noise: float) -> Floats:
    """Return the probability of a click on each document that is looked at, by row of ``grouped()``."""
    if relevance is None:
        grades = queries.grouped().y
        if (grades < 0).any():
            raise InputError(f"the lowest grade is {grades.min():g}; expected grades from 0, or relevance=")
        top = max(queries.max_grade, 1.0)
        gain = np.expm1(grades * np.log(2.0)) / np.expm1(top * np.log(2.0))
        return np.asarray(noise + (1.0 - noise) * gain)
    values = np.asarray(relevance, dtype=np.float64)
    if values.shape != (queries.n_docs,) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"relevance has shape {values.shape}; expected {queries.n_docs} probabilities, from 0 to 1")
    return queries.group(values)


def _rank_documents(
    grouped: Queries, columns: list[Floats], per_query: Ints, n_positions: int, rng: np.random.Generator
) -> _ShownLists:
    """Return the list of each query and ranker, with the number of sessions that see it."""
    row_query = np.repeat(np.arange(len(grouped)), grouped.sizes)
    place = np.arange(grouped.n_docs) - np.repeat(grouped.indptr[:-1], grouped.sizes)
    top = place < n_positions
    lists = []
    for scores in columns:
        order = np.lexsort((np.arange(len(scores)), -scores, row_query))
        rows = np.full((len(grouped), n_positions), -1, np.int64)
        rows[row_query[top], place[top]] = order[top]
        lists.append(rows)
    n_rankers = len(columns)
    count = rng.multinomial(per_query, np.full(n_rankers, 1.0 / n_rankers)).T
    chosen = count.ravel() > 0
    rows = np.concatenate(lists)[chosen]
    query, ranker = np.tile(np.arange(len(grouped)), n_rankers), np.repeat(np.arange(n_rankers), len(grouped))
    return _ShownLists(query[chosen], ranker[chosen], rows, np.zeros_like(rows), count.ravel()[chosen])


def _swap_documents(
    shown: _ShownLists, swaps: str | None, share: float, rng: np.random.Generator
) -> Iterator[_ShownLists]:
    """Yield the lists as they are shown: some with documents in random order."""
    if swaps is None:
        yield shown
        return
    count = rng.binomial(shown.n_sessions, share)
    yield _keep_shown(shown._replace(n_sessions=shown.n_sessions - count))
    swapped = _keep_shown(shown._replace(n_sessions=count))
    if not len(swapped.n_sessions):
        return
    if swaps == "first":
        yield from _swap_first(swapped, rng)
        return
    each = np.repeat(np.arange(len(swapped.n_sessions)), swapped.n_sessions)
    step = max(1, _CHUNK // shown.rows.shape[1])
    for start in range(0, len(each), step):
        lists = _ShownLists(*(values[each[start : start + step]] for values in swapped))
        lists = lists._replace(n_sessions=np.ones(len(lists.n_sessions), np.int64))
        yield _swap_adjacent(lists, rng) if swaps == "adjacent" else _shuffle_all(lists, rng)


def _keep_shown(lists: _ShownLists) -> _ShownLists:
    """Return the lists that any session sees."""
    chosen = lists.n_sessions > 0
    return _ShownLists(*(values[chosen] for values in lists))


def _swap_first(lists: _ShownLists, rng: np.random.Generator) -> Iterator[_ShownLists]:
    """Yield lists whose first document has changed places with another one by a coin; group k is position k + 1."""
    lengths = (lists.rows >= 0).sum(axis=1)
    chances = (np.arange(1, lists.rows.shape[1]) < lengths[:, None]) / np.maximum(lengths - 1, 1)[:, None]
    alone = lengths < 2
    yield _keep_shown(lists._replace(n_sessions=np.where(alone, lists.n_sessions, 0)))
    counts = np.zeros(chances.shape, np.int64)
    if not alone.all():
        counts[~alone] = rng.multinomial(lists.n_sessions[~alone], chances[~alone])
    for k in range(1, lists.rows.shape[1]):
        group = np.zeros_like(lists.group)
        group[:, [0, k]] = k
        n_swapped = rng.binomial(counts[:, k - 1], 0.5)
        rows = lists.rows.copy()
        rows[:, [0, k]] = rows[:, [k, 0]]
        yield _keep_shown(lists._replace(group=group, n_sessions=counts[:, k - 1] - n_swapped))
        yield _keep_shown(lists._replace(rows=rows, group=group, n_sessions=n_swapped))


def _swap_adjacent(lists: _ShownLists, rng: np.random.Generator) -> _ShownLists:
    """Return lists of which neighbours have changed places by a coin: 1 and 2, 3 and 4, ... or 2 and 3, 4 and 5, ..."""
    rows, group = lists.rows.copy(), np.zeros_like(lists.group)
    offset = rng.integers(0, 2, len(rows))
    for k in range(rows.shape[1] - 1):
        has_pair = (offset == k % 2) & (rows[:, k + 1] >= 0)
        group[has_pair, k] = group[has_pair, k + 1] = k + 1
        flipped = np.flatnonzero(has_pair & (rng.random(len(rows)) < 0.5))
        rows[flipped, k], rows[flipped, k + 1] = rows[flipped, k + 1], rows[flipped, k]
    return lists._replace(rows=rows, group=group)


def _shuffle_all(lists: _ShownLists, rng: np.random.Generator) -> _ShownLists:
    """Return lists in random order; group k has those of k documents."""
    keys = np.where(lists.rows >= 0, rng.random(lists.rows.shape), 2.0)
    rows = np.take_along_axis(lists.rows, np.argsort(keys, axis=1), axis=1)
    lengths = (rows >= 0).sum(axis=1)
    return lists._replace(rows=rows, group=np.where(rows >= 0, lengths[:, None], 0))


def _name_groups(swaps: str, n_positions: int) -> list[str]:
    """Return the names of the shuffled groups, from group 1: the positions that were in random order."""
    if swaps == "first":
        return [f"1,{k + 1}" for k in range(1, n_positions)]
    if swaps == "adjacent":
        return [f"{k},{k + 1}" for k in range(1, n_positions)]
    return [f"1-{k}" for k in range(1, n_positions + 1)]


def _split_chunks(parts: Iterator[_ShownLists]) -> Iterator[_ShownLists]:
    """Yield lists in chunks of a bounded number of shown documents."""
    for lists in parts:
        step = max(1, _CHUNK // lists.rows.shape[1])
        for start in range(0, len(lists.n_sessions), step):
            yield _ShownLists(*(values[start : start + step] for values in lists))


class _ClickModel:
    """A click model: how many of the sessions that see a list click at each position.

    Parameters
    ----------
    name : str
        The model.
    examined : array of shape (n_positions,)
        The probability that each position is looked at; the cascade model does not use it.
    relevant : array of shape (n_docs,)
        The probability of a click on a document that is looked at.
    abandon : float
        The probability that a user of the cascade model stops after a click.
    """

    def __init__(self, name: str, examined: Floats, relevant: Floats, abandon: float) -> None:
        self.name, self.examined, self.relevant, self.abandon = name, examined, relevant, abandon
        self._n_looked, self._n_shown = np.zeros((2, len(examined)))

    def draw_clicks(self, lists: _ShownLists, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the number of clicks at each position of each list."""
        is_shown = lists.rows >= 0
        if self.name == "cascade":
            return self._draw_cascade(lists, is_shown, rng)
        chance = self.examined * self.relevant[lists.rows]
        if self.name == "trust":
            positions = np.arange(1, len(self.examined) + 1)
            seen = np.maximum(1.0 - 0.01 * (positions + 1), 0.0)
            trusted = np.minimum(_TRUSTED / positions, seen)
            chance = self.examined * (trusted + (seen - trusted) * self.relevant[lists.rows])
        return rng.binomial(lists.n_sessions[:, None], np.where(is_shown, chance, 0.0))

    def _draw_cascade(
        self, lists: _ShownLists, is_shown: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the clicks of users who look from the top down, and how many still look at each position."""
        clicks = np.zeros(lists.rows.shape, np.int64)
        active = lists.n_sessions.copy()
        for k in range(lists.rows.shape[1]):
            shown = is_shown[:, k]
            self._n_looked[k] += active[shown].sum()
            self._n_shown[k] += lists.n_sessions[shown].sum()
            clicks[:, k] = rng.binomial(active, np.where(shown, self.relevant[lists.rows[:, k]], 0.0))
            active -= rng.binomial(clicks[:, k], self.abandon)
        return clicks

    def find_examination(self) -> Floats:
        """Return the true examination; in the cascade model the share of lists that were looked at so far down."""
        if self.name != "cascade":
            return self.examined
        return np.asarray(np.maximum(self._n_looked, 0.5) / np.maximum(self._n_shown, 1.0))


def _count_clicks(lists: _ShownLists, model: _ClickModel, rng: np.random.Generator) -> ClickCells:
    """Return the cells of lists, with clicks drawn for all sessions that see them."""
    clicks = model.draw_clicks(lists, rng)
    n_lists, n_positions = lists.rows.shape
    shown = lists.rows.ravel() >= 0
    cells = ClickCells(
        np.repeat(lists.query, n_positions)[shown],
        lists.rows.ravel()[shown],
        np.tile(np.arange(1, n_positions + 1), n_lists)[shown],
        np.repeat(lists.ranker, n_positions)[shown],
        lists.group.ravel()[shown],
        np.repeat(lists.n_sessions, n_positions)[shown],
        clicks.ravel()[shown],
    )
    return join_cells([cells])


def _find_truth(log: ClickLog, grouped: Queries, docid: NDArray[Any], model: _ClickModel) -> ClickTruth:
    """Return the true values, the relevance by pair of the log."""
    by_query = {str(name): i for i, name in enumerate(grouped.qid.tolist())}
    relevance = np.empty(log.n_pairs)
    for i, name in enumerate(log.qid.tolist()):
        query = by_query[str(name)]
        rows = slice(int(grouped.indptr[query]), int(grouped.indptr[query + 1]))
        of_doc = dict(zip(docid[rows].tolist(), model.relevant[rows].tolist(), strict=True))
        pairs = slice(int(log.indptr[i]), int(log.indptr[i + 1]))
        relevance[pairs] = [of_doc[name] for name in log.docid[pairs].tolist()]
    return ClickTruth(model.name, Examination.from_values(model.find_examination()), relevance)
