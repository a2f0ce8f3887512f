"""What training yields: functions from features to scores, few in kind, so that saving and export are written once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwright.data import Floats, Ints
from rankwright.errors import InputError
from rankwright.kernels.linear import linear_scores
from rankwright.kernels.stumps import step_scores


class Scorer(Protocol):
    """Scores documents from their features; larger is ranked earlier."""

    kind: ClassVar[str]

    @property
    def allow_nan(self) -> bool:
        """Whether it can score documents that lack features."""
        ...

    def __call__(self, X: Floats) -> Floats:
        """A float64 score per row, which depends on that row alone."""
        ...

    def takes(self, n_features: int) -> bool:
        """Whether it can score documents with this many features."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The scorer as JSON values, without its kind."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A weighted sum of raw features.

    >>> Linear(np.array([2.0, -1.0]), 0.5)(np.array([[1.0, 3.0]], dtype=np.float32)).tolist()
    [-0.5]
    """

    kind: ClassVar[str] = "linear"
    allow_nan: ClassVar[bool] = False
    coef: Floats
    intercept: float = 0.0

    def __call__(self, X: Floats) -> Floats:
        """The weighted sums."""
        if not self.takes(X.shape[1]):
            raise InputError(f"{X.shape[1]} features; there are {len(self.coef)} weights")
        return linear_scores(X, self.coef, self.intercept)

    def takes(self, n_features: int) -> bool:
        """Whether there is a weight for each feature."""
        return len(self.coef) == n_features

    def to_json(self) -> dict[str, Any]:
        """Weights and intercept."""
        return {"coef": self.coef.tolist(), "intercept": self.intercept}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Linear:
        """Read what ``to_json`` wrote."""
        coef = [_number(value) for value in values["coef"]]
        return cls(np.array(coef, dtype=np.float64), _number(values["intercept"]))


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature, or its negative.

    >>> Feature(1, -1)(np.array([[1.0, 3.0]], dtype=np.float32)).tolist()
    [-3.0]
    """

    kind: ClassVar[str] = "feature"
    allow_nan: ClassVar[bool] = False
    index: int
    sign: int = 1

    def __call__(self, X: Floats) -> Floats:
        """The feature's values times the sign."""
        return self.sign * X[:, self.index].astype(np.float64)

    def takes(self, n_features: int) -> bool:
        """Whether there is such a feature."""
        return 0 <= self.index < n_features

    def to_json(self) -> dict[str, Any]:
        """Index and sign."""
        return {"index": self.index, "sign": self.sign}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Feature:
        """Read what ``to_json`` wrote."""
        index, sign = values["index"], values["sign"]
        if type(index) is not int or type(sign) is not int or sign not in (1, -1):
            raise InputError(f"feature {index!r} with sign {sign!r}; expected a column and 1 or -1")
        return cls(index, int(sign))


