"""The page of an inspection: findings, queries and features."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.analysis.inspection import KINDS, Finding, Inspection
from rankwright.analysis.inspection.inspection_result import describe_columns
from rankwright.analysis.inspection.query_facts import MOST_GRADES, QueryFacts
from rankwright.basics.number_texts import format_number
from rankwright.basics.version import __version__
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Page, Row, Section, Text
from rankwright.report.notation import Value, format_count

_MOST_BINS = 40


def make_inspection_page(found: Inspection, name: str) -> Page:
    """Return the page of an inspection of the data set of this name."""
    facts = [
        ("Queries", f"{found.queries.n_queries:,}"),
        ("Documents", f"{found.queries.n_docs:,}"),
        ("Features", f"{found.queries.n_features:,}"),
        *((what.capitalize() + "s", f"{n:,}") for what, n in found.count_findings().items()),
    ]
    sections = [
        Section("Findings", _write_lead(found), [*map(_make_finding_block, found.findings)]),
        Section("Queries", _describe_sizes(found.queries), _make_query_blocks(found)),
        Section("Features", _FEATURES, [*_draw_alone(found), _make_feature_grid(found)]),
    ]
    subtitle = "What the data look like before training, what may be wrong, and the way out"
    return Page(f"Inspection of {name}", subtitle, facts, (), sections, f"Rankwright {__version__}")


_FEATURES = "What each feature holds, and how well it ranks alone."


def _write_lead(found: Inspection) -> str:
    """Return a sentence on how many findings there are."""
    if not found.findings:
        return "Nothing was found that looks wrong."
    counts = [format_count(n, severity) for severity, n in found.count_findings().items() if n]
    return (
        f"{', '.join(counts)}. With a problem results would be wrong; with a warning they are probably not what you "
        "want; a note is good to know."
    )


def _make_finding_block(finding: Finding) -> Text:
    """Return a finding as text in a box: what was found, its meaning and the way out."""
    head = f"{finding.severity.capitalize()}: {KINDS[finding.kind].title}"
    text = f"{head}\n\n{finding.what[0].upper()}{finding.what[1:]}.\n\n{finding.meaning}\n\nWay out: {finding.way_out}"
    return Text(text, "note" if finding.severity == "note" else "warning")


def _describe_sizes(facts: QueryFacts) -> str:
    """Return a sentence on the numbers of documents of the queries."""
    low, first, middle, third, high = facts.size_quartiles
    return (
        f"A query has {low:g} to {high:g} documents; the median is {middle:g}, and half of the queries have "
        f"{first:g} to {third:g}."
    )


def _make_query_blocks(found: Inspection) -> list[Block]:
    """Return the charts of the documents per query and of the grades, and a table of queries that count little."""
    sets = {"this set": found.queries} | ({} if found.against is None else {"other set": found.against})
    return [_draw_sizes(sets), *draw_grades(sets), _make_query_grid(sets)]


def _draw_sizes(sets: Mapping[str, QueryFacts]) -> Chart:
    """Draw how many queries have how many documents."""
    high = max(int(facts.sizes.max()) for facts in sets.values())
    edges = np.unique(np.linspace(0, high, min(high, _MOST_BINS) + 1).astype(np.int64))
    names = [f"{a + 1}" if b == a + 1 else f"{a + 1}-{b}" for a, b in pairwise(edges.tolist())]
    data = []
    for at, (name, facts) in enumerate(sets.items()):
        counts = np.histogram(facts.sizes, edges + 0.5)[0]
        shares = counts / facts.n_queries
        data.append(_make_bars(name, names, shares, at, [f"{n:,} queries" for n in counts.tolist()]))
    layout = {
        "barmode": "group",
        "bargap": 0.05,
        "xaxis": {"title": {"text": "documents of a query"}, "type": "category"},
        "yaxis": {"title": {"text": "queries"}, "tickformat": ".0%"},
        "showlegend": len(sets) > 1,
    }
    return Chart(data, layout, "The share of queries by their number of documents.", height=300)


def draw_grades(sets: Mapping[str, QueryFacts]) -> list[Block]:
    """Draw the share of each grade, if there are few."""
    grades = np.unique(np.concatenate([facts.grades for facts in sets.values()]))
    if not 0 < len(grades) <= MOST_GRADES:
        return []
    names = [f"{grade:g}" for grade in grades]
    data = []
    for at, (name, facts) in enumerate(sets.items()):
        counts = np.zeros(len(grades), dtype=np.int64)
        counts[np.searchsorted(grades, facts.grades)] = facts.counts
        texts = [f"{n:,} documents" for n in counts.tolist()]
        data.append(_make_bars(name, names, counts / facts.n_docs, at, texts))
    layout = {
        "barmode": "group",
        "xaxis": {"title": {"text": "grade"}, "type": "category"},
        "yaxis": {"title": {"text": "documents"}, "tickformat": ".0%"},
        "showlegend": len(sets) > 1,
    }
    return [Chart(data, layout, "The share of documents with each grade.", height=300)]


def _make_bars(name: str, x: list[str], y: Any, at: int, texts: list[str]) -> dict[str, Any]:
    """Return a trace of bars in the colour of the set with this number."""
    hover = "%{x}: %{y:.1%} (%{customdata})<extra></extra>"
    colour = {"color": f"var(--method-{at})"}
    return {"type": "bar", "name": name, "x": x, "y": y, "marker": colour, "customdata": texts, "hovertemplate": hover}


def _make_query_grid(sets: Mapping[str, QueryFacts]) -> Grid:
    """Make the table of the numbers of queries that teach little."""
    columns = [Column("set"), Column("queries"), Column("documents"), Column("one document"), Column("one grade")]
    columns += [Column("none relevant", title="no document of a grade above 0")]
    columns += [Column("ties at the top", title="more than ten documents of the highest grade, and others below it")]
    rows = [
        Row([name, facts.n_queries, facts.n_docs, *(int(flags.sum()) for flags in _list_flags(facts))])
        for name, facts in sets.items()
    ]
    return Grid(columns, rows, "Queries that teach little, or that measures cannot tell good rankings of apart.")


def _list_flags(facts: QueryFacts) -> list[Any]:
    """Return the flags of queries that teach little, in the order of the table's columns."""
    return [facts.single, facts.equal, facts.irrelevant, facts.tied]


