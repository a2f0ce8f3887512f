"""Groups of parts that lie on the workers of a cluster, each with a recipe that makes it, again after a loss.

A group is made when it is first used, by the same message: a recipe is only what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_session import Session
from rankwright.runtime.dask_store import Place


class Recipe:
    """A recipe of a group: how its parts are made, and where they are.

    Parameters
    ----------
    task : callable
        It takes the message and the groups of the parents, and returns the list of parts.
    message : object
        What the task is to do.
    parents : sequence of Recipe
        How the groups are made that it takes.
    slot : int, optional
        The number of the slot that the group belongs to; by default that of its first parent, whose worker has it.
    n_parts : int, optional
        The number of its parts; by default that of its first parent.

    Attributes
    ----------
    depth : int
        The length of the longest chain of parents.
    kept : KeptParts or None
        Where the parts are; None before they are made.
    """

    def __init__(
        self,
        task: Callable[..., Any],
        message: Any,
        parents: Sequence[Recipe] = (),
        slot: int | None = None,
        n_parts: int | None = None,
    ) -> None:
        self.task, self.message, self.parents = task, message, parents
        self.slot: int = parents[0].slot if slot is None else slot
        self.n_parts: int = parents[0].n_parts if n_parts is None else n_parts
        self.depth: int = 1 + max((parent.depth for parent in parents), default=-1)
        self.kept = _NOTHING


class KeptParts(NamedTuple):
    """The place where the parts of a group are kept, and their number there."""

    place: Place
    name: int


_NOTHING: KeptParts | None = None


class DelayedParts(Recipe):
    """A recipe of parts that Dask computes, such as the partitions of a data frame.

    Parameters
    ----------
    slot : int
        The number of the slot that the group belongs to.
    parts : sequence of dask.delayed.Delayed or distributed.Future
        The parts.
    """

    def __init__(self, slot: int, parts: Sequence[Any]) -> None:
        super().__init__(_return_parts, list(parts), (), slot, len(parts))


def _return_parts(message: Sequence[Any]) -> Sequence[Any]:
    """Return parts that were sent, on a worker."""
    return message


def list_sent_parts(slot: int, parts: Sequence[Any]) -> Recipe:
    """Return the recipe of parts that are sent from here, where they are kept."""
    return Recipe(_return_parts, list(parts), (), slot, len(parts))


class Group:
    """A group of neighbouring parts that lie together on one worker, as long as this object is in use.

    Parameters
    ----------
    session : Session
        The connection to the cluster.
    recipe : Recipe
        How they are made.
    parents : sequence of Group
        The groups that they are made of, which are kept until then.
    """

    __slots__ = ("__weakref__", "parents", "recipe", "session")

    def __init__(self, session: Session, recipe: Recipe, parents: Sequence[Group] = ()) -> None:
        self.session, self.recipe, self.parents = session, recipe, parents
        session.groups[id(recipe)] = self
        session.in_use.add(self)

    def __del__(self) -> None:
        kept, self.recipe.kept = self.recipe.kept, None
        if kept is not None:
            self.session.drop(*kept)


def list_shards(groups: Sequence[Group]) -> Shards[Any]:
    """Return the parts of groups as shards."""
    return Shards(tuple((group, part) for group in groups for part in range(group.recipe.n_parts)))


def list_groups(shards: Shards[Any]) -> list[Group]:
    """Return the groups of shards, in order."""
    return [group for group, part in shards.handles if part == 0]
