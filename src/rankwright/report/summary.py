"""The figures of a report, computed once for the page and the tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwright.analysis.results import Results, Table
from rankwright.analysis.significance import Comparison, Interval, bootstrap_interval
from rankwright.analysis.significance.comparison_table import ABOVE as ABOVE
from rankwright.analysis.significance.comparison_table import BELOW as BELOW
from rankwright.analysis.significance.comparison_table import COMPARISON_NOTE as COMPARISON_NOTE
from rankwright.analysis.significance.comparison_table import LEVEL as LEVEL
from rankwright.analysis.significance.comparison_table import TESTS as TESTS
from rankwright.analysis.significance.comparison_table import choose_mark as choose_mark
from rankwright.analysis.significance.comparison_table import order_p_values as order_p_values
from rankwright.basics.array_types import Floats

_BELOW_TEST = f"significantly below the best (randomisation test, Holm over all pairs of methods, p < {LEVEL:g})"
_DRAWS = 2_000  # bootstrap samples; few suffice, as intervals are only drawn
MOST_SHOWN = 6  # measures whose comparisons are shown pair by pair


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a report: the mean of one method under one measure, with its rank and its comparison with the best.

    Parameters
    ----------
    mean : float
        The mean of the fold means; NaN where a fold has no result.
    rank : float
        The rank among the methods that have a mean, 1 for the best; equal means share the mean of their ranks.
    best : bool
        Whether no method has a higher mean, and another one has a mean.
    against : Comparison, optional
        The comparison with the best method, for every other one that has a mean; p is adjusted for all pairs.
    """

    mean: float
    rank: float
    best: bool
    against: Comparison | None

    @property
    def below(self) -> bool:
        """Whether the method is significantly worse than the best."""
        return self.against is not None and choose_mark(self.against) == BELOW


@dataclass(frozen=True, slots=True)
class MeanSpread:
    """The uncertainty of a mean: its standard error and its 95% bootstrap interval over queries."""

    error: float
    low: float
    high: float


