"""The curves of figures 1 to 4 of Xu et al., every value exact, and the facts that they show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.progress import track
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.surrogates import compute_violations
from rankwright.measures import Measure
from rankwright.objectives.rankings import prepare_rankings
from rankwright.objectives.upper_bounds import SURROGATES, Basic, TypeOne, TypeTwo, UpperBound

STEPS = 720  # steps of the circle
QUARTER = STEPS // 8  # where theta is pi / 4
PHIS: Mapping[str, str] = {"type two (pairs)": "pairs", "type two (eq. 2)": "ranks"}
BASIC, ONE = "basic loss", "type one"
PAIRS, RANKS = PHIS
NAMES = (BASIC, ONE, PAIRS, RANKS)
_EFFORT = 1_000_000  # the most nodes of a search: enough for an exact one
LOST = 0.5  # E(b) - E(c) in figure 2


class SyntheticSet(NamedTuple):
    """A distribution of documents with two features, from which a figure of the paper is made."""

    number: int
    figure: int
    variances: tuple[float, float]  # the diagonal of the covariance matrix, which the paper calls deviation matrix

    @property
    def fisher(self) -> float:
        """The direction that separates the two Gaussians best, as theta / pi: the covariance's inverse times (1, 1)."""
        return float(np.arctan2(self.variances[0], self.variances[1]) / np.pi)


SETS = (SyntheticSet(1, 3, (0.2, 0.2)), SyntheticSet(2, 4, (0.2, 1.3)))


class SimulatedDocuments(NamedTuple):
    """A query of 21 documents with two features each, and their grades."""

    X: Floats  # (21, 2)
    y: Floats


def draw(variances: tuple[float, float], rng: np.random.Generator) -> SimulatedDocuments:
    """Draw a query: 7 relevant documents around (1, 1), then 14 irrelevant ones around (-1, -1)."""
    y = np.repeat([1.0, 0.0], [7, 14])
    centres = np.where(y > 0, 1.0, -1.0)[:, None]
    return SimulatedDocuments(centres + rng.standard_normal((len(y), 2)) * np.sqrt(variances), y)


class Curves(NamedTuple):
    """The bounds on a query's loss for linear models in every direction theta, from 0 to 2 pi, both ends included."""

    theta: Floats
    values: Mapping[str, Floats]  # by bound
    margins: Mapping[str, Floats]  # by type two bound: the left side of condition (9)


def compute_curves(measure: Measure, documents: SimulatedDocuments) -> Curves:
    """Compute the basic loss of a query and the exponential bounds on it, for linear models in every direction."""
    theta = np.linspace(0.0, 2.0 * np.pi, STEPS + 1)
    scores = (np.cos(theta)[:, None] * documents.X[:, 0] + np.sin(theta)[:, None] * documents.X[:, 1]).ravel()
    n, m = len(theta), len(documents.y)
    copies = Queries(  # each direction becomes a query, whose scores are all that matters
        np.zeros((n * m, 1), dtype=np.float32), np.tile(documents.y, n), np.arange(n + 1) * m, np.arange(n)
    )
    _check_measure(measure, copies)
    bounds: dict[str, UpperBound] = {BASIC: Basic(measure), ONE: TypeOne(measure, "exponential")}
    bounds |= {name: TypeTwo(measure, "exponential", "max", phi, effort=_EFFORT) for name, phi in PHIS.items()}
    values = {name: _compute_exact_bound(name, bound, copies, scores) for name, bound in bounds.items()}
    return Curves(theta, values, {name: _compute_margins(measure, phi, copies, scores) for name, phi in PHIS.items()})


def _check_measure(measure: Measure, queries: Queries) -> None:
    """Raise InputError if the measure gives all rankings of the queries the same value."""
    if not len(prepare_rankings(measure, queries).live):
        raise InputError(
            f"{measure}: all rankings of documents with grades 0 and 1 are equal; expected another measure"
        )


def _compute_exact_bound(name: str, bound: UpperBound, queries: Queries, scores: Floats) -> Floats:
    """Return the value of a bound for each query; raise InputError if one of them is not exact."""
    values, _, exact = bound.prepare(queries).at(scores)
    if not exact.all():
        raise InputError(
            f"{name} of {bound.measure}: not exact in {(~exact).sum()} of {len(exact)} directions; "
            f"expected a measure whose worst ranking can be found"
        )
    return values


def _compute_margins(measure: Measure, phi: str, queries: Queries, scores: Floats) -> Floats:
    """Return by query F of the hardest perfect ranking minus F of the best imperfect one, as in condition (9)."""
    found = prepare_rankings(measure, queries, phi)
    return found.F(found.find_hardest_perfect(scores), scores) - found.F(found.find_best_imperfect(scores), scores)


def compute_type_one_curves() -> Table:
    """Return the curves of figure 1: the basic loss and its type one bounds, against the measure's value E."""
    E = np.linspace(0.0, 1.0, 101)
    bounds = {name: compute_violations(SURROGATES[name], np.ones_like(E), -E)[0] for name in TypeOne.SURROGATES}
    return {"E": E, BASIC: 1.0 - E, **bounds}


