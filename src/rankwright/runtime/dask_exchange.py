"""Exchange: parts made of pieces of other parts, which travel from worker to worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_groups import Group, Recipe, list_groups, list_shards
from rankwright.runtime.dask_messages import pack, unpack
from rankwright.runtime.dask_session import Session


class NewPart(NamedTuple):
    """A part that is to be made: the numbers of parts with what is taken of each, and an argument for joining them."""

    pieces: Sequence[tuple[int, Any]]
    argument: Any


def exchange_pieces(
    session: Session,
    take: Callable[[Any, Any], Any],
    join: Callable[[Sequence[Any], Any], Any],
    shards: Shards[Any],
    parts: Sequence[NewPart],
) -> Shards[Any]:
    """Return parts, each made of the pieces that ``take(part, what)`` returns, by ``join(pieces, argument)``."""
    groups = list_groups(shards)
    places = [(at, place) for at, group in enumerate(groups) for place in range(group.recipe.n_parts)]
    made = []
    for slot, own in session.cut_into_groups(parts):
        wanted: dict[int, list[tuple[int, int, int, Any]]] = {}  # by group: new part, piece, place in the group, what
        for new, part in enumerate(own):
            for piece, (old, what) in enumerate(part.pieces):
                at, place = places[old]
                wanted.setdefault(at, []).append((new, piece, place, what))
        pieces = [_take_pieces(session, take, groups[at], entries) for at, entries in wanted.items()]
        message = pack(join, [part.argument for part in own])
        recipe = Recipe(_join_group, message, [each.recipe for each in pieces], slot, len(own))
        made.append(Group(session, recipe, pieces))
    return list_shards(made)


def _take_pieces(session: Session, take: Callable[[Any, Any], Any], group: Group, entries: Sequence[Any]) -> Group:
    """Return the group of pieces of the parts of a group, on its worker."""
    return Group(session, Recipe(_take_from_group, pack(take, entries), [group.recipe], n_parts=len(entries)), [group])


def _take_from_group(message: bytes, parts: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """Return pieces of parts, each with the number of its new part and its own number in that; on a worker."""
    take, entries = unpack(message)
    return [(new, piece, take(parts[place], what)) for new, piece, place, what in entries]


def _join_group(message: bytes, *taken: Sequence[tuple[int, int, Any]]) -> list[Any]:
    """Return new parts of their pieces, on a worker."""
    join, arguments = unpack(message)
    pieces: list[dict[int, Any]] = [{} for _ in arguments]
    for new, piece, content in (entry for group in taken for entry in group):
        pieces[new][piece] = content
    return [join([own[at] for at in sorted(own)], argument) for own, argument in zip(pieces, arguments, strict=True)]
