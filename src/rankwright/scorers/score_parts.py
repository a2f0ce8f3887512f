"""Scorers as sums of parts of a few simple kinds: what merged scorers are made of and export targets write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.scorers.base import Scorer
from rankwright.scorers.kernel_sum import KernelSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.linear import Feature, Linear
from rankwright.scorers.network import Network
from rankwright.scorers.stump_sum import Stumps
from rankwright.scorers.stump_trees import convert_stumps_to_trees
from rankwright.scorers.tree_sum import Trees
from rankwright.scorers.weighted_sum import WeightedSum


@dataclass(slots=True, eq=False)
class ScoreParts:
    """A scorer as an intercept plus a linear part, stumps, trees, networks and kernel sums.

    Scaling is folded into linear parts; networks and kernel sums keep theirs.

    Parameters
    ----------
    n_features : int
        The number of features.
    intercept : float
        The constant part of the score.
    coef : array of shape (n_features,), optional
        The weights of the linear part; None if there is none.
    stumps : list of Stumps
        The sums of stumps; weights are multiplied in.
    forests : list of Forest
        The sums of trees, in the order in which they are summed; weights are multiplied in.
    networks : list of (float, Network)
        The networks with their weights.
    kernel_sums : list of (float, KernelSum)
        The kernel sums with their weights.
    others : list of (float, Scorer)
        Scorers of other kinds with their weights.
    """

    n_features: int
    intercept: float = 0.0
    coef: Floats | None = None
    stumps: list[Stumps] = field(default_factory=list)
    forests: list[Forest] = field(default_factory=list)
    networks: list[tuple[float, Network]] = field(default_factory=list)
    kernel_sums: list[tuple[float, KernelSum]] = field(default_factory=list)
    others: list[tuple[float, Scorer]] = field(default_factory=list)

    @property
    def trees(self) -> list[Tree]:
        """The trees of all forests, in the order in which they are summed."""
        return [tree for forest in self.forests for tree in forest.trees]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of parts: "linear", "stumps", "trees", "categories" (in trees), "network" and "kernel sum"."""
        found = {
            "linear": self.coef is not None,
            "stumps": bool(self.stumps),
            "trees": bool(self.trees),
            "categories": any(tree.categorical.any() for tree in self.trees),
            "network": bool(self.networks),
            "kernel sum": bool(self.kernel_sums),
        }
        return frozenset(kind for kind, is_there in found.items() if is_there)

    @property
    def merged_kinds(self) -> frozenset[str]:
        """The kinds of parts where stumps are taken as trees, with or without categories."""
        own = self.kinds - {"categories", "stumps"}
        return own | {"trees"} if self.stumps else own

    def list_trees(self) -> list[Tree]:
        """Return the trees, then the stumps as trees."""
        return [*self.trees, *(tree for stumps in self.stumps for tree in convert_stumps_to_trees(stumps))]

    def add_linear(self, coef: Floats) -> None:
        """Add a weight for each feature."""
        self.coef = coef if self.coef is None else self.coef + coef


def split_scorer(scorer: Scorer, n_features: int) -> ScoreParts:
    """Return a scorer as a sum of simple parts.

    Examples
    --------
    >>> total = WeightedSum([Linear(np.array([2.0, -1.0]), 3.0), Feature(1)], np.array([1.0, 0.5]), 0.25)
    >>> parts = split_scorer(total, n_features=2)
    >>> parts.coef.tolist(), parts.intercept
    ([2.0, -0.5], 3.25)
    """
    parts = split_sum([(1.0, scorer)], 0.0, n_features)
    if parts.others:
        raise InputError(
            f"the model contains a scorer of kind {parts.others[0][1].kind!r}, which is no sum of linear models, "
            "trees, networks or kernels: it can be neither exported nor explained. Leave it out"
        )
    return parts


def split_sum(weighted: Iterable[tuple[float, Scorer]], intercept: float, n_features: int) -> ScoreParts:
    """Return a weighted sum of scorers, each with its weight, as a sum of simple parts.

    A scorer that is there more than once is taken once, with the sum of its weights; one of weight 0 is left out.
    """
    parts, found = ScoreParts(n_features, intercept), dict[int, tuple[float, Scorer]]()
    for weight, scorer in weighted:
        listed: Iterable[tuple[float, Scorer]] = [(weight, scorer)]
        if isinstance(scorer, WeightedSum):
            parts.intercept += weight * scorer.sum_intercepts()
            listed = ((weight * own, part) for own, part in scorer.list_parts())
        for own, part in listed:
            found[id(part)] = found.get(id(part), (0.0, part))[0] + own, part
    for weight, scorer in found.values():
        if weight != 0.0:
            _add_part(scorer, weight, parts)
    return parts


@singledispatch
def _add_part(scorer: Scorer, weight: float, parts: ScoreParts) -> None:
    """Add a scorer times its weight to the parts; each kind of scorer registers its own function."""
    parts.others.append((weight, scorer))


@_add_part.register
def _(scorer: Linear, weight: float, parts: ScoreParts) -> None:
    parts.add_linear(weight * scorer.coef)
    parts.intercept += weight * scorer.intercept


@_add_part.register
def _(scorer: Feature, weight: float, parts: ScoreParts) -> None:
    coef = np.zeros(parts.n_features)
    coef[scorer.index] = weight * scorer.sign
    parts.add_linear(coef)


@_add_part.register
def _(scorer: Stumps, weight: float, parts: ScoreParts) -> None:
    own = scorer if weight == 1.0 else Stumps(scorer.feature, scorer.threshold, weight * scorer.weight, scorer.missing)
    parts.stumps.append(own)


@_add_part.register
def _(scorer: Trees, weight: float, parts: ScoreParts) -> None:
    forest = scorer.forest
    parts.forests.append(forest if weight == 1.0 else forest.with_weights([weight] * len(forest)))


@_add_part.register
def _(scorer: Network, weight: float, parts: ScoreParts) -> None:
    parts.networks.append((weight, scorer))


@_add_part.register
def _(scorer: KernelSum, weight: float, parts: ScoreParts) -> None:
    parts.kernel_sums.append((weight, scorer))


def find_least_score(parts: ScoreParts) -> float | None:
    """Return a lower limit of all scores, which trees and stumps have; None if a part has none."""
    if parts.coef is not None or parts.networks or parts.kernel_sums:
        return None
    return parts.intercept + sum(float(tree.values.min()) for tree in parts.list_trees())
