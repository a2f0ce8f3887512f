"""The tables of the simulation of bounds, and its facts for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rankwright.analysis.results import Table
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds.bounds_curves import NAMES, SETS, type_one_curves, type_two_curves
from rankwright.papers.simulation.bounds.bounds_facts import BoundFacts, Sample, Samples, spread
from rankwright.report.notation import MISSING, format_number
from rankwright.report.text_tables import Entry, TextTable, format_aligned

FACTS: Mapping[str, str] = {
    "minimum": "minimum",
    "start": "from theta/pi",
    "end": "to theta/pi",
    "distance": "distance to pi/4, in pi",
    "at_quarter": "at pi/4",
    "basic": "basic loss there",
    "type_one": "type one there",
    "below": "share below type one",
    "below_start": "below from theta/pi",
    "below_end": "below to theta/pi",
    "condition": "share where (9) holds",
    "margin": "largest left side of (9)",
}  # headings


def make_tables(found: Samples) -> dict[str, Table]:
    """Return every file: the four figures and the documents of the first seed, and the facts of all."""
    first = found[min(found)]
    tables: dict[str, Table] = {"figure1": type_one_curves(), "figure2": type_two_curves()}
    for each, sample in zip(SETS, first, strict=True):
        tables[f"figure{each.figure}"] = _curves(sample)
        tables[f"points{each.number}"] = _points(sample)
    return tables | {"summary": _summary(found), "seeds": _seeds(found)}


def _curves(sample: Sample) -> Table:
    theta, values, _ = sample.curves
    return {"theta": theta, "theta/pi": theta / np.pi, **values}


def _points(sample: Sample) -> Table:
    X, y = sample.documents
    return {"x": X[:, 0], "y": X[:, 1], "grade": y.astype(np.int64)}


def _summary(found: Samples) -> Table:
    """Return a row for each data set, bound and fact: under the first seed, and the range over all."""
    first = found[min(found)]
    rows = []
    for each, sample in zip(SETS, first, strict=True):
        for name in NAMES:
            values = zip(FACTS.values(), sample.facts[name], *spread(found, each.number, name), strict=True)
            rows += [(each.number, name, *row) for row in values if not np.isnan(row[1])]
    return _table(("data set", "bound", "fact", "value", "lowest", "highest"), rows)


def _seeds(found: Samples) -> Table:
    """Return a row for each data set, seed and bound."""
    rows = [
        (each.number, seed, name, *drawn[each.number - 1].facts[name])
        for each in SETS
        for seed, drawn in found.items()
        for name in NAMES
    ]
    return _table(("data set", "seed", "bound", *FACTS.values()), rows)


def _table(names: tuple[str, ...], rows: Sequence[tuple[float | str, ...]]) -> Table:
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def format_text(measure: Measure, found: Samples) -> str:
    """Return where each bound is least, as a table for a terminal."""
    seed, last = min(found), max(found)
    header = ["data set", "bound", "minimum", "at theta/pi", "from pi/4", "range", "below type one", "range"]
    rows = []
    for each in SETS:
        for name in NAMES:
            own = found[seed][each.number - 1].facts[name]
            low, high = spread(found, each.number, name)
            rows.append([
                Entry(each.number, str(each.number)), _words(name), Entry(own.minimum, format_number(own.minimum)),
                _words(where(own)), Entry(own.distance, format_number(own.distance, 3)),
                _words(between(low.distance, high.distance)), _words(percent(own.below)),
                _words(between(low.below, high.below, percent)),
            ])  # fmt: skip
    caption = f"Exponential bounds on the loss 1 - E of {measure}, seed {seed}: where they are least."
    note = (
        f"from pi/4: the distance of the minimum, in pi. below type one: on how much of the circle. "
        f"range: seeds {seed} to {last}."
    )
    return format_aligned(TextTable(header, rows, caption, note))


def where(own: BoundFacts) -> str:
    """Return where a bound is least: a direction, or all from one to another."""
    return (
        format_number(own.start, 3)
        if own.start == own.end
        else f"{format_number(own.start, 3)} to {format_number(own.end, 3)}"
    )


def percent(share: float) -> str:
    """Return a share of the circle.

    >>> percent(0.25), percent(0.0), percent(float("nan"))
    ('25.0%', '0.0%', '–')
    """
    return MISSING if np.isnan(share) else f"{100 * share:.1f}%"


def _three(value: float) -> str:
    return format_number(value, 3)


def between(low: float, high: float, written: Callable[[float], str] = _three) -> str:
    """Return a range; one number where both ends read alike.

    >>> between(0.0, 0.25), between(0.5, 0.5)
    ('0.000 to 0.250', '0.500')
    """
    ends = written(low), written(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _words(words: str) -> Entry:
    return Entry(words, words)
