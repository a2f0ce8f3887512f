"""The display of a fit: a line that is replaced on a terminal, or else a line now and then."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from time import monotonic
from types import TracebackType
from typing import Any, Self, TextIO

from rankwright.basics.progress import listen_also

SHOWN = ("loss", "train", "valid")  # of a round
_EVERY = 1.0  # seconds between lines
_EVERY_LIVE = 0.1  # seconds between changes of a line on a terminal


def format_round(row: Mapping[str, Any], names: tuple[str, ...] | None = None) -> str:
    """Return the numbers of a row of a history as text; only those of ``names``, if given.

    >>> format_round({"round": 3, "feature": 7, "loss": 0.25, "valid": 0.5})
    'feature=7 loss=0.25 valid=0.5'
    """
    chosen = [name for name in row if name != "round"] if names is None else [name for name in names if name in row]
    return " ".join(f"{name}={_format_value(row[name])}" for name in chosen)


def _format_value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def format_seconds(seconds: float) -> str:
    """Return a time as minutes and seconds.

    >>> format_seconds(75.2), format_seconds(3700)
    ('1:15', '1:01:40')
    """
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


class TrainingDisplay:
    """A display of the rounds of one fit: their measure, the time, and the time that is left at most.

    Parameters
    ----------
    ranker : str
        The name of the ranker's class.
    verbose : int
        1 shows a round about once a second; 2 shows every round.
    stream : text stream, optional
        Where to write; standard error by default.
    """

    def __init__(self, ranker: str, verbose: int, stream: TextIO | None = None) -> None:
        self.ranker, self.verbose = ranker, verbose
        self.stream = sys.stderr if stream is None else stream
        self.is_live = verbose == 1 and self.stream.isatty()
        self.start = monotonic()
        self.shown = -math.inf  # when the last line was written
        self.width = 0  # of the line on a terminal
        self.skipped: tuple[int, Mapping[str, Any]] | None = None
        self.share: float | None = None  # of the work that is done
        self._contexts = ExitStack()

    def __enter__(self) -> Self:
        self._contexts.enter_context(listen_also(self.note_progress))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._contexts.__exit__(kind, error, at)
        if self.skipped is not None:
            self.share = None
            self.show(self._describe(*self.skipped))
        if self.width:
            self.stream.write("\n")
            self.stream.flush()

    def note_progress(self, what: str, done: int, total: int) -> None:
        """Note which share of the work is done, as a listener of progress."""
        self.share = done / total if 0 < done < total else None

    def show_round(self, number: int, row: Mapping[str, Any]) -> None:
        """Show a round, or leave it out if another one was shown just before."""
        waited = monotonic() - self.shown
        if self.verbose == 1 and waited < (_EVERY_LIVE if self.is_live else _EVERY):
            self.skipped = number, dict(row)
            return
        self.show(self._describe(number, row))

    def show(self, text: str) -> None:
        """Write a line, on a terminal over the last one."""
        self.skipped, self.shown = None, monotonic()
        line = f"{self.ranker}: {text}"
        if self.is_live:
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def _describe(self, number: int, row: Mapping[str, Any]) -> str:
        """Return a round as text, with the time that it took so far and the time left."""
        seconds = monotonic() - self.start
        time = format_seconds(seconds)
        if self.share is not None:
            time += f", {format_seconds(seconds * (1.0 / self.share - 1.0))} left at most"
        return f"round {number} {format_round(row, SHOWN)} ({time})"
