"""The lines of learning curves: means over runs, their bands, kept rounds, and the heights that matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats, Ints
from rankwright.report.chosen_runs import find_deciding_values, split_runs

MOST_POINTS = 150  # the most points of a line
_START = 10  # the first tenth of a line may lie below the chart
_FEWEST_RUNS = 3  # that have a band
_UNEVEN = 20.0  # an axis is logarithmic where highest / lowest line exceeds this
_SIGNED = ("alpha", "r")  # only the size is shown: the sign is the direction of the feature


def compute_mean_line(table: Table, column: str) -> tuple[Floats, Floats]:
    """Return some rounds, evenly spread, and the column's mean over runs there; an ended run keeps its last value."""
    rounds = np.unique(table["round"])
    values = np.stack([_fill_rounds(rounds, run, column) for run in split_runs(table)]).mean(axis=0)
    known = np.flatnonzero(np.isfinite(values))
    kept = known[thin_numbers(len(known))]
    return rounds[kept], values[kept]


def _fill_rounds(rounds: Floats, run: Table, column: str) -> Floats:
    """Return a run's column at each round: the value of the last round that the run has by then; NaN before its first.

    After its end a run has its last known value: not every round need have recorded one.
    """
    order = np.argsort(run["round"], kind="stable")
    last = np.searchsorted(run["round"][order], rounds, side="right") - 1
    recorded = np.asarray(run[column], dtype=np.float64)[order]
    values = np.append(np.abs(recorded) if column in _SIGNED else recorded, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    if len(known):
        last = np.where(rounds > run["round"].max(), known[-1], last)
    filled: Floats = values[last]  # index -1, before the first round, is the NaN at the end
    return filled


def thin_numbers(n: int) -> Ints:
    """Return at most ``MOST_POINTS`` of the indexes 0 to n - 1, evenly spread, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.intp))


def find_kept_round(table: Table) -> float | None:
    """Return the round that the runs of a history kept, by their validation measure: the median; None without one."""
    if "valid" not in table:
        return None
    runs = [run for run in split_runs(table) if np.isfinite(run["valid"]).any()]
    rounds = [float(run["round"][np.argmax(find_deciding_values(run))]) for run in runs]
    return float(np.median(rounds)) if rounds else None


def compute_band(table: Table, column: str, rounds: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return rounds and the mean line less and plus one standard error between runs; None for fewer than three runs.

    The level of each run, its mean over the rounds, is taken out first: folds differ in how hard they are, which says
    nothing about a method.
    """
    runs = split_runs(table)
    if len(runs) < _FEWEST_RUNS:
        return None
    values = np.stack([_fill_rounds(rounds, run, column) for run in runs])
    known = np.isfinite(values).all(axis=0)
    if known.sum() < 2:
        return None
    own, at = values[:, known], rounds[known]
    centred = own - own.mean(axis=1, keepdims=True)
    error = centred.std(axis=0, ddof=1) / np.sqrt(len(runs))
    mean = own.mean(axis=0)
    return at, mean - error, mean + error


def choose_heights(lines: Sequence[Floats]) -> list[float] | None:
    """Return the vertical range that matters: of what each line reaches after its first tenth; None without lines."""
    late = [line[min(-(-len(line) // _START), len(line) - 1) :] for line in lines]
    if not late:
        return None
    low, high = min(float(np.min(line)) for line in late), max(float(np.max(line)) for line in lines)
    margin = 0.06 * (high - low) or 0.01
    return [low - margin, high + margin]


def is_uneven(lines: Sequence[Floats]) -> bool:
    """Return whether lines differ so much in height that they need a logarithmic axis; all must be above 0.

    >>> low, high = np.array([0.5, 0.4]), np.array([90.0, 60.0])
    >>> is_uneven([low, high]), is_uneven([low, 4 * low])
    (True, False)
    """
    levels = [float(np.median(line)) for line in lines]
    return min((float(np.min(line)) for line in lines), default=0.0) > 0 and max(levels) > _UNEVEN * min(levels)
