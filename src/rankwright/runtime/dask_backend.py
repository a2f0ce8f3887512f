"""Dask: a backend whose shards stay on the workers of a cluster.

Shards lie on the workers in groups of neighbours, one group for each thread of the cluster, and a call is one message
to each group, from here to its worker. Results come back shard by shard and are combined in the order of the shards, so
the bits are those of one machine. Every group has a recipe: the parts that were sent, or a call with the recipes of
what it was called on. What stays on the workers is made by the message that uses it first, and what is lost with a
worker is made again in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self, TypeVar

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.runtime.backends import (
    CarriedValues,
    Distributed,
    Divisible,
    Shards,
    Threads,
    count_cores,
    count_shards,
)
from rankwright.runtime.dask_calls import collect_results, make_groups, plan_call, plan_sum
from rankwright.runtime.dask_checkpoints import save_results
from rankwright.runtime.dask_exchange import NewPart, exchange_pieces
from rankwright.runtime.dask_groups import DelayedParts, Group, Recipe, list_groups, list_sent_parts, list_shards
from rankwright.runtime.dask_session import Session

T = TypeVar("T")
R = TypeVar("R")
D = TypeVar("D", bound=Divisible)

_DEEPEST = 50  # calls on results of calls, after which results are kept on this machine, too


@dataclass(frozen=True, slots=True)
class Dask:
    """A backend that keeps the shards of a data set on the workers of a Dask cluster, and works on them there.

    The bits of a model are those of one machine with the same kind of processor, except for some trees
    (``docs/clusters.md``). What does not work on shards runs
    on this machine. Shards of a worker that dies are sent to another one, and the call is repeated.

    Parameters
    ----------
    address : str or distributed.Client
        The address of a scheduler, such as "tcp://host:8786", or a client that is connected to one.

    Examples
    --------
    >>> Dask("tcp://host:8786")
    Dask(address='tcp://host:8786')
    """

    address: Any

    def __post_init__(self) -> None:
        if isinstance(self.address, str) and "://" in self.address:
            return
        if not hasattr(self.address, "get_executor"):
            raise InputError(
                f"Dask({self.address!r}); expected the address of a scheduler, such as 'tcp://host:8786', or a client"
            )
        object.__setattr__(self, "address", Session.of_client(self.address).address)

    def connect(self) -> Self:
        """Connect to the scheduler and check its workers, which the first call does otherwise; return the backend."""
        Session.of_address(self.address)
        return self

    @property
    def n(self) -> int:
        """The number of threads of work on this machine."""
        return count_cores()

    @property
    def n_workers(self) -> int:
        """The number of workers of the cluster."""
        session = Session.of_address(self.address)
        session.update_workers()
        return len(set(session.slots))

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(item)`` in order, on the threads of this machine."""
        return Threads(self.n).map(fn, items)

    def each(self, fn: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return ``fn(item)`` for all items, on the threads of this machine."""
        return Threads(self.n).each(fn, items)

    def scatter(self, queries: D) -> Shards[D]:
        """Send the shards of a data set to the workers, or make them there of what the workers have."""
        if isinstance(queries, Distributed):
            if queries.backend != self:
                raise InputError(f"features are on the workers of {queries.backend!r}, and not of {self!r}")
            return queries.make_shards()
        return self.distribute(queries.shards(count_shards(queries.n_docs)))

    def distribute(self, parts: Iterable[T]) -> Shards[T]:
        """Send parts to the workers when they are used, evenly, neighbours together."""
        return self._distribute(list_sent_parts, list(parts))

    def persist(self, parts: Sequence[Any]) -> Shards[Any]:
        """Return delayed parts of Dask as shards, which it computes when they are used, evenly, neighbours together."""
        return self._distribute(DelayedParts, parts)

    def _distribute(self, describe: Callable[[int, Sequence[Any]], Recipe], parts: Sequence[Any]) -> Shards[Any]:
        """Return groups of parts, whose recipe ``describe`` makes of a slot and the parts."""
        session = Session.of_address(self.address)
        session.update_workers()
        groups = session.cut_into_groups(parts)
        return list_shards([Group(session, describe(slot, group)) for slot, group in groups])

    def exchange(
        self,
        take: Callable[[Any, Any], Any],
        join: Callable[[Sequence[Any], Any], Any],
        shards: Shards[Any],
        parts: Sequence[NewPart],
    ) -> Shards[Any]:
        """Return parts of pieces of others, which travel from worker to worker.

        The function ``take(part, what)`` returns a piece of a part, and ``join(pieces, argument)`` a new part of its
        pieces. They are made when they are used, or by ``wait``.
        """
        return exchange_pieces(Session.of_address(self.address), take, join, shards, parts)

    def wait(self, shards: Shards[Any]) -> None:
        """Make the parts now, if they are not there; raise the error of one that cannot be made."""
        make_groups(list_groups(shards))

    def apply(self, fn: Callable[..., R], shards: Shards[Any], *arguments: Any) -> Shards[R]:
        """Return shards of the results for every part, which stay on the workers; errors are raised by their use."""
        groups = plan_call(fn, shards, arguments)
        if groups and groups[0].recipe.depth > _DEEPEST:
            groups = save_results(groups)
        return list_shards(groups)

    def gather(self, fn: Callable[..., R], shards: Shards[Any], *arguments: Any) -> list[R]:
        """Return the results for every part, in order."""
        found = collect_results(plan_call(fn, shards, arguments))
        return [result for group in found for result in group]

    def sum(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        """Add up the results for every part, in order; where there are many, the workers add up neighbours first."""
        found = collect_results(plan_sum(fn, shards, arguments))
        return reduce(add, [part for group in found for part in group])

    def concat(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        """Concatenate the arrays that are the results for every part, in order."""
        return np.concatenate(self.gather(fn, shards, *arguments))

    def fold(self, fn: Callable[[Any, T], T], shards: Shards[Any], values: Sequence[T]) -> list[T]:
        """Return each value after ``value = fn(part, value)`` for one part after another; a task for each group."""
        found = list(values)
        for group in list_groups(shards):
            found = self.gather(CarriedValues(fn, found), list_shards([group]))[-1]
        return found
