"""Smooth measures: what an evaluation costs, the paper's protocol, and a large set of raw features."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter

import numpy as np

import rankwright as rw
from benchmarks.reading import forget_peak, resident
from benchmarks.report import Row, Table, below, faster, publish, skipped
from benchmarks.starting import data_root
from benchmarks.timing import THREADS, medians, take_turns
from benchmarks.web_search import ASPECTS, KINDS, feature
from rankwright.basics.array_types import Floats
from rankwright.data.folds import Fold
from rankwright.kernels.jit import kernel
from rankwright.kernels.objectives.exponentials import exp
from rankwright.measures import NDCG
from rankwright.objectives import Lambdas, SigmoidRanks, SoftPositions, TopOne
from rankwright.objectives.base import Objective

CUT_OFF = 50
LENGTHS = (100, 300, 1000)
REPORTED = [f"{name}(dialect=letor3)" for name in ("map", "ndcg@1", "ndcg@5", "ndcg@10")]
PUBLISHED = {
    50: ".448 .5608 .4750 .4570",
    10: "- .5834 .4723 .4496",
    5: "- .5397 .4691 .4470",
    1: "- .5365 .4622 .4369",
}
DECIDING = ["ndcg@50", "ndcg@10", "map"]
FOLDS, ALPHAS = 5, rw.SmoothRank.default_grid["alpha"]
QUERIES, DOCUMENTS, FEATURES = 6_000, 120, 136
RANKERS = {
    "Regression": rw.Regression(backend=rw.Threads(THREADS)),
    "ListNet": rw.ListNet(backend=rw.Threads(THREADS)),
    "SmoothRank": rw.SmoothRank(backend=rw.Threads(THREADS)),
}
_FIT = "from benchmarks.smoothing import print_fit; import sys; print_fit(sys.argv[1])"


@kernel
def library_exps(x: Floats, out: Floats) -> None:
    """By the C library, one at a time."""
    for i in range(len(x)):
        out[i] = math.exp(x[i])


@kernel
def polynomial_exps(x: Floats, out: Floats) -> None:
    """By a polynomial, several at a time."""
    for i in range(len(x)):
        out[i] = exp(x[i])


def measure_exponentials() -> Table:
    """The exponential of smooth measures against Numba's."""
    x, out = -np.random.default_rng(0).uniform(0.0, 40.0, 4096), np.empty(4096)

    def many(fn: Callable[[Floats, Floats], object]) -> None:
        for _ in range(200):
            fn(x, out)

    tasks = {
        "ours": partial(many, polynomial_exps),
        "numba": partial(many, library_exps),
        "numpy": partial(many, np.exp),
    }
    for task in tasks.values():
        task()
    found = {name: seconds / (200 * len(x)) * 1e9 for name, seconds in medians(take_turns(tasks)).items()}
    rows = [
        faster("Numba's exp (the C library's)", f"{found['numba']:.1f} ns", found["numba"] / found["ours"], 3.0),
        faster("NumPy's exp", f"{found['numpy']:.1f} ns", found["numpy"] / found["ours"], 1.0),
        Row("ours, a polynomial that becomes vector code", f"{found['ours']:.1f} ns"),
    ]
    return Table("An exponential, of an array of 4,096", rows, ["One thread; medians of repetitions that take turns."])


