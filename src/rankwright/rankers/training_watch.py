"""Watching a fit: callbacks, log and display after each round, and Ctrl-C, which ends it with the model so far."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from numbers import Real
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Self

from rankwright.basics.errors import InputError, InterruptedFitWarning, quote, warn
from rankwright.models.model import Model
from rankwright.optimisers.rounds import RoundListener, RoundRecorder, listen_to_rounds
from rankwright.rankers.training_display import TrainingDisplay, format_round
from rankwright.runtime.compilation import listen_to_compilation
from rankwright.scorers import Scorer

LOGGER = logging.getLogger("rankwright.training")
COMPILING = "compiling kernels, once, which takes some seconds"

BuildModel = Callable[[Scorer, list[dict[str, Any]]], Model]


@dataclass(slots=True, eq=False)
class TrainingRound:
    """A round of training, as callbacks get it.

    Parameters
    ----------
    ranker : str
        The name of the ranker's class.
    number : int
        The number of the round, as in the row of the history.
    record : dict
        A copy of the row of the history: losses, ``train`` and ``valid`` (the measure), and what else the method has.
    seconds : float
        The seconds since training began.
    """

    ranker: str
    number: int
    record: dict[str, Any]
    seconds: float
    _recorder: RoundRecorder[Any] | None = field(repr=False)
    _build: BuildModel = field(repr=False)

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of the record but the round's own, as trackers of experiments take them."""
        named = ((name, value) for name, value in self.record.items() if name != "round")
        return {name: float(value) for name, value in named if isinstance(value, Real) and not isinstance(value, bool)}

    def make_model(self) -> Model:
        """Return the model that training would end with after this round; only inside the callback.

        Where training restarts, it is the best of this restart.
        """
        recorder = self._recorder
        if recorder is None:
            raise InputError(f"round {self.number} is over; call make_model inside the callback")
        rows = [dict(row) for row in recorder.history]
        rows[recorder.n_kept - 1]["kept"] = True
        return self._build(recorder.make_scorer(), rows)


Callback = Callable[[TrainingRound], object]


def check_callbacks(value: Any) -> tuple[Callback, ...]:
    """Return the parameter ``callbacks`` as a tuple; raise InputError if it is not a sequence of callables."""
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not all(map(callable, value)):
        raise InputError(f"callbacks={quote(value)}; expected a list of functions of a TrainingRound")
    return tuple(value)


def check_verbose(value: Any) -> int:
    """Return the parameter ``verbose`` as an int; raise InputError if it is not 0, 1 or 2, or a bool."""
    if not isinstance(value, (bool, int)) or value not in (0, 1, 2):
        raise InputError(f"verbose={quote(value)}; expected 0, 1 or 2")
    return int(value)


class TrainingWatch(RoundListener):
    """A listener to the rounds of one fit: it tells callbacks, log and display, and ends training where asked to.

    Parameters
    ----------
    ranker : str
        The name of the ranker's class.
    callbacks : sequence of callable
        The callbacks.
    verbose : int
        0, 1 or 2, as of the ranker.
    build : callable
        Returns the model of a scorer and a history.
    """

    def __init__(self, ranker: str, callbacks: Sequence[Callback], verbose: int, build: BuildModel) -> None:
        self.ranker, self.callbacks, self.build = ranker, callbacks, build
        self.display = TrainingDisplay(ranker, verbose) if verbose else None
        self.should_stop, self.was_interrupted, self.n_rounds = False, False, 0
        self.start = monotonic()
        self._is_logged = LOGGER.isEnabledFor(logging.INFO)
        self._is_watched = bool(callbacks) or verbose > 0 or self._is_logged
        self._turn = threading.Lock()  # restarts report from several threads
        self._contexts = ExitStack()

    def __enter__(self) -> Self:
        contexts = self._contexts
        contexts.enter_context(listen_to_rounds(self))
        if self.display is not None:
            contexts.enter_context(self.display)
        if self.display is not None or self._is_logged:
            contexts.enter_context(listen_to_compilation(self._note_compilation))
        contexts.enter_context(_handle_interrupt(self.handle_interrupt))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._contexts.__exit__(kind, error, at)

    def note_round(self, recorder: RoundRecorder[Any]) -> None:
        """Tell everyone who watches of the round that was recorded last."""
        self.n_rounds += 1
        if not self._is_watched:
            return
        with self._turn:
            row = recorder.history[-1]
            number = int(row.get("round", len(recorder.history)))
            if self._is_logged:
                LOGGER.info("%s round %d: %s", self.ranker, number, format_round(row))
            if self.display is not None:
                self.display.show_round(number, row)
            if self.callbacks:
                seconds = monotonic() - self.start
                found = TrainingRound(self.ranker, number, dict(row), seconds, recorder, self.build)
                for callback in self.callbacks:
                    if is_true(callback(found)):
                        self.should_stop = True
                found._recorder = None

    def handle_interrupt(self, number: int, frame: FrameType | None) -> None:
        """End training after the round at hand; before the first round, and the second time, at once."""
        if self.n_rounds == 0 or self.was_interrupted:
            raise KeyboardInterrupt
        self.was_interrupted = self.should_stop = True
        LOGGER.warning("interrupted: training ends after the round at hand; once more ends it without a model")

    def warn_if_interrupted(self) -> None:
        """Issue a warning if Ctrl-C ended training."""
        if self.was_interrupted:
            message = f"{self.ranker} was interrupted: the model is the best of the rounds so far"
            warn(message, InterruptedFitWarning)

    def _note_compilation(self) -> None:
        if self._is_logged:
            LOGGER.info("%s: %s", self.ranker, COMPILING)
        if self.display is not None:
            self.display.show(COMPILING)


def is_true(answer: object) -> bool:
    """Return whether a callback answered True, or NumPy's True: other objects that it may return end nothing."""
    return answer is True or (type(answer).__name__ in ("bool", "bool_") and bool(answer))


@contextmanager
def _handle_interrupt(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call ``handler`` for Ctrl-C inside the block, where a user called ``fit`` and Ctrl-C is Python's own affair."""
    is_free = threading.current_thread() is threading.main_thread()
    is_free = is_free and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_free or not _is_called_by_user():
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_OWN = (__name__, "rankwright.rankers.base", "contextlib")
_SEARCHES = ("rankwright", "sklearn", "joblib")  # their fits are parts of longer work, which Ctrl-C ends as a whole


def _is_called_by_user() -> bool:
    """Return whether ``fit`` was called by a user's code or the command line, and not by a search over many fits."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and _get_module(frame) in _OWN:
        frame = frame.f_back
    while frame is not None:
        name = _get_module(frame)
        if name.partition(".")[0] in _SEARCHES and not name.startswith(("rankwright.cli", "rankwright.__main__")):
            return False
        frame = frame.f_back
    return True


def _get_module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
