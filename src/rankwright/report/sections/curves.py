"""The chart of NDCG at 1 to 10 on test queries."""

from __future__ import annotations

from rankwright.report.blocks import Chart
from rankwright.report.chosen_runs import compute_fold_means, select_on_all_folds
from rankwright.report.summary import Summary


def draw_curves(summary: Summary) -> Chart | None:
    """Draw how good the top of each method's ranking is, for each number of documents; None without curves."""
    methods = select_on_all_folds(summary.results, "curve") if summary.has("curve") else {}
    if not methods:
        return None
    data = []
    for method, table in methods.items():
        k, means = compute_fold_means(table, "k", "value")
        data.append({"type": "scatter", "mode": "lines+markers", "x": k, "y": means.mean(axis=1), "method": method})
    first = next(iter(methods.values()))
    family = str(first["measure"][0]).replace("{k}", "k") if "measure" in first else "ndcg@k"
    layout = {
        "xaxis": {"title": {"text": "k, the number of documents that count"}, "dtick": 1},
        "yaxis": {"title": {"text": family}, "tickformat": ".3f"},
    }
    caption = f"{family} on test queries for k from {k[0]} to {k[-1]}, mean over the folds."
    if "letor4" in family:
        caption += (
            " LETOR 4.0 counts a query with fewer than k documents as 0, so curves fall where k exceeds many queries."
        )
    return Chart(data, layout, caption, height=340)
