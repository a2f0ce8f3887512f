"""Rankers of trees against LightGBM itself: seconds, and bits; ``python -m benchmarks.trees``, which takes minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import Any

import lightgbm as lgb
import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, below, faster, publish
from benchmarks.smoothing import wild
from benchmarks.timing import THREADS, medians, take_turns
from benchmarks.web_search import web_search
from rankwright.optimisers.boosting_loop import boost
from rankwright.optimisers.rounds import RoundRecorder
from rankwright.scorers import Trees

QUERIES, ROUNDS, TURNS = 6_000, 100, 3
WARM, TIMED = 5, 15  # rounds
YAHOO, YAHOO_FEATURES = 14_700, 519  # queries of 32 documents: 470,000
BACKEND = rw.Threads(THREADS)


def measure() -> Iterable[Table]:
    """All tables."""
    yield measure_native()
    yield measure_rounds()
    yield measure_searches()
    yield measure_predictions()


def compile_all() -> None:
    """Fit everything once, on little."""
    queries = rw.make_queries(40, random_state=0)
    rankers = (rw.MART, partial(rw.LambdaMART, lambdas="lightgbm"), rw.LambdaMART, rw.DirectRankTrees, rw.BoostedTrees)
    for ranker in rankers:
        ranker(n_estimators=3, backend=BACKEND).fit(queries, valid=queries)


def lightgbm_fit(queries: rw.Queries, told: dict[str, Any], n_estimators: int) -> Any:
    """LightGBM alone, with what a ranker told it."""
    params = {**told, "num_threads": THREADS}
    data = lgb.Dataset(queries.X, queries.y, group=queries.sizes, params=params)
    return lgb.train(params, data, n_estimators)


def fit(ranker: rw.Ranker, queries: rw.Queries) -> Any:
    """A fit of ours."""
    return ranker.set_params(backend=BACKEND).fit(queries)


def measure_native() -> Table:
    """LightGBM's own objectives through our rankers, with everything around them."""
    compile_all()
    queries, rows = wild(QUERIES), []
    rankers = {
        "LambdaMART(lambdas='lightgbm')": rw.LambdaMART(lambdas="lightgbm", n_estimators=ROUNDS),
        "MART": rw.MART(n_estimators=ROUNDS),
    }
    for name, ranker in rankers.items():
        told = fit(ranker.set_params(n_estimators=1), queries).lightgbm_params_
        ranker.set_params(n_estimators=ROUNDS)
        kept: dict[str, Any] = {}
        tasks: dict[str, Callable[[], object]] = {
            "lightgbm": partial(_keep, kept, "lightgbm", partial(lightgbm_fit, queries, told, ROUNDS)),
            "ours": partial(_keep, kept, "ours", partial(fit, ranker, queries)),
        }
        found = medians(take_turns(tasks, TURNS - 1))
        same = bool((kept["lightgbm"].predict(queries.X) == kept["ours"].predict(queries)).all())
        more = found["ours"] / found["lightgbm"] - 1.0
        figure = (
            f"{found['ours']:.1f} s; LightGBM {found['lightgbm']:.1f} s; the same bits: {'yes' if same else '**no**'}"
        )
        rows.append(below(name, figure, 100 * more, 5.0, "% more", f"{100 * more:+.1f}%"))
    notes = [
        f"{queries.n_docs:,} documents x {queries.n_features}, {ROUNDS} trees of 31 leaves, binning included, "
        f"{THREADS} threads; LightGBM by `lgb.train` with `lightgbm_params_`, without validation queries. Medians of "
        "fits that take turns. Ours judges the training measure after 1, 2, 4, 8, ... trees, and builds its own scorer."
    ]
    return Table("LightGBM's own objectives, through our rankers", rows, notes)


def _keep(kept: dict[str, Any], name: str, task: Callable[[], Any]) -> None:
    kept[name] = task()


def seconds_a_round(ranker: Any, queries: rw.Queries) -> float:
    """Of a fit after its first rounds, without what is done once."""
    measure = rw.parse_measure(ranker.measure)
    stages = ranker._stages((queries, None, measure, ranker._weak(queries.n_features), BACKEND))
    boost(stages, WARM, RoundRecorder())
    start = perf_counter()
    boost(stages, TIMED, RoundRecorder())
    return (perf_counter() - start) / TIMED


def native_seconds_a_round(queries: rw.Queries, told: dict[str, Any]) -> float:
    """The same of LightGBM alone."""
    params = {**told, "num_threads": THREADS}
    booster = lgb.Booster(params, lgb.Dataset(queries.X, queries.y, group=queries.sizes, params=params))
    for _ in range(WARM):
        booster.update()
    start = perf_counter()
    for _ in range(TIMED):
        booster.update()
    return (perf_counter() - start) / TIMED


