"""Tree ensembles of several libraries: the leaves that documents fall into, and copies with other tree weights."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.data.queries import Queries
from rankwright.models.imports import as_model
from rankwright.models.model import Model, check_features
from rankwright.optimisers.columns import JoinedColumns, MatrixColumns, ScoreColumns, TreeColumns
from rankwright.optimisers.polishing import PolishedWeights
from rankwright.rankers import Ranker
from rankwright.rankers.trees.tree_boosting import join_histories
from rankwright.scorers import Scorer, Trees, WeightedSum, merge_scorers

_MAX_LEAVES = 1 << 24  # at a time: other libraries need several bytes for each


class TreeEnsemble(ABC):
    """A wrapper of a tree model of any supported library, through which its trees can be weighted anew.

    Attributes
    ----------
    values : list of array
        The leaf values of each tree.
    n_features : int
        The number of features.
    names : tuple of str or None
        The names of the features, if known.
    monotone : bool
        Whether the model has monotone constraints, which negative weights would violate.
    """

    values: list[Floats]
    n_features: int
    names: tuple[str, ...] | None
    monotone: bool

    @property
    def n_columns(self) -> int:
        """The number of weights: one for each tree."""
        return len(self.values)

    def make_columns(self, queries: Queries) -> ScoreColumns:
        """Return the values of the trees for the documents of queries."""
        queries = self.adapt(queries)
        sizes = [len(values) for values in self.values]
        if not sizes:
            raise InputError("a model without trees")
        kind = np.uint8 if max(sizes) <= 1 << 8 else np.uint16 if max(sizes) <= 1 << 16 else np.uint32
        leaves = np.empty((len(sizes), queries.n_docs), dtype=kind)
        rows = max(_MAX_LEAVES // len(sizes), 1)
        for start in range(0, queries.n_docs, rows):
            leaves[:, start : start + rows] = self.find_leaves(queries.X[start : start + rows])
        return TreeColumns(leaves, np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(self.values))

    def adapt(self, queries: Queries) -> Queries:
        """Return documents as the model takes them; raise InputError if it cannot take them."""
        check_features(queries, self.n_features, self.names, "the model was trained on")
        if queries.categories is not None:
            raise InputError(
                "documents with categories, which the model of another library may number otherwise; expected the "
                "numbers that it was trained on (queries.replace(categories=None) says that these are the same)"
            )
        return queries

    @abstractmethod
    def find_leaves(self, X: Floats) -> Ints:
        """Return the leaf of each tree and document, as an index into the values of the tree."""

    @abstractmethod
    def apply_weights(self, polished: PolishedWeights) -> Any:
        """Return a copy of the model whose leaf values are multiplied by the trees' weights."""

    @abstractmethod
    def predict(self, model: Any, X: Floats) -> Floats:
        """Return the scores of documents by the model or such a copy."""


def _wrap_like(model: Any, booster: Any) -> Any:
    """Return the Booster if the model is a Booster, otherwise a copy of the model that holds this Booster."""
    if isinstance(model, type(booster)):
        return booster
    copy = deepcopy(model)
    copy._Booster = booster
    return copy


