"""Expected measures under Plackett-Luce, as a torch module."""

from __future__ import annotations

import torch
from torch import Tensor

from rankwright import objectives
from rankwright.data import Queries
from rankwright.measures import Measure, parse
from rankwright.objectives.smooth import gained
from rankwright.torch.base import Batch, Labels, Loss
from rankwright.torch.smooth import gain_labels


class ExpectedMeasure(Loss):
    """1 - the measure in the mean over rankings drawn by Plackett-Luce; see ``rankwright.objectives.ExpectedMeasure``.

    Exact for measures of one or two ranks; estimates from samples for more, without bias in value and gradient. Memory
    is linear in the length of lists for a measure with a cut-off.

    Parameters
    ----------
    measure : Measure or str
        Any but a user's own.
    n_samples : int
        How many rankings are drawn of each list.
    """

    def __init__(self, measure: Measure | str, n_samples: int = 8, *, reduction: str = "mean") -> None:
        super().__init__(objectives.ExpectedMeasure(measure, n_samples), reduction)
        self.measure, self.n_samples = parse(measure).for_training(), n_samples
        self.is_sampled = self.measure.cut_off is None or self.measure.cut_off > 2

    def labels(self, queries: Queries) -> Labels:
        """Gains and worths."""
        self.objective.bind(queries)  # which checks the parameters
        return gain_labels(*gained(self.measure, queries))

    def table(self, length: int, batch: Batch) -> int:
        """Samples by documents, and by ranks twice."""
        depth = min(length, len(batch.constants["discount"]))
        return self.n_samples * (3 * length + 2 * depth * depth) if depth > 2 else length

    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The loss of each list, and its derivatives; estimates of them beyond two ranks."""
        if len(batch.constants["discount"]) <= 2:
            value, gradient = _top_two(scores, batch)
        else:
            shape = (len(scores), self.n_samples, scores.shape[1])
            clocks = torch.empty(shape, device=scores.device, dtype=scores.dtype).exponential_(generator=generator)
            value, gradient = sampled(scores, batch, -clocks.log_())
        worth = batch.queries["worth"]
        return batch.queries["lost"] - worth * value, -worth[:, None] * gradient


def _top_two(scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """The expectation of the first two ranks; see ``expected_top_two`` in ``kernels/plackett_luce.py``."""
    discount, u, v = (batch.constants[name] for name in ("discount", "u", "v"))
    g, s = batch.documents["gain"], torch.where(batch.mask, scores, -torch.inf)
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
    alive = torch.where(single, 0.0, 1.0)
    return value + discount[1] * (alive * second)[:, 0], gradient + discount[1] * alive * slope


def sampled(scores: Tensor, batch: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Estimates from the rankings by scores + noise; see ``expected_sampled`` in ``kernels/plackett_luce.py``.

    ``noise`` has the shape (lists, samples, length).
    """
    discount, u, v = (batch.constants[name] for name in ("discount", "u", "v"))
    n_samples, length = noise.shape[1:]
    depth = min(length, len(discount))
    d, gain = discount[:depth], batch.documents["gain"]
    s = torch.where(batch.mask, scores, -torch.inf)[:, None, :].expand(-1, n_samples, -1)
    chosen = (s + noise).topk(depth, dim=2).indices  # padding last, where a list is shorter than the cut-off
    ranked, g = s.gather(2, chosen), gain[:, None, :].expand(-1, n_samples, -1).gather(2, chosen)
    there = ranked > -torch.inf
    rest = s.scatter(2, chosen, -torch.inf)
    highest = rest.amax(dim=2, keepdim=True)
    weight = (rest - torch.where(highest > -torch.inf, highest, 0.0)).exp_()  # 0 for what was chosen
    sums = weight @ torch.stack([torch.ones_like(gain), gain], dim=2)
    # log Z and the mean gain of what is left at each rank, from the last one up
    level = torch.cat([ranked, highest + sums[:, :, :1].log()], dim=2).flip(2).logcumsumexp(dim=2).flip(2)
    level = torch.where(level > -torch.inf, level, 0.0)
    left = level[:, :, :depth]
    gains = torch.cat([ranked + g.log(), highest + sums[:, :, 1:].log()], dim=2).flip(2).logcumsumexp(dim=2).flip(2)
    gain_left = torch.where(there, (gains[:, :, :depth] - left).exp(), 0.0)
    lead, A, B = _futures(g, d, u, v)
    value = (d * lead * gain_left).sum(dim=2).mean(dim=1)
    others_A, others_B = ((x.sum(dim=1, keepdim=True) - x) / max(n_samples - 1, 1) for x in (A, B))
    c = d * lead + (u + v * lead) * others_A
    T = (lead + g * (u + v * lead)) * (A - others_A) + (B - others_B)
    c, T = torch.where(there, c, 0.0), torch.where(there, T, 0.0)
    both = torch.stack([c, c * gain_left + T], dim=3)  # what sums over ranks are of
    # of documents that were not chosen: P_t in units of the last, which is the largest
    last = torch.where(there, left, torch.inf).amin(dim=2, keepdim=True)
    by = (torch.where(there, last - left, -torch.inf).exp_()[:, :, None, :] @ both)[:, :, 0]
    unit = torch.where(highest > -torch.inf, (highest - last).exp_(), 0.0)
    by = (by * unit).transpose(1, 2) @ weight  # (lists, 2, documents): summed over the samples
    gradient = gain * by[:, 0] - by[:, 1]
    # of chosen ones: P_t of each at every rank up to its own
    p = (ranked[:, :, :, None] - left[:, :, None, :]).clamp_(max=0.0).exp_().tril_()
    p = torch.where(there[:, :, :, None], p, 0.0)
    own = p @ both
    slopes = torch.where(there, T + g * own[:, :, :, 0] - own[:, :, :, 1], 0.0)
    gradient = gradient.scatter_add(1, chosen.flatten(1), slopes.flatten(1))
    return value, gradient / n_samples


def _futures(g: Tensor, d: Tensor, u: float, v: float) -> tuple[Tensor, Tensor, Tensor]:
    """Lead, A and B at each rank of rankings with these gains."""
    worth, lead = g * d, torch.ones_like(g)
    if v == 0.0:
        A = worth.sum(dim=2, keepdim=True) - worth.cumsum(dim=2)
        if u == 0.0:
            return lead, A, torch.zeros_like(A)
        lead[:, :, 1:] += u * g[:, :, :-1].cumsum(dim=2)
        later = u * g * A
        return lead, A, later.sum(dim=2, keepdim=True) - later.cumsum(dim=2)
    lead[:, :, 1:] = (1.0 + v * g[:, :, :-1]).cumprod(dim=2)
    a, found = torch.zeros_like(g[:, :, 0]), []
    for t in range(g.shape[2] - 1, -1, -1):
        found.append(a)
        a = worth[:, :, t] + a * (1.0 + v * g[:, :, t])
    A = torch.stack(found[::-1], dim=2)
    return lead, A, torch.zeros_like(A)
