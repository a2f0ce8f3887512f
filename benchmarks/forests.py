"""Measures of tree rankers by method and number of leaves: ``python -m benchmarks.forests``, which takes half an hour.

Every fit is kept in ``--out``, and found there by another run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.report import header
from benchmarks.starting import data_root
from benchmarks.web_search import ASPECTS, KINDS, feature
from rankwright.analysis.significance import compare
from rankwright.basics.array_types import Floats
from rankwright.optimisers.ascent import ClimbRules
from rankwright.optimisers.polishing import polish_weights
from rankwright.rankers.trees.tree_boosting import make_tree_landscape
from rankwright.scorers import Trees

QUERIES, VALID, TEST, DOCUMENTS, FEATURES = 6_000, 1_500, 2_000, 120, 136
LEAVES = (10, 31, 63)
MEASURES = ("ndcg@1", "ndcg@5", "ndcg@10")
TRAINED = "ndcg@10"
ROUNDS = {"OHSUMED": 50, "MQ2008": 50, "synthetic": 5}  # of polishing
FAST = 0.3  # a learning rate; the usual one, 0.1, leaves 100 trees far from where more would lead on much data
METHODS: Mapping[str, Any] = {
    "MART": rw.MART,
    "MART, rate 0.3": partial(rw.MART, learning_rate=FAST),
    "LambdaMART": rw.LambdaMART,
    "LambdaMART, rate 0.3": partial(rw.LambdaMART, learning_rate=FAST),
    "DirectRankTrees": partial(rw.DirectRankTrees, weight_range=(0.1, 0.5)),  # the paper's range
    "BoostedTrees, smooth NDCG": rw.BoostedTrees,
}
LEVERAGED = ("MART", "LambdaMART", "LambdaMART, rate 0.3")  # whose trees are polished, too


class Task(NamedTuple):
    """One fit."""

    data: str
    fold: int
    leaves: int
    method: str

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.data}-{self.fold}-{self.leaves}-{self.method.replace(', ', '-').replace(' ', '-')}.npz"


def polished(method: str) -> str:
    """The name of a method's models with polished weights."""
    return f"{method}, polished"


def crossed(n_queries: int, random_state: int = 0) -> rw.Queries:
    """Five grades, raw features of wild scales as in web search; what makes a page relevant is not linear.

    Of eight aspects two count as a product, two by the higher one, one by its distance from a middle that differs by
    query, one if another is high, and raters see all that through noise. A feature shows one aspect.
    """
    rng = np.random.default_rng(random_state)
    n, query = n_queries * DOCUMENTS, np.repeat(np.arange(n_queries), DOCUMENTS)
    a = rng.standard_normal((ASPECTS, n), dtype=np.float32)
    middle = rng.normal(0.0, 0.5, n_queries).astype(np.float32)[query]
    relevance = 1.2 * a[0] * a[1] + np.maximum(a[2], a[3]) - np.abs(a[4] - middle) + np.where(a[5] > 0, a[6], 0.0)
    relevance += 0.5 * np.tanh(a[7]) + rng.normal(size=n) + rng.normal(0.0, 1.0, n_queries)[query]
    y = np.searchsorted([0.5, 2.0, 3.5, 5.0], relevance).astype(np.float64)
    X = np.empty((n, FEATURES), dtype=np.float32)
    for j in range(FEATURES):
        X[:, j] = feature(KINDS[j % len(KINDS)], a, query, X[:, :j], rng)
    return rw.Queries(X, y, np.arange(n_queries + 1) * DOCUMENTS, np.arange(n_queries))


def parts(data: str, fold: int) -> tuple[rw.Queries, rw.Queries, rw.Queries]:
    """What is trained, chosen and tested on."""
    if data != "synthetic":
        return rw.read_folds(data_root() / data)[fold]
    whole = crossed(QUERIES + VALID + TEST)
    return whole.slice(0, QUERIES), whole.slice(QUERIES, QUERIES + VALID), whole.slice(QUERIES + VALID, len(whole))


def run(task: Task, out: Path) -> None:
    """Fit, and keep what there is to know; some are also polished."""
    if (out / task.name).exists():
        return
    train, valid, test = parts(task.data, task.fold)
    ranker = METHODS[task.method](num_leaves=task.leaves, backend=rw.Serial()).fit(train, valid=valid)
    found: dict[str, Any] = {task.method: rw.evaluate(ranker, test, list(MEASURES)).values}
    found["trees"] = len(ranker.scorer_)
    if task.method in LEVERAGED:
        measure = rw.parse_measure(TRAINED)
        own, other = (make_tree_landscape(ranker.scorer_, each, measure, rw.Serial()) for each in (train, valid))
        rules, start = ClimbRules(max_rounds=ROUNDS[task.data]), np.ones(len(ranker.scorer_))
        weighed = polish_weights(own, other, start, rules, np.random.default_rng(0))
        ends = [weighed.history[0], weighed.history[-1]]
        found["climb"] = [row[part] for row in ends for part in ("train", "valid")]
        found["guarded"] = [weighed.before, weighed.valid_before, weighed.after, weighed.valid_after]
        kept = Trees(ranker.scorer_.forest.with_weights(weighed.level))
        found[polished(task.method)] = rw.evaluate(kept(test.X), test, list(MEASURES)).values
        climbed = _last(own, start, rules)
        unguarded = Trees(ranker.scorer_.forest.with_weights(climbed))
        found["unguarded"] = rw.evaluate(unguarded(test.X), test, list(MEASURES)).values
    half = out / f"half-{task.name}"
    np.savez(half, **found)
    half.rename(out / task.name)
    print(task, flush=True)


