"""Searching lines: the tracked sweep against other searches, whole rounds, and the way to a given training measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.boosting import make_data
from benchmarks.paper_search import Found, Search, algorithm_2, all_pairs
from benchmarks.reading import resident
from benchmarks.report import Row, Table, below, faster, publish, skipped
from benchmarks.starting import data_root
from benchmarks.timing import THREADS, find_peer, medians, take_turns, timed
from rankwright.basics.array_types import Floats
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.measures import PreparedMeasure, ScoreLines
from rankwright.measures.table_measure import PreparedTableMeasure
from rankwright.optimisers.ascent import ClimbRules, climb_cyclic
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import MaximumLikelihoodStep, MidpointStep, search_line
from rankwright.scorers.linear import StandardScaling

MEASURE = "ndcg@10"
_BARS = (0.0, 0.8, 1.6, 2.4)  # a document's grade is how many of these its relevance passes
_FIT = "from benchmarks.searching import print_fit; import sys; print_fit(*map(int, sys.argv[1:]))"
_CHUNK = 16_384
_FEW = 50_000  # documents up to which DirectRank chooses by likelihood
_WORTH = 2.0**50
_NO_DATA = "not here; RANKWRIGHT_DATA names the folder of data sets"


def make_lines(
    n_queries: int, n_docs: int, measure: str = MEASURE, random_state: int = 0
) -> tuple[PreparedTableMeasure, Floats, Floats]:
    """A measure bound to graded documents, and lines: scores and slopes that both see some of the relevance."""
    rng, n = np.random.default_rng(random_state), n_queries * n_docs
    relevance = rng.normal(-0.5, 1.0, n)
    grades = (relevance[:, None] > _BARS).sum(axis=1)
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), grades, np.repeat(np.arange(n_queries), n_docs))
    bound = rw.parse_measure(measure).prepare(queries)
    assert isinstance(bound, PreparedTableMeasure)
    return bound, relevance + rng.normal(size=n), 0.5 * relevance + rng.normal(size=n)


def make_large(n_queries: int, n_docs: int, n_features: int, random_state: int = 0) -> rw.Queries:
    """Grades from 0 to 4; every other feature is 0 in nine documents of ten, one in three knows something.

    Made in chunks, so that making the data takes hardly more memory than the data.
    """
    rng = np.random.default_rng(random_state)
    sizes = np.clip(rng.poisson(n_docs * rng.gamma(4.0, 0.25, n_queries)), 1, 3 * n_docs)
    n = int(sizes.sum())
    relevance = rng.normal(size=n)
    level = np.repeat(rng.normal(-0.5, 0.5, n_queries), sizes)
    y = ((relevance + level)[:, None] > _BARS).sum(axis=1).astype(np.float64)
    signal = (rng.uniform(0.1, 0.5, n_features) * (np.arange(n_features) % 3 == 0)).astype(np.float32)
    X = np.empty((n, n_features), dtype=np.float32)
    for start in range(0, n, _CHUNK):
        rows = X[start : start + _CHUNK]
        rng.standard_normal(out=rows, dtype=np.float32)
        rows += relevance[start : start + _CHUNK, None].astype(np.float32) * signal
        sparse = rows[:, 1::2]
        sparse[rng.random(sparse.shape, dtype=np.float32) < 0.9] = 0.0
    return rw.Queries(X, y, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.arange(n_queries))


def sweep_lines(bound: PreparedMeasure, lines: ScoreLines) -> Callable[[], object]:
    """Our search, given the ranking at 0."""
    return lambda: bound.find_jumps(lines)


def sort_and_sweep(bound: PreparedMeasure, lines: ScoreLines) -> Callable[[], object]:
    """Our search, the ranking at 0 made first."""

    def run() -> object:
        order = np.arange(len(lines.scores))
        sort_rows(lines.scores, bound.tie_keys, bound.indptr, 0, len(bound.indptr) - 1, order)
        return bound.find_jumps(lines._replace(order=order))

    return run


def as_lines(bound: PreparedMeasure, scores: Floats, slopes: Floats) -> ScoreLines:
    """Lines ranked at 0."""
    order, n_queries = np.arange(len(scores)), len(bound.indptr) - 1
    sort_rows(scores, bound.tie_keys, bound.indptr, 0, n_queries, order)
    return ScoreLines(scores, order, slopes[:, None], 0, np.full(n_queries, _WORTH), -np.inf, np.inf, 1.0)


def check_agreement(bound: PreparedTableMeasure, scores: Floats, slopes: Floats, found: dict[str, Found]) -> None:
    """All searches must find the function that evaluating the measure finds, and the same number of changes."""
    values_at = np.random.default_rng(0).standard_cauchy(20)
    n_queries, total = len(bound.indptr) - 1, 0
    expected = [bound.values(scores + t * slopes, rw.Serial()) for t in values_at]
    for q in range(n_queries):
        rows = slice(int(bound.indptr[q]), int(bound.indptr[q + 1]))
        part = bound.slice(q, q + 1)
        jumps = part.find_jumps(as_lines(part, scores[rows], slopes[rows]))
        total += len(jumps.times)
        for i, t in enumerate(values_at):
            ours = (jumps.totals.at_low + int(jumps.deltas[jumps.times < t].sum())) / _WORTH
            for name, value in {"ours": ours, **{name: each.value(q, t) for name, each in found.items()}}.items():
                if abs(value - expected[i][q]) > 1e-9:
                    raise AssertionError(f"{name}: {value} at {t} on query {q}; expected {expected[i][q]}")
    for name, each in found.items():
        if np.count_nonzero(each.changes) != total:
            raise AssertionError(f"{name} finds {np.count_nonzero(each.changes)} changes, ours {total}")


def compare_searches(shapes: tuple[tuple[int, int], ...] = ((1_000, 24), (200, 120), (24, 1_000))) -> Table:
    """One coordinate: the tracked sweep, algorithm 2 as written, all pairs."""
    rows = []
    peers: dict[str, tuple[Search, float]] = {"algorithm 2": (algorithm_2, 3.0), "all pairs": (all_pairs, 10.0)}
    for n_queries, n_docs in shapes:
        bound, scores, slopes = make_lines(n_queries, n_docs)
        arrays = bound.arrays
        given = scores, slopes, arrays.gain, arrays.discount, arrays.scale, bound.indptr
        check_agreement(bound, scores, slopes, {name: search(*given) for name, (search, _) in peers.items()})
        lines = as_lines(bound, scores, slopes)
        tasks: dict[str, Callable[[], object]] = {
            "tracked sweep": sweep_lines(bound, lines),
            "the same, and ranking at 0 first": sort_and_sweep(bound, lines),
        }
        for name, (search, _) in peers.items():
            tasks[name] = _calling(search, given)
        seconds = medians(take_turns(tasks, 7))
        ours = seconds["tracked sweep"]
        for name, each in seconds.items():
            figure, ratio = f"{1e6 * each / n_queries:,.1f} us a query", each / ours
            if name in peers:
                rows.append(
                    faster(f"{n_docs:,} documents: {name}", figure, ratio, peers[name][1] if n_docs >= 1_000 else None)
                )
            else:
                rows.append(Row(f"{n_docs:,} documents: {name}", figure, "" if each == ours else f"{ratio:.1f}x"))
    notes = [
        "NDCG@10 of one coordinate, 24,000 documents with continuous scores and slopes; 1 thread, medians of 7 turns.",
        "All find the same function: at 20 random points, on every query, the value that ranking anew gives, to 1e-9.",
        "The ranking at 0 is known to a climb. The others begin at minus infinity and rank by slope themselves.",
        "Algorithm 2: Tan et al.'s, a scan of all documents at every jumping point. All pairs: crossings, NumPy's "
        "argsort, one pass. Both are in Numba, and good code.",
    ]
    return Table("Line searches of one coordinate", rows, notes)


def _calling(search: Search, given: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: search(*given)


def count_jumping_points(n_queries: int = 100, k: int = 5) -> Table:
    """How many jumping points a query has, by its number of documents; the paper's table 12."""
    rows, longest = [], 1_000
    bound, scores, slopes = make_lines(n_queries, longest, f"ndcg@{k}")
    for n_docs in (50, 100, 200, 500, longest):
        keep = np.tile(np.arange(longest) < n_docs, n_queries)
        a, indptr = bound.arrays, n_docs * np.arange(n_queries + 1)
        found = algorithm_2(scores[keep], slopes[keep], a.gain[keep], a.discount, a.scale, indptr)
        points, changes = len(found.times) / n_queries, np.count_nonzero(found.changes) / n_queries
        rows.append(
            Row(
                f"{n_docs:,} documents a query",
                f"{points:.1f} jumping points, {changes:.1f} of them change NDCG@{k}",
                f"{points / n_docs:.3f}",
            )
        )
    notes = [
        f"Truncation {k}; the first documents of lists of {longest:,}, means of {n_queries} queries and one line each.",
        "The ratio is of jumping points to documents. Tan et al. (section 2.5): about 0.5 at 100, 0.062 at 1,000.",
    ]
    return Table("Jumping points of a query", rows, notes)


