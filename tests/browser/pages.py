"""Pages made up for tests: seeded, and as large as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.report.blocks import (
    Cell,
    Chart,
    Choice,
    Column,
    Duel,
    DuelDocuments,
    DuelQuery,
    Grid,
    Page,
    Row,
    Section,
    Text,
)

NAMES = (
    "AdaRank.NDCG", "AdaRank.MAP", "RankNet", "ListNet", "Coordinate ascent", "LambdaMART", "RankSVM", "RankBoost",
    "Regression", "BM25", "Random forest", "LambdaRank", "SoftRank", "SVMmap", "Best feature",
)  # fmt: skip
MEASURES = ("map", "ndcg@10", *(f"ndcg@{k}" for k in range(1, 10)), "p@10", "mrr", "err@20")
HOSTILE = (
    "</script><b>bold</b>",
    "<img src=x onerror=alert(1)>",
    "a&amp;b \u2028 \"quoted\" 'single'",
    "$title ${x} <!-- ",
)
LONG = (
    "long name without spaces ".replace(" ", "_") * 4 + "1",
    "a long name with spaces " * 4 + "2",
    "RankNet",
    "ListNet",
)


def small_page(methods: Sequence[str] = NAMES[:4], n_queries: int = 30) -> Page:
    """A page with a block of every kind."""
    return make_page(tuple(methods), MEASURES[:3], n_queries, n_docs=6)


def large_page() -> Page:
    """As much as a page is promised to bear."""
    return make_page(NAMES, MEASURES, n_queries=800, n_docs=20)


def make_page(methods: tuple[str, ...], measures: tuple[str, ...], n_queries: int, n_docs: int) -> Page:
    rng = np.random.default_rng(7)
    skill = np.linspace(0.3, 0.5, len(methods))[:, None]
    hardness = rng.normal(0, 0.2, n_queries)
    values = np.clip(skill + hardness + rng.normal(0, 0.12, (len(measures), len(methods), n_queries)), 0, 1)
    values[:, :, rng.random(n_queries) < 0.04] = np.nan
    values[:, :2, rng.random(n_queries) < 0.1] = 0.25  # ties of the first two
    queries = [_query(rng, number, n_docs, len(methods)) for number in range(n_queries)]
    means = np.nanmean(values, axis=2)
    return Page(
        title="Fifteen rankers on synthetic queries",
        subtitle="Means of fold means on test queries; every method was chosen on validation queries by ndcg@10.",
        facts=(("Queries", str(n_queries)), ("Methods", str(len(methods))), ("Folds", "5"), ("Measure", measures[0])),
        methods=methods,
        sections=(
            Section("Results", "Means over all test queries. The best of each measure is emphasised.",
                    (_means(methods, measures, means), _intervals(methods, values[0]), Text("A note.", "note"))),
            Section("Curves", "How each method does from the first rank to the tenth.",
                    (_curves(methods, means), Choice("Fold", tuple((f"Fold {k}", _rounds(rng, methods, k)) for k in range(1, 6))))),
            Section("Pairs and groups", "Which documents are confused, and in which queries.",
                    (_groups(rng, methods), _heat(rng, methods), Text("Two trials failed.\n\nBoth ran out of memory.", "warning"))),
            Section("Comparisons", "Every two methods.",
                    (Choice("Measure", tuple((name, _pairs(rng, methods)) for name in measures[:3])),)),
            Section("Boxes", "Spread over queries.", (_boxes(methods, values[0]), _histogram(values[0]), _scatter(values[0], methods))),
            Section("Wins and losses", "Choose two methods and look at the queries where they differ.",
                    (Duel(methods, measures, queries, values, "Each bar is a query; choose one to see its documents."),)),
        ),
        footer="Rankwright 0.0, 1 January 2026",
    )  # fmt: skip


def _query(rng: np.random.Generator, number: int, n_docs: int, n_methods: int) -> DuelQuery:
    ranks = np.argsort(rng.random((n_methods, n_docs)), axis=1) + 1
    documents = DuelDocuments(
        [f"GX{number:03d}-{k:02d}-{number * 37 % 9999:07d}" for k in range(n_docs)], rng.integers(0, 3, n_docs), ranks
    )
    return DuelQuery(str(10_000 + number), str(number % 5 + 1), n_docs, documents if number % 10 else None)


def _means(methods: tuple[str, ...], measures: tuple[str, ...], means: Any) -> Grid:
    best = means.argmax(axis=1)
    rows = []
    for number, name in enumerate(methods):
        cells: list[Any] = [name]
        for measure in range(len(measures)):
            is_best = best[measure] == number
            worse = means[measure, number] < means[measure, best[measure]] - 0.1
            cells.append(
                Cell(means[measure, number], mark="▼" if worse else "", title="significantly below the best, p = 0.003" if worse else "",
                     emphasis="best" if is_best else "")
            )  # fmt: skip
        rows.append(Row(cells, (name,)))
    columns = [Column("Method"), *(Column(name, digits=4, title=f"Mean {name}") for name in measures)]
    return Grid(
        columns, rows, "Means of fold means", note="▼ significantly below the best of that measure (p < .05, Holm)."
    )


def _intervals(methods: tuple[str, ...], values: Any) -> Chart:
    means, spread = np.nanmean(values, axis=1), 2 * np.nanstd(values, axis=1) / np.sqrt(values.shape[1])
    data = [
        {"type": "scatter", "mode": "markers", "method": name, "x": [means[k]], "y": [name],
         "error_x": {"type": "data", "array": [spread[k]], "arrayminus": [spread[k] / 2]}}
        for k, name in enumerate(methods)
    ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "map"}},
        "showlegend": False,
        "yaxis": {"categoryarray": methods[::-1], "categoryorder": "array"},
    }
    return Chart(data, layout, "Mean and 95 % interval of each method.", height=90 + 22 * len(methods))


def _curves(methods: tuple[str, ...], means: Any) -> Chart:
    k = np.arange(1, 11)
    data = [
        {"type": "scatter", "mode": "lines+markers", "method": name, "x": k, "y": means[0, i] + 0.1 / k}
        for i, name in enumerate(methods)
    ]
    layout = {"xaxis": {"title": {"text": "k"}, "dtick": 1}, "yaxis": {"title": {"text": "ndcg@k"}}}
    return Chart(
        data, layout, "NDCG from the first rank to the tenth, mean over the test queries of all folds.", height=420
    )


def _rounds(rng: np.random.Generator, methods: tuple[str, ...], fold: int) -> Chart:
    rounds = np.arange(150)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "method": name,
            "x": rounds,
            "y": 0.5 - 0.3 / (1 + rounds / 9) + rng.normal(0, 0.004, 150) + i / 90,
        }
        for i, name in enumerate(methods)
    ]
    layout = {"xaxis": {"title": {"text": "Round"}}, "yaxis": {"title": {"text": "ndcg@10"}}}
    return Chart(data, layout, f"Validation measure by round, fold {fold}.")


def _groups(rng: np.random.Generator, methods: tuple[str, ...]) -> Chart:
    data = [
        {"type": "bar", "method": name, "x": ["d-n", "d-p", "p-n"], "y": rng.uniform(0.4, 0.9, 3)} for name in methods
    ]
    return Chart(
        data, {"barmode": "group", "yaxis": {"title": {"text": "Accuracy"}}}, "Pairs of grades in the right order."
    )


def _heat(rng: np.random.Generator, methods: tuple[str, ...]) -> Chart:
    features = [f"feature {k}" for k in range(1, 13)]
    data = [{"type": "heatmap", "x": features, "y": list(methods), "z": rng.normal(0, 1, (len(methods), 12)), "zmid": 0,
             "colorscale": [[0, "var(--worse)"], [0.5, "var(--paper)"], [1, "var(--better)"]]}]  # fmt: skip
    return Chart(data, {}, "Effect of each feature.", height=90 + 22 * len(methods))


def _pairs(rng: np.random.Generator, methods: tuple[str, ...]) -> Grid:
    rows = [
        Row([a, b, rng.normal(0, 0.05), Cell(None if i == 1 else rng.random()), int(rng.integers(0, 90))], (a, b))
        for i, a in enumerate(methods)
        for b in methods[:i]
    ]
    columns = [Column("A"), Column("B"), Column("Difference", 4), Column("p (Holm)", 3), Column("Wins")]
    return Grid(columns, rows, "Pairwise comparisons")


def _boxes(methods: tuple[str, ...], values: Any) -> Chart:
    data = [{"type": "box", "method": name, "y": values[k][:200], "boxpoints": False} for k, name in enumerate(methods)]
    return Chart(data, {"yaxis": {"title": {"text": "map"}}, "showlegend": False}, "Spread over queries.")


def _histogram(values: Any) -> Chart:
    counts, edges = np.histogram(values[0][~np.isnan(values[0])], bins=8, range=(0, 1))
    labels = [f"{low:.2f} to {high:.2f}" for low, high in pairwise(edges)]
    return Chart(
        [{"type": "bar", "x": labels, "y": counts, "name": "Queries"}],
        {"yaxis": {"title": {"text": "Queries"}}},
        "Queries by value.",
        height=280,
    )


def _scatter(values: Any, methods: tuple[str, ...]) -> Chart:
    data = [
        {"type": "scatter", "mode": "markers", "x": values[0], "y": values[-1], "marker": {"size": 5, "opacity": 0.6}}
    ]
    layout = {"xaxis": {"title": {"text": methods[0]}}, "yaxis": {"title": {"text": methods[-1]}}}
    return Chart(data, layout, "Value of each query by the first and the last method.")
