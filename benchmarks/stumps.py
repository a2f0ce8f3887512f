"""Boosting of stumps on pairs: RankBoost beside tree libraries, FRank against the search it replaces, prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.boosting import make_data
from benchmarks.paper_stumps import Tried, list_pairs, list_stumps, search_naively
from benchmarks.report import Row, Table, below, faster, publish, skipped
from benchmarks.timing import THREADS, find_peer, medians, take_turns, timed
from rankwright.basics.array_types import Floats, Ints
from rankwright.models.model import Model
from rankwright.optimisers.weak.threshold_stumps import FeatureBins, Stump, sum_stumps

ROUNDS = 300
BINS = 255
MEASURE = "ndcg@10"


def fit_rankboost(_: Any, queries: rw.Queries, n_estimators: int, threads: int) -> Model:
    """Ours, all rounds kept; binning and the measure of every round are in it."""
    ranker = rw.RankBoost(measure=MEASURE, n_estimators=n_estimators, max_bins=BINS, backend=rw.Threads(threads)).fit(
        queries
    )
    names = ("feature", "threshold", "alpha", "missing")
    stumps = [Stump(*(record[name] for name in names)) for record in ranker.history_]
    return replace(ranker.to_model(), scorer=sum_stumps(stumps, missing=True))


def fit_lightgbm(lightgbm: Any, queries: rw.Queries, n_estimators: int, threads: int) -> Any:
    """LightGBM's booster of stumps; binning is in it."""
    params = {"objective": "lambdarank", "num_leaves": 2, "max_bin": BINS, "num_threads": threads, "verbose": -1}
    data = lightgbm.Dataset(queries.X, queries.y, group=queries.sizes, params=params)
    return lightgbm.train(params, data, num_boost_round=n_estimators)


def fit_xgboost(xgboost: Any, queries: rw.Queries, n_estimators: int, threads: int) -> Any:
    """XGBoost's booster of stumps; binning is in it."""
    rows = np.repeat(np.arange(len(queries)), queries.sizes)
    data = xgboost.QuantileDMatrix(queries.X, queries.y, qid=rows, max_bin=BINS, nthread=threads)
    params = {"objective": "rank:pairwise", "max_depth": 1, "max_bin": BINS, "tree_method": "hist", "nthread": threads}
    return xgboost.train(params, data, num_boost_round=n_estimators)


def _predict_lightgbm(booster: Any, X: Floats) -> Any:
    return booster.predict(X, raw_score=True, num_threads=1)


def _predict_xgboost(booster: Any, X: Floats) -> Any:
    booster.set_param({"nthread": 1})
    return booster.inplace_predict(X, predict_type="margin")


class Tool(NamedTuple):
    """What trains sums of stumps, and predicts by them on one thread."""

    name: str
    module: str
    fit: Callable[[Any, rw.Queries, int, int], Any]
    predict: Callable[[Any, Floats], Any]


OURS = Tool("RankBoost", "rankwright", fit_rankboost, Model.predict)
PEERS = (
    Tool("LightGBM lambdarank, num_leaves=2", "lightgbm", fit_lightgbm, _predict_lightgbm),
    Tool("XGBoost rank:pairwise, max_depth=1", "xgboost", fit_xgboost, _predict_xgboost),
)


def find_tools() -> list[tuple[Tool, Any]]:
    """The tools that are here, with their modules; ours first."""
    found = [(tool, find_peer(tool.module)) for tool in (OURS, *PEERS)]
    return [(tool, module) for tool, module in found if module is not None]


class Fits(NamedTuple):
    """The median seconds of a tool by data set, and the training measure it reaches."""

    seconds: list[float]
    reached: list[float]

    @property
    def figure(self) -> str:
        """Both, by data set."""
        seconds, reached = " ".join(f"{s:.2f}" for s in self.seconds), " ".join(f"{r:.3f}" for r in self.reached)
        return f"{seconds} s; train NDCG@10 {reached}"


