"""The base class of every torch loss: values of lists of scores with their gradients, all lists of a batch at once."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.objectives.base import Objective
from rankwright.torch.batches import Batch, LossLabels
from rankwright.torch.prepared_labels import PreparedLabels, prepare_labels

REDUCTIONS = ("mean", "sum", "none")
_MAX_TABLE = 1 << 26  # numbers: a batch whose tables need more is computed in parts


class Loss(nn.Module):
    """A torch module that computes the loss of padded lists of scores: the torch form of an objective.

    It is called with scores, labels and a mask, like any other loss of torch; see ``forward``.

    Parameters
    ----------
    objective : Objective
        The objective of which it computes value and gradient.
    reduction : "mean", "sum" or "none"
        The reduction over the lists; the mean is the sum divided by their number, whatever their weights.
    """

    is_sampled = False  # whether values and gradients are estimates
    score_parameters: ClassVar[tuple[str, ...]] = ()  # parameters that the labels do not depend on

    def __init__(self, objective: Objective, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise InputError(f"reduction={reduction!r}; expected one of {', '.join(REDUCTIONS)}")
        self.objective = objective
        self.reduction = reduction

    @property
    def label_identity(self) -> str:
        """The loss with the parameters that its prepared labels depend on."""
        objective: Any = self.objective
        names = [each.name for each in fields(objective) if each.name not in self.score_parameters]
        return f"{type(self).__name__}({', '.join(str(getattr(objective, name)) for name in names)})"

    def extra_repr(self) -> str:
        """Return the parameters, for print."""
        objective: Any = self.objective
        own = [f"{each.name}={getattr(objective, each.name)!r}" for each in fields(objective)]
        return ", ".join([*own, f"reduction={self.reduction!r}"])

    @abstractmethod
    def compute_labels(self, queries: Queries) -> LossLabels:
        """Return the arrays that depend on the labels alone."""

    @abstractmethod
    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each list and the derivative by each score, any finite number for padding."""

    def table_size(self, length: int, batch: Batch) -> int:
        """Return how many numbers the largest table has for a list of this length."""
        return length

    def evaluate_in_parts(
        self, scores: Tensor, batch: Batch, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Evaluate without recording gradients, in as many parts as memory requires; derivatives of padding are 0."""
        n_lists, length = scores.shape
        with torch.no_grad():
            at_once = max(1, _MAX_TABLE // max(1, self.table_size(length, batch)))
            starts = range(0, n_lists, at_once)
            found = [
                self.evaluate(
                    scores[a : a + at_once], batch.slice(a, a + at_once) if len(starts) > 1 else batch, generator
                )
                for a in starts
            ]
            values, slopes = found[0] if len(found) == 1 else (torch.cat(part) for part in zip(*found, strict=True))
            return values, slopes.masked_fill(~batch.mask, 0.0)

    def prepare(self, labels: Any, mask: Any = None, weight: Any = None) -> PreparedLabels:
        """Compute once what depends on labels; ``forward`` takes it in place of them.

        For use in many steps, move it to the device of the scores: ``loss.prepare(labels).to("cuda", torch.float32)``.
        """
        return prepare_labels(self.label_identity, self.compute_labels, labels, mask, weight)

    def forward(
        self,
        scores: Tensor,
        labels: Any,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the loss of lists of scores.

        Parameters
        ----------
        scores : tensor of shape (lists, length)
            Larger is ranked earlier. The scores of padding do not matter.
        labels : tensor of shape (lists, length), or PreparedLabels
            Relevance grades from 0 up, or the result of ``prepare``.
        mask : tensor, optional
            The places that have a document: bools of shape (lists, length), or the number of documents of each list.
            Without a mask, documents with labels below 0 are padding.
        weight : tensor of shape (lists,), optional
            The weight of each list.
        generator : torch.Generator, optional
            The source of random numbers for a loss that is sampled.

        Returns
        -------
        tensor
            A number, or one for each list without reduction.
        """
        if scores.ndim != 2:
            raise InputError(f"scores have shape {tuple(scores.shape)}; expected (lists, length)")
        dtype = scores.dtype if scores.dtype == torch.float64 else torch.float32
        if isinstance(labels, PreparedLabels):
            labels.check_loss(self.label_identity, mask, weight)
            prepared = labels
        else:
            prepared = self.prepare(labels, mask, weight)
        if prepared.shape != tuple(scores.shape):
            raise InputError(f"scores have shape {tuple(scores.shape)}; the labels have {prepared.shape}")
        values: Tensor = _LossFunction.apply(scores, self, prepared.to(scores.device, dtype), generator)  # type: ignore[no-untyped-call]
        return values if self.reduction == "none" else values.sum() if self.reduction == "sum" else values.mean()


class _LossFunction(torch.autograd.Function):
    """An autograd function from scores to the losses of lists; the gradient is computed with the losses."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, loss: Loss, prepared: PreparedLabels, generator: torch.Generator | None
    ) -> Tensor:
        own = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
        with torch.autocast(own.device.type, enabled=False):
            if prepared.at is None:
                values, slopes = loss.evaluate_in_parts(own, prepared.batch, generator)
            else:
                lists = torch.as_tensor(prepared.lists, device=own.device)
                found = loss.evaluate_in_parts(own[lists].gather(1, prepared.at), prepared.batch, generator)
                values, slopes = own.new_zeros(len(own)), torch.zeros_like(own)
                values[lists] = found[0]
                slopes[lists] = torch.zeros_like(own[lists]).scatter(1, prepared.at, found[1])
        ctx.save_for_backward(scores, slopes)
        return values

    @staticmethod
    def backward(ctx: Any, *by_value: Tensor) -> tuple[Tensor | None, ...]:
        scores, slopes = ctx.saved_tensors
        return _LossGradient.apply(by_value[0], scores, slopes), None, None, None  # type: ignore[no-untyped-call]


class _LossGradient(torch.autograd.Function):
    """An autograd function that returns the gradient of the losses; a second backward pass raises."""

    @staticmethod
    def forward(ctx: Any, by_value: Tensor, scores: Tensor, slopes: Tensor) -> Tensor:
        return (by_value[:, None] * slopes).to(scores.dtype)

    @staticmethod
    def backward(ctx: Any, *by_slope: Tensor) -> tuple[Tensor | None, ...]:
        raise NotImplementedError(
            "the losses of rankwright.torch have first derivatives only; found a second backward pass through one"
        )
