"""Sums of threshold stumps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.kernels.scorers.stump_scores import compute_step_scores
from rankwright.scorers.base import Scorer, check_list, parse_numbers

_LAST_INDEX = 2**63 - 1


class Steps(NamedTuple):
    """The step functions of features that add up to a score, as ``kernels/scorers/stump_scores.py`` takes them."""

    features: Ints
    starts: Ints
    thresholds: Floats
    values: Floats

    def get_function(self, k: int) -> tuple[Floats, Floats, float]:
        """Return the k-th feature's thresholds, the values before, between and after them, and the missing value."""
        low, high = self.starts[k], self.starts[k + 1]
        values = self.values[low + 2 * k : high + 2 * k + 2]
        return self.thresholds[low:high], values[:-1], float(values[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Stumps(Scorer):
    """A scorer that is a weighted sum of stumps: each is 1 where its feature is above its threshold, else 0.

    Scores are computed from one step function per feature. The weights of fitted rankers are multiples of 2^-32: every
    sum of them is exact in any order.

    Parameters
    ----------
    feature : array of int
        The feature of each stump.
    threshold : array of float32
        The threshold of each stump.
    weight : array of float
        The weight of each stump.
    missing : array of bool, optional
        The value of each stump, 0 or 1, where its feature is missing; None if no feature may be.

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
        object.__setattr__(self, "steps", _build_steps(self))

    @property
    def allow_nan(self) -> bool:
        """Whether the stumps have values for missing features."""
        return self.missing is not None

    def __call__(self, X: Floats) -> Floats:
        """Return the sums of the step functions."""
        return compute_step_scores(X, *self.steps)

    def __len__(self) -> int:
        return len(self.weight)

    def slice_terms(self, start: int, stop: int) -> Stumps:
        """Return the sum of the stumps ``start`` to ``stop``."""
        part = slice(start, stop)
        missing = None if self.missing is None else self.missing[part]
        return Stumps(self.feature[part], self.threshold[part], self.weight[part], missing)

    def accepts(self, n_features: int) -> bool:
        """Return whether all features of the stumps are there."""
        return len(self) == 0 or int(self.feature.max()) < n_features

    def to_json(self) -> dict[str, Any]:
        """Return a list per column."""
        return {
            "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(),
            "weight": self.weight.tolist(),
            "missing": None if self.missing is None else self.missing.astype(int).tolist(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Stumps:
        """Read what ``to_json`` wrote."""
        feature, sides = check_list(values["feature"]), values["missing"]
        if not all(type(index) is int and 0 <= index <= _LAST_INDEX for index in feature):
            raise InputError("a stump of no feature; expected columns counted from 0")
        if sides is not None and not all(type(side) is int and side in (0, 1) for side in check_list(sides)):
            raise InputError("a stump's value of a missing feature; expected 0 or 1")
        threshold, weight = parse_numbers(values["threshold"]), parse_numbers(values["weight"])
        missing = None if sides is None else np.array(sides, dtype=bool)
        lengths = {len(column) for column in (feature, threshold, weight, missing) if column is not None}
        if len(lengths) > 1 or np.abs(threshold).max(initial=0.0) > np.finfo(np.float32).max:
            raise InputError("stumps whose columns differ in length, or thresholds out of range")
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls(np.array(feature, dtype=np.int64), threshold.astype(np.float32), weight, missing)
        if not np.isfinite(found.steps.values).all():
            raise InputError("stumps whose weights have no finite sum")
        return found


def join_stumps(parts: Sequence[Stumps]) -> Stumps:
    """Return the stumps of several sums as one; it takes missing values if all of them do.

    >>> one = Stumps(np.array([1]), np.array([0.5], np.float32), np.array([2.0]))
    >>> len(join_stumps([one, one, one]))
    3
    """
    missing = [part.missing for part in parts if part.missing is not None]
    feature, threshold, weight = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("feature", "threshold", "weight")
    )
    return Stumps(feature, threshold, weight, np.concatenate(missing) if len(missing) == len(parts) else None)


def _build_steps(stumps: Stumps) -> Steps:
    """Combine stumps into one step function per feature, which jumps at each threshold by their weights."""
    order = np.lexsort((stumps.threshold, stumps.feature))
    feature, threshold = stumps.feature[order], stumps.threshold[order]
    new = np.ones(len(order), dtype=bool)  # whether a stump is the first with its feature and threshold
    new[1:] = (feature[1:] != feature[:-1]) | (threshold[1:] != threshold[:-1])
    jumps = np.bincount(np.cumsum(new) - 1, weights=stumps.weight[order], minlength=int(new.sum()))
    missing = np.zeros(len(order)) if stumps.missing is None else stumps.missing[order] * stumps.weight[order]
    features, starts = np.unique(feature[new], return_index=True)
    ends = np.append(starts, int(new.sum()))[1:]
    of_missing = np.bincount(np.searchsorted(features, feature), weights=missing, minlength=len(features))
    values = [
        np.concatenate([[0.0], np.cumsum(jumps[a:b]), [at_missing]])
        for at_missing, a, b in zip(of_missing, starts, ends, strict=True)
    ]
    return Steps(
        features.astype(np.int64),
        np.append(starts, int(new.sum())).astype(np.int64),
        threshold[new].astype(np.float32),
        np.concatenate([np.empty(0), *values]),
    )
