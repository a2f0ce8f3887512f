"""Section on polishing: the measure before and after the exact search for tree weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import drop_polishing, find_deciding_values, select_rows, split_by_method, split_runs
from rankwright.report.sections.base import (
    INTERNALS,
    Content,
    ReportSection,
    TrainingMeasure,
    find_training_measure,
    make_choice,
)
from rankwright.report.sections.learning_lines import compute_mean_line, thin_numbers
from rankwright.report.summary import Summary

_PARTS = {"train": ("training", "dot"), "valid": ("validation", "solid")}  # label and dash of each part
_MEAN = "mean over folds"
_TICKED = 12  # the most rounds of polishing with a tick each


class PolishedRun(NamedTuple):
    """A run whose trees were polished: its history before and during polishing, the row it began at, the row kept.

    The first row of ``polishing`` is the model that it began with, in round 0. Steps inside a round are parts of it.
    """

    fold: int
    growing: Table
    polishing: Table
    begun: int  # the row of ``growing`` at which polishing began
    kept: int  # the row of ``polishing`` that was kept; 0: the model before polishing

    def value(self, part: str, at: int) -> float:
        """Return the measure in a row of ``polishing``."""
        return float(self.polishing[part][at]) if part in self.polishing else float("nan")


Methods = Mapping[str, Sequence[PolishedRun]]


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Polishing"; return None if there is nothing to show."""
    histories = {m: table for m, table in split_by_method(summary.results, "history").items() if "polish" in table}
    found = {
        method: [_make_polished_run(run) for run in split_runs(table) if np.isfinite(run["polish"]).any()]
        for method, table in histories.items()
    }
    methods = {method: runs for method, runs in found.items() if runs}
    if not methods:
        return None
    n_runs = {method: len(split_runs(histories[method])) for method in methods}
    trained_on = find_training_measure(summary, {m: histories[m] for m in methods})
    charts = [
        (m, _draw_folds(m, runs, find_training_measure(summary, {m: histories[m]}).axis)) for m, runs in methods.items()
    ]
    lead = (
        "After growing its trees, a method may search exactly for better weights of them. The measure on the "
        "training queries never falls. The step that is best on the validation queries is kept, so the measure "
        "there does not fall either; but some of the rise is chance. To see the gain on test queries, compare "
        "with the same method without polishing."
    )
    return Content(lead, [_make_grid(methods, n_runs, trained_on), make_choice("Method", charts)])


def _make_polished_run(run: Table) -> PolishedRun:
    """Make the record of a polished run from its history."""
    growing, steps = drop_polishing(run), select_rows(run, np.isfinite(run["polish"]))
    has_valid = "valid" in growing and bool(np.isfinite(growing["valid"]).any())
    begun = int(np.argmax(find_deciding_values(growing))) if has_valid else len(growing["round"]) - 1
    marked = np.flatnonzero(np.nan_to_num(steps["kept"])) if "kept" in steps else np.empty(0)
    first = {name: growing[name][begun : begun + 1] for name in _PARTS if name in growing}
    polishing = {name: np.append(first[name], steps[name]).astype(np.float64) for name in first}
    for name in ("fold", "seed"):
        polishing[name] = np.append(run[name][:1], steps[name])
    polishing["round"] = np.append(0.0, place_steps(steps["polish"]))
    return PolishedRun(int(run["fold"][0]), growing, polishing, begun, int(marked[0]) + 1 if len(marked) else 0)


def place_steps(numbers: Floats) -> Floats:
    """Return the place of each polishing step on the axis of rounds; the steps of a round are spread evenly over it.

    >>> place_steps(np.array([1.0, 1.0, 2.0])).tolist()
    [0.5, 1.0, 2.0]
    """
    starts = np.searchsorted(numbers, numbers, side="left")
    ends = np.searchsorted(numbers, numbers, side="right")
    inside: Floats = (np.arange(len(numbers)) + 1 - starts) / (ends - starts)
    return numbers - 1 + inside


def _make_grid(methods: Methods, n_runs: Mapping[str, int], trained_on: TrainingMeasure) -> Grid:
    """Make the table of each method's measure before and after polishing."""
    of_run = "mean over the folds and seeds that were polished"
    columns = [
        Column("method"),
        Column("runs", title="the number of folds and seeds in which polishing took any step"),
        Column("kept", title="the number of these in which a step was better on validation queries, and kept"),
        Column("rounds", 1, title=f"of polishing, each over all trees; {of_run}"),
        *(
            column
            for part, (name, _) in _PARTS.items()
            for column in (
                Column(f"{part} before", DIGITS, title=f"{name} queries, trees as they were grown; {of_run}"),
                Column(f"{part} after", DIGITS, title=f"{name} queries, the model that was kept; {of_run}"),
                Column(f"{part} gain", DIGITS, title=f"{name} queries; {of_run}"),
            )
        ),
    ]
    body = [Row([method, *_compute_cells(runs, n_runs[method])], (method,)) for method, runs in methods.items()]
    note = (
        "Where no step was better on the validation queries, the trees keep their weights, which counts as no "
        f"gain.{trained_on.more}"
    )
    return Grid(columns, body, f"{trained_on.name} before and after polishing.", note)


