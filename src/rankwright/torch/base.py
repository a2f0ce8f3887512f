"""What every torch loss is: values of lists of scores with their gradients, all lists of a batch at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.objectives.base import Objective

REDUCTIONS = ("mean", "sum", "none")
_OF_SCORES = ("sigma", "n_samples")  # parameters that labels have nothing to do with
_ROOM = 1 << 26  # numbers: batches whose tables need more are computed in parts


class Labels(NamedTuple):
    """All that a loss takes from the labels of some queries."""

    documents: Mapping[str, Any]  # an array each, by row; whole numbers are places within the query
    queries: Mapping[str, Floats]
    widths: Ints | None = None  # by query: how many documents have rows of their own in a table of pairs
    constants: Mapping[str, Any] = {}


class Batch(NamedTuple):
    """Some lists, padded to one length, with what a loss takes from their labels."""

    mask: Tensor  # which documents there are: the first ones of each list
    documents: Mapping[str, Tensor]  # (lists, length)
    queries: Mapping[str, Tensor]  # (lists,)
    width: int
    constants: Mapping[str, Any]

    def part(self, start: int, stop: int) -> Batch:
        """The lists from ``start`` to ``stop``."""
        return self._replace(
            mask=self.mask[start:stop],
            documents={name: values[start:stop] for name, values in self.documents.items()},
            queries={name: values[start:stop] for name, values in self.queries.items()},
        )


class Rows:
    """Where the documents of queries are, among all.

    Parameters
    ----------
    indptr : array of shape (n_queries + 1,)
        The offsets of the queries.
    device
        Where row numbers are wanted.
    """

    def __init__(self, indptr: Ints, device: Any) -> None:
        self.sizes, self.n_docs, self.device = np.diff(indptr), int(indptr[-1]), device
        self._starts = torch.tensor(indptr[:-1], device=device)
        self._lengths = torch.tensor(self.sizes, device=device)

    def longest(self, queries: Ints) -> int:
        """The length of the longest of these queries."""
        return int(self.sizes[queries].max())

    def padded(self, at: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """The rows of the documents of the queries at these places, padded with others; and which are theirs."""
        place = torch.arange(length, device=self.device)
        mask = place < self._lengths[at][:, None]
        return (self._starts[at][:, None] + place).clamp_(max=self.n_docs - 1), mask


class Lists:
    """Labels on a device, from which batches are gathered.

    Parameters
    ----------
    labels : Labels
        Of some queries.
    device, dtype
        Where, and of what precision.
    """

    def __init__(self, labels: Labels, device: Any, dtype: torch.dtype) -> None:
        def tensor(values: Any) -> Any:
            if not isinstance(values, np.ndarray):
                return values
            kind = torch.int64 if values.dtype.kind in "iu" else dtype
            return torch.tensor(values, dtype=kind, device=device)

        self.widths = labels.widths
        self.documents, self.queries, self.constants = (
            {name: tensor(values) for name, values in part.items()}
            for part in (labels.documents, labels.queries, labels.constants)
        )

    def widest(self, queries: Ints) -> int:
        """How many rows a table of pairs needs for these queries."""
        return 0 if self.widths is None else int(self.widths[queries].max())

    def batch(self, at: Tensor, rows: Tensor, mask: Tensor, width: int) -> Batch:
        """The labels of the queries at these places, whose documents are in these rows."""
        place = torch.arange(mask.shape[1], device=mask.device)
        documents = {}
        for name, values in self.documents.items():
            missing = values.new_zeros(()) if values.is_floating_point() else place
            documents[name] = torch.where(mask, values[rows], missing)
        return Batch(
            mask, documents, {name: values[at] for name, values in self.queries.items()}, width, self.constants
        )


class Loss(nn.Module):
    """A loss of lists of scores: the torch form of an objective.

    Called with scores, labels and a mask it is a loss like any other of torch; see ``forward``.

    Parameters
    ----------
    objective : Objective
        What it computes, of which it takes what depends on labels alone.
    reduction : "mean", "sum" or "none"
        Over the lists: the mean is the sum divided by their number, whatever they weigh.
    """

    is_sampled = False  # whether values and gradients are estimates

    def __init__(self, objective: Objective, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise InputError(f"reduction={reduction!r}; expected one of {', '.join(REDUCTIONS)}")
        self.objective = objective
        self.reduction = reduction

    @property
    def about_labels(self) -> str:
        """The loss with those of its parameters that labels are prepared by."""
        objective: Any = self.objective
        said = [str(getattr(objective, each.name)) for each in fields(objective) if each.name not in _OF_SCORES]
        return f"{type(self).__name__}({', '.join(said)})"

    def extra_repr(self) -> str:
        """The parameters, for print."""
        objective: Any = self.objective
        said = [f"{each.name}={getattr(objective, each.name)!r}" for each in fields(objective)]
        return ", ".join([*said, f"reduction={self.reduction!r}"])

    @abstractmethod
    def labels(self, queries: Queries) -> Labels:
        """What depends on the labels alone."""

    @abstractmethod
    def evaluate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The loss of each list, and the derivative by each score; those of padding are anything finite."""

    def table(self, length: int, batch: Batch) -> int:
        """How many numbers its largest table has for a list of this length."""
        return length

    def evaluated(
        self, scores: Tensor, batch: Batch, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """The same, without gradients of torch's and in as many parts as memory asks for; 0 for padding."""
        n_lists, length = scores.shape
        with torch.no_grad():
            at_once = max(1, _ROOM // max(1, self.table(length, batch)))
            starts = range(0, n_lists, at_once)
            found = [
                self.evaluate(
                    scores[a : a + at_once], batch.part(a, a + at_once) if len(starts) > 1 else batch, generator
                )
                for a in starts
            ]
            values, slopes = found[0] if len(found) == 1 else (torch.cat(part) for part in zip(*found, strict=True))
            return values, slopes.masked_fill(~batch.mask, 0.0)

    def prepare(self, labels: Any, mask: Any = None, weight: Any = None) -> Prepared:
        """Compute once what depends on labels; ``forward`` takes it in place of them.

        For use in many steps, put it where the scores will be: ``loss.prepare(labels).on("cuda", torch.float32)``.
        """
        return _prepare(self, labels, mask, weight)

    def forward(
        self,
        scores: Tensor,
        labels: Any,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The loss of lists of scores.

        Parameters
        ----------
        scores : tensor of shape (lists, length)
            Larger is ranked earlier. What stands in the place of padding does not matter.
        labels : tensor of shape (lists, length), or Prepared
            Relevance grades from 0 up; or what ``prepare`` made of them.
        mask : tensor, optional
            Which documents there are: bools of shape (lists, length), or the number of documents of each list. Without
            one, documents with labels below 0 are padding.
        weight : tensor of shape (lists,), optional
            What each list counts.
        generator : torch.Generator, optional
            Of the random numbers, where there are any.

        Returns
        -------
        tensor
            A number, or one for each list if nothing is reduced.
        """
        if scores.ndim != 2:
            raise InputError(f"scores have shape {tuple(scores.shape)}; expected (lists, length)")
        dtype = scores.dtype if scores.dtype == torch.float64 else torch.float32
        if isinstance(labels, Prepared):
            prepared = labels.for_loss(self, mask, weight)
        else:
            prepared = self.prepare(labels, mask, weight)
        if prepared.shape != tuple(scores.shape):
            raise InputError(f"scores have shape {tuple(scores.shape)}; the labels have {prepared.shape}")
        values: Tensor = _Value.apply(scores, self, prepared.on(scores.device, dtype), generator)  # type: ignore[no-untyped-call]
        return values if self.reduction == "none" else values.sum() if self.reduction == "sum" else values.mean()


class Prepared(NamedTuple):
    """The labels of some lists, as a loss takes them."""

    loss: str
    shape: tuple[int, int]
    lists: Ints  # those that have documents
    at: Tensor | None  # the documents first, padding last; None where they are so
    batch: Batch

    def for_loss(self, loss: Loss, mask: Any, weight: Any) -> Prepared:
        """Itself, if it was made by such a loss, and nothing is said beside."""
        if self.loss != loss.about_labels:
            raise InputError(f"labels that {self.loss} prepared; expected those of {loss.about_labels}")
        if mask is not None or weight is not None:
            raise InputError("mask and weight are part of prepared labels; expected them in prepare alone")
        return self

    def on(self, device: torch.device | str, dtype: torch.dtype) -> Prepared:
        """The same there, in this precision."""

        def moved(values: Any) -> Any:
            if not isinstance(values, Tensor):
                return values
            return values.to(device, dtype if values.is_floating_point() else values.dtype)

        mask, documents, queries, width, constants = self.batch
        parts = [{name: moved(values) for name, values in part.items()} for part in (documents, queries, constants)]
        return self._replace(at=moved(self.at), batch=Batch(moved(mask), parts[0], parts[1], width, parts[2]))


def _prepare(loss: Loss, labels: Any, mask: Any, weight: Any) -> Prepared:
    grades = np.asarray(_host(labels), dtype=np.float64)
    if grades.ndim != 2:
        raise InputError(f"labels have shape {grades.shape}; expected (lists, length)")
    there = ~(grades < 0.0) if mask is None else np.asarray(_host(mask))
    if there.ndim == 1 and there.dtype.kind in "iu":
        if there.shape != grades.shape[:1] or (there < 0).any() or (there > grades.shape[1]).any():
            raise InputError(f"lengths of lists {there.tolist()}; expected {len(grades)} from 0 to {grades.shape[1]}")
        there = np.arange(grades.shape[1]) < there[:, None]
    if there.shape != grades.shape or there.dtype != bool:
        raise InputError(f"mask has shape {there.shape} and dtype {there.dtype}; expected bools of {grades.shape}")
    lists, sizes = np.flatnonzero(there.any(axis=1)), there.sum(axis=1)
    if not len(lists):
        raise InputError("the mask leaves no documents; expected at least one")
    if not (np.isfinite(grades[there]).all() and (grades[there] >= 0.0).all()):
        raise InputError("labels of documents are negative or not finite; expected grades from 0 up")
    first = np.argsort(~there, axis=1, kind="stable")
    queries = Queries(
        np.zeros((int(sizes.sum()), 1), dtype=np.float32),
        grades[there],
        np.concatenate([[0], np.cumsum(sizes[lists])]),
        lists,
        weight=None if weight is None else _weights(weight, len(grades))[lists],
    )
    every = np.arange(len(lists))
    at = torch.from_numpy(every)
    rows, own = Rows(queries.indptr, "cpu").padded(at, int(sizes.max()))
    found = Lists(loss.labels(queries), "cpu", torch.float64)
    batch = found.batch(at, rows, own, found.widest(every))
    in_front = bool((first == np.arange(grades.shape[1])).all()) and len(lists) == len(grades)
    whole = in_front and sizes.max() == grades.shape[1]
    places = None if whole else torch.from_numpy(first[lists][:, : sizes.max()])
    return Prepared(loss.about_labels, (len(grades), grades.shape[1]), lists, places, batch)


def _weights(weight: Any, n_lists: int) -> Floats:
    found: Floats = np.asarray(_host(weight), dtype=np.float64)
    if found.shape != (n_lists,) or not np.isfinite(found).all() or (found < 0.0).any():
        raise InputError(f"weights of shape {found.shape}; expected {n_lists} finite numbers from 0 up, one per list")
    return found


def _host(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


class _Value(torch.autograd.Function):
    """The values of lists, whose derivatives are known by the time they are."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, loss: Loss, prepared: Prepared, generator: torch.Generator | None) -> Tensor:
        own = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
        with torch.autocast(own.device.type, enabled=False):
            if prepared.at is None:
                values, slopes = loss.evaluated(own, prepared.batch, generator)
            else:
                lists = torch.as_tensor(prepared.lists, device=own.device)
                found = loss.evaluated(own[lists].gather(1, prepared.at), prepared.batch, generator)
                values, slopes = own.new_zeros(len(own)), torch.zeros_like(own)
                values[lists] = found[0]
                slopes[lists] = torch.zeros_like(own[lists]).scatter(1, prepared.at, found[1])
        ctx.save_for_backward(scores, slopes)
        return values

    @staticmethod
    def backward(ctx: Any, *by_value: Tensor) -> tuple[Tensor | None, ...]:
        scores, slopes = ctx.saved_tensors
        return _Slope.apply(by_value[0], scores, slopes), None, None, None  # type: ignore[no-untyped-call]


class _Slope(torch.autograd.Function):
    """The derivatives by the scores. They depend on the scores, but how is not known."""

    @staticmethod
    def forward(ctx: Any, by_value: Tensor, scores: Tensor, slopes: Tensor) -> Tensor:
        return (by_value[:, None] * slopes).to(scores.dtype)

    @staticmethod
    def backward(ctx: Any, *by_slope: Tensor) -> tuple[Tensor | None, ...]:
        raise NotImplementedError("the losses have first derivatives only")
