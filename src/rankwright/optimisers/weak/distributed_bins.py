"""Bins of features on several machines: those that LightGBM would find on one machine with all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.optimisers.weak.lightgbm_bins import draw_rows, make_bins, open_bins
from rankwright.runtime.communicator import Communicator
from rankwright.scorers.lightgbm_text import are_valid_names

Rows = list[tuple[int, int]]  # of a machine: the first row of each of its shards and the row after the last


def agree_on_bins(
    communicator: Communicator, parts: Sequence[Queries], rows: Sequence[Rows], params: Mapping[str, Any]
) -> bytes:
    """Return the bins of all machines, which the first one finds from the rows that one machine would draw.

    Parameters
    ----------
    communicator : Communicator
        The connections of this machine.
    parts : sequence of Queries
        Its shards.
    rows : sequence
        The rows of each machine, by rank.
    params : mapping
        LightGBM's parameters.
    """
    n_docs = max(stop for each in rows for _, stop in each)
    drawn = draw_rows(n_docs, params)
    own = np.concatenate(
        [
            part.X[drawn[slice(*np.searchsorted(drawn, each))] - each[0]]
            for part, each in zip(parts, rows[communicator.rank], strict=True)
        ]
    )
    if communicator.rank > 0:
        communicator.gather_at_first(_view_bytes(own), [])
        return communicator.broadcast(None)
    places = [_find_places(drawn, each) for each in rows]
    found = [own, *(np.empty((len(place), own.shape[1]), own.dtype) for place in places[1:])]
    communicator.gather_at_first(_view_bytes(own), [_view_bytes(each) for each in found])
    sample = np.empty((len(drawn), own.shape[1]), own.dtype)
    for place, values in zip(places, found, strict=True):
        sample[place] = values
    return communicator.broadcast(make_bins(sample, n_docs, params))


def fill_bins(bins: bytes, parts: Sequence[Queries], params: Mapping[str, Any]) -> Any:
    """Return LightGBM's Dataset of the documents of one machine in these bins."""
    data = open_bins(bins, sum(part.n_docs for part in parts), params)
    for part in parts:
        data._push_rows(np.ascontiguousarray(part.X))
    names = parts[0].features
    if names and are_valid_names(names):
        data.set_feature_name(list(names))
    return data


def _find_places(drawn: Ints, rows: Rows) -> Ints:
    """Return the places of a machine's rows among those that were drawn."""
    return np.concatenate([np.arange(*np.searchsorted(drawn, each)) for each in rows])


def _view_bytes(values: Floats) -> memoryview:
    """Return the memory of an array as bytes."""
    return memoryview(np.ascontiguousarray(values).data).cast("B") if values.size else memoryview(b"")
