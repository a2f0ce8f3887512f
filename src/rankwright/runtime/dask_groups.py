"""Groups of parts that lie on the workers of a cluster, each with a recipe that makes it again after a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_session import Session

_LARGE = 1 << 16  # bytes of a message from which on it is sent to the workers once, and not with each task


class SentParts:
    """A recipe of parts that are sent from here, where they are kept.

    Parameters
    ----------
    slot : int
        The number of the slot that the group belongs to.
    parts : sequence
        The parts.
    """

    parents: Sequence[Recipe] = ()
    depth: int = 0

    def __init__(self, slot: int, parts: Sequence[Any]) -> None:
        self.slot, self.parts, self.n_parts = slot, list(parts), len(parts)

    def make(self, session: Session, parents: Sequence[Any]) -> Any:
        """Send the parts, and return their future."""
        return session.send(self.parts, self.slot)


class CallResults:
    """A recipe of the results of a task on groups, such as a call for each part of several groups in step.

    Parameters
    ----------
    task : callable
        It takes the message and the groups, and returns the list of parts.
    message : Message
        The function with its arguments.
    parents : sequence of recipes
        How the groups are made that it is called on.
    slot : int, optional
        The number of the slot that the group belongs to; by default that of its first parent, whose worker has it.
    n_parts : int, optional
        The number of its parts; by default that of its first parent.
    """

    def __init__(
        self,
        task: Callable[..., Any],
        message: Message,
        parents: Sequence[Recipe],
        slot: int | None = None,
        n_parts: int | None = None,
    ) -> None:
        self.task, self.message, self.parents = task, message, parents
        self.slot: int = parents[0].slot if slot is None else slot
        self.n_parts: int = parents[0].n_parts if n_parts is None else n_parts
        self.depth: int = 1 + max((parent.depth for parent in parents), default=-1)

    def make(self, session: Session, parents: Sequence[Any]) -> Any:
        """Begin the task, and return its future."""
        return session.submit(self.slot, self.task, self.message.send(session), *parents)


class DelayedParts:
    """A recipe of parts that Dask computes, such as the partitions of a data frame.

    Parameters
    ----------
    slot : int
        The number of the slot that the group belongs to.
    parts : sequence of dask.delayed.Delayed or distributed.Future
        The parts.
    """

    parents: Sequence[Recipe] = ()
    depth: int = 0

    def __init__(self, slot: int, parts: Sequence[Any]) -> None:
        self.slot, self.parts, self.n_parts = slot, list(parts), len(parts)

    def make(self, session: Session, parents: Sequence[Any]) -> Any:
        """Begin to compute the parts, and return their future."""
        with session.detect_lost_scheduler():
            return session.submit(self.slot, _list_parts, *session.client.compute(self.parts))


def _list_parts(*parts: Any) -> list[Any]:
    """Return parts as a list, on a worker."""
    return list(parts)


Recipe = SentParts | CallResults | DelayedParts


class Message:
    """A pickled function with its arguments; a large one is sent to a worker once, where the others fetch it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.future: Any = None

    def send(self, session: Session) -> Any:
        """Return what a task takes as its message: the bytes, or a future of them."""
        if len(self.content) <= _LARGE:
            return self.content
        if self.future is None or self.future.status != "finished":
            self.future = session.send(self.content, 0)
        return self.future

    def release(self) -> None:
        """Let the cluster forget the message when the tasks that take it have ended."""
        self.future = None


@dataclass(eq=False, slots=True, weakref_slot=True)
class Group:
    """A group of neighbouring parts that lie together on one worker.

    Parameters
    ----------
    session : Session
        The connection to the cluster.
    recipe : SentParts or CallResults
        How they are made.
    future : distributed.Future
        The parts.
    """

    session: Session
    recipe: Recipe
    future: Any


def make_group(session: Session, recipe: Recipe, parents: Sequence[Group] = ()) -> Group:
    """Make a group by its recipe, from the groups of its parents."""
    return add_group(session, recipe, recipe.make(session, [parent.future for parent in parents]))


def add_group(session: Session, recipe: Recipe, future: Any) -> Group:
    """Return a group with this recipe, whose parts are those of a future."""
    group = Group(session, recipe, future)
    session.groups[id(recipe)] = group
    session.in_use.add(group)
    return group


def restore_groups(session: Session, groups: Sequence[Group]) -> None:
    """Make groups again that were lost with workers that died, and what they are made of where that is lost."""
    session.update_workers()
    recipes = _sort_recipes(groups)
    known = [session.groups[id(recipe)] for recipe in recipes if id(recipe) in session.groups]
    finished = [group.future for group in known if group.future.status == "finished"]
    with session.detect_lost_scheduler():
        stored = {key for key, workers in session.client.who_has(finished).items() if workers}
    futures = {
        id(group.recipe): group.future
        for group in known
        if group.future.key in stored or group.future.status == "pending"
    }
    needed = _list_needed(groups, futures)
    for recipe in recipes:  # parents come first
        if id(recipe) in needed:
            future = recipe.make(session, [futures[id(parent)] for parent in recipe.parents])
            futures[id(recipe)] = future
            if id(recipe) in session.groups:
                session.groups[id(recipe)].future = future


def _sort_recipes(groups: Sequence[Group]) -> list[Recipe]:
    """Return the recipes of groups and of all that they are made of, each once, parents first."""
    found: dict[int, Recipe] = {}
    waiting = [group.recipe for group in groups]
    while waiting:
        recipe = waiting.pop()
        if id(recipe) not in found:
            found[id(recipe)] = recipe
            waiting.extend(recipe.parents)
    return sorted(found.values(), key=lambda recipe: recipe.depth)


def _list_needed(groups: Sequence[Group], futures: dict[int, Any]) -> set[int]:
    """Return the identities of the recipes that have to be made again, so that groups have a future."""
    needed: set[int] = set()
    waiting = [group.recipe for group in groups]
    while waiting:
        recipe = waiting.pop()
        if id(recipe) not in futures and id(recipe) not in needed:
            needed.add(id(recipe))
            waiting.extend(recipe.parents)
    return needed


def list_shards(groups: Sequence[Group]) -> Shards[Any]:
    """Return the parts of groups as shards."""
    return Shards(tuple((group, part) for group in groups for part in range(group.recipe.n_parts)))


def list_groups(shards: Shards[Any]) -> list[Group]:
    """Return the groups of shards, in order."""
    return [group for group, part in shards.handles if part == 0]
