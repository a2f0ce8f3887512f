"""Section on permutation importance: how much the measure falls when a feature is shuffled, for every method."""

from __future__ import annotations

from rankwright.report.chosen_runs import select_on_all_folds
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.features_section import choose_method, compute_effects, make_feature_map
from rankwright.report.summary import Summary


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if shuffling changes no method."""
    tables = select_on_all_folds(summary.results, "permutation")
    found = {m: compute_effects(tables[m], "fall") for m in summary.ranked if m in tables}
    methods = {method: effects for method, effects in found.items() if effects.mean.any()}
    if not methods:
        return None
    largest = max(float(abs(effects.mean).max()) for effects in methods.values())
    colours = {"cmin": -largest, "cmax": largest, "colorscale": _COLOURS}
    axis = f"fall of {summary.decisive} on test queries"
    caption = f"The {{}} features that matter most to any method: the {axis}, mean over the folds."
    shares = make_feature_map(methods, colours, caption, digits=3)
    lead = (
        f"How much {summary.decisive} falls on test queries when the values of one feature are shuffled among the "
        "documents of each query. Features that carry the same information stand in for each other, so that each of "
        "them may look unimportant. Falls of about the standard deviation between folds may be chance."
    )
    return Content(lead, [choose_method(methods, shares, axis, f"change of {summary.decisive}")])


_COLOURS = [[0, "var(--worse)"], [0.5, "var(--paper)"], [1, "var(--better)"]]

PERMUTATION = ReportSection("Which features matter?", ("permutation",), _make_content)
