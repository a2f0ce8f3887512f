"""Merging of weighted scorers into the simplest equal scorer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.scorers.base import Scorer
from rankwright.scorers.forest_joining import join_forests
from rankwright.scorers.kernel_sum import KernelSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import make_leaf
from rankwright.scorers.linear import Feature, Linear
from rankwright.scorers.network import Network
from rankwright.scorers.score_parts import ScoreParts, split_sum
from rankwright.scorers.stump_sum import Stumps, join_stumps
from rankwright.scorers.stump_trees import convert_stumps_to_trees
from rankwright.scorers.tree_sum import Trees
from rankwright.scorers.weighted_sum import WeightedSum

_WEIGHTS_A_FEATURE = 64  # of 100 documents, a feature alone takes as long as a linear scorer of so many weights


def merge_scorers(
    scorers: Sequence[Scorer], weights: Sequence[float] | Floats, intercept: float = 0.0, n_features: int | None = None
) -> Scorer:
    """Return the simplest scorer that equals a weighted sum of scorers, plus an intercept.

    All linear scorers and single features become one weight vector, all trees and stumps one forest. Networks, kernel
    sums and scorers of other kinds stay as they are. A scorer of weight 0 is left out, and one that is there more than
    once is taken once, with the sum of its weights.

    Scores equal those of the sum up to rounding: (n + 2) units in the last place of the sum of the absolute values of
    all n terms, which are features times weights, leaf values, outputs and intercepts. The order of the parts is fixed:
    linear, trees, networks, kernel sums, others. Missing values are refused where a scorer refuses them: stumps that do
    so stay alone where no other part does. Gains of the splits of several forests, which may be in units of different
    losses, become shares of the variance of the trees' values.

    Parameters
    ----------
    scorers : sequence of Scorer
        The scorers of the same features, at least one. Sums inside the sum are merged too.
    weights : sequence of float
        The weight of each scorer, finite.
    intercept : float
        A constant added to every score.
    n_features : int, optional
        The number of features. It is needed only where no scorer tells it, as with single features and stumps: these
        features stay on their own without it.

    Returns
    -------
    Scorer
        A Linear if all scorers are linear, a Stumps if all are stumps, a Trees if all are trees and stumps, else a
        WeightedSum of at most one of each, and of the networks and kernel sums with their weights. In such a sum, a
        few features of many stay single, which is faster than a weight for each.

    Examples
    --------
    >>> merge_scorers([Linear(np.array([2.0, -1.0]), 3.0), Feature(1)], [1.0, 0.5], 0.25)
    Linear(coef=array([ 2. , -0.5]), intercept=3.25)
    """
    factors = np.asarray(weights, dtype=np.float64)
    if not len(scorers) or factors.shape != (len(scorers),):
        raise InputError(f"{factors.size} weights of {len(scorers)} scorers; expected a weight for each, at least one")
    if not (np.isfinite(factors).all() and np.isfinite(intercept)):
        raise InputError("a weight or an intercept that is not finite; expected finite numbers")
    if len(scorers) == 1 and factors[0] == 1.0 and intercept == 0.0 and not isinstance(scorers[0], WeightedSum):
        return scorers[0]
    known = _count_features(scorers, n_features)
    weighted = list(zip(factors.tolist(), scorers, strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        parts = split_sum(weighted, float(intercept), _count_columns(scorers) if known is None else known)
        return _join_parts(parts, is_complete=known is not None)


def _count_features(scorers: Sequence[Scorer], n_features: int | None) -> int | None:
    """Return the number of features of all scorers, None if no scorer tells it; raise InputError if they differ."""
    known = {_find_n_features(part) for part in _list_leaves(scorers)} - {None}
    known |= set() if n_features is None else {n_features}
    if len(known) > 1:
        numbers = " and ".join(map(str, sorted(n for n in known if n is not None)))
        raise InputError(f"scorers of {numbers} features; expected the same features for all")
    found = known.pop() if known else None
    if found is not None and not all(scorer.accepts(found) for scorer in scorers):
        raise InputError(f"a scorer of a feature beyond the {found} of the others; expected the same features for all")
    return found


def _list_leaves(scorers: Sequence[Scorer]) -> list[Scorer]:
    """Return the scorers that are no sums, those of sums inside sums too."""
    found: list[Scorer] = []
    for scorer in scorers:
        found += [part for _, part in scorer.list_parts()] if isinstance(scorer, WeightedSum) else [scorer]
    return found


def _find_n_features(scorer: Scorer) -> int | None:
    """Return the number of features that a scorer needs; None if it takes any that have its own among them."""
    if isinstance(scorer, Linear):
        return len(scorer.coef)
    if isinstance(scorer, Trees):
        return scorer.forest.n_features
    return len(scorer.mean) if isinstance(scorer, (KernelSum, Network)) else None


def _count_columns(scorers: Sequence[Scorer]) -> int:
    """Return the smallest number of features that contains every single feature of the scorers."""
    return max((part.index + 1 for part in _list_leaves(scorers) if isinstance(part, Feature)), default=0)


def _join_parts(parts: ScoreParts, is_complete: bool) -> Scorer:
    """Return the scorer that is the sum of the parts; single features stay alone unless their number is complete."""
    if parts.coef is not None and not (np.isfinite(parts.coef).all() and np.isfinite(parts.intercept)):
        raise InputError("weights of features in a sum that are not finite; expected smaller weights of the scorers")
    others = [*parts.networks, *parts.kernel_sums, *parts.others]
    if parts.coef is not None and is_complete and parts.merged_kinds == {"linear"} and not others:
        return Linear(parts.coef, parts.intercept)
    linear = _list_linear_parts(parts, is_complete)
    takes_missing = not linear and all(scorer.allow_nan for _, scorer in others)
    found = linear + _list_tree_parts(parts, takes_missing) + others
    if not found:  # a constant: no stump, which takes any number of features and missing values
        none = np.empty(0)
        found = [(1.0, Stumps(none.astype(np.int64), none.astype(np.float32), none, none.astype(bool)))]
    if len(found) == 1 and isinstance(found[0][1], Trees) and parts.intercept:
        forest = found[0][1].forest
        return Trees(Forest(forest.header, (*forest.trees, make_leaf(parts.intercept))))
    if len(found) == 1 and found[0][0] == 1.0 and not parts.intercept:
        return found[0][1]
    return WeightedSum([scorer for _, scorer in found], np.array([weight for weight, _ in found]), parts.intercept)


def _list_linear_parts(parts: ScoreParts, is_complete: bool) -> list[tuple[float, Scorer]]:
    """Return the linear part: one Linear, or the features that it uses if these are few and faster to read alone."""
    if parts.coef is None:
        return []
    used = np.flatnonzero(parts.coef).tolist()
    if is_complete and not 0 < len(used) * _WEIGHTS_A_FEATURE <= parts.n_features:
        return [(1.0, Linear(parts.coef))]
    return [(float(parts.coef[i]), Feature(i)) for i in used]


def _list_tree_parts(parts: ScoreParts, takes_missing: bool) -> list[tuple[float, Scorer]]:
    """Return stumps and trees as one forest, which scores faster than both; or stumps alone if there are no trees.

    Stumps that refuse missing values stay alone where no other part refuses them: trees take them.
    """
    if not parts.stumps:
        return [(1.0, Trees(join_forests(parts.forests)))] if parts.forests else []
    stumps = join_stumps(parts.stumps)
    if not parts.forests:
        return [(1.0, stumps)]
    if takes_missing and not stumps.allow_nan:
        return [(1.0, stumps), (1.0, Trees(join_forests(parts.forests)))]
    as_trees = Forest.from_trees(convert_stumps_to_trees(stumps), parts.n_features)
    return [(1.0, Trees(join_forests([*parts.forests, as_trees])))]
