"""Results as text for a terminal, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rankwright.analysis.results import Results
from rankwright.report.summary import Summary
from rankwright.report.text_tables import format_aligned, make_comparison_table, make_results_table


def format_results(results: Results) -> str:
    """Return every method under every measure, as aligned columns."""
    return format_aligned(make_results_table(Summary(results)))


def format_comparisons(results: Results) -> str:
    """Return every two methods on the deciding measure, as aligned columns."""
    return format_aligned(make_comparison_table(Summary(results)))


def make_results_json(results: Results) -> dict[str, Any]:
    """Return means and comparisons, as JSON can hold them."""
    comparisons = Summary(results).comparisons.get(results.measure, [])
    plain = [asdict(found) | {"p": found.p._asdict(), "adjusted": found.adjusted._asdict()} for found in comparisons]
    means = {
        method: {measure: float(results.means(measure)[i]) for measure in results.measures}
        for i, method in enumerate(results.methods)
    }
    return {
        "measure": results.measure,
        "queries": len(results.tables["queries"]["qid"]),
        "means": means,
        "tests": plain,
    }
