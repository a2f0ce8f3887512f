"""GBRank: boosted trees that remedy the pairs whose scores violate a margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankwright.basics.errors import InputError
from rankwright.measures import Measure
from rankwright.objectives import SquaredHinge
from rankwright.rankers.input_checks import check_among, check_number
from rankwright.rankers.trees.tree_boosting import AveragedStages, TreeStages
from rankwright.rankers.trees.tree_ranker import GradientTreeRanker

_WIDEST = 1e6  # margin, and the inverse of the narrowest: LightGBM has single precision, and squares


@final
@dataclass(kw_only=True, eq=False, repr=False)
class GBRank(GradientTreeRanker):
    """GBRank: boosted regression trees on a squared hinge loss of pairs, averaged over the rounds.

    Minimises, one tree at a time, the sum over the pairs of a query with grades l_i > l_j of
    max(margin - (h(x_i) - h(x_j)), 0)^2. Round k looks at the pairs that violate the margin, h(x_i) < h(x_j) + margin.
    Document i of such a pair should have the score h(x_j) + margin, and j the score h(x_i) - margin. A tree is fitted
    to the differences between these scores and the current ones, g_k is h_{k-1} plus the learning rate times the tree,
    and

        h_k = (k h_{k-1} + g_k) / (k + 1).

    Parameters
    ----------
    learning_rate : float
        The factor of the values of a tree, which are then divided by the number of its round plus 1.
    margin : float
        The wanted difference of the scores of two documents of different grades. It is the unit of the scores: it
        multiplies them all and changes no ranking, except beside the trees of an earlier model.
    pair_weighting : "pair" or "query"
        Whether all pairs have equal weight, or all queries that have pairs.

    Attributes
    ----------
    history_ : list of dict
        A row per tree: ``loss`` (summed over the queries, before the tree), ``weight`` (1 / (k + 1)), ``train``,
        ``valid``, and ``kept`` in the row of the model: the best one on validation queries, or else the last. With
        ``polish_rounds`` the rounds of polishing follow, numbered as ``polish``.

    Notes
    -----
    Zheng et al. (2007). Pair sums cost O(n log n) a query, without a list of pairs. Deviations:

    1. g_k continues h_{k-1} by one tree. The paper fits g_k anew, by many trees: a round would cost as many, and one
       tree that starts anew ranks far worse.
    2. The learning rate multiplies the tree, in the paper all of g_k, which shrinks h_{k-1}, too. For 1 it is the same.
    3. Trees are LightGBM's, on binned features and grown by best leaf first.

    Steps shrink as 1 / (k + 1). ``BoostedTrees(objective="squared_hinge")`` has the same loss with equal steps.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> ranker = GBRank(n_estimators=20, num_leaves=4).fit(queries)
    >>> bool(ranker.history_[-1]["loss"] < ranker.history_[0]["loss"])
    True
    """

    is_doc_weighted: ClassVar[bool] = True
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"num_leaves": (5, 10, 31), "learning_rate": (0.3, 1.0)}

    learning_rate: float = 1.0
    margin: float = 1.0
    pair_weighting: str = "pair"

    def _check_own(self, measure: Measure) -> None:
        check_among("pair_weighting", self.pair_weighting, ("pair", "query"))
        margin = check_number("margin", self.margin, least=0.0)
        if not 1.0 / _WIDEST <= margin <= _WIDEST:
            raise InputError(f"margin={margin:g}; expected a number from {1.0 / _WIDEST:g} to {_WIDEST:g}")

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        return AveragedStages(*setting, objective=SquaredHinge(self.pair_weighting, self.margin))
