"""Members with held-out scores: the problem of weighting them, the estimate of a blend of them, and its scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from rankwright.basics.array_types import Floats
from rankwright.measures import Measure, weighted_mean
from rankwright.optimisers.blend_weights import BlendWeights, OutOfFoldScores
from rankwright.optimisers.reachable_documents import find_reachable_documents
from rankwright.rankers.blend.cross_fitting import FittedMember, HeldOutQueries
from rankwright.runtime.backends import Backend, Serial
from rankwright.scorers import Scorer, merge_scorers


class MeanEstimate(NamedTuple):
    """An estimate of a mean measure over all queries of the same kind, with its 95% confidence interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats, weight: Floats) -> MeanEstimate:
        """Return the weighted mean of values by query, and the interval of Student's t distribution."""
        counted = ~np.isnan(values) & (weight > 0)
        mean = weighted_mean(values, weight)
        if counted.sum() < 2:
            return cls(mean, float("nan"), float("nan"))
        share = weight[counted] / weight[counted].sum()
        n = 1.0 / float((share**2).sum())  # the number of equally weighted queries with the same variance
        variance = float((share * (values[counted] - mean) ** 2).sum()) / max(n - 1.0, 1e-9)
        reach = float(stdtrit(max(n - 1.0, 1.0), 0.975) * np.sqrt(variance))
        return cls(mean, mean - reach, mean + reach)

    def cut_to_range(self, measure: Measure) -> MeanEstimate:
        """Return the estimate without what lies outside the range of the measure, such as NDCG above 1."""
        cut = np.clip(self, 0.0, 1.0 if measure.is_normalised else np.inf)
        return MeanEstimate(*cut.tolist())

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, slots=True, eq=False)
class BlendProblem:
    """The members of a blend with their held-out scores: what weights are found on.

    Parameters
    ----------
    members : sequence of FittedMember
        The members.
    held_out : HeldOutQueries
        The queries whose documents they scored without having seen them.
    scores : OutOfFoldScores
        The mean scores over the partitions.
    """

    members: Sequence[FittedMember]
    held_out: HeldOutQueries
    scores: OutOfFoldScores

    @classmethod
    def of(
        cls, members: Sequence[FittedMember], held_out: HeldOutQueries, backend: Backend, is_cut: bool = True
    ) -> BlendProblem:
        """Put the scores of the members side by side; ``is_cut`` leaves out documents that a cut-off does not see."""
        queries, plan = held_out.queries, held_out.plan
        X = np.column_stack([member.scores.mean(axis=0) for member in members])
        target = np.exp2(np.minimum(queries.y, 30.0)) - 1.0
        weight = np.where(held_out.prepared_measure.is_counted & plan.has_held_out, queries.query_weight, 0.0)
        measure = held_out.prepared_measure
        if is_cut and held_out.cut_off is not None:  # nonnegative weights cannot bring other documents to the top
            kept = find_reachable_documents(X, queries.y, queries.indptr, held_out.cut_off, backend)
            X, target = np.ascontiguousarray(X[kept]), target[kept]
            measure = held_out.prepare_measure(queries.keep_retrieved(kept))
        return cls(members, held_out, OutOfFoldScores(X, target, measure, weight, held_out.groups, backend))

    def take_members(self, members: Sequence[int]) -> BlendProblem:
        """Return the problem of some members only."""
        return BlendProblem([self.members[at] for at in members], self.held_out, self.scores.take_members(members))

    def estimate_values(self, weights: BlendWeights) -> Floats:
        """Return an estimate of the blend's measure on each query, by the weights found without its fold.

        A held-out document is scored by one model of each partition, a new document by the mean of all models. The
        measure that is lost by the variance of n models falls as 1/n, so two partitions show how much the mean of all
        gains. The estimate is too low where models differ much, and with one partition, for which nothing is added.
        """
        n, n_models, scores = self.held_out.n_repeats, len(self.held_out.keys), self.scores
        values, gain = np.full(len(scores.weight), np.nan), np.zeros(len(scores.weight))
        for fold, coef in weights.fold_coefs.items():
            own = scores.fold == fold
            values[own] = scores.compute_values(coef)[own]
            if n > 1:
                alone = np.mean([self._evaluate_repeat(coef, repeat) for repeat in range(n)], axis=0)
                gain[own] = values[own] - alone[own]
        share = 0.0 if n == 1 else (1.0 / n - 1.0 / n_models) / (1.0 - 1.0 / n)
        return values + share * gain

    def _evaluate_repeat(self, coef: Floats, repeat: int) -> Floats:
        """Return the measure of each query by the scores of one partition's models."""
        total = np.zeros(self.held_out.queries.n_docs)
        for weight, member in zip(coef, self.members, strict=True):
            if weight > 0.0:
                total += weight * member.scores[repeat]
        return self.held_out.prepared_measure.values(total, Serial())

    def merge(self, coef: Floats) -> Scorer:
        """Return the blend as one scorer: the weighted mean of all models of all members."""
        scorers, weights = list[Scorer](), list[float]()
        for weight, member in zip(coef.tolist(), self.members, strict=True):
            for scorer, factor in zip(member.scorers, member.factors.tolist(), strict=True):
                if weight * factor > 0.0:
                    scorers.append(scorer)
                    weights.append(weight * factor / len(member.scorers))
        if not scorers:  # no member tells documents apart
            return self.members[0].scorers[0]
        return merge_scorers(scorers, weights, n_features=self.held_out.plan.queries.n_features)


def describe_members(problem: BlendProblem, coef: Floats) -> list[dict[str, Any]]:
    """Return a row for each member: its name, weight, and the estimate of its own measure; highest weight first."""
    weight, measure = problem.scores.weight, problem.held_out.measure
    rows = [
        {
            "member": member.name,
            "weight": float(w),
            **MeanEstimate.of(member.values, weight).cut_to_range(measure)._asdict(),
        }
        for w, member in zip(coef, problem.members, strict=True)
    ]
    return sorted(rows, key=lambda row: (-row["weight"], -row["mean"]))
