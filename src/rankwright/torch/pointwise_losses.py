"""Losses of single documents, as torch modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwright import objectives
from rankwright.data.queries import Queries
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels


class Squares(Loss):
    """The mean over a list of (score - factor * grade)^2; see ``rankwright.objectives.Squares``."""

    def __init__(self, factor: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Squares(factor), reduction)

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return the target and the weight of each document."""
        prepared: Any = self.objective.prepare(queries)
        return LossLabels({"target": prepared.target, "weight": prepared.weight}, {})

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives."""
        rest = (scores - batch.documents["target"]).masked_fill_(~batch.mask, 0.0)
        slopes = batch.documents["weight"] * rest
        return (slopes * rest).sum(dim=1), 2.0 * slopes
