"""Inspection of data: every planted fault is found, clean sets and real ones raise nothing untrue."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from benchmarks.inspecting import INFERENCES, make_clean_set
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import data_folder
from tests.reference.inspection import count_in_order, count_pairs, summarise_column

import rankwright as rw
from rankwright.analysis.inspection import KINDS, inspect_quickly
from rankwright.analysis.inspection.order_findings import measure_row_order
from rankwright.cli import run
from rankwright.data.mapped_writer import write_queries
from rankwright.kernels.data.column_summaries import summarise_columns
from rankwright.kernels.data.pair_orders import count_ordered_pairs

ROOT = Path(__file__).parents[2]


def clean(n_queries: int = 60, seed: int = 0, **options) -> rw.Queries:
    return rw.make_queries(n_queries, n_docs=15, n_features=7, random_state=seed, **options)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def with_feature(values: np.ndarray, base: rw.Queries | None = None, **options) -> rw.Queries:
    """Return clean queries with one more feature, the last."""
    queries = base or clean()
    X = np.column_stack([queries.X, values])
    return rw.Queries.from_arrays(X, queries.y, queries.row_qid, docid=queries.docid, **options)


def with_grades(y: np.ndarray) -> rw.Queries:
    return clean().replace(y=np.asarray(y, dtype=float))


def take_rows(queries: rw.Queries, rows: np.ndarray) -> rw.Queries:
    return rw.Queries.from_arrays(queries.X[rows], queries.y[rows], queries.row_qid[rows], docid=queries.docid[rows])


def flip(y: np.ndarray, share: float) -> np.ndarray:
    return np.where(rng().random(len(y)) < share, 2 - y, y)


BASE, WIDE = clean(), clean(240)
Y, N, QUERY = BASE.y, BASE.n_docs, BASE.row_qid
PLACE = np.concatenate([np.arange(n) for n in BASE.sizes])
CODES = np.array([7.0, 3.0, 5.0])  # of grades 0, 1, 2: the order of the codes means nothing
NAMED = {"features": [*"abcdefg", "h"]}

PLANTED: list[tuple[str, str, Callable[[], rw.Queries]]] = [
    ("label-leak", "the label", lambda: with_feature(Y)),
    ("label-leak", "the label upside down", lambda: with_feature(3 - 2 * Y)),
    ("label-leak", "the label with a little noise", lambda: with_feature(Y + 0.05 * rng().normal(size=N))),
    ("label-leak", "whether relevant", lambda: with_feature((Y > 0) * 1.0)),
    ("label-leak", "codes of grades", lambda: with_feature(CODES[Y.astype(int)])),
    ("label-leak", "missing if not relevant", lambda: with_feature(np.where(Y > 0, rng().normal(size=N), np.nan))),
    ("label-leak", "known for some", lambda: with_feature(np.where(rng().random(N) < 0.5, Y, np.nan))),
    ("label-leak", "a few errors", lambda: with_feature(flip(WIDE.y, 0.003), WIDE)),
    ("label-name", "a name", lambda: with_feature(rng().normal(size=N), features=[*"abcdefg", "relevance"])),
    ("row-order", "sorted by grade", lambda: take_rows(BASE, np.lexsort((-Y, QUERY)))),
    ("row-order", "worst first", lambda: take_rows(BASE, np.lexsort((Y, QUERY)))),
    ("row-order", "weakly", lambda: take_rows(BASE, np.lexsort((-Y - rng().normal(size=N), QUERY)))),
    ("query-order", "many relevant first", lambda: BASE.take(np.argsort(-np.add.reduceat(Y, BASE.indptr[:-1]) / BASE.sizes))),
    ("id-feature", "the query id", lambda: with_feature(QUERY)),
    ("id-feature", "another query id", lambda: with_feature(rng().permutation(100)[QUERY] + 500)),
    ("id-feature", "the row number", lambda: with_feature(np.arange(N))),
    ("id-feature", "the row number in the query", lambda: with_feature(PLACE + 1)),
    ("id-feature", "shuffled numbers", lambda: with_feature(rng().permutation(N))),
    ("id-feature", "numbers of a corpus", lambda: with_feature(rng().integers(0, 8_000_000, N))),
    ("id-feature", "the document id", lambda: with_feature([int(name[1:]) // 3 for name in BASE.docid], BASE.replace(docid=np.array([f"D{int(name[1:]) // 3}" for name in BASE.docid])))),
    ("id-feature", "a name", lambda: with_feature(rng().normal(size=N), features=[*"abcdefg", "doc_id"])),
    ("negative-grades", "below 0", lambda: with_grades(np.where(Y == 0, -1, Y))),
    ("grades-like-scores", "scores", lambda: with_grades(np.abs(Y + rng().normal(size=N)))),
    ("high-grades", "percent", lambda: with_grades(Y * 50)),
    ("grade-gaps", "0, 1, 4", lambda: with_grades(Y**2)),
    ("few-queries", "eight", lambda: clean(8)),
    ("no-relevant-document", "all 0 in two", lambda: with_grades(np.where(QUERY < 3, 0, Y))),
    ("equal-grades", "all 2 in two", lambda: with_grades(np.where(QUERY < 3, 2, Y))),
    ("single-document", "one document", lambda: take_rows(BASE, (QUERY > 1) | (PLACE == 0))),
    ("tied-top-grades", "nearly all relevant", lambda: with_grades(np.where(PLACE < 2, 0, 1))),
    ("constant-feature", "a constant", lambda: with_feature(np.full(N, 3.0))),
    ("empty-feature", "all missing", lambda: with_feature(np.full(N, np.nan))),
    ("missing-values", "some missing", lambda: with_feature(np.where(PLACE == 1, np.nan, rng().normal(size=N)))),
    ("missing-as-number", "-1 among counts", lambda: with_feature(np.where(PLACE % 5 == 1, -1, rng().poisson(9, N) * 3))),
    ("missing-as-number", "9999 among shares", lambda: with_feature(np.where(PLACE % 5 == 1, 9999, rng().random(N)))),
    ("missing-as-number", "-999 among lengths", lambda: with_feature(np.where(PLACE == 1, -999, 5000 * rng().random(N)))),
    ("query-feature", "of the query", lambda: with_feature(rng().normal(size=99)[QUERY])),
    ("outliers", "one huge value", lambda: with_feature(np.where(np.arange(N) == 5, 1e9, rng().normal(size=N)))),
    ("duplicated-columns", "a copy", lambda: with_feature(BASE.X[:, 2])),
    ("duplicated-columns", "a copy with -0 and NaN", lambda: with_feature(np.array([0.0, np.nan, 1.0])[PLACE % 3], with_feature(np.array([-0.0, np.nan, 1.0])[PLACE % 3]))),
    ("duplicated-rows", "a row twice", lambda: take_rows(BASE, np.append(np.arange(N), [4, 5]))),
    ("duplicated-docids", "a row twice", lambda: take_rows(BASE, np.append(np.arange(N), [4, 5]))),
    ("contradictory-rows", "other grades", lambda: BASE.with_X(np.where(PLACE[:, None] < 4, np.float32(1), BASE.X))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "make"), [case[::2] for case in PLANTED], ids=[" ".join(case[:2]) for case in PLANTED]
)
def test_a_planted_fault_is_found_with_its_meaning_and_the_way_out(kind, make):
    assert [f for f in rw.inspect(BASE).findings if f.kind == kind and kind in INFERENCES] == []
    [finding, *_] = rw.inspect(make())[kind]
    assert (finding.meaning, finding.way_out, finding.severity) == (
        KINDS[kind].meaning,
        KINDS[kind].way_out,
        KINDS[kind].severity,
    )
    assert finding.what


FEATURE_KINDS = ("label-leak", "id-feature", "constant-feature", "empty-feature", "query-feature", "outliers")


@pytest.mark.parametrize(
    ("kind", "make"), [case[::2] for case in PLANTED if case[0] in FEATURE_KINDS and "name" not in case[1]]
)
def test_the_planted_feature_alone_is_named(kind, make):
    known = {name for finding in rw.inspect(BASE)[kind] for name in finding.where}
    assert {name for finding in rw.inspect(make())[kind] for name in finding.where} - known == {"8"}


LEFT, RIGHT = BASE.take(range(30)), BASE.take(range(30, 60))
FIRST, SECOND = WIDE.take(range(120)), WIDE.take(range(120, 240))


def change(queries: rw.Queries, column: int, function: Callable) -> rw.Queries:
    X = queries.X.copy()
    X[:, column] = function(X[:, column])
    return queries.with_X(X)


def join(*sets: rw.Queries, qid: Callable = lambda q: q) -> rw.Queries:
    parts = [np.concatenate([getattr(each, name) for each in sets]) for name in ("X", "y", "row_qid")]
    return rw.Queries.from_arrays(parts[0], parts[1], [qid(q) for q in parts[2].tolist()])


def rename(queries: rw.Queries, *names: str) -> rw.Queries:
    return queries.replace(features=names)


CATEGORIES = [(("a", "b"), None), (("b", "c"), None)]
PLANTED_PAIRS: list[tuple[str, str, Callable[[], tuple[rw.Queries, rw.Queries]]]] = [
    ("shared-queries", "under their ids", lambda: (LEFT, BASE.take(range(25, 60)))),
    ("shared-queries", "under other ids", lambda: (LEFT, join(RIGHT, LEFT.take([3, 4]), qid=lambda q: q + 1000))),
    ("shared-queries", "other row order", lambda: (LEFT, take_rows(BASE, np.flatnonzero(QUERY > 25)[::-1]))),
    ("split-queries", "KFold", lambda: (take_rows(BASE, PLACE % 3 > 0), take_rows(BASE, (PLACE % 3 == 0) & (QUERY > 5)))),
    ("shared-rows", "in other queries", lambda: (LEFT, join(RIGHT, take_rows(LEFT, PLACE[: LEFT.n_docs] == 3), qid=lambda q: q + 900))),
    ("other-features", "one fewer", lambda: (LEFT, RIGHT.replace(X=RIGHT.X[:, :6]))),
    ("other-features", "names", lambda: (rename(LEFT, *"abcdefg"), rename(RIGHT, *"abcdefx"))),
    ("other-features", "order", lambda: (rename(LEFT, *"abcdefg"), rename(RIGHT, *"gabcdef"))),
    ("lost-feature", "constant there", lambda: (LEFT, change(RIGHT, 0, lambda x: 0 * x))),
    ("lost-feature", "missing here", lambda: (change(LEFT, 0, lambda x: x * np.nan), RIGHT)),
    ("feature-shift", "times 1000", lambda: (FIRST, change(SECOND, 0, lambda x: 1000 * x))),
    ("feature-shift", "one added", lambda: (FIRST, change(SECOND, 0, lambda x: x + 3 * x.std()))),
    ("feature-shift", "missing", lambda: (FIRST, change(SECOND, 0, lambda x: np.where(np.arange(len(x)) % 2, x, np.nan)))),
    ("other-grades", "fewer", lambda: (FIRST, SECOND.replace(y=np.minimum(SECOND.y, 1)))),
    ("other-grades", "other shares", lambda: (FIRST, SECOND.replace(y=2 - SECOND.y))),
    ("new-categories", "c", lambda: tuple(
        rw.Queries.from_arrays(np.column_stack([np.arange(40) % 2, rng().normal(size=40)]), np.arange(40) % 3, np.arange(40) // 4 + at * 99, categories=each)
        for at, each in enumerate(CATEGORIES))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "make"), [case[::2] for case in PLANTED_PAIRS], ids=[" ".join(case[:2]) for case in PLANTED_PAIRS]
)
def test_a_planted_fault_of_two_sets_is_found(kind, make):
    for first, second in ((LEFT, RIGHT), (FIRST, SECOND)):
        assert rw.inspect(first, second)[kind] == []
    assert rw.inspect(*make())[kind] != []


def test_every_kind_is_planted_and_documented():
    assert {case[0] for case in (*PLANTED, *PLANTED_PAIRS)} == set(KINDS)
    page = (ROOT / "docs" / "inspect.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == list(KINDS)
    for name, severity, title, meaning, way_out in rows:
        kind = KINDS[name]
        assert (severity, title, meaning, way_out) == (kind.severity, kind.title, kind.meaning, kind.way_out)


def test_categories_are_compared_by_their_values():
    """Queries are in both sets although each file numbers its categories in its own order."""
    X = np.column_stack([np.arange(40) % 2, np.random.default_rng(1).normal(size=40)])
    flipped = X * [-1, 1] + [1, 0]
    qid, y = np.arange(40) // 4, np.arange(40) % 3
    one = rw.Queries.from_arrays(X, y, qid, categories=(("a", "b"), None))
    other = rw.Queries.from_arrays(flipped, y, qid + 50, categories=(("b", "a"), None))
    assert "10 of the 10 queries" in rw.inspect(one, other)["shared-queries"][0].what
    assert (
        rw.inspect(one, rw.Queries.from_arrays(flipped, y, qid + 50, categories=(("a", "b"), None)))["shared-queries"]
        == []
    )


def test_data_without_grades_have_facts_and_findings_of_features():
    found = rw.inspect(with_feature(np.arange(N)).replace(y=None))
    assert found.alone is None
    assert found["id-feature"]
    assert "Grades: none" in str(found)
    json.dumps(found.to_json(), allow_nan=False)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 9))
def test_summaries_of_columns_equal_the_slow_ones(seed, d, m):
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 5, m))])
    X = rng.choice([0.0, -0.0, 1.0, 2.5, -3.0, np.nan, 2.0**24, 1e30], (indptr[-1], d)).astype(np.float32)
    found = summarise_columns(X, X.view(np.uint32), indptr, 5)
    slow = [summarise_column(X[:, j], indptr) for j in range(d)]
    for name in ("missing", "zeros", "fractions", "low", "high", "varying"):
        assert getattr(found, name).tolist() == [each[name] for each in slow]
    for i in range(d):
        for j in range(d):
            assert (found.keys[i] == found.keys[j]) == (slow[i]["texts"] == slow[j]["texts"])


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_counts_of_pairs_equal_the_slow_ones(seed, n):
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, 3, n).astype(float))[::-1]
    values = rng.choice([0.0, 1.0, 2.0, np.nan], (2, n)).astype(np.float32)
    lower = np.array([int((y >= grade).sum()) for grade in y])
    found = count_ordered_pairs(values, np.array([0, n]), lower, np.ones(n, dtype=bool))
    for f in range(2):
        for name, expected in count_pairs(values[f], y).items():
            np.testing.assert_equal(getattr(found, name)[f, 0], expected)


@pytest.mark.parametrize("y", [[2, 1, 0], [1, 1, 0, 0], [0, 2, 2, 1, 0], [3, 0, 0, 1]])
def test_the_order_of_rows_has_the_moments_of_all_orders(y):
    y, indptr = np.array(y, float), np.array([0, len(y)])
    n_pairs, in_order = count_in_order(y)
    found = measure_row_order(y, indptr)
    assert found.share == pytest.approx(in_order / n_pairs)
    shares = [count_in_order(np.array(order))[1] / n_pairs for order in permutations(y)]
    assert np.mean(shares) == pytest.approx(0.5)
    assert found.deviation == pytest.approx(np.std(shares))


def test_many_grades_are_joined_and_random_orders_are_not_significant():
    rng = np.random.default_rng(0)
    scores, indptr = rng.normal(size=2000), np.arange(0, 2001, 20)
    z = [measure_row_order(rng.permutation(scores), indptr).z for _ in range(300)]
    assert np.std(z) == pytest.approx(1, abs=0.15)
    assert measure_row_order(np.sort(scores)[::-1], indptr).share > 0.95


@pytest.mark.parametrize("seed", range(9))
def test_a_clean_set_raises_no_alarm(seed):
    made = make_clean_set(seed)
    findings = [*rw.inspect(made.train, made.test).findings, *inspect_quickly(made.train, made.test)]
    assert [str(finding) for finding in findings if finding.kind in INFERENCES] == []


def read_all(name: str) -> rw.Queries:
    return rw.read_letor(*sorted(data_folder(name).glob("S*.txt.gz")))


@pytest.mark.parametrize(("name", "kinds"), [
    ("OHSUMED", ["row-order", "no-relevant-document", "tied-top-grades", "constant-feature", "duplicated-rows", "contradictory-rows"]),
    ("OHSUMED-2.0", ["row-order", "no-relevant-document", "tied-top-grades", "query-feature", "duplicated-rows", "contradictory-rows"]),
    ("MQ2008", ["no-relevant-document", "constant-feature", "duplicated-rows", "contradictory-rows"]),
])  # fmt: skip
def test_what_is_said_of_letor_sets_is_true(name, kinds):
    """Every figure is computed again from the arrays."""
    queries = read_all(name)
    found = rw.inspect(queries)
    assert [finding.kind for finding in found.findings] == kinds
    X, y, parts = queries.X, queries.y, list(queries)
    constant = [str(j + 1) for j in range(X.shape[1]) if len(set(X[:, j].tolist())) == 1]
    assert [list(each.where) for each in found["constant-feature"]] == ([constant] if constant else [])
    within = [str(j + 1) for j in range(X.shape[1]) if all(np.ptp(X[part, j]) == 0 for part in parts)]
    assert [list(each.where) for each in found["query-feature"]] == (
        [[j for j in within if j not in constant]] if set(within) > set(constant) else []
    )
    none = [q for q, part in zip(queries.qid, parts, strict=True) if y[part].max() == 0]
    assert found["no-relevant-document"][0].what.startswith(f"{len(none):,} of {len(queries)} queries")
    groups = [[y[i] for i in rows] for part in parts for rows in group_equal_rows(X, part)]
    copies = sum(len(group) for group in groups if len(group) > 1)
    mixed = sum(len(group) for group in groups if len(set(group)) > 1)
    assert found["duplicated-rows"][0].what.startswith(f"{copies:,} documents")
    assert found["contradictory-rows"][0].what.startswith(f"{mixed:,} documents")
    if found["tied-top-grades"]:
        tied = sum(10 < (y[part] == y[part].max()).sum() < len(y[part]) for part in parts)
        assert found["tied-top-grades"][0].what.startswith(f"{tied} of {len(queries)} queries")
    if found["row-order"]:
        check_row_order(queries, found["row-order"][0].what)


def group_equal_rows(X: np.ndarray, part: slice) -> list[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for row in range(part.start, part.stop):
        groups.setdefault((X[row] + 0).tobytes(), []).append(row)
    return list(groups.values())


def check_row_order(queries: rw.Queries, what: str) -> None:
    """Compare with pairs counted one by one, and with MAP of the file's order and of 200 random orders."""
    y, parts = queries.y, list(queries)
    counts = [count_in_order(y[part]) for part in parts]
    share = np.mean([in_order / n for n, in_order in counts if n])
    assert f"in {share:.1%} of the pairs" in what
    own = rw.evaluate(-np.arange(len(y), dtype=float), queries, "map")["map"]
    rng = np.random.default_rng(0)
    chance = [rw.evaluate(rng.permutation(len(y)).astype(float), queries, "map")["map"] for _ in range(200)]
    stated = [float(text) for text in re.findall(r"MAP (0\.\d+), a random order (0\.\d+)", what)[0]]
    assert stated[0] == pytest.approx(own, abs=6e-4)
    assert stated[1] == pytest.approx(np.mean(chance), abs=6e-4 + 4 * np.std(chance) / np.sqrt(200))
    assert own > np.mean(chance) + 5 * np.std(chance)
    if "sorted by feature" in what:
        column = int(re.findall(r"sorted by feature (\d+)", what)[0]) - 1
        assert all((np.diff(queries.X[part, column]) <= 0).all() for part in parts)


