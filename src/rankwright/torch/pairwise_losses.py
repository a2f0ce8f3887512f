"""Losses of pairs of documents with different grades, as torch modules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from rankwright import objectives
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.objectives.pairwise_objectives import sort_by_grade
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels, find_positions


class PairwiseLoss(Loss):
    """A sum over pairs of documents with different grades of a function of the difference of their scores.

    A table has a row for each document above the lowest grade of its list, and a column for every document.
    """

    objective: Any

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return the documents by descending grade, and where lower grades begin."""
        self.objective.prepare(queries.slice(0, 1))  # checks the parameters
        if self.objective.pair_weighting == "relevance":
            raise InputError("pair_weighting='relevance' has no torch form; train on the CPU, or take rt.Lambdas")
        rows, graded = sort_by_grade(queries, self.objective.pair_weighting)
        lower = find_positions(graded.lower, queries)
        above = np.add.reduceat(lower < np.repeat(queries.sizes, queries.sizes), queries.indptr[:-1])
        documents: dict[str, Any] = {"order": find_positions(rows, queries), "lower": lower}
        if graded.doc_weight is not None:
            documents["doc_weight"] = graded.doc_weight
        return LossLabels(documents, {"weight": graded.weight}, above)

    @abstractmethod
    def evaluate_pairs(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of pairs with its derivative."""

    def table_size(self, length: int, batch: Batch) -> int:
        """Return the size of a table of the documents above the lowest grade by all documents."""
        return length * max(batch.width, 1)

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives."""
        order, weight, width = batch.documents["order"], batch.queries["weight"], batch.width
        s = scores.gather(1, order)
        column = torch.arange(s.shape[1], device=s.device)
        missing = ~batch.mask
        none = (column < batch.documents["lower"][:, :width, None]) | missing[:, None, :] | missing[:, :width, None]
        loss, slope = self.evaluate_pairs((s[:, :width, None] - s[:, None, :]).masked_fill_(none, 0.0))
        worth = weight[:, None, None].expand_as(slope).masked_fill(none, 0.0)
        if "doc_weight" in batch.documents:
            own = batch.documents["doc_weight"]
            worth = worth * own[:, :width, None] * own[:, None, :]
        slope = slope * worth
        by_place = -slope.sum(dim=1)
        by_place[:, :width] += slope.sum(dim=2)
        return (loss * worth).sum(dim=(1, 2)), torch.zeros_like(s).scatter(1, order, by_place)


class Hinge(PairwiseLoss):
    """The hinge loss of pairs of documents with different grades; see ``rankwright.objectives.Hinge``."""

    def __init__(self, pair_weighting: str = "pair", *, reduction: str = "mean") -> None:
        super().__init__(objectives.Hinge(pair_weighting), reduction)

    def evaluate_pairs(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Return max(1 - o, 0) with its derivative."""
        short = 1.0 - o
        return short.clamp(min=0.0), -(short > 0.0).to(o.dtype)


class SquaredHinge(PairwiseLoss):
    """The squared hinge loss of pairs of different grades; see ``rankwright.objectives.SquaredHinge``."""

    def __init__(self, pair_weighting: str = "pair", margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.SquaredHinge(pair_weighting, margin), reduction)

    def evaluate_pairs(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Return max(margin - o, 0)^2 with its derivative."""
        short = (self.objective.margin - o).clamp(min=0.0)
        return short * short, -2.0 * short


class Exponential(PairwiseLoss):
    """The loss of RankBoost, an exponential loss of pairs; see ``rankwright.objectives.Exponential``."""

    def __init__(self, pair_weighting: str = "pair", *, reduction: str = "mean") -> None:
        super().__init__(objectives.Exponential(pair_weighting), reduction)

    def evaluate_pairs(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Return exp(-o) with its derivative."""
        wrong = torch.exp(-o)
        return wrong, -wrong


class Logistic(PairwiseLoss):
    """The loss of RankNet, a cross entropy of pairs; see ``rankwright.objectives.Logistic``."""

    def __init__(self, pair_weighting: str = "pair", target: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Logistic(pair_weighting, target), reduction)

    def evaluate_pairs(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Return log(1 + exp(-o)) + r o, r = 1 - P*, with its derivative."""
        rest = 1.0 - self.objective.target
        loss, slope = softplus(-o), -torch.sigmoid(-o)
        return (loss, slope) if rest == 0.0 else (loss + rest * o, slope + rest)


class Fidelity(PairwiseLoss):
    """The loss of FRank, called fidelity: how far the modelled probability of each pair's order is from the wanted one.

    It is the sum over pairs of 1 - sqrt(P* P) - sqrt((1 - P*) (1 - P)), where P = 1 / (1 + exp(-o)).
    See ``rankwright.objectives.Fidelity``.
    """

    def __init__(self, pair_weighting: str = "query", target: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Fidelity(pair_weighting, target), reduction)

    def evaluate_pairs(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss with its derivative -1/2 sqrt(P* P) (1 - P) + 1/2 sqrt((1 - P*) (1 - P)) P."""
        right, wrong = torch.sigmoid(o), torch.sigmoid(-o)
        wanted = (self.objective.target * right).sqrt()
        loss, slope = 1.0 - wanted, -0.5 * wanted * wrong
        if self.objective.target < 1.0:
            unwanted = ((1.0 - self.objective.target) * wrong).sqrt()
            loss, slope = loss - unwanted, slope + 0.5 * unwanted * right
        return loss, slope