class Fit(NamedTuple):
    """One round in a process of its own."""

    seconds: float
    steps: int
    documents: int
    size: int  # bytes of X
    peak: int  # bytes that data and fit took at most


def fit_round(queries: rw.Queries, threads: int) -> tuple[float, rw.DirectRank]:
    """One round of all coordinates from equal weights, everything counted that a fit does."""
    backend = rw.Threads(threads)
    ranker = rw.DirectRank(
        measure=MEASURE, interval_point="middle", start="equal", n_restarts=1, max_iter=1, backend=backend
    )
    return timed(lambda: ranker.fit(queries)), ranker


def fit_apart(n_queries: int, n_docs: int, n_features: int) -> Fit:
    """Make data and fit in a fresh process."""
    command = [sys.executable, "-c", _FIT, str(n_queries), str(n_docs), str(n_features)]
    root = Path(__file__).parents[1]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root).stdout
    return Fit(*json.loads(output))


def print_fit(n_queries: int, n_docs: int, n_features: int) -> None:
    """Fit, and print as JSON what ``Fit`` holds."""
    fit_round(make_large(50, n_docs, 6), THREADS)
    before = resident("VmRSS")
    queries = make_large(n_queries, n_docs, n_features)
    seconds, ranker = fit_round(queries, THREADS)
    peak = resident("VmHWM") - before
    print(json.dumps([seconds, len(ranker.history_) - 1, queries.n_docs, queries.X.nbytes, peak]))


