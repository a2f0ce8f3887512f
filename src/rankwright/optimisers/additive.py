"""The scores of an additive model on a set of queries, ranked and evaluated."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.columns import MatrixColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import LineSearchResult, StepChoice, search_line
from rankwright.runtime.backends import Backend


class Additive:
    """The scores of an additive model, to which columns are added one by one, and the mean measure of its ranking.

    Each ranking is found from the last one, which costs little where a column changes little.
    """

    def __init__(self, queries: Queries, measure: Measure, backend: Backend) -> None:
        nothing = np.zeros((queries.n_docs, 1))
        self.landscape = Landscape.of_prepared(
            MatrixColumns(nothing), measure.prepare(queries), queries.query_weight, backend
        )
        self.point = self.landscape.evaluate(np.zeros(1))
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

    def add(self, column: Floats) -> None:
        """Add a column to the scores."""
        landscape, point = self.landscape.with_columns(self.point, MatrixColumns(column[:, None]))
        self.point = landscape.step(point, 0, 1.0)

    def set_scores(self, scores: Floats) -> None:
        """Replace the scores."""
        self.point = self.landscape.with_scores(self.point, scores)
