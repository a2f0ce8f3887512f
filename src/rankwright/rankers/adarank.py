"""AdaRank: boosting single features on any measure."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from rankwright import progress
from rankwright.backends import Backend, Shards
from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.kernels.linear import linear_scores
from rankwright.kernels.order import sort_rows
from rankwright.measures import BoundMeasure, Measure, weighted_mean
from rankwright.objectives.bounds import Bound, TypeOne
from rankwright.rankers.base import LinearScoring, Outcome
from rankwright.rankers.parameters import check_whole
from rankwright.scaling import Standard
from rankwright.scorers import Linear
from rankwright.weak import BestFeature


@final
class AdaRank(LinearScoring):
    """Boosting on the exponential type one bound of any measure E in [0, 1], with features as weak rankers.

    Round t picks the feature h_t with the highest phi(t) = sum_i P_t(i) E(q_i, h_t), gives it the weight
    alpha_t = 1/2 ln((1 + phi) / (1 - phi)), and sets P_{t+1}(i) proportional to exp(-E(q_i, f_t)).

    Parameters
    ----------
    measure : str or Measure
        E: any measure with values from 0 to 1, also a user's own.
    n_rounds : int
        The most rounds.
    signed : bool
        Whether features may also count negatively.
    scale : "standard", "query" or None
        Scaling of the features, which decides what alpha_t is worth.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights in raw units.
    history_ : list of dict
        By round: ``feature``, ``sign``, ``alpha``, ``phi``, ``loss`` (the mean of exp(-E), Z_t / m), ``train``,
        ``valid``, and of theorem 4 ``delta_min`` and ``log_bound``, the logarithm of its product:
        train >= 1 - exp(log_bound).

    Notes
    -----
    Xu et al., fig. 6. E(q, x_k) of all queries and features is computed once (weak.py), so that a round is one
    product, one re-ranking and a new P: O((d + T) m n log n) in all. Deviations:

    1. Choosing the last feature again leaves the ranking and P as they are, so the figure's loop is stuck at once.
       Every feature chosen since the training measure last improved is banned; training stops when all are.
    2. E(q, h_t) of a feature is the mean over the orders of documents it ties (f_t is judged pessimistically, as
       everywhere): pessimism about ties that the combination breaks costs 0.03 NDCG@10 on OHSUMED when training on
       MAP, and file order, which is itself a good ranking there, would leak.
    3. Without ``valid`` the round with the best training measure is kept, not the last.
    4. A perfect feature (phi = 1) would have infinite weight; it becomes the model.
    5. Query weights w_i enter every P_t as a factor.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> ranker = AdaRank(measure="map").fit(queries)
    >>> max(record["train"] for record in ranker.history_) == ranker.score(queries)
    True
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "ndcg@10",
        n_rounds: int = 500,
        signed: bool = False,
        scale: str | None = "standard",
        backend: Backend | None = None,
    ) -> None:
        self.measure = measure
        self.n_rounds = n_rounds
        self.signed = signed
        self.scale = scale
        self.backend = backend

    def minimises(self, measure: Measure) -> Bound:
        """The exponential type one bound."""
        return TypeOne(measure.for_training(), "exponential")

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> Outcome:
        n_rounds = check_whole("n_rounds", self.n_rounds, least=1)
        if type(self.signed) is not bool:
            raise InputError(f"signed={self.signed!r}; expected True or False")
        if not measure.bounded:
            raise InputError(f"AdaRank needs a measure with values from 0 to 1; {measure} is not one")
        standard = Standard.of(train, backend)
        factor = standard.factor if self.scale == "standard" else np.ones(train.n_features)
        varies = np.tile(standard.deviation > 0, 2 if self.signed else 1)
        model = _Boosting(train, measure, self.signed, factor, backend)
        bound_valid = None if valid is None else measure.bind(valid)

        best_coef, best, improved = model.coef.copy(), -np.inf, -np.inf
        banned = np.zeros_like(varies)
        history: list[dict[str, Any]] = []
        for t in progress.track(range(n_rounds), "rounds", n_rounds):
            chosen, phi = model.choose(varies & ~banned)
            if phi <= 0.0:  # every feature is banned, or none finds anything
                break
            record = {"round": t + 1, **model.add(chosen, phi)}
            if valid is not None and bound_valid is not None:
                found = bound_valid.values(linear_scores(valid.X, model.coef, 0.0), backend)
                record["valid"] = weighted_mean(found, valid.query_weight)
            history.append(record)
            value = record.get("valid", record["train"])
            if value > best:
                best, best_coef = value, model.coef.copy()
            if record["train"] > improved:
                improved, banned[:] = record["train"], False
            banned[chosen] = True
            if phi >= _PERFECT:
                break
        return Outcome(Linear(best_coef), history)


