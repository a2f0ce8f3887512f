"""What optimisers need of a loss of weights.

A loss returns a *state* for some weights: whatever it keeps of its evaluation there, such as scores. Only the loss
reads its states. On a line scores are linear in t, so a line search costs one product with the features in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from rankwright.basics.array_types import Floats


class LossOnLines(Protocol):
    """The interface of a loss that can be evaluated at weights, and anywhere on the line through two states."""

    n_features: int

    def evaluate(self, w: Floats) -> Any:
        """Return the state of these weights."""

    def interpolate(self, state: Any, other: Any, t: float) -> Any:
        """Return the state at a part t of the line from one state to another; t may be beyond 1."""

    def loss(self, state: Any) -> float:
        """Return the loss of a state."""


class DifferentiableLoss(LossOnLines, Protocol):
    """The interface of a differentiable loss of weights, for descent by gradients."""

    def move(self, state: Any, step: Floats) -> Any:
        """Return the state after a step: a change of the weights."""

    def directional_derivative(self, state: Any) -> float:
        """Return the derivative along the step that led to a state, by the part of the step."""

    def gradient(self, state: Any) -> Floats:
        """Return the gradient by the weights."""


class CurvedLoss(DifferentiableLoss, Protocol):
    """The interface of a loss of weights with an approximate Hessian, for preconditioners."""

    def approximate_hessian(self, state: Any) -> Floats:
        """Return an approximate Hessian by the weights, right up to a factor."""

    def hessian_factor(self, state: Any, n: int) -> Floats:
        """Return about n rows V such that V'V approximates the Hessian up to a factor."""


class CuttingPlane(NamedTuple):
    """A linear lower bound ``offset + slope . w`` of a convex loss of weights w, which it touches somewhere."""

    offset: float
    slope: Floats


class ConvexLoss(LossOnLines, Protocol):
    """The interface of a convex loss of weights, for the cutting plane method."""

    def derivative_between(self, state: Any, start: Any, end: Any) -> float:
        """Return the derivative at a state along the line from ``start`` to ``end``, by the part of the line."""

    def linearise(self, state: Any) -> CuttingPlane:
        """Return the plane that touches the loss at a state."""
