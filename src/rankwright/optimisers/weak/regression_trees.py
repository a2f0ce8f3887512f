"""Regression trees as weak learners: LightGBM grows them, one at a time, on data that it bins once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, suggest
from rankwright.basics.optional_imports import require
from rankwright.basics.synonyms import find_synonym
from rankwright.data.queries import Queries
from rankwright.optimisers.functional_gradient import TreeTarget, round_for_exact_sums
from rankwright.optimisers.weak.binned_documents import BinnedDocuments, bin_documents
from rankwright.runtime.backends import Backend
from rankwright.scorers.lightgbm_text import Forest

_OF_RANKERS = (
    *("num_leaves", "learning_rate", "min_child_samples", "n_estimators", "early_stopping_rounds"),
    *("backend", "random_state", "measure"),
)
_REFUSED = {
    "boosting": "trees are boosted by gradients (gbdt) only",
    "boosting_type": "trees are boosted by gradients (gbdt) only",
    "objective": "the ranker decides it: LambdaMART(lambdas=...), or BoostedTrees(objective=...)",
}
LIGHTGBM_NAMES = (
    "max_depth",
    "min_sum_hessian_in_leaf",
    "bagging_fraction",
    "bagging_freq",
    "bagging_seed",
    "bagging_by_query",
    "feature_fraction",
    "feature_fraction_bynode",
    "feature_fraction_seed",
    "extra_trees",
    "extra_seed",
    "max_delta_step",
    "lambda_l1",
    "lambda_l2",
    "min_gain_to_split",
    "monotone_constraints",
    "monotone_constraints_method",
    "monotone_penalty",
    "interaction_constraints",
    "path_smooth",
    "max_bin",
    "max_bin_by_feature",
    "min_data_in_bin",
    "bin_construct_sample_cnt",
    "data_random_seed",
    "use_missing",
    "enable_bundle",
    "is_enable_sparse",
    "feature_contri",
    "cat_smooth",
    "cat_l2",
    "max_cat_threshold",
    "max_cat_to_onehot",
    "min_data_per_group",
    "cegb_tradeoff",
    "cegb_penalty_split",
    "cegb_penalty_feature_lazy",
    "cegb_penalty_feature_coupled",
    "data_sample_strategy",
    "top_rate",
    "other_rate",
    "histogram_pool_size",
)
_NUMBERS = ("feature_fraction", "feature_fraction_bynode", "bagging_fraction", "bagging_freq")
_POSITION_BIAS = "lambdarank_position_bias_regularization"
_OF_NATIVE = ("sigmoid", "lambdarank_truncation_level", "lambdarank_norm", _POSITION_BIAS)


@dataclass(frozen=True, slots=True)
class RegressionTree:
    """A weak learner: regression trees that LightGBM grows with these parameters.

    Parameters
    ----------
    num_leaves : int
        The most leaves.
    min_child_samples : int
        The fewest documents in a leaf.
    learning_rate : float
        A factor of the values of leaves.
    params : mapping
        More of LightGBM's parameters, by its full names.
    seed : int
        The seed of random choices, where the parameters ask for any.
    """

    num_leaves: int = 31
    min_child_samples: int = 20
    learning_rate: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def min_weight(self) -> float:
        """The least factor of a tree: 0 under monotone constraints, which a negative factor would reverse."""
        return 0.0 if np.any(self.params.get("monotone_constraints", 0)) else -np.inf

    @property
    def is_random(self) -> bool:
        """Whether one round may find a split where another found none."""
        params = self.params
        fractions = [params.get(name, 1.0) for name in ("feature_fraction", "feature_fraction_bynode")]
        if params.get("bagging_freq", 0) > 0:
            fractions.append(params.get("bagging_fraction", 1.0))
        return min(fractions) < 1.0 or bool(params.get("extra_trees")) or params.get("data_sample_strategy") == "goss"

    def to_lightgbm(self, n_threads: int = 0, **native: Any) -> dict[str, Any]:
        """Return all of LightGBM's parameters.

        Each sum over documents is made by one thread, so that trees do not depend on the number of threads.
        """
        return {
            "objective": "none",
            "metric": "none",
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            "learning_rate": self.learning_rate,
            "num_threads": n_threads,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
            **native,
            **self.params,
        }

    def prepare(self, queries: Queries, n_threads: int = 0, start: Floats | None = None, **native: Any) -> TreeGrower:
        """Bin the features.

        Parameters
        ----------
        queries : Queries
            The documents.
        n_threads : int
            The threads that LightGBM may use; 0 for all.
        start : array of shape (n_docs,), optional
            The scores that LightGBM's own objective begins with.
        **native
            LightGBM's own objective and its parameters, where trees are to be grown for it.
        """
        lgb, params = require("lightgbm"), self.to_lightgbm(n_threads, **native)
        if _POSITION_BIAS in params and queries.position is None:
            raise InputError(f"lightgbm_params has {_POSITION_BIAS!r}; it has no effect without Queries.position")
        with translate_errors():
            binned = bin_documents(queries, params) if start is None else BinnedDocuments.of(queries, params, start)
            booster = lgb.Booster(params, binned.data)
            return TreeGrower(binned.data, booster, bool(binned.used.any()), self.is_random)


class TreeGrower:
    """A grower of trees on one set of documents: the documents' bins in LightGBM, and the trees so far."""

    def __init__(self, data: Any, booster: Any, can_split: bool, is_random: bool) -> None:
        self.data, self.booster, self.can_split, self.is_random = data, booster, can_split, is_random
        self.n_trees = 0

    def fit(self, gradient: Floats, curvature: Floats) -> Forest | None:
        """Return the tree along a gradient; a leaf has -learning_rate * sum of gradients / sum of curvatures.

        Values in single precision are taken as they are: they were rounded before.
        With the negative residuals as gradients and ones as curvatures it is the least squares tree of the residuals.
        Where no split gains enough it is None, or a single leaf if another round may find a split.
        """
        target = [each if each.dtype == np.float32 else round_for_exact_sums(each) for each in (gradient, curvature)]
        return self._update(fobj=lambda scores, data: target)

    def fit_target(self, target: TreeTarget, backend: Backend) -> Forest | None:
        """Return the tree along the gradients of a target, as ``fit`` does."""
        return self.fit(*target.collect(backend))

    def fit_own_objective(self) -> Forest | None:
        """Return the next tree of LightGBM's own objective."""
        return self._update()

    def own_objective_scores(self) -> Floats:
        """Return the scores that LightGBM's own objective sees: those of all trees, as they were grown."""
        found: list[Floats] = []

        def keep(scores: Floats, data: Any) -> tuple[str, float, bool]:
            found.append(scores.copy())
            return "kept", 0.0, True

        self.booster.eval_train(keep)
        return found[0]

    def rescale(self, tree: Forest, weight: float) -> Forest:
        """Multiply the values of the last tree, which ``fit`` returned, also in the Booster; return it.

        LightGBM's own scores stay as they were.
        """
        scaled = tree.with_weights([weight])
        for leaf, value in enumerate(scaled.trees[0].values.tolist()):
            self.booster.set_leaf_output(self.n_trees - 1, leaf, value)
        return scaled

    def _update(self, **how: Any) -> Forest | None:
        if not self.can_split:
            return None
        with translate_errors():
            self.booster.update(**how)
        tree = Forest.constant(self.data.num_feature())
        if self.booster.num_trees() > self.n_trees:  # LightGBM has a first tree in any case
            tree = Forest.from_text(self.booster.model_to_string(num_iteration=1, start_iteration=self.n_trees))
            self.n_trees += 1
        return tree if self.is_random or tree.trees[0].n_splits else None


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise LightGBM's errors inside the block as InputError."""
    errors = require("lightgbm").basic.LightGBMError
    try:
        yield
    except errors as error:
        message = re.sub(r"\s+at /\S+, line \d+ *\.?\s*$", "", str(error)).strip()
        raise InputError(f"LightGBM: {message}") from None