def compute_type_two_curves() -> Table:
    """Return the curves of figure 2: one term of eq. (6) and its bounds, against the difference F(b) - F(c)."""
    x = np.arange(-200, 201) / 100.0  # includes 0, where the step is
    return {
        "F(b) - F(c)": x,
        **{name: compute_violations(k, np.full_like(x, LOST), -x)[0] for name, k in SURROGATES.items()},
    }


N_SEEDS = 6
_FLAT = 1e-9  # values this close are equal
_UNIT = 2.0 / STEPS  # a step, as theta / pi


class Arc(NamedTuple):
    """An arc of the circle of directions: its start and its end, both included, in units of pi."""

    start: float
    end: float

    @property
    def distance(self) -> float:
        """The distance from the arc to pi / 4, in units of pi."""
        return max(self.start - 0.25, 0.25 - self.end, 0.0)


def find_nearest_arc(inside: NDArray[np.bool_]) -> Arc:
    """Return the arc nearest to pi / 4 among those where ``inside`` is true; its ends are NaN if there is none.

    >>> inside = np.zeros(STEPS, dtype=bool)
    >>> inside[[0, 1, 2, -1, 500]] = True
    >>> [round(float(end), 4) for end in find_nearest_arc(inside)]
    [-0.0028, 0.0056]
    """
    if inside.all() or not inside.any():
        end = 1.0 if inside.any() else np.nan
        return Arc(0.25 - end, 0.25 + end)
    steps = (np.arange(STEPS) - QUARTER + STEPS // 2) % STEPS - STEPS // 2  # from pi / 4
    row = min(np.flatnonzero(inside).tolist(), key=lambda i: abs(steps[i]))
    left = np.argmin(np.roll(inside[::-1], row + 1)) - 1  # steps that the arc goes on
    right = np.argmin(np.roll(inside, -row)) - 1
    return Arc(*(float(0.25 + step * _UNIT) for step in (steps[row] - left, steps[row] + right)))


class UpperBoundFacts(NamedTuple):
    """The facts about one bound on one data set: its minimum, and where it is; type two facts may be NaN."""

    minimum: float
    start: float  # of the arc on which it has its minimum; of several, the one nearest to pi / 4
    end: float
    distance: float  # of that arc from pi / 4, in pi
    at_quarter: float  # the bound at pi / 4
    basic: float  # the basic loss where the bound is least
    type_one: float  # the type one bound there
    below: float  # the share of the circle where it is below type one
    below_start: float  # the arc nearest to pi / 4 where it is
    below_end: float
    condition: float  # the share of the circle where condition (9) holds
    margin: float  # the largest left side of condition (9)


def compute_facts(found: Curves) -> dict[str, UpperBoundFacts]:
    """Compute the facts about each bound of some curves; return them by the bound's name."""
    values = {name: column[:STEPS] for name, column in found.values.items()}
    return {name: _compute_bound_facts(name, values, found.margins) for name in values}


def _compute_bound_facts(name: str, values: Mapping[str, Floats], margins: Mapping[str, Floats]) -> UpperBoundFacts:
    """Compute the facts about the bound of this name, such as its minimum and the directions where it is reached."""
    own = values[name]
    least = own.min()
    arc = find_nearest_arc(own <= least + _FLAT)
    there = round(float(np.clip(0.25, *arc)) / _UNIT) % STEPS
    below, below_arc, condition, margin = np.nan, Arc(np.nan, np.nan), np.nan, np.nan
    if name in margins:
        lower, left = own < values[ONE], margins[name][:STEPS]
        below, below_arc = lower.mean(), find_nearest_arc(lower)
        condition, margin = (left >= 1.0 - values[BASIC]).mean(), left.max()
    at = (own[QUARTER], values[BASIC][there], values[ONE][there])
    return UpperBoundFacts(*map(float, (least, *arc, arc.distance, *at, below, *below_arc, condition, margin)))


class Sample(NamedTuple):
    """A data set drawn with one seed: its documents, their curves, and the facts about these."""

    documents: SimulatedDocuments
    curves: Curves
    facts: Mapping[str, UpperBoundFacts]


Samples = Mapping[int, tuple[Sample, ...]]  # by seed, a sample for each of SETS


def draw_samples(measure: Measure, seed: int) -> Samples:
    """Draw both data sets with this seed and the next five, and compute their curves and facts; return them by seed."""
    seeds = range(seed, seed + N_SEEDS)
    return {each: _draw_sets(measure, each) for each in track(seeds, "seeds", N_SEEDS)}


def _draw_sets(measure: Measure, seed: int) -> tuple[Sample, ...]:
    """Draw both data sets with one seed, and compute their curves and facts."""
    rng = make_generator(seed)
    documents = [draw(each.variances, rng) for each in SETS]
    found = [compute_curves(measure, each) for each in documents]
    return tuple(Sample(each, its, compute_facts(its)) for each, its in zip(documents, found, strict=True))


def find_ranges(samples: Samples, number: int, name: str) -> tuple[UpperBoundFacts, UpperBoundFacts]:
    """Return the lowest and the highest value of each fact about a bound, over all seeds of data set ``number``."""
    rows = np.array([each[number - 1].facts[name] for each in samples.values()])
    return UpperBoundFacts(*rows.min(axis=0).tolist()), UpperBoundFacts(*rows.max(axis=0).tolist())
