"""Steps along gradients without a line search: Adam for sampled losses, an adaptive rate for batch descent.

They work on NumPy arrays and on torch tensors on any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_FASTER, _SLOWER = 1.2, 0.5


class Adam:
    """The step rule Adam: steps along the mean of the gradients, in units of their mean square (Kingma & Ba, 2015).

    Parameters
    ----------
    rate : float
        The learning rate: about how far a weight moves in a step.
    w : vector
        Weights of the same kind and length as those that will be changed.

    Examples
    --------
    >>> import numpy as np
    >>> w = np.ones(2)
    >>> Adam(0.1, w).step(w, np.array([3.0, -0.01]))
    >>> w.round(3).tolist()
    [0.9, 1.1]
    """

    def __init__(self, rate: float, w: Any) -> None:
        self.rate = rate
        # all arrays are changed in place, so that a CUDA graph can hold a step
        self.mean, self.square = 0.0 * w, 0.0 * w
        self.faded = 0.0 * w[:1] + 1.0, 0.0 * w[:1] + 1.0  # the share of the start in both means

    @property
    def state(self) -> tuple[Any, ...]:
        """The arrays that change from step to step."""
        return (self.mean, self.square, *self.faded)

    def step(self, w: Any, gradient: Any) -> None:
        """Change the weights by a step."""
        first, second = self.faded
        first *= _BETA1
        second *= _BETA2
        self.mean *= _BETA1
        self.mean += (1.0 - _BETA1) * gradient
        self.square *= _BETA2
        self.square += (1.0 - _BETA2) * (gradient * gradient)
        root = (self.square / (1.0 - second)) ** 0.5
        w -= (self.rate / (1.0 - first)) * self.mean / (root + _EPSILON)


class LossPoint(NamedTuple):
    """A vector of weights, with the loss there, without and with the penalty, and its gradient."""

    w: Any
    loss: float
    value: float  # with the penalty
    gradient: Any


class AdaptiveRate:
    """A step rule with an adaptive rate: a step that lowers the value makes the next one longer, any other is undone.

    Parameters
    ----------
    rate : float
        The first learning rate.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def step(self, here: LossPoint, evaluate: Callable[[Any], LossPoint]) -> LossPoint:
        """Return the point after a step if it is lower, or else the same point."""
        there = evaluate(here.w - self.rate * here.gradient)
        if there.value <= here.value:
            self.rate *= _FASTER
            return there
        self.rate *= _SLOWER
        return here
