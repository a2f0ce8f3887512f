"""The charts of an automatic search: candidates by their measure, by their time, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.basics.number_texts import format_interval
from rankwright.report.blocks import Chart
from rankwright.report.leaderboard_text import BLEND, NESTED, get_leaderboard, name_candidates

if TYPE_CHECKING:
    from rankwright.rankers import AutoRanker

_MOST = 30  # candidates in a chart
_ROW, _AXES = 24, 90  # pixels for each candidate, and for the axes
_SECONDS = [factor * 10.0**power for power in range(-3, 6) for factor in (1, 3)]
_TICKS = {"tickvals": _SECONDS, "ticktext": [f"{value:g}" for value in _SECONDS]}
_IN, _OUT = "var(--method-0)", "var(--muted)"


def draw_candidates(ranker: AutoRanker) -> Chart:
    """Draw the measure of the blend and of the best candidates with intervals."""
    all_rows = get_leaderboard(ranker)
    n_complete = min(int(ranker.n_folds), max(row["n_fits"] for row in all_rows))
    rows = sorted(all_rows, key=lambda row: (row["n_fits"] < n_complete, -np.nan_to_num(row["mean"])))
    blend = {"candidate": BLEND, "member": "", "weight": 1.0, **ranker.estimate_._asdict()}
    shown = [blend, *rows[:_MOST]]
    names = [BLEND, *name_candidates(rows)[:_MOST]]
    mean, low, high = (np.array([row[key] for row in shown], dtype=np.float64) for key in ("mean", "low", "high"))
    colours = ["var(--accent)", *(_IN if row["weight"] > 0.0 else _OUT for row in shown[1:])]
    symbols = ["diamond", *("circle" if row["n_fits"] >= n_complete else "circle-open" for row in shown[1:])]
    texts = [format_interval(row["low"], row["high"]) for row in shown]
    data = []
    for at, name in enumerate(names):
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": mean[at : at + 1],
                "y": [name],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": high[at : at + 1] - mean[at],
                    "arrayminus": mean[at] - low[at : at + 1],
                    "thickness": 1.5,
                    "width": 0,
                    "color": colours[at],
                },
                "marker": {"size": 9, "color": colours[at], "symbol": symbols[at]},
                "name": name,
                "customdata": [texts[at]],
                "hovertemplate": "%{y}: %{x:.4f} %{customdata}<extra></extra>",
            }
        )
    layout = {
        "xaxis": {"title": {"text": str(ranker.measure)}},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "showlegend": False,
    }
    most = f" The {_MOST} best of {len(rows):,} candidates." if len(rows) > _MOST else ""
    caption = (
        f"{ranker.measure} on held-out queries with 95% intervals. The diamond is the blend, {NESTED}; grey candidates "
        f"are not in it. Open circles below the others were measured on fewer queries.{most}"
    )
    return Chart(data, layout, caption, height=_AXES + _ROW * max(len(shown), 4))


def draw_times(ranker: AutoRanker) -> Chart:
    """Draw the measure of each candidate by the time of its fits."""
    rows = get_leaderboard(ranker)
    names = name_candidates(rows)
    data = []
    for label, colour, is_in in (("in the blend", _IN, True), ("not in the blend", _OUT, False)):
        chosen = [at for at, row in enumerate(rows) if (row["weight"] > 0.0) == is_in]
        if chosen:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": label,
                    "x": [max(rows[at]["seconds"], 1e-3) for at in chosen],
                    "y": [rows[at]["mean"] for at in chosen],
                    "customdata": [names[at] for at in chosen],
                    "marker": {"size": 9, "color": colour, "symbol": "circle" if is_in else "circle-open"},
                    "hovertemplate": "%{customdata}: %{y:.4f} in %{x:.1f} s<extra></extra>",
                }
            )
    layout = {
        "xaxis": {"title": {"text": "seconds of all fits"}, "type": "log", **_TICKS},
        "yaxis": {"title": {"text": str(ranker.measure)}},
    }
    return Chart(data, layout, f"The time of each candidate, and its {ranker.measure} on held-out queries.")


def draw_weights(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Draw the shares of the candidates in the blend, the highest weight at the top."""
    names = name_candidates(rows)
    shown = [(name, row["weight"]) for name, row in zip(names, rows, strict=True) if row["weight"] > 0.0]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [name for name, _ in shown],
        "x": [weight for _, weight in shown],
        "marker": {"color": _IN},
        "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "share in the blend"}, "tickformat": ".0%", "rangemode": "tozero"},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "showlegend": False,
    }
    return Chart([bars], layout, "The weights of the candidates in the blend.", _AXES + _ROW * max(len(shown), 3))
