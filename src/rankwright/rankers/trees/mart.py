"""MART: boosted regression trees on the grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankwright.rankers.trees.tree_boosting import NativeStages, TreeStages
from rankwright.rankers.trees.tree_ranker import GradientTreeRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class MART(GradientTreeRanker):
    """MART: boosted regression trees, each fitted to the residuals of the grades.

    Minimises, one tree at a time, the sum over documents of (f(x) - grade)^2, which knows nothing of rankings. It is
    LightGBM's regression, with rounds evaluated by a measure.

    Attributes
    ----------
    history_ : list of dict
        A row per tree: ``train`` and ``loss``, 1 - train (on more than 100,000 documents for the trees 1, 2, 4, 8, ...
        and the model's last), ``valid``, and ``kept`` in the row of the model: the best one on validation queries, or
        else the last. With ``polish_rounds`` the rounds of polishing follow, numbered as ``polish``.

    Notes
    -----
    Friedman (2001). Predictions are those of LightGBM with ``lightgbm_params_`` and as many rounds as were kept, to the
    last bit, unless trees are polished.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> ranker = MART(n_estimators=20, num_leaves=4).fit(queries)
    >>> bool((ranker.predict(queries) == ranker.booster_.predict(queries.X)).all())
    True
    """

    grows_native: ClassVar[bool] = True
    is_doc_weighted: ClassVar[bool] = True

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        return NativeStages(*setting, objective={"objective": "regression"})
