"""Likely causes of differences between an engine's scores and a model's, each tried by computing its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.models.model import Model
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import DEFAULT_LEFT, MISSING_NAN, Tree
from rankwright.scorers.score_parts import ScoreParts

_MAX_PAIRS = 10_000  # of features whose swap is tried
_SAMPLE = 24  # rows on which a swap is tried first
_CHUNK = 200_000  # rows that are scored at a time
_SOLR_SLACK = np.float32(1e-6)  # which Solr adds to every threshold

ThresholdChange = Callable[[Floats], Floats]


class Cause(NamedTuple):
    """A hypothesis about an engine: what it does, the scores that it then returns, and what to do about it."""

    kind: str
    sentence: str
    scores: Floats
    way_out: str


@dataclass(frozen=True, slots=True, eq=False)
class CauseHypotheses:
    """The hypotheses about an engine that returned these scores for these rows.

    Parameters
    ----------
    model : Model
        The model that the engine should have.
    parts : ScoreParts
        The parts of its score.
    X : array of shape (n_rows, n_features)
        The rows, as the scorer takes them.
    names : sequence of str
        The names of the features in the engine.
    scores : array of shape (n_rows,)
        The scores that the engine returned.
    rows : array of int
        The rows that differ.
    """

    model: Model
    parts: ScoreParts
    X: Floats
    names: Sequence[str]
    scores: Floats
    rows: Any

    def list_causes(self, candidates: Mapping[str, Model]) -> Iterator[Cause]:
        """Yield hypotheses, the most common first; each computes the scores when it is asked for."""
        yield from self._list_missing()
        yield from self._list_comparisons()
        yield from self._list_orders()
        expected = self.model.scorer(self.X)
        with np.errstate(over="ignore"):
            logistic = 1.0 / (1.0 + np.exp(-expected))
        yield Cause(
            *("logistic", "the engine returns the logistic function of the score", logistic),
            "leave out the objective of the model, or use one without a link function, such as rank:ndcg",
        )
        for name, other in candidates.items():
            if other.n_features == self.X.shape[1] and (other.scorer.allow_nan or not np.isnan(self.X).any()):
                yield Cause(
                    *("another model", f"the engine has the model {name}", other.scorer(self.X)),
                    "export the model again, or choose it by name in the query",
                )

    def _list_missing(self) -> Iterator[Cause]:
        """Yield hypotheses about missing values."""
        way_out = "let the engine pass missing values on, or train with missing values filled in the same way"
        if np.isnan(self.X).any():
            filled = np.nan_to_num(self.X)
            yield Cause("missing as 0", "missing values are taken as 0", self.model.scorer(filled), way_out)
            if self.parts.trees or self.parts.stumps:
                for what, change in _MISSING_SIDES.items():
                    trees = [_change_missing(tree, change) for tree in self.parts.list_trees()]
                    yield Cause(
                        *("missing side", f"missing values go {what} at every split", self._score_trees(trees)),
                        "use a version of the engine that honours the side of missing values, or log 0 for missing",
                    )
        if (self.X == 0.0).any() and self.model.scorer.allow_nan:
            empty = np.where(self.X == 0.0, np.float32(np.nan), self.X)
            yield Cause("0 as missing", "0 is taken as a missing value", self.model.scorer(empty), way_out)

    def _list_comparisons(self) -> Iterator[Cause]:
        """Yield hypotheses about the thresholds of trees and stumps."""
        if not (self.parts.trees or self.parts.stumps):
            return
        for what, change in _COMPARISONS.items():
            trees = [_change_thresholds(tree, change) for tree in self.parts.list_trees()]
            yield Cause(
                *("thresholds", f"the engine compares features with {what}", self._score_trees(trees)),
                "export the model with `rankwright export`, which writes thresholds for the engine's comparison",
            )

    def _list_orders(self) -> Iterator[Cause]:
        """Yield hypotheses about the order of the features."""
        way_out = "list the features in the order of the model, or export it with names"
        n = self.X.shape[1]
        by_name = np.argsort(np.array(self.names))
        orders = [
            ("sorted by name", by_name),
            ("sorted by name", np.argsort(by_name)),
            ("in reverse", np.arange(n)[::-1]),
            ("one place later than in the model", np.roll(np.arange(n), 1)),
            ("one place earlier than in the model", np.roll(np.arange(n), -1)),
        ]
        for what, order in orders:
            if not np.array_equal(order, np.arange(n)):
                scores = self.model.scorer(np.ascontiguousarray(self.X[:, order]))
                yield Cause("feature order", f"the features are {what}", scores, way_out)
        for first, second in self._find_swaps():
            swapped = self.X.copy()
            swapped[:, [first, second]] = self.X[:, [second, first]]
            what = f"the features {self.names[first]} and {self.names[second]} are swapped"
            yield Cause("feature order", what, self.model.scorer(swapped), way_out)

    def _find_swaps(self) -> list[tuple[int, int]]:
        """Return the swap of two features that explains most of a sample of differing rows, in a list."""
        n = self.X.shape[1]
        if not 0 < n * (n - 1) // 2 <= _MAX_PAIRS:
            return []
        pairs = list(combinations(range(n), 2))
        rows = self.rows[np.linspace(0, len(self.rows) - 1, min(_SAMPLE, len(self.rows))).astype(int)]
        sample, wanted = self.X[rows], self.scores[rows]
        step, errors = max(_CHUNK // len(rows), 1), []
        for start in range(0, len(pairs), step):
            part = np.array(pairs[start : start + step])
            X = np.repeat(sample[None], len(part), axis=0)
            at = np.arange(len(part))
            X[at, :, part[:, 0]], X[at, :, part[:, 1]] = sample.T[part[:, 1]], sample.T[part[:, 0]]
            found = self.model.scorer(X.reshape(-1, X.shape[2])).reshape(len(part), len(rows)) - wanted
            errors.append(np.abs(found - np.median(found, axis=1, keepdims=True)).max(axis=1))
        return [pairs[int(np.argmin(np.concatenate(errors)))]]

    def _score_trees(self, trees: list[Tree]) -> Floats:
        """Return the scores of the model with these trees in place of its own trees and stumps."""
        n = self.X.shape[1]
        own = Trees(Forest.from_trees(self.parts.list_trees(), n))(self.X)
        return self.model.scorer(self.X) - own + Trees(Forest.from_trees(trees, n))(self.X)


def _change_thresholds(tree: Tree, change: ThresholdChange) -> Tree:
    """Return a tree with other thresholds; splits by category stay as they are."""
    threshold = tree.columns["threshold"]
    with np.errstate(over="ignore"):
        changed = np.where(tree.categorical, threshold, change(threshold))
    # the side of missing values stays that of the model
    kind = np.where(tree.categorical, tree.columns["decision_type"], _make_decisions(tree.missing_left))
    return Tree({**tree.columns, "threshold": changed, "decision_type": kind}, tree.shrinkage)


def _change_missing(tree: Tree, change: Callable[[Any], Any]) -> Tree:
    """Return a tree with other sides of missing values; splits by category stay as they are."""
    kind = np.where(tree.categorical, tree.columns["decision_type"], _make_decisions(change(tree.missing_left)))
    return Tree({**tree.columns, "decision_type": kind}, tree.shrinkage)


def _make_decisions(missing_left: Any) -> Any:
    """Return LightGBM's decision types of splits that send missing values to these sides."""
    return MISSING_NAN | np.where(missing_left, DEFAULT_LEFT, 0)


def _lower(thresholds: Floats) -> Floats:
    """Return the next smaller float32 of thresholds that are float32 numbers, which ``<`` in place of ``<=`` needs."""
    nearest = thresholds.astype(np.float32)
    lower: Floats = np.where(nearest == thresholds, np.nextafter(nearest, np.float32(-np.inf)), thresholds)
    return lower


_COMPARISONS: Mapping[str, ThresholdChange] = {
    "< in place of <=": _lower,
    "thresholds rounded to float32": lambda t: t.astype(np.float32).astype(np.float64),
    "thresholds rounded to float32, and < in place of <=": lambda t: _lower(t.astype(np.float32).astype(np.float64)),
    "1e-6 added to thresholds, as Solr does": lambda t: (t.astype(np.float32) + _SOLR_SLACK).astype(np.float64),
}
_MISSING_SIDES: Mapping[str, Callable[[Any], Any]] = {
    "right": np.zeros_like,
    "left": np.ones_like,
    "to the other side": np.logical_not,
}
