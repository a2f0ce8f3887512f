"""The loop of boosting: choose a weak ranker, add it to the model, record the round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from rankwright.basics import progress
from rankwright.optimisers.rounds import RoundRecorder

W = TypeVar("W")


class Stages(Protocol[W]):
    """The interface of an additive model in training: it chooses the next weak ranker, and adds it."""

    def choose(self) -> W | None:
        """Return the next weak ranker and its step; None where nothing is left to gain."""
        ...

    def add(self, weak: W) -> dict[str, Any]:
        """Add a weak ranker to the model; return what to record, with ``train`` and ``valid`` where they are known."""
        ...


def boost(stages: Stages[W], n_estimators: int, recorder: RoundRecorder[None], done: Sequence[W] = ()) -> None:
    """Add up to ``n_estimators`` weak rankers one at a time, and record the measure after each.

    Parameters
    ----------
    stages : Stages
        A model without weak rankers.
    n_estimators : int
        The largest number of weak rankers; fewer where nothing is left to gain, or where the recorder says to stop.
    recorder : RoundRecorder
        It records the rounds; its ``n_kept`` is the number of weak rankers of the model that is kept.
    done : sequence
        The first weak rankers, where they are known from an earlier run: they are added again without the search, and
        do not count for early stopping.
    """
    for t in progress.track(range(n_estimators), "rounds", n_estimators):
        weak = done[t] if t < len(done) else stages.choose()
        if weak is None:
            break
        recorder.record(None, {"round": t + 1, **stages.add(weak)})
        if t < len(done):
            recorder.n_waited = 0
        elif t + 1 < n_estimators and recorder.should_stop():
            break
