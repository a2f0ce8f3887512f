"""Line searches over long lists: the same intervals as with all jumps kept, in memory linear in the documents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.line_search import crossings, inner_points, values_along

import rankwright as rw
from rankwright.kernels.measures.sorting import bucket_sort
from rankwright.measures import jumps, table_measure
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import search_line

KEPT = 1 << 60  # pairs: all jumps of all lists are kept


def make_list(kind, n, seed=0, n_queries=1):
    """Two features of queries of n documents, about 40 in 100 of them relevant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * n_queries, 2))
    if kind == "tied":
        X = np.round(X)
    elif kind == "duplicated":
        X = X[rng.integers(0, max(n // 3, 1), len(X))]
    elif kind == "binary":
        X = (X > 0).astype(float)
    y = (X[:, 0] + rng.normal(size=len(X)) > 0.3) * rng.integers(1, 4, len(X))
    return rw.Queries.from_arrays(X, y, qid=np.repeat(np.arange(n_queries), n))


def search(queries, measure, start, direction, most_pairs, room=64, low=-np.inf, high=np.inf):
    """The tally, the best interval and the whole profile along a line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_measure, "MAX_PAIRS", most_pairs)
        patch.setattr(jumps, "_ROOM", room)
        patch.setattr(jumps, "_PER_DOCUMENT", 1)
        patch.setattr(table_measure, "MAX_TOP_DEPTH", 0)
        landscape = Landscape.of(queries, rw.parse_measure(measure).for_training(), rw.Serial())
        here = landscape.evaluate(np.asarray(start, dtype=float))
        jumping = landscape.find_jumps(here, direction, low, high)
        found = search_line(landscape, here, direction, low=low, high=high)
        profile = landscape.profile(here, direction, low, high)
    return jumping, (found.low, found.high, found.value, found.t), profile


# all lines of "one point" meet where the weight of the only feature that counts is 0
CASES = [("random", (1.0, 0.5)), ("tied", (1.0, 0.5)), ("duplicated", (0.3, -1.0)), ("binary", (1.0, 0.3)), ("one point", (0.3, 0.0))]  # fmt: skip


@pytest.mark.parametrize(("kind", "start"), CASES)
@pytest.mark.parametrize("measure", ["map", "ndcg", "err", "ap@60", "rbp"])
@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-0.4, 1.5), (0.0, np.inf)])
def test_the_interval_is_that_of_all_jumps_to_the_bit(kind, start, measure, low, high):
    queries = make_list(kind, 90, n_queries=2)
    for direction in (0, 1, np.array([1.0, -0.7])):
        kept, found, profile = search(queries, measure, start, direction, KEPT, low=low, high=high)
        dropped, again, joined = search(queries, measure, start, direction, 0, low=low, high=high)
        assert again == found
        assert (dropped.totals.at_zero, dropped.totals.at_low) == (kept.totals.at_zero, kept.totals.at_low)
        assert dropped.shards.handles[0].long_lists
        assert len(dropped.shards.handles[0].times) == 0
        if kind == "random":
            np.testing.assert_array_equal(joined.times, profile.times)
            np.testing.assert_array_equal(joined.values, profile.values)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from([kind for kind, _ in CASES]),
    n=st.integers(2, 40),
    seed=st.integers(0, 2**16),
    room=st.sampled_from([40, 64, 1000]),
)
def test_the_value_is_that_of_trying_every_interval(kind, n, seed, room):
    queries = make_list(kind, n, seed, n_queries=2)
    start = np.random.default_rng(seed).integers(-2, 3, 2).astype(float)
    scores, slopes = queries.X.astype(float) @ start, queries.X[:, 0].astype(float)
    if np.ptp(slopes) == 0.0:
        return
    measure = rw.parse_measure("map").for_training()
    points = inner_points(crossings(queries, scores, slopes))
    expected = values_along(queries, measure, scores, slopes, points)
    _, found, profile = search(queries, "map", start, 0, 0, room)
    assert found[2] == pytest.approx(expected.max(), abs=1e-12)
    assert profile(np.array(points)) == pytest.approx(expected, abs=1e-12)


def test_documents_that_all_have_a_gain_are_followed_without_meetings():
    queries = make_list("random", 80)
    queries = rw.Queries.from_arrays(queries.X, 1.0 + queries.y, qid=np.zeros(80, dtype=int))
    assert search(queries, "ndcg", (1.0, 0.2), 1, 0)[1] == search(queries, "ndcg", (1.0, 0.2), 1, KEPT)[1]


def test_lists_are_swept_again_only_from_snapshots_before_the_wanted_buckets():
    queries = make_list("random", 300)
    jumping, _, profile = search(queries, "map", (1.0, 0.5), 1, 0)
    right, left = jumping.shards.handles[0].long_lists
    assert right.n_snapshots > 10
    wanted = np.zeros(4096, dtype=np.int64)
    wanted[3000] = 1
    expected = (profile.times >= jumping.edges[3000]) & (profile.times < jumping.edges[3001])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jumps, "_ROOM", 64)
        patch.setattr(jumps, "_PER_DOCUMENT", 1)
        picked = right.select_jumps(wanted)
        assert len(left.select_jumps(wanted)) == 0
    np.testing.assert_array_equal(np.sort(picked[:, 0].view(np.float64)), profile.times[expected])
    assert set(picked[:, 2]) == {3000}


def test_meetings_are_sorted_whatever_rounding_does_to_their_buckets():
    rng = np.random.default_rng(0)
    keys = np.nextafter(1.5, rng.integers(0, 2, 4000) * 3.0)
    keys = np.concatenate([keys, 1.5 + rng.integers(-4, 5, 4000) * 2.0**-52, rng.random(3000) * 3])
    ordered, items = bucket_sort(keys, np.arange(len(keys)), len(keys), 0.0)
    np.testing.assert_array_equal(ordered, np.sort(keys))
    np.testing.assert_array_equal(items, np.argsort(keys, kind="stable"))


PEAK = """
import numpy as np, rankwright as rw
from tests.unit.test_long_lists import make_list
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import search_line

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

def search(n):
    landscape = Landscape.of(make_list("random", n), rw.parse_measure("map").for_training(), rw.Serial())
    here = landscape.evaluate(np.array([1.0, 0.5]))
    return lambda: search_line(landscape, here, 1)

search(1200)()
search(100)()
task = search(4000)
before = peak()
task()
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's account of memory")
def test_memory_is_linear_in_the_documents():
    """4,000 documents, 40 in 100 relevant: 150 MB where all jumps and meetings are kept."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 40.0
