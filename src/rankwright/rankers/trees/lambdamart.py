"""LambdaMART: boosted trees along the gradients of LambdaRank, for any measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure, TableMeasure
from rankwright.objectives import Lambdas
from rankwright.rankers.input_checks import check_among
from rankwright.rankers.listwise.descent_ranker import adapt_for_training
from rankwright.rankers.trees.tree_boosting import GradientStages, NativeStages, TreeStages
from rankwright.rankers.trees.tree_ranker import GradientTreeRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaMART(GradientTreeRanker):
    """LambdaMART: boosted regression trees along LambdaRank's gradients, for any measure.

    Each pair is weighted by the change of the measure when its two documents are swapped.
    A round ranks the training documents by the trees so far. Its tree has in each leaf the step
    -(sum of gradients) / (sum of curvatures), times the learning rate, of

        ``sum over queries of pairs l_i > l_j of |delta_ij| log(1 + exp(-(s_i - s_j)))``,

    where delta_ij is the change of the measure if i and j swapped their ranks.

    Parameters
    ----------
    measure : str or Measure
        Any measure, also a user's own: it weights the pairs, is recorded in `history_`, and with validation queries
        chooses how many trees are kept.
    lambdas : "exact" or "lightgbm"
        The changes of this very measure; or LightGBM's own lambdarank, which has NDCG alone.

    Attributes
    ----------
    history_ : list of dict
        A row per tree: ``loss`` (before the tree; 1 - train for LightGBM's lambdas), ``train`` (with LightGBM's lambdas
        on more than 100,000 documents for the trees 1, 2, 4, 8, ... and the model's last), ``valid``, and ``kept`` in
        the row of the model: the best one on validation queries, or else the last. With ``polish_rounds`` the rounds of
        polishing follow, numbered as ``polish``.

    Notes
    -----
    Burges (2010). Documents of a query with equal scores and grades share their gradients evenly, so that the order of
    the rows does not matter.

    With LightGBM's lambdas, rows that have a position (``Queries.position``) are debiased by LightGBM, which learns a
    bias of each position beside the trees (``Dataset(position=)``; ``lambdarank_position_bias_regularization`` in
    ``lightgbm_params``): the grades are then clicks on result lists as they were shown.

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
    >>> ranker = LambdaMART(measure="err", n_estimators=20, num_leaves=4).fit(queries)
    >>> bool(ranker.history_[-1]["train"] > ranker.history_[0]["train"])
    True
    """

    lambdas: str = "exact"

    @property
    def _native(self) -> bool:
        return self.lambdas == "lightgbm"

    def _check_own(self, measure: Measure) -> None:
        check_among("lambdas", self.lambdas, ("exact", "lightgbm"))
        if self._native:
            _require_ndcg(measure)

    def _label(self, queries: Queries, measure: Measure) -> Queries:
        """Return the queries as they are for LightGBM's lambdas: it corrects clicks by ``queries.position`` itself."""
        return queries if self._native else super()._label(queries, measure)

    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        train, _, measure, *_ = setting
        if self._native:
            return NativeStages(*setting, objective=make_lambdarank_options(measure, train))
        return GradientStages(*setting, objective=Lambdas(adapt_for_training(measure)))


_ABOVE = 3  # ranks beyond the cut-off that LightGBM is advised to look at
_MOST_GRADES = 1_000  # a table has an entry for each
_KNOWN_GRADES = 30  # whose gains LightGBM knows


def make_lambdarank_options(measure: Measure, queries: Queries) -> dict[str, Any]:
    """Return LightGBM's parameters for its lambdarank objective, with the gains and cut-off of the measure."""
    wanted = _require_ndcg(measure)
    whole = bool((queries.y == np.floor(queries.y)).all()) and float(queries.y.min()) >= 0.0
    if not whole or float(queries.y.max()) > _MOST_GRADES:
        raise InputError(f"lambdas='lightgbm' takes whole grades from 0 to {_MOST_GRADES}; lambdas='exact' any grades")
    grades = np.arange(int(queries.y.max()) + 1, dtype=np.float64)
    longest = int(queries.sizes.max())
    level = longest if wanted.cut_off is None else wanted.cut_off + _ABOVE
    params: dict[str, Any] = {"objective": "lambdarank", "lambdarank_truncation_level": level}
    if wanted.gain_kind != "exp" or len(grades) > _KNOWN_GRADES + 1:
        powers = np.exp2(grades) - (1.0 if wanted.gain_kind == "exp" else 0.0)
        params["label_gain"] = (grades if wanted.gain_kind == "linear" else powers).tolist()
    return params


def _require_ndcg(measure: Measure) -> TableMeasure:
    """Return the NDCG that LightGBM trains on in place of the measure; raise InputError if it is not NDCG."""
    wanted = measure.for_upper_bounds()
    if not isinstance(wanted, TableMeasure) or wanted.name != "ndcg" or wanted.discount != "log2":
        raise InputError(f"lambdas='lightgbm' with {measure}; LightGBM has NDCG alone, lambdas='exact' any measure")
    return wanted
