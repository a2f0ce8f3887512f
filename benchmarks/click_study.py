"""Estimated examination against the truth of simulated clicks: errors, coverage of the intervals, and wrong models."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from tests.reference.clicks import all_pairs

import rankwright as rw
from benchmarks.report import Row, Table, publish, skipped
from benchmarks.training import find_data
from rankwright.data.joined_queries import join_queries

_SESSIONS = (1_000, 10_000, 100_000, 1_000_000)
_DATA = ("made", "MQ2008", "OHSUMED")


class Score(NamedTuple):
    """How estimates of one kind of log compare with the truth, over positions 2 to 10 and repetitions."""

    known: float
    error: float
    bias: float
    coverage: float

    def text(self) -> str:
        """The score as a cell of a table."""
        return (
            f"known {self.known:.1f} of 9; error {100 * self.error:.1f} %, bias {100 * self.bias:+.1f} %; "
            f"coverage {100 * self.coverage:.1f} %"
        )


def read_data(name: str) -> rw.Queries | None:
    """All queries of a data set, None if it is not here; or made ones."""
    if name == "made":
        return rw.make_queries(500, random_state=0)
    folder = find_data(name)
    return None if folder is None else join_queries(rw.read_folds(folder)[0])


def train_rankers(queries: rw.Queries, n: int = 3) -> dict[str, Any]:
    """Scores of rankers that were each trained on ten queries."""
    rng = np.random.default_rng(0)
    judged = np.flatnonzero([queries.y[rows].max() > queries.y[rows].min() for rows in queries])
    samples = (queries.take(rng.choice(judged, 10, replace=False)) for _ in range(n))
    return {f"ranker {i}": rw.Regression().fit(sample).predict(queries) for i, sample in enumerate(samples, 1)}


def _simulate(queries: rw.Queries, scores: Any, options: dict[str, Any], seed: int) -> rw.ClickLog:
    """The log of one repetition."""
    return rw.simulate_clicks(queries, scores, random_state=seed, **options)


def compare(simulate: Callable[[int], rw.ClickLog], method: Any, repetitions: int, features: Any = None) -> Score:
    """Estimate the examination of several simulated logs and compare it with the truth."""
    found = []
    for seed in range(repetitions):
        log = simulate(seed)
        assert log.truth is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                estimate = rw.estimate_examination(log, method, features=features)
            except rw.InputError:  # too few clicks
                found.append(np.full((9, 2), np.nan))
                continue
        truth = log.truth.examination.probability[: len(estimate)]
        assert estimate.low is not None
        assert estimate.high is not None
        hit = (estimate.low <= truth) & (truth <= estimate.high)
        rows = np.column_stack([np.log(estimate.probability / truth), np.where(np.isnan(estimate.low), np.nan, hit)])
        found.append(np.pad(rows, ((0, 10 - len(rows)), (0, 0)), constant_values=np.nan)[1:])
    values = np.array(found)
    errors, hits = values[..., 0], values[..., 1]
    if np.isnan(errors).all():
        return Score(0.0, np.nan, np.nan, np.nan)
    return Score(
        float((~np.isnan(errors)).sum(axis=1).mean()),
        float(np.nanmean(np.abs(errors))),
        float(np.nanmean(errors)),
        float(np.nanmean(hits)),
    )


def measure(data: tuple[str, ...] = _DATA, repetitions: int = 40) -> Iterator[Table]:
    """Yield a table for each data set: swaps in some sessions, three rankers, and one ranker with features."""
    for name in data:
        queries = read_data(name)
        if queries is None:
            yield Table(f"Estimated examination, {name}", [skipped(name, "RANKWRIGHT_DATA names the folder of data")])
            continue
        rankers = train_rankers(queries)
        one = next(iter(rankers.values()))
        rows = []
        for n_sessions in _SESSIONS:
            options = {"n_sessions": n_sessions, "eta": 1.0}
            kinds: dict[str, tuple[Any, dict[str, Any], str, Any]] = {
                "swaps of position 1 in 10 % of the sessions": (
                    one,
                    {"swaps": "first", "swap_share": 0.1},
                    "swaps",
                    None,
                ),
                "harvesting from three rankers": (rankers, {}, "harvesting", None),
                "em on features, one ranker": (one, {}, "em", queries),
            }
            for kind, (scores, more, method, features) in kinds.items():
                simulate = partial(_simulate, queries, scores, {**options, **more})
                times = repetitions if method != "em" else min(repetitions, 5)
                score = compare(simulate, method, times, features)
                rows.append(Row(f"{n_sessions:,} sessions, {kind}", score.text()))
        yield Table(f"Estimated examination, {name}: {len(queries)} queries, {queries.n_docs:,} documents", rows)


def measure_wrong_models(n_sessions: int = 100_000, repetitions: int = 20) -> Iterator[Table]:
    """Yield the table of estimates where users follow another click model than the position-based one."""
    queries = rw.make_queries(500, random_state=0)
    rankers = train_rankers(queries)
    rows = []
    for model in ("position", "trust", "cascade"):
        for kind, swaps, scores in (("swaps", "first", next(iter(rankers.values()))), ("harvesting", None, rankers)):
            options = {"model": model, "swaps": swaps, "n_sessions": n_sessions}
            simulate = partial(_simulate, queries, scores, options)
            rows.append(Row(f"users of the {model} model, {kind}", compare(simulate, kind, repetitions).text()))
    yield Table(f"Users of other click models, {n_sessions:,} sessions", rows)


def measure_all_pairs(n_sessions: int = 10_000, repetitions: int = 10) -> Iterator[Table]:
    """Yield the table that compares harvesting with all pairs of positions, each document counted once."""
    queries = rw.make_queries(500, random_state=0)
    rankers = train_rankers(queries)
    errors: dict[str, list[float]] = {"rankwright.estimate_examination": [], "all pairs, equal weights": []}
    for seed in range(repetitions):
        log = rw.simulate_clicks(queries, rankers, n_sessions=n_sessions, n_positions=5, random_state=seed)
        assert log.truth is not None
        truth = log.truth.examination.probability
        columns = (log.cell_pair, log.position, log.n_shown, log.n_clicked)
        cells = list(zip(*(column.tolist() for column in columns), strict=True))
        ours = rw.estimate_examination(log, "harvesting").probability
        for name, found in zip(errors, (ours, all_pairs(cells, 5)), strict=True):
            errors[name].append(float(np.abs(np.log(np.maximum(found, 1e-6) / truth))[1:].mean()))
    rows = [Row(name, f"error {100 * np.mean(values):.1f} %") for name, values in errors.items()]
    yield Table(f"Harvesting from three rankers, {n_sessions:,} sessions, 5 positions", rows)


def measure_grades(sessions: tuple[int, ...] = (30_000, 300_000), n_folds: int = 5) -> Iterator[Table]:
    """Yield the table of NDCG@10 by judges, on MQ2008, of rankers that were trained on grades of simulated clicks."""
    folder = find_data("MQ2008")
    if folder is None:
        yield Table(
            "Rankers trained on grades of clicks", [skipped("MQ2008", "RANKWRIGHT_DATA names the folder of data")]
        )
        return
    values: dict[str, list[float]] = {}
    rankers = (rw.Regression(), rw.LambdaMART(num_leaves=7, n_estimators=100, early_stopping_rounds=20))

    def train_and_test(name: str, train: rw.Queries, valid: rw.Queries, test: rw.Queries) -> None:
        for ranker in rankers:
            found = rw.evaluate(ranker.fit(train, valid=valid), test, "ndcg@10")["ndcg@10"]
            values.setdefault(f"{name}, {type(ranker).__name__}", []).append(found)

    for number, (train, valid, test) in enumerate(rw.read_folds(folder)[:n_folds]):
        judged = np.flatnonzero([train.y[rows].max() > 0 for rows in train])
        sample = train.take(np.random.default_rng(number).choice(judged, 10, replace=False))
        shown = rw.Regression().fit(sample)
        values.setdefault("the ranker that users saw", []).append(rw.evaluate(shown, test, "ndcg@10")["ndcg@10"])
        train_and_test("judged", train, valid, test)
        for n_sessions in sessions:
            options = {"n_sessions": n_sessions, "swaps": "first", "swap_share": 0.1}
            logs = [_simulate(each, shown, options, seed) for each, seed in ((train, 1), (valid, 2))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                examination = rw.estimate_examination(logs[0]).fit_power()
            kinds: dict[str, dict[str, Any]] = {"ctr, 4 grades": {"grades": "ctr", "cuts": 4}, "coec": {}}
            kinds |= {"coec with examination": {"examination": examination}}
            for name, more in kinds.items():
                made = [log.to_queries(each, **more) for log, each in zip(logs, (train, valid), strict=True)]
                train_and_test(f"{n_sessions:,} sessions, {name}", made[0], made[1], test)
    rows = [Row(name, f"{np.mean(found):.4f}") for name, found in values.items()]
    yield Table("Rankers trained on grades of clicks", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=_DATA, action="append", help="a data set (default: all)")
    parser.add_argument("--repetitions", type=int, default=40)
    arguments = parser.parse_args()
    chosen = tuple(arguments.data or _DATA)
    publish(
        [
            lambda: measure(chosen, arguments.repetitions),
            lambda: measure_wrong_models(repetitions=arguments.repetitions // 2),
            lambda: measure_all_pairs(repetitions=arguments.repetitions // 4),
            measure_grades,
        ]
    )
