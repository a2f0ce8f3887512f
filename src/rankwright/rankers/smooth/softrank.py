"""SoftRank: the expected measure under Gaussian noise of the scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import NDCG, Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.noisy_objectives import SIGMA, NoisyRanks
from rankwright.objectives.pointwise_objectives import Squares
from rankwright.objectives.smooth_objectives import check_sigma
from rankwright.rankers.base import FitResult
from rankwright.rankers.input_checks import check_whole
from rankwright.rankers.listwise.descent_ranker import HIGHEST, DescentRanker, LinearProblem
from rankwright.rankers.networks.epoch_training import Phase
from rankwright.rankers.networks.network_ranker import NetworkRanker
from rankwright.runtime.backends import Backend

_LEAST_SHARE = 0.01  # the share of the measure that its expectation must have, or noise hides the ranking


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SoftRank(DescentRanker, NetworkRanker):
    """SoftRank, linear or a network: maximises the expected measure of rankings by scores with Gaussian noise.

    Minimises, over weights w of the scaled features,

        sum over queries of (1 - E[measure])  +  alpha ||w - w0||^2,

    where a document comes before another with the probability Phi((s_i - s_j) / (sqrt(2) sigma)), and the rank of a
    document is 1 plus the number of those before it, as if they came independently. w0, where it begins, is a ridge
    regression on gains. Not convex.

    Parameters
    ----------
    measure : str or Measure
        Measure whose expectation is maximised, recorded in `history_`. For measures that are no sum of discounted gains
        (AP, ERR, RR, a user's own), the expectation of NDCG with the same cut-off is maximised.
    sigma : float
        The standard deviation of the noise. Scores begin as those of a regression, of about the size of grades.
    k : int or None
        How many ranks count in training, whatever the measure's cut-off, which precision and recall keep in any case;
        None for the measure's own. A document far below the first k ranks has no slope: raise k if lists are long and
        sigma is large.
    alpha : float
        L2 strength of the distance from w0, against the sum over the queries; the useful range is 1e-3 to 1e2.
    hidden : sequence of int or None
        The widths of hidden layers: a network, trained by torch, in place of the linear scorer. A quarter of its epochs
        are a regression on grades, whose weights are the w0 of the others. The model is then the epoch that is best on
        validation queries.

    Attributes
    ----------
    history_ : list of dict
        The steps 1, 2, 4, 8, ... and the last, which is the model: ``loss``, ``objective`` (with the penalty),
        ``train``, ``valid``. A network has a row per epoch with ``sigma``, which is None in the regression.

    Notes
    -----
    Taylor et al. (2008). The gradient is exact and has the cost of the loss, O(n k) for each document with a gain
    (``kernels/objectives/rank_distributions.py``). By L-BFGS from a regression (optimisers/descent.py) in place of
    gradient descent from random weights. A penalty on ||w|| would only act as a larger sigma, since nothing but
    w / sigma matters to the expectation. Where two ranks count the same under LETOR's discount, training takes
    1 / log2(1 + rank), and lists too short for LETOR's cut-off count in training.

    Examples
    --------
    >>> from rankwright import Regression, make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> start = Regression().fit(queries)
    >>> bool(SoftRank(alpha=0.1).fit(queries).score(queries) > start.score(queries))
    True
    """

    sigma: float = SIGMA
    k: int | None = None
    tol: float = 1e-5
    max_iter: int = 200

    continues_path: ClassVar[bool] = False
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "sigma": (0.1, 0.3, 1.0),
        "alpha": (0.1, 1.0, 10.0, 100.0),
    }

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        yield from super()._find_ineffective(measure, valid)
        target = _find_target(measure)
        if self.k is not None and target.with_cut_off(1) == target.with_cut_off(2):
            yield "k", f"{measure} counts the ranks of its own cut-off"

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        found = super()._fit_path(values, train, valid, measure, backend)
        is_counted = _find_target(measure).prepare(train).is_counted
        total = float(train.query_weight[is_counted].sum())
        return [each._replace(unconverged=each.unconverged or self._explain_noise(each, total)) for each in found]

    def _explain_noise(self, result: FitResult, total: float) -> str | None:
        """Return a message if documents hardly ever reach the ranks that count, so that none has a slope."""
        [row] = [row for row in result.history if row.get("kept")]
        expected = 1.0 - row["loss"] / total if total > 0.0 else 0.0
        if row.get("sigma", self.sigma) is None or expected >= _LEAST_SHARE * row["train"]:
            return None
        return (
            f"noise of sigma={self.sigma:g} hides the ranking, so that the expected measure is {expected:.2g}, and the "
            f"measure without noise {row['train']:.2g}; lower sigma, or raise k"
        )

    def _objective(self, measure: Measure) -> Objective:
        k = None if self.k is None else check_whole("k", self.k, least=1)
        target = _find_target(measure)
        return NoisyRanks(target.with_cut_off(k or target.cut_off), check_sigma(self.sigma))

    def _begin(self, problem: LinearProblem, train: Queries, backend: Backend) -> Floats:
        return problem.regression(train, self.scale, backend)

    def _center(self, start: Floats) -> Floats:
        return start

    def _phases(self, n_epochs: int, train: Queries, measure: Measure) -> Sequence[Phase]:
        """Return a regression, from which noisy ranks have slopes, and the expected measure."""
        factor = min(1.0, HIGHEST / max(float(train.y.max()), 1.0))  # sigma means the same on all data
        regression = Phase(Squares(factor), n_epochs // 4, {"sigma": None}, free=True)
        noisy = Phase(self._objective(measure), n_epochs - n_epochs // 4, {"sigma": self.sigma}, centers=True)
        return [regression, noisy] if regression.n_epochs else [noisy]


def _find_target(measure: Measure) -> Measure:
    """Return the measure to train on: this one, or NDCG if it is no sum of discounted gains."""
    target = measure.for_upper_bounds()
    return target if target.family == "additive" else NDCG(target.cut_off, gain=target.gain_kind)
