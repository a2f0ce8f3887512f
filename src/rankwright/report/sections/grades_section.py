"""Section on grades: which pairs of documents a method puts in the right order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Chart
from rankwright.report.chosen_runs import select_on_all_folds
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary

Pair = tuple[float, float]  # the higher grade, the lower


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if there is nothing to show."""
    methods = select_on_all_folds(summary.results, "pairs")
    pairs = list_grade_pairs(methods.values())
    if not pairs:
        return None
    names = [f"{high:g} over {low:g}" for high, low in pairs]
    shares = {method: compute_accuracies(table, pairs) for method, table in methods.items()}
    data = [{"type": "bar", "x": names, "y": y, "method": method} for method, y in shares.items()]
    layout = {
        "barmode": "group",
        "xaxis": {"title": {"text": "grades of the two documents"}, "type": "category"},
        "yaxis": {"title": {"text": "in the right order"}, "tickformat": ".0%", "range": [0.0, 1.0]},
    }
    caption = (
        "The share of document pairs of two grades that a method puts in the right order, over all test queries; a tie "
        "counts one half, so that chance is 50%. 2 over 0 are a document of grade 2 and one of grade 0."
    )
    lead = "Confusing the best with the worst documents costs most."
    return Content(lead, [Chart(data, layout, caption, height=260)])


def list_grade_pairs(tables: Iterable[Table]) -> list[Pair]:
    """Return the pairs of grades that occur in the tables: those with the highest grade first."""
    found = {
        (float(high), float(low))
        for table in tables
        for high, low, total in zip(table["high"], table["low"], table["total"], strict=True)
        if total > 0
    }
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def compute_accuracies(table: Table, pairs: list[Pair]) -> Floats:
    """Return for each pair of grades the share of document pairs in the right order; a tie counts half; NaN if none."""
    shares = np.full(len(pairs), np.nan)
    for i, (high, low) in enumerate(pairs):
        chosen = (table["high"] == high) & (table["low"] == low)
        total = table["total"][chosen].sum()
        if total > 0:
            shares[i] = (table["right"][chosen].sum() + table["tied"][chosen].sum() / 2) / total
    return shares


GRADES = ReportSection("Which documents are confused?", ("pairs",), _make_content)
