"""What the paper says about figures 3 and 4, beside what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rankwright.papers.simulation.bounds.bounds_curves import ONE, PAIRS, RANKS, SETS, STEPS
from rankwright.papers.simulation.bounds.bounds_facts import BoundFacts, Samples
from rankwright.papers.simulation.bounds.bounds_tables import between, where
from rankwright.report.grid_blocks import Column, Grid, Row
from rankwright.report.notation import format_number


class Claim(NamedTuple):
    """A claim of the paper about a bound, and the answer of a data set."""

    said: str
    bound: str
    one: Callable[[BoundFacts], str]  # under one seed
    all: Callable[[Sequence[BoundFacts]], str]  # under all seeds


def _where(own: BoundFacts) -> str:
    return f"at {where(own)}, in π"


def _contains(own: Sequence[BoundFacts]) -> str:
    inside = sum(one.distance == 0.0 for one in own)
    return f"π/4 among them: {inside} of {len(own)}"


def _places(own: Sequence[BoundFacts]) -> str:
    return f"at {between(min(one.start for one in own), max(one.end for one in own))}, in π"


def _against(own: BoundFacts) -> str:
    return (
        f"{format_number(own.minimum, 3)} {'<' if own.minimum < own.type_one else '≥'} {format_number(own.type_one, 3)}"
    )


def _lower(own: Sequence[BoundFacts]) -> str:
    return f"{sum(one.minimum < one.type_one for one in own)} of {len(own)}"


def _holds(own: BoundFacts) -> str:
    return f"in {_directions(own.condition)} of {STEPS}; left side ≤ {format_number(own.margin, 3)}"


def _hold(own: Sequence[BoundFacts]) -> str:
    margin = max(one.margin for one in own)
    shares = [one.condition for one in own]
    return f"in {between(min(shares), max(shares), _directions)} of {STEPS}; left side ≤ {format_number(margin, 3)}"


def _below(own: BoundFacts) -> str:
    return f"in {_directions(own.below)} of {STEPS}"


def _belows(own: Sequence[BoundFacts]) -> str:
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
