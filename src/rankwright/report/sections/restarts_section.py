"""Section on restarts: the best point of each start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Block, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import (
    find_best_points,
    find_deciding_values,
    has_restarts,
    split_by_method,
    split_runs,
)
from rankwright.report.sections.base import (
    INTERNALS,
    Content,
    ReportSection,
    TrainingMeasure,
    find_training_measure,
    make_choice,
)
from rankwright.report.summary import Summary

MOST_STARTS = 300  # most starts of a method in one chart
_MARKED, _TICKED = 30, 12  # most starts with a marker each, and with a tick each
_POINT, _KEPT = 7, 12  # pixels


class StartValues(NamedTuple):
    """The measures of one run at the best point of each start, and which start was kept."""

    fold: int
    number: Ints
    train: Floats
    valid: Floats
    kept: int

    def centred(self) -> StartValues:
        """Return the same, as differences from the mean of the run."""
        return self._replace(train=self.train - self.train.mean(), valid=self.valid - self.valid.mean())


Methods = Mapping[str, Sequence[StartValues]]


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Restarts"; return None if there is nothing to show."""
    histories = {m: table for m, table in split_by_method(summary.results, "history").items() if has_restarts(table)}
    found = {method: list_starts(table) for method, table in histories.items()}
    methods = {m: runs for m, runs in found.items() if max((len(run.number) for run in runs), default=0) > 1}
    if not methods:
        return None
    trained_on = find_training_measure(summary, {m: histories[m] for m in methods})
    lead = (
        "Some methods climb from several starts and keep the best point on the validation queries. Do more "
        "starts help? Does a higher training measure mean a higher validation measure?"
    )
    return Content(
        lead, [_make_grid(methods, trained_on), _draw_folds(methods, trained_on), _draw_gains(methods, trained_on)]
    )


def list_starts(table: Table) -> list[StartValues]:
    """Return the values of the starts of each run that has both training and validation measures."""
    if not {"train", "valid"} <= table.keys():
        return []
    found = []
    for run in split_runs(table):
        best = find_best_points(run)
        train, valid = (np.asarray(run[name], dtype=np.float64)[best] for name in ("train", "valid"))
        if np.isfinite(train).all() and np.isfinite(valid).all():
            numbers = run["restart"][best].astype(np.int64)
            found.append(
                StartValues(int(run["fold"][0]), numbers, train, valid, int(np.argmax(find_deciding_values(run)[best])))
            )
    return found


def compute_agreement(runs: Sequence[StartValues]) -> float:
    """Return the correlation of the starts' training and validation measures within runs; NaN if one is constant.

    >>> run = StartValues(1, np.arange(3), np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7]), 2)
    >>> round(compute_agreement([run, run._replace(valid=np.array([0.1, 0.2, 0.3]))]), 6)
    1.0
    """
    train = np.concatenate([run.centred().train for run in runs])
    valid = np.concatenate([run.centred().valid for run in runs])
    scale = float(np.sqrt((train**2).sum() * (valid**2).sum()))
    return float((train * valid).sum()) / scale if scale > 1e-18 else float("nan")


def compute_best_so_far(runs: Sequence[StartValues]) -> Floats:
    """Return the best validation measure among the first 1, 2, 3, ... starts, as means over runs."""
    longest = max(len(run.valid) for run in runs)
    lines = [np.maximum.accumulate(run.valid) for run in runs]
    filled = np.stack([np.pad(line, (0, longest - len(line)), mode="edge") for line in lines])
    mean: Floats = filled.mean(axis=0)
    return mean


def _make_grid(methods: Methods, trained_on: TrainingMeasure) -> Grid:
    """Make the table of the starts of each method."""
    of_run = "mean over folds and seeds"
    columns = [
        Column("method"),
        Column("starts", title="of a run: one fold and seed"),
        Column("training mean", DIGITS, title=f"of the starts; {of_run}"),
        Column("training sd", DIGITS, title=f"standard deviation between the starts of a run; {of_run}"),
        Column("training best", DIGITS, title=f"of the start with the highest; {of_run}"),
        Column("training kept", DIGITS, title=f"of the start that was kept; {of_run}"),
        Column("validation mean", DIGITS, title=f"of the starts; {of_run}"),
        Column("validation sd", DIGITS, title=f"standard deviation between the starts of a run; {of_run}"),
        Column("validation kept", DIGITS, title=f"of the start that was kept, which has the highest; {of_run}"),
        Column("above first", DIGITS, title=f"validation: the kept start minus the first; {of_run}"),
        Column("agreement", 2, title="correlation of training and validation between the starts of a run"),
    ]
    body = [Row([method, *_compute_cells(runs)], (method,)) for method, runs in methods.items()]
    caption = f"{trained_on.name} of the best point of each start."
    note = (
        "Agreement is the correlation, within runs, of the training and validation measures of the starts. Near "
        "1, a start that is better in training is also better in validation. Near 0, training does not say "
        f"which start to keep.{trained_on.more}"
    )
    return Grid(columns, body, caption, note)


