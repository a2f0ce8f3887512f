"""Expected measures under Plackett-Luce, as a torch module."""

from __future__ import annotations

import torch
from torch import Tensor

from rankwright import objectives
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.smooth_objectives import prepare_gains
from rankwright.torch.base import Loss
from rankwright.torch.batches import Batch, LossLabels
from rankwright.torch.smooth_losses import make_gain_labels


class ExpectedMeasure(Loss):
    """The loss of BayesRank: 1 - the expected measure of a ranking drawn from the Plackett-Luce model of the scores.

    See ``rankwright.objectives.ExpectedMeasure``. Measures of one or two ranks are exact; for others value and gradient
    are unbiased estimates from samples. Memory is linear in the length of lists for a measure with a cut-off.

    Parameters
    ----------
    measure : Measure or str
        Any built-in measure.
    n_samples : int
        The number of rankings drawn for each list.
    """

    score_parameters = ("n_samples",)

    def __init__(self, measure: Measure | str, n_samples: int = 8, *, reduction: str = "mean") -> None:
        super().__init__(objectives.ExpectedMeasure(measure, n_samples), reduction)
        self.measure, self.n_samples = parse_measure(measure).for_training(), n_samples
        self.is_sampled = self.measure.cut_off is None or self.measure.cut_off > 2

    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return gains and worths."""
        self.objective.prepare(queries)  # checks the parameters
        return make_gain_labels(*prepare_gains(self.measure, queries))

    def table_size(self, length: int, batch: Batch) -> int:
        """Return the size of tables of samples by documents, and of samples by ranks by ranks."""
        depth = min(length, len(batch.constants["discount"]))
        return self.n_samples * (3 * length + 2 * depth * depth) if depth > 2 else length

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list with its derivatives, or estimates of them beyond two ranks."""
        if len(batch.constants["discount"]) <= 2:
            value, gradient = _expect_top_two(scores, batch)
        else:
            shape = (len(scores), self.n_samples, scores.shape[1])
            clocks = torch.empty(shape, device=scores.device, dtype=scores.dtype).exponential_(generator=generator)
            value, gradient = estimate_from_samples(scores, batch, -clocks.log_())
        worth = batch.queries["worth"]
        return batch.queries["lost"] - worth * value, -worth[:, None] * gradient


