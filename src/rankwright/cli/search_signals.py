"""Signals during a search: Ctrl-C and SIGTERM end it with a model."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from rankwright.cli.app import print_error

_NOW = "interrupted: the search ends with the best of what was fitted so far; once more ends it without a model"
_SOON = "interrupted: the search is over, and its model is on the way; once more ends without it"


class SearchSignals:
    """A handler of Ctrl-C and SIGTERM during a search.

    A signal before the search raises ``KeyboardInterrupt``. So does the first one during the search, which then returns
    what it has. The first one after the search is only noted, so that the model is written; a second one ends that too.

    Parameters
    ----------
    search_code : CodeType
        The code of the function that searches, and that returns what it has when it is interrupted.
    progress_prefix : str
        How reports of progress begin that say that something was fitted.
    """

    def __init__(self, search_code: CodeType, progress_prefix: str) -> None:
        self.search_code, self.progress_prefix = search_code, progress_prefix
        self.has_begun = False  # whether anything was fitted
        self.n_received = 0
        self.status = 130  # of a command that a signal ended

    def note_progress(self, what: str, done: int, total: int) -> None:
        """Note that something was fitted, as a listener of progress."""
        self.has_begun |= what.startswith(self.progress_prefix)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.n_received += 1
        self.status = 128 + number
        is_searching = self._is_searching(frame)
        if self.n_received == 1 and self.has_begun:
            print_error(_NOW if is_searching else _SOON)
        if self.n_received > 1 or not self.has_begun or is_searching:
            raise KeyboardInterrupt

    def _is_searching(self, frame: FrameType | None) -> bool:
        """Return whether the search is among the functions that the signal interrupted."""
        while frame is not None and frame.f_code is not self.search_code:
            frame = frame.f_back
        return frame is not None


@contextmanager
def handle_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call ``handler`` for Ctrl-C and SIGTERM inside the block; outside of the main thread nothing changes."""
    former = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            former[number] = signal.signal(number, handler)
    except ValueError:  # only the main thread receives signals
        pass
    try:
        yield
    finally:
        for number, each in former.items():
            signal.signal(number, each)
