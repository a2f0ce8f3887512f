"""The first column of models whose library kept the numbers of features, from 1, as columns from 0."""

from __future__ import annotations

from dataclasses import replace

from rankwright.basics.errors import InputError
from rankwright.models.model import Model
from rankwright.scorers import Linear, Scorer, Trees
from rankwright.scorers.lightgbm_text import Forest


def uses_first_feature(model: Model) -> bool:
    """Return whether the score depends on the first feature; True where that cannot be seen."""
    linear, trees = model.scorer.linear, model.scorer.trees
    if linear is not None:
        return bool(linear.coef[0] != 0.0)
    return trees is None or any((tree.columns["split_feature"] == 0).any() for tree in trees.forest.trees)


def describe_first_column(model: Model) -> list[str]:
    """Return a note if the first column is probably empty, so that all features would be shifted by one."""
    if not model.is_zero_based or uses_first_feature(model):
        return []
    trees = model.scorer.trees
    info = "none" if trees is None else trees.forest.header.get("feature_infos", "none").partition(" ")[0]
    if model.ranker == "LightGBM" and info != "none":  # the column had different values in training
        return []
    return [
        f"the {model.ranker} model never uses feature 1, its column 0: if it read text that counts from 1, feature 2 is"
        " number 1 of that text, and so on; import it with drop_first=True (rankwright import --drop-first) to leave "
        "the column out"
    ]


def drop_first_feature(model: Model) -> Model:
    """Return a model without its first feature; raise InputError if the score depends on it.

    Examples
    --------
    >>> import numpy as np
    >>> model = Model("XGBoost", {}, "map", Linear(np.array([0.0, 2.0, -1.0])), 3)
    >>> drop_first_feature(model).scorer.coef.tolist()
    [2.0, -1.0]
    """
    if model.n_features < 2 or uses_first_feature(model):
        raise InputError(
            f"the {model.ranker} model uses its first feature, which drop_first (--drop-first) would leave out; leave "
            "that option out"
        )
    linear, trees, features, categories = model.scorer.linear, model.scorer.trees, model.features, model.categories
    scorer: Scorer = model.scorer
    if linear is not None:
        scorer = Linear(linear.coef[1:], linear.intercept)
    elif trees is not None:
        scorer = Trees(_shift_forest(trees.forest))
    return replace(
        model,
        params={**model.params, "drop_first": True},  # columns are the numbers from 1 now
        scorer=scorer,
        n_features=model.n_features - 1,
        features=None if features is None else features[1:],
        categories=None if categories is None else categories[1:],
    )


def _shift_forest(forest: Forest) -> Forest:
    """Return trees with the number of every feature lowered by one."""
    trees = [
        replace(tree, columns={**tree.columns, "split_feature": tree.columns["split_feature"] - 1})
        for tree in forest.trees
    ]
    header = Forest.from_trees(trees, forest.n_features - 1).header
    kept = {name: forest.header[name].split(" ")[1:] for name in forest.header if name != "max_feature_idx"}
    names = kept.pop("feature_names")
    is_named = names != [f"Column_{i}" for i in range(1, forest.n_features)]
    own = {name: " ".join(words) for name, words in kept.items()}
    return Forest({**header, **own, **({"feature_names": " ".join(names)} if is_named else {})}, tuple(trees))