def _expect_top_two(scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the exact expected measure of the first two ranks of each list, with its gradient.

    See ``kernels/objectives/plackett_luce.py``.
    """
    discount, u, v = (batch.constants[name] for name in ("discount", "u", "v"))
    g, s = batch.documents["gain"], scores.masked_fill(~batch.mask, -torch.inf)
    p = s.softmax(dim=1)
    mean = (p * g).sum(dim=1, keepdim=True)
    value, gradient = discount[0] * mean[:, 0], discount[0] * p * (g - mean)
    if len(discount) < 2 or s.shape[1] < 2:
        return value, gradient
    top = s.argmax(dim=1, keepdim=True)
    single = batch.mask.sum(dim=1, keepdim=True) < 2
    others = s.scatter(1, top, -torch.inf)
    rest = torch.where(single, 0.0, torch.where(single, s, others).softmax(dim=1))  # the softmax without the top
    rest_mean = (rest * g).sum(dim=1, keepdim=True)
    is_top = torch.zeros_like(batch.mask).scatter(1, top, True)
    left = torch.where(is_top, 1.0, 1.0 - p)
    after = torch.where(is_top, rest_mean, (mean - p * g) / left)  # the mean gain without each one
    own = p * (1.0 + (u + v) * g)
    second = (own * after).sum(dim=1, keepdim=True)
    odds = torch.where(is_top, 0.0, own / left)
    others_odds = odds.sum(dim=1, keepdim=True) - odds
    others_gain = (odds * after).sum(dim=1, keepdim=True) - odds * after
    slope = own * after - p * second + p * (g * others_odds - others_gain)
    slope += own.gather(1, top) * rest * (g - rest_mean)
    return value + discount[1] * second[:, 0], gradient + discount[1] * slope


def estimate_from_samples(scores: Tensor, batch: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return estimates of the expected measure and of its gradient, from the rankings by scores + noise.

    See ``kernels/objectives/plackett_luce.py``.

    ``noise`` has the shape (lists, samples, length). Rankings are stored from their last rank up, the order of the
    sums. A list shorter than the cut-off has ranks without a document, whose probability is 0.
    """
    discount, u, v = (batch.constants[name] for name in ("discount", "u", "v"))
    n_samples, length = noise.shape[1:]
    depth, gain = min(length, len(discount)), batch.documents["gain"]
    d = discount[:depth].flip(0)
    s = scores.masked_fill(~batch.mask, -torch.inf)
    s = (s - s.amax(dim=1, keepdim=True))[:, None, :].expand(
        -1, n_samples, -1
    )  # noise would be lost beside large numbers
    chosen = (s + noise).topk(depth, dim=2).indices.flip(2)
    ranked, g = s.gather(2, chosen), gain[:, None, :].expand(-1, n_samples, -1).gather(2, chosen)
    rest = s.scatter(2, chosen, -torch.inf)
    highest = rest.amax(dim=2, keepdim=True).clamp_(min=torch.finfo(s.dtype).min)
    weight = (rest - highest).exp_()
    sums = weight @ torch.stack([torch.ones_like(gain), gain], dim=2)
    # log Z of the documents left at each rank; P_t of each chosen one, at every rank up to its own; the mean gain
    left = torch.cat([highest + sums[:, :, :1].log(), ranked], dim=2).logcumsumexp(dim=2)[:, :, 1:]
    left = left.masked_fill(left == -torch.inf, torch.inf)
    p = (ranked[:, :, :, None] - left[:, :, None, :]).exp_().triu_()
    gain_left = (g[:, :, None, :] @ p)[:, :, 0] + (highest - left).exp_() * sums[:, :, 1:]
    c, T, value = _compute_gradient_terms(g, d, gain_left, u, v)
    both = torch.stack([c, c * gain_left + T], dim=3)  # the terms of sums over ranks
    # for documents that were not chosen: P_t in units of the last one, which is the largest
    last = left.amin(dim=2, keepdim=True)
    by = ((last - left).exp_()[:, :, None, :] @ both)[:, :, 0] * (highest - last).exp_()
    by = by.transpose(1, 2) @ weight  # (lists, 2, documents): summed over the samples
    own = p @ both
    slopes = T + g * own[:, :, :, 0] - own[:, :, :, 1]
    gradient = (gain * by[:, 0] - by[:, 1]).scatter_add(1, chosen.flatten(1), slopes.flatten(1))
    return value.mean(dim=1), gradient / n_samples


def _compute_gradient_terms(
    g: Tensor, d: Tensor, gain_left: Tensor, u: float, v: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the terms C and T of the gradient at each rank, last rank first, and the value of each ranking.

    The control variate of A and B is the mean of the other samples; the difference from it is a multiple of the
    difference from the mean of all samples.
    """
    n_samples, worth = g.shape[1], g * d
    share = n_samples / max(n_samples - 1, 1)
    if u == 0.0 and v == 0.0:
        A = worth.cumsum(dim=2) - worth
        away = A if n_samples == 1 else share * (A - A.mean(dim=1, keepdim=True))
        return d.expand_as(g), away, gain_left @ d
    lead, A, B = _sum_later_ranks(g, worth, u, v)
    away_A, away_B = (x if n_samples == 1 else share * (x - x.mean(dim=1, keepdim=True)) for x in (A, B))
    c = d * lead + (u + v * lead) * (A - away_A)
    return c, (lead + g * (u + v * lead)) * away_A + away_B, (d * lead * gain_left).sum(dim=2)


def _sum_later_ranks(g: Tensor, worth: Tensor, u: float, v: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the factor ``lead`` of each rank, and A and B, which sum up the ranks after it; last rank first."""
    if v == 0.0:
        A = worth.cumsum(dim=2) - worth
        later = u * g * A
        return 1.0 + u * (g.sum(dim=2, keepdim=True) - g.cumsum(dim=2)), A, later.cumsum(dim=2) - later
    stay, a, found = 1.0 + v * g, torch.zeros_like(g[:, :, 0]), []
    for t in range(g.shape[2]):
        found.append(a)
        a = worth[:, :, t] + a * stay[:, :, t]
    A, reach = torch.stack(found, dim=2), torch.ones_like(g)
    reach[:, :, :-1] = stay[:, :, 1:].flip(2).cumprod(dim=2).flip(2)
    return reach, A, torch.zeros_like(A)
