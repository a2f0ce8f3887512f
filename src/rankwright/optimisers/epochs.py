"""Training in epochs: Adam's steps on batches, or batch descent with an adaptive rate; interrupted, it goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.objectives.base import Objective
from rankwright.optimisers.step_rules import Adam, AdaptiveRate, Place
from rankwright.scorers import Scorer
from rankwright.scorers.scaling import StandardScaling

ADAM, ADAPTIVE = "adam", "adaptive"


class EpochTrainer(Protocol):
    """What is trained: weights, what it minimises at them, and what it becomes."""

    w: Any  # a vector

    def epoch(self, adam: Adam, seed: tuple[int, ...]) -> float:
        """Steps on all batches; the sum of the losses as they were met."""
        ...

    def place(self, w: Any, seed: tuple[int, ...]) -> Place:
        """Loss and gradient of all queries at some weights, which become its own."""
        ...

    @property
    def is_sampled(self) -> bool:
        """Whether losses are estimates."""
        ...

    def penalty(self) -> float:
        """What is added to the loss at its weights."""
        ...

    def aim(self, objective: Objective) -> None:
        """Minimise this from now on."""
        ...

    def hold(self, center: Floats | None) -> None:
        """Hold weights to these; to nothing for None."""
        ...

    def scores(self, X: Floats) -> Floats:
        """Of scaled documents."""
        ...

    def scorer(self, standard: StandardScaling) -> Scorer:
        """Of raw ones."""
        ...

    def vector(self, values: Floats) -> Any:
        """An array as a vector of the kind of ``w``."""
        ...

    def array(self, values: Any) -> Floats:
        """A vector as an array."""
        ...


class Epoch(NamedTuple):
    """One epoch: the sum of the losses, and with the penalty."""

    number: int
    loss: float
    objective: float


class EpochLoop:
    """The epochs of a trainer, from 0 or from where a state says.

    Parameters
    ----------
    trainer : EpochTrainer
        Its weights are changed.
    method : "adam" or "adaptive"
        How.
    rate : float
        The rate of Adam; the first one of batch descent.
    seed : int
        Of batches and samples.
    """

    def __init__(self, trainer: EpochTrainer, method: str, rate: float, seed: int) -> None:
        self.trainer, self.seed, self.number = trainer, seed, 0
        self.adam = Adam(rate, trainer.w) if method == ADAM else None
        self.adaptive = AdaptiveRate(rate)
        self.here: Place | None = None

    def forget(self) -> None:
        """What is minimised is another from now on."""
        self.here = None

    def __next__(self) -> Epoch:
        """EpochLoop on."""
        self.number += 1
        loss, objective = self._adam() if self.adam is not None else self._batch()
        if not math.isfinite(objective):
            raise InputError(f"training diverged in epoch {self.number}: the loss is {objective}; try a lower rate")
        return Epoch(self.number, loss, objective)

    def __iter__(self) -> Iterator[Epoch]:
        return self

    def _adam(self) -> tuple[float, float]:
        assert self.adam is not None
        loss = self.trainer.epoch(self.adam, (self.seed, self.number))
        return loss, loss + self.trainer.penalty()

    def _batch(self) -> tuple[float, float]:
        """One step of algorithm 1 of Kuo et al. (2009); where losses are sampled, both ends have the same samples."""
        seed = (self.seed, self.number)
        if self.here is None or self.trainer.is_sampled:
            self.here = self.trainer.place(1.0 * self.trainer.w, seed)
        before = self.here
        self.here = self.adaptive.step(before, lambda w: self.trainer.place(w, seed))
        self.trainer.w[...] = self.here.w
        return self.here.loss, self.here.value

    def state(self) -> dict[str, Floats]:
        """All that the next epoch depends on, as arrays."""
        found = {"w": self.trainer.array(self.trainer.w), "number": np.array(self.number)}
        if self.adam is None:
            return found | {"rate": np.array(self.adaptive.rate)}
        return found | {f"adam{i}": self.trainer.array(values) for i, values in enumerate(self.adam.state)}

    def resume(self, state: dict[str, Floats]) -> None:
        """Go on from there."""
        self.trainer.w[...] = self.trainer.vector(state["w"])
        self.number = int(state["number"])
        if self.adam is None:
            self.adaptive.rate = float(state["rate"])
        else:
            for i, values in enumerate(self.adam.state):
                values[...] = self.trainer.vector(state[f"adam{i}"])
