"""The error for bad input, the warnings, and hints for names that are nearly right."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import category as unicode_category


class InputError(ValueError):
    """Bad input: the message says what was found, what was expected and where."""


class RankwrightWarning(UserWarning):
    """The base of this library's warnings: the message says what was found, and what to do about it."""


class MissingQueryIdWarning(RankwrightWarning):
    """Documents came without query ids, so all of them count as one query."""


class SplitQueryWarning(RankwrightWarning):
    """Test queries have ids that were trained on with other documents: a split may have cut queries apart."""


class DegenerateModelWarning(RankwrightWarning):
    """Training learned nothing: the model ranks no document above another, or there was nothing to learn."""


class IneffectiveParameterWarning(RankwrightWarning):
    """A parameter was set that has no effect together with the others."""


class KernelCacheWarning(RankwrightWarning):
    """Compiled kernels cannot be kept, so every process compiles them again."""


class StoreWarning(RankwrightWarning):
    """An experiment's file of results was damaged and is replaced by what is intact, or another program holds it."""


class TrialWarning(RankwrightWarning):
    """Trials of an experiment issued warnings: they are in the table ``trials`` of the results."""


class CollectedWarning(NamedTuple):
    """A warning as ``collect_warnings`` keeps it."""

    category: type[Warning]
    message: str


class _Collector(NamedTuple):
    found: list[CollectedWarning]
    issues: bool
    outer: _Collector | None


_collector: ContextVar[_Collector | None] = ContextVar("collector", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the first line outside this library, unless ``collect_warnings`` keeps it."""
    collector = _collector.get()
    while collector is not None:
        collector.found.append(CollectedWarning(category, message))
        if not collector.issues:
            return
        collector = collector.outer
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rankwright":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def collect_warnings(*, issue: bool = False) -> Iterator[list[CollectedWarning]]:
    """Collect what ``warn`` is told by the work inside, in this thread; ``issue`` says whether it is issued as well.

    Unlike ``warnings.catch_warnings`` it changes nothing for other threads.

    >>> with collect_warnings() as found:
    ...     warn("nothing was learned", DegenerateModelWarning)
    >>> found[0].message
    'nothing was learned'
    """
    outer, found = _collector.get(), list[CollectedWarning]()
    token = _collector.set(_Collector(found, issue, outer))
    try:
        yield found
    finally:
        _collector.reset(token)


def printable(text: str, keep: str = "") -> str:
    r"""Return text that does nothing but show itself: control characters, and what reverses the direction, escaped.

    Names in files are others' text: printed as they are, they could move the cursor of a terminal or hide lines.
    Characters in ``keep`` stay.

    >>> printable("bm25" + chr(27) + "[2J" + chr(10))
    'bm25\\x1b[2J\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or _shows_itself(c) else repr(c)[1:-1] for c in text)


def _shows_itself(character: str) -> bool:
    """Whether a character is a sign or a space, or one of the joiners that some scripts and emoji need."""
    return character.isprintable() or character in "\u200c\u200d" or unicode_category(character) == "Zs"


def shown(value: object) -> str:
    """What was found, for a message: quoted, and cut if it is long.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    if isinstance(value, int) and abs(value) >= 10**40:  # Python does not write thousands of digits
        return "a number of more than 40 digits"
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