def measure_rounds() -> Table:
    """A round of each ranker against a round of LightGBM's lambdarank."""
    compile_all()
    queries = wild(QUERIES)
    level = {"objective": "lambdarank", "lambdarank_truncation_level": 30}  # LightGBM's default
    told = fit(rw.LambdaMART(lambdas="lightgbm", n_estimators=1), queries).lightgbm_params_
    rankers = {
        "exact lambdas of NDCG@10": rw.LambdaMART(),
        "exact lambdas of NDCG@30": rw.LambdaMART(measure="ndcg@30"),
        "exact lambdas of ERR@10": rw.LambdaMART(measure="err@10"),
        "exact lambdas of MAP, all ranks": rw.LambdaMART(measure="map"),
        "MART": rw.MART(),
        "DirectRankTrees": rw.DirectRankTrees(),
        "BoostedTrees, smooth NDCG@10": rw.BoostedTrees(n_warmup_trees=0),
    }
    found: dict[str, list[float]] = {name: [] for name in ("level 13", "level 30", *rankers)}
    for _ in range(TURNS):
        found["level 13"].append(native_seconds_a_round(queries, told))
        found["level 30"].append(native_seconds_a_round(queries, {**told, **level}))
        for name, ranker in rankers.items():
            found[name].append(seconds_a_round(ranker, queries))
    seconds = medians(found)
    base = seconds["level 13"]
    rows = [
        Row("LightGBM's lambdarank, truncation level 13 (NDCG@10)", f"{1e3 * base:.0f} ms"),
        Row("LightGBM's lambdarank, truncation level 30 (its default)", f"{1e3 * seconds['level 30']:.0f} ms"),
    ]
    for name in rankers:
        ratio, figure = seconds[name] / base, f"{1e3 * seconds[name]:.0f} ms"
        with_target = name in ("exact lambdas of NDCG@10", "exact lambdas of NDCG@30")
        row = (
            below(name, figure, ratio, 1.5, "x", f"{ratio:.2f}x") if with_target else Row(name, figure, f"{ratio:.2f}x")
        )
        rows.append(row)
    notes = [
        f"Milliseconds a round of 31 leaves, {queries.n_docs:,} documents x {queries.n_features}, {THREADS} threads, "
        "with the training measure after every tree (MART: now and then); the ratio is to the first row. Means of "
        f"{TIMED} rounds after {WARM}, medians of {TURNS} such means that take turns."
    ]
    return Table("A round of trees", rows, notes)


def measure_searches() -> Table:
    """DirectRankTrees against MART at the size of the paper's Yahoo data."""
    compile_all()
    rows = []
    sets = {
        f"470,000 documents x {YAHOO_FEATURES}, 10 leaves": (web_search(YAHOO, 0, YAHOO_FEATURES), 10),
        "470,400 documents x 136, 31 leaves": (wild(3_920), 31),
    }
    for name, (queries, leaves) in sets.items():
        found: dict[str, list[float]] = {"MART": [], "DirectRankTrees": []}
        for _ in range(TURNS):
            found["MART"].append(seconds_a_round(rw.MART(num_leaves=leaves), queries))
            found["DirectRankTrees"].append(seconds_a_round(rw.DirectRankTrees(num_leaves=leaves), queries))
        seconds = medians(found)
        ratio = seconds["DirectRankTrees"] / seconds["MART"]
        figure = f"{1e3 * seconds['DirectRankTrees']:.0f} ms; MART {1e3 * seconds['MART']:.0f} ms"
        rows.append(below(f"{name} ({queries.n_docs:,})", figure, ratio, 2.0, "x", f"{ratio:.2f}x"))
    history = fit(
        rw.DirectRankTrees(weight_range=None, n_estimators=20), sets["470,400 documents x 136, 31 leaves"][0]
    ).history_
    gains = np.diff([row["train"] for row in history])
    rows.append(Row("unclipped: the least change of the training measure in a round", f"{gains.min():+.1e}"))
    return Table(
        "A tree and its weight by exact line search", rows, [f"NDCG@10, {THREADS} threads; medians of {TURNS}."]
    )


def measure_predictions() -> Table:
    """Scoring documents: our kernel against LightGBM's own."""
    queries = wild(QUERIES)
    ranker = fit(rw.LambdaMART(lambdas="lightgbm", n_estimators=ROUNDS), queries)
    trees, booster = ranker.scorer_, ranker.booster_
    assert isinstance(trees, Trees)
    tasks: dict[str, Callable[[], object]] = {
        "ours": partial(trees, queries.X),
        "lightgbm": partial(booster.predict, queries.X, num_threads=THREADS),
    }
    for task in tasks.values():
        task()
    found = medians(take_turns(tasks))
    same = bool((trees(queries.X) == booster.predict(queries.X)).all())
    rows = [
        faster("LightGBM's predict", f"{found['lightgbm']:.2f} s", found["lightgbm"] / found["ours"]),
        Row("ours, which needs no LightGBM", f"{found['ours']:.2f} s; the same bits: {'yes' if same else '**no**'}"),
    ]
    return Table(f"Scores of {ROUNDS} trees", rows, [f"{queries.n_docs:,} documents, {THREADS} threads."])


if __name__ == "__main__":
    publish([measure])
