"""A linear scorer trained in epochs, for sampled losses, on which line searches are of no use."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.objectives.base import Objective
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.step_rules import Adam, LossPoint
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear
from rankwright.scorers.scaling import StandardScaling


class LinearTrainer:
    """A trainer of a linear scorer on scaled features, in which an epoch is one step on all queries.

    Parameters
    ----------
    train : Queries
        Training queries, scaled.
    objective : Objective
        The objective: its mean over the queries is minimised, with the penalty.
    alpha : float
        The strength of the penalty alpha |w - center|^2, against the sum over the queries.
    backend : Backend
        Where the work runs.
    """

    def __init__(self, train: Queries, objective: Objective, alpha: float, backend: Backend) -> None:
        self.train, self.alpha, self.backend, self.n_queries = train, alpha, backend, len(train)
        self.strength = alpha
        self.shards = backend.scatter(train)
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

    def scores(self, X: Floats) -> Floats:
        """Score documents that are scaled as the training queries are."""
        return compute_linear_scores(X, self.w, 0.0)

    def scorer(self, standard: StandardScaling) -> Linear:
        """Build the scorer for raw features."""
        return standard.fold(self.w)
