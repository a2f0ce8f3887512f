"""DORM: direct optimisation of ranking measures, a structured SVM whose worst ranking is a linear assignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import NDCG, Measure
from rankwright.objectives.position_bound import PositionBound
from rankwright.optimisers.convex_stages import minimise_in_stages
from rankwright.optimisers.cutting_plane import CuttingPlaneModel, CuttingPlaneRound
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.rounds import Stop
from rankwright.rankers.bounds.structured_svm import StructuredSVM
from rankwright.rankers.input_checks import check_number, check_whole
from rankwright.rankers.listwise.regression import fit_regression_weights
from rankwright.runtime.backends import Backend
from rankwright.scorers.linear import scale_weights


@final
@dataclass(kw_only=True, eq=False, repr=False)
class DORM(StructuredSVM):
    """DORM: a linear structured SVM for any measure that is a sum over ranks, with documents weighted by position.

    Minimises, over weights w of the scaled features,

        1/2 ||w||^2 + C mean over queries of max over rankings r of (1 - E(r)) + F(r) - F(b)

    where F(r) is the sum over documents x of c_p w . x, p the position of x in r and c_p = (p + 1)^-decay, b is a
    ranking by descending grade, and E is the measure divided by its highest value. The worst ranking r is a linear
    assignment of documents to positions, found exactly.

    Parameters
    ----------
    measure : str or Measure
        Measure to train on, if it is a sum over ranks (NDCG, DCG, precision, recall, RBP), of the whole list unless
        ``k`` says otherwise; for other measures NDCG is trained on. `history_` records this measure either way.
    start : "regression" or "adarank"
        The weights that the search begins with: those of ``Regression`` or of ``AdaRank``.
    k : int, optional
        The cut-off of the measure that is trained on, below which positions have no weight either. By default the whole
        list counts, whatever the measure's cut-off. Precision and recall keep their own.
    decay : float
        How fast the weights of the positions fall.

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``loss`` (the mean bound), ``objective``, ``gap`` (no weights have an objective lower by more
        than this in this stage), ``planes`` (that the model rests on), ``stage`` (how often b was chosen), ``train``,
        ``valid``. The last is the model.

    Notes
    -----
    Le and Smola (2007), which Tan et al. call SmoothGrad. Their b is one fixed ranking by grade. Where grades tie, it
    punishes every difference of scores of equal grades, and the least loss is often at w = 0. So b is the ranking by
    grade with the highest F: it is chosen at the weights so far, the convex problem is solved to a certified precision,
    and b is chosen anew until that gains less than ``tol`` (``optimisers/convex_stages.py``). The end depends on the
    start.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = DORM(measure="p@5", C=1.0).fit(make_queries(20, n_docs=15, random_state=0))
    >>> last = ranker.history_[-1]
    >>> bool(last["gap"] <= 1e-4 * last["objective"])
    True
    """

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"C": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)}
    starts: ClassVar[tuple[str, ...]] = ("regression", "adarank")
    is_convex: ClassVar[bool] = False

    start: str = "regression"
    k: int | None = None
    decay: float = 0.25

    def _margin_bound(self, measure: Measure) -> PositionBound:
        k = None if self.k is None else check_whole("k", self.k, least=1)
        decay = check_number("decay", self.decay, least=0.0)
        if decay == 0.0:
            raise InputError("decay=0; expected a number above 0, or else all rankings had the same score")
        wanted = measure.for_upper_bounds()
        trained = wanted.with_cut_off(k) if wanted.family == "additive" else NDCG(k, gain=measure.gain_kind)
        return PositionBound(trained, decay, k)

    def _find_start(self, measure: Measure, train: Queries, factor: Floats, backend: Backend) -> Floats | None:
        if self.start == "regression":
            return scale_weights(fit_regression_weights(train, backend), factor)
        return super()._find_start(measure, train, factor, backend)

    def _why_zero(self, C: float) -> str:
        return super()._why_zero(C) + ("" if self.k is None else f", leave k={self.k} out, or raise it")

    def _minimise(
        self, risk: LinearRisk, C: float, start: Floats | None, planes: CuttingPlaneModel, stop: Stop
    ) -> Iterator[CuttingPlaneRound]:
        assert start is not None
        return minimise_in_stages(risk, C, start, tol=self.tol, max_iter=self.max_iter, stop=stop)