def _compute_cells(runs: Sequence[PolishedRun], n_runs: int) -> list[Any]:
    """Return the cells of a method's row, as means over its polished runs."""
    n_kept = sum(run.kept > 0 for run in runs)
    figures: list[Any] = [
        Cell(len(runs), f"{len(runs)} of {n_runs}"),
        Cell(n_kept, f"{n_kept} of {len(runs)}"),
        float(np.mean([run.polishing["round"][-1] for run in runs])),
    ]
    for part in _PARTS:
        before = float(np.mean([run.value(part, 0) for run in runs]))
        after = float(np.mean([run.value(part, run.kept) for run in runs]))
        figures += [before, after, after - before]
    return figures


def _draw_folds(method: str, runs: Sequence[PolishedRun], measure: str) -> Block:
    """Draw the course of the mean over folds, and of the first run of each fold, among which the reader chooses."""
    first = {run.fold: run for run in reversed(runs)}
    charts: list[tuple[str, Block]] = [
        (f"fold {fold}", _draw_chart(method, [first[fold]], measure, f"fold {fold}")) for fold in sorted(first)
    ]
    mean: list[tuple[str, Block]] = [(_MEAN, _draw_chart(method, runs, measure, _MEAN))] if len(first) > 1 else []
    return make_choice("Fold", [*mean, *charts])


def _draw_chart(method: str, runs: Sequence[PolishedRun], measure: str, where: str) -> Chart:
    """Draw the measure of some runs: while trees grow at the left, while they are polished at the right."""
    single = runs[0] if len(runs) == 1 else None
    data = []
    for part, (name, dash) in _PARTS.items():
        for panel, stage in enumerate(("growing", "polishing")):
            x, y = _compute_line(runs, stage, part)
            if len(x) == 0:
                continue
            data.append(_make_trace(method, panel, x, y, name, f"{stage}, {name}") | {"line": {"dash": dash}})
    caption = (
        f"{method}: {measure} while trees were grown (left) and while their weights were polished (right), {where}."
    )
    if single is not None:
        data += _make_marks(method, single)
        caption += (
            " Open: the trees before polishing. Filled: the model that was kept; at 0, no step was better on the "
            "validation queries."
        )
    else:
        caption += (
            " Polishing begins with the best round of each fold, not with the last; a run that ended keeps its last "
            "value."
        )
    last = max(float(run.polishing["round"][-1]) for run in runs)
    return Chart(data, _make_layout(measure, last), caption, height=380)


def _compute_line(runs: Sequence[PolishedRun], stage: str, part: str) -> tuple[Floats, Floats]:
    """Return rounds and the measure at a stage: every known value of one run, or the mean of several by round."""
    tables: list[Table] = [getattr(run, stage) for run in runs]
    if any(part not in table for table in tables):
        return np.empty(0), np.empty(0)
    if len(tables) == 1:
        known = np.flatnonzero(np.isfinite(tables[0][part]))
        known = known[thin_numbers(len(known))] if len(known) else known
        return tables[0]["round"][known], tables[0][part][known]
    whole = [select_rows(table, table["round"] == np.floor(table["round"])) for table in tables]
    numbered = [{**table, "seed": np.full(len(table["round"]), i)} for i, table in enumerate(whole)]
    columns = ("fold", "seed", "round", part)
    return compute_mean_line({name: np.concatenate([table[name] for table in numbered]) for name in columns}, part)


def _make_marks(method: str, run: PolishedRun) -> list[dict[str, Any]]:
    """Return Plotly's traces of the points where polishing began and of the model that was kept."""
    ring = {"size": 11, "line": {"color": "var(--ink)", "width": 2}}
    marks = [
        (run.growing["round"][run.begun], 0, "start of polishing", "circle-open"),
        (run.polishing["round"][run.kept], run.kept, "kept", "circle"),
    ]
    return [
        _make_trace(method, panel, [x], [run.value(part, at)], name, f"{name}, {_PARTS[part][0]}")
        | {"mode": "markers", "marker": {**ring, "symbol": symbol}}
        for panel, (x, at, name, symbol) in enumerate(marks)
        for part in _PARTS
        if np.isfinite(run.value(part, at))
    ]


def _make_trace(method: str, panel: int, x: Any, y: Any, name: str, meta: str) -> dict[str, Any]:
    """Return Plotly's trace of a line in the left (0) or right (1) panel."""
    axes = {} if panel == 0 else {"xaxis": "x2", "yaxis": "y2"}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "meta": meta, "method": method, **axes}


def _make_layout(measure: str, last: float) -> dict[str, Any]:
    """Make Plotly's layout of the two panels; ``last`` is the last round of polishing."""
    return {
        "xaxis": {"title": {"text": "trees grown"}, "domain": [0, 0.56]},
        "yaxis": {"title": {"text": measure}},
        "xaxis2": {
            "title": {"text": "rounds of polishing"},
            "domain": [0.6, 1],
            "anchor": "y2",
            **({"dtick": 1} if last <= _TICKED else {}),
        },
        "yaxis2": {"matches": "y", "anchor": "x2", "showticklabels": False},
    }


POLISHING = ReportSection("Polishing", ("history",), _make_content, INTERNALS)
