"""Section on NDCG at every cut-off."""

from __future__ import annotations

from rankwright.analysis.results import Table
from rankwright.report.blocks import Chart
from rankwright.report.chosen_runs import compute_fold_means, select_on_all_folds
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Curves"; return None if there is nothing to show."""
    methods = select_on_all_folds(summary.results, "curve")
    if not methods:
        return None
    data = []
    for method, table in methods.items():
        k, means = compute_fold_means(table, "k", "value")
        data.append({"type": "scatter", "mode": "lines+markers", "x": k, "y": means.mean(axis=1), "method": method})
    family = _name_family(next(iter(methods.values())))
    layout = {
        "xaxis": {"title": {"text": "k, the number of documents that count"}, "dtick": 1},
        "yaxis": {"title": {"text": family}, "tickformat": ".3f"},
    }
    caption = f"{family} on test queries for k from {k[0]} to {k[-1]}, mean over the folds."
    if "letor4" in family:
        caption += (
            " LETOR 4.0 counts a query with fewer than k documents as 0, so curves fall where k exceeds many queries."
        )
    lead = "How good is the top of the ranking, and how far down does it stay so?"
    return Content(lead, [Chart(data, layout, caption, height=440)])


def _name_family(table: Table) -> str:
    """Return the name of the measure with k in place of a number, such as ``ndcg@k``, and its options."""
    return str(table["measure"][0]).replace("{k}", "k") if "measure" in table else "ndcg@k"


CURVES = ReportSection("Curves", ("curve",), _make_content)
