"""``explain``: what a model makes of each feature, as a table and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from textwrap import fill
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright._optional import require
from rankwright.data import Floats
from rankwright.errors import InputError
from rankwright.models import Fitted, as_model
from rankwright.scorers import Feature, Linear, Scorer, Stumps

MOST_TOLD = 12  # features in the text; the table has all
_BAR, _WIDTH = 20, 100  # characters
_LITTLE = 0.1  # of all its ups and downs: what a function that mostly rises may fall


class Step(NamedTuple):
    """A document whose feature is above ``low`` and at most ``high`` has the value."""

    low: float
    high: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """What a feature adds to the score: a value between every two thresholds.

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
        "A score is the sum of one value for each feature. Range: highest less lowest value. The value changes between "
        "from and to. It is 0 below from: only differences of values matter."
    )
    name: str
    index: int
    thresholds: Floats
    values: Floats
    missing: float | None
    n_stumps: int

    @property
    def steps(self) -> tuple[Step, ...]:
        """Where the feature has which value, from minus to plus infinity."""
        ends = [-np.inf, *self.thresholds.tolist(), np.inf]
        return tuple(map(Step, ends[:-1], ends[1:], self.values.tolist()))

    @property
    def size(self) -> float:
        """The range, highest less lowest value: how much the feature can matter."""
        reached = self.values if self.missing is None else np.append(self.values, self.missing)
        return float(np.ptp(reached))

    @property
    def trend(self) -> str:
        """Whether the values rise, fall, mostly do so, or neither."""
        return trend(self.values)

    def rows(self) -> list[tuple[Any, ...]]:
        """A row for each step, and one for missing values, which lie nowhere."""
        known = [(self.name, self.index, *step, False) for step in self.steps]
        nowhere = [] if self.missing is None else [(self.name, self.index, np.nan, np.nan, self.missing, True)]
        return known + nowhere

    def cells(self) -> tuple[str, ...]:
        """A row of the text."""
        ends = (f"{self.thresholds[0]:.4g}", f"{self.thresholds[-1]:.4g}")
        missing = f", missing {self.missing:+.4f}" if self.missing else ""
        return self.name, f"{self.size:.4f}", f"{self.n_stumps:,}", *ends, self.trend + missing


@dataclass(frozen=True, slots=True)
class Slope:
    """What a feature adds to the score: its value times a weight.

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
        """One row."""
        return [(self.name, self.index, self.weight)]

    def cells(self) -> tuple[str, ...]:
        """A row of the text."""
        return self.name, f"{self.weight:.4g}", "rises" if self.weight > 0 else "falls"


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What a model makes of each feature.

    Parameters
    ----------
    ranker : str
        What trained the model.
    what : str
        What the model is, in a few words.
    parts : tuple of StepFunction or of Slope
        The features that the model uses, the one of the largest range, or weight, first. A score is ``intercept`` plus
        the sum of what they add.
    kind : type
        Which of the two.
    intercept : float
        What every score has.
    scaled : bool
        Whether features are scaled within each query first: then thresholds and weights are those of scaled features.
    """

    ranker: str
    what: str
    parts: tuple[StepFunction, ...] | tuple[Slope, ...]
    kind: type[StepFunction] | type[Slope]
    intercept: float
    scaled: bool

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[StepFunction | Slope]:
        return iter(self.parts)

    def __getitem__(self, name: str) -> StepFunction | Slope:
        for part in self.parts:
            if part.name == name:
                return part
        used = ", ".join(part.name for part in self.parts) or "no feature"
        raise KeyError(f"the model does not use {name!r}; it uses {used}")

    def to_pandas(self) -> Any:
        """A data frame: feature, index, from, to, value, missing by step; or feature, index, weight.

        A document with a feature above ``from`` and at most ``to`` has the value. Where ``missing`` is true, a row has
        the value of documents that lack the feature.
        """
        rows = [row for part in self.parts for row in part.rows()]
        columns = {name: [row[i] for row in rows] for i, name in enumerate(self.kind.columns)}
        return require("pandas").DataFrame(columns)

    def __repr__(self) -> str:
        return f"Explanation({self.ranker}: {self.what})"

    def __str__(self) -> str:
        units = "Features are scaled within each query first, from 0 to 1: all numbers are of scaled features."
        meaning = f"{self.kind.meaning} {units}" if self.scaled else self.kind.meaning
        lines = [f"{self.ranker}: {self.what}.", fill(meaning, _WIDTH)]
        if self.parts:
            lines += ["", *_table(self.kind.header, self.parts[:MOST_TOLD])]
        if len(self.parts) > MOST_TOLD:
            lines.append(f"and {len(self.parts) - MOST_TOLD:,} more, of at most {self.parts[MOST_TOLD].size:.4g}")
        return "\n".join(lines)


