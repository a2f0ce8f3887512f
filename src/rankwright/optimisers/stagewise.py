"""The additive loop of boosting: weights, weak ranker, step, new weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from rankwright.basics import progress

W = TypeVar("W")


class Stages(Protocol[W]):
    """An additive model in training, and the weights that its next weak ranker is to serve."""

    def choose(self) -> W | None:
        """The next weak ranker and its step; None where nothing is left to gain."""
        ...

    def add(self, weak: W) -> dict[str, Any]:
        """Add it to the model and set new weights; what to record: ``train``, and ``valid`` if known."""
        ...


class Boosted(NamedTuple):
    """What the loop yields: how many of the weak rankers make the best model, and a record of every round."""

    n_best: int
    history: list[dict[str, Any]]


def boost(
    stages: Stages[W], n_estimators: int, done: Sequence[W] = (), early_stopping_rounds: int | None = None
) -> Boosted:
    """Add weak rankers one at a time.

    The best model is that of the round with the highest measure, on validation queries if there are any; the first of
    equals.

    Parameters
    ----------
    stages : Stages
        A model without weak rankers.
    n_estimators : int
        How many to add, unless there is nothing left to gain.
    done : sequence
        The first of them, where they are known from an earlier run: to resume is to add them again without the search.
    early_stopping_rounds : int, optional
        Stop after so many new rounds that were not the best on validation queries.
    """
    history: list[dict[str, Any]] = []
    n_best, best = 0, -float("inf")
    for t in progress.track(range(n_estimators), "rounds", n_estimators):
        weak = done[t] if t < len(done) else stages.choose()
        if weak is None:
            break
        record = {"round": t + 1, **stages.add(weak)}
        history.append(record)
        value = record.get("valid", record.get("train", -float("inf")))
        if value > best:
            n_best, best = t + 1, value
        elif (
            early_stopping_rounds is not None
            and "valid" in record
            and t + 1 - max(n_best, len(done)) >= early_stopping_rounds
        ):
            break
    return Boosted(n_best, history)
