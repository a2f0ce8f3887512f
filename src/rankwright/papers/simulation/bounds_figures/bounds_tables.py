"""The tables of the simulation of bounds, and its facts for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwright.analysis.results import Table
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds_figures.bounds_curves import (
    NAMES,
    ONE,
    PAIRS,
    RANKS,
    SETS,
    STEPS,
    Sample,
    Samples,
    UpperBoundFacts,
    find_ranges,
    type_one_curves,
    type_two_curves,
)
from rankwright.report.grid_blocks import Column, Grid, Row
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
            values = zip(FACTS.values(), sample.facts[name], *find_ranges(found, each.number, name), strict=True)
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
            low, high = find_ranges(found, each.number, name)
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


def where(own: UpperBoundFacts) -> str:
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


class Claim(NamedTuple):
    """A claim of the paper about a bound, and the answer of a data set."""

    said: str
    bound: str
    one: Callable[[UpperBoundFacts], str]  # under one seed
    all: Callable[[Sequence[UpperBoundFacts]], str]  # under all seeds


def _where(own: UpperBoundFacts) -> str:
    return f"at {where(own)}, in π"


def _contains(own: Sequence[UpperBoundFacts]) -> str:
    inside = sum(one.distance == 0.0 for one in own)
    return f"π/4 among them: {inside} of {len(own)}"


def _places(own: Sequence[UpperBoundFacts]) -> str:
    return f"at {between(min(one.start for one in own), max(one.end for one in own))}, in π"


def _against(own: UpperBoundFacts) -> str:
    return (
        f"{format_number(own.minimum, 3)} {'<' if own.minimum < own.type_one else '≥'} {format_number(own.type_one, 3)}"
    )


def _lower(own: Sequence[UpperBoundFacts]) -> str:
    return f"{sum(one.minimum < one.type_one for one in own)} of {len(own)}"


def _holds(own: UpperBoundFacts) -> str:
    return f"in {_directions(own.condition)} of {STEPS}; left side ≤ {format_number(own.margin, 3)}"


def _hold(own: Sequence[UpperBoundFacts]) -> str:
    margin = max(one.margin for one in own)
    shares = [one.condition for one in own]
    return f"in {between(min(shares), max(shares), _directions)} of {STEPS}; left side ≤ {format_number(margin, 3)}"


def _below(own: UpperBoundFacts) -> str:
    return f"in {_directions(own.below)} of {STEPS}"


def _belows(own: Sequence[UpperBoundFacts]) -> str:
    shares = [one.below for one in own]
    return f"in {between(min(shares), max(shares), _directions)} of {STEPS}"


def _directions(share: float) -> str:
    return str(round(share * STEPS))


CLAIMS = (
    Claim("type one least at π/4", ONE, _where, _contains),
    Claim("type two least at π/4", PAIRS, _where, _places),
    Claim("two below one there", PAIRS, _against, _lower),
    Claim("(9) of theorem 3 holds", PAIRS, _holds, _hold),
    Claim("two below one at all", PAIRS, _below, _belows),
    Claim("two below one, eq. (2)", RANKS, _below, _belows),
)


def claims_grid(found: Samples) -> Grid:
    """Return a row for each claim and data set."""
    seed, last = min(found), max(found)
    rows = []
    for claim in CLAIMS:
        for each in SETS:
            own = [drawn[each.number - 1].facts[claim.bound] for drawn in found.values()]
            rows.append(Row([claim.said, each.number, claim.one(own[0]), claim.all(own)]))
    columns = [
        Column("claim", title="What the paper says, or its figures should show"),
        Column("set"),
        Column(f"seed {seed}"),
        Column(f"seeds {seed} to {last}"),
    ]
    note = (
        f"Out of {STEPS} directions, or of {len(found)} seeds. “Two below one”: the type two bound is below the type "
        f"one bound; “there”: where type two is least. Type two has the pair Φ, but for the last claim."
    )
    return Grid(columns, rows, "The paper's claims, and what was found", note)