class LightGBMEnsemble(TreeEnsemble):
    """A wrapper of a LightGBM Booster, or of an estimator of its scikit-learn interface."""

    def __init__(self, model: Any, threads: int) -> None:
        self.how = {"num_threads": threads, "validate_features": False}
        self.model, self.booster = model, model if hasattr(model, "num_trees") else model.booster_
        if self.booster.num_model_per_iteration() != 1:
            raise InputError("a LightGBM model with several scores a document; expected one")
        self.n_trees = self.booster.best_iteration if self.booster.best_iteration > 0 else self.booster.num_trees()
        self.text = self.booster.model_to_string(num_iteration=self.n_trees)
        if re.search(r"^is_linear=1$", self.text, re.MULTILINE):
            raise InputError("a LightGBM model with linear leaves; expected leaves with one value")
        found = re.findall(r"^leaf_value=(.*)$", self.text, re.MULTILINE)
        self.values = [np.array(line.split(), dtype=np.float64) for line in found]
        self.n_features = self.booster.num_feature()
        names = self.booster.feature_name()
        self.names = None if names == [f"Column_{i}" for i in range(self.n_features)] else tuple(names)
        self.monotone = re.search(r"^monotone_constraints=.*1", self.text, re.MULTILINE) is not None

    def find_leaves(self, X: Floats) -> Ints:
        """Return the leaves that LightGBM finds."""
        found: Ints = self.booster.predict(X, pred_leaf=True, num_iteration=self.n_trees, **self.how)
        return found.reshape(len(X), -1).T

    def apply_weights(self, polished: PolishedWeights) -> Any:
        """Return a copy whose leaf values are set one by one."""
        booster = require("lightgbm").Booster(model_str=self.text)
        for tree, (values, weight) in enumerate(zip(self.values, polished.level, strict=True)):
            for leaf, value in enumerate((values * weight).tolist()):
                booster.set_leaf_output(tree, leaf, value)
        booster.best_iteration, booster.best_score = self.booster.best_iteration, dict(self.booster.best_score)
        return _wrap_like(self.model, booster)

    def predict(self, model: Any, X: Floats) -> Floats:
        """Return the raw scores of the Booster."""
        found: Floats = getattr(model, "booster_", model).predict(X, raw_score=True, **self.how)
        return found


class XGBoostEnsemble(TreeEnsemble):
    """A wrapper of an XGBoost Booster, or of an estimator of its scikit-learn interface.

    XGBoost adds leaf values in single precision, so its ranking may differ from ours where scores nearly tie.
    """

    def __init__(self, model: Any, threads: int) -> None:
        self.threads = threads
        is_estimator = hasattr(model, "get_booster")
        self.model, self.booster = model, model.get_booster() if is_estimator else model
        self.missing = getattr(model, "missing", np.nan)
        best = getattr(self.booster, "best_iteration", None) if is_estimator else None  # a Booster predicts with all
        self.content = _to_saved_form(self.booster if best is None else self.booster[: best + 1])
        learner = self.content["learner"]
        if learner["gradient_booster"]["name"] != "gbtree":
            raise InputError(f"an XGBoost model of {learner['gradient_booster']['name']}; expected gbtree")
        params = learner["learner_model_param"]
        if int(params.get("num_class", 0)) > 1 or int(params.get("num_target", 1)) > 1:
            raise InputError("an XGBoost model with several scores a document; expected one")
        self.rounds = (0, 0 if best is None else best + 1)
        self.trees = learner["gradient_booster"]["model"]["trees"]
        self.values = [np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64) for tree in self.trees]
        self.n_features = int(params["num_feature"])
        self.names = tuple(self.booster.feature_names) if self.booster.feature_names else None
        config = json.loads(self.booster.save_config())["learner"]["gradient_booster"]
        self.monotone = "1" in config.get("tree_train_param", {}).get("monotone_constraints", "")

    def find_leaves(self, X: Floats) -> Ints:
        """Return the numbers of nodes, because XGBoost counts leaves among the nodes."""
        found = self.booster.predict(self._make_matrix(X), pred_leaf=True, iteration_range=self.rounds)
        nodes: Ints = found.reshape(len(X), -1).T
        return nodes

    def apply_weights(self, polished: PolishedWeights) -> Any:
        """Return a copy whose leaf values are changed in the saved form of the model."""
        for tree, values, weight in zip(self.trees, self.values, polished.level, strict=True):
            scaled = (values * weight).astype(np.float32)
            for node in np.flatnonzero(np.array(tree["left_children"]) < 0).tolist():
                tree["split_conditions"][node] = tree["base_weights"][node] = float(scaled[node])
        booster = require("xgboost").Booster()
        booster.load_model(bytearray(json.dumps(self.content).encode()))
        booster.set_attr(**self.booster.attributes())
        return _wrap_like(self.model, booster)

    def predict(self, model: Any, X: Floats) -> Floats:
        """Return the raw scores of the Booster."""
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        found: Floats = booster.predict(self._make_matrix(X), output_margin=True, iteration_range=self.rounds)
        return found.astype(np.float64)

    def _make_matrix(self, X: Floats) -> Any:
        names, types = self.booster.feature_names, self.booster.feature_types
        how = {"missing": self.missing, "feature_names": names, "feature_types": types, "nthread": self.threads}
        return require("xgboost").DMatrix(X, **how)


