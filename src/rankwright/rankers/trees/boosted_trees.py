"""BoostedTrees: any objective, minimised by boosted trees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from rankwright.measures import Measure
from rankwright.objectives import SoftPositions, SoftRanks
from rankwright.objectives.objective_names import as_objective
from rankwright.rankers.listwise.descent_ranker import trained_measure
from rankwright.rankers.parameter_checks import check_whole
from rankwright.rankers.trees.tree_boosting import GradientStages, TreeStages
from rankwright.rankers.trees.tree_ranker import TreeRanker
from rankwright.runtime.backends import Backend

_SIGMA, _START = 0.1, 20  # of smooth measures: by name; least squares trees first


@final
class BoostedTrees(TreeRanker):
    """Boosted trees that minimise any objective: one of ours, or one that you write.

    A round evaluates the objective at the scores so far. Its tree has in each leaf the step
    -(sum of gradients) / (sum of curvatures), times the learning rate.

    Parameters
    ----------
    objective : str, Objective or callable
        A name (see ``rankwright.objectives``; smooth measures by name have sigma = 0.1 here, since trees have
        scores of about the size of grades), an objective such as ``SoftRanks(rw.AP(), 0.2)``, or a function
        (scores, queries) -> (loss, gradient), both sums over the queries that it is given, which are a part.
    measure : str or Measure
        Reports, and with validation queries chooses how many trees are kept; also what an objective by name is of,
        where it is one of a measure.
    n_start : int or None
        How many of the trees are of least squares, as MART's, before the objective is followed. None is 20 for smooth
        measures, which have many local minima and need a good start, and 0 for others.
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
        Seeds LightGBM, where the parameters ask for anything random, samples, where the objective has any, and the
        order of the trees in polishing.
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
        By tree: ``loss`` (summed over the queries, before the tree), ``train``, ``valid``, and ``kept`` in the row of
        the model: the best one on validation queries, or else the last. With ``polish`` then its rounds, numbered as
        ``polish``.

    Notes
    -----
    Functional gradient boosting (Friedman, 2001), as Chapelle & Wu suggest in section 6 for their smooth measures.
    Where an objective has no curvature, as these, that of a document is the size of its gradient, and a tenth of the
    mean size: the step of a leaf is how far its documents agree on the direction, at most the learning rate. Where it
    has no gradient either, as soft positions at the equal scores of the start, the tree is of least squares. For
    objectives of ours, documents of a query with equal scores and grades share their gradients evenly, so that the
    order of the rows does not matter (but to what is sampled).

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> ranker = BoostedTrees(objective="fidelity", n_rounds=20, n_leaves=4).fit(queries)
    >>> bool(ranker.history_[-1]["loss"] < ranker.history_[0]["loss"])
    True
    """

    def __init__(
        self,
        *,
        objective: Any = "positions",
        measure: str | Measure = "ndcg@10",
        n_start: int | None = None,
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
        self.objective = objective
        self.measure = measure
        self.n_start = n_start
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

    def _check_own(self, measure: Measure) -> None:
        as_objective(self.objective, trained_measure(measure))
        if self.n_start is not None:
            check_whole("n_start", self.n_start, least=0)

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        _, _, measure, *_ = setting
        objective = as_objective(self.objective, trained_measure(measure))
        if isinstance(self.objective, str) and isinstance(objective, (SoftPositions, SoftRanks)):
            objective = replace(objective, sigma=_SIGMA)
        usual = _START if isinstance(objective, (SoftPositions, SoftRanks)) else 0
        n_start = usual if self.n_start is None else check_whole("n_start", self.n_start, least=0)
        return GradientStages(*setting, objective=objective, n_start=n_start)
