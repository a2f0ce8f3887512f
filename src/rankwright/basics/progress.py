"""Progress of long work: the worker reports, whoever called decides what to show.

Rankers and readers wrap their loops in :func:`track`; without a listener it costs nothing. The command line
listens with a progress bar on a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Send every ``(what, done, total)`` that is reported inside the block to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(what: str, done: int, total: int) -> None:
    """Tell the listener, if there is one, that ``done`` of ``total`` parts of some work are done."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


@contextmanager
def listen_also(listener: Listener) -> Iterator[None]:
    """Send every report inside the block to ``listener``, and to the listener that there was."""
    outer = _listener.get()

    def tell_both(what: str, done: int, total: int) -> None:
        listener(what, done, total)
        if outer is not None:
            outer(what, done, total)

    with listen(tell_both):
        yield


@contextmanager
def add_label(label: str) -> Iterator[None]:
    """Put ``label`` before the name of all work whose progress is reported inside the block."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    with listen(lambda what, done, total: listener(f"{label}: {what}", done, total)):
        yield


@contextmanager
def mute() -> Iterator[None]:
    """Suppress all progress that is reported inside the block."""
    token = _listener.set(None)
    try:
        yield
    finally:
        _listener.reset(token)


def track(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield the items, and report progress after each; leaving early reports the work as finished.

    >>> with listen(lambda what, done, total: print(what, done, "of", total)):
    ...     for _ in track(range(2), "rounds", 2):
    ...         pass
    rounds 0 of 2
    rounds 1 of 2
    rounds 2 of 2
    """
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    listener(what, 0, total)
    try:
        for done, item in enumerate(items, 1):
            yield item
            if done < total:
                listener(what, done, total)
    finally:
        listener(what, total, total)
