"""Weighted sums of scorers, such as blends of rankers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.scorers.base import Scorer, check_list, parse_number, parse_numbers

if TYPE_CHECKING:
    from rankwright.scorers.linear import Linear
    from rankwright.scorers.stump_sum import Steps
    from rankwright.scorers.tree_sum import Trees

_MAX_DEPTH = 8  # sums inside each other in a saved model


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSum(Scorer):
    """A scorer that is a weighted sum of other scorers of the same features, plus an intercept.

    Parameters
    ----------
    scorers : sequence of Scorer
        The parts, at least one.
    weights : array of shape (n_scorers,)
        The weight of each part.
    intercept : float
        A constant added to every score.

    Examples
    --------
    >>> from rankwright.scorers import Feature, Linear
    >>> parts = [Linear(np.array([2.0, -1.0])), Feature(1)]
    >>> WeightedSum(parts, np.array([1.0, 0.5]), 0.25)(np.array([[1.0, 3.0]], np.float32)).tolist()
    [0.75]
    """

    kind: ClassVar[str] = "sum"
    scorers: Sequence[Scorer]
    weights: Floats
    intercept: float = 0.0

    @property
    def allow_nan(self) -> bool:
        """Whether every part can score documents with missing features."""
        return all(scorer.allow_nan for scorer in self.scorers)

    @property
    def linear(self) -> Linear | None:
        """The equal scorer that has a weight for each feature if every part is linear, else None."""
        return None if isinstance(merged := self.merge(), WeightedSum) else merged.linear

    @property
    def steps(self) -> Steps | None:
        """The step function of each feature if every part is a sum of stumps and nothing is added, else None."""
        return None if isinstance(merged := self.merge(), WeightedSum) else merged.steps

    @property
    def trees(self) -> Trees | None:
        """The equal scorer that is a sum of trees if every part is one, else None."""
        return None if isinstance(merged := self.merge(), WeightedSum) else merged.trees

    @property
    def categorical(self) -> frozenset[int]:
        """The features that a tree of a part splits by category."""
        return frozenset().union(*(scorer.categorical for scorer in self.scorers))

    def merge(self) -> Scorer:
        """Return the simplest equal scorer, as ``merge_scorers`` makes it."""
        from rankwright.scorers.scorer_merging import merge_scorers  # which makes sums itself

        return merge_scorers(self.scorers, self.weights, self.intercept) if self.scorers else self

    def __call__(self, X: Floats) -> Floats:
        """Return the weighted sums, added in the order of the parts."""
        total = np.full(len(X), self.intercept)
        for weight, scorer in zip(self.weights.tolist(), self.scorers, strict=True):
            scores = scorer(X)
            total += scores if weight == 1.0 else weight * scores
        return total

    def __len__(self) -> int:
        return len(self.scorers)

    def accepts(self, n_features: int) -> bool:
        """Return whether every part can score documents with this many features."""
        return all(scorer.accepts(n_features) for scorer in self.scorers)

    def list_parts(self) -> Iterator[tuple[float, Scorer]]:
        """Yield the parts with their weights; those of a sum inside the sum one by one. Intercepts are left out."""
        for weight, scorer in zip(self.weights.tolist(), self.scorers, strict=True):
            if isinstance(scorer, WeightedSum):
                yield from ((weight * own, part) for own, part in scorer.list_parts())
            else:
                yield weight, scorer

    def sum_intercepts(self) -> float:
        """Return the intercept with those of the sums inside it, times their weights."""
        total = self.intercept
        for weight, scorer in zip(self.weights.tolist(), self.scorers, strict=True):
            total += weight * scorer.sum_intercepts() if isinstance(scorer, WeightedSum) else 0.0
        return total

    def to_json(self) -> dict[str, Any]:
        """Return weights, intercept, and each part with its kind."""
        return {
            "weights": self.weights.tolist(),
            "intercept": self.intercept,
            "scorers": [{"kind": scorer.kind, **scorer.to_json()} for scorer in self.scorers],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Scorer]) -> WeightedSum:
        """Read what ``to_json`` wrote; ``read`` reads a part."""
        parts = check_list(values["scorers"])
        if not all(type(part) is dict for part in parts):
            raise InputError(f"{quote(parts)} in place of scorers; expected a list of JSON objects")
        weights = parse_numbers(values["weights"])
        if not parts or len(weights) != len(parts):
            raise InputError(f"{len(weights)} weights of {len(parts)} scorers; expected a weight for each")
        if _measure_depth(values) > _MAX_DEPTH:
            raise InputError(f"more than {_MAX_DEPTH} sums of scorers inside each other")
        return cls([read(part) for part in parts], weights, parse_number(values["intercept"]))


def _measure_depth(values: Any, depth: int = 0) -> int:
    """Return how many sums lie inside each other, up to one more than is allowed."""
    parts = values.get("scorers") if isinstance(values, dict) else None
    if depth > _MAX_DEPTH or not isinstance(parts, list):
        return depth
    return max((_measure_depth(part, depth + 1) for part in parts), default=depth)
