"""Learning from simulated clicks: the bias of measures from clicks, and training on them beside training on grades.

``python -m benchmarks.clicks unbiased`` and ``python -m benchmarks.clicks training`` print the tables of
docs/click-measures.md. Data are MQ2008 and OHSUMED, from the folder that ``RANKWRIGHT_DATA`` names, and made queries.
Trees are of one size everywhere: 100 of 16 leaves, learning rate 0.1. LightGBM and XGBoost get the same clicks as
sessions, one list each; Rankwright gets their counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import collect_warnings

DATA = Path(os.environ.get("RANKWRIGHT_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = ("MQ2008", "OHSUMED", "made")
SESSIONS = (1_000, 10_000, 100_000, 1_000_000)
N_POSITIONS, LARGEST_PEER = 10, 10_000
TREES: dict[str, Any] = {"n_estimators": 100, "num_leaves": 16, "learning_rate": 0.1}
MEASURE = "ndcg@10"
_XGBOOST = {"max_leaves": 16, "max_depth": 0, "grow_policy": "lossguide", "eta": 0.1, "nthread": 2}


class Shown(NamedTuple):
    """Clicks on the lists of weak rankers: the log, the documents that were shown with their counts, all features."""

    log: rw.ClickLog
    queries: rw.Queries
    features: rw.Queries


class Clicks(NamedTuple):
    """Clicks on training and on validation queries."""

    train: Shown
    valid: Shown


class Sessions(NamedTuple):
    """The same clicks, list by list, as LightGBM and XGBoost take them: rows in the order of positions."""

    rows: Ints  # of the features
    sizes: Ints
    position: Ints
    clicked: Floats


@cache
def read_fold(name: str, index: int) -> tuple[rw.Queries, ...]:
    """Return training and validation queries with ids of documents, and test queries."""
    if name == "made":
        made = rw.make_queries(1_000, n_docs=20, n_features=30, grades=5, random_state=7)
        fold = rw.split_folds(made, 5, random_state=0)[index]
    else:
        fold = rw.read_folds(DATA / name)[index]
    found = []
    for part in fold:
        own = part.grouped()
        found.append(rw.Queries.from_arrays(own.X, own.y, own.row_qid, docid=np.arange(own.n_docs)))
    return tuple(found)


def train_weak(train: rw.Queries, seed: int) -> dict[str, rw.Regression]:
    """Return the two rankers whose lists users see: ridge regressions of five judged queries each."""
    order = np.random.default_rng(seed).permutation(len(train))
    with collect_warnings():
        return {
            name: rw.Regression().fit(train.take(np.sort(order[5 * at : 5 * (at + 1)]))) for at, name in enumerate("ab")
        }


def show_lists(name: str, seed: int, n_sessions: int) -> Clicks:
    """Simulate the sessions: so many on training queries, and a third of them on validation queries."""
    train, valid, _ = read_fold(name, seed % 5)
    weak = train_weak(train, seed)

    def show(queries: rw.Queries, n: int, state: int) -> Shown:
        log = rw.simulate_clicks(queries, weak, n_sessions=n, n_positions=N_POSITIONS, random_state=state)
        assert log.truth is not None
        with collect_warnings():
            made = log.to_queries(queries, examination=log.truth.examination)
        return Shown(log, made.replace(position=None), queries)

    return Clicks(show(train, n_sessions, seed), show(valid, n_sessions // 3, 1_000 + seed))


def list_sessions(shown: Shown, seed: int) -> Sessions:
    """Return lists with the clicks of the log: those of a position are dealt out at random to the lists that show it.

    Under the position model clicks are independent given the lists, so that this is the distribution of sessions.
    """
    rng, log = np.random.default_rng(seed), shown.log
    row_of = {name: row for row, name in enumerate(shown.features.docid.tolist())}  # type: ignore[union-attr]
    cell_row = np.array([row_of[name] for name in log.docid.tolist()])[log.cell_pair]
    assert log.ranker is not None
    key = log.pair_query[log.cell_pair] * len(log.rankers) + log.ranker
    order = np.lexsort((log.position, key))
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    parts: list[tuple[Any, ...]] = []
    for cells in np.split(order, starts[1:]):
        n, depth = int(log.n_shown[cells[0]]), len(cells)
        clicked = np.zeros((n, depth))
        for k, cell in enumerate(cells.tolist()):
            clicked[rng.permutation(n)[: int(log.n_clicked[cell])], k] = 1.0
        rows = np.tile(cell_row[cells], n)
        parts.append((rows, np.full(n, depth), np.tile(np.arange(1, depth + 1), n), clicked.ravel()))
    return Sessions(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def fit_ours(ranker: type[rw.Ranker], measure: str, **params: Any) -> Callable[[Clicks, int], Any]:
    """Return a function that trains a ranker of ours on a measure from clicks, and chooses its rounds by it."""

    def fit(clicks: Clicks, seed: int) -> Any:
        return ranker(measure=measure, **params).fit(clicks.train.queries, valid=clicks.valid.queries).predict

    return fit


def fit_grades(ranker: type[rw.Ranker], **params: Any) -> Callable[[Clicks, int], Any]:
    """Return a function that trains a ranker of ours on the grades of the documents that were shown."""

    def grade(shown: Shown) -> rw.Queries:
        assert shown.queries.docid is not None
        return shown.queries.replace(y=shown.features.y[shown.queries.docid.astype(int)], clicks=None)

    def fit(clicks: Clicks, seed: int) -> Any:
        return ranker(measure=MEASURE, **params).fit(grade(clicks.train), valid=grade(clicks.valid)).predict

    return fit


def fit_lightgbm(clicks: Clicks, seed: int, *, debiased: bool) -> Any:
    """Train LightGBM's lambdarank on sessions, with or without their positions; rounds by the NDCG of clicks."""

    def make(shown: Shown) -> rw.Queries:
        own = list_sessions(shown, seed)
        qid = np.repeat(np.arange(len(own.sizes)), own.sizes)
        position = own.position if debiased else None
        return rw.Queries.from_arrays(shown.features.X[own.rows], own.clicked, qid, position=position)

    ranker = rw.LambdaMART(lambdas="lightgbm", measure=MEASURE, **TREES)
    return ranker.fit(make(clicks.train), valid=make(clicks.valid)).predict