class Summary:
    """A summary of results for a report; every part is computed when it is first used.

    Parameters
    ----------
    results : Results
        What an experiment found.
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the spec."""
        return self.results.methods

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures, the deciding one first."""
        decisive = self.results.measure
        return (decisive, *(name for name in self.results.measures if name != decisive))

    @property
    def shown(self) -> tuple[str, ...]:
        """The measures whose comparisons are shown pair by pair."""
        return tuple(name for name in self.measures[:MOST_SHOWN] if self.comparisons[name])

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each measure: its name without options, unless another has the same."""
        heads = [name.partition("(")[0] for name in self.measures]
        names = zip(self.measures, heads, strict=True)
        return {name: head if heads.count(head) == 1 else name for name, head in names}

    @property
    def decisive(self) -> str:
        """The label of the measure that selected."""
        return self.labels[self.results.measure]

    @cached_property
    def options(self) -> str:
        """The options that the labels leave out, as a sentence; empty where there are none."""
        groups: dict[str, list[str]] = {}
        for name, label in self.labels.items():
            if name != label:
                groups.setdefault(name.partition("(")[2].removesuffix(")"), []).append(label)
        if [len(labels) for labels in groups.values()] == [len(self.measures)]:
            return f"All measures are computed with {next(iter(groups))}."
        return " ".join(f"With {options}: {', '.join(labels)}." for options, labels in groups.items())

    def table(self, name: str) -> Table:
        """Return a table of the results; one that is absent has no columns."""
        return self.results.tables.get(name, {})

    def has(self, name: str) -> bool:
        """Return whether a table is there and has rows."""
        return any(len(column) > 0 for column in self.table(name).values())

    @cached_property
    def values(self) -> dict[str, Floats]:
        """The mean over the seeds by measure, method (row) and test query (column)."""
        return {name: self.results.values(name) for name in self.measures}

    @cached_property
    def figures(self) -> dict[str, tuple[Figure, ...]]:
        """The figures of all methods, by measure."""
        return {name: self._figures(name) for name in self.measures}

    @property
    def below_note(self) -> str:
        """The note that explains the marks of figures; empty where there is nothing to compare."""
        figures = [figure for row in self.figures.values() for figure in row]
        tested = [f.against.p.randomisation for f in figures if f.against is not None]
        if any(figure.below for figure in figures):
            return f"{BELOW} {_BELOW_TEST}."
        if tested and np.isnan(tested).all():
            return "There are too few queries to test differences."
        return f"No method is {_BELOW_TEST}." if tested else ""

    @cached_property
    def mean_ranks(self) -> Floats:
        """The mean of each method's ranks over the measures; NaN where it lacks one that others have."""
        ranks = np.array([[figure.rank for figure in row] for row in self.figures.values()])
        ranked = ranks[~np.isnan(ranks).all(axis=1)]
        return np.asarray(ranked.mean(axis=0)) if len(ranked) else np.full(len(self.methods), np.nan)

    @cached_property
    def spreads(self) -> tuple[MeanSpread, ...]:
        """The uncertainty of the mean of the deciding measure, for each method."""
        rows = zip(self.results.contributions(), self.values[self.results.measure], self.results.errors(), strict=True)
        return tuple(_estimate_spread(parts[~np.isnan(v)], v[~np.isnan(v)], float(error)) for parts, v, error in rows)

    @cached_property
    def seed_deviations(self) -> Floats:
        """The standard deviation between the seeds of each method's mean; NaN where it has fewer than two."""
        values = self.table("values")
        means = np.full((len(self.methods), len(seeds := np.unique(values["seed"]))), np.nan)
        for i, seed in enumerate(seeds):
            inside = values["seed"] == seed
            alone = {name: column[inside] for name, column in values.items()}
            means[:, i] = replace(self.results, tables={**self.results.tables, "values": alone}).means()
        n = np.sum(~np.isnan(means), axis=1)
        centred = np.where(
            np.isnan(means), 0.0, means - np.nansum(means, axis=1, keepdims=True) / np.maximum(n, 1)[:, None]
        )
        return np.asarray(np.sqrt((centred**2).sum(axis=1) / np.where(n > 1, n - 1.0, np.nan)))

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """The methods in the order of tables and charts: the highest mean of the deciding measure first."""
        means = np.nan_to_num(np.round(self.results.means(), 12), nan=-np.inf)
        return tuple(self.methods[m] for m in np.argsort(-means, kind="stable"))

    @cached_property
    def joint_intervals(self) -> dict[tuple[str, str], Interval]:
        """The simultaneous intervals of all differences under the deciding measure, by the two methods."""
        return self.results.find_joint_intervals()

    @cached_property
    def comparisons(self) -> dict[str, list[Comparison]]:
        """The comparisons of every two methods that have results on all folds, by measure."""
        return {name: self.results.compare(name) for name in self.measures}

    def _figures(self, measure: str) -> tuple[Figure, ...]:
        means = self.results.means(measure)
        known = ~np.isnan(means)
        rounded = np.round(means, 12)  # or rounding errors would decide ranks
        ranks, top = _compute_ranks(rounded), np.max(rounded, where=known, initial=-np.inf)
        against: dict[str, Comparison] = {}
        if known.sum() > 1:
            best = self.methods[int(np.flatnonzero(rounded == top)[0])]
            pairs = (found.swap_methods() if found.second == best else found for found in self.comparisons[measure])
            against = {found.second: found for found in pairs if found.first == best}
        differs = bool((rounded[known] < top).any())  # of a single method, or of equal ones, none is best
        return tuple(
            Figure(float(means[m]), float(ranks[m]), bool(rounded[m] == top) and differs, against.get(name))
            for m, name in enumerate(self.methods)
        )


def _compute_ranks(means: Floats) -> Floats:
    """Return the rank of each mean, 1 for the highest; equal means share the mean of their ranks."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-means, nan_policy="omit"), dtype=np.float64)


def _estimate_spread(parts: Floats, values: Floats, error: float) -> MeanSpread:
    """Return the uncertainty of a mean: the given standard error, and a bootstrap interval from ``parts``."""
    if np.isnan(error):
        return MeanSpread(np.nan, np.nan, np.nan)
    low, high = np.clip(bootstrap_interval(parts, n=_DRAWS), values.min(), values.max())  # no mean lies beyond
    return MeanSpread(error, float(low), float(high))
