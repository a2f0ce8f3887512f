"""Rounds of training: the measure of each, their history, the one that is kept, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.landscape import Landscape
from rankwright.runtime.backends import Backend, is_abandoned
from rankwright.scorers import Scorer

M = TypeVar("M")
Stop = Callable[[], bool]  # whether to end after the iteration at hand
Keep = Literal["valid", "best", "last"]


def never_stop() -> bool:
    """Return False, as the default rule of stopping: training then goes on until it converges."""
    return False


class RoundListener:
    """A listener to the rounds of a fit, which may end it: this one takes no notice, and never ends it."""

    should_stop = False  # whether training ends after the round at hand

    def note_round(self, recorder: RoundRecorder[Any]) -> None:
        """Take note of the round that was recorded last."""


_NOBODY = RoundListener()
_listener: ContextVar[RoundListener] = ContextVar("round_listener", default=_NOBODY)


@contextmanager
def listen_to_rounds(listener: RoundListener) -> Iterator[None]:
    """Let ``listener`` hear of the rounds of every fit that begins inside the block, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Deadline:
    """A time limit of training, which the listener to its rounds may cut short: calling it returns whether to end.

    Parameters
    ----------
    max_seconds : float or None
        The limit, counted from now; None for no limit.
    """

    def __init__(self, max_seconds: float | None) -> None:
        self.max_seconds, self.has_passed = max_seconds, False
        self.end = math.inf if max_seconds is None else monotonic() + max_seconds
        self.listener = _listener.get()  # here, because other threads do not know it

    def __call__(self) -> bool:
        """Return whether the time is over, the listener ends training, or nobody waits for this thread any more."""
        if not self.has_passed:
            self.has_passed = self.end < math.inf and monotonic() >= self.end
        return self.has_passed or self.listener.should_stop or is_abandoned()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make a copy in another process, where it counts the time that is left from its arrival."""
        return Deadline, (self.remaining(),)

    def remaining(self) -> float | None:
        """Return how many seconds are left, at least 0; None without a limit."""
        return None if self.max_seconds is None else max(self.end - monotonic(), 0.0)

    def shorten(self, share: float) -> Deadline:
        """Return an earlier deadline, after a share of the time that is left; without a limit, one without a limit."""
        left = self.remaining()
        return Deadline(None if left is None else share * left)

    def limit(self, max_seconds: float) -> Deadline:
        """Return a deadline after so many seconds, or at the end of this one if that comes first."""
        left = self.remaining()
        return Deadline(max_seconds if left is None else min(left, max_seconds))

    def explain(self, was_cut: bool = False) -> str | None:
        """Return how the limit ended training, and the way out; None if it did not.

        ``was_cut`` says that work was left out because of the limit, even if the rest was done before it.
        """
        if not (self.has_passed or was_cut) or self.max_seconds is None:
            return None
        return f"stopped after max_seconds={self.max_seconds:g}; raise max_seconds"


class Evaluator(NamedTuple):
    """A function that returns the mean measure of weights on the training queries, and on validation queries if any."""

    train: Landscape
    valid: Landscape | None

    @classmethod
    def of(cls, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> Self:
        """Prepare the measure for the queries; ties are broken pessimistically in training."""
        own = Landscape.of(train, measure.for_training(), backend)
        return cls(own, None if valid is None else Landscape.of(valid, measure, backend))

    def __call__(self, coef: Floats) -> dict[str, float]:
        """Return the mean measure of these weights on the training and validation queries."""
        found = {"train": self.train.evaluate(coef).value}
        return found if self.valid is None else found | {"valid": self.valid.evaluate(coef).value}


def _make_no_scorer() -> Scorer:
    """Raise LookupError, as the default of recorders whose rounds make no scorer."""
    raise LookupError("no scorer of the rounds so far")


class RoundRecorder(Generic[M]):
    """A recorder of training rounds: it keeps the history and the model of the chosen round, and says when to stop.

    Parameters
    ----------
    keep : "valid", "best" or "last"
        The round whose model is kept. "valid": the first one with the highest measure on validation queries, or the
        last one if there are none; "best": the same, but without validation queries the first one with the highest
        measure on training queries; "last": the last one.
    deadline : Deadline, optional
        A time limit. Its listener hears of each round.
    early_stopping_rounds : int, optional
        Stop after so many rounds that were not better than the best one on validation queries.

    Examples
    --------
    >>> recorder = RoundRecorder()
    >>> for w, value in enumerate((0.3, 0.5, 0.4)):
    ...     recorder.record(w, {"round": w, "valid": value})
    >>> recorder.model, recorder.finish()[1]
    (1, {'round': 1, 'valid': 0.5, 'kept': True})
    """

    def __init__(
        self, keep: Keep = "valid", deadline: Deadline | None = None, early_stopping_rounds: int | None = None
    ) -> None:
        self.keep, self.early_stopping_rounds = keep, early_stopping_rounds
        self.deadline = Deadline(None) if deadline is None else deadline
        self.listener = _NOBODY if deadline is None else deadline.listener
        self.make_scorer: Callable[[], Scorer] = _make_no_scorer  # returns the scorer of the round that is kept so far
        self.history: list[dict[str, Any]] = []
        self.n_kept = 0  # rounds up to the one that is kept
        self.n_waited = 0  # rounds since then
        self.value = -math.inf  # of the kept round
        self.kept: M | None = None

    @property
    def model(self) -> M:
        """The model of the round that is kept."""
        if self.kept is None:
            raise LookupError("no round was recorded")
        return self.kept

    def record(self, model: M, row: Mapping[str, Any], *, is_new: bool = True) -> None:
        """Add a round to the history: its model, and its row with ``train`` and ``valid`` where they are known.

        A round that is not new is one of an earlier fit: nobody hears of it, and early stopping does not count it.
        """
        self.history.append(dict(row))
        value = None if self.keep == "last" else row.get("valid", row.get("train") if self.keep == "best" else None)
        self.n_waited += 1
        if value is None or value > self.value or self.n_kept == 0:
            self.kept, self.value = model, -math.inf if value is None else float(value)
            self.n_kept, self.n_waited = len(self.history), 0
        if is_new:
            self.listener.note_round(self)
        else:
            self.n_waited = 0

    def should_stop(self) -> bool:
        """Return whether training ends here: by early stopping, or because the time is over."""
        waited = self.early_stopping_rounds is not None and self.n_waited >= self.early_stopping_rounds
        return waited or self.deadline()

    def finish(self) -> list[dict[str, Any]]:
        """Return the history, in which ``kept`` marks the round that is the model."""
        self.make_scorer = _make_no_scorer  # what it refers to is needed no more
        if self.history:
            self.history[self.n_kept - 1]["kept"] = True
        return self.history