def fit_xgboost(clicks: Clicks, seed: int) -> Any:
    """Train XGBoost's unbiased lambdarank on sessions; rounds by the NDCG of clicks."""
    import xgboost as xgb

    def make(shown: Shown) -> Any:
        own = list_sessions(shown, seed)
        qid = np.repeat(np.arange(len(own.sizes)), own.sizes)
        return xgb.DMatrix(shown.features.X[own.rows], own.clicked, qid=qid)

    params = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk"} | _XGBOOST
    params |= {"lambdarank_num_pair_per_sample": N_POSITIONS, "eval_metric": MEASURE}
    n, evals = TREES["n_estimators"], [(make(clicks.valid), "valid")]
    booster = xgb.train(params, make(clicks.train), n, evals=evals, early_stopping_rounds=n, verbose_eval=False)
    kept = (0, booster.best_iteration + 1)
    return lambda queries: booster.predict(xgb.DMatrix(queries.X), iteration_range=kept)


_LINEAR: dict[str, Any] = {"n_restarts": 1, "random_state": 0}
METHODS: dict[str, Callable[[Clicks, int], Any]] = {
    "trees, grades": fit_grades(rw.LambdaMART, **TREES),
    "trees, clicks=ips, clip=3": fit_ours(rw.LambdaMART, "dcg@10(clicks=ips,clip=3)", **TREES),
    "trees, clicks=coec": fit_ours(rw.LambdaMART, "dcg@10(clicks=coec)", **TREES),
    "trees, clicks=naive": fit_ours(rw.LambdaMART, "dcg@10(clicks=naive)", **TREES),
    "LightGBM, position": partial(fit_lightgbm, debiased=True),
    "LightGBM": partial(fit_lightgbm, debiased=False),
    "XGBoost, unbiased": fit_xgboost,
    "linear pairs, grades": fit_grades(rw.RankNet),
    "linear pairs, clicks=coec": fit_ours(rw.RankNet, "dcg@10(clicks=coec)", pair_weighting="relevance"),
    "linear pairs, clicks=naive": fit_ours(rw.RankNet, "dcg@10(clicks=naive)", pair_weighting="relevance"),
    "linear, grades": fit_grades(rw.DirectRank, **_LINEAR),
    "linear, clicks=ips, clip=3": fit_ours(rw.DirectRank, "dcg@10(clicks=ips,clip=3)", **_LINEAR),
    "linear, clicks=coec": fit_ours(rw.DirectRank, "dcg@10(clicks=coec)", **_LINEAR),
    "linear, clicks=naive": fit_ours(rw.DirectRank, "dcg@10(clicks=naive)", **_LINEAR),
}
PEERS = ("LightGBM", "LightGBM, position", "XGBoost, unbiased")


