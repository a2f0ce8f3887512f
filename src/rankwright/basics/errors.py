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

from rankwright.basics.synonyms import find_synonym


class InputError(ValueError):
    """The error for bad input: its message says what was found, what was expected and where."""


class NoDocumentsError(InputError):
    """The error for a file without documents."""


class RankwrightWarning(UserWarning):
    """The base of this library's warnings: the message says what was found, and what to do about it."""


class MissingQueryIdWarning(RankwrightWarning):
    """A warning that documents came without query ids, so all of them count as one query."""


class SplitQueryWarning(RankwrightWarning):
    """A warning that some test queries were also trained on, with other documents: a split may have cut them apart."""


class DegenerateModelWarning(RankwrightWarning):
    """A warning that training learned nothing: the model ranks no document above another."""


class IneffectiveParameterWarning(RankwrightWarning):
    """A warning that a parameter has no effect, given the values of the other parameters."""


class InterruptedFitWarning(RankwrightWarning):
    """A warning that a fit was interrupted by Ctrl-C, and that its model is the best of what there was."""


class FailedCandidateWarning(RankwrightWarning):
    """A warning that an automatic search left out a candidate because its fit failed."""


class KernelCacheWarning(RankwrightWarning):
    """A warning that compiled kernels cannot be kept, so every process compiles them again."""


class StoreWarning(RankwrightWarning):
    """A warning that an experiment's file of results was damaged and repaired, or that another program holds it."""


class InspectionWarning(RankwrightWarning):
    """A warning that data look wrong, such as a feature that gives the label away; ``inspect`` says more."""


class TrialWarning(RankwrightWarning):
    """A warning that trials issued warnings, which are in the table ``trials`` of the results."""


class FixedModelWarning(RankwrightWarning):
    """A warning that an experiment tests a model that was trained elsewhere, perhaps on the test queries."""


class UnnamedFeaturesWarning(RankwrightWarning):
    """A warning that a model has no names of features, so columns with names are taken in their order."""


class IgnoredFileWarning(RankwrightWarning):
    """A warning that a file beside the data, such as LightGBM's initial scores, is not used."""


class PartialResponseWarning(RankwrightWarning):
    """A warning that search responses in a feature log are partial: some of their documents are missing."""


class ClickLogWarning(RankwrightWarning):
    """A warning that a click log has faults, such as duplicate rows; the message says what was done about them."""


class CollectedWarning(NamedTuple):
    """A warning kept by ``collect_warnings``: its category and its message."""

    category: type[Warning]
    message: str


class _Collector(NamedTuple):
    """The warnings that a ``collect_warnings`` block has found, and the block around it."""

    found: list[CollectedWarning]
    issues: bool
    outer: _Collector | None


_collector: ContextVar[_Collector | None] = ContextVar("collector", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the first line outside this library, or keep it for ``collect_warnings``."""
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
    """Collect this library's warnings inside the block, in this thread; with ``issue`` they are issued as well.

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


def make_printable(text: str, keep: str = "") -> str:
    r"""Return text that is safe to print: control characters and marks of direction are escaped.

    Names in files are written by others: unescaped, they could move the cursor of a terminal or hide lines.
    Characters in ``keep`` stay.

    >>> make_printable("bm25" + chr(27) + "[2J" + chr(10))
    'bm25\\x1b[2J\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or _is_visible(c) else repr(c)[1:-1] for c in text)


def _is_visible(character: str) -> bool:
    """Return whether a character is visible, a space, or a joiner that some scripts and emoji need."""
    return character.isprintable() or character in "\u200c\u200d" or unicode_category(character) == "Zs"


def quote(value: object) -> str:
    """Return the ``repr`` of a value for an error message, cut if it is long.

    >>> quote("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    if isinstance(value, int) and abs(value) >= 10**40:  # Python does not write thousands of digits
        return "a number of more than 40 digits"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the known name that was probably meant, or else all known names.

    >>> suggest("ndgc", ["ndcg", "map"])
    'did you mean ndcg?'
    >>> suggest("eta", ["n_epochs", "learning_rate"])
    'it is called learning_rate here'
    >>> suggest("xyz", ["ndcg", "map"])
    'there are ndcg, map'
    """
    names = list(known)
    synonym = find_synonym(name, names)
    if synonym is not None:
        return f"it is called {synonym} here"
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
