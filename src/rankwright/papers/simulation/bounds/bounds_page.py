"""The page of the simulation of bounds."""

from __future__ import annotations

from rankwright.basics.version import __version__
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds.bounds_charts import figure, figure_1, figure_2, points
from rankwright.papers.simulation.bounds.bounds_claims import claims_grid
from rankwright.papers.simulation.bounds.bounds_curves import NAMES, SETS, STEPS, SyntheticSet
from rankwright.papers.simulation.bounds.bounds_facts import BoundFacts, Sample, Samples, spread
from rankwright.papers.simulation.bounds.bounds_tables import between, percent, where
from rankwright.report.blocks import Block, Column, Grid, Page, Row, Section, Text
from rankwright.report.notation import MISSING, format_number


def make_page(measure: Measure, found: Samples) -> Page:
    """Make the page: claims, the four figures, and the seeds."""
    seed, last = min(found), max(found)
    facts = [
        ("Measure E", str(measure)),
        ("Documents", "7 relevant, 14 irrelevant"),
        ("Directions", f"{STEPS}"),
        ("Seed of the figures", f"{seed}"),
        ("All seeds", f"{seed} to {last}"),
    ]
    sections = [
        Section("Claims and findings", _CLAIMS, [claims_grid(found), Text(_READING)]),
        Section("Figure 1: type one", _TYPE_ONE, [figure_1()]),
        Section("Figure 2: type two", _TYPE_TWO, [figure_2()]),
        *(_section(measure, each, found[seed][each.number - 1]) for each in SETS),
        Section("All seeds", _SEEDS.format(seed, last), [_seeds(found)]),
    ]
    subtitle = "Upper bounds on 1 - E: figures 1 to 4 of Xu et al., recomputed; every value is exact"
    return Page("Bounds", subtitle, facts, (), sections, f"Rankwright {__version__}")


_CLAIMS = (
    "The paper, section 4.3: “both the type one bound and type two bound are optimized when θ = π/4. The type two "
    "bound is tighter than the type one bound when the ranking model is close to its optimal. The results agree well "
    "with Theorem 3.”"
)
_READING = """
Type one depends on the ranking alone. It is flat wherever the ranking is perfect, so that it cannot point at one
direction. Type two also depends on the scores, and can.

The means of the two Gaussians differ most at π/4. They are separated best by the inverse of their covariance times
the difference of the means: on set 1 that is π/4 too, but on set 2 it is 0.049 π, and a minimum need not be at π/4.

Theorem 3 says that type two is below type one where condition (9) holds: every perfect ranking is ahead of every
imperfect one, in F, by at least the E of the model, which is 1 where the model ranks perfectly. But where two
neighbours change places, F changes by 2/98 of the difference of their scores (pair Φ; less with eq. (2)'s), which no w
of length 1 brings near 1. So where type two is below type one here, theorem 3 is not the reason.

The paper does not say which Φ its figures have. Under eq. (2) perfect rankings differ in F, and the bound, which
takes the worst of them, pays for the spread of scores inside a class.
"""
_TYPE_ONE = (
    "The loss of one query against its E, the measure divided by its highest value. The exponential is the tighter of "
    "the two bounds."
)
_TYPE_TWO = (
    "One term of the bounds: a perfect ranking b and an imperfect one c, with E(b) - E(c) = 0.5. None is the tightest "
    "everywhere. The two hinges, with x = F(b) - F(c): “hinge” is 0.5 [1-x]₊, “margin”, which SVM-map minimises, is "
    "[0.5-x]₊."
)
_SEEDS = "Both sets drawn with the seeds {} to {}: the lowest and the highest of each number."


def _section(measure: Measure, each: SyntheticSet, sample: Sample) -> Section:
    first, second = (format_number(variance, 1) for variance in each.variances)
    lead = (
        f"Gaussians around (1, 1) and (-1, -1); the features have the variances {first} and {second}, and no "
        f"correlation. The ranking model is w = (cos θ, sin θ)."
    )
    blocks: list[Block] = [figure(measure, each, sample), _facts(each, sample), points(each, sample)]
    return Section(f"Figure {each.figure}: set {each.number}", lead, blocks)


def _facts(each: SyntheticSet, sample: Sample) -> Grid:
    columns = [
        Column("bound"),
        Column("minimum", 4),
        Column("at θ/π", title="Where it is least: a direction, or all from one to another"),
        Column("from π/4", 3, "How far that is from π/4, in π"),
        Column("at π/4", 4, "The bound at θ = π/4"),
        Column("basic loss there", 4, "The basic loss where the bound is least"),
        Column("below type one, θ/π", title="The directions nearest to π/4, and how much of the circle in all"),
    ]
    rows = [
        Row([name, own.minimum, where(own), own.distance, own.at_quarter, own.basic, _below(own)])
        for name, own in sample.facts.items()
    ]
    return Grid(columns, rows, f"Where the curves of figure {each.figure} are least")


def _below(own: BoundFacts) -> str:
    arc = f"{format_number(own.below_start, 3)} to {format_number(own.below_end, 3)} ({percent(own.below)})"
    return arc if own.below > 0.0 else "nowhere" if own.below == 0.0 else MISSING


def _seeds(found: Samples) -> Grid:
    columns = [
        Column("set"),
        Column("bound"),
        Column("minimum"),
        Column("from θ/π", title="The first direction in which the bound is least"),
        Column("to θ/π", title="The last"),
        Column("from π/4", title="How far these are from π/4, in π"),
        Column("below type one", title="On how much of the circle"),
    ]
    rows = [Row([each.number, name, *_ranges(*spread(found, each.number, name))]) for each in SETS for name in NAMES]
    return Grid(columns, rows, "Ranges over the seeds", "seeds.csv has every seed, summary.csv every fact.")


def _ranges(low: BoundFacts, high: BoundFacts) -> list[str]:
    pairs = [
        (low.minimum, high.minimum),
        (low.start, high.start),
        (low.end, high.end),
        (low.distance, high.distance),
    ]
    return [*(between(*pair) for pair in pairs), between(low.below, high.below, percent)]