def measure_rounds(shapes: tuple[tuple[int, int, int], ...] = ((20_000, 24, 519), (6_000, 120, 136))) -> Table:
    """What one round costs at the size of Yahoo's and Microsoft's data, and the memory of it."""
    rows = []
    for n_queries, n_docs, n_features in shapes:
        fit = fit_apart(n_queries, n_docs, n_features)
        what = f"{n_features} coordinates, {n_queries:,} queries x {n_docs} documents"
        figure = f"{fit.seconds:.1f} s ({1000 * fit.seconds / n_features:.0f} ms a coordinate, {fit.steps} steps taken)"
        memory = f"{fit.peak / 1e6:,.0f} MB at most; X takes {fit.size / 1e6:,.0f} MB"
        share = fit.peak / fit.size
        first = n_features == shapes[0][2]
        rows.append(below(what, figure, fit.seconds, 60, "s") if first else Row(what, figure))
        rows.append(below(f"memory: {fit.documents:,} documents", memory, share, 2.5, "times", f"{share:.2f}"))
    notes = [
        f"DirectRank on NDCG@10, start=equal, n_restarts=1, max_iter=1, point=middle, {THREADS} threads; grades 0 "
        "to 4, every other feature 0 in nine documents of ten.",
        "Seconds of the whole fit, once: checks, deviations and the evaluation at the end are in it.",
        "Peak resident memory of a fresh process, less what it held after importing and a tiny fit: the data is in it. "
        "The ratio is to X (float32).",
        "Tan et al.: about 10 minutes for a round of 519 coordinates, one 2.5 GHz core, C++.",
    ]
    return Table("One round of DirectRank", rows, notes)


def cost_of_coordinate(queries: rw.Queries) -> float:
    """Seconds of one exact line search: the mean over all columns, the median of three turns."""
    landscape = Landscape.of(queries, rw.parse_measure(MEASURE).for_training(), rw.Threads(THREADS))
    point = landscape.evaluate(np.ones(queries.n_features))

    def search_all() -> None:
        for column in range(queries.n_features):
            search_line(landscape, point, column)

    search_all()
    return median(timed(search_all) for _ in range(3)) / queries.n_features


