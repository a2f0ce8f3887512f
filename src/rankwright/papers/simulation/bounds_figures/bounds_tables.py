"""The tables of the simulation of bounds, and its facts for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.number_texts import MISSING, format_number
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds_figures.bounds_curves import (
    NAMES,
    ONE,
    PAIRS,
    RANKS,
    SETS,
    STEPS,
    Samples,
    UpperBoundFacts,
    compute_type_one_curves,
    compute_type_two_curves,
    find_ranges,
)
from rankwright.report.grid_blocks import Column, Grid, Row

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
    """Make all tables by file name: the four figures and documents of the first seed, and the facts of all seeds."""
    first = found[min(found)]
    tables: dict[str, Table] = {"figure1": compute_type_one_curves(), "figure2": compute_type_two_curves()}
    for each, sample in zip(SETS, first, strict=True):
        theta, values, _ = sample.curves
        tables[f"figure{each.figure}"] = {"theta": theta, "theta/pi": theta / np.pi, **values}
        X, y = sample.documents
        tables[f"points{each.number}"] = {"x": X[:, 0], "y": X[:, 1], "grade": y.astype(np.int64)}
    return tables | {"summary": _tabulate_summary(found), "seeds": _tabulate_seeds(found)}


def _tabulate_summary(found: Samples) -> Table:
    """Make a table with a row for each data set, bound and fact: its value under the first seed, and its range."""
    first = found[min(found)]
    rows = []
    for each, sample in zip(SETS, first, strict=True):
        for name in NAMES:
            values = zip(FACTS.values(), sample.facts[name], *find_ranges(found, each.number, name), strict=True)
            rows += [(each.number, name, *row) for row in values if not np.isnan(row[1])]
    return _transpose_rows(("data set", "bound", "fact", "value", "lowest", "highest"), rows)


def _tabulate_seeds(found: Samples) -> Table:
    """Make a table with a row for each data set, seed and bound; its columns are the facts."""
    rows = [
        (each.number, seed, name, *drawn[each.number - 1].facts[name])
        for each in SETS
        for seed, drawn in found.items()
        for name in NAMES
    ]
    return _transpose_rows(("data set", "seed", "bound", *FACTS.values()), rows)


def _transpose_rows(names: tuple[str, ...], rows: Sequence[tuple[float | str, ...]]) -> Table:
    """Return rows as a table of columns with these names."""
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def format_text(measure: Measure, found: Samples) -> str:
    """Return a table for a terminal: where each bound has its minimum, and where it is below the type one bound."""
    seed, last = min(found), max(found)
    header = ["data set", "bound", "minimum", "at theta/pi", "from pi/4", "range", "below type one", "range"]
    rows = []
    for each in SETS:
        for name in NAMES:
            own = found[seed][each.number - 1].facts[name]
            low, high = find_ranges(found, each.number, name)
            rows.append([
                Entry(each.number, str(each.number)), _as_entry(name), Entry(own.minimum, format_number(own.minimum)),
                _as_entry(format_place(own)), Entry(own.distance, format_number(own.distance, 3)),
                _as_entry(format_range(low.distance, high.distance)), _as_entry(format_percent(own.below)),
                _as_entry(format_range(low.below, high.below, format_percent)),
            ])  # fmt: skip
    caption = f"Exponential bounds on the loss 1 - E of {measure}, seed {seed}: where they are least."
    note = (
        f"from pi/4: the distance of the minimum, in pi. below type one: on how much of the circle. "
        f"range: seeds {seed} to {last}."
    )
    return format_aligned(TextTable(header, rows, caption, note))


def format_place(own: UpperBoundFacts) -> str:
    """Return as text the direction in which a bound is least, in units of pi, or the range of such directions."""
    return (
        format_number(own.start, 3)
        if own.start == own.end
        else f"{format_number(own.start, 3)} to {format_number(own.end, 3)}"
    )


def format_percent(share: float) -> str:
    """Return a share of the circle as a percentage, or a dash if it is NaN.

    >>> format_percent(0.25), format_percent(0.0), format_percent(float("nan"))
    ('25.0%', '0.0%', '–')
    """
    return MISSING if np.isnan(share) else f"{100 * share:.1f}%"


_format_three_decimals = partial(format_number, digits=3)


def format_range(low: float, high: float, written: Callable[[float], str] = _format_three_decimals) -> str:
    """Return the range of two numbers as text, such as "0 to 1"; only one number if both read the same.

    >>> format_range(0.0, 0.25), format_range(0.5, 0.5)
    ('0.000 to 0.250', '0.500')
    """
    ends = written(low), written(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _as_entry(words: str) -> Entry:
    """Return a text as an entry of a table."""
    return Entry(words, words)


class Claim(NamedTuple):
    """A claim of the paper about a bound, with functions that say what one seed, and all seeds, answer to it."""

    said: str
    bound: str
    one: Callable[[UpperBoundFacts], str]  # under one seed
    all: Callable[[Sequence[UpperBoundFacts]], str]  # under all seeds


def _describe_minimum(own: UpperBoundFacts) -> str:
    """Say in which direction the bound is least, under one seed."""
    return f"at {format_place(own)}, in π"


def _count_at_quarter(own: Sequence[UpperBoundFacts]) -> str:
    """Say in how many seeds the bound is least at pi / 4."""
    inside = sum(one.distance == 0.0 for one in own)
    return f"π/4 among them: {inside} of {len(own)}"


def _describe_minima(own: Sequence[UpperBoundFacts]) -> str:
    """Say between which directions the bound is least, over all seeds."""
    return f"at {format_range(min(one.start for one in own), max(one.end for one in own))}, in π"


def _compare_with_type_one(own: UpperBoundFacts) -> str:
    """Say whether the minimum of the bound is below the type one bound there: both numbers, with < or ≥."""
    return (
        f"{format_number(own.minimum, 3)} {'<' if own.minimum < own.type_one else '≥'} {format_number(own.type_one, 3)}"
    )


def _count_below_type_one(own: Sequence[UpperBoundFacts]) -> str:
    """Say in how many seeds the minimum of the bound is below the type one bound there."""
    return f"{sum(one.minimum < one.type_one for one in own)} of {len(own)}"


def _describe_condition(own: UpperBoundFacts) -> str:
    """Say in how many directions condition (9) holds under one seed, and the largest value of its left side."""
    return f"in {_to_directions(own.condition)} of {STEPS}; left side ≤ {format_number(own.margin, 3)}"


def _describe_conditions(own: Sequence[UpperBoundFacts]) -> str:
    """Say in how many directions condition (9) holds, over all seeds, and the largest value of its left side."""
    margin = max(one.margin for one in own)
    shares = [one.condition for one in own]
    held = format_range(min(shares), max(shares), _to_directions)
    return f"in {held} of {STEPS}; left side ≤ {format_number(margin, 3)}"


def _describe_lower_part(own: UpperBoundFacts) -> str:
    """Say in how many directions the bound is below the type one bound, under one seed."""
    return f"in {_to_directions(own.below)} of {STEPS}"


def _describe_lower_parts(own: Sequence[UpperBoundFacts]) -> str:
    """Say in how many directions the bound is below the type one bound, over all seeds."""
    shares = [one.below for one in own]
    return f"in {format_range(min(shares), max(shares), _to_directions)} of {STEPS}"


def _to_directions(share: float) -> str:
    """Return a share of the circle as the number of directions in it, as text."""
    return str(round(share * STEPS))


CLAIMS = (
    Claim("type one least at π/4", ONE, _describe_minimum, _count_at_quarter),
    Claim("type two least at π/4", PAIRS, _describe_minimum, _describe_minima),
    Claim("two below one there", PAIRS, _compare_with_type_one, _count_below_type_one),
    Claim("(9) of theorem 3 holds", PAIRS, _describe_condition, _describe_conditions),
    Claim("two below one at all", PAIRS, _describe_lower_part, _describe_lower_parts),
    Claim("two below one, eq. (2)", RANKS, _describe_lower_part, _describe_lower_parts),
)


def make_claims_grid(found: Samples) -> Grid:
    """Make the table of the paper's claims about bounds, with what each data set answers to them."""
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
