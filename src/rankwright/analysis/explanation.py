"""Explanation of a model: the effect of each feature on the score, as a table and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.feature_effects import Slope, Splits, StepFunction, SummedScorer
from rankwright.analysis.summed_effects import SummedEffect, count_parts, sum_effects
from rankwright.basics.errors import InputError, make_printable
from rankwright.basics.html_tables import NotebookText
from rankwright.basics.optional_imports import require
from rankwright.data.categories import Categories
from rankwright.data.feature_numbers import name_features
from rankwright.models.imports import as_model
from rankwright.scorers import Feature, Linear, Scorer, Stumps, Trees, WeightedSum
from rankwright.scorers.score_parts import ScoreParts, split_scorer
from rankwright.scorers.stump_sum import join_stumps

MAX_SHOWN = 12  # features in the text; the table has all
_BAR, _WIDTH = 20, 100  # characters

Part = StepFunction | Slope | Splits | SummedEffect | SummedScorer


@dataclass(frozen=True, slots=True, eq=False)
class Explanation(NotebookText):
    """An explanation of a model: the effect of each feature on its scores.

    Parameters
    ----------
    ranker : str
        What trained the model.
    what : str
        A short description of the model.
    parts : tuple of StepFunction, of Slope, of Splits, of SummedEffect or of SummedScorer
        The features that the model uses, the one of the largest range, weight, gain or effect first. A score is
        ``intercept`` plus the sum of their effects, except for splits. A sum of scorers without a function of each
        feature has its scorers here.
    kind : type
        The class of the parts.
    intercept : float
        The constant of every score.
    scaled : bool
        Whether features are scaled within each query first: then thresholds and weights are those of scaled features.
    rest : tuple of SummedScorer
        The networks and kernel sums that are added to the effects of the features.
    """

    ranker: str
    what: str
    parts: tuple[Part, ...]
    kind: type[Part]
    intercept: float
    scaled: bool
    rest: tuple[SummedScorer, ...] = ()

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __getitem__(self, name: str) -> Part:
        for part in self.parts:
            if part.name == name:
                return part
        used = ", ".join(part.name for part in self.parts) or "no feature"
        raise KeyError(f"the model does not use {name!r}; it uses {used}")

    def to_pandas(self) -> Any:
        """Return a data frame: feature, index, and the columns of its kind of effect: steps, weight or splits.

        A document with a feature above ``from`` and at most ``to`` has the value. Where ``missing`` is true, a row has
        the value of documents that lack the feature. Figures of splits are gain, splits, trees, from, to, monotone.
        """
        rows = [row for part in self.parts for row in part.rows()]
        columns = {name: [row[i] for row in rows] for i, name in enumerate(self.kind.columns)}
        return require("pandas").DataFrame(columns)

    def __repr__(self) -> str:
        return f"Explanation({self.ranker}: {self.what})"

    def __str__(self) -> str:
        units = "Features are scaled within each query first, from 0 to 1: all numbers are of scaled features."
        meaning = f"{self.kind.meaning} {units}" if self.scaled else self.kind.meaning
        lines = [f"{make_printable(self.ranker)}: {self.what}.", fill(meaning, _WIDTH)]
        if self.parts:
            lines += ["", *_format_lines(self.kind.header, self.parts[:MAX_SHOWN])]
        if len(self.parts) > MAX_SHOWN:
            lines.append(f"and {len(self.parts) - MAX_SHOWN:,} more, of at most {self.parts[MAX_SHOWN].size:.4g}")
        if self.rest:
            lines += ["", "These are added, and have no function of each feature:"]
            lines += _format_lines(SummedScorer.header, self.rest)
        return "\n".join(lines)


def explain(fitted: Any) -> Explanation:
    """Explain a model by the effect of each feature: a step function, a weight, or its importance in trees.

    A weighted sum of models of one such kind is explained as one model of that kind. In a sum of several kinds the
    effects of each feature are added. Networks and kernel sums in it are listed on their own.

    Parameters
    ----------
    fitted : fitted ranker, Model, or a model of another library
        The trained model.

    Returns
    -------
    Explanation
        ``print`` shows the most important features, ``to_pandas`` makes a table of all.

    Examples
    --------
    >>> from rankwright.models.model import Model
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
    parts = _explain_scorer(model.scorer, name_features(model.features, model.n_features))
    parts = parts._replace(parts=[_count_categories(part, model.categories) for part in parts.parts])
    ordered = sorted(parts.parts, key=lambda part: -part.size)
    is_scaled, rest = model.scaling is not None, tuple(sorted(parts.rest, key=lambda part: -part.size))
    return Explanation(model.ranker, parts.what, tuple(ordered), parts.kind, parts.intercept, is_scaled, rest)


def _count_categories(part: Part, categories: Categories | None) -> Part:
    """Return the splits of a categorical feature with the number of its categories; other parts as they are."""
    if categories is None or not isinstance(part, (Splits, SummedEffect)):
        return part
    values = categories[part.index]
    return part if values is None else replace(part, low=math.nan, high=math.nan, n_categories=len(values))


class _ScorerParts(NamedTuple):
    """The effects of features in a scorer, with the kind of effect, the words for it, and the intercept."""

    parts: Sequence[Any]
    kind: type[Part]
    what: str
    intercept: float = 0.0
    rest: Sequence[SummedScorer] = ()


@singledispatch
def _explain_scorer(scorer: Scorer, names: Sequence[str]) -> _ScorerParts:
    """Return the effects of the features in a scorer; each kind of scorer registers its own function."""
    raise InputError(
        f"a scorer of kind {scorer.kind!r} has no function for each feature; expected stumps, weights or trees"
    )


