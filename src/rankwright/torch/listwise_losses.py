"""Losses of whole lists, as torch modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankwright import objectives
from rankwright.basics.array_types import Ints
from rankwright.data.queries import Queries
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels, find_positions


class TopOne(Loss):
    """The loss of ListNet: the cross entropy of softmax(grades) and softmax(scores) of each list.

    See ``rankwright.objectives.TopOne``.
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(objectives.TopOne(), reduction)

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return the wanted probabilities."""
        prepared: Any = self.objective.prepare(queries)
        return LossLabels({"target": prepared.target}, {"weight": prepared.weight})

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives."""
        target, weight = batch.documents["target"], batch.queries["weight"]
        missing = ~batch.mask
        log_q = scores.masked_fill(missing, -torch.inf).log_softmax(dim=1)
        slopes = weight[:, None] * (log_q.exp() - target)
        return -weight * (target * log_q.masked_fill_(missing, 0.0)).sum(dim=1), slopes


class Likelihood(Loss):
    """The loss of ListMLE: minus the logarithm of the Plackett-Luce probability of the ranking by grade.

    See ``rankwright.objectives.Likelihood``.
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Likelihood(), reduction)

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return the documents by descending grade, and where each grade begins and ends."""
        prepared: Any = self.objective.prepare(queries)
        lower = find_positions(prepared.lower, queries)
        documents = {
            "order": find_positions(prepared.rows, queries),
            "first": _find_grade_starts(prepared.lower, queries),
            "last": lower - 1,
        }
        return LossLabels(documents, {"weight": prepared.weight})

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives; sums of exponentials are kept as logarithms."""
        order, weight = batch.documents["order"], batch.queries["weight"]
        s, missing = scores.gather(1, order), ~batch.mask
        there = s.masked_fill(missing, -torch.inf)
        log_z = there.flip(1).logcumsumexp(dim=1).flip(1).gather(1, batch.documents["first"])
        above = (-log_z).masked_fill_(missing, -torch.inf).logcumsumexp(dim=1).gather(1, batch.documents["last"])
        loss = (log_z - s).masked_fill_(missing, 0.0).sum(dim=1)
        slopes = (s + above).masked_fill_(missing, 0.0).exp_() - 1.0
        return weight * loss, weight[:, None] * torch.zeros_like(s).scatter(1, order, slopes)


def _find_grade_starts(lower: Ints, queries: Queries) -> Ints:
    """Return for each document, by descending grade, the position of the first document with its grade."""
    new = np.ones(len(lower), dtype=bool)
    new[1:] = lower[1:] != lower[:-1]
    new[queries.indptr[:-1]] = True
    return find_positions(np.maximum.accumulate(np.where(new, np.arange(len(lower)), 0)), queries)


class Cosine(Loss):
    """The loss of RankCosine: (1 - c) / 2, where c is the cosine of a list's centred scores and centred gains.

    See ``rankwright.objectives.Cosine``.
    """

    def __init__(self, target: str = "gains", *, reduction: str = "mean") -> None:
        super().__init__(objectives.Cosine(target), reduction)

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return the targets, which sum to 0."""
        prepared: Any = self.objective.prepare(queries)
        return LossLabels({"target": prepared.target}, {"weight": prepared.weight})

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives; where all scores are equal they are 1/2 and 0."""
        target, weight = batch.documents["target"], batch.queries["weight"]
        missing = ~batch.mask
        mean = scores.masked_fill(missing, 0.0).sum(dim=1) / batch.mask.sum(dim=1)
        s = (scores - mean[:, None]).masked_fill_(missing, 0.0)
        dot, size = (target * s).sum(dim=1), (s * s).sum(dim=1).sqrt()
        flat = size <= 10.0 * torch.finfo(s.dtype).eps * mean.abs()
        size = torch.where(flat, torch.ones_like(size), size)
        counts = weight * (target != 0.0).any(dim=1)
        slopes = -0.5 / size[:, None] * (target - (dot / size**2)[:, None] * s)
        alive = counts.masked_fill(flat, 0.0)
        return 0.5 * counts - 0.5 * alive * dot / size, alive[:, None] * slopes
