"""SmoothRank: a smooth measure, less and less smoothed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.pointwise_objectives import Squares
from rankwright.objectives.smooth_objectives import (
    APPROXIMATIONS,
    SmoothObjective,
    check_sigma,
    default_approximation,
    smooth_measure,
)
from rankwright.optimisers.descent import AnnealingStage, L2Penalty, anneal
from rankwright.optimisers.descent_methods import DESCENT_METHODS
from rankwright.optimisers.rounds import Deadline, Keep, RoundRecorder
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import ConvergentRanker, LinearModelRanker, PathRanker
from rankwright.rankers.fit_memory import DataSize
from rankwright.rankers.input_checks import check_among, check_number, check_strength, check_weights, check_whole
from rankwright.rankers.listwise.descent_ranker import HIGHEST, LinearProblem, explain_end
from rankwright.rankers.listwise.regression import ALPHAS
from rankwright.rankers.networks.epoch_training import Phase
from rankwright.rankers.networks.network_ranker import NetworkDesign, NetworkRanker
from rankwright.rankers.networks.training_options import TrainingOptions, check_hidden
from rankwright.rankers.smooth.feature_spaces import FeatureSpace, make_feature_space
from rankwright.runtime.backends import Backend, map_fits
from rankwright.scorers.linear import scale_weights


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SmoothRank(PathRanker, LinearModelRanker, ConvergentRanker, NetworkRanker):
    """SmoothRank, linear or a network: descends on a smooth version of the measure, with less and less smoothing.

    Minimises, over weights w of the scaled features,

        ``alpha ||w - w0||^2 - sum over queries of A_q(w, sigma)``,

    where A_q is the measure with soft positions (SmoothNDCG) or soft ranks (SmoothAP), and sigma is halved from one
    minimisation to the next, each of which starts from the minimum before. w0, where it all begins, is a ridge
    regression on gains.

    Parameters
    ----------
    measure : str or Measure
        Measure that is made smooth, recorded in `history_`, and used to choose alpha; any but a user's own function.
    k : int or None
        How many positions count in training, whatever the measure's cut-off: more positions carry more information.
        None for the measure's own, which precision and recall keep in any case. Soft ranks have no positions, and count
        the whole list: with a cut-off they would have no slope as long as they are smooth.
    alpha : float
        The paper's lambda: the strength of the penalty on the distance from w0, against the sum over the queries.
        Validation queries choose it, see ``select`` and ``fit_path``; the useful range is 1e-6 to 1e3.
    approximation : "positions", "ranks" or None
        Eq. (7) and (8), or eq. (5) and (9); None for positions, but ranks for average precision, as in the paper.
    start : "regression", or array of shape (n_features,)
        The start w0: a ridge regression, of the strength that is best on validation queries (1 without any), or weights
        in raw units, such as the ``coef_`` of another ranker.
    prior : "start" or "zero"
        The weights that the penalty is centred on: w0, or 0.
    first_sigma, last_sigma : float
        The smoothing at first, and the least. It is in squares of scores (in scores for soft ranks), which with a
        regression are of the size of gains.
    keep : "last" or "best"
        Whether the model is that of the last sigma, or of the one that is best on validation queries.
    optimiser : "cg" or "lbfgs"
        Nonlinear conjugate gradients, or a quasi-Newton method.
    tol : float
        A minimisation ends after a step that lowers the objective by at most this share.
    max_iter : int
        The largest number of steps for each sigma.
    kernel_map : None, "nystroem", "kernel_pca", or scikit-learn's Nystroem or KernelPCA
        Replaces documents by a map of their (scaled) features, in which a linear ranker is a kernel machine. The names
        stand for at most 100 components of the RBF kernel with gamma = 1 / n_features. Kernels rbf, laplacian, poly,
        sigmoid and linear are known. A map is learned from a sample of at most 2,000 documents. A seed that is not
        given is 0. There is no ``coef_`` then, and ``start`` is the regression.
    hidden : sequence of int or None
        The widths of hidden layers: a network, trained by torch, in place of the linear scorer. A quarter of its epochs
        are a regression on grades, the others are divided among the sigmas. ``start``, ``optimiser``, ``tol``,
        ``max_iter`` and ``kernel_map`` are for linear scorers only.
    training : TrainingOptions, mapping or None
        Options of the training of a network; the epochs are those of all sigmas together.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights in raw units; none with a kernel map.
    history_ : list of dict
        A row per sigma: ``sigma``, ``loss`` (1 - A summed over the queries), ``objective`` (with the penalty),
        ``steps``, ``train``, ``valid``. The last is the model.

    Notes
    -----
    Chapelle & Wu (2010), algorithm 1, eq. (13). Along ``fit_path`` each alpha begins, at the first sigma, from the
    minimum of the alpha before. Section 6, the kernel trick: w0, the penalty and the descent are those of the mapped
    features, all scaled by one factor, so that ``|w|`` stays the norm of the kernel and alpha means the same. Features
    are standardised unless ``scale`` says otherwise, so that the penalty is fair to all; grades above 4 are brought
    down in the regression, so that sigma means the same on all data.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = SmoothRank(measure="ndcg@10").fit(make_queries(20, random_state=0))
    >>> [round(row["sigma"], 3) for row in ranker.history_][::6]
    [64.0, 1.0, 0.016]
    """

    k: int | None = 50
    alpha: float = 1.0
    approximation: str | None = None
    start: str | ArrayLike = "regression"
    prior: str = "start"
    first_sigma: float = 64.0
    last_sigma: float = 2.0**-6
    keep: str = "last"
    optimiser: str = "cg"
    tol: float = 1e-5
    max_iter: int = 50
    kernel_map: Any = None

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"alpha": ALPHAS}
    keeps_last: ClassVar[bool] = True
    path_parameter: ClassVar[str] = "alpha"
    bytes_per_doc: ClassVar[int] = 300

    def _more_memory(self, size: DataSize) -> float:
        if self.kernel_map is None:
            return super()._more_memory(size)
        components = 100 if isinstance(self.kernel_map, str) else int(self.kernel_map.n_components or 2_000)
        return 3.0 * 8 * components * size.n_docs

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if self.keep == "best" and valid is None:
            yield "keep", "there are no validation queries; pass valid="
        if (self.approximation or default_approximation(measure)) == "ranks" and self.k is not None:
            yield "k", "soft ranks count the whole list"
        if self.alpha == 0:
            yield "prior", "alpha=0 holds weights to nothing"
        if not check_hidden(self.hidden):
            yield "training", "it is of networks, and there are no hidden layers"
            return
        for name in ("start", "optimiser", "tol", "max_iter"):
            yield name, "a network is trained in epochs, by training"
        yield from TrainingOptions.of(self.training).ineffective(is_network=True)

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        strengths = [check_strength("alpha", value) for value in values]
        check_among("prior", self.prior, ("start", "zero"))
        check_among("keep", self.keep, ("last", "best"))
        check_among("optimiser", self.optimiser, tuple(DESCENT_METHODS))
        if isinstance(self.start, str):
            check_among("start", self.start, ("regression",))
        else:
            check_weights("start", self.start)
        keep: Keep = "valid" if self.keep == "best" else "last"
        hidden, training = check_hidden(self.hidden), TrainingOptions.of(self.training)
        if hidden:
            design = NetworkDesign(hidden, training, self.scale, self.random_state, self.max_seconds)
            phases = self._phases(training.n_epochs, train, measure)
            return design.fit(phases, strengths, train, valid, measure, backend, keep=keep)
        training.for_linear()
        tol, max_iter = check_number("tol", self.tol, least=0.0), check_whole("max_iter", self.max_iter, least=1)
        deadline = Deadline(self.max_seconds)
        sigmas = self._sigmas()
        objective = self._objective(measure, self.first_sigma)
        space = self._space(train, backend)
        train, valid = space(train), None if valid is None else space(valid)
        problem = LinearProblem.of(objective, train, valid, measure, space.scale, backend)
        start = self._start(problem, train, space.scale, backend)
        center = np.zeros(len(start)) if self.prior == "zero" else start
        method = DESCENT_METHODS[self.optimiser]

        def annealed(sigmas: Sequence[float], start: Floats, alpha: float) -> Iterator[AnnealingStage]:
            penalty = L2Penalty(alpha, center)
            return anneal(
                problem.risk.with_sigma, sigmas, start, penalty, method, tol=tol, max_iter=max_iter, stop=deadline
            )

        firsts: dict[int, AnnealingStage] = {}
        for at in sorted(range(len(strengths)), key=lambda at: -strengths[at]):  # a large alpha's is near to the start
            [stage] = annealed(sigmas[:1], start, strengths[at])
            firsts[at], start = stage.without_state(), stage.point.w

        def run(at: int) -> FitResult:
            rest = () if deadline() else annealed(sigmas[1:], firsts[at].point.w, strengths[at])
            stages = progress.track(chain([firsts[at]], rest), "sigmas", len(sigmas))
            return self._record_stages(stages, problem, space, deadline)

        found = map_fits(backend, run, range(len(strengths)), train.n_docs)
        return list(progress.track(found, "values of alpha", len(strengths)) if len(strengths) > 1 else found)

    def _phases(self, n_epochs: int, train: Queries, measure: Measure) -> list[Phase]:
        """Return the phases of section 6: a regression, then the smooth measure with less and less smoothing."""
        if self.kernel_map is not None:
            raise InputError("hidden layers and a kernel map; expected one of the two")
        sigmas = self._sigmas()
        if n_epochs <= len(sigmas):
            raise InputError(f"training.n_epochs={n_epochs}; expected at least {len(sigmas) + 1}, one for each sigma")
        regression = max(1, min(n_epochs // 4, n_epochs - len(sigmas)))
        each = np.diff(np.linspace(regression, n_epochs, len(sigmas) + 1).round().astype(int)).tolist()
        factor = min(1.0, HIGHEST / max(float(train.y.max()), 1.0))  # sigma means the same on all data
        phases = [Phase(Squares(factor), regression, {"sigma": None}, free=True)]
        for sigma, n in zip(sigmas, each, strict=True):
            begins = sigma == sigmas[0] and self.prior == "start"
            phases.append(Phase(self._objective(measure, sigma), n, {"sigma": sigma}, begins))
        return phases

    def _record_stages(
        self, stages: Iterable[AnnealingStage], problem: LinearProblem, space: FeatureSpace, deadline: Deadline
    ) -> FitResult:
        """Return the scorer and the history of an annealing."""
        recorder = RoundRecorder[tuple[Floats, str | None]]("valid" if self.keep == "best" else "last", deadline)
        recorder.make_scorer = lambda: space.scorer(problem.scorer(recorder.model[0]))
        for t, (sigma, point, steps) in enumerate(stages):
            row = {"round": t, "sigma": sigma, "loss": point.loss, "objective": point.value, "steps": steps}
            left = explain_end(point, self.tol, self.max_iter, estimated=self.optimiser != "cg")
            recorder.record((point.w, left), row | problem.evaluate(point.w))
        scorer, history = recorder.make_scorer(), recorder.finish()[: recorder.n_kept]
        return FitResult(scorer, history, deadline.explain() or recorder.model[1])

    def _objective(self, measure: Measure, sigma: float) -> SmoothObjective:
        """Return the smooth measure, with a discount that distinguishes all ranks."""
        if self.approximation is not None:
            check_among("approximation", self.approximation, tuple(APPROXIMATIONS))
        if measure.family == "custom":
            raise InputError(f"{measure} is a function of ranked grades; expected a measure that can be made smooth")
        k = None if self.k is None else check_whole("k", self.k, least=1)
        return smooth_measure(measure, sigma, k, self.approximation)

    def _sigmas(self) -> list[float]:
        """Return the sigmas: from the first, halved as long as they are not below the last."""
        first, last = (check_number(name, getattr(self, name), 0.0) for name in ("first_sigma", "last_sigma"))
        if not 0.0 < last <= first:
            raise InputError(f"sigma from {first:g} to {last:g}; expected it to fall, and to stay above 0")
        for sigma in (first, last):
            check_sigma(sigma)
        return [first * 0.5**i for i in range(int(np.log2(first / last) + 1e-9) + 1)]

    def _space(self, train: Queries, backend: Backend) -> FeatureSpace:
        """Return the space to descend in: the features, or those that the kernel map makes of them."""
        if self.kernel_map is not None and not isinstance(self.start, str):
            raise InputError("start has weights of features, a kernel map has none; expected start='regression'")
        return make_feature_space(self.kernel_map, train, self.scale, backend)

    def _start(self, problem: LinearProblem, train: Queries, scale: str | None, backend: Backend) -> Floats:
        """Return the start w0."""
        if isinstance(self.start, str):
            return problem.regression(train, scale, backend)
        try:
            coef = np.asarray(self.start, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"start={quote(self.start)}; expected 'regression' or weights") from None
        if coef.shape != (train.n_features,):
            raise InputError(f"start has shape {coef.shape}; expected {train.n_features} weights, one per feature")
        if not np.isfinite(coef).all():
            raise InputError(f"start has the weight {coef[np.argmin(np.isfinite(coef))]:g}; expected finite numbers")
        return scale_weights(coef, problem.factor)
