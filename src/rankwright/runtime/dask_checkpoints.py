"""Checkpoints: results of long chains of calls, kept on this machine without the arrays of what they were made of."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwright.basics.optional_imports import require
from rankwright.runtime.dask_calls import collect_results, make_groups
from rankwright.runtime.dask_groups import Group, Recipe

_SHALLOW = 25  # calls on results of calls, up to which results may be what others refer to


def save_results(groups: Sequence[Group]) -> list[Group]:
    """Return the same groups with recipes that repeat no call: their content is here.

    Arrays that the data sets of these calls have, such as features, are not part of it. They are taken from there.
    """
    make_groups(groups)
    bases = [_list_bases(group) for group in groups]
    detached = [
        Group(group.session, Recipe(_detach, b"", [group.recipe, *(each.recipe for each in own)]), [group, *own])
        for group, own in zip(groups, bases, strict=True)
    ]
    return [
        _replace_recipe(
            group, Recipe(_attach, content, [each.recipe for each in own], group.recipe.slot, group.recipe.n_parts)
        )
        for group, own, content in zip(groups, bases, collect_results(detached), strict=True)
    ]


def _replace_recipe(group: Group, recipe: Recipe) -> Group:
    """Return the group of the parts of another one, which gives them up, with another recipe."""
    recipe.kept, group.recipe.kept = group.recipe.kept, None
    return Group(group.session, recipe)


def _list_bases(group: Group) -> list[Group]:
    """Return the groups in use that a group was made of, except by long chains of calls."""
    found: dict[int, Group] = {}
    seen: set[int] = set()
    waiting: list[Recipe] = [group.recipe]
    while waiting:
        recipe = waiting.pop()
        if id(recipe) in seen:
            continue
        seen.add(id(recipe))
        waiting.extend(recipe.parents)
        known = group.session.groups.get(id(recipe))
        if known is not None and recipe.depth <= _SHALLOW and recipe.slot == group.recipe.slot:
            found[id(recipe)] = known
    return list(found.values())


def _detach(message: bytes, parts: Sequence[Any], *bases: Sequence[Any]) -> bytes:
    """Return parts as bytes, without the arrays that are in the bases; on a worker."""
    arrays = _list_arrays(bases)
    places = {_describe(array): place for place, array in reversed(list(enumerate(arrays)))}
    return _dump(parts, lambda array: places.get(_describe(array)))


def _attach(message: bytes, *bases: Sequence[Any]) -> list[Any]:
    """Return the parts that ``_detach`` packed, with the arrays of the bases; on a worker."""
    arrays = _list_arrays(bases) if bases else []

    class Unpickler(pickle.Unpickler):
        """A reader of pickled parts."""

        def persistent_load(self, pid: Any) -> Any:
            return arrays[pid]

    parts: list[Any] = Unpickler(io.BytesIO(message)).load()
    return parts


def _list_arrays(bases: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the arrays in some objects, in the order in which pickle finds them."""
    found: list[np.ndarray[Any, Any]] = []

    def note(array: np.ndarray[Any, Any]) -> int:
        found.append(array)
        return 0

    _dump(bases, note)
    return found


def _describe(array: np.ndarray[Any, Any]) -> Any:
    """Return what tells arrays apart: equal for two that share the same memory."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype.str


def _dump(content: Any, refer: Any) -> bytes:
    """Return pickled content; an array for which ``refer`` returns no None is replaced by that."""

    class Pickler(require("cloudpickle").Pickler):  # type: ignore[misc]
        """A writer that replaces arrays."""

        def persistent_id(self, obj: Any) -> Any:
            return refer(obj) if type(obj) is np.ndarray and obj.dtype != object else None

    out = io.BytesIO()
    Pickler(out).dump(content)
    return out.getvalue()
