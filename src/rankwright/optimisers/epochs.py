"""Training in epochs: steps of Adam on batches, or batch descent with an adaptive rate; it can resume."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.objectives.base import Objective
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.step_rules import Adam, AdaptiveRate, LossPoint
from rankwright.runtime.backends import Backend, Shards
from rankwright.scorers import Linear, Scorer
from rankwright.scorers.linear import StandardScaling

ADAM, ADAPTIVE = "adam", "adaptive"


class EpochTrainer(Protocol):
    """The interface of a model that is trained in epochs: its weights, loss and gradient, and the scorer it becomes."""

    w: Any  # a vector

    def epoch(self, adam: Adam, seed: tuple[int, ...]) -> float:
        """Take a step on each batch; return the sum of their losses, each before its step."""

    def evaluate(self, w: Any, seed: tuple[int, ...]) -> LossPoint:
        """Set the weights; return loss and gradient over all queries."""

    @property
    def is_sampled(self) -> bool:
        """Whether losses are estimates."""

    def penalty(self) -> float:
        """Return the penalty at the weights."""

    def set_objective(self, objective: Objective) -> None:
        """Set the objective to minimise from now on."""

    def set_center(self, center: Floats | None) -> None:
        """Centre the penalty on these weights; None removes it."""

    def scores(self, queries: Queries) -> Floats:
        """Score documents as given."""

    def scorer(self, standard: StandardScaling) -> Scorer:
        """Build a scorer for raw features."""

    def vector(self, values: Floats) -> Any:
        """Return an array as a vector of the kind of ``w``."""

    def array(self, values: Any) -> Floats:
        """Return a vector as an array."""


class Epoch(NamedTuple):
    """The result of an epoch: its number, and the sum of the losses without and with the penalty."""

    number: int
    loss: float
    objective: float


class EpochLoop:
    """The loop over the epochs of a trainer, from the first epoch or from a saved state.

    Parameters
    ----------
    trainer : EpochTrainer
        The model; its weights are changed.
    method : "adam" or "adaptive"
        The optimiser.
    rate : float
        The learning rate of Adam; the first one of batch descent.
    seed : int
        The seed of batches and samples.
    """

    def __init__(self, trainer: EpochTrainer, method: str, rate: float, seed: int) -> None:
        self.trainer, self.seed, self.number = trainer, seed, 0
        self.adam = Adam(rate, trainer.w) if method == ADAM else None
        self.adaptive = AdaptiveRate(rate)
        self.here: LossPoint | None = None

    def forget(self) -> None:
        """Forget the last evaluation, because the objective changes."""
        self.here = None

    def __next__(self) -> Epoch:
        """Run the next epoch."""
        self.number += 1
        loss, objective = self._adam() if self.adam is not None else self._batch()
        if not math.isfinite(objective):
            raise InputError(
                f"training diverged in epoch {self.number}: the loss is {objective}; try a lower learning_rate"
            )
        return Epoch(self.number, loss, objective)

    def __iter__(self) -> Iterator[Epoch]:
        return self

    def _adam(self) -> tuple[float, float]:
        assert self.adam is not None
        loss = self.trainer.epoch(self.adam, (self.seed, self.number))
        return loss, loss + self.trainer.penalty()

    def _batch(self) -> tuple[float, float]:
        """Take a step of algorithm 1 of Kuo et al. (2009); both ends of a step have the same samples, if any."""
        seed = (self.seed, self.number)
        if self.here is None or self.trainer.is_sampled:
            self.here = self.trainer.evaluate(1.0 * self.trainer.w, seed)
        before = self.here
        self.here = self.adaptive.step(before, lambda w: self.trainer.evaluate(w, seed))
        self.trainer.w[...] = self.here.w
        return self.here.loss, self.here.value

    def state(self) -> dict[str, Floats]:
        """Return all that the next epoch depends on, as arrays."""
        found = {"w": self.trainer.array(self.trainer.w), "number": np.array(self.number)}
        if self.adam is None:
            return found | {"rate": np.array(self.adaptive.rate)}
        return found | {f"adam{i}": self.trainer.array(values) for i, values in enumerate(self.adam.state)}

    def resume(self, state: dict[str, Floats]) -> None:
        """Continue from a saved state."""
        self.trainer.w[...] = self.trainer.vector(state["w"])
        self.number = int(state["number"])
        if self.adam is None:
            self.adaptive.rate = float(state["rate"])
        else:
            for i, values in enumerate(self.adam.state):
                values[...] = self.trainer.vector(state[f"adam{i}"])


class LinearTrainer:
    """A trainer of a linear scorer on scaled features, in which an epoch is one step on all queries.

    Parameters
    ----------
    train : Queries
        Training queries, as given.
    objective : Objective
        The objective: its mean over the queries is minimised, with the penalty.
    alpha : float
        The strength of the penalty alpha |w - center|^2, against the sum over the queries.
    standard : StandardScaling
        The scaling of the features, of which a copy is made, shard by shard.
    backend : Backend
        Where the work runs.
    """

    def __init__(
        self, train: Queries, objective: Objective, alpha: float, standard: StandardScaling, backend: Backend
    ) -> None:
        self.train, self.alpha, self.backend, self.n_queries = train, alpha, backend, len(train)
        self.strength = alpha
        self.standard = standard
        self.scaled = dict[int, tuple[Queries, Shards[Queries]]]()  # documents as given, and the shards of scaled ones
        self.shards = self._scale(train)
        self.objective: Objective | None = None
        self.w: Floats = np.zeros(train.n_features)
        self.center: Floats = np.zeros(train.n_features)
        self.set_objective(objective)

    def set_objective(self, objective: Objective) -> None:
        """Set the objective to minimise from now on."""
        if self.objective is not None and objective == self.objective:
            return
        self.objective = objective
        self.risk = LinearRisk(objective, self.shards, np.ones(self.train.n_features), 1.0, self.backend)
        self.is_sampled = self.risk.is_sampled

    def set_center(self, center: Floats | None) -> None:
        """Centre the penalty on these weights; None removes it."""
        self.alpha = 0.0 if center is None else self.strength
        self.center = np.zeros_like(self.w) if center is None else center.copy()

    def vector(self, values: Floats) -> Floats:
        """Return the array itself."""
        return values

    def array(self, values: Floats) -> Floats:
        """Return a copy of a vector."""
        return values.copy()

    def penalty(self) -> float:
        """Return the penalty at the weights."""
        away = self.w - self.center
        return float(self.alpha * (away @ away))

    def evaluate(self, w: Floats, seed: tuple[int, ...]) -> LossPoint:
        """Set the weights; return loss, penalty and gradient over all queries."""
        self.w[:] = w
        risk = self.risk.with_seed(seed) if self.is_sampled else self.risk
        here = risk.evaluate(w)
        loss, gradient = risk.loss(here), risk.gradient(here) + 2.0 * self.alpha * (w - self.center)
        return LossPoint(w, loss, loss + self.penalty(), gradient / self.n_queries)

    def epoch(self, adam: Adam, seed: tuple[int, ...]) -> float:
        """Take a step on all queries; return the loss before it."""
        here = self.evaluate(self.w, seed)
        adam.step(self.w, here.gradient)
        return here.loss

    def scores(self, queries: Queries) -> Floats:
        """Score documents as given."""
        scores: Floats = self.backend.concat(_score_shard, self._scale(queries), self.w)
        return scores

    def _scale(self, queries: Queries) -> Shards[Queries]:
        """Return the shards of scaled documents, which are kept for the next epoch."""
        if id(queries) not in self.scaled:
            shards = self.backend.apply(_scale_shard, self.backend.scatter(queries), self.standard)
            self.scaled[id(queries)] = queries, shards
        return self.scaled[id(queries)][1]

    def scorer(self, standard: StandardScaling) -> Linear:
        """Build the scorer for raw features."""
        return standard.fold(self.w)


def _scale_shard(queries: Queries, standard: StandardScaling) -> Queries:
    """Return the documents of a shard, scaled."""
    return standard(queries)


def _score_shard(queries: Queries, w: Floats) -> Floats:
    """Return the linear scores of the documents of a shard."""
    return compute_linear_scores(queries.X, w, 0.0)
