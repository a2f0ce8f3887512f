"""Steps along gradients, with no line search: Adam for estimates, an adaptive rate for batch descent.

They work on arrays of any kind that has arithmetic: NumPy's, and torch's on any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_FASTER, _SLOWER = 1.2, 0.5


class Adam:
    """Kingma & Ba (2015): steps along the mean of the gradients, in units of their mean square.

    Parameters
    ----------
    rate : float
        About how far a weight goes in a step.
    w : vector
        Weights, of whose kind and length those are that it will change.

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
        # all in arrays that are changed in place, so that a graph of a GPU's work can hold a step
        self.mean, self.square = 0.0 * w, 0.0 * w
        self.faded = 0.0 * w[:1] + 1.0, 0.0 * w[:1] + 1.0  # what is left of the beginning in both

    @property
    def state(self) -> tuple[Any, ...]:
        """The arrays that change from step to step."""
        return (self.mean, self.square, *self.faded)

    def step(self, w: Any, gradient: Any) -> None:
        """Change the weights."""
        first, second = self.faded
        first *= _BETA1
        second *= _BETA2
        self.mean *= _BETA1
        self.mean += (1.0 - _BETA1) * gradient
        self.square *= _BETA2
        self.square += (1.0 - _BETA2) * (gradient * gradient)
        root = (self.square / (1.0 - second)) ** 0.5
        w -= (self.rate / (1.0 - first)) * self.mean / (root + _EPSILON)


class Place(NamedTuple):
    """Some weights, with what is minimised there."""

    w: Any
    loss: float
    value: float  # with the penalty
    gradient: Any


class AdaptiveRate:
    """Batch descent: a step that lowers the value makes the next one longer, any other is taken back and shortened.

    Parameters
    ----------
    rate : float
        The first step is this times the gradient.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def step(self, here: Place, look: Callable[[Any], Place]) -> Place:
        """The place after a step: where it is lower, or the same."""
        there = look(here.w - self.rate * here.gradient)
        if there.value <= here.value:
            self.rate *= _FASTER
            return there
        self.rate *= _SLOWER
        return here
