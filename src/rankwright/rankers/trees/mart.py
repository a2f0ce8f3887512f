"""MART: boosted regression trees on the grades."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from rankwright.measures import Measure
from rankwright.rankers.trees.tree_boosting import NativeStages, TreeStages
from rankwright.rankers.trees.tree_ranker import TreeRanker
from rankwright.runtime.backends import Backend


@final
class MART(TreeRanker):
    """Boosted regression trees: each tree is fitted to what the ones before it leave of the grades.

    Minimises, one tree at a time, the sum over documents of (f(x) - grade)^2, which knows nothing of rankings. It is
    LightGBM's regression, with the rounds judged by a measure.

    Parameters
    ----------
    measure : str or Measure
        Reports, and with validation queries chooses how many trees are kept.
    n_rounds : int
        The most trees.
    n_leaves : int
        The most leaves of a tree.
    learning_rate : float
        What the values of a tree are multiplied by.
    min_docs : int
        The fewest documents in a leaf.
    patience : int or None
        Stop after so many trees without a better measure on validation queries; None for never.
    polish : int
        The most rounds of exact line searches on the measure, over the weights of all trees, once these are grown; 0
        for none. With validation queries the step that is best on them is kept, or the trees as they were grown.
    params : mapping or None
        More of LightGBM's parameters, by its full names: ``{"lambda_l2": 1.0, "monotone_constraints": [1, 0]}``.
    scale : "query", "standard" or None
        Scaling of the features. Only scaling per query makes a difference to trees.
    warm_start : bool or path
        Whether to go on after the trees of the last fit; or the saved model, or text of a LightGBM model, whose trees
        to go on after. ``n_rounds`` counts them all. What is random in LightGBM begins anew.
    random_state : int, Generator or None
        Seeds LightGBM, where the parameters ask for anything random, and the order of the trees in polishing.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        The share of each feature in the gains of all splits.
    booster_ : lightgbm.Booster
        The trees as LightGBM's own model.
    lightgbm_params_ : dict
        What LightGBM was told.
    history_ : list of dict
        By tree: ``train`` and ``loss``, 1 - train (on more than 100,000 documents for the trees 1, 2, 4, 8, ... and the
        model's last), ``valid``, and ``kept`` in the row of the model: the best one on validation queries, or else the
        last. With ``polish`` then its rounds, numbered as ``polish``.

    Notes
    -----
    Friedman (2001). Predictions are those of LightGBM with ``lightgbm_params_`` and as many rounds as were kept, to the
    last bit, unless trees are polished.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> ranker = MART(n_rounds=20, n_leaves=4).fit(queries)
    >>> bool((ranker.predict(queries) == ranker.booster_.predict(queries.X)).all())
    True
    """

    grows_native: ClassVar[bool] = True

    def __init__(
        self,
        *,
        measure: str | Measure = "ndcg@10",
        n_rounds: int = 100,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        min_docs: int = 20,
        patience: int | None = None,
        polish: int = 0,
        params: Mapping[str, Any] | None = None,
        scale: str | None = None,
        warm_start: bool | str | os.PathLike[str] = False,
        random_state: int | np.random.Generator | None = 0,
        backend: Backend | None = None,
    ) -> None:
        self.measure = measure
        self.n_rounds = n_rounds
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_docs = min_docs
        self.patience = patience
        self.polish = polish
        self.params = params
        self.scale = scale
        self.warm_start = warm_start
        self.random_state = random_state
        self.backend = backend

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        return NativeStages(*setting, objective={"objective": "regression"})