@_explain_scorer.register
def _(scorer: Stumps, names: Sequence[str]) -> _ScorerParts:
    parts = []
    _, counts = np.unique(scorer.feature, return_counts=True)
    for k, (index, n_stumps) in enumerate(zip(scorer.steps.features.tolist(), counts.tolist(), strict=True)):
        thresholds, values, missing = scorer.steps.get_function(k)
        known = missing if scorer.allow_nan else None
        parts.append(StepFunction(names[index], index, thresholds, values, known, n_stumps))
    what = f"{len(scorer):,} stump{'s' * (len(scorer) != 1)} on {len(parts):,} of {len(names):,} features"
    return _ScorerParts(parts, StepFunction, what)


@_explain_scorer.register
def _(scorer: Linear, names: Sequence[str]) -> _ScorerParts:
    parts = [Slope(names[i], i, float(scorer.coef[i])) for i in np.flatnonzero(scorer.coef).tolist()]
    what = f"weights of {len(parts):,} of {len(names):,} features, and {scorer.intercept:.4g} for all"
    return _ScorerParts(parts, Slope, what, scorer.intercept)


@_explain_scorer.register
def _(scorer: Feature, names: Sequence[str]) -> _ScorerParts:
    what = f"one of {len(names):,} features"
    return _ScorerParts([Slope(names[scorer.index], scorer.index, float(scorer.sign))], Slope, what)


@_explain_scorer.register
def _(scorer: Trees, names: Sequence[str]) -> _ScorerParts:
    split = [tree.columns for tree in scorer.forest.trees if len(tree.columns["split_feature"])]
    features = np.concatenate([np.empty(0, np.int64), *(tree["split_feature"] for tree in split)])
    thresholds = np.concatenate([np.empty(0), *(tree["threshold"] for tree in split)])
    order = np.argsort(features, kind="stable")
    used, starts = np.unique(features[order], return_index=True)
    own_thresholds = np.split(thresholds[order], starts[1:])
    n_trees = np.bincount(np.concatenate([np.empty(0, np.int64), *(np.unique(t["split_feature"]) for t in split)]))
    gain, monotone = scorer.importance(), scorer.forest.header.get("monotone_constraints", "").split()
    knows_gains = gain.any() or not len(features)  # RankLib saves none
    if knows_gains and not all(tree["split_gain"].any() for tree in split):  # a sum with trees that have none
        return _explain_sum(split_scorer(scorer, len(names)), names)
    gain = gain if knows_gains else scorer.importance("split")
    whole = float(gain.sum()) or 1.0
    parts = []
    for i, own in zip(used.tolist(), own_thresholds, strict=False):
        figures = float(gain[i]) / whole, len(own), int(n_trees[i]), float(own.min()), float(own.max())
        parts.append(Splits(names[i], i, *figures, int(monotone[i]) if monotone else 0))
    leaves = f"{len(features) + len(split):,} leaves"
    trees = f"{len(split):,} tree{'s' * (len(split) != 1)} of {leaves} in all"
    what = f"{trees}, on {len(parts):,} of {len(names):,} features"
    return _ScorerParts(parts, Splits, what if knows_gains else f"{what}; gains are not known, so splits are counted")


@_explain_scorer.register
def _(scorer: WeightedSum, names: Sequence[str]) -> _ScorerParts:
    listed, parts = list(scorer.list_parts()), split_scorer(scorer, len(names))
    if parts.coef is not None and parts.kinds == {"linear"}:
        return _explain_scorer(Linear(parts.coef, parts.intercept), names)
    if parts.kinds == {"stumps"}:
        return _explain_scorer(join_stumps(parts.stumps), names)._replace(intercept=parts.intercept)
    if len(listed) == 1 and parts.trees:
        return _explain_scorer(listed[0][1], names)._replace(intercept=parts.intercept)
    return _explain_sum(parts, names)


def _explain_sum(parts: ScoreParts, names: Sequence[str]) -> _ScorerParts:
    """Return the effects of features added over linear scorers, stumps and trees, whose gains have different units."""
    others = [*parts.networks, *parts.kernel_sums]
    intercept = parts.intercept + sum(float(tree.values[0]) for tree in parts.trees if tree.n_splits == 0)
    rest = [
        SummedScorer(f"{number} ({part.kind})", number - 1, weight, _describe_scorer(part, names))
        for number, (weight, part) in enumerate(others, 1)
    ]
    if not parts.kinds - {"network", "kernel sum"}:
        what = f"a weighted sum of {len(rest):,} models, and {intercept:.4g} for all"
        return _ScorerParts(rest, SummedScorer, what, intercept)
    effects = sum_effects(parts, names)
    what = f"a sum of {count_parts(parts)} on {len(effects):,} of {len(names):,} features, and {intercept:.4g}"
    return _ScorerParts(effects, SummedEffect, f"{what} for all", intercept, rest)


def _describe_scorer(scorer: Scorer, names: Sequence[str]) -> str:
    """Return a short description of a scorer, also of a kind that cannot be explained."""
    try:
        return _explain_scorer(scorer, names).what
    except InputError:
        return f"no function for each of {len(names):,} features"


def _format_lines(header: tuple[str, ...], parts: Sequence[Part]) -> list[str]:
    """Return aligned lines of text, one per feature: its name, its numbers, and a bar for the size of its effect."""
    largest = parts[0].size or 1.0
    shares = [1.0 if part.size >= largest else part.size / largest for part in parts]  # a size may be infinite
    bars = ["#" * max(round(_BAR * share), 1) for share in shares]
    rows = [header, *((*map(make_printable, part.cells()), bar) for part, bar in zip(parts, bars, strict=True))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    left = (0, len(header) - 2, len(header) - 1)
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