def explain(fitted: Fitted) -> Explanation:
    """What a trained ranker makes of each feature: step functions of stumps, weights of linear scorers.

    Parameters
    ----------
    fitted : fitted ranker or Model
        What was trained.

    Returns
    -------
    Explanation
        ``print`` tells the most important features, ``to_pandas`` makes a table of all.

    Examples
    --------
    >>> from rankwright.models import Model
    >>> scorer = Stumps(np.array([1, 1]), np.array([0.5, 2.0], np.float32), np.array([1.0, -0.25]))
    >>> found = explain(Model("RankBoost", {}, "map", scorer, n_features=3))
    >>> found
    Explanation(RankBoost: 2 stumps on 1 of 3 features)
    >>> for step in found["2"].steps:
    ...     print(*step)
    -inf 0.5 0.0
    0.5 2.0 1.0
    2.0 inf 0.75
    """
    model = as_model(fitted)
    names = model.features or tuple(map(str, range(1, model.n_features + 1)))
    parts = _explained(model.scorer, names)
    ordered = sorted(parts.parts, key=lambda part: -part.size)
    return Explanation(model.ranker, parts.what, tuple(ordered), parts.kind, parts.intercept, model.scaling is not None)


def trend(values: Floats) -> str:
    """Whether values rise or fall; a little of the other makes it "mostly".

    >>> trend(np.array([0, 1, 3])), trend(np.array([0, -9, -8, -9])), trend(np.array([0, 1, 0])), trend(np.zeros(2))
    ('rises', 'mostly falls', 'mixed', 'flat')
    """
    jumps = np.diff(values)
    up, down = float(jumps[jumps > 0].sum()), float(-jumps[jumps < 0].sum())
    if up + down == 0.0:
        return "flat"
    if min(up, down) > _LITTLE * (up + down):
        return "mixed"
    return f"{'mostly ' if min(up, down) > 0 else ''}{'rises' if up > down else 'falls'}"


class _Parts(NamedTuple):
    parts: Sequence[Any]
    kind: type[StepFunction] | type[Slope]
    what: str
    intercept: float = 0.0


@singledispatch
def _explained(scorer: Scorer, names: Sequence[str]) -> _Parts:
    """The parts of a scorer: a function for each kind that can be explained."""
    raise InputError(f"a scorer of kind {scorer.kind!r} has no function for each feature; expected stumps or weights")


@_explained.register
def _(scorer: Stumps, names: Sequence[str]) -> _Parts:
    parts = []
    for k, index in enumerate(scorer.steps.features.tolist()):
        thresholds, values, missing = scorer.steps.of(k)
        n_stumps = int((scorer.feature == index).sum())
        known = missing if scorer.allow_nan else None
        parts.append(StepFunction(names[index], index, thresholds, values, known, n_stumps))
    what = f"{len(scorer):,} stump{'s' * (len(scorer) != 1)} on {len(parts):,} of {len(names):,} features"
    return _Parts(parts, StepFunction, what)


@_explained.register
def _(scorer: Linear, names: Sequence[str]) -> _Parts:
    parts = [Slope(names[i], i, float(scorer.coef[i])) for i in np.flatnonzero(scorer.coef).tolist()]
    what = f"weights of {len(parts):,} of {len(names):,} features, and {scorer.intercept:.4g} for all"
    return _Parts(parts, Slope, what, scorer.intercept)


@_explained.register
def _(scorer: Feature, names: Sequence[str]) -> _Parts:
    what = f"one of {len(names):,} features"
    return _Parts([Slope(names[scorer.index], scorer.index, float(scorer.sign))], Slope, what)


def _table(header: tuple[str, ...], parts: Sequence[StepFunction | Slope]) -> list[str]:
    """Aligned text: names to the left, numbers to the right, and at the end a bar of the size."""
    largest = parts[0].size or 1.0
    bars = ["#" * max(round(_BAR * part.size / largest), 1) for part in parts]
    rows = [header, *((*part.cells(), bar) for part, bar in zip(parts, bars, strict=True))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    left = (0, len(header) - 2, len(header) - 1)
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