@pytest.mark.parametrize("name", ["OHSUMED", "OHSUMED-2.0", "MQ2008"])
def test_folds_of_letor_sets_share_nothing(name):
    train, _, test = rw.read_folds(data_folder(name))[0]
    assert not set(train.qid.tolist()) & set(test.qid.tolist())
    kinds = {finding.kind for finding in rw.inspect(train, test).findings}
    assert not kinds & {
        "shared-queries",
        "split-queries",
        "shared-rows",
        "lost-feature",
        "feature-shift",
        "other-features",
        "other-grades",
    }


def test_a_sample_of_long_and_many_queries_finds_the_same(monkeypatch):
    monkeypatch.setattr("rankwright.analysis.inspection.data_inspection.SAMPLED_DOCS", 400)
    leaking = with_feature(3 - 2 * Y)
    found = rw.inspect(leaking)
    assert found.features.sampled_docs <= 400 < N
    assert found["label-leak"][0].where == ("8",)
    assert found.features.high.tolist() == leaking.X.max(axis=0).tolist()
    assert "of a sample of" in str(found)
    one = rw.Queries.from_arrays(leaking.X, Y, np.ones(N, int))
    assert rw.inspect(one).features.sampled_docs == 400


def test_commands(tmp_path, capsys):
    leaking = with_feature(3 - 2 * Y)
    rw.write_letor(leaking.take(range(40)), tmp_path / "train.txt")
    rw.write_letor(leaking.take(range(35, 60)), tmp_path / "test.txt")
    command = ["inspect", str(tmp_path / "train.txt"), "--against", str(tmp_path / "test.txt")]
    assert run([*command, "--page", str(tmp_path / "page.html")]) == 0
    text = capsys.readouterr().out
    assert "PROBLEM: A feature gives the label away (label-leak)\n  Feature 8 alone" in text
    assert "<title>Inspection of train.txt" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"label-leak", "shared-queries"} <= {each["kind"] for each in found["findings"]}
    assert found["feature_facts"][7]["alone"] == 1.0
    fit = ["fit", "regression", "--train", str(tmp_path / "train.txt"), "--valid", str(tmp_path / "test.txt")]
    assert run([*fit, "--model", str(tmp_path / "model.json")]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("rankwright: warning: A feature gives the label away: feature 8 alone")
    assert "Queries are in both sets: 5 of the" in line
    options = ["--data", str(tmp_path / "train.txt"), "--rankers", "singlefeature", "--workers", "threads:1"]
    for expected in ([True], []):  # an experiment that continues does not say it again
        assert run(["experiment", *options, "--out", str(tmp_path / "out")]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert ["A feature gives the label away" in line for line in lines] == expected


def test_letor_text_that_leaves_out_the_last_features_is_no_other_set(tmp_path, capsys):
    rw.write_letor(LEFT, tmp_path / "train.txt")
    rw.write_letor(RIGHT.replace(X=RIGHT.X[:, :6]), tmp_path / "test.txt")
    assert run(["inspect", str(tmp_path / "train.txt"), "--against", str(tmp_path / "test.txt"), "--json"]) == 0
    kinds = {each["kind"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert "other-features" not in kinds
    assert "lost-feature" in kinds


def test_accuracy_of_single_features_is_that_of_all_pairs():
    """The pairs that a sample counts are those of all documents when nothing is left out."""
    found = rw.inspect(BASE)
    for j in range(BASE.n_features):
        own = []
        for a, b in pairwise(BASE.indptr):
            counts = count_pairs(BASE.X[a:b, j], BASE.y[a:b])
            if counts["present"]:
                own.append((counts["right"] - counts["wrong"]) / counts["present"])
        assert found.alone.accuracy[j] == pytest.approx(0.5 + abs(np.mean(own)) / 2)


LIMITED = """
import resource, sys
import numpy as np
import rankwright as rw
from rankwright.kernels.data import column_summaries  # whose import takes memory, too

limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
queries = rw.read(sys.argv[1])
assert queries.X.nbytes > limit
assert rw.inspect(queries)["constant-feature"][0].where == ("3",)
"""


@pytest.mark.slow
def test_mapped_data_larger_than_the_memory_that_is_allowed(tmp_path):
    n, d = 1_000_000, 136
    whole = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(n, d))
    rng = np.random.default_rng(0)
    for start in range(0, n, 50_000):
        whole[start : start + 50_000] = rng.normal(size=(50_000, d))
        whole[start : start + 50_000, 2] = 1.0
    queries = rw.Queries(whole, rng.integers(0, 3, n).astype(float), np.arange(0, n + 1, 100), np.arange(n // 100))
    write_queries(queries, tmp_path / "data.rwq")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "data.rwq"), str(400 << 20)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_converted_data_have_the_findings_of_their_text(tmp_path, capsys):
    rw.write_letor(with_feature(3 - 2 * Y), tmp_path / "train.txt")
    assert run(["convert", str(tmp_path / "train.txt"), "--out", str(tmp_path / "train.rwq")]) == 0
    capsys.readouterr()
    printed = []
    for name in ("train.txt", "train.rwq"):
        assert run(["inspect", str(tmp_path / name)]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "label-leak" in printed[0]
