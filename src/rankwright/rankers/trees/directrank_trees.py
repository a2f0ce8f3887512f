"""DirectRank on trees: least squares trees, each with the weight that is best for the measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.measures import Measure
from rankwright.optimisers.line_search import MaximumLikelihoodStep, MidpointStep
from rankwright.rankers.exact.directrank import FEW, PLACES
from rankwright.rankers.input_checks import check_among, check_number
from rankwright.rankers.trees.tree_boosting import SearchedStages, TreeStages
from rankwright.rankers.trees.tree_ranker import LEAVES, TreeRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class DirectRankTrees(TreeRanker):
    """DirectRankTrees: boosted regression trees, each weighted by an exact line search on the measure.

    Round t fits a tree h_t to the residuals of the grades, as MART does, and adds w_t h_t: along w every document's
    score is a line, all jumping points of the measure are found, and w_t is in the best interval between them, but
    clipped.

    Parameters
    ----------
    measure : str or Measure
        Measure that the weights maximise, also a user's own; with validation queries it chooses how many trees are
        kept.
    weight_range : (float, float) or None
        The range that the weight of a tree is clipped to; with None it is not, and the training measure never
        decreases. Unclipped weights may be negative, but for trees that are held monotone.
    interval_point : "auto", "middle" or "likelihood"
        Where in the best interval the weight is set; "auto" is where the label order is likeliest on up to 50,000
        documents and the middle on more.

    Attributes
    ----------
    history_ : list of dict
        A row per tree: ``weight``, ``searched`` (the weight before it was clipped), ``loss`` (1 - the measure before
        the tree), ``train``, ``valid``, and ``kept`` in the row of the model: the best one on validation queries, or
        else the last. With ``polish_rounds`` the rounds of polishing follow, numbered as ``polish``.

    Notes
    -----
    Tan et al., *Direct optimization of ranking measures for learning to rank models*, section 2.4. Deviations:

    1. Trees are LightGBM's, on binned features and grown by best leaf first.
    2. A weight that is worse for the measure than none counts as 0, which is clipped, too. Unclipped, that ends
       training, and so does a weight of next to nothing that gains nothing: the tree would be grown again and again.
    3. The paper clips to (0.1, 0.5), which overfits at once on up to 2,000 queries. (0.03, 0.15) is about the learning
       rate of the other rankers of trees. Large data may need more trees with it.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> history = DirectRankTrees(n_estimators=20, num_leaves=4, weight_range=None).fit(queries).history_
    >>> all(after["train"] >= before["train"] for before, after in zip(history, history[1:]))
    True
    """

    bytes_per_doc: ClassVar[int] = 220
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "num_leaves": LEAVES,
        "weight_range": ((0.01, 0.05), (0.03, 0.15)),  # about the learning rates of other trees
    }

    weight_range: tuple[float, float] | None = (0.03, 0.15)
    interval_point: str = "auto"

    def _check_own(self, measure: Measure) -> None:
        check_among("interval_point", self.interval_point, ("auto", "middle", "likelihood"))
        _check_limits(self.weight_range)

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        train, _, measure, *_ = setting
        likelihood = self.interval_point == "likelihood" or (self.interval_point == "auto" and train.n_docs <= FEW)
        choice = MaximumLikelihoodStep(measure.cut_off or PLACES) if likelihood else MidpointStep()
        return SearchedStages(*setting, choice=choice, limits=_check_limits(self.weight_range))


def _check_limits(weight_range: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest weight of a tree, or None; raise InputError unless 0 < low <= high."""
    if weight_range is None:
        return None
    if np.shape(weight_range) != (2,):
        raise InputError(f"weight_range={weight_range!r}; expected (low, high), or None")
    low, high = (check_number("a limit of weight_range", value, least=-np.inf) for value in weight_range)
    if not 0.0 < low <= high:
        raise InputError(f"weight_range={weight_range!r}; expected 0 < low <= high")
    return low, high
