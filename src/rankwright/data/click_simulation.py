"""Simulated clicks on judged documents: a log whose true examination and relevance are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.randomness import make_generator
from rankwright.data.click_cells import join_cells
from rankwright.data.click_log import ClickLog, ClickTruth, make_click_log
from rankwright.data.click_models import MODELS, ClickModel, count_clicks
from rankwright.data.examination import Examination
from rankwright.data.queries import Queries
from rankwright.data.shown_lists import SWAPS, name_groups, rank_documents, split_chunks, swap_documents


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
    clicks = ClickModel(model, examined, relevant, abandon)

    weights = grouped.query_weight
    per_query = rng.multinomial(n_sessions, weights / weights.sum())
    shown = rank_documents(grouped, columns, per_query, n_positions, rng)
    parts, n_groups = [], 1
    for lists in split_chunks(swap_documents(shown, swaps, swap_share, rng)):
        parts.append(count_clicks(lists, clicks, rng))
        n_groups = max(n_groups, int(lists.group.max()) + 1)
    docid = grouped.docid if grouped.docid is not None else grouped.group(np.arange(1, queries.n_docs + 1))
    log = make_click_log(
        join_cells(parts),
        grouped.qid,
        np.asarray(docid),
        per_query,
        rankers=names,
        groups=[] if swaps is None else name_groups(swaps, n_positions)[: n_groups - 1],
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


def _find_truth(log: ClickLog, grouped: Queries, docid: NDArray[Any], model: ClickModel) -> ClickTruth:
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
