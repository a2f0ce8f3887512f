"""Damage to trees of lists and tables, and their text as JSON with what JSON does not have."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from fuzz.mutation import EXTREME, NO_NUMBERS, maybe


class Raw(str):
    """Text that is written as it is, whether it is JSON or not."""


_LITERALS: tuple[str, ...] = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e999",
    "1" * 5000,
    "01",
    "+1",
    ".5",
    "0x1",
    "'a'",
    "undefined",
    "",
    "tru",
)
_LITERALS += (
    "[" * 40 + "]" * 40,
    "[" * 20_000,
    '{"a":' * 40 + "1" + "}" * 40,
    '{"a": 1, "a": 1}',
    '"\\ud800"',
    '"\\u0000"',
    "1.0",
)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "1",
    "nan",
    [],
    {},
    [None],
    [[]],
    [0],
    {"a": 1},
    0.0,
    -0.0,
    1.5,
    1e308,
    -1e308,
    5e-324,
)


def strange_value(rng: Random, old: Any = None) -> Any:
    """Return a value that is seldom expected."""
    choice = rng.randrange(6)
    if choice == 0:
        return Raw(rng.choice(_LITERALS))
    if choice == 1:
        return rng.choice(EXTREME)
    if choice == 2:
        return rng.choice(NO_NUMBERS)
    if choice == 3 and isinstance(old, (int, float)) and not isinstance(old, bool):
        return rng.choice((str(old), [old], -old, bool(old), float(old) if abs(old) < 1e300 else 0, {"value": old}))
    return copy.deepcopy(rng.choice(_VALUES))


def change_value(rng: Random, tree: Any) -> None:
    """Change a tree of dicts and lists in one place: another value, one too few, one too many, another name."""
    places = list(_places(tree))
    if not places:
        return
    inside, key = rng.choice(places)
    change = rng.randrange(6)
    if change == 0:
        del inside[key]
    elif change == 1 and isinstance(inside, list):
        inside.insert(key, copy.deepcopy(inside[key]))
    elif change == 1:
        inside[rng.choice(("unknown", "", "\x1b", key + " ", key.upper()))] = inside.pop(key)
    elif change == 2:
        other, name = rng.choice(places)
        inside[key] = copy.deepcopy(other[name])
    else:
        inside[key] = strange_value(rng, inside[key])


def _places(tree: Any) -> Any:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield tree, key
            yield from _places(value)
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield tree, i
            yield from _places(value)


def dump(tree: Any, rng: Random) -> str:
    """Return a tree as JSON, or what is nearly JSON; a key may stand twice."""
    if isinstance(tree, Raw):
        return str(tree)
    if isinstance(tree, dict):
        items = [f"{json.dumps(key)}: {dump(value, rng)}" for key, value in tree.items()]
        if items and maybe(rng, 0.004):
            items.append(rng.choice(items))
        return "{" + ", ".join(items) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(dump(value, rng) for value in tree) + "]"
    return json.dumps(tree)
