"""LightGBM, XGBoost and CatBoost as careful people use them: tuned on validation queries within a given time.

Each is tuned by random search that begins with the library's defaults: rounds by early stopping on validation NDCG@10,
candidates by validation NDCG@10 in the standard definition. The best one is then fitted again on the training and the
validation queries, with as many rounds, unless ``refit=False``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

import rankwright as rw
from benchmarks.peer_libraries import Fitted, Params, Peer, Scores, make_catboost, make_lightgbm, make_xgboost
from benchmarks.timing import find_peer

MEASURE = "ndcg@10"
REFIT_MARGIN = 1.3  # a fit on training and validation queries may take that much longer than its data and rounds say


@dataclass(frozen=True, slots=True)
class TunedModel:
    """The best of a random search; ``scores(queries)`` returns the score of every document."""

    scores: Scores
    params: Params
    rounds: int
    valid: float  # NDCG@10 on the validation queries, before the last fit
    n_tried: int
    seconds: float
    is_refitted: bool


def find_missing() -> dict[str, str]:
    """Return, by library that is not installed, a line that says what to do."""
    return {
        name: f"{name} is skipped: not installed; pip install 'rankwright[bench]'"
        for name in TUNERS
        if find_peer(name) is None
    }


def tune_lightgbm(
    train: rw.Queries, valid: rw.Queries, seconds: float, n_threads: int, seed: int, refit: bool = True
) -> TunedModel:
    """Tune LightGBM's lambdarank and rank_xendcg."""
    return tune(make_lightgbm(n_threads, seed), train, valid, seconds, seed, refit)


def tune_xgboost(
    train: rw.Queries, valid: rw.Queries, seconds: float, n_threads: int, seed: int, refit: bool = True
) -> TunedModel:
    """Tune XGBoost's rank:ndcg."""
    return tune(make_xgboost(n_threads, seed), train, valid, seconds, seed, refit)


def tune_catboost(
    train: rw.Queries, valid: rw.Queries, seconds: float, n_threads: int, seed: int, refit: bool = True
) -> TunedModel:
    """Tune CatBoost's YetiRank, QuerySoftMax and StochasticRank."""
    return tune(make_catboost(n_threads, seed), train, valid, seconds, seed, refit)


TUNERS = {"lightgbm": tune_lightgbm, "xgboost": tune_xgboost, "catboost": tune_catboost}


def tune(peer: Peer, train: rw.Queries, valid: rw.Queries, seconds: float, seed: int, refit: bool = True) -> TunedModel:
    """Search at random until the time is spent, less what the last fit of the best candidate will take."""
    if find_peer(peer.module) is None:
        raise ImportError(find_missing()[peer.module])
    train, valid = train.grouped(), valid.grouped()
    start, measure = perf_counter(), rw.parse_measure(MEASURE)
    growth = REFIT_MARGIN * (train.n_docs + valid.n_docs) / train.n_docs if refit else 0.0
    best: tuple[float, Params, Fitted] | None = None
    needed, n_tried = 0.0, 0  # seconds of the last fit; candidates
    for params in _list_candidates(peer, seed):
        began = perf_counter()
        reserve = needed if best is not None else growth * seconds / (1.0 + growth)
        fitted = peer.fit(params, train, valid, partial(_seconds_left, start + seconds - reserve))
        value, n_tried = measure.mean(valid, fitted.scores(valid)), n_tried + 1
        if best is None or value > best[0]:
            share = fitted.rounds / fitted.rounds_tried
            best, needed = (value, params, fitted), growth * share * (perf_counter() - began)
        if _seconds_left(start + seconds - needed) <= 0.0:
            break
    assert best is not None
    value, params, fitted = best
    if refit:
        fitted = peer.refit(params, join_queries(train, valid), fitted.rounds)
    return TunedModel(fitted.scores, params, fitted.rounds, value, n_tried, perf_counter() - start, refit)


def join_queries(first: rw.Queries, second: rw.Queries) -> rw.Queries:
    """Return the queries of two data sets as one, numbered anew."""
    parts = first.grouped(), second.grouped()
    X, y, group = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "sizes"))
    return rw.Queries.from_arrays(X, y, group=group)


def _seconds_left(end: float) -> float:
    return end - perf_counter()


def _list_candidates(peer: Peer, seed: int) -> Iterator[Params]:
    """Yield the defaults, then random parameters without end."""
    yield peer.defaults
    rng = np.random.default_rng(seed)
    while True:
        yield peer.draw(rng)