def compare_fits(queries: rw.Queries, threads: int, n_estimators: int, repetitions: int, fits: dict[str, Fits]) -> None:
    """Add to the fits of every tool one data set, in turns."""
    models: dict[str, Any] = {}

    def fit(tool: Tool, module: Any) -> None:
        models[tool.name] = tool.fit(module, queries, n_estimators, threads)

    tools = find_tools()
    seconds = medians(take_turns({tool.name: partial(fit, tool, module) for tool, module in tools}, repetitions))
    for tool, _ in tools:
        scores = np.asarray(tool.predict(models[tool.name], queries.X), dtype=np.float64)
        found = fits.setdefault(tool.name, Fits([], []))
        found.seconds.append(seconds[tool.name])
        found.reached.append(rw.parse_measure(MEASURE).mean(queries, scores))


def measure_rankboost(n_queries: int = 500, n_estimators: int = ROUNDS, seeds: int = 3, repetitions: int = 3) -> Table:
    """RankBoost beside other sums of stumps, on as many threads."""
    data, rows = [make_data(n_queries, seed) for seed in range(seeds)], []
    for tool, module in find_tools():
        tool.fit(module, make_data(20), 2, THREADS)
    for threads in dict.fromkeys((THREADS, 1)):
        fits: dict[str, Fits] = {}
        for queries in data:
            compare_fits(queries, threads, n_estimators, repetitions, fits)
        on, ours = f"{threads} thread{'s' if threads > 1 else ''}", fits.pop(OURS.name)
        aim = threads == THREADS
        what = f"{OURS.name}, {on}"
        rows.append(below(what, ours.figure, max(ours.seconds), 1.5, "s") if aim else Row(what, ours.figure))
        for name, theirs in fits.items():
            ratio = median(peer / own for peer, own in zip(theirs.seconds, ours.seconds, strict=True))
            rows.append(faster(f"{name}, {on}", theirs.figure, ratio))
    rows.extend(skipped(peer.name) for peer in PEERS if find_peer(peer.module) is None)
    notes = [
        f"{n_estimators} rounds on {n_queries} queries of about 120 documents, 46 features, at most {BINS} bins each; "
        f"seeds 0 to {seeds - 1}, medians of {repetitions} turns each. Binning is counted.",
        "The same kind of model, another loss: RankBoost minimises the exponential loss of pairs, with steps of its "
        "own, and evaluates every round; the others minimise logistic losses of pairs (LightGBM's weights them by the "
        "change of NDCG under a swap) with their default learning rates, and evaluate nothing. All else is their "
        "default. The measure is ours for all, of the last round.",
        "RankLib's RankBoost cannot be run here. It took 54 s and 3 GB for data of this size with only 10 thresholds a "
        "feature, on another machine: not measured side by side.",
    ]
    return Table("RankBoost", rows, notes)


def check_winners(history: list[dict[str, Any]], winners: list[Tried]) -> None:
    """Both searches found the same stumps."""
    for number, (record, winner) in enumerate(zip(history, winners, strict=True)):
        same = (record["feature"], record["threshold"]) == (winner.feature, winner.threshold)
        if not same or abs(record["alpha"] - winner.alpha) + abs(record["loss"] - winner.loss) > 1e-9:
            raise AssertionError(f"round {number}: FRank found {record}, the naive search {winner}")


Shape = tuple[int, int, int, int]  # queries, documents, features, rounds