def check_lightgbm_params(params: Any, *, native: bool) -> dict[str, Any]:
    """Return the LightGBM parameters that a user gave; raise InputError if one is unknown or not allowed.

    >>> check_lightgbm_params({"lambda_l2": 1.0}, native=False)
    {'lambda_l2': 1.0}
    """
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise InputError(f"lightgbm_params={params!r}; expected a mapping of LightGBM's parameters")
    known = [*LIGHTGBM_NAMES, *(_OF_NATIVE if native else ())]
    for name in params:
        if name not in known:
            raise InputError(f"lightgbm_params has {name!r}; {_explain_refused(str(name), known)}")
        value = params[name]
        if name in _NUMBERS and (isinstance(value, bool) or not isinstance(value, (int, float, np.number))):
            raise InputError(f"lightgbm_params has {name!r}: {value!r}; expected a number")
    return dict(params)


def _explain_refused(name: str, known: Collection[str]) -> str:
    """Return why a parameter of LightGBM is not accepted, and what to use in its place."""
    own = name if name in _OF_RANKERS else find_synonym(name, _OF_RANKERS)
    if own is not None:
        return f"pass {own} to the ranker itself"
    if name in _OF_NATIVE:
        return "that is for lambdas='lightgbm'"
    return _REFUSED.get(name, f"{suggest(name, known)} (LightGBM's full names, those that a sum of trees allows)")
