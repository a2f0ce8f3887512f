"""Evaluation: measures x queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike, NDArray

from rankwright._optional import require
from rankwright.backends import Backend
from rankwright.data import Floats, Queries
from rankwright.errors import InputError
from rankwright.measures import Measure, bound_values, parse, split, weighted_mean
from rankwright.models import Fitted


@dataclass(frozen=True, slots=True, eq=False)
class Evaluations:
    """Measures of a ranking, by query and in the mean.

    Parameters
    ----------
    measures : tuple of str
        Names that say exactly what was computed.
    values : array of shape (n_measures, n_queries)
        NaN where a measure skips a query.
    qid : array of shape (n_queries,)
    weight : array of shape (n_queries,)
        Query weights, used by the means.
    """

    measures: tuple[str, ...]
    values: Floats
    qid: NDArray[Any]
    weight: Floats

    @property
    def means(self) -> dict[str, float]:
        """The weighted mean of each measure over the queries that count."""
        return {name: weighted_mean(row, self.weight) for name, row in zip(self.measures, self.values, strict=True)}

    @property
    def per_query(self) -> dict[str, Floats]:
        """The values of each measure, in the order of ``qid``."""
        return dict(zip(self.measures, self.values, strict=True))

    def __getitem__(self, measure: str | Measure) -> float:
        name = str(parse(measure))
        if name not in self.measures:
            raise KeyError(f"{name} was not evaluated; there are {', '.join(self.measures)}")
        return self.means[name]

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={value:.4f}" for name, value in self.means.items())
        return f"Evaluations({means}; {len(self.qid)} queries)"

    def to_pandas(self) -> Any:
        """A data frame with a row per query and a column per measure."""
        frame = require("pandas").DataFrame(self.per_query, index=self.qid)
        frame.index.name = "qid"
        return frame


def evaluate(
    ranking: Fitted | ArrayLike,
    queries: Queries,
    measures: str | Measure | Sequence[str | Measure],
    backend: Backend | None = None,
) -> Evaluations:
    """Evaluate a fitted ranker, a model or scores by several measures.

    Scores are one per row, in the order of the rows that the queries were made of.

    Examples
    --------
    >>> queries = Queries.from_arrays([[1.0], [2.0]], [1, 0], qid=[7, 7])
    >>> evaluate([0.3, 0.1], queries, "mrr, p@1")
    Evaluations(mrr=1.0000, p@1=1.0000; 1 queries)
    """
    if isinstance(measures, str):
        measures = split(measures)
    parsed = [parse(m) for m in ([measures] if isinstance(measures, Measure) else measures)]
    if not parsed:
        raise InputError("no measure given; expected names such as ndcg@10")
    scores = queries.group_scores(ranking.predict(queries) if hasattr(ranking, "predict") else ranking)
    grouped = queries.grouped()
    values = bound_values([measure.bind(grouped) for measure in parsed], scores, backend)
    return Evaluations(tuple(str(m) for m in parsed), values, queries.qid, queries.query_weight)