def _last(landscape: Any, start: Floats, rules: ClimbRules) -> Floats:
    """The weights at the end of the climb, whatever validation queries say."""
    return polish_weights(landscape, None, start, rules, np.random.default_rng(0)).weights


def tasks(names: list[str]) -> Iterator[Task]:
    """All fits."""
    for data in names:
        folds = range(1 if data == "synthetic" else 5)
        yield from (Task(data, *each) for each in product(folds, LEAVES, METHODS))


def tables(names: list[str], out: Path) -> Iterator[str]:
    """By data set: means, and paired tests of every method against MART with as many leaves."""
    for data in names:
        yield f"## {data}\n"
        yield "| leaves | method | trees | NDCG@1 | NDCG@5 | NDCG@10 | @10 - MART | 95% interval | p |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        for leaves in LEAVES:
            values, trees = _gathered(data, leaves, out)
            at_ten = {name: each[-1] for name, each in values.items()}
            against = {each.second: each for each in compare(at_ten, baseline="MART")}
            for name, each in values.items():
                means = " | ".join(f"{value:.4f}" for value in each.mean(axis=1))
                yield f"| {leaves} | {name} | {trees[name]:.0f} | {means} | {_told(against.get(name))} |"
        yield ""
        yield from _polishing(data, out)


def _gathered(data: str, leaves: int, out: Path) -> tuple[dict[str, Floats], dict[str, float]]:
    """By method the values of all test queries, and the mean number of trees."""
    values: dict[str, list[Floats]] = {}
    trees: dict[str, list[float]] = {}
    for task in tasks([data]):
        if task.leaves == leaves:
            with np.load(out / task.name) as found:
                for name in (task.method, polished(task.method)):
                    if name in found:
                        values.setdefault(name, []).append(found[name])
                        trees.setdefault(name, []).append(float(found["trees"]))
    order = [name for method in METHODS for name in (method, polished(method)) if name in values]
    return {n: np.concatenate(values[n], axis=1) for n in order}, {n: float(np.mean(trees[n])) for n in order}


def _told(comparison: Any) -> str:
    if comparison is None:
        return "| |"
    p = comparison.p.randomisation
    interval = f"{comparison.low:+.4f} to {comparison.high:+.4f}"
    return f"{comparison.difference:+.4f} | {interval} | {'< 0.0001' if p < 1e-4 else f'{p:.4f}'}"


def _polishing(data: str, out: Path) -> Iterator[str]:
    """What polishing does: before, at the end of the climb, and where validation queries stop it."""
    ends = [f"{part}, before | climbed | kept" for part in ("train", "valid", "test")]
    yield f"| leaves | method | {' | '.join(ends)} | gain on test | p |"
    yield "| --- |" + " --- |" * 12
    for leaves, method in product(LEAVES, LEVERAGED):
        climb, guarded, tests = [], [], []
        for task in tasks([data]):
            if task.leaves == leaves and task.method == method:
                with np.load(out / task.name) as found:
                    climb.append(found["climb"])
                    guarded.append(found["guarded"])
                    tests.append([found[name][-1] for name in (method, "unguarded", polished(method))])
        before, after, top = (
            np.mean(each, axis=0) for each in (np.array(guarded)[:, :2], np.array(guarded)[:, 2:], climb)
        )
        assert all(each[2] >= each[0] - 1e-12 for each in climb), "the climb lowered the training measure"
        assert all(each[3] >= each[1] for each in guarded), "the guard let the validation measure fall"
        tested = np.concatenate([np.array(each) for each in tests], axis=1)
        [comparison] = compare({"before": tested[0], "kept": tested[2]})
        figures = [x for i in (0, 1) for x in (before[i], top[2 + i], after[i])] + tested.mean(axis=1).tolist()
        p = comparison.p.randomisation
        told = f"{comparison.difference:+.4f} | {'< 0.0001' if p < 1e-4 else f'{p:.4f}'}"
        yield f"| {leaves} | {method} | {' | '.join(f'{x:.4f}' for x in figures)} | {told} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forests", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("forests"), help="where fits are kept")
    parser.add_argument("--data", nargs="*", default=[*ROUNDS], choices=[*ROUNDS])
    parser.add_argument("--workers", type=int, default=2)
    told = parser.parse_args()
    told.out.mkdir(exist_ok=True)
    with ProcessPoolExecutor(told.workers) as pool:
        for done in [pool.submit(run, task, told.out) for task in tasks(told.data)]:
            done.result()
    print(header())
    print("\n".join(tables(told.data, told.out)))


if __name__ == "__main__":
    main()
