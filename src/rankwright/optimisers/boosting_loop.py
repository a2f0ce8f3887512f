"""Boosting: the loop that adds weak rankers one at a time, and the scores of the model that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.columns import MatrixColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import LineSearchResult, StepChoice, search_line
from rankwright.optimisers.rounds import RoundRecorder
from rankwright.runtime.backends import Backend, Shards


class AdditiveScores:
    """The scores of an additive model, to which columns are added one by one, and the mean measure of its ranking.

    Each ranking is found from the last one, which costs little where a column changes little.
    """

    def __init__(self, queries: Queries, measure: Measure, backend: Backend) -> None:
        nothing = MatrixColumns(np.empty((queries.n_docs, 0)))
        self.landscape = Landscape.of_prepared(nothing, measure.prepare(queries), queries.query_weight, backend)
        self.point = self.landscape.evaluate(np.zeros(0))
        _ = self.landscape.max_value  # found once, for all that is turned from it

    @property
    def value(self) -> float:
        """The mean measure."""
        return self.point.value

    @property
    def scores(self) -> Floats:
        """The score of every document."""
        scores: Floats = self.landscape.backend.concat(attrgetter("scores"), self.point.shards)
        return scores

    def search(self, column: Floats, choice: StepChoice, least: float = -np.inf) -> LineSearchResult | None:
        """Return the weight of a column, at least ``least``, with which the measure would be highest."""
        landscape, point = self.landscape.with_columns(self.point, MatrixColumns(column[:, None]))
        return search_line(landscape, point, 0, low=least, choice=choice)

    def search_values_of(
        self, choice: StepChoice, least: float, fn: Callable[..., Floats], documents: Shards[Any], *arguments: Any
    ) -> LineSearchResult | None:
        """Return the best weight, as ``search`` does, of what a function returns for each shard of documents."""
        landscape, point = self.landscape.with_column_of(self.point, fn, documents, *arguments)
        return search_line(landscape, point, 0, low=least, choice=choice)

    def add_values_of(self, fn: Callable[..., Floats], documents: Shards[Any], *arguments: Any) -> None:
        """Add to the scores what a function returns for each shard of documents."""
        self.point = self.landscape.add_scores_of(self.point, fn, documents, *arguments)

    def set_scores_of(self, fn: Callable[..., Floats], documents: Shards[Any], *arguments: Any) -> None:
        """Replace the scores by what a function returns for each shard of documents."""
        self.point = self.landscape.with_scores_of(self.point, fn, documents, *arguments)

    def add(self, column: Floats) -> None:
        """Add a column to the scores."""
        landscape, point = self.landscape.with_columns(self.point, MatrixColumns(column[:, None]))
        self.point = landscape.step(point, 0, 1.0)

    def set_scores(self, scores: Floats) -> None:
        """Replace the scores."""
        self.point = self.landscape.with_scores(self.point, scores)


W = TypeVar("W")


class AdditiveModel(Protocol[W]):
    """The interface of an additive model in training: it chooses the next weak ranker, and adds it."""

    def choose(self) -> W | None:
        """Return the next weak ranker and its step; None where nothing is left to gain."""

    def add(self, weak: W) -> dict[str, Any]:
        """Add a weak ranker to the model; return what to record, with ``train`` and ``valid`` where they are known."""


def boost(stages: AdditiveModel[W], n_estimators: int, recorder: RoundRecorder[None], done: Sequence[W] = ()) -> None:
    """Add up to ``n_estimators`` weak rankers one at a time, and record the measure after each.

    Parameters
    ----------
    stages : AdditiveModel
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
        recorder.record(None, {"round": t + 1, **stages.add(weak)}, is_new=t >= len(done))
        if len(done) <= t < n_estimators - 1 and recorder.should_stop():
            break
