"""Result lists that simulated users are shown: the best documents of a ranker, some of them in random order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries

SWAPS = ("first", "adjacent", "all")
_CHUNK = 1 << 21  # shown documents that are drawn at a time


class ShownLists(NamedTuple):
    """A table of different result lists, a row of each array per list, -1 after its end."""

    query: Ints  # (n_lists,)
    ranker: Ints  # (n_lists,)
    rows: Ints  # (n_lists, n_positions): the row of the document at each position
    group: Ints  # (n_lists, n_positions): the number of the shuffled group; 0 where the position is fixed
    n_sessions: Ints  # (n_lists,): how many sessions see this list


def rank_documents(
    grouped: Queries, columns: list[Floats], per_query: Ints, n_positions: int, rng: np.random.Generator
) -> ShownLists:
    """Return the list of each query and ranker, with the number of sessions that see it."""
    row_query = np.repeat(np.arange(len(grouped)), grouped.sizes)
    place = np.arange(grouped.n_docs) - np.repeat(grouped.indptr[:-1], grouped.sizes)
    top = place < n_positions
    lists = []
    for scores in columns:
        order = np.lexsort((np.arange(len(scores)), -scores, row_query))
        rows = np.full((len(grouped), n_positions), -1, np.int64)
        rows[row_query[top], place[top]] = order[top]
        lists.append(rows)
    n_rankers = len(columns)
    count = rng.multinomial(per_query, np.full(n_rankers, 1.0 / n_rankers)).T
    chosen = count.ravel() > 0
    rows = np.concatenate(lists)[chosen]
    query, ranker = np.tile(np.arange(len(grouped)), n_rankers), np.repeat(np.arange(n_rankers), len(grouped))
    return ShownLists(query[chosen], ranker[chosen], rows, np.zeros_like(rows), count.ravel()[chosen])


def swap_documents(
    shown: ShownLists, swaps: str | None, share: float, rng: np.random.Generator
) -> Iterator[ShownLists]:
    """Yield the lists as they are shown: some with documents in random order."""
    if swaps is None:
        yield shown
        return
    count = rng.binomial(shown.n_sessions, share)
    yield _keep_shown(shown._replace(n_sessions=shown.n_sessions - count))
    swapped = _keep_shown(shown._replace(n_sessions=count))
    if not len(swapped.n_sessions):
        return
    if swaps == "first":
        yield from _swap_first(swapped, rng)
        return
    each = np.repeat(np.arange(len(swapped.n_sessions)), swapped.n_sessions)
    step = max(1, _CHUNK // shown.rows.shape[1])
    for start in range(0, len(each), step):
        lists = ShownLists(*(values[each[start : start + step]] for values in swapped))
        lists = lists._replace(n_sessions=np.ones(len(lists.n_sessions), np.int64))
        yield _swap_adjacent(lists, rng) if swaps == "adjacent" else _shuffle_all(lists, rng)


def _keep_shown(lists: ShownLists) -> ShownLists:
    """Return the lists that any session sees."""
    chosen = lists.n_sessions > 0
    return ShownLists(*(values[chosen] for values in lists))


def _swap_first(lists: ShownLists, rng: np.random.Generator) -> Iterator[ShownLists]:
    """Yield lists whose first document has changed places with another one by a coin; group k is position k + 1."""
    lengths = (lists.rows >= 0).sum(axis=1)
    chances = (np.arange(1, lists.rows.shape[1]) < lengths[:, None]) / np.maximum(lengths - 1, 1)[:, None]
    alone = lengths < 2
    yield _keep_shown(lists._replace(n_sessions=np.where(alone, lists.n_sessions, 0)))
    counts = np.zeros(chances.shape, np.int64)
    if not alone.all():
        counts[~alone] = rng.multinomial(lists.n_sessions[~alone], chances[~alone])
    for k in range(1, lists.rows.shape[1]):
        group = np.zeros_like(lists.group)
        group[:, [0, k]] = k
        n_swapped = rng.binomial(counts[:, k - 1], 0.5)
        rows = lists.rows.copy()
        rows[:, [0, k]] = rows[:, [k, 0]]
        yield _keep_shown(lists._replace(group=group, n_sessions=counts[:, k - 1] - n_swapped))
        yield _keep_shown(lists._replace(rows=rows, group=group, n_sessions=n_swapped))


def _swap_adjacent(lists: ShownLists, rng: np.random.Generator) -> ShownLists:
    """Return lists of which neighbours have changed places by a coin: 1 and 2, 3 and 4, ... or 2 and 3, 4 and 5, ..."""
    rows, group = lists.rows.copy(), np.zeros_like(lists.group)
    offset = rng.integers(0, 2, len(rows))
    for k in range(rows.shape[1] - 1):
        has_pair = (offset == k % 2) & (rows[:, k + 1] >= 0)
        group[has_pair, k] = group[has_pair, k + 1] = k + 1
        flipped = np.flatnonzero(has_pair & (rng.random(len(rows)) < 0.5))
        rows[flipped, k], rows[flipped, k + 1] = rows[flipped, k + 1], rows[flipped, k]
    return lists._replace(rows=rows, group=group)


def _shuffle_all(lists: ShownLists, rng: np.random.Generator) -> ShownLists:
    """Return lists in random order; group k has those of k documents."""
    keys = np.where(lists.rows >= 0, rng.random(lists.rows.shape), 2.0)
    rows = np.take_along_axis(lists.rows, np.argsort(keys, axis=1), axis=1)
    lengths = (rows >= 0).sum(axis=1)
    return lists._replace(rows=rows, group=np.where(rows >= 0, lengths[:, None], 0))


def name_groups(swaps: str, n_positions: int) -> list[str]:
    """Return the names of the shuffled groups, from group 1: the positions that were in random order."""
    if swaps == "first":
        return [f"1,{k + 1}" for k in range(1, n_positions)]
    if swaps == "adjacent":
        return [f"{k},{k + 1}" for k in range(1, n_positions)]
    return [f"1-{k}" for k in range(1, n_positions + 1)]


def split_chunks(parts: Iterator[ShownLists]) -> Iterator[ShownLists]:
    """Yield lists in chunks of a bounded number of shown documents."""
    for lists in parts:
        step = max(1, _CHUNK // lists.rows.shape[1])
        for start in range(0, len(lists.n_sessions), step):
            yield ShownLists(*(values[start : start + step] for values in lists))
