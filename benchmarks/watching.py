"""Watching a fit: what callbacks, ``verbose=1`` and the log cost, as a share of the fit's time."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr
from functools import partial
from statistics import median
from time import thread_time  # of one thread: other work on the machine does not count
from typing import Any
from unittest.mock import patch

import rankwright as rw
from benchmarks.report import Row, Table, publish
from rankwright.rankers.training_watch import TrainingWatch

RANKERS = ("AdaRank", "RankBoost", "LambdaMART", "ListNet", "RankSVM")
SIZES = (300, 3000)  # queries
REPETITIONS = 3
LIMIT = 0.01  # of the time of a fit
_LOGGER = logging.getLogger("rankwright.training")


class Stopwatch:
    """Adds up the seconds inside some methods of ``TrainingWatch``, which are all that watching a fit takes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def time(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with its seconds added up."""

        def timed(*arguments: Any) -> Any:
            start = thread_time()
            try:
                return method(*arguments)
            finally:
                self.seconds += thread_time() - start

        return timed

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Time the methods inside the block."""
        names = ("__enter__", "__exit__", "note_round")
        with ExitStack() as patches:
            for name in names:
                patches.enter_context(patch.object(TrainingWatch, name, self.time(getattr(TrainingWatch, name))))
            yield


def measure_share(ranker: str, train: rw.Queries, way: str) -> tuple[float, float, int]:
    """Return the share of a fit's time that watching it in one way takes, the seconds of the fit, and its rounds."""
    rounds: list[int] = []
    ways: dict[str, dict[str, Any]] = {
        "callback": {"callbacks": [lambda found: rounds.append(found.number)]},
        "display": {"verbose": 1},
        "log": {},
    }
    shares, seconds, stopwatch = [], [], Stopwatch()
    with log_rounds() if way == "log" else nullcontext():
        for _ in range(REPETITIONS + 1):
            stopwatch.seconds = 0.0
            with stopwatch.attached():
                start = thread_time()
                fitted = getattr(rw, ranker)(backend=rw.Serial(), **ways[way]).fit(train)
                seconds.append(thread_time() - start)
            shares.append(stopwatch.seconds / seconds[-1])
    return median(shares[1:]), median(seconds[1:]), len(fitted.history_)  # the first one may compile


@contextmanager
def log_rounds() -> Iterator[None]:
    """Write the log of training at the level INFO to a text in memory."""
    handler, level, spreads = logging.StreamHandler(io.StringIO()), _LOGGER.level, _LOGGER.propagate
    _LOGGER.addHandler(handler)
    _LOGGER.propagate = False
    _LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)
        _LOGGER.propagate = spreads


def measure(n_queries: int) -> Table:
    """Measure rankers with a callback, with the display and with the log."""
    train = rw.make_queries(n_queries, n_docs=40, n_features=46, random_state=0)
    rows = []
    for ranker in RANKERS:
        with redirect_stderr(io.StringIO()):
            found = {way: measure_share(ranker, train, way) for way in ("callback", "display", "log")}
        shares = [share for share, _, _ in found.values()]
        _, seconds, rounds = found["callback"]
        figure = ", ".join(f"{way} {100 * share:.2f}%" for way, (share, _, _) in found.items())
        rows.append(Row(ranker, figure, f"{seconds:.2f} s, {rounds} rounds", "below 1% each", max(shares) < LIMIT))
    note = (
        "A callback that appends a number; verbose=1; the log at INFO. CPU time of one thread;"
        f" {n_queries:,} queries x 40 documents x 46 features."
    )
    return Table(f"Watching a fit of {train.n_docs:,} documents", rows, [note])


def measure_tables(n_queries: int) -> list[Table]:
    """Return the table of one size of data."""
    return [measure(n_queries)]


if __name__ == "__main__":
    publish([partial(measure_tables, n) for n in SIZES])