def _draw_alone(found: Inspection) -> list[Block]:
    """Draw how well each feature alone ranks, the best first."""
    if found.alone is None or np.isnan(found.alone.accuracy).all():
        return []
    order = np.argsort(-np.nan_to_num(found.alone.accuracy))[:_MOST_BINS]
    names = [found.features.names[int(j)] for j in order]
    texts = ["higher is better" if found.alone.rising[j] > 0 else "lower is better" for j in order]
    data = [_make_bars("alone", names, found.alone.accuracy[order], 0, texts)]
    layout = {
        "xaxis": {"title": {"text": "feature"}, "type": "category"},
        "yaxis": {"title": {"text": "pairs in order (chance: 50%)"}, "tickformat": ".0%", "range": [0.5, 1.0]},
        "showlegend": False,
    }
    most = f" The {len(order)} best of {len(found.features.names):,}." if len(order) < len(found.features.names) else ""
    caption = (
        "The share of pairs of documents of different grades that a feature alone puts in the right order, in its "
        f"better direction; ties count half.{most}"
    )
    return [Chart(data, layout, caption, height=340)]


def _make_feature_grid(found: Inspection) -> Grid:
    """Make the table of the facts on each feature."""
    facts, n = found.features, found.features.n_docs
    columns = [
        *(Column("feature"), Column("missing"), Column("zeros"), Column("min"), Column("25%"), Column("median")),
        *(Column("75%"), Column("max"), Column("distinct")),
        Column("varies in", title="queries within which the feature varies"),
        Column("alone", 3, "share of pairs that the feature alone puts in the right order"),
        Column("direction", title="whether higher or lower values are better"),
    ]
    rows = []
    for j, name in enumerate(facts.names):
        values = [facts.low[j], *facts.quantiles[1:4, j], facts.high[j]]
        cells = [None if facts.is_categorical[j] or np.isnan(v) else Cell(float(v), f"{v:.4g}") for v in values]
        shares = [Cell(float(count[j] / n), f"{count[j] / n:.1%}") for count in (facts.missing, facts.zeros)]
        alone: list[Cell | Value] = [None, None]
        if found.alone is not None and not np.isnan(found.alone.accuracy[j]):
            accuracy = float(found.alone.accuracy[j])
            direction = "higher" if found.alone.rising[j] > 0 else "lower"
            alone = [Cell(accuracy, format_number(accuracy, 3)), direction]
        rows.append(Row([name, *shares, *cells, int(facts.distinct[j]), int(facts.varying[j]), *alone]))
    return Grid(columns, rows, "Facts on each feature.", describe_columns(found))