def measure_growth(n_docs: int = 120_000, n_features: int = 10) -> Table:
    """The cost of a coordinate by documents per query, and by queries."""
    rows, cost_of = [], {}
    for length in (24, 60, 120, 250, 500, 1_000):
        queries = make_large(n_docs // length, length, n_features)
        cost_of[length] = cost_of_coordinate(queries) / queries.n_docs
        rows.append(
            Row(
                f"{len(queries):,} queries x {length:,} documents",
                f"{1e9 * cost_of[length]:.0f} ns a document",
                f"{cost_of[length] / cost_of[24]:.2f}",
            )
        )
    first = 0.0
    for factor in (1, 4, 16):
        queries = make_large(factor * n_docs // 120, 120, n_features)
        cost = cost_of_coordinate(queries) / queries.n_docs
        first = first or cost
        rows.append(
            Row(f"{factor} x {n_docs // 120:,} queries", f"{1e9 * cost:.0f} ns a document", f"{cost / first:.2f}")
        )
    notes = [
        f"One exact line search on NDCG@10 from equal weights: means over {n_features} features, half of them sparse, "
        f"medians of 3; {THREADS} threads.",
        f"Above: about {n_docs:,} documents, ratios to lists of 24. Below: lists of 120, ratios to 1 x.",
        "A ratio of 1 is linear growth with the documents.",
    ]
    return Table("Cost of a coordinate", rows, notes)


class Race(NamedTuple):
    """Data, and the seeds that FastRank gets."""

    name: str
    queries: rw.Queries
    seeds: tuple[int, ...]


def find_races() -> Iterator[Race | Row]:
    """The data sets of the comparison with FastRank, or rows that say what is missing."""
    for name in ("MQ2008", "OHSUMED"):
        folder = data_root() / name
        if folder.is_dir():
            yield Race(f"{name}, fold 1", rw.read_folds(folder)[0].train, (0, 1))
        else:
            yield skipped(f"{name}, fold 1", _NO_DATA)
    yield Race("synthetic", rw.scale_features(make_data(500), "standard"), (0,))


def train_fastrank(fastrank: Any, queries: rw.Queries, seed: int) -> tuple[float, float]:
    """The seconds of FastRank's coordinate ascent, and the training measure where it stops."""
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)  # read when it first starts threads
    rows = np.repeat(np.arange(len(queries)), queries.sizes)
    data = fastrank.CDataset.from_numpy(queries.X, queries.y, rows)
    request = fastrank.TrainRequest.coordinate_ascent()
    request.measure, request.params.num_restarts, request.params.quiet, request.params.seed = MEASURE, 5, True, seed
    start = perf_counter()
    model = data.train_model(request)
    seconds = perf_counter() - start
    scores = np.array(model.predict_dense_scores(data))
    value = rw.parse_measure(MEASURE).mean(queries, scores)
    theirs = float(np.mean(list(data.evaluate(model, MEASURE).values())))
    if abs(value - theirs) > 1e-9:
        raise AssertionError(f"FastRank's {MEASURE} is {theirs}, ours {value}")
    return seconds, value


class Climbed(NamedTuple):
    """How far climbs got."""

    seconds: float  # infinite if not as far as they should
    value: float
    climbs: int

    def row(self, name: str, theirs: float, target: float | None = None) -> Row:
        """The row of a climb beside FastRank's seconds."""
        if np.isinf(self.seconds):
            return faster(name, f"not reached: {self.value:.4f} after {self.climbs} climbs", 0.0, target)
        return faster(
            name, f"{self.seconds:.2f} s to {self.value:.4f}, in climb {self.climbs}", theirs / self.seconds, target
        )


def climb_to(goal: float, queries: rw.Queries, start: str, n_starts: int = 20) -> Climbed:
    """Climb as DirectRank does, from one start after another, until the measure is reached."""
    begun, rng = perf_counter(), np.random.default_rng(0)
    deviation = StandardScaling.fit(queries).deviation
    landscape = Landscape.of(queries, rw.parse_measure(MEASURE).for_training(), rw.Threads(THREADS))
    drawn = np.concatenate([np.ones((1, queries.n_features)), rng.normal(size=(n_starts - 1, queries.n_features))])
    starts, rngs, best = drawn / np.where(deviation > 0, deviation, np.inf), rng.spawn(n_starts), -np.inf
    if start == "regression":
        starts[0] = rw.Regression(backend=rw.Threads(THREADS)).fit(queries).coef_
    rules = ClimbRules(choice=MaximumLikelihoodStep(10) if queries.n_docs <= _FEW else MidpointStep())
    for i in range(n_starts):
        for steps in climb_cyclic(landscape, landscape.evaluate(starts[i]), rules, rngs[i]):
            best = max(best, steps[-1].value)
            if best >= goal:
                return Climbed(perf_counter() - begun, best, i + 1)
    return Climbed(np.inf, best, n_starts)


def _run_race(race: Race, fastrank: Any, seed: int) -> Iterator[Row]:
    seconds, goal = train_fastrank(fastrank, race.queries, seed)
    yield Row(f"{race.name}: FastRank, seed {seed}", f"{seconds:.1f} s to {goal:.4f}")
    tries = sorted(climb_to(goal, race.queries, "regression") for _ in range(3))
    yield tries[1].row(f"{race.name}: rankwright", seconds, 10.0)
    yield climb_to(goal, race.queries, "equal").row(f"{race.name}: rankwright, start=equal", seconds)


def race_fastrank() -> Table:
    """How soon the training measure is reached at which FastRank stops."""
    title, fastrank = "Reaching FastRank's training measure", find_peer("fastrank")
    if fastrank is None:
        return Table(title, [skipped("FastRank")])
    rows = []
    climb_to(np.inf, make_data(5), "regression", 1)  # compiles
    for race in find_races():
        if isinstance(race, Row):
            rows.append(race)
            continue
        for seed in race.seeds:
            rows.extend(_run_race(race, fastrank, seed))
    notes = [
        f"FastRank: coordinate ascent, 5 restarts, which its {THREADS} threads share, its defaults otherwise. Building "
        "its data set is not counted. Where it stops differs from run to run, even with one seed.",
        "Rankwright: DirectRank's climbs, by its defaults, from the weights of a regression and then from random ones, "
        f"at most 20, one after the other on {THREADS} threads, to the end of the first round that is as good. The "
        "regression, binding and climbs that fail are counted; the median of 3.",
        "start=equal: from equal weights and then the same random ones; once, for information.",
        "FastRank's NDCG is ours: 2^l - 1, log2, ties pessimistic, 0 without a relevant document; checked to 1e-9.",
        "Training NDCG@10. Synthetic: 500 queries of about 120 documents, 46 features, standardised for both.",
    ]
    return Table(title, rows, notes)


def measure_untruncated() -> Table:
    """MAP over whole lists."""
    title, folder = "DirectRank on MAP, not truncated", data_root() / "OHSUMED"
    if not folder.is_dir():
        return Table(title, [skipped("OHSUMED", _NO_DATA)])
    queries = rw.read_letor(*sorted(folder.glob("S*.txt.gz")))
    ranker = rw.DirectRank(measure="map", start="equal", n_restarts=1, max_iter=1, backend=rw.Threads(THREADS))
    ranker.fit(rw.make_queries(5, random_state=0))  # compiles
    seconds = median(timed(lambda: ranker.fit(queries)) for _ in range(3))
    steps = len(ranker.history_) - 1
    figure = f"{seconds:.2f} s a round ({1000 * seconds / queries.n_features:.0f} ms a coordinate, {steps} steps taken)"
    row = below(f"OHSUMED, {queries.n_docs:,} documents, {queries.n_features} features", figure, seconds, 5, "s")
    notes = [
        f"All {len(queries)} queries, up to {queries.sizes.max()} documents each; start=equal, n_restarts=1, "
        f"max_iter=1, {THREADS} threads; the median of 3 fits, all of a fit counted.",
    ]
    return Table(title, [row], notes)


def measure() -> Iterator[Table]:
    """All tables on line searches."""
    yield compare_searches()
    yield count_jumping_points()
    yield measure_rounds()
    yield measure_growth()
    yield race_fastrank()
    yield measure_untruncated()


if __name__ == "__main__":
    publish([measure])
