"""Smoothed measures, as torch modules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankwright import objectives
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import GEOMETRIC, LOGARITHMIC, DiscountFunction
from rankwright.measures import Measure, MeasureArrays, parse_measure
from rankwright.objectives.smooth_objectives import check_sigma, prepare_gains
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels, find_positions

_ROUNDING = 1e-3  # far more than the relative error of any precision
_MAX_EXPONENT = 200.0  # exp(-200) is 0 in single precision


def make_gain_labels(data: MeasureArrays, lost: Floats) -> LossLabels:
    """Return the arrays of a measure as a loss takes them: gains by document, worths by query, and constants."""
    constants = {"discount": data.discount, "u": data.u, "v": data.v}
    return LossLabels({"gain": data.gain}, {"worth": data.scale, "lost": lost}, None, constants)


def add_gain_order(labels: LossLabels, queries: Queries) -> LossLabels:
    """Return the labels with the documents of each query by descending gain, of which those with a gain have a row."""
    gain = labels.documents["gain"]
    order = np.lexsort((-gain, np.repeat(np.arange(len(queries)), queries.sizes)))
    documents = {**labels.documents, "order": find_positions(order, queries)}
    widths = np.add.reduceat((gain != 0.0).astype(np.int64), queries.indptr[:-1])
    return labels._replace(documents=documents, widths=widths)


class SoftPositions(Loss):
    """The loss 1 - measure, where the gain at a position is a mean over documents with scores near that position.

    See ``rankwright.objectives.SoftPositions``.

    Parameters
    ----------
    measure : Measure or str
        Any built-in measure.
    sigma : float
        The smoothing, in squares of scores. It may be changed between steps.
    """

    score_parameters = ("sigma",)

    def __init__(self, measure: Measure | str, sigma: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.SoftPositions(measure, sigma), reduction)
        self.measure, self.sigma = parse_measure(measure), sigma

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return gains and worths."""
        check_sigma(self.sigma)
        return make_gain_labels(*prepare_gains(self.measure, queries))

    def table_size(self, length: int, batch: Batch) -> int:
        """Return the size of a table of positions by documents."""
        return length * min(length, len(batch.constants["discount"]))

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives: eq. (7), (8), (10), appendix 2 of Chapelle & Wu (2010).

        The tables are e and e x, x = s_i - s_(j); all sums over them are products with vectors.
        """
        discount, u, v = (batch.constants[name] for name in ("discount", "u", "v"))
        missing = ~batch.mask
        lowest = scores.masked_fill(missing, torch.inf).amin(dim=1, keepdim=True)
        # padding is too far from every document to count, also where the scores are large
        away = math.sqrt(_MAX_EXPONENT * check_sigma(self.sigma))
        s = torch.where(batch.mask, scores, lowest - (away + _ROUNDING * lowest.abs()))
        s, order = s.sort(dim=1, descending=True)
        g = batch.documents["gain"].gather(1, order)
        depth = min(s.shape[1], len(discount))
        x = s[:, None, :] - s[:, :depth, None]
        e = (x * x).mul_(-1.0 / self.sigma).exp_()
        ones_and_gains = torch.stack([torch.ones_like(g), g], dim=2)
        sums = e @ ones_and_gains  # (lists, positions, 2)
        total = sums[:, :, 0]
        soft = sums[:, :, 1] / total
        value, slope = _evaluate_measure(soft, discount[:depth], u, v)
        slope = slope * (-2.0 / self.sigma) / total
        e.mul_(x)
        own = e @ ones_and_gains
        at_position = slope * (own[:, :, 1] - soft * own[:, :, 0])
        by = torch.stack([slope, slope * soft], dim=1) @ e  # (lists, 2, documents)
        slopes = g * by[:, 0] - by[:, 1]
        slopes[:, :depth] -= at_position
        worth = batch.queries["worth"]
        gradient = torch.zeros_like(s).scatter(1, order, slopes)
        return batch.queries["lost"] - worth * value, -worth[:, None] * gradient


def _evaluate_measure(soft: Tensor, discount: Tensor, u: float, v: float) -> tuple[Tensor, Tensor]:
    """Return the measure of lists of soft gains by position, with its derivatives by the gains.

    See ``kernels/objectives/smooth_measures.py``.
    """
    if v != 0.0:
        stay = 1.0 - soft
        reach = torch.cat([torch.ones_like(stay[:, :1]), stay[:, :-1].cumprod(dim=1)], dim=1)
        after, found = torch.zeros_like(soft[:, 0]), []
        for j in range(soft.shape[1] - 1, -1, -1):
            found.append(reach[:, j] * (discount[j] - after))
            after = discount[j] * soft[:, j] + stay[:, j] * after
        return (discount * soft * reach).sum(dim=1), torch.stack(found[::-1], dim=1)
    if u != 0.0:
        so_far, worth = soft.cumsum(dim=1), discount * soft
        after = worth.sum(dim=1, keepdim=True) - worth.cumsum(dim=1)
        return (worth * so_far).sum(dim=1), discount * (so_far + soft) + after
    return soft @ discount, discount.expand_as(soft)


class SigmoidRanks(Loss):
    """The loss 1 - measure, where the rank of a document is 1 + a smooth count of the documents above it.

    See ``rankwright.objectives.SigmoidRanks``. A table has a row for each document of positive gain.

    Parameters
    ----------
    measure : Measure or str
        NDCG, DCG, P, recall, RBP, WTA, or average precision.
    sigma : float
        The smoothing, in units of scores. It may be changed between steps.
    """

    score_parameters = ("sigma",)

    def __init__(self, measure: Measure | str, sigma: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(objectives.SigmoidRanks(measure, sigma), reduction)
        self.measure, self.sigma = parse_measure(measure), sigma

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return gains, worths, and the documents by descending gain."""
        prepared: Any = self.objective.prepare(queries)  # raises for measures without this form
        data, lost = prepare_gains(self.measure, queries)
        found = add_gain_order(make_gain_labels(data, lost), queries)
        return found._replace(constants={**found.constants, "discount_function": prepared.discount_function})

    def table_size(self, length: int, batch: Batch) -> int:
        """Return the size of a table of documents of positive gain by all documents."""
        return length * max(batch.width, 1)

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives: eq. (5), and (9) for average precision."""
        u, order = batch.constants["u"], batch.documents["order"][:, : batch.width]
        gain, per_sigma = batch.documents["gain"], 1.0 / check_sigma(self.sigma)
        g, s = gain.gather(1, order), scores.masked_fill(~batch.mask, 0.0)
        p = (s[:, None, :] - s.gather(1, order)[:, :, None]).mul_(per_sigma).sigmoid_()
        p.mul_(batch.mask[:, None, :])
        sums = p @ torch.stack([torch.ones_like(gain), gain], dim=2)
        lead = 1.0 + u * (sums[:, :, 1] - 0.5 * g)
        d, slope = _evaluate_discount(batch.constants["discount_function"], 0.5 + sums[:, :, 0])
        value = (g * lead * d).sum(dim=1)
        by_rank, by_lead = g * per_sigma * lead * slope, g * per_sigma * u * d
        p.addcmul_(p, p, value=-1.0)  # p (1 - p); the share of a document in its own rank cancels
        by_document = torch.stack([by_rank, by_lead], dim=1) @ p
        total = by_document[:, 0] + gain * by_document[:, 1]
        sums = p @ torch.stack([torch.ones_like(gain), gain], dim=2)
        total.scatter_add_(1, order, -(by_rank * sums[:, :, 0] + by_lead * sums[:, :, 1]))
        worth = batch.queries["worth"]
        return batch.queries["lost"] - worth * value, -worth[:, None] * total


def _evaluate_discount(function: DiscountFunction, r: Tensor) -> tuple[Tensor, Tensor]:
    """Return the discount at ranks that need not be whole numbers, with its derivative.

    See ``kernels/measures/discounts.py``.
    """
    kind, a, b, cut_off = function
    if kind == LOGARITHMIC:
        late = (r - a).clamp(min=1.0)
        value = 1.0 / torch.log2(1.0 + late)
        slope = torch.where(r - a >= 1.0, -value * value / ((1.0 + late) * math.log(2.0)), 0.0)
    elif kind == GEOMETRIC:
        value = b * a ** (r - 1.0)
        slope = value * math.log(a)
    else:
        value, slope = 1.0 / r, -1.0 / (r * r)
    if math.isinf(cut_off):
        return value, slope
    left = (cut_off + 1.0 - r).clamp(0.0, 1.0)
    part, steep = left * left * (3.0 - 2.0 * left), -6.0 * left * (1.0 - left)
    return value * part, slope * part + value * steep