def lists(n_queries: int, n_docs: int, seed: int = 0) -> tuple[rw.Queries, Floats]:
    """Queries of equal length with scores of unit variance."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_docs
    y = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), y, np.repeat(np.arange(n_queries), n_docs))
    return queries, rng.normal(size=n)


def measure_lengths(n_docs: int = 60_000) -> Table:
    """Seconds of an evaluation, value and gradient, by the length of the lists."""
    objectives: dict[str, Objective] = {
        f"smooth NDCG@{CUT_OFF}, sigma = {sigma:g}": SoftPositions(NDCG(CUT_OFF), sigma)
        for sigma in (64.0, 1.0, 2.0**-6)
    }
    objectives |= {
        f"LambdaRank on NDCG@{CUT_OFF}": Lambdas(NDCG(CUT_OFF)),
        "ListNet": TopOne(),
        "smooth AP, eq. (9), sigma = 1": SigmoidRanks(rw.parse_measure("map")),
    }
    rows = []
    for name, objective in objectives.items():
        tasks = {}
        for length in LENGTHS:
            queries, scores = lists(n_docs // length, length)
            tasks[str(length)] = partial(objective.prepare(queries), scores)
        for task in tasks.values():
            task()
        cost = [seconds / n_docs * 1e9 for seconds in medians(take_turns(tasks, 15)).values()]
        figure = ", ".join(f"{each:,.0f}" for each in cost)
        growth = cost[-1] / cost[0]
        ratio = f"{growth:.2f}x"
        rows.append(below(name, figure, growth, 1.25, "x", ratio) if "NDCG" in name else Row(name, figure, ratio))
    notes = [
        f"Nanoseconds a document, value and gradient, lists of {', '.join(map(str, LENGTHS))} documents, {n_docs:,} in "
        "all; one thread; medians of 15 that take turns. Linear in the length of a list is a constant cost per "
        "document: the ratio is that of the longest to the shortest. Smooth AP costs its relevant documents times all."
    ]
    return Table("An evaluation by the length of lists", rows, notes)


def measure_protocol() -> Table:
    """The paper's protocol on OHSUMED: every alpha, every sigma, every fold, alpha chosen by validation NDCG@k."""
    title = "SmoothRank's protocol on OHSUMED"
    folder = data_root() / "OHSUMED"
    if not folder.exists():
        return Table(title, [skipped("OHSUMED", "the data is not there")])
    folds = rw.read_folds(folder)
    rw.SmoothRank(backend=rw.Threads(THREADS)).fit(folds[0][0].take(range(5)))  # compiles
    rows = []
    for k, published in PUBLISHED.items():
        ranker = rw.SmoothRank(measure=f"ndcg@{k}", k=k, scale=None, backend=rw.Threads(THREADS))
        start = perf_counter()
        paths = [ranker.fit_path(ALPHAS, train, valid=valid) for train, valid, _ in folds]
        seconds = perf_counter() - start
        tested = [
            [rw.evaluate(each, fold.test, REPORTED).values.mean(axis=1) for each in path]
            for path, fold in zip(paths, folds)
        ]
        chosen = [int(np.argmax([each.history_[-1]["valid"] for each in path])) for path in paths]
        figures = _shown(np.mean([each[at] for each, at in zip(tested, chosen)], axis=0))
        every = _shown(np.mean(tested, axis=(0, 1)))
        what = f"k = {k}: {len(ALPHAS)} alphas x 13 sigmas x {FOLDS} folds"
        figure = f"{figures}; the paper {published}; all alphas {every}; {seconds:.1f} s"
        rows.append(below(what, figure, seconds, 60.0, "s"))
    documents = sum(train.n_docs for train, _, _ in folds) // FOLDS
    notes = [
        f"{THREADS} threads, {documents:,} training documents a fold; kernels were compiled before. Trained on NDCG@k, "
        "LETOR's features as they are; alpha and the strength of the regression chosen by validation NDCG@k. Test "
        "figures by LETOR's definitions: MAP, NDCG@1, @5, @10. All alphas: their mean, without a choice."
    ]
    return Table(title, rows, notes)


def measure_spread(starts: int = 3) -> Table:
    """The protocol at k = 50 from regressions that differ by a part in 10^9, with alpha chosen by several measures."""
    title = "How far SmoothRank's figures follow rounding"
    folder = data_root() / "OHSUMED"
    if not folder.exists():
        return Table(title, [skipped("OHSUMED", "the data is not there")])
    rows = []
    for scale, features in ((None, "features as they are"), ("standard", "standardised features (the default)")):
        found = np.array([_chosen(rw.read_folds(folder), scale, seed) for seed in range(starts)])
        for i, name in enumerate(DECIDING):
            mean, spread = found[:, i].mean(axis=0), found[:, i].std(axis=0)
            figure = "; ".join(f"{m} {v:.4f} ± {d:.4f}" for m, v, d in zip(("MAP", "NDCG@10"), mean, spread))
            rows.append(Row(f"{features}, alpha by {name}", figure))
    note = (
        f"Means and standard deviations over {starts} starts; trained on NDCG@50, test figures by LETOR's definitions."
    )
    return Table(title, rows, [note])


