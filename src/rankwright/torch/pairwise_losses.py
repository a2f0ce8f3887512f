"""Losses of pairs of documents with different grades, as torch modules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from rankwright import objectives
from rankwright.basics.array_types import Ints
from rankwright.data.queries import Queries
from rankwright.objectives.pairwise_objectives import sort_by_grade
from rankwright.torch.base import Batch, Labels, Loss


def places(rows: Ints, queries: Queries) -> Ints:
    """Rows as places within their query."""
    return rows - np.repeat(queries.indptr[:-1], queries.sizes)


class Pairs(Loss):
    """The sum over pairs l_i > l_j of a function of o = s_i - s_j.

    A table has a row for each document above the lowest grade of its list, and a column for every document.
    """

    objective: Any

    def labels(self, queries: Queries) -> Labels:
        """The documents by descending grade, and where lower grades begin."""
        self.objective.prepare(queries.slice(0, 1))  # which checks the parameters
        rows, graded = sort_by_grade(queries, self.objective.pair_weighting)
        lower = places(graded.lower, queries)
        above = np.add.reduceat(lower < np.repeat(queries.sizes, queries.sizes), queries.indptr[:-1])
        return Labels({"order": places(rows, queries), "lower": lower}, {"weight": graded.weight}, above)

    @abstractmethod
    def pair(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of pairs, and its derivative."""

    def table(self, length: int, batch: Batch) -> int:
        """Above by all."""
        return length * max(batch.width, 1)

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The loss of each list, and its derivatives."""
        order, weight, width = batch.documents["order"], batch.queries["weight"], batch.width
        s = scores.gather(1, order)
        column = torch.arange(s.shape[1], device=s.device)
        missing = ~batch.mask
        none = (column < batch.documents["lower"][:, :width, None]) | missing[:, None, :] | missing[:, :width, None]
        loss, slope = self.pair((s[:, :width, None] - s[:, None, :]).masked_fill_(none, 0.0))
        worth = weight[:, None, None].expand_as(slope).masked_fill(none, 0.0)
        slope = slope * worth
        by_place = -slope.sum(dim=1)
        by_place[:, :width] += slope.sum(dim=2)
        return (loss * worth).sum(dim=(1, 2)), torch.zeros_like(s).scatter(1, order, by_place)


class Hinge(Pairs):
    """The sum over pairs l_i > l_j of max(1 - (s_i - s_j), 0); see ``rankwright.objectives.Hinge``."""

    def __init__(self, pair_weighting: str = "pair", *, reduction: str = "mean") -> None:
        super().__init__(objectives.Hinge(pair_weighting), reduction)

    def pair(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """max(1 - o, 0)."""
        short = 1.0 - o
        return short.clamp(min=0.0), -(short > 0.0).to(o.dtype)


class SquaredHinge(Pairs):
    """The sum over pairs l_i > l_j of max(1 - (s_i - s_j), 0)^2; see ``rankwright.objectives.SquaredHinge``."""

    def __init__(self, pair_weighting: str = "pair", *, reduction: str = "mean") -> None:
        super().__init__(objectives.SquaredHinge(pair_weighting), reduction)

    def pair(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """max(1 - o, 0)^2."""
        short = (1.0 - o).clamp(min=0.0)
        return short * short, -2.0 * short


class Exponential(Pairs):
    """RankBoost's loss: the sum over pairs l_i > l_j of exp(s_j - s_i); see ``rankwright.objectives.Exponential``."""

    def __init__(self, pair_weighting: str = "pair", *, reduction: str = "mean") -> None:
        super().__init__(objectives.Exponential(pair_weighting), reduction)

    def pair(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """exp(-o)."""
        wrong = torch.exp(-o)
        return wrong, -wrong


class Logistic(Pairs):
    """RankNet's loss: the sum over pairs of -P* o + log(1 + exp(o)); see ``rankwright.objectives.Logistic``."""

    def __init__(self, pair_weighting: str = "pair", target: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Logistic(pair_weighting, target), reduction)

    def pair(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """With 1 - P* = r, log(1 + exp(-o)) + r o."""
        rest = 1.0 - self.objective.target
        loss, slope = softplus(-o), -torch.sigmoid(-o)
        return (loss, slope) if rest == 0.0 else (loss + rest * o, slope + rest)


class Fidelity(Pairs):
    """FRank's loss: the sum over pairs of 1 - sqrt(P* P) - sqrt((1 - P*) (1 - P)).

    P = 1 / (1 + exp(-o)). See ``rankwright.objectives.Fidelity``.
    """

    def __init__(self, pair_weighting: str = "query", target: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Fidelity(pair_weighting, target), reduction)

    def pair(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """With its derivative -1/2 sqrt(P* P) (1 - P) + 1/2 sqrt((1 - P*) (1 - P)) P."""
        right, wrong = torch.sigmoid(o), torch.sigmoid(-o)
        wanted = (self.objective.target * right).sqrt()
        loss, slope = 1.0 - wanted, -0.5 * wanted * wrong
        if self.objective.target < 1.0:
            unwanted = ((1.0 - self.objective.target) * wrong).sqrt()
            loss, slope = loss - unwanted, slope + 0.5 * unwanted * right
        return loss, slope
