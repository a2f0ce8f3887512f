"""Watching a fit: what callbacks, ``verbose=1`` and the log cost, as a share of the fit's time."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from statistics import median
from time import thread_time  # of one thread: other work on the machine does not count
from typing import Any
from unittest.mock import patch

import rankwright as rw
from benchmarks.report import Row, Table, publish
from rankwright.rankers.training_watch import TrainingWatch

RANKERS = ("AdaRank", "RankBoost", "FRank", "LambdaMART", "DirectRank", "ListNet", "RankSVM")
REPETITIONS = 5
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


def measure_share(ranker: str, train: rw.Queries) -> tuple[float, float, int]:
    """Return the share of a fit's time that watching it takes, the seconds of the fit, and its rounds."""
    rounds: list[int] = []
    fit = getattr(rw, ranker)(callbacks=[lambda found: rounds.append(found.number)], verbose=1, backend=rw.Serial()).fit
    shares, seconds = [], []
    for _ in range(REPETITIONS + 1):
        rounds.clear()
        stopwatch = Stopwatch()
        with stopwatch.attached():
            start = thread_time()
            fit(train)
            seconds.append(thread_time() - start)
        shares.append(stopwatch.seconds / seconds[-1])
    return median(shares[1:]), median(seconds[1:]), len(rounds)  # the first one may compile


def measure() -> Table:
    """Measure rankers with a callback, the display and the log at once."""
    train = rw.make_queries(300, n_docs=40, n_features=46, random_state=0)
    handler, level, spreads = logging.StreamHandler(io.StringIO()), _LOGGER.level, _LOGGER.propagate
    _LOGGER.addHandler(handler)
    _LOGGER.propagate = False
    _LOGGER.setLevel(logging.INFO)
    rows = []
    try:
        with redirect_stderr(io.StringIO()):
            for ranker in RANKERS:
                share, seconds, rounds = measure_share(ranker, train)
                figure = f"{100 * share:.2f}% of {seconds:.2f} s, {rounds} rounds"
                rows.append(
                    Row(ranker, figure, f"{1e6 * share * seconds / rounds:.0f} µs a round", "below 1%", share < LIMIT)
                )
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)
        _LOGGER.propagate = spreads
    note = (
        "A callback that appends a number, verbose=1 and the log at INFO, all together; CPU time of one thread;"
        " 300 queries x 40 documents x 46 features."
    )
    return Table("Watching a fit: callbacks, display and log", rows, [note])


if __name__ == "__main__":
    publish([lambda: [measure()]])