_PERFECT = 1.0 - 1e-12


class _Boosting:
    """The state of figure 6: the model f_t as weights of raw features, the distribution P_{t+1}, and E(q_i, f_t)."""

    def __init__(self, train: Queries, measure: Measure, signed: bool, factor: Floats, backend: Backend) -> None:
        shards = backend.scatter(train)
        self.backend = backend
        self.weak = BestFeature(measure.for_weak(), signed).bind(shards, backend)
        self.ranked: Shards[_Ranked] = backend.apply(_start, shards, measure.for_training())
        self.query_weight, self.factor = train.query_weight, factor
        self.weight = self.weak.distribution(train.query_weight)
        self.coef, self.P = np.zeros(train.n_features), self.weight
        self.E, self.log_bound = np.zeros(len(train)), 0.0  # E(f_0) = 0

    def choose(self, allowed: NDArray[np.bool_]) -> tuple[int, float]:
        """The weak ranker h_t with the highest phi(t), and phi(t); 0 if none is allowed."""
        return self.weak.fit(self.P, allowed) if allowed.any() else (0, 0.0)

    def add(self, chosen: int, phi: float) -> dict[str, Any]:
        """Add alpha_t h_t to the model, rank again and set P_{t+1}; returns the record of the round."""
        d = len(self.coef)
        feature, sign = chosen % d, 1 if chosen < d else -1
        alpha = 1.0 if phi >= _PERFECT else 0.5 * float(np.log((1.0 + phi) / (1.0 - phi)))
        self.coef[feature] += sign * alpha * self.factor[feature]
        values = self.backend.concat(_ranked_values, self.ranked, self.coef.copy())
        E = np.nan_to_num(values)  # a skipped query has weight 0
        # theorem 4: delta_i = E(f_t) - E(f_{t-1}) - alpha_t E(h_t)
        delta = E - self.E - alpha * self.weak.values[:, chosen]
        delta_min = float(delta[self.weight > 0].min())
        self.log_bound += -np.inf if phi >= _PERFECT else 0.5 * float(np.log1p(-(phi**2))) - delta_min
        unnormalised = self.weight * np.exp(-E)
        self.P, self.E = unnormalised / unnormalised.sum(), E
        return {
            "feature": feature,
            "sign": sign,
            "alpha": alpha,
            "phi": phi,
            "loss": float(unnormalised.sum()),
            "train": weighted_mean(values, self.query_weight),
            "delta_min": delta_min,
            "log_bound": self.log_bound,
        }


class _Ranked(NamedTuple):
    """A shard with its last ranking, from which the next is quickly found."""

    queries: Queries
    bound: BoundMeasure
    order: Ints


def _start(queries: Queries, measure: Measure) -> _Ranked:
    return _Ranked(queries, measure.bind(queries), np.arange(queries.n_docs))


def _ranked_values(shard: _Ranked, coef: Floats) -> Floats:
    """The measure of each query ranked by these weights, with predict's own kernel.

    ``order`` is sorted in place: whatever order it starts from, the result is the same.
    """
    queries, values = shard.queries, np.empty(len(shard.queries))
    scores = linear_scores(queries.X, coef, 0.0)
    sort_rows(scores, shard.bound.tie_keys, queries.indptr, 0, len(queries), shard.order)
    shard.bound.fill(scores, shard.order, 0, len(queries), values)
    return values