def measure_search(shapes: tuple[Shape, ...] = ((40, 20, 10, 10), (80, 40, 20, 5)), smoothing: float = 1e-4) -> Table:
    """FRank against its own naive search."""
    rows = []
    for n_queries, n_docs, n_features, n_estimators in shapes:
        queries = rw.make_queries(n_queries, n_docs=n_docs, n_features=n_features, random_state=0)
        pairs, bins = list_pairs(queries), FeatureBins.of(queries, BINS, rw.Serial())
        ranker = rw.FRank(
            measure=MEASURE, n_estimators=n_estimators, max_bins=BINS, smoothing=smoothing, backend=rw.Serial()
        )
        winners: list[Tried] = []

        def search(found: list[Tried] = winners, task: Any = (queries, pairs, bins, n_estimators, smoothing)) -> None:
            found[:] = search_naively(*task)

        ranker.fit(queries)
        naive = timed(search)
        ours = median(timed(partial(ranker.fit, queries)) for _ in range(7))
        check_winners(ranker.history_, winners)
        what = f"{n_queries} queries x {n_docs} documents x {n_features} features"
        size = f"{n_estimators} rounds, {len(pairs.i):,} pairs, {len(list_stumps(bins)):,} stumps"
        rows.append(Row(f"FRank, {what}", f"{1000 * ours:.1f} ms; {size}"))
        rows.append(faster("every stump tried on every pair", f"{naive:.2f} s", naive / ours, 50.0))
    notes = [
        "The naive search is step (a) of figure 2 as written, in NumPy, over all pairs at a time, once; its pairs and "
        "thresholds are made beforehand, and not counted. FRank's seconds are those of a whole fit, the median of 7: "
        f"binning and the measure of every round are in them. One thread for both, {BINS} bins.",
        "Both find the same stump in every round, with the same alpha and loss to 1e-9: checked.",
    ]
    return Table("FRank against its naive search", rows, notes)


def time_predictions(n_docs: int, n_features: int, n_estimators: int) -> dict[str, float]:
    """The seconds every tool takes to score many documents; ours also without the checks of an array."""
    train = rw.make_queries(200, n_docs=120, n_features=n_features, random_state=0)
    drawn = np.random.default_rng(0).integers(0, train.n_docs, n_docs)
    X = train.X[drawn]
    checked = rw.Queries(X, np.zeros(n_docs), np.array([0, n_docs]), np.zeros(1, dtype=np.int64))
    tasks: dict[str, Callable[[], Any]] = {}
    for tool, module in find_tools():
        model = tool.fit(module, train, n_estimators, 1)
        if tool is OURS:
            tasks[f"{OURS.name}, a Queries"] = partial(model.predict, checked)
        tasks[f"{tool.name}, an array"] = partial(tool.predict, model, X)
        check_drawn(tool.name, tool.predict(model, X), tool.predict(model, train.X), drawn)
    return medians(take_turns(tasks))


def check_drawn(name: str, scores: Any, among_training: Any, drawn: Ints) -> None:
    """A document scores what it scores among the training ones, and scores differ."""
    if not np.allclose(scores, among_training[drawn], rtol=1e-6, atol=1e-6) or len(np.unique(scores)) < 100:
        raise AssertionError(f"{name} predicts nonsense")


def measure_prediction(
    n_docs: int = 1_000_000, widths: tuple[int, ...] = (46, 136), n_estimators: int = ROUNDS
) -> Table:
    """Documents scored in a second, on one thread."""
    rows = []
    for n_features in widths:
        seconds, aim = time_predictions(n_docs, n_features, n_estimators), n_features == widths[0]
        ours = seconds[f"{OURS.name}, an array"]
        for name, each in seconds.items():
            what, rate = f"{n_features} features: {name}", n_docs / each / 1e6
            figure = f"{rate:.2f} million documents a second"
            if not name.startswith(OURS.name):
                rows.append(faster(what, figure, each / ours))
            elif aim:
                rows.append(Row(what, figure, "", "above 5 million", rate > 5.0))
            else:
                rows.append(Row(what, figure))
    rows.extend(skipped(peer.name) for peer in PEERS if find_peer(peer.module) is None)
    notes = [
        f"{n_docs:,} documents drawn from the training ones (200 queries of about 120, by make_queries); "
        f"{n_estimators} stumps of every tool, models as in the table of RankBoost; 1 thread, medians of turns; "
        "ratios to ours from an array.",
        "An array is looked through for infinite values first; a Queries was when it was made. That every tool scores "
        "a document as it does among the training ones, and documents differently, is checked.",
    ]
    return Table("Predicting by stumps", rows, notes)


def measure() -> Iterator[Table]:
    """All tables on stumps."""
    yield measure_rankboost()
    yield measure_search()
    yield measure_prediction()


if __name__ == "__main__":
    publish([measure])
