"""LambdaRank's gradients, as a torch module."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from rankwright import objectives
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.smooth_objectives import prepare_gains
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels, find_positions
from rankwright.torch.smooth_losses import make_gain_labels


class Lambdas(Loss):
    """The loss of LambdaRank: logistic losses of pairs, weighted by the change of the measure if they were swapped.

    See ``rankwright.objectives.Lambdas``. A table has a row for each rank that counts: memory is linear in the length
    of lists for a measure with a cut-off.

    Parameters
    ----------
    measure : Measure or str
        Any built-in measure.
    """

    def __init__(self, measure: Measure | str, *, reduction: str = "mean") -> None:
        super().__init__(objectives.Lambdas(measure), reduction)
        self.measure = parse_measure(measure).for_training()

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return gains, worths, and the documents by ascending grade, the order of equal scores."""
        found = make_gain_labels(*prepare_gains(self.measure, queries))
        ties = np.lexsort((queries.y, np.repeat(np.arange(len(queries)), queries.sizes)))
        return found._replace(documents={**found.documents, "ties": find_positions(ties, queries)})

    def table_size(self, length: int, batch: Batch) -> int:
        """Return the size of a table of ranks by documents."""
        return length * min(length, len(batch.constants["discount"]))

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives, the ranking kept."""
        discount, u, v = (batch.constants[name] for name in ("discount", "u", "v"))
        ties = batch.documents["ties"]
        missing = ~batch.mask
        there = scores.masked_fill(missing, -torch.inf)  # padding comes last, and stays there
        s, order = there.gather(1, ties).sort(dim=1, descending=True, stable=True)
        order = ties.gather(1, order)
        n, depth = s.shape[1], min(s.shape[1], len(discount))
        s, g = s.masked_fill(missing, 0.0), batch.documents["gain"].gather(1, order)
        d = torch.zeros_like(s[0])
        d[:depth] = discount[:depth]
        change = _compute_changes(g, d, depth, u, v)
        column = torch.arange(n, device=s.device)
        none = (column <= column[:depth, None]) | missing[:, None, :]  # a pair is counted at its upper rank
        sign = torch.sign(g[:, :depth, None] - g[:, None, :])
        o = sign * (s[:, :depth, None] - s[:, None, :])
        change.masked_fill_(none, 0.0)
        loss = (change * softplus(-o)).sum(dim=(1, 2))
        slope = change.mul_(sign).mul_(torch.sigmoid(-o))
        by_rank = slope.sum(dim=1)
        by_rank[:, :depth] -= slope.sum(dim=2)
        worth = batch.queries["worth"]
        return worth * loss, worth[:, None] * torch.zeros_like(s).scatter(1, order, by_rank)


def _compute_changes(g: Tensor, d: Tensor, depth: int, u: float, v: float) -> Tensor:
    """Return for pairs of ranks the absolute change of the measure when their documents are swapped.

    The first rank is one of the ``depth`` that count.

    The values for second ranks above the first have no meaning. See ``swap_deltas`` of a prepared measure.
    """
    here, below = d[:depth, None], d[None, :]
    apart = g[:, None, :] - g[:, :depth, None]
    if u == 0.0 and v == 0.0:
        return (apart * (here - below)).abs_()
    lead = torch.ones_like(g)
    if v == 0.0:
        lead[:, 1:] += u * g[:, :-1].cumsum(dim=1)
        # between the two: b the gains, m the discounted gains
        gains, worths = (values.cumsum(dim=1) for values in (g, g * d))
        b = u * ((gains - g)[:, None, :] - gains[:, :depth, None])
        m = (worths - g * d)[:, None, :] - worths[:, :depth, None]
        return (apart * (lead[:, :depth, None] * (here - below) + u * m - b * below)).abs_()
    lead[:, 1:] = (1.0 + v * g[:, :-1]).cumprod(dim=1)
    after = torch.arange(g.shape[1], device=g.device) > torch.arange(depth, device=g.device)[:, None]
    stay = torch.where(after, 1.0 + v * g[:, None, :], 1.0).cumprod(dim=2)  # to the lower one, with it
    a = torch.cat([torch.ones_like(stay[:, :, :1]), stay[:, :, :-1]], dim=2)
    found = torch.where(after, (g * d)[:, None, :] * a, 0.0)
    m = found.cumsum(dim=2) - found
    return (apart * lead[:, :depth, None] * ((here - a * below) + v * m)).abs_()
