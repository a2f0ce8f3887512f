"""Training in epochs: steps of Adam on batches, or batch descent with an adaptive rate; it can resume."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.objectives.base import Objective
from rankwright.optimisers.step_rules import Adam, AdaptiveRate, LossPoint
from rankwright.scorers import Scorer
from rankwright.scorers.scaling import StandardScaling

ADAM, ADAPTIVE = "adam", "adaptive"


class EpochTrainer(Protocol):
    """The interface of a model that is trained in epochs: its weights, loss and gradient, and the scorer it becomes."""

    w: Any  # a vector

    def epoch(self, adam: Adam, seed: tuple[int, ...]) -> float:
        """Take a step on each batch; return the sum of their losses, each before its step."""
        ...

    def evaluate(self, w: Any, seed: tuple[int, ...]) -> LossPoint:
        """Set the weights; return loss and gradient over all queries."""
        ...

    @property
    def is_sampled(self) -> bool:
        """Whether losses are estimates."""
        ...

    def penalty(self) -> float:
        """Return the penalty at the weights."""
        ...

    def set_objective(self, objective: Objective) -> None:
        """Set the objective to minimise from now on."""
        ...

    def set_center(self, center: Floats | None) -> None:
        """Centre the penalty on these weights; None removes it."""
        ...

    def scores(self, X: Floats) -> Floats:
        """Score standardised features."""
        ...

    def scorer(self, standard: StandardScaling) -> Scorer:
        """Build a scorer for raw features."""
        ...

    def vector(self, values: Floats) -> Any:
        """Return an array as a vector of the kind of ``w``."""
        ...

    def array(self, values: Any) -> Floats:
        """Return a vector as an array."""
        ...


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