def run_training(name: str, seeds: int, sessions: int, methods: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the measure by true grades on test queries of each method and seed."""
    for seed in range(seeds):
        clicks, test = show_lists(name, seed, sessions), read_fold(name, seed % 5)[2]
        weak = [rw.evaluate(each, test, MEASURE)[MEASURE] for each in train_weak(clicks.train.features, seed).values()]
        yield {"data": name, "sessions": sessions, "seed": seed, "method": "shown lists", "value": float(np.mean(weak))}
        for method in methods:
            if method in PEERS and sessions > LARGEST_PEER:
                continue
            with collect_warnings():
                predict = METHODS[method](clicks, seed)
            value = rw.evaluate(predict(test), test, MEASURE)[MEASURE]
            yield {"data": name, "sessions": sessions, "seed": seed, "method": method, "value": value}


def run_unbiased(name: str, repetitions: int, n_sessions: int = 20_000) -> Iterator[dict[str, Any]]:
    """Yield for each estimator the mean error of the measure over repetitions of the clicks, and its claims."""
    train = read_fold(name, 0)[0]
    order = np.random.default_rng(0).permutation(len(train))[:100]
    queries = train.take(np.sort(order))
    longest = int(queries.sizes.max())
    shown_by, judged = train_weak(train, 1), train_weak(train, 2)["a"]
    texts = [f"dcg@10(clicks={each})" for each in ("naive", "ips", "ips,clip=3", "coec", "snips")]
    texts += ["p@5(clicks=ips)", "dcg@10(discount=reciprocal,clicks=coec)"]
    texts += ["ndcg@10(clicks=coec)", "ndcg@10(clicks=coec,floor=5)"]
    found: dict[str, list[tuple[float, float, float]]] = {text: [] for text in texts}
    for repetition in range(repetitions):
        log = rw.simulate_clicks(queries, shown_by, n_sessions=n_sessions, n_positions=longest, random_state=repetition)
        assert log.truth is not None
        with collect_warnings():
            made = log.to_queries(queries, examination=log.truth.examination, grades=None)
        assert made.clicks is not None
        assert made.docid is not None
        scores, row_of = judged.predict(made), {str(name): row for row, name in enumerate(made.docid.tolist())}
        y = np.zeros(made.n_docs)
        y[[row_of[str(name)] for name in log.docid.tolist()]] = log.truth.relevance
        truth = rw.Queries.from_arrays(made.X, None, made.row_qid, clicks=_make_certain(y, made.clicks.n_lists))
        evaluated, exact = rw.evaluate(scores, made, texts), rw.evaluate(scores, truth, [_without(t) for t in texts])
        for text in texts:
            name_of = str(rw.parse_measure(text))
            found[text].append((evaluated[text], exact[_without(text)], evaluated.click_errors[name_of]))
    for text, values in found.items():
        estimate, true, claimed = np.array(values).T
        error = estimate - true
        yield {
            "data": name,
            "measure": text,
            "true": float(true.mean()),
            "bias": float(error.mean()),
            "bias_error": float(error.std(ddof=1) / np.sqrt(len(error))),
            "spread": float(error.std(ddof=1)),
            "claimed": float(claimed.mean()),
            "covered": float((np.abs(error) <= 1.96 * claimed).mean()),
        }


def _make_certain(relevance: Floats, n_lists: Floats) -> rw.ClickCounts:
    """Return counts of one cell per document whose click rate is its relevance: measures of them are the true ones."""
    n = len(relevance)
    return rw.ClickCounts(np.arange(n + 1), np.ones(n, int), np.ones(n), relevance, n_lists, np.ones(1))


def _without(text: str) -> str:
    """Return a measure of the true relevance: with clicks on documents that are all looked at."""
    return text if "snips" in text else re.sub(r"clicks=\w+(,clip=\d+)?", "clicks=naive", text)


def print_unbiased(rows: list[dict[str, Any]]) -> None:
    """Print the table of biases."""
    print("| data | measure | true value | mean error | its standard error | error of one log | claimed | within 95% |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['data']} | `{row['measure']}` | {row['true']:.4f} | {row['bias']:+.5f} | "
            f"{row['bias_error']:.5f} | {row['spread']:.4f} | {row['claimed']:.4f} | {row['covered']:.1%} |"
        )


def print_training(rows: list[dict[str, Any]]) -> None:
    """Print a table of means and standard errors for each data set."""
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        sessions = sorted({row["sessions"] for row in own})
        print(f"\n### {name}\n\n| method | {' | '.join(f'{n:,}' for n in sessions)} |\n|---|{'---|' * len(sessions)}")
        for method in dict.fromkeys(row["method"] for row in own):
            cells = []
            for n in sessions:
                values = [row["value"] for row in own if row["method"] == method and row["sessions"] == n]
                cells.append(f"{np.mean(values):.4f}" if values else "")
            print(f"| {method} | {' | '.join(cells)} |")


def main() -> None:
    """Run a study and print its table; ``--out`` keeps the rows as lines of JSON, which ``--table`` prints again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clicks", description=__doc__)
    parser.add_argument("study", choices=("unbiased", "training"))
    parser.add_argument("--data", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--sessions", nargs="*", type=int, default=list(SESSIONS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    rows = [] if not chosen.table else [json.loads(line) for line in chosen.out.read_text().splitlines()]
    for name in () if chosen.table else chosen.data:
        if chosen.study == "unbiased":
            found = run_unbiased(name, chosen.repetitions)
        else:
            found = (row for n in chosen.sessions for row in run_training(name, chosen.seeds, n, chosen.methods))
        for row in found:
            rows.append(row)
            if chosen.out is not None:
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    (print_unbiased if chosen.study == "unbiased" else print_training)(rows)


if __name__ == "__main__":
    main()
