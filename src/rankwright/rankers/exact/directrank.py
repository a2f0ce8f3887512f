"""DirectRank: the measure itself, maximised one weight at a time by exact line searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.upper_bounds import Basic, UpperBound
from rankwright.optimisers.ascent import (
    AscentStep,
    Climb,
    ClimbRules,
    Perturbation,
    climb_cyclic,
    climb_greedy,
    climb_powell,
    climb_with_perturbations,
)
from rankwright.optimisers.landscape import LandscapePoint
from rankwright.optimisers.line_search import MaximumLikelihoodStep, MidpointStep
from rankwright.optimisers.prior_penalty import PriorPenalty
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.base import FitResult
from rankwright.rankers.exact.restarts import ClimbData, RestartingRanker, climb_from_starts
from rankwright.rankers.input_checks import check_among, check_number, check_strength, check_weights, check_whole
from rankwright.rankers.listwise.regression import fit_regression_weights
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear

_CLIMBS: Mapping[str, Climb] = {"cyclic": climb_cyclic, "greedy": climb_greedy, "powell": climb_powell}
FEW = 50_000  # documents: on fewer, "auto" chooses by likelihood, as the paper does on small data
_PERTURBATION = 0.3
PLACES = 10  # of the label order that count for a measure without a cut-off


@final
@dataclass(kw_only=True, eq=False, repr=False)
class DirectRank(RestartingRanker):
    """DirectRank: a linear scorer that climbs any measure by exact line searches along one weight at a time.

    Along one weight every document's score is a line, and the measure is constant between the jumping points where
    lines that matter cross. All of them are found, and the weight moves to the best interval (section 2.2 of the
    paper); inside it, to the middle or to where the label order is likeliest (section 2.3). The training measure, less
    the penalty if there is one, never decreases, and training ends when no single weight can improve it.

    Parameters
    ----------
    selection : "cyclic", "greedy" or "powell"
        Which weight moves next: each in turn; the one that gains most; or each in turn, and then all along the sum of
        the round's moves.
    interval_point : "auto", "middle" or "likelihood"
        Where in the best interval the weight is set; "auto" is likelihood on up to 50,000 documents and the middle on
        more. With ``alpha`` above 0 it is where the penalty is least.
    n_perturbations : int
        After each climb, how often the weights are perturbed (by 0.3 of their length) and climb again. The result is
        kept if it is better.
    max_iter : int
        The largest number of rounds of a start.
    tol : float
        The smallest gain of the measure for which a weight moves.
    k : int, optional
        Train on the measure of this many first ranks, as the paper does to speed up MAP and ERR.
    alpha : float
        Strength of the penalty: alpha times the L2 (squared) or L1 distance from ``prior`` is subtracted from the
        measure.
    penalty : "l2" or "l1"
        Which distance, in units of the features' standard deviations.
    prior : array of shape (n_features,), optional
        Weights that the penalty is centred on, in the units of the features (of the scaled ones under
        ``scale="query"``); those of ``Regression`` by default. A penalty centred on 0 would only shrink all weights,
        which changes no ranking.
    nonnegative : bool
        Whether weights must not be negative.

    Attributes
    ----------
    history_ : list of dict
        Of the restart that was kept, the start and every accepted step: ``restart``, ``round``, ``feature``,
        ``weight``, ``step``, ``loss`` (1 - the measure that is climbed), ``train``, ``valid``, and ``kept`` in the
        row of the model; of the other restarts the best point and the last.

    Notes
    -----
    Tan et al., *Direct optimization of ranking measures for learning to rank models*. Deviations:

    1. Algorithm 2's test ``p > CurrP`` loses crossings at one point; a crossing is due when the lower line is steeper,
       at max(p, now). Lines start from the ranking at the current weight, to both sides, not from minus infinity.
    2. The best outsider of the first k is looked for only when the k-th document changes, among the documents that can
       still come up; without a cut-off, documents with and without a gain are met pairwise, O(R n log n).
    3. Jumps are summed in fixed point and only those near the best are sorted (``optimisers/line_search.py``).
    4. Of equal grades the likelihood takes every order: the denominator runs over all documents of that grade or lower.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> ranker = DirectRank(measure="map", n_restarts=2, random_state=0).fit(queries)
    >>> abs(max(record["train"] for record in ranker.history_) - ranker.score(queries)) < 1e-12
    True
    """

    selection: str = "cyclic"
    interval_point: str = "auto"
    n_perturbations: int = 0
    max_iter: int = 100
    tol: float = 1e-12
    k: int | None = None
    alpha: float = 0.0
    penalty: str = "l2"
    prior: ArrayLike | None = None
    nonnegative: bool = False

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        check_whole("max_iter", self.max_iter, least=1)
        check_whole("n_perturbations", self.n_perturbations, least=0)
        check_number("tol", self.tol, least=0.0)
        check_strength("alpha", self.alpha)
        if self.k is not None:
            check_whole("k", self.k, least=1)
        check_among("selection", self.selection, tuple(_CLIMBS))
        check_among("interval_point", self.interval_point, ("auto", "middle", "likelihood"))
        check_among("penalty", self.penalty, ("l2", "l1"))
        check_among("nonnegative", self.nonnegative, (True, False))
        self._check_starts()
        if self.prior is not None:
            check_weights("prior", self.prior)
            prior = check_weights("prior", self.prior, train.n_features)
            if self.nonnegative and (prior < 0).any():
                raise InputError("prior has negative weights; nonnegative=True allows none")
        deadline, rng, objective = Deadline(self.max_seconds), make_generator(self.random_state), self._climbed(measure)
        data = ClimbData.of(train, valid, measure, objective, self.scale, backend)
        needs_regression = self.start == "regression" or (self.alpha > 0 and self.prior is None)
        regression = fit_regression_weights(train, backend) if needs_regression else None
        starts = data.draw_starts(regression if self.start == "regression" else None, self.n_restarts, rng)
        likelihood = self.interval_point == "likelihood" or (self.interval_point == "auto" and train.n_docs <= FEW)
        rules = ClimbRules(
            tol=max(self.tol, 1e-12),
            max_rounds=self.max_iter,
            least=0.0 if self.nonnegative else -np.inf,
            choice=MaximumLikelihoodStep(objective.cut_off or PLACES) if likelihood else MidpointStep(),
            penalty=self._prior_penalty(regression, data.unit),
            stop=deadline,
        )
        perturbation = Perturbation(self.n_perturbations, _PERTURBATION, data.unit)

        def climb(start: LandscapePoint, rng: np.random.Generator) -> Iterator[list[AscentStep]]:
            return climb_with_perturbations(data.objective, start, rules, rng, _CLIMBS[self.selection], perturbation)

        kept = climb_from_starts(data, np.maximum(starts, rules.least), rng, climb, rules.objective, deadline)
        left = deadline.explain()
        if any(row["round"] == self.max_iter and "feature" in row for row in kept.steps):
            left = f"stopped at max_iter={self.max_iter} rounds while the measure still gained; raise max_iter"
        return FitResult(Linear(kept.coef), kept.history, left)

    def find_minimised_bound(self, measure: Measure) -> UpperBound:
        """Return the loss itself: the measure is climbed directly."""
        return Basic(self._climbed(measure).for_training())

    def _climbed(self, measure: Measure) -> Measure:
        """Return the measure that is climbed."""
        return measure if self.k is None else measure.truncate(self.k)

    def _prior_penalty(self, regression: Floats | None, unit: Floats) -> PriorPenalty | None:
        """Return the penalty on the distance from the prior, if there is one."""
        if self.alpha == 0:
            return None
        prior = np.asarray(regression if self.prior is None else self.prior, dtype=np.float64)
        return PriorPenalty(self.alpha, 1 if self.penalty == "l1" else 2, prior, unit)

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if self.alpha == 0:
            yield "prior", "alpha=0 takes nothing off for the distance to it"
            yield "penalty", "alpha=0 takes nothing off for any distance"
        else:
            yield "interval_point", "with alpha above 0 it is where the penalty is least"
