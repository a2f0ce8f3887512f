"""Batches of lists: labels as padded tensors on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries


class LossLabels(NamedTuple):
    """The arrays that a loss computes from the labels of queries: by document, by query, and constants."""

    documents: Mapping[str, Any]  # arrays by row; whole numbers are positions within the query
    queries: Mapping[str, Floats]
    widths: Ints | None = None  # by query: the number of documents with a row in a table of pairs
    constants: Mapping[str, Any] = {}


class Batch(NamedTuple):
    """A batch of lists, padded to one length, with the tensors that a loss computed from their labels."""

    mask: Tensor  # whether each place has a document: the first ones of each list have
    documents: Mapping[str, Tensor]  # (lists, length)
    queries: Mapping[str, Tensor]  # (lists,)
    width: int
    constants: Mapping[str, Any]

    def slice(self, start: int, stop: int) -> Batch:
        """Return the lists from ``start`` to ``stop``."""
        return self._replace(
            mask=self.mask[start:stop],
            documents={name: values[start:stop] for name, values in self.documents.items()},
            queries={name: values[start:stop] for name, values in self.queries.items()},
        )


class QueryRows:
    """The rows of each query's documents, on a device, from which padded batches are made.

    Parameters
    ----------
    indptr : array of shape (n_queries + 1,)
        The offsets of the queries.
    device
        The device of the row numbers.
    """

    def __init__(self, indptr: Ints, device: Any) -> None:
        self.sizes, self.n_docs, self.device = np.diff(indptr), int(indptr[-1]), device
        self._starts = torch.tensor(indptr[:-1], device=device)
        self._lengths = torch.tensor(self.sizes, device=device)

    def max_length(self, queries: Ints) -> int:
        """Return the length of the longest of these queries."""
        return int(self.sizes[queries].max())

    def pad(self, at: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Return the rows of the documents of queries, padded with other rows, and a mask of their own rows."""
        place = torch.arange(length, device=self.device)
        mask = place < self._lengths[at][:, None]
        return (self._starts[at][:, None] + place).clamp_(max=self.n_docs - 1), mask


class DeviceLabels:
    """The arrays that a loss computed from labels, on a device, from which batches are gathered.

    Parameters
    ----------
    labels : LossLabels
        The labels of some queries.
    device, dtype
        The device and the precision of the tensors.
    """

    def __init__(self, labels: LossLabels, device: Any, dtype: torch.dtype) -> None:
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

    def max_width(self, queries: Ints) -> int:
        """Return the number of rows that a table of pairs needs for these queries."""
        return 0 if self.widths is None else int(self.widths[queries].max())

    def gather(self, at: Tensor, rows: Tensor, mask: Tensor, width: int) -> Batch:
        """Return the batch of these queries, whose documents are in these rows."""
        place = torch.arange(mask.shape[1], device=mask.device)
        documents = {}
        for name, values in self.documents.items():
            missing = values.new_zeros(()) if values.is_floating_point() else place
            documents[name] = torch.where(mask, values[rows], missing)
        return Batch(
            mask, documents, {name: values[at] for name, values in self.queries.items()}, width, self.constants
        )


def find_positions(rows: Ints, queries: Queries) -> Ints:
    """Return row numbers, listed query by query, as positions within their queries, counted from 0."""
    return rows - np.repeat(queries.indptr[:-1], queries.sizes)
