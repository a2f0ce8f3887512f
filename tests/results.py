"""Results for the tests of the report: small ones made by hand, and realistic ones made of simulated scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import rankwright as rw
from rankwright.analysis.results import Results, Table

NAMES = (
    "SingleFeature", "Regression", "AdaRank", "RankBoost", "RankNet", "ListNet", "ListMLE", "LambdaRank",
    "LambdaMART", "CoordinateAscent", "SVMrank", "SVMmap", "MART", "PermuRank", "BoltzRank",
)  # fmt: skip
MEASURES = (
    "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg", "map", "p@1", "p@5", "p@10", "mrr", "err@10", "recall@10", "rbp", "wta",
)  # fmt: skip
CLIMBS = NAMES.index("CoordinateAscent")  # the one that climbs from several starts


def handmade(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    folds: Sequence[int],
    measure: str | None = None,
    weight: Sequence[float] | None = None,
    tables: Mapping[str, Table] | None = None,
) -> Results:
    """Results of one seed from the values themselves: measure -> method -> a value per query, None where there is none."""
    methods = tuple(next(iter(values.values())))
    n = len(folds)
    queries = {
        "fold": np.array(folds),
        "qid": np.array([f"q{i}" for i in range(n)]),
        "n_docs": np.full(n, 3),
        "n_pairs": np.arange(n),
        "weight": np.ones(n) if weight is None else np.array(weight, dtype=float),
    }
    given = [
        (m, q) for m in range(len(methods)) for q in range(n) if next(iter(values.values()))[methods[m]][q] is not None
    ]
    table: dict[str, Any] = {
        "method": np.array([m for m, _ in given], dtype=int),
        "seed": np.zeros(len(given), dtype=int),
        "query": np.array([q for _, q in given], dtype=int),
    }
    for name, by_method in values.items():
        table[name] = np.array([by_method[methods[m]][q] for m, q in given], dtype=float)
    return Results(
        "by hand",
        measure or next(iter(values)),
        tuple(values),
        methods,
        {"queries": queries, "values": table, **(tables or {})},
    )


def simulated(
    n_methods: int = 4,
    n_queries: int = 60,
    *,
    n_folds: int = 5,
    n_seeds: int = 1,
    measures: Sequence[str] = MEASURES,
    measure: str = "ndcg@10",
    n_docs: int = 20,
    n_features: int = 45,
    random_state: int = 0,
) -> Results:
    """Results such as an experiment leaves, from scores that see the grades through noise: less of it for later methods."""
    rng = np.random.default_rng(random_state)
    queries = rw.make_queries(n_queries, n_docs=n_docs, n_features=1, random_state=rng)
    methods = NAMES[:n_methods]
    folds = np.sort(np.arange(n_queries) % n_folds) + 1
    level = np.repeat(rng.normal(0, 0.5, n_queries), np.diff(queries.indptr))
    common = rng.normal(size=queries.X.shape[0])
    noise = np.linspace(1.6, 0.9, n_methods)
    runs = [
        (m, seed, queries.y + noise[m] * np.exp(level) * (0.8 * common + 0.6 * rng.normal(size=len(common))))
        for m in range(n_methods)
        for seed in range(n_seeds)
    ]
    tables = {
        "queries": _queries(queries, folds),
        "documents": {
            "query": np.repeat(np.arange(n_queries), np.diff(queries.indptr)),
            "docid": np.asarray(queries.docid),
            "grade": queries.y,
        },
        "values": _values(queries, runs, measures),
        "trials": _trials(methods, folds, n_seeds, rng),
        "curve": _curve(queries, folds, runs),
        "history": _history(n_methods, folds, n_seeds, rng),
        "weights": _weights(n_methods, folds, n_seeds, n_features, rng),
        **({"profiles": _profiles(folds, n_seeds)} if n_methods > CLIMBS else {}),
        "pairs": _pairs(queries, folds, runs),
        "scores": _scores(queries, folds, runs),
    }
    return Results("synthetic", measure, tuple(measures), methods, tables)


def _queries(queries: rw.Queries, folds: np.ndarray) -> Table:
    grades = [queries.y[a:b] for a, b in zip(queries.indptr, queries.indptr[1:])]
    return {
        "fold": folds,
        "qid": queries.qid,
        "n_docs": np.diff(queries.indptr),
        "n_pairs": np.array([sum(int(np.sum(y < grade)) for grade in y) for y in grades]),
        "weight": np.ones(len(folds)),
    }


def _columns(rows: list[tuple[Any, ...]], *names: str) -> Table:
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}


def _values(queries: rw.Queries, runs: list[tuple[int, int, np.ndarray]], measures: Sequence[str]) -> Table:
    n = len(queries.qid)
    found = [rw.evaluate(scores, queries, list(measures)).values for _, _, scores in runs]
    return {
        "method": np.repeat([m for m, _, _ in runs], n),
        "seed": np.repeat([seed for _, seed, _ in runs], n),
        "query": np.tile(np.arange(n), len(runs)),
        **{name: np.concatenate([values[i] for values in found]) for i, name in enumerate(measures)},
    }


def _curve(queries: rw.Queries, folds: np.ndarray, runs: list[tuple[int, int, np.ndarray]]) -> Table:
    rows = []
    for m, seed, scores in runs:
        values = rw.evaluate(scores, queries, [f"ndcg@{k}(dialect=letor4)" for k in range(1, 11)]).values
        rows += [
            (m, fold, seed, k + 1, values[k, folds == fold].mean(), "ndcg@{k}(dialect=letor4)")
            for fold in np.unique(folds)
            for k in range(10)
        ]
    return _columns(rows, "method", "fold", "seed", "k", "value", "measure")


def _history(n_methods: int, folds: np.ndarray, n_seeds: int, rng: np.random.Generator) -> Table:
    """Boosting-like rounds for all methods but the first two, which learn in one go, and the one that climbs."""
    parts = []
    for m in range(n_methods):
        if m == CLIMBS:
            parts += [_climbs(m, fold, seed) for fold in np.unique(folds) for seed in range(n_seeds)]
            continue
        n_rounds = 1 if m < 2 else 100 * m
        rounds = np.arange(1, n_rounds + 1)
        for fold in np.unique(folds):
            for seed in range(n_seeds):
                rise = 0.15 * (1 - np.exp(-rounds / (20.0 + 5 * m)))
                train = 0.4 + 0.01 * m + rise + rng.normal(0, 0.002, n_rounds)
                valid = 0.38 + 0.01 * m + 0.8 * rise - 0.02 * rounds / n_rounds + rng.normal(0, 0.004, n_rounds)
                loss = np.exp(-rounds / 50.0) if m % 2 else np.full(n_rounds, np.nan)
                same = (np.full(n_rounds, v) for v in (m, fold, seed))
                parts.append((*same, rounds, loss, train, valid, np.full(n_rounds, np.nan)))
    names = ("method", "fold", "seed", "round", "loss", "train", "valid", "restart")
    return {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)}


def _climbs(method: int, fold: int, seed: int) -> tuple[np.ndarray, ...]:
    """Of the second of five starts all steps, three a round; of the others the best point and the last."""
    rng = np.random.default_rng([fold, seed])
    steps = np.concatenate([[60, 90], np.arange(91), [50, 90], [70, 90], [80, 90]])
    restart = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [2, 91, 2, 2, 2])
    kept = restart == 2
    train = 0.5 - 0.1 * np.exp(-steps / 20) + 0.01 * rng.normal(size=len(steps)) * ~kept
    valid = train - 0.02 + 0.01 * kept - 0.0002 * np.abs(steps - 70)
    same = (np.full(len(steps), v) for v in (method, fold, seed))
    return *same, (steps + 2) // 3, 1 - train, train, valid, restart


def _profiles(folds: np.ndarray, n_seeds: int) -> Table:
    """Twelve features; the training measure is highest at the weight, the others at a weight a little larger."""
    parts = []
    for fold in np.unique(folds):
        for seed in range(n_seeds):
            for j in range(12):
                effect = (-1) ** j * 2.0 ** (-j / 2)
                at = np.union1d(np.linspace(-2, 2, 150) * abs(effect), [0.0, effect])
                same = (np.full(len(at), v) for v in (CLIMBS, fold, seed, f"feature {j + 1}", effect))
                falls = [0.5 - 0.05 * (at / effect - best) ** 2 for best in (1.0, 1.1, 1.2)]
                parts.append((*same, at, *falls, np.full(len(at), "ndcg@10")))
    names = ("method", "fold", "seed", "feature", "effect", "at", "train", "valid", "test", "measure")
    return {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)}


def _weights(n_methods: int, folds: np.ndarray, n_seeds: int, n_features: int, rng: np.random.Generator) -> Table:
    rows = []
    for m in range(n_methods):
        if m % 3 == 2:
            continue  # trees have no weights
        centre = rng.normal(0, 1, n_features) * (rng.random(n_features) < 0.5) * 10.0 ** rng.integers(-1, 2)
        for fold in np.unique(folds):
            for seed in range(n_seeds):
                weight = centre * (1 + rng.normal(0, 0.2, n_features))
                rows += [(m, fold, seed, f"feature {j + 1}", w, w * 0.5) for j, w in enumerate(weight)]
    return _columns(rows, "method", "fold", "seed", "feature", "weight", "effect")


def _pairs(queries: rw.Queries, folds: np.ndarray, runs: list[tuple[int, int, np.ndarray]]) -> Table:
    counts: dict[tuple[int, ...], list[int]] = {}
    for m, seed, scores in runs:
        for query, (a, b) in enumerate(zip(queries.indptr, queries.indptr[1:])):
            y, s = queries.y[a:b], scores[a:b]
            for high, low in ((2, 0), (2, 1), (1, 0)):
                margin = s[y == high][:, None] - s[y == low]
                count = counts.setdefault((m, int(folds[query]), seed, high, low), [0, 0, 0])
                for i, found in enumerate((margin > 0, margin == 0, np.ones_like(margin, dtype=bool))):
                    count[i] += int(found.sum())
    rows = [(*key, *count) for key, count in counts.items()]
    return _columns(rows, "method", "fold", "seed", "high", "low", "right", "tied", "total")


def _scores(queries: rw.Queries, folds: np.ndarray, runs: list[tuple[int, int, np.ndarray]]) -> Table:
    n = len(queries.y)
    return {
        "method": np.repeat([m for m, _, _ in runs], n),
        "fold": np.tile(np.repeat(folds, np.diff(queries.indptr)), len(runs)),
        "seed": np.repeat([seed for _, seed, _ in runs], n),
        "document": np.tile(np.arange(n), len(runs)),
        "score": np.concatenate([scores for _, _, scores in runs]),
    }


def _trials(methods: Sequence[str], folds: np.ndarray, n_seeds: int, rng: np.random.Generator) -> Table:
    rows: list[tuple[Any, ...]] = []
    for m in range(len(methods)):
        grid = [{}] if m == 0 else [{"alpha": 10.0**i, "n_estimators": 100 * m} for i in range(-2, 3)]
        for fold in np.unique(folds):
            for seed in range(n_seeds):
                valid = [0.45 + 0.01 * m - 0.004 * abs(i - 2) + rng.normal(0, 0.004) for i in range(len(grid))]
                failed = m == 3 and fold == 2
                for i, params in enumerate(grid):
                    broken = failed and i == 4
                    seconds = float(np.exp(rng.normal(m / 2 - 1, 0.2)))
                    memory = np.nan if m == 1 else 2e8 + 3e7 * m
                    rows.append((
                        m, int(fold), seed, i, json.dumps(params), "failed" if broken else "done",
                        np.nan if broken else valid[i], seconds, seconds / 50, memory + 5e7, memory,
                        i == int(np.argmax(valid[:4])), "RuntimeError: the loss is not finite in round 17" if broken else "",
                    ))  # fmt: skip
    return _columns(
        rows, "method", "fold", "seed", "candidate", "params", "status", "valid", "seconds", "predict_seconds",
        "memory_peak", "memory_start", "chosen", "error",
    )  # fmt: skip