def _to_saved_form(booster: Any) -> Any:
    """Return what an XGBoost Booster saves as JSON, parsed; raise InputError if it has no trees."""
    try:
        return json.loads(booster.save_raw("json"))
    except require("xgboost").core.XGBoostError:
        raise InputError("an XGBoost model without trees") from None


class RankwrightEnsemble(TreeEnsemble):
    """A wrapper of a Rankwright model of trees, or of a fitted ranker of trees.

    A model may also be a sum of trees and other scorers: then each other part of the sum has a weight too.
    """

    def __init__(self, fitted: Any, measure: str) -> None:
        self.model: Model = fitted.to_model()
        self.measure = measure
        scorer = merge_scorers([self.model.scorer], [1.0], n_features=self.model.n_features)
        total = scorer if isinstance(scorer, WeightedSum) else WeightedSum([scorer], np.ones(1))
        trees = [part for part in total.scorers if isinstance(part, Trees)]
        if not trees:
            raise InputError(f"a model of {self.model.ranker}; expected one of trees (rw.polish takes any scores)")
        if self.model.scaling is not None:
            raise InputError("a model that scales features within each query; expected one that does not")
        self.trees, self.intercept = trees[0], total.intercept
        self.others = [(w, part) for w, part in zip(total.weights.tolist(), total.scorers) if part is not self.trees]
        self.values = [tree.values for tree in self.trees.forest.trees]
        self.n_features, self.names = self.model.n_features, self.model.features
        self.monotone = self.trees.forest.is_monotone

    @property
    def n_columns(self) -> int:
        """The number of weights: one for each tree, then one for each other part."""
        return len(self.values) + len(self.others)

    def make_columns(self, queries: Queries) -> ScoreColumns:
        """Return the values of the trees for the documents of queries, and the scores of the other parts."""
        trees = super().make_columns(queries)
        if not self.others:
            return trees
        X = self.adapt(queries).X
        return JoinedColumns(trees, MatrixColumns(np.column_stack([w * part(X) for w, part in self.others])))

    def adapt(self, queries: Queries) -> Queries:
        """Return documents with the categories in the model's numbers."""
        return self.model.adapt(queries)

    def find_leaves(self, X: Floats) -> Ints:
        """Return the leaves that the scorer finds."""
        return self.trees.leaves(X)

    def apply_weights(self, polished: PolishedWeights) -> Model:
        """Return a copy with another scorer, the polished measure, and the history of polishing."""
        of_trees, of_others = np.split(polished.level, [len(self.values)])
        scorer: Scorer = Trees(self.trees.forest.with_weights(of_trees))
        if self.others:
            weights = [1.0, *(w * own for (w, _), own in zip(self.others, of_others.tolist(), strict=True))]
            parts = [scorer, *(part for _, part in self.others)]
            scorer = merge_scorers(parts, weights, self.intercept, self.n_features)
        old = [row for row in self.model.history if self.measure == self.model.measure]  # no other measure's
        history = join_histories(old, polished.history)
        return replace(self.model, measure=self.measure, scorer=scorer, history=history)

    def predict(self, model: Any, X: Floats) -> Floats:
        """Return the scores of the scorer."""
        scores: Floats = as_model(model).scorer(X)
        return scores


def make_ensemble(model: Any, measure: str, threads: int = 1) -> TreeEnsemble:
    """Wrap a tree model of any library, so that its trees can be weighted anew; those of most become a Model."""
    if isinstance(model, (Ranker, Model)):
        return RankwrightEnsemble(model, measure)
    libraries = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "lightgbm" in libraries and isinstance(model, (require("lightgbm").Booster, require("lightgbm").LGBMModel)):
        return LightGBMEnsemble(model, threads)
    if "xgboost" in libraries and isinstance(model, (require("xgboost").Booster, require("xgboost").XGBModel)):
        return XGBoostEnsemble(model, threads)
    return RankwrightEnsemble(as_model(model), measure)
