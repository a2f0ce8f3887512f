"""BlendingRanker: the base of rankers that are a weighted sum of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.joined_queries import join_queries
from rankwright.data.queries import Queries
from rankwright.data.row_hashes import find_repeated_queries, sort_by_content
from rankwright.measures import Measure
from rankwright.optimisers.blend_weights import (
    WEIGHT_RULES,
    BlendWeights,
    OutOfFoldScores,
    WeightRule,
    find_overall_and_fold_weights,
    fit_equal,
    fit_equal_best,
)
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.blend.blend_problem import BlendProblem, MeanEstimate, describe_members
from rankwright.rankers.common_parameters import IterativeRanker, SeededRanker
from rankwright.runtime.backends import Backend
from rankwright.scorers import Scorer

FIT_SHARE = 0.88  # of the time is for fits; the rest is for weights and the estimate


@dataclass(kw_only=True, eq=False, repr=False)
class BlendingRanker(SeededRanker, IterativeRanker):
    """A ranker whose scorer is a weighted sum of rankers that were cross-fitted: the base of Blend and AutoRanker.

    Parameters
    ----------
    measure : str or Measure
        Measure that the weights maximise, and that chooses the variants of the members.
    random_state : int, Generator or None
        The seed of the partition into folds.
    n_folds : int
        The number of folds of the cross-fitting; fewer if there are fewer queries.

    Attributes
    ----------
    members_ : list of dict
        A row for each member, the highest weight first: its name, ``weight``, and the estimate of its own measure on
        queries that it did not see (``mean``, ``low``, ``high``). A member of weight 0 was dropped.
    estimate_ : MeanEstimate
        An estimate of the blend's measure on new queries, with its 95% interval. Each query is ranked by models and
        weights that were found without it. NaN where no query could be held out: there must be two of them or more
        that have documents of different grades.
    shrinkage_ : float
        The strength of the shrinkage to equal weights that was used; infinite for equal weights, which with
        ``weights="exact"`` are those of the members that are not significantly below the best; 0 for other rules.
    history_ : list of dict
        A row for equal weights of all members, and one for the weights unless these are the same: ``step``,
        ``n_members``, ``train``,
        ``loss`` (1 - ``oof``), ``oof`` (the measure on held-out queries, which chose the weights), and ``valid`` (the
        measure on validation queries, which are trained on, too).
    """

    keeps_last: ClassVar[bool] = True
    pools_valid: ClassVar[bool] = True
    allow_nan: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    takes_distributed: ClassVar[bool] = True

    n_folds: int = 5

    members_: list[dict[str, Any]] = field(init=False)
    shrinkage_: float = field(init=False)
    estimate_: MeanEstimate = field(init=False)

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        yield "callbacks", "a blend has no rounds of its own, and its members train side by side"

    def _check_sets(self, train: Queries, valid: Queries | None) -> None:
        if valid is not None and (train.backend is not None or getattr(valid, "backend", None) is not None):
            raise InputError(
                f"{type(self).__name__} trains on validation queries, too, and features that are on the workers of a "
                "cluster cannot be joined here; leave valid out, or make one data set of both there"
            )
        super()._check_sets(train, valid)

    def _finish(
        self,
        problem: BlendProblem,
        weights: BlendWeights,
        sets: tuple[Queries, Queries | None],
        measure: Measure,
        deadline: Deadline,
    ) -> tuple[Scorer, list[dict[str, Any]]]:
        """Store the weights and the estimate of the blend's measure, and return its scorer and its history.

        After the deadline the history has no row for equal weights, whose models would have to score all documents.
        """
        scores, coef = problem.scores, weights.coef
        members, estimate = describe_members(problem, coef), problem.estimate_values(weights)
        equal = fit_equal(scores)
        steps = {"equal weights": equal} if weights.is_searched and not deadline() else {}
        is_chosen = weights.is_searched or not np.array_equal(coef, equal)
        steps["weights" if is_chosen else "equal weights"] = coef
        history = [self._describe_step(problem, *step, sets, measure) for step in steps.items()]
        history[-1]["kept"] = True
        scorer = problem.merge(coef)
        self.shrinkage_, self.members_ = weights.shrinkage, members
        self.estimate_ = MeanEstimate.of(estimate, scores.weight).cut_to_range(measure)
        return scorer, [{"round": number, **row} for number, row in enumerate(history, 1)]

    def _describe_step(
        self,
        problem: BlendProblem,
        step: str,
        coef: Floats,
        sets: tuple[Queries, Queries | None],
        measure: Measure,
    ) -> dict[str, Any]:
        """Return the row of the history for some weights: the measure on held-out, training and validation queries."""
        (train, valid), scorer = sets, problem.merge(coef)
        row: dict[str, Any] = {"step": step, "n_members": int((coef > 0).sum())}
        row["train"] = measure.for_training().mean(train, train.compute_scores(scorer))
        row["loss"] = 1.0 - row["train"]
        if problem.scores.folds:
            row["oof"] = problem.scores.compute_mean(problem.scores.compute_values(coef))
            row["loss"] = 1.0 - row["oof"]
        return row if valid is None else row | {"valid": measure.mean(valid, valid.compute_scores(scorer))}


def pool_queries(train: Queries, valid: Queries | None, backend: Backend) -> Queries:
    """Return training and validation queries as one data set, in an order that depends on their content only.

    A query that is in both sets counts once: otherwise it could be held out of a fit that has seen it.
    """
    if valid is None:
        return train
    new = np.flatnonzero(~find_repeated_queries(train, valid, backend))
    if not len(new):
        return train
    return sort_by_content(join_queries([train, valid.take(new)]), backend)


def find_weights(scores: OutOfFoldScores, rule: WeightRule, deadline: Deadline) -> BlendWeights:
    """Return the weights by a rule; equal ones of the best members without the time or the queries to choose them.

    The deadline ends searches: the weights are then the best that were found by then.
    """
    is_searched = rule is not WEIGHT_RULES["equal"]
    if is_searched and (len(scores.folds) < 2 or (deadline.remaining() == 0.0 and deadline())):
        return find_overall_and_fold_weights(scores, fit_equal_best, np.inf)
    return rule(replace(scores, stop=deadline))
