"""Expected measures under Gaussian noise of the scores, as a torch module."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rankwright import objectives
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.noisy_objectives import SIGMA
from rankwright.objectives.smooth_objectives import check_sigma, prepare_gains
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels
from rankwright.torch.smooth_losses import add_gain_order, make_gain_labels

_MAX_TABLE = 1 << 26  # numbers: the rows of a list whose table has more are computed in parts


class NoisyRanks(Loss):
    """The loss of SoftRank: 1 - the expected measure where scores have Gaussian noise.

    See ``rankwright.objectives.NoisyRanks``. A table has a row for each document of positive gain.

    Parameters
    ----------
    measure : Measure or str
        NDCG, DCG, P, recall, RBP or WTA: a sum of discounted gains.
    sigma : float
        The standard deviation of the noise of a score. It may be changed between steps.
    """

    score_parameters = ("sigma",)

    def __init__(self, measure: Measure | str, sigma: float = SIGMA, *, reduction: str = "mean") -> None:
        super().__init__(objectives.NoisyRanks(measure, sigma), reduction)
        self.measure, self.sigma = parse_measure(measure), sigma

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return gains, worths, and the documents by descending gain."""
        self.objective.prepare(queries)  # raises for measures without this form
        data, lost = prepare_gains(self.measure, queries)
        return add_gain_order(make_gain_labels(data, lost), queries)

    def table_size(self, length: int, batch: Batch) -> int:
        """Return the size of a table of documents of positive gain by all documents by ranks."""
        return length * max(batch.width, 1) * (min(length, len(batch.constants["discount"])) + 1)

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives; see ``kernels/objectives/rank_distributions.py``."""
        unit = 0.5 / check_sigma(self.sigma)
        discount: Any = batch.constants["discount"][: scores.shape[1]]
        s, place = scores.masked_fill(~batch.mask, 0.0), torch.arange(scores.shape[1], device=scores.device)
        value, total = torch.zeros_like(s[:, 0]), torch.zeros_like(s)
        at_once = max(1, _MAX_TABLE // (s.numel() * (len(discount) + 1)))
        for first in range(0, batch.width, at_once):
            own = batch.documents["order"][:, first : min(first + at_once, batch.width)]
            g, x = batch.documents["gain"].gather(1, own), s[:, None, :] - s.gather(1, own)[:, :, None]
            x.mul_(unit)
            is_other = batch.mask[:, None, :] & (place != own[:, :, None])
            above = torch.erfc(-x).mul_(0.5).mul_(is_other)
            expected, cost = _expect_discounts(above, discount)
            value += (g * expected).sum(dim=1)
            cost.mul_(g[:, :, None]).mul_((-x * x).exp_().mul_(unit / math.sqrt(math.pi))).mul_(is_other)
            total -= cost.sum(dim=1)
            total.scatter_add_(1, own, cost.sum(dim=2))
        worth = batch.queries["worth"]
        return batch.queries["lost"] - worth * value, -worth[:, None] * total


def _expect_discounts(above: Tensor, discount: Tensor) -> tuple[Tensor, Tensor]:
    """Return the expected discount of each row's document, and minus its derivative by each probability of ``above``.

    The table has the distribution of the number of documents before it, after each trial; that of r is at r + 1.
    """
    n_trials, depth = above.shape[2], len(discount)
    table = above.new_zeros((n_trials + 1, *above.shape[:2], depth + 1))
    table[0, :, :, 1] = 1.0
    p, before = table[..., 1:], table[..., :-1]
    for t in range(n_trials):
        torch.lerp(p[t], before[t], above[:, :, t, None], out=p[t + 1])
    cost, c = torch.empty_like(above), above.new_zeros((*above.shape[:2], depth + 1))
    c[:, :, :depth] = discount
    c[:, :, : depth - 1] -= discount[1:]
    for t in range(n_trials - 1, -1, -1):
        cost[:, :, t] = (p[t] * c[:, :, :-1]).sum(dim=2)
        c[:, :, :-1] = torch.lerp(c[:, :, :-1], c[:, :, 1:], above[:, :, t, None])
    return p[n_trials] @ discount, cost
