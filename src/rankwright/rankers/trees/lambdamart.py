"""LambdaMART: boosted trees along the gradients of LambdaRank, for any measure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure, TableMeasure
from rankwright.objectives import Lambdas
from rankwright.rankers.listwise.descent_ranker import trained_measure
from rankwright.rankers.parameter_checks import check_among
from rankwright.rankers.trees.tree_boosting import GradientStages, NativeStages, TreeStages
from rankwright.rankers.trees.tree_ranker import TreeRanker
from rankwright.runtime.backends import Backend


@final
class LambdaMART(TreeRanker):
    """Boosted trees along LambdaRank's gradients: pairs weigh what their exchange would change the measure.

    A round ranks the training documents by the trees so far. Its tree has in each leaf the step
    -(sum of gradients) / (sum of curvatures), times the learning rate, of

        sum over queries of pairs l_i > l_j of |delta_ij| log(1 + exp(-(s_i - s_j))),

    where delta_ij is the change of the measure if i and j swapped their ranks.

    Parameters
    ----------
    measure : str or Measure
        Any measure, also a user's own: weighs the pairs, reports, and with validation queries chooses how many trees
        are kept.
    lambdas : "exact" or "native"
        The changes of this very measure; or LightGBM's own lambdarank, which has NDCG alone.
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
        By tree: ``loss`` (before the tree; 1 - train for native lambdas), ``train`` (of native lambdas on more than
        100,000 documents for the trees 1, 2, 4, 8, ... and the model's last), ``valid``, and ``kept`` in the row of the
        model: the best one on validation queries, or else the last. With ``polish`` then its rounds, numbered as
        ``polish``.

    Notes
    -----
    Burges (2010). Documents of a query with equal scores and grades share their gradients evenly, so that the order of
    the rows does not matter.

    Native predictions are those of LightGBM with ``lightgbm_params_``, to the last bit, unless trees are polished.
    LightGBM differs from the exact lambdas: it discounts ranks beyond the truncation level as if they counted, breaks
    ties by the order of the rows, divides a change by the distance of the scores and scales the sums of a query to the
    logarithm of their total (``lambdarank_norm``), and looks its sigmoid up in a table. Its truncation level is set to
    the cut-off of the measure plus 3, as its documentation advises, or to the longest list. At given scores, without
    normalisation, without ties and with no list longer than the level and the cut-off, both are the same up to the
    table and single precision. In the first round all scores tie.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> ranker = LambdaMART(measure="err", n_rounds=20, n_leaves=4).fit(queries)
    >>> bool(ranker.history_[-1]["train"] > ranker.history_[0]["train"])
    True
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "ndcg@10",
        lambdas: str = "exact",
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
        self.lambdas = lambdas
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

    @property
    def _native(self) -> bool:
        return self.lambdas == "native"

    def _check_own(self, measure: Measure) -> None:
        check_among("lambdas", self.lambdas, ("exact", "native"))
        if self._native:
            _native_measure(measure)

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        train, _, measure, *_ = setting
        if self._native:
            return NativeStages(*setting, objective=lambdarank(measure, train))
        return GradientStages(*setting, objective=Lambdas(trained_measure(measure)))


_ABOVE = 3  # ranks beyond the cut-off that LightGBM is advised to look at
_MOST_GRADES = 1_000  # a table has an entry for each
_KNOWN_GRADES = 30  # whose gains LightGBM knows


def lambdarank(measure: Measure, queries: Queries) -> dict[str, Any]:
    """LightGBM's objective for a measure: NDCG, with gains that are a table over whole grades."""
    wanted = _native_measure(measure)
    whole = bool((queries.y == np.floor(queries.y)).all()) and float(queries.y.min()) >= 0.0
    if not whole or float(queries.y.max()) > _MOST_GRADES:
        raise InputError(f"lambdas='native' takes whole grades from 0 to {_MOST_GRADES}; lambdas='exact' any grades")
    grades = np.arange(int(queries.y.max()) + 1, dtype=np.float64)
    longest = int(queries.sizes.max())
    level = longest if wanted.cut_off is None else wanted.cut_off + _ABOVE
    told: dict[str, Any] = {"objective": "lambdarank", "lambdarank_truncation_level": level}
    if wanted.gains != "exp" or len(grades) > _KNOWN_GRADES + 1:
        powers = np.exp2(grades) - (1.0 if wanted.gains == "exp" else 0.0)
        told["label_gain"] = (grades if wanted.gains == "linear" else powers).tolist()
    return told


def _native_measure(measure: Measure) -> TableMeasure:
    """Return the measure as LightGBM trains on it; raise InputError if it cannot."""
    wanted = measure.for_bounds()
    if not isinstance(wanted, TableMeasure) or wanted.name != "ndcg":
        raise InputError(f"lambdas='native' with {measure}; LightGBM has NDCG alone, lambdas='exact' any measure")
    return wanted
