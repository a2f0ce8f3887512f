"""The objectives as torch losses, for training loops of your own.

Each is a plain ``nn.Module``: scores and labels of shape (lists, length) and a mask in, a number out. Value and
gradient are those of the objective of the same name in ``rankwright.objectives``.

Needs torch: ``pip install 'rankwright[torch]'``.
"""

from dataclasses import fields
from typing import Any

from rankwright import objectives
from rankwright.basics.optional_imports import require
from rankwright.measures import parse

require("torch")

from rankwright.torch.base import Loss, Prepared  # noqa: E402
from rankwright.torch.expected_losses import ExpectedMeasure  # noqa: E402
from rankwright.torch.lambda_losses import Lambdas  # noqa: E402
from rankwright.torch.listwise_losses import Cosine, Likelihood, TopOne  # noqa: E402
from rankwright.torch.pairwise_losses import Exponential, Fidelity, Hinge, Logistic, SquaredHinge  # noqa: E402
from rankwright.torch.pointwise_losses import Squares  # noqa: E402
from rankwright.torch.smooth_losses import SoftPositions, SoftRanks  # noqa: E402

LOSSES: tuple[type[Loss], ...] = (
    Cosine,
    ExpectedMeasure,
    Exponential,
    Fidelity,
    Hinge,
    Lambdas,
    Likelihood,
    Logistic,
    SoftPositions,
    SoftRanks,
    SquaredHinge,
    Squares,
    TopOne,
)

__all__ = [
    "LOSSES",
    "Cosine",
    "ExpectedMeasure",
    "Exponential",
    "Fidelity",
    "Hinge",
    "Lambdas",
    "Likelihood",
    "Logistic",
    "Loss",
    "Prepared",
    "SoftPositions",
    "SoftRanks",
    "SquaredHinge",
    "Squares",
    "TopOne",
    "loss_of",
]


def loss_of(objective: Any) -> Loss | None:
    """The torch loss of an objective; None for a user's own, and for objectives of a user's own measure."""
    measure = getattr(objective, "measure", None)
    if measure is not None and parse(measure).family == "custom":
        return None
    for loss in LOSSES:
        if type(objective) is getattr(objectives, loss.__name__):
            return loss(**{field.name: getattr(objective, field.name) for field in fields(objective)})
    return None
