"""Losses of single documents, as torch modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwright import objectives
from rankwright.data.queries import Queries
from rankwright.torch.base import Batch, Labels, Loss


class Squares(Loss):
    """The mean over a list of (s_i - factor l_i)^2, l the grades; see ``rankwright.objectives.Squares``."""

    def __init__(self, factor: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Squares(factor), reduction)

    def labels(self, queries: Queries) -> Labels:
        """Grades, and what each document counts."""
        bound: Any = self.objective.prepare(queries)
        return Labels({"target": bound.target, "weight": bound.weight}, {})

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The loss of each list, and its derivatives."""
        rest = (scores - batch.documents["target"]).masked_fill_(~batch.mask, 0.0)
        slopes = batch.documents["weight"] * rest
        return (slopes * rest).sum(dim=1), 2.0 * slopes
