"""FRank at the size of its paper: ``python -m benchmarks.web_search``, which takes minutes.

The data is made up, and shaped like Tsai et al.'s tables 2 and 5: judged pages rated 1 to 5, unjudged ones rated 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.paper_stumps import list_pairs, list_stumps, try_all
from benchmarks.reading import resident
from benchmarks.report import Row, Table, below, publish
from benchmarks.timing import THREADS, timed
from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.objectives.pairwise_objectives import count_query_pairs
from rankwright.optimisers.weak.threshold_stumps import FeatureBins

QUERIES, FEATURES, ROUNDS = 12_000, 619, 271
SIZES = (1_000, 2_000, 4_000, 8_000, 12_000)
PER_QUERY = 385_293 / 12_000, 2_635_976 / 12_000  # documents, pairs: table 2
UNJUDGED = 24
BINS = 255
ASPECTS = 8  # of relevance, of which a feature shows one
KINDS = ("saturated", "count", "cut", "copy", "useless", "saturated", "count", "constant", "binary", "useless")
_EDGE = 20  # rounds at the beginning and at the end that are told apart
_FIT = "from benchmarks.web_search import print_fit; import sys; print_fit(*map(int, sys.argv[1:]))"


def web_search(n_queries: int, random_state: int = 0, n_features: int = FEATURES) -> rw.Queries:
    """Queries of a web search engine.

    A page has several aspects; its relevance is a saturating sum of them, of which raters see a noisy version, on a
    level that differs by query. A feature shows one aspect through noise, shifted by query: saturated, as a count,
    cut off below, or as a bit; others are noisy copies, constant or useless. Scales run from 0.0001 to 1,000,000.
    """
    rng = np.random.default_rng(random_state)
    judged = 1 + rng.poisson(7.1 * rng.gamma(3.0, 1.0 / 3.0, n_queries))
    sizes = judged + UNJUDGED
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    n, query = int(indptr[-1]), np.repeat(np.arange(n_queries), sizes)
    seen = np.arange(n) - indptr[query] < judged[query]
    aspects = rng.standard_normal((ASPECTS, n), dtype=np.float32) - np.float32(0.6) * ~seen
    relevance = np.tanh(aspects).sum(axis=0) + 1.0 * rng.normal(size=n) + rng.normal(0.0, 1.0, n_queries)[query]
    y = np.where(seen, 1 + np.searchsorted([-0.5, 1.5, 3.5, 5.5], relevance), 0)
    X = np.empty((n, n_features), dtype=np.float32)
    for j in range(n_features):
        X[:, j] = feature(KINDS[j % len(KINDS)], aspects, query, X[:, :j], rng)
    return rw.Queries(X, y.astype(np.float64), indptr, np.arange(n_queries))


def feature(kind: str, aspects: Floats, query: Ints, earlier: Floats, rng: np.random.Generator) -> Floats:
    n, scale = aspects.shape[1], np.float32(10.0 ** rng.uniform(-4, 6))
    values: Floats = rng.standard_normal((n,), dtype=np.float32)
    if kind == "useless":
        values = values * scale
    elif kind == "constant":
        values = np.full(n, scale)
    elif kind == "copy":
        original = earlier[:, rng.integers(earlier.shape[1])]
        values = original + np.float32(0.3 * float(original.std())) * values
    else:
        shift = rng.normal(0.0, 0.5, int(query[-1]) + 1).astype(np.float32)[query]
        view = np.float32(rng.uniform(0.2, 1.0)) * aspects[rng.integers(len(aspects))] + shift + values
        values = _shown(kind, view, scale, rng)
    return values


def _shown(kind: str, view: Floats, scale: np.float32, rng: np.random.Generator) -> Floats:
    """An informative feature, from the aspect it shows, seen through noise."""
    values: Floats = np.tanh(view) * scale
    if kind == "cut":
        values = np.maximum(view - np.float32(rng.uniform(-1, 1)), 0) * scale
    elif kind == "binary":
        values = (view > 1).astype(np.float32)
    elif kind == "count":
        values = rng.poisson(np.exp(0.7 * view)).astype(np.float32)
    return values


def count_pairs(queries: rw.Queries) -> int:
    """Documents of one query with different ratings."""
    return int(count_query_pairs(queries.y, queries.indptr).sum())


def check_shape(queries: rw.Queries) -> None:
    """As many documents and pairs as in the paper, to 3%; small sets vary more."""
    found = queries.n_docs / len(queries), count_pairs(queries) / len(queries)
    if len(queries) >= QUERIES and any(abs(a / b - 1.0) > 0.03 for a, b in zip(found, PER_QUERY, strict=True)):
        raise AssertionError(f"{found} documents and pairs a query, the paper has {PER_QUERY}")


class Fit(NamedTuple):
    """What a fit costs and finds; means over rounds."""

    total: float
    once: float  # seconds before the first round
    a_round: float
    early: float  # a round, at the beginning
    late: float
    rounds: int
    scanned: float
    tried: float
    loss: float
    train: float


def fit(queries: rw.Queries, n_estimators: int) -> Fit:
    """Fit once, and note when every round ends."""
    times: list[float] = []

    def note(what: str, done: int, total: int) -> None:
        if what == "rounds":
            times.append(perf_counter())

    ranker = rw.FRank(n_estimators=n_estimators, max_bins=BINS, backend=rw.Threads(THREADS))
    with progress.listen(note):
        start = perf_counter()
        ranker.fit(queries)
        total = perf_counter() - start
    rounds, edge = [b - a for a, b in pairwise(times)], min(_EDGE, n_estimators)
    history: list[dict[str, float]] = ranker.history_
    scanned, tried = (float(np.mean([record[name] for record in history])) for name in ("scanned", "tried"))
    early, late = float(np.mean(rounds[:edge])), float(np.mean(rounds[-edge:]))
    last = history[-1]
    return Fit(
        total,
        times[0] - start,
        float(np.mean(rounds)),
        early,
        late,
        len(history),
        scanned,
        tried,
        last["loss"],
        last["train"],
    )


class Whole(NamedTuple):
    """A fit in a process of its own."""

    fit: Fit
    documents: int
    pairs: int
    stumps: int
    size: int  # bytes of X
    peak: int  # the most bytes, X among them
    pair_stump: float  # seconds of the naive search for a pair and a stump


def fit_apart(n_queries: int, n_estimators: int) -> Whole:
    """Make data and fit in a fresh process."""
    command = [sys.executable, "-c", _FIT, str(n_queries), str(n_estimators)]
    root = Path(__file__).parents[1]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root).stdout
    cost, *others = json.loads(output)
    return Whole(Fit(*cost), *others)


def print_fit(n_queries: int, n_estimators: int) -> None:
    """Fit, and print as JSON what ``Whole`` holds."""
    fit(web_search(50, n_features=20), 2)
    before = resident("VmRSS")
    queries = web_search(n_queries)
    check_shape(queries)
    cost = fit(queries, n_estimators)
    peak = resident("VmHWM") - before
    stumps = list_stumps(FeatureBins.of(queries, BINS, rw.Threads(THREADS)))
    pairs = list_pairs(queries)
    some = stumps[:: len(stumps) // 5 + 1]
    naive = timed(partial(try_all, queries.X, pairs, np.zeros(queries.n_docs), some, 1e-4))
    a_pair = naive / len(some) / len(pairs.i)
    print(json.dumps([cost, queries.n_docs, len(pairs.i), len(stumps), queries.X.nbytes, peak, a_pair]))


def measure_whole(n_queries: int = QUERIES, n_estimators: int = ROUNDS) -> Table:
    """All rounds on all queries."""
    whole = fit_apart(n_queries, n_estimators)
    cost, share, minutes = whole.fit, whole.peak / whole.size, whole.fit.total / 60
    naive = whole.pair_stump * whole.pairs * whole.stumps
    a_round = f"{cost.a_round:.2f} s; the first {_EDGE} {cost.early:.2f} s each, the last {_EDGE} {cost.late:.2f} s"
    memory = f"{whole.peak / 1e6:,.0f} MB at most; X takes {whole.size / 1e6:,.0f} MB"
    searched = f"{cost.scanned:.0f} of {FEATURES} features scanned, {cost.tried:.1f} of {whole.stumps:,} stumps tried"
    extrapolated = f"{naive / 3600:,.1f} hours a round, {cost.rounds * naive / 86400:,.0f} days in all: extrapolated"
    rows = [
        below(
            f"{cost.rounds} rounds", f"{minutes:.1f} minutes, {cost.once:.1f} s of them once", minutes, 10, "minutes"
        ),
        Row("a round, on average", a_round),
        below("memory", memory, share, 3.0, "times", f"{share:.2f}"),
        Row("the search of a round, on average", searched),
        Row("every stump tried on every pair", extrapolated, f"{naive / cost.a_round:,.0f}x"),
        Row("reached", f"loss {cost.loss:.3f}, train NDCG@10 {cost.train:.3f}"),
    ]
    notes = [
        f"FRank, {n_queries:,} queries, {whole.documents:,} documents, {whole.pairs:,} pairs, {FEATURES} features, "
        f"{BINS} bins; {THREADS} threads. Tsai et al. (tables 2 and 5): 385,293 documents, 2,635,976 pairs.",
        "Seconds of one whole fit: checks, binning and the measure of every round are in it. Peak resident memory of a "
        "fresh process, less what it held after importing and a tiny fit: the data is in it. The ratio is to X.",
        f"The naive search in NumPy took {1e9 * whole.pair_stump:.0f} ns for a pair and a stump, with a few stumps on "
        "these pairs, on one thread.",
        "Made-up data: relevance is a saturating sum of eight aspects of a page, on a level that differs by query, and "
        "raters see it through noise. Of ten features two show an aspect through noise and saturation, two as a "
        "count, one cut off below, one as a bit, all shifted by query; one is a noisy copy, one constant, two are "
        f"useless. Scales run from 0.0001 to 1,000,000. {UNJUDGED} unjudged pages a query: the paper's 20 would make "
        "more pairs with its judged pages (145,293 x 20) than it counts.",
    ]
    return Table("FRank at the size of its paper", rows, notes)


def measure_growth(sizes: tuple[int, ...] = SIZES, n_estimators: int = 40) -> Table:
    """The cost of a round by the number of queries."""
    queries, rows, first = web_search(max(sizes)), [], 0.0
    fit(queries.slice(0, 20), 2)
    for size in sizes:
        part = queries.slice(0, size)
        cost, pairs = fit(part, n_estimators), count_pairs(part)
        each = cost.a_round / pairs * 1e6
        first = first or each
        figure = (
            f"{cost.a_round:.3f} s a round, {each:.3f} s per million pairs; {cost.scanned:.0f} features scanned; "
            f"{cost.once:.1f} s once"
        )
        what = f"{size:,} queries, {part.n_docs:,} documents, {pairs:,} pairs"
        rows.append(Row(what, figure, f"{each / first:.2f}"))
    notes = [
        f"The first queries of one set, made as above; means of {n_estimators} rounds of one fit each; {THREADS} "
        "threads. Every set takes a course of its own, and so scans other features.",
        "The ratio is of a round's cost per pair to the smallest set's: 1 is linear growth.",
    ]
    return Table("FRank with the number of queries", rows, notes)


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """Both tables."""
    yield measure_whole(options.queries, options.rounds)
    yield measure_growth(tuple(options.sizes), options.growth_rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web_search", description="FRank at its paper's size.")
    parser.add_argument("--queries", type=int, default=QUERIES, help="queries of the whole set")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds on it")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="queries of the sets that show the growth")
    parser.add_argument("--growth-rounds", type=int, default=40, help="rounds on these")
    publish([partial(measure, parser.parse_args())])


if __name__ == "__main__":
    main()
