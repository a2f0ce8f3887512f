"""The objectives as torch losses, for training loops of your own.

Each is a plain ``nn.Module``: scores and labels of shape (lists, length) and a mask in, a number out. Value and
gradient are those of the objective of the same name in ``rankwright.objectives``.

Needs torch: ``pip install 'rankwright[torch]'``.
"""

from dataclasses import fields
from typing import Any

from rankwright import objectives
from rankwright.basics.optional_imports import require
from rankwright.measures import parse_measure

require("torch")

from rankwright.torch.base import Loss  # noqa: E402
from rankwright.torch.expected_losses import ExpectedMeasure  # noqa: E402
from rankwright.torch.lambda_losses import Lambdas  # noqa: E402
from rankwright.torch.listwise_losses import Cosine, Likelihood, TopOne  # noqa: E402
from rankwright.torch.noisy_losses import NoisyRanks  # noqa: E402
from rankwright.torch.pairwise_losses import Exponential, Fidelity, Hinge, Logistic, SquaredHinge  # noqa: E402
from rankwright.torch.pointwise_losses import Squares  # noqa: E402
from rankwright.torch.prepared_labels import PreparedLabels  # noqa: E402
from rankwright.torch.smooth_losses import SigmoidRanks, SoftPositions  # noqa: E402

__all__ = [
    "Cosine",
    "ExpectedMeasure",
    "Exponential",
    "Fidelity",
    "Hinge",
    "Lambdas",
    "Likelihood",
    "Logistic",
    "Loss",
    "NoisyRanks",
    "PreparedLabels",
    "SigmoidRanks",
    "SoftPositions",
    "SquaredHinge",
    "Squares",
    "TopOne",
    "make_loss",
]


def make_loss(objective: Any) -> Loss | None:
    """Return the torch loss of a built-in objective; return None if the objective or its measure is a user's."""
    name, measure = type(objective).__name__, getattr(objective, "measure", None)
    if name not in __all__ or type(objective) is not getattr(objectives, name, None):
        return None
    if measure is not None and parse_measure(measure).family == "custom":
        return None
    loss: Loss = globals()[name](**{field.name: getattr(objective, field.name) for field in fields(objective)})
    return loss
