"""AdaRank: boosting single features on any measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.measures import Measure, PreparedMeasure, weighted_mean
from rankwright.objectives.upper_bounds import TypeOne, UpperBound
from rankwright.optimisers.rounds import Deadline, RoundRecorder
from rankwright.optimisers.weak.single_features import BestFeature
from rankwright.rankers.base import FitResult
from rankwright.rankers.boosting import BoostingRanker, read_value
from rankwright.rankers.common_parameters import LinearModelRanker
from rankwright.rankers.fit_memory import DataSize
from rankwright.rankers.input_checks import check_among
from rankwright.runtime.backends import Backend, Shards
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling


@final
@dataclass(kw_only=True, eq=False, repr=False)
class AdaRank(BoostingRanker, LinearModelRanker):
    """AdaRank: boosting of single features on the mean of exp(-measure), for any measure from 0 to 1.

    Round t picks the feature h_t with the highest phi(t) = sum_i P_t(i) E(q_i, h_t), gives it the weight
    alpha_t = 1/2 ln((1 + phi) / (1 - phi)), and sets P_{t+1}(i) proportional to exp(-E(q_i, f_t)).

    Parameters
    ----------
    measure : str or Measure
        E: any measure with values from 0 to 1, also a user's own.
    scale : "standard", "query" or None
        Scaling of the features, which decides the effect of alpha_t.
    nonnegative : bool
        Whether weights must not be negative.

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``feature``, ``sign``, ``alpha``, ``phi``, ``loss`` (the mean of exp(-E), Z_t / m), ``train``,
        ``valid``, and of theorem 4 ``delta_min`` and ``log_bound``, the logarithm of its product:
        train >= 1 - exp(log_bound).

    Notes
    -----
    Xu et al., fig. 6. E(q, x_k) of all queries and features is computed once (``single_features.py``), so a round is
    one product, one re-ranking and a new P: O((d + T) m n log n) in all. Deviations:

    1. Choosing the last feature again leaves the ranking and P as they are, so the figure's loop is stuck at once.
       Every feature chosen since the training measure last improved is banned; training stops when all are.
    2. E(q, h_t) of a feature is the mean over the orders of documents it ties (f_t is evaluated pessimistically, as
       everywhere): pessimism about ties that the combination breaks costs 0.03 NDCG@10 on OHSUMED when training on
       MAP, and file order, which is itself a good ranking there, would leak.
    3. Without ``valid`` the round with the best training measure is kept: the rounds after it only show that no feature
       improves it.
    4. A perfect feature (phi = 1) would have infinite weight; it becomes the model.
    5. Query weights w_i enter every P_t as a factor.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> ranker = AdaRank(measure="map").fit(queries)
    >>> abs(max(record["train"] for record in ranker.history_) - ranker.score(queries)) < 1e-12
    True
    """

    n_estimators: int = 500
    nonnegative: bool = True

    has_thresholds: ClassVar[bool] = False
    bytes_per_doc: ClassVar[int] = 100
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"nonnegative": (True, False)}

    def _more_memory(self, size: DataSize) -> float:
        return 3.0 * 8 * size.n_queries * size.n_features * (1 if self.nonnegative else 2)

    def find_minimised_bound(self, measure: Measure) -> UpperBound:
        """Return the exponential type one bound."""
        return TypeOne(measure.for_training(), "exponential")

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        self._check_additive()
        if not measure.is_normalised:
            raise InputError(f"AdaRank needs a measure with values from 0 to 1; {measure} is not one")
        check_among("nonnegative", self.nonnegative, (True, False))
        # its last rounds only show that no feature improves the training measure any more
        recorder = RoundRecorder[None]("best", Deadline(self.max_seconds))
        stages = _AdaRankStages(train, valid, measure, not self.nonnegative, self.scale, backend)
        recorder.make_scorer = lambda: Linear(stages.sum_rounds(recorder.history[: recorder.n_kept]))
        self._boost(stages, stages.restore, train, recorder)
        reason = "no feature that varies has a measure above 0"
        return FitResult(recorder.make_scorer(), recorder.finish(), recorder.deadline.explain(), reason)


_PERFECT = 1.0 - 1e-12


class _ChosenFeature(NamedTuple):
    """The weak ranker of a round: the number of a feature with its sign, and its weighted mean measure phi."""

    candidate: int
    phi: float


class _AdaRankStages:
    """The state of AdaRank between rounds: the summed weights of features, the query weights, and the measures."""

    def __init__(
        self, train: Queries, valid: Queries | None, measure: Measure, signed: bool, scale: str | None, backend: Backend
    ) -> None:
        shards, standard = backend.scatter(train), StandardScaling.fit(train, backend)
        self.backend, self.d, self.factor = backend, train.n_features, standard.factor_for(scale)
        self.weak = BestFeature(measure.for_weak_rankers(), signed).prepare(shards, backend)
        self.ranked: Shards[_RankedShard] = backend.apply(_start_ranking, shards, measure.for_training())
        self.valid = None if valid is None else (valid, measure.prepare(valid))
        self.query_weight, self.weight = train.query_weight, self.weak.make_distribution(train.query_weight)
        self.coef, self.P = np.zeros(self.d), self.weight
        self.E, self.log_bound = np.zeros(len(train)), 0.0  # E(f_0) = 0
        self.varies = np.tile(standard.deviation > 0, 2 if signed else 1)
        self.banned, self.improved, self.perfect = np.zeros_like(self.varies), -np.inf, False

    def restore(self, record: Mapping[str, Any]) -> _ChosenFeature:
        """Return the choice of a round from its row in a history."""
        signs = (1, -1) if len(self.varies) > self.d else (1,)
        sign = read_value(record, "sign", int, min(signs), 1)
        if sign not in signs:
            raise InputError("sign is 0 in a round")
        candidate = read_value(record, "feature", int, 0, self.d - 1) + (self.d if sign < 0 else 0)
        return _ChosenFeature(candidate, read_value(record, "phi", float, 0.0, 1.0))

    def choose(self) -> _ChosenFeature | None:
        """Return the weak ranker h_t with the highest phi(t); None if there is none."""
        allowed = self.varies & ~self.banned
        if self.perfect or not allowed.any():
            return None
        candidate, phi = self.weak.fit(self.P, allowed)
        return _ChosenFeature(candidate, phi) if phi > 0.0 else None

    def add(self, chosen: _ChosenFeature) -> dict[str, Any]:
        """Add alpha_t h_t to the model, rank again and set P_{t+1}; returns the record of the round."""
        candidate, phi = chosen
        feature, sign = candidate % self.d, 1 if candidate < self.d else -1
        self.perfect = phi >= _PERFECT
        alpha = 1.0 if self.perfect else 0.5 * float(np.log((1.0 + phi) / (1.0 - phi)))
        self.coef[feature] += sign * alpha * self.factor[feature]
        values = self.backend.concat(_rank_and_measure, self.ranked, self.coef.copy())
        E = np.nan_to_num(values)  # a skipped query has weight 0
        # theorem 4: delta_i = E(f_t) - E(f_{t-1}) - alpha_t E(h_t)
        delta = E - self.E - alpha * self.weak.values[:, candidate]
        delta_min = float(delta[self.weight > 0].min())
        self.log_bound += -np.inf if self.perfect else 0.5 * float(np.log1p(-(phi**2))) - delta_min
        unnormalised = self.weight * np.exp(-E)
        self.P, self.E = unnormalised / unnormalised.sum(), E
        train = weighted_mean(values, self.query_weight)
        if train > self.improved:
            self.improved, self.banned[:] = train, False
        self.banned[candidate] = True
        record = {
            "feature": feature,
            "sign": sign,
            "alpha": alpha,
            "phi": phi,
            "loss": float(unnormalised.sum()),
            "train": train,
            "delta_min": delta_min,
            "log_bound": self.log_bound,
        }
        if self.valid is not None:
            queries, prepared = self.valid
            found = prepared.values(queries.compute_scores(Linear(self.coef)), self.backend)
            record["valid"] = weighted_mean(found, queries.query_weight)
        return record

    def sum_rounds(self, history: list[dict[str, Any]]) -> Floats:
        """Return the weights after some rounds, summed in their order."""
        coef = np.zeros(self.d)
        for record in history:
            coef[record["feature"]] += record["sign"] * record["alpha"] * self.factor[record["feature"]]
        return coef


class _RankedShard(NamedTuple):
    """A part of the queries with their last ranking, from which the next one is quickly sorted."""

    queries: Queries
    prepared: PreparedMeasure
    order: Ints


def _start_ranking(queries: Queries, measure: Measure) -> _RankedShard:
    """Return a part of the queries with its documents ranked in the order of the rows."""
    return _RankedShard(queries, measure.prepare(queries), np.arange(queries.n_docs))


def _rank_and_measure(shard: _RankedShard, coef: Floats) -> Floats:
    """Rank by these weights, and return the measure of each query, from the same scores as ``predict`` gives.

    ``order`` is sorted in place: whatever order it starts from, the result is the same.
    """
    queries, values = shard.queries, np.empty(len(shard.queries))
    scores = compute_linear_scores(queries.X, coef, 0.0)
    sort_rows(scores, shard.prepared.tie_keys, queries.indptr, 0, len(queries), shard.order)
    shard.prepared.fill_values(scores, shard.order, 0, len(queries), values)
    return values
