"""Evaluation: values of measures by query, and their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.html_tables import format_html_table
from rankwright.basics.optional_imports import require
from rankwright.data.document_pools import join_runs
from rankwright.data.queries import Queries
from rankwright.data.run_fusion import Source, open_qrels, open_runs
from rankwright.measures import Measure, compute_values, parse_measure, split_measures, weighted_mean
from rankwright.models.imports import as_model
from rankwright.runtime.backends import Backend


@dataclass(frozen=True, slots=True, eq=False)
class Evaluations:
    """The values of several measures of one ranking, by query and in the mean.

    Parameters
    ----------
    measures : tuple of str
        Names that say exactly what was computed.
    values : array of shape (n_measures, n_queries)
        NaN where a measure skips a query.
    qid : array of shape (n_queries,)
        The id of each query.
    weight : array of shape (n_queries,)
        Query weights, used by the means.
    click_variance : mapping of str to array of shape (n_queries,)
        For each measure from clicks, the variance of its values by the clicks alone.
    """

    measures: tuple[str, ...]
    values: Floats
    qid: NDArray[Any]
    weight: Floats
    click_variance: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def means(self) -> dict[str, float]:
        """The weighted mean of each measure over the queries that count."""
        return {name: weighted_mean(row, self.weight) for name, row in zip(self.measures, self.values, strict=True)}

    @property
    def per_query(self) -> dict[str, Floats]:
        """The values of each measure, in the order of ``qid``."""
        return dict(zip(self.measures, self.values, strict=True))

    @property
    def click_errors(self) -> dict[str, float]:
        """The standard error of the mean of each measure from clicks, by the clicks alone: the queries are fixed."""
        errors = {}
        for name, variance in self.click_variance.items():
            weight = np.where(np.isnan(self.per_query[name]), 0.0, self.weight)
            errors[name] = float(np.sqrt((weight**2 * variance).sum()) / weight.sum()) if weight.sum() else np.nan
        return errors

    @property
    def query_errors(self) -> dict[str, float]:
        """The standard error of each mean for other queries of the same kind; noise of clicks is a part of it."""
        return {name: _estimate_error(row, self.weight) for name, row in self.per_query.items()}

    def __getitem__(self, measure: str | Measure) -> float:
        name = str(parse_measure(measure))
        if name not in self.measures:
            raise KeyError(f"{name} was not evaluated; there are {', '.join(self.measures)}")
        return self.means[name]

    def __repr__(self) -> str:
        of_clicks, of_queries = self.click_errors, self.query_errors
        errors = {
            name: f" (standard error {of_clicks[name]:.4f} by clicks, {of_queries[name]:.4f} over queries)"
            for name in of_clicks
        }
        means = ", ".join(f"{name}={value:.4f}{errors.get(name, '')}" for name, value in self.means.items())
        return f"Evaluations({means}; {len(self.qid)} queries)"

    def _repr_html_(self) -> str:
        n = f"{len(self.qid):,} queries"
        if self.click_variance:
            rows = [
                (name, mean, self.click_errors.get(name, ""), self.query_errors[name])
                for name, mean in self.means.items()
            ]
            header = ["measure", "mean", "standard error by clicks", "standard error over queries"]
            return format_html_table("Evaluations", header, rows, f"Means over {n}.")
        return format_html_table("Evaluations", ["measure", "mean"], list(self.means.items()), f"Means over {n}.")

    def to_pandas(self) -> Any:
        """Return a data frame with a row per query and a column per measure."""
        frame = require("pandas").DataFrame(self.per_query, index=self.qid)
        frame.index.name = "qid"
        return frame


def evaluate(
    ranking: Any,
    queries: Queries | Source,
    measures: str | Measure | Sequence[str | Measure],
    backend: Backend | None = None,
) -> Evaluations:
    """Return the values of measures of a ranking: by a fitted ranker, a model of any library, scores or a TREC run.

    Parameters
    ----------
    ranking : fitted ranker, model, array of scores, or run
        A model may be one of LightGBM, XGBoost, CatBoost or scikit-learn, as ``import_model`` takes it. Scores are one
        per row, in the order of the rows that the queries were made of. A run is a file, or a mapping of query id to
        mapping of document id to score.
    queries : Queries, or judgments
        Judgments, for a run, are a file, or a mapping of query id to mapping of document id to grade. The queries that
        are evaluated are those that are judged and in the run, as in trec_eval; judged documents that the run did not
        find count in ideal rankings and in the number of relevant documents.
    measures : str, Measure, or sequence of these
        To get trec_eval's figures, name its dialect, as in ``map(dialect=trec_eval)``.
    backend : Backend, optional
        Where the work runs; all cores by default.

    Examples
    --------
    >>> queries = Queries.from_arrays([[1.0], [2.0]], [1, 0], qid=[7, 7])
    >>> evaluate([0.3, 0.1], queries, "mrr, p@1")
    Evaluations(mrr=1.0000, p@1=1.0000; 1 queries)
    >>> evaluate({"q": {"a": 0.3, "b": 0.1}}, {"q": {"a": 1, "c": 1}}, "map(dialect=trec_eval)")
    Evaluations(map(dialect=trec_eval)=0.5000; 1 queries)
    """
    if isinstance(measures, str):
        measures = split_measures(measures)
    parsed = [parse_measure(m) for m in ([measures] if isinstance(measures, Measure) else measures)]
    if not parsed:
        raise InputError("no measure given; expected names such as ndcg@10")
    found: Any = ranking
    if not isinstance(queries, Queries):
        queries, found = open_run(ranking, queries)
    seen = getattr(found, "_seen", None)  # a fitted ranker remembers its training queries
    if seen is not None:
        seen.warn_if_split(queries)
    scores, grouped = compute_scores(found, queries), queries.grouped()
    prepared = [measure.prepare(grouped) for measure in parsed]
    values = compute_values(prepared, scores, backend)
    variances = {str(measure): each.compute_click_variances(scores) for measure, each in zip(parsed, prepared)}
    known = {name: variance for name, variance in variances.items() if variance is not None}
    return Evaluations(tuple(str(m) for m in parsed), values, queries.qid, queries.query_weight, known)


def _estimate_error(values: Floats, weight: Floats) -> float:
    """Return the standard error of a weighted mean of independent values; NaN does not count."""
    counted = ~np.isnan(values) & (weight > 0)
    n, share = int(counted.sum()), weight[counted]
    if n < 2:
        return float("nan")
    spread = values[counted] - weighted_mean(values, weight)
    return float(np.sqrt(((share * spread) ** 2).sum() * n / (n - 1)) / share.sum())


def compute_scores(ranking: Any, queries: Queries) -> Floats:
    """Return the scores of the grouped rows of queries by a fitted ranker, a model of any library, or given scores."""
    is_array = hasattr(ranking, "__len__") and not hasattr(ranking, "predict")
    has_scores = is_array and not isinstance(ranking, str | Mapping | Queries)
    return queries.group_scores(ranking if has_scores else as_model(ranking).predict(queries))


def open_run(run: Any, qrels: Source) -> tuple[Queries, Floats]:
    """Return the judged queries that a TREC run answers, with the documents that it found, and their scores."""
    if hasattr(run, "predict") or hasattr(run, "to_model"):
        raise InputError(
            f"a model with a {type(qrels).__name__}; expected Queries as the second argument: make one of a data frame "
            "(rw.Queries.from_frame) or of a file (rw.read)"
        )
    if not (isinstance(run, str | PathLike | Mapping) or hasattr(run, "to_dict")):
        found = f"a {type(run).__name__} with a {type(qrels).__name__}"
        raise InputError(f"{found}; expected a run with judgments, or scores of rows with Queries")
    queries, scores = join_runs(open_qrels(qrels), open_runs({"run": run}))
    return queries, scores[:, 0]
