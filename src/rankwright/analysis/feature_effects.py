"""Effects on the score: step functions, slopes and splits of one feature, and the scorers of a sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats

_LITTLE = 0.1  # of all its ups and downs: what a function that mostly rises may fall
_HELD = {-1: "to fall", 0: "free", 1: "to rise"}


class ScoreStep(NamedTuple):
    """A step of a step function: a feature's value above ``low`` and at most ``high`` adds ``value`` to the score."""

    low: float
    high: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """The effect of a feature as a step function: a value between every two thresholds.

    Parameters
    ----------
    name : str
        The feature's name, or its number from 1.
    index : int
        Its column, from 0.
    thresholds : array of shape (n,)
        Where the value changes, ascending.
    values : array of shape (n + 1,)
        The values before, between and after them. The first is 0.
    missing : float or None
        The value of a document that lacks the feature; None if the model takes complete features only.
    n_stumps : int
        How many stumps it is the sum of.
    """

    columns: ClassVar[tuple[str, ...]] = ("feature", "index", "from", "to", "value", "missing")
    header: ClassVar[tuple[str, ...]] = ("feature", "range", "stumps", "from", "to", "values", "")
    meaning: ClassVar[str] = (
        "A score is the sum of one value for each feature. Range: highest minus lowest value. The value changes "
        "between from and to. It is 0 below from: only differences of values matter."
    )
    name: str
    index: int
    thresholds: Floats
    values: Floats
    missing: float | None
    n_stumps: int

    @property
    def steps(self) -> tuple[ScoreStep, ...]:
        """The steps of the function, from minus to plus infinity."""
        ends = [-np.inf, *self.thresholds.tolist(), np.inf]
        return tuple(map(ScoreStep, ends[:-1], ends[1:], self.values.tolist()))

    @property
    def size(self) -> float:
        """The range: the highest value minus the lowest."""
        reached = self.values if self.missing is None else np.append(self.values, self.missing)
        return float(np.ptp(reached))

    @property
    def trend(self) -> str:
        """The trend of the values: rises, falls, mostly so, mixed or flat."""
        return describe_trend(self.values)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return a row for each step, and one for missing values."""
        known = [(self.name, self.index, *step, False) for step in self.steps]
        missing = [] if self.missing is None else [(self.name, self.index, np.nan, np.nan, self.missing, True)]
        return known + missing

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a row of the text."""
        ends = (f"{self.thresholds[0]:.4g}", f"{self.thresholds[-1]:.4g}")
        missing = f", missing {self.missing:+.4f}" if self.missing else ""
        return self.name, f"{self.size:.4f}", f"{self.n_stumps:,}", *ends, self.trend + missing


@dataclass(frozen=True, slots=True)
class Slope:
    """The effect of a feature as a slope: its value times a weight.

    Parameters
    ----------
    name : str
        The feature's name, or its number from 1.
    index : int
        Its column, from 0.
    weight : float
        What it is multiplied by.
    """

    columns: ClassVar[tuple[str, ...]] = ("feature", "index", "weight")
    header: ClassVar[tuple[str, ...]] = ("feature", "weight", "score", "")
    meaning: ClassVar[str] = (
        "A score is the sum of the features times their weights. A weight counts units of its feature: weights of "
        "features of different spread cannot be compared."
    )
    name: str
    index: int
    weight: float

    @property
    def size(self) -> float:
        """The size of the weight."""
        return abs(self.weight)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return one row."""
        return [(self.name, self.index, self.weight)]

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a row of the text."""
        return self.name, f"{self.weight:.4g}", "rises" if self.weight > 0 else "falls"


@dataclass(frozen=True, slots=True)
class Splits:
    """The use of a feature in the splits of trees, where its effect depends on other features too.

    Parameters
    ----------
    name : str
        The feature's name, or its number from 1.
    index : int
        Its column, from 0.
    gain : float
        Its share in what all splits have gained.
    n_splits, n_trees : int
        How many splits are on it, and how many trees have one.
    low, high : float
        The lowest and the highest threshold; NaN for a categorical feature.
    monotone : {-1, 0, 1}
        Whether trees were made to have scores that fall, or rise, with it.
    n_categories : int or None
        The number of its categories, if splits are by category.
    """

    columns: ClassVar[tuple[str, ...]] = ("feature", "index", "gain", "splits", "trees", "from", "to", "monotone")
    header: ClassVar[tuple[str, ...]] = ("feature", "gain", "splits", "trees", "from", "to", "held", "")
    meaning: ClassVar[str] = (
        "A score is the sum of a value of each tree. Gain: the feature's share of the reduction of the loss by all "
        "splits (of the variance of the values, in a sum of forests). It is about the fit, not about the measure or "
        "the direction. Thresholds are between from and to. Held: whether scores may only rise, or fall, with the "
        "feature; the number of categories, where splits are by category."
    )
    name: str
    index: int
    gain: float
    n_splits: int
    n_trees: int
    low: float
    high: float
    monotone: int = 0
    n_categories: int | None = None

    @property
    def size(self) -> float:
        """The share of the gain."""
        return self.gain

    def rows(self) -> list[tuple[Any, ...]]:
        """Return one row."""
        counts = self.gain, self.n_splits, self.n_trees
        return [(self.name, self.index, *counts, self.low, self.high, self.monotone)]

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a row of the text."""
        counts = f"{self.gain:.4f}", f"{self.n_splits:,}", f"{self.n_trees:,}"
        if self.n_categories is not None:
            return self.name, *counts, "", "", f"{self.n_categories:,} categories"
        return self.name, *counts, f"{self.low:.4g}", f"{self.high:.4g}", _HELD[self.monotone]


@dataclass(frozen=True, slots=True)
class SummedScorer:
    """A scorer of a weighted sum of scorers, which has no function of each feature.

    Parameters
    ----------
    name : str
        Its number in the sum, from 1, and its kind.
    index : int
        Its place in the sum, from 0.
    weight : float
        What its scores are multiplied by.
    what : str
        A short description of it.
    """

    columns: ClassVar[tuple[str, ...]] = ("scorer", "index", "weight", "what")
    header: ClassVar[tuple[str, ...]] = ("scorer", "weight", "what", "")
    meaning: ClassVar[str] = (
        "A score is the sum of the scores of these models times their weights. Scores of different spread are summed: "
        "weights cannot be compared."
    )
    name: str
    index: int
    weight: float
    what: str

    @property
    def size(self) -> float:
        """The size of the weight."""
        return abs(self.weight)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return one row."""
        return [(self.name, self.index, self.weight, self.what)]

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a row of the text."""
        return self.name, f"{self.weight:.4g}", self.what


def describe_trend(values: Floats) -> str:
    """Return a word for how values go on: "rises", "falls", either with "mostly", "mixed" or "flat".

    >>> [describe_trend(np.array(values)) for values in ([0, 1, 3], [0, -9, -8, -9], [0, 1, 0], [0, 0])]
    ['rises', 'mostly falls', 'mixed', 'flat']
    """
    jumps = np.diff(values)
    up, down = float(jumps[jumps > 0].sum()), float(-jumps[jumps < 0].sum())
    if up + down == 0.0:
        return "flat"
    if min(up, down) > _LITTLE * (up + down):
        return "mixed"
    return f"{'mostly ' if min(up, down) > 0 else ''}{'rises' if up > down else 'falls'}"
