"""The error for bad input, and hints for names that are nearly right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input: the message says what was found, what was expected and where."""


def shown(value: object) -> str:
    """What was found, for a message: quoted, and cut if it is long.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def suggest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, or all of them.

    >>> suggest("ndgc", ["ndcg", "map"])
    'did you mean ndcg?'
    >>> suggest("xyz", ["ndcg", "map"])
    'there are ndcg, map'
    """
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
