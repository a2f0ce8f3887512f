"""Section on the feature weights of linear methods."""

from __future__ import annotations

import numpy as np

from rankwright.report.blocks import Block
from rankwright.report.chosen_runs import select_on_all_folds
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.sections.features import Effects, compute_effects, make_feature_bars, make_feature_map
from rankwright.report.summary import Summary

_COLOURS = {
    "cmin": -1,
    "cmax": 1,
    "colorscale": [[0, "var(--worse)"], [0.5, "var(--paper)"], [1, "var(--better)"]],
}


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Feature weights"; return None if there is nothing to show."""
    methods = {
        m: compute_effects(table, "effect") for m, table in select_on_all_folds(summary.results, "weights").items()
    }
    if not methods:
        return None
    axis = "effect: weight times standard deviation of the feature"
    about = "the features of the largest effect, mean over the folds, with the standard deviation between folds."
    bars: list[tuple[str, Block]] = [
        (m, make_feature_bars(m, effects, axis, f"{m}: {about}")) for m, effects in methods.items()
    ]
    caption = (
        "The {} features of the largest effect in any method: the mean over the folds, in shares of the method's "
        "largest. Where it is positive, a larger value of the feature raises the score."
    )
    shares = {m: scale_to_largest(effects) for m, effects in methods.items()}
    options = [("all methods", make_feature_map(shares, _COLOURS, caption)), *bars] if len(bars) > 1 else bars
    lead = (
        "The weights of linear methods. The effect of a feature is its weight times its standard deviation in "
        "training: how far a typical change of the feature moves the score."
    )
    return Content(lead, [make_choice("Method", options)])


def scale_to_largest(effects: Effects) -> Effects:
    """Return effects as shares of the method's largest, since the scores of methods have different scales."""
    largest = float(np.abs(effects.mean).max(initial=0.0))
    return effects.scaled(1.0 / largest) if largest > 0 else effects


WEIGHTS = ReportSection("Feature weights", ("weights",), _make_content)
