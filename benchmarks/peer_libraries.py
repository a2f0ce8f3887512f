"""What tuning needs of LightGBM, XGBoost and CatBoost: spaces of parameters, and fits that stop early or in time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.timing import find_peer
from rankwright.basics.array_types import Floats

MAX_ROUNDS, PATIENCE = 2_000, 100

Params = dict[str, Any]
Scores = Callable[[rw.Queries], Floats]
Clock = Callable[[], float]  # returns the seconds that are left


class Fitted(NamedTuple):
    """A trained model: what scores documents, its number of rounds, and the number that was tried to find it."""

    scores: Scores
    rounds: int
    rounds_tried: int


class Peer(NamedTuple):
    """A library: how parameters are drawn, how a candidate is fitted with early stopping, and how with given rounds.

    ``defaults`` are tried first. ``fit`` stops when no time is left and keeps its best round.
    """

    module: str
    defaults: Params
    draw: Callable[[np.random.Generator], Params]
    fit: Callable[[Params, rw.Queries, rw.Queries, Clock], Fitted]
    refit: Callable[[Params, rw.Queries, int], Fitted]


def make_lightgbm(n_threads: int, seed: int) -> Peer:
    """LightGBM's lambdarank, and rank_xendcg at times."""
    base: Params = {
        "num_threads": n_threads,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    base |= {"metric": "ndcg", "eval_at": [10], "feature_pre_filter": False}
    defaults = {**base, "objective": "lambdarank"}
    return Peer("lightgbm", defaults, partial(_draw_lightgbm, base), _fit_lightgbm, _refit_lightgbm)


def make_xgboost(n_threads: int, seed: int) -> Peer:
    """XGBoost's rank:ndcg."""
    base: Params = {"objective": "rank:ndcg", "nthread": n_threads, "seed": seed, "tree_method": "hist", "verbosity": 0}
    base |= {"eval_metric": "ndcg@10"}
    return Peer("xgboost", base, partial(_draw_xgboost, base), _fit_xgboost, _refit_xgboost)


def make_catboost(n_threads: int, seed: int) -> Peer:
    """CatBoost's YetiRank, QuerySoftMax and StochasticRank."""
    base: Params = {
        "thread_count": n_threads,
        "random_seed": seed,
        "logging_level": "Silent",
        "allow_writing_files": False,
    }
    base |= {"eval_metric": "NDCG:top=10;type=Exp"}
    defaults = {**base, "loss_function": "YetiRank"}
    return Peer("catboost", defaults, partial(_draw_catboost, base), _fit_catboost, _refit_catboost)


def _draw_log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _choose(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _draw_lightgbm(base: Params, rng: np.random.Generator) -> Params:
    objective = _choose(rng, "lambdarank", "lambdarank", "lambdarank", "rank_xendcg")
    params = {
        **base,
        "objective": objective,
        "learning_rate": _draw_log(rng, 0.02, 0.2),
        "num_leaves": round(_draw_log(rng, 4, 128)),
        "min_data_in_leaf": round(_draw_log(rng, 5, 200)),
        "min_sum_hessian_in_leaf": _draw_log(rng, 1e-3, 10.0),
        "lambda_l2": _choose(rng, 0.0, 0.1, 1.0, 10.0, 100.0),
        "feature_fraction": rng.uniform(0.2, 1.0),
        "bagging_fraction": rng.uniform(0.5, 1.0),
        "bagging_freq": 1,
    }
    if objective == "lambdarank":
        params |= {
            "lambdarank_truncation_level": _choose(rng, 10, 20, 30, 50, 100),
            "lambdarank_norm": _choose(rng, True, False),
        }
    return params


def _fit_lightgbm(params: Params, train: rw.Queries, valid: rw.Queries, left: Clock) -> Fitted:
    lgb = find_peer("lightgbm")
    assert lgb is not None
    data = lgb.Dataset(train.X, train.y, group=train.sizes, params=params)
    check = lgb.Dataset(valid.X, valid.y, group=valid.sizes, reference=data, params=params)

    def stop_in_time(env: Any) -> None:
        if left() <= 0.0:
            raise lgb.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    stop_in_time.order = 40  # type: ignore[attr-defined]  # after the record of this round
    recorded: dict[str, dict[str, list[float]]] = {}
    callbacks = [lgb.record_evaluation(recorded), lgb.early_stopping(PATIENCE, verbose=False), stop_in_time]
    booster = lgb.train(params, data, MAX_ROUNDS, valid_sets=[check], valid_names=["valid"], callbacks=callbacks)
    values = recorded["valid"]["ndcg@10"]
    rounds = 1 + int(np.argmax(values))
    return Fitted(lambda queries: booster.predict(queries.X, num_iteration=rounds), rounds, len(values))


def _refit_lightgbm(params: Params, queries: rw.Queries, rounds: int) -> Fitted:
    lgb = find_peer("lightgbm")
    assert lgb is not None
    booster = lgb.train(params, lgb.Dataset(queries.X, queries.y, group=queries.sizes, params=params), rounds)
    return Fitted(lambda others: booster.predict(others.X), rounds, rounds)


def _draw_xgboost(base: Params, rng: np.random.Generator) -> Params:
    method = _choose(rng, "topk", "topk", "mean")
    return {
        **base,
        "eta": _draw_log(rng, 0.02, 0.3),
        "max_depth": int(rng.integers(2, 9)),
        "min_child_weight": _draw_log(rng, 0.01, 50.0),
        "lambda": _choose(rng, 0.1, 1.0, 10.0, 100.0),
        "colsample_bytree": rng.uniform(0.2, 1.0),
        "subsample": rng.uniform(0.5, 1.0),
        "lambdarank_pair_method": method,
        "lambdarank_num_pair_per_sample": _choose(rng, 10, 20, 32, 50) if method == "topk" else _choose(rng, 1, 4, 10),
    }


def _fit_xgboost(params: Params, train: rw.Queries, valid: rw.Queries, left: Clock) -> Fitted:
    xgb = find_peer("xgboost")
    assert xgb is not None

    class TimeLimit(xgb.callback.TrainingCallback):  # type: ignore[misc, name-defined]
        """Stop training when no time is left."""

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return left() <= 0.0

    recorded: dict[str, dict[str, list[float]]] = {}
    booster = xgb.train(
        params,
        _make_matrix(train),
        MAX_ROUNDS,
        evals=[(_make_matrix(valid), "valid")],
        evals_result=recorded,
        early_stopping_rounds=PATIENCE,
        callbacks=[TimeLimit()],
        verbose_eval=False,
    )
    values = recorded["valid"]["ndcg@10"]
    rounds = 1 + int(np.argmax(values))
    span = 0, rounds
    return Fitted(lambda queries: booster.predict(_make_matrix(queries), iteration_range=span), rounds, len(values))


def _refit_xgboost(params: Params, queries: rw.Queries, rounds: int) -> Fitted:
    xgb = find_peer("xgboost")
    assert xgb is not None
    booster = xgb.train(params, _make_matrix(queries), rounds, verbose_eval=False)
    return Fitted(lambda others: booster.predict(_make_matrix(others)), rounds, rounds)


def _make_matrix(queries: rw.Queries) -> Any:
    xgb = find_peer("xgboost")
    assert xgb is not None
    matrix = xgb.DMatrix(queries.X, queries.y)
    matrix.set_group(queries.grouped().sizes)
    return matrix


def _draw_catboost(base: Params, rng: np.random.Generator) -> Params:
    losses = "YetiRank", "YetiRank:mode=NDCG;top=10", "QuerySoftMax", "StochasticRank:metric=NDCG;top=10;type=Exp"
    return {
        **base,
        "loss_function": _choose(rng, *losses),
        "learning_rate": _draw_log(rng, 0.02, 0.3),
        "depth": int(rng.integers(3, 9)),
        "l2_leaf_reg": _draw_log(rng, 1.0, 100.0),
        "random_strength": _choose(rng, 0.0, 1.0, 10.0),
        "rsm": rng.uniform(0.2, 1.0),
        "bootstrap_type": "Bernoulli",
        "subsample": rng.uniform(0.5, 1.0),
    }


def _fit_catboost(params: Params, train: rw.Queries, valid: rw.Queries, left: Clock) -> Fitted:
    cat = find_peer("catboost")
    assert cat is not None

    class TimeLimit:
        """Stop training when no time is left."""

        rounds = 0

        def after_iteration(self, info: Any) -> bool:
            self.rounds = int(info.iteration)
            return left() > 0.0

    model = cat.CatBoost({**params, "iterations": MAX_ROUNDS, "early_stopping_rounds": PATIENCE})
    limit = TimeLimit()
    model.fit(_make_pool(train), eval_set=_make_pool(valid), use_best_model=True, callbacks=[limit])
    return Fitted(lambda queries: model.predict(queries.X), int(model.tree_count_), limit.rounds)


def _refit_catboost(params: Params, queries: rw.Queries, rounds: int) -> Fitted:
    cat = find_peer("catboost")
    assert cat is not None
    model = cat.CatBoost({**params, "iterations": rounds})
    model.fit(_make_pool(queries))
    return Fitted(lambda others: model.predict(others.X), rounds, rounds)


def _make_pool(queries: rw.Queries) -> Any:
    cat = find_peer("catboost")
    assert cat is not None
    return cat.Pool(queries.X, queries.y, group_id=np.repeat(np.arange(len(queries)), queries.sizes))