def _chosen(folds: Sequence[Fold], scale: str | None, seed: int) -> Floats:
    """By deciding measure, the mean MAP and NDCG@10 on the test queries."""
    rng, found = np.random.default_rng(seed), []
    for train, valid, test in folds:
        regression = rw.select(rw.Regression(measure="ndcg@50", scale=scale), {"alpha": ALPHAS}, train, valid)
        start = regression.coef_ * (1.0 + 1e-9 * rng.normal(size=train.n_features))
        ranker = rw.SmoothRank(measure="ndcg@50", scale=scale, start=start, backend=rw.Threads(THREADS))
        path = ranker.fit_path(ALPHAS, train, valid=valid)
        judged = np.array([rw.evaluate(each, valid, DECIDING).values.mean(axis=1) for each in path])
        tested = np.array([rw.evaluate(each, test, REPORTED).values.mean(axis=1) for each in path])
        found.append(tested[judged.argmax(axis=0)][:, [0, -1]])
    means: Floats = np.mean(found, axis=0)
    return means


def _shown(figures: Floats) -> str:
    return " ".join(f"{value:.4f}".removeprefix("0") for value in figures)


def wild(n_queries: int, n_docs: int = DOCUMENTS, n_features: int = FEATURES, random_state: int = 0) -> rw.Queries:
    """Five grades, raw features on scales from 0.0001 to 1,000,000: saturated, counts, cut off, copies, bits."""
    rng = np.random.default_rng(random_state)
    n = n_queries * n_docs
    query = np.repeat(np.arange(n_queries), n_docs)
    aspects = rng.standard_normal((ASPECTS, n), dtype=np.float32)
    relevance = np.tanh(aspects).sum(axis=0) + rng.normal(size=n) + rng.normal(0.0, 1.0, n_queries)[query]
    y = np.searchsorted([0.5, 2.0, 3.5, 5.0], relevance).astype(np.float64)
    X = np.empty((n, n_features), dtype=np.float32)
    for j in range(n_features):
        X[:, j] = feature(KINDS[j % len(KINDS)], aspects, query, X[:, :j], rng)
    return rw.Queries(X, y, np.arange(n_queries + 1) * n_docs, np.arange(n_queries))


def print_fit(name: str) -> None:
    """Fit one ranker on the large set in this process, and print what it costs and finds."""
    queries = wild(QUERIES + QUERIES // 3)
    train, test = queries.take(range(QUERIES)), queries.take(range(QUERIES, len(queries)))
    del queries
    RANKERS[name].fit(lists_with_features())  # compiles
    forget_peak()
    before, size = resident("VmRSS"), train.X.nbytes
    start = perf_counter()
    ranker = RANKERS[name].fit(train)
    seconds = perf_counter() - start
    peak = (resident("VmHWM") - before + size) / size
    print(json.dumps({"seconds": seconds, "peak": peak, "train": ranker.score(train), "test": ranker.score(test)}))


def lists_with_features() -> rw.Queries:
    """A few queries, for compilation."""
    return rw.make_queries(5, n_features=5, random_state=0)


def measure_large() -> Table:
    """Training without any scaling by hand."""
    found = {}
    for name in RANKERS:
        done = subprocess.run([sys.executable, "-c", _FIT, name], capture_output=True, text=True, check=True)
        found[name] = json.loads(done.stdout)
    rows = []
    for name, each in found.items():
        gain = "" if name == "Regression" else f", {each['test'] - found['Regression']['test']:+.4f} on Regression's"
        figure = f"NDCG@10 {each['train']:.4f}, test {each['test']:.4f}{gain}; {each['seconds']:.0f} s"
        memory = f"{each['peak']:.2f}x"
        rows.append(below(name, figure, each["peak"], 2.5, "x the data in memory", memory))
    notes = [
        f"{QUERIES:,} queries of {DOCUMENTS} documents, {FEATURES} raw features on scales from 0.0001 to 1,000,000, "
        f"five grades; {QUERIES // 3:,} test queries; {THREADS} threads; default parameters, each in a process of its "
        "own. Memory is the peak while training, the training data included."
    ]
    return Table("Raw features of wild scales", rows, notes)


def measure() -> Iterator[Table]:
    """All tables on smooth measures."""
    yield measure_exponentials()
    yield measure_lengths()
    yield measure_protocol()
    yield measure_spread()
    yield measure_large()


if __name__ == "__main__":
    publish([measure])