class Steps(NamedTuple):
    """Step functions of single features, in the layout of ``kernels/stumps.py``."""

    features: Ints
    starts: Ints
    thresholds: Floats
    values: Floats

    def of(self, k: int) -> tuple[Floats, Floats, float]:
        """Of the k-th feature: the thresholds, the values before, between and after them, and that of a missing one."""
        low, high = self.starts[k], self.starts[k + 1]
        values = self.values[low + 2 * k : high + 2 * k + 2]
        return self.thresholds[low:high], values[:-1], float(values[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Stumps:
    """A weighted sum of threshold stumps: each is 1 where its feature is above its threshold, else 0.

    Scores come from one step function per feature. Where all weights are multiples of 2^-32, as those of our rankers
    are, every sum of them is exact in any order.

    Parameters
    ----------
    feature : array of int
        The feature of each stump.
    threshold : array of float32
        Its threshold.
    weight : array of float
        Its weight.
    missing : array of bool, optional
        Its value, 0 or 1, where the feature is missing; None if no feature may be.

    Examples
    --------
    >>> scorer = Stumps(np.array([1, 1]), np.array([0.5, 2.0], np.float32), np.array([1.0, -0.25]))
    >>> scorer(np.array([[9, 0.5], [9, 1], [9, 3]], np.float32)).tolist()
    [0.0, 1.0, 0.75]
    """

    kind: ClassVar[str] = "stumps"
    feature: Ints
    threshold: Floats
    weight: Floats
    missing: NDArray[np.bool_] | None = None
    steps: Steps = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _compile(self))

    @property
    def allow_nan(self) -> bool:
        """Whether the stumps say what a missing value is worth."""
        return self.missing is not None

    def __call__(self, X: Floats) -> Floats:
        """The sums of the step functions."""
        return step_scores(X, *self.steps)

    def __len__(self) -> int:
        return len(self.weight)

    def takes(self, n_features: int) -> bool:
        """Whether there are all the features of the stumps."""
        return len(self) == 0 or int(self.feature.max()) < n_features

    def to_json(self) -> dict[str, Any]:
        """A list per column."""
        return {
            "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(),
            "weight": self.weight.tolist(),
            "missing": None if self.missing is None else self.missing.astype(int).tolist(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Stumps:
        """Read what ``to_json`` wrote."""
        feature, sides = values["feature"], values["missing"]
        if not all(type(index) is int and index >= 0 for index in feature):
            raise InputError("a stump of no feature; expected columns counted from 0")
        if sides is not None and not all(type(side) is int and side in (0, 1) for side in sides):
            raise InputError("a stump's value of a missing feature; expected 0 or 1")
        threshold = np.array([_number(value) for value in values["threshold"]], dtype=np.float64)
        weight = np.array([_number(value) for value in values["weight"]], dtype=np.float64)
        missing = None if sides is None else np.array(sides, dtype=bool)
        lengths = {len(column) for column in (feature, threshold, weight, missing) if column is not None}
        if len(lengths) > 1 or np.abs(threshold).max(initial=0.0) > np.finfo(np.float32).max:
            raise InputError("stumps whose columns differ in length, or thresholds out of range")
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls(np.array(feature, dtype=np.int64), threshold.astype(np.float32), weight, missing)
        if not np.isfinite(found.steps.values).all():
            raise InputError("stumps whose weights have no finite sum")
        return found


def _compile(stumps: Stumps) -> Steps:
    """One step function per feature: its value jumps by the weights of the stumps at each threshold."""
    order = np.lexsort((stumps.threshold, stumps.feature))
    feature, threshold = stumps.feature[order], stumps.threshold[order]
    new = np.ones(len(order), dtype=bool)  # whether a stump is the first with its feature and threshold
    new[1:] = (feature[1:] != feature[:-1]) | (threshold[1:] != threshold[:-1])
    jumps = np.bincount(np.cumsum(new) - 1, weights=stumps.weight[order], minlength=int(new.sum()))
    missing = np.zeros(len(order)) if stumps.missing is None else stumps.missing[order] * stumps.weight[order]
    features, starts = np.unique(feature[new], return_index=True)
    ends = np.append(starts, int(new.sum()))[1:]
    values = [
        np.concatenate([[0.0], np.cumsum(jumps[a:b]), [missing[feature == f].sum()]])
        for f, a, b in zip(features, starts, ends, strict=True)
    ]
    return Steps(
        features.astype(np.int64),
        np.append(starts, int(new.sum())).astype(np.int64),
        threshold[new].astype(np.float32),
        np.concatenate([np.empty(0), *values]),
    )


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise InputError(f"{value!r} in place of a weight; expected a finite number")
    return float(value)


KINDS = {scorer.kind: scorer for scorer in (Linear, Feature, Stumps)}


def scorer_from_json(values: Mapping[str, Any]) -> Scorer:
    """Rebuild a scorer from its JSON, by its kind."""
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"scorer of kind {kind!r}; expected one of {', '.join(KINDS)}")
    return KINDS[kind].from_json(values)
