"""BoostedTrees: any objective, minimised by boosted trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from rankwright.measures import Measure
from rankwright.objectives.objective_names import as_objective
from rankwright.objectives.smooth_objectives import SmoothObjective
from rankwright.rankers.input_checks import check_whole
from rankwright.rankers.listwise.descent_ranker import adapt_for_training
from rankwright.rankers.trees.tree_boosting import GradientStages, TreeStages
from rankwright.rankers.trees.tree_ranker import GradientTreeRanker

_SIGMA, _START = 0.1, 20  # of smooth measures: by name; least squares trees first


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BoostedTrees(GradientTreeRanker):
    """BoostedTrees: boosted regression trees that minimise any objective, a built-in one or your own.

    A round evaluates the objective at the scores so far. Its tree has in each leaf the step
    -(sum of gradients) / (sum of curvatures), times the learning rate.

    Parameters
    ----------
    objective : str, Objective or callable
        A name (see ``rankwright.objectives``; smooth measures by name have sigma = 0.1 here, since trees have
        scores of about the size of grades), an objective such as ``SigmoidRanks(rw.AP(), 0.2)``, or a function
        (scores, queries) -> (loss, gradient). Both are sums over the queries that it is given, which are a part of the
        training queries.
    measure : str or Measure
        Measure recorded in `history_`, which with validation queries chooses how many trees are kept; also the one that
        an objective by name is of, if it is of one.
    n_warmup_trees : int or None
        How many trees are fitted by least squares, as MART's, before the objective is followed. None is 20 for smooth
        measures, which have many local minima and need a good start, and 0 for others.
    random_state : int, Generator or None
        The seed of LightGBM, where its parameters ask for anything random, of samples, where the objective has any, and
        of the order of the trees in polishing.

    Attributes
    ----------
    history_ : list of dict
        A row per tree: ``loss`` (summed over the queries, before the tree), ``train``, ``valid``, and ``kept`` in the
        row of the model: the best one on validation queries, or else the last. With ``polish_rounds`` the rounds of
        polishing follow, numbered as ``polish``.

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
    >>> ranker = BoostedTrees(objective="fidelity", n_estimators=20, num_leaves=4).fit(queries)
    >>> bool(ranker.history_[-1]["loss"] < ranker.history_[0]["loss"])
    True
    """

    objective: Any = "positions"
    n_warmup_trees: int | None = None

    def takes_doc_weight(self, measure: Measure) -> bool:
        """Return whether the objective takes document weights."""
        return as_objective(self.objective, adapt_for_training(measure)).takes_doc_weight

    def _check_own(self, measure: Measure) -> None:
        as_objective(self.objective, adapt_for_training(measure))
        if self.n_warmup_trees is not None:
            check_whole("n_warmup_trees", self.n_warmup_trees, least=0)

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        _, _, measure, *_ = setting
        objective = as_objective(self.objective, adapt_for_training(measure))
        if isinstance(self.objective, str) and isinstance(objective, SmoothObjective):
            objective = replace(objective, sigma=_SIGMA)  # type: ignore[type-var]
        usual = _START if isinstance(objective, SmoothObjective) else 0
        n_warmup_trees = (
            usual if self.n_warmup_trees is None else check_whole("n_warmup_trees", self.n_warmup_trees, least=0)
        )
        return GradientStages(*setting, objective=objective, n_warmup_trees=n_warmup_trees)