def _compute_cells(runs: Sequence[StartValues]) -> list[float]:
    """Return the cells of a method's row, as means over its runs."""

    def mean(values: Sequence[Any]) -> float:
        return float(np.mean(values))

    return [
        max(len(run.number) for run in runs),
        mean([run.train.mean() for run in runs]),
        mean([run.train.std() for run in runs]),
        mean([run.train.max() for run in runs]),
        mean([run.train[run.kept] for run in runs]),
        mean([run.valid.mean() for run in runs]),
        mean([run.valid.std() for run in runs]),
        mean([run.valid[run.kept] for run in runs]),
        mean([run.valid[run.kept] - run.valid[0] for run in runs]),
        compute_agreement(runs),
    ]


def _draw_folds(methods: Methods, trained_on: TrainingMeasure) -> Block:
    """Draw the starts of all folds, and of each fold, among which the reader chooses."""
    folds = sorted({run.fold for runs in methods.values() for run in runs})
    charts: list[tuple[str, Block]] = []
    if len(folds) > 1:
        centred = {method: [run.centred() for run in runs] for method, runs in methods.items()}
        what, axis = (
            f"{trained_on.name} above the mean of all starts on the same fold",
            f"{trained_on.axis} above fold's mean",
        )
        charts.append(("all folds, from their means", _draw_chart(centred, what, axis, trained_on)))
    for fold in folds:
        inside = {method: [run for run in runs if run.fold == fold] for method, runs in methods.items()}
        present = {method: runs for method, runs in inside.items() if runs}
        charts.append(
            (f"fold {fold}", _draw_chart(present, f"{trained_on.name}, fold {fold}", trained_on.axis, trained_on))
        )
    return make_choice("Fold", charts)


def _draw_chart(methods: Methods, what: str, axis: str, trained_on: TrainingMeasure) -> Chart:
    """Draw each start as a point: its training measure against its validation measure."""
    data = [_make_points(method, runs) for method, runs in methods.items()]
    layout = {"xaxis": {"title": {"text": f"training: {axis}"}}, "yaxis": {"title": {"text": f"validation: {axis}"}}}
    caption = f"{what}. A point is the best that a start reached; the large ringed one was kept.{trained_on.more}"
    return Chart(data, layout, caption, height=420)


def _make_points(method: str, runs: Sequence[StartValues]) -> dict[str, Any]:
    """Return Plotly's trace of a method's starts, as points."""
    kept = np.concatenate([np.arange(len(run.number)) == run.kept for run in runs])
    shown = _choose_points(kept)
    named = np.array([(number, run.fold) for run in runs for number in run.number])
    return {
        "type": "scatter",
        "mode": "markers",
        "x": np.concatenate([run.train for run in runs])[shown],
        "y": np.concatenate([run.valid for run in runs])[shown],
        "customdata": named[shown],
        "hovertemplate": "start %{customdata[0]}, fold %{customdata[1]}<br>training %{x:.4f}<br>validation %{y:.4f}",
        "marker": {
            "size": np.where(kept[shown], _KEPT, _POINT),
            "opacity": np.where(kept[shown], 1.0, 0.75),
            "line": {"color": "var(--ink)", "width": np.where(kept[shown], 2, 0)},
        },
        "method": method,
    }


def _choose_points(kept: NDArray[np.bool_]) -> Ints:
    """Return the indexes of the starts to draw: all that were kept, and at most ``MOST_STARTS`` others."""
    others = np.flatnonzero(~kept)
    few = np.linspace(0, len(others) - 1, min(len(others), MOST_STARTS)).astype(np.intp)
    return np.sort(np.concatenate([np.flatnonzero(kept), others[few]]))


def _draw_gains(methods: Methods, trained_on: TrainingMeasure) -> Chart:
    """Draw the best validation measure of each method against the number of starts."""
    lines = {method: compute_best_so_far(runs) for method, runs in methods.items()}
    longest = max(map(len, lines.values()))
    mode = "lines+markers" if longest <= _MARKED else "lines"
    data = [
        {"type": "scatter", "mode": mode, "x": np.arange(1, len(line) + 1), "y": line, "method": method}
        for method, line in lines.items()
    ]
    layout = {
        "xaxis": {"title": {"text": "number of starts"}, **({"dtick": 1} if longest <= _TICKED else {})},
        "yaxis": {"title": {"text": f"validation: {trained_on.axis}"}},
    }
    caption = (
        f"{trained_on.name} on validation queries of the best of the first starts, mean over folds and seeds. It "
        f"cannot fall, and some of its rise is chance: only the test queries show a real gain.{trained_on.more}"
    )
    return Chart(data, layout, caption, height=320)


RESTARTS = ReportSection("Restarts", ("history",), _make_content, INTERNALS)
