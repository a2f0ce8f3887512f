"""Losses of lists as tables of all pairs of documents, by torch's own gradients: how they are usually written.

Scores and labels have the shape (lists, length), masks are True where there is a document.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _ideal(labels: Tensor, k: int) -> Tensor:
    gains = (2.0**labels - 1.0).sort(dim=1, descending=True).values[:, :k]
    discounts = torch.log2(torch.arange(gains.shape[1], device=labels.device) + 2.0)
    return (gains / discounts).sum(dim=1).clamp(min=1e-10)


def lambda_rank(scores: Tensor, labels: Tensor, mask: Tensor, k: int = 10) -> Tensor:
    """LambdaRank@k: all pairs of the list sorted by score, with a mask of those that count."""
    sorted_scores, order = scores.masked_fill(~mask, -torch.inf).sort(dim=1, descending=True)
    grades, there = labels.gather(1, order), mask.gather(1, order)
    n = scores.shape[1]
    differ = grades[:, :, None] - grades[:, None, :]
    top = torch.zeros(n, n, dtype=torch.bool, device=scores.device)
    top[:k, :], top[:, :k] = True, True
    pairs = (differ > 0) & there[:, :, None] & there[:, None, :] & top
    gains = (2.0**grades - 1.0) / _ideal(labels, k)[:, None]
    discounts = 1.0 / torch.log2(torch.arange(n, device=scores.device) + 2.0)
    discounts = torch.where(torch.arange(n, device=scores.device) < k, discounts, 0.0)
    weights = (gains[:, :, None] - gains[:, None, :]).abs() * (discounts[:, None] - discounts[None, :]).abs()
    o = (sorted_scores[:, :, None] - sorted_scores[:, None, :]).masked_fill(~pairs, 0.0)
    losses = weights.detach() * torch.nn.functional.softplus(-o)
    return torch.where(pairs, losses, 0.0).sum(dim=(1, 2))


def approx_ndcg(scores: Tensor, labels: Tensor, mask: Tensor, k: int = 50) -> Tensor:
    """ApproxNDCG: the rank of each document from all differences of scores."""
    o = scores[:, None, :] - scores[:, :, None]
    above = torch.sigmoid(o).masked_fill(~mask[:, None, :], 0.0)
    ranks = 0.5 + above.sum(dim=2)
    gains = torch.where(mask, 2.0**labels - 1.0, 0.0) / _ideal(labels, k)[:, None]
    return 1.0 - (gains / torch.log2(1.0 + ranks)).sum(dim=1)


def gumbel_approx_ndcg(scores: Tensor, labels: Tensor, mask: Tensor, k: int = 10, n_samples: int = 8) -> Tensor:
    """ApproxNDCG in the mean over samples of scores with Gumbel noise."""
    noise = -torch.empty(n_samples, *scores.shape, device=scores.device).exponential_().log()
    noisy = (scores + noise).flatten(0, 1)
    losses = approx_ndcg(noisy, labels.repeat(n_samples, 1), mask.repeat(n_samples, 1), k)
    return losses.view(n_samples, -1).mean(dim=0)


def list_net(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """ListNet: two softmaxes."""
    target = labels.masked_fill(~mask, -torch.inf).softmax(dim=1)
    log_q = scores.masked_fill(~mask, -torch.inf).log_softmax(dim=1)
    return -torch.where(mask, target * log_q, 0.0).sum(dim=1)
