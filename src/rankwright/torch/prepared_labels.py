"""Labels of padded lists, checked and prepared once for use in many steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.torch.batches import Batch, DeviceLabels, LossLabels, QueryRows


class PreparedLabels(NamedTuple):
    """The labels of padded lists, checked and prepared for one loss, to be used in many steps."""

    made_by: str  # the loss, with the parameters that its labels depend on
    shape: tuple[int, int]
    lists: Ints  # the lists that have documents
    at: Tensor | None  # positions with the documents first, padding last; None if they are in that order
    batch: Batch

    def check_loss(self, loss: str, mask: Any, weight: Any) -> None:
        """Raise if another loss prepared these labels, or if there is a second mask or weight."""
        if self.made_by != loss:
            raise InputError(f"labels that {self.made_by} prepared; expected those of {loss}")
        if mask is not None or weight is not None:
            raise InputError("mask and weight are part of prepared labels; expected them in prepare alone")

    def to(self, device: torch.device | str, dtype: torch.dtype) -> PreparedLabels:
        """Return the labels on this device, in this precision."""

        def move(values: Any) -> Any:
            if not isinstance(values, Tensor):
                return values
            return values.to(device, dtype if values.is_floating_point() else values.dtype)

        mask, documents, queries, width, constants = self.batch
        parts = [{name: move(values) for name, values in part.items()} for part in (documents, queries, constants)]
        return self._replace(at=move(self.at), batch=Batch(move(mask), parts[0], parts[1], width, parts[2]))


def prepare_labels(
    made_by: str, compute: Callable[[Queries], LossLabels], labels: Any, mask: Any, weight: Any
) -> PreparedLabels:
    """Check the labels of padded lists, and return them with the tensors that a loss computes from them."""
    grades = np.asarray(_to_numpy(labels), dtype=np.float64)
    if grades.ndim != 2:
        raise InputError(f"labels have shape {grades.shape}; expected (lists, length)")
    there = ~(grades < 0.0) if mask is None else np.asarray(_to_numpy(mask))
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
        weight=None if weight is None else _check_weights(weight, len(grades))[lists],
    )
    every = np.arange(len(lists))
    at = torch.from_numpy(every)
    rows, own = QueryRows(queries.indptr, "cpu").pad(at, int(sizes.max()))
    found = DeviceLabels(compute(queries), "cpu", torch.float64)
    batch = found.gather(at, rows, own, found.max_width(every))
    in_front = bool((first == np.arange(grades.shape[1])).all()) and len(lists) == len(grades)
    whole = in_front and sizes.max() == grades.shape[1]
    places = None if whole else torch.from_numpy(first[lists][:, : sizes.max()])
    return PreparedLabels(made_by, (len(grades), grades.shape[1]), lists, places, batch)


def _check_weights(weight: Any, n_lists: int) -> Floats:
    found: Floats = np.asarray(_to_numpy(weight), dtype=np.float64)
    if found.shape != (n_lists,) or not np.isfinite(found).all() or (found < 0.0).any():
        raise InputError(f"weights of shape {found.shape}; expected {n_lists} finite numbers from 0 up, one per list")
    return found


def _to_numpy(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
