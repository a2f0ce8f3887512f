"""Comparison of scores, models and runs on one set of judged queries, as results for tables and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.analysis.evaluation import compute_scores
from rankwright.analysis.results import (
    Results,
    Table,
    add_key_columns,
    concatenate_tables,
    make_documents_table,
    make_pairs_table,
    make_queries_table,
)
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.data.column_roles import NO_ROLES, ColumnRoles
from rankwright.data.document_pools import join_runs
from rankwright.data.queries import Queries
from rankwright.data.run_fusion import Source, name_runs, open_qrels, open_runs
from rankwright.data.score_files import read_scores
from rankwright.measures import Measure, compute_retrieved_values, compute_values, parse_measure, split_measures
from rankwright.models.block_scoring import score_documents
from rankwright.models.model_files import load


def compare_scores(
    scores: Mapping[str, Any],
    queries: Queries,
    measures: str | Sequence[str] = "ndcg@10,map",
    *,
    name: str = "Comparison",
) -> Results:
    """Return results that compare rankings of the same queries, each given by its scores or by a model.

    Parameters
    ----------
    scores : mapping of str to array of shape (n_docs,), fitted ranker or model
        By the name of a method, its score of every row, in the order of the rows that ``queries`` was made of; or the
        model that gives the scores, of this or another library, as ``import_model`` takes it.
    queries : Queries
        Judged documents.
    measures : str or sequence of str
        The first one decides.
    name : str
        What the comparison is called.
    """
    parsed = _parse(measures)
    if not isinstance(scores, Mapping):
        found = type(scores).__name__
        raise InputError(f"scores is a {found}; expected a mapping of names to models or scores: {{'mine': model}}")
    if not isinstance(queries, Queries):
        found = type(queries).__name__
        raise InputError(f"queries is a {found}; expected Queries (rw.Queries.from_frame, rw.read)")
    if not scores:
        raise InputError("nothing to compare; expected at least one method")
    queries = queries if queries.has_grades else parsed[0].label(queries)
    found = [compute_scores(each, queries) for each in scores.values()]
    grouped = queries.grouped()
    prepared = [measure.prepare(grouped) for measure in parsed]
    values = [compute_values(prepared, row) for row in found]
    pairs = [make_pairs_table(grouped, row) for row in found]
    return _make_results(name, tuple(scores), parsed, queries, found, values, pairs)


def compare_runs(
    qrels: Source,
    runs: Mapping[str, Source] | Sequence[Source],
    measures: str | Sequence[str] = "ndcg@10(dialect=trec_eval),map(dialect=trec_eval)",
    *,
    name: str = "Comparison",
) -> Results:
    """Return results that compare TREC runs, on the judged queries that at least one of them answers.

    Every run is evaluated on the documents that it found, as ``evaluate`` does. A query that a run does not answer has
    the value 0, so that all are compared on the same queries.

    Parameters
    ----------
    qrels : path, or mapping of query id to mapping of document id to grade
        Judgments.
    runs : mapping of name to run, or sequence of runs
        A run is a path, or a mapping of query id to mapping of document id to score.
    measures : str or sequence of str
        The first one decides.
    name : str
        What the comparison is called.
    """
    parsed, tables = _parse(measures), open_runs(name_runs(runs))
    if not tables:
        raise InputError("nothing to compare; expected at least one run")
    queries, scores = join_runs(open_qrels(qrels), tables)
    found = list(np.ascontiguousarray(scores.T))
    values = [compute_retrieved_values(parsed, queries, row, None) for row in found]
    return _make_results(name, tuple(tables), parsed, queries, found, values)


def _parse(measures: str | Sequence[str]) -> list[Measure]:
    """Return the measures with these names; raise InputError if there are none."""
    parsed = [parse_measure(m) for m in (split_measures(measures) if isinstance(measures, str) else measures)]
    if not parsed:
        raise InputError("expected at least one measure")
    return parsed


def _make_results(
    name: str,
    methods: tuple[str, ...],
    measures: Sequence[Measure],
    queries: Queries,
    scores: Sequence[Floats],
    values: Sequence[Floats],
    pairs: Sequence[Table] = (),
) -> Results:
    """Return results of methods given by the scores of their grouped rows, NaN where a row is not ranked."""
    names, places = tuple(map(str, measures)), {"query": np.arange(len(queries))}
    tables: dict[str, Table] = {
        "queries": {"fold": np.ones(len(queries), int), **make_queries_table(queries)},
        "values": _concatenate_methods([{**places, **dict(zip(names, row, strict=True))} for row in values]),
    }
    if pairs:
        tables["pairs"] = _concatenate_methods(pairs)
    documents = make_documents_table(queries)
    if documents is not None:
        known = [(np.flatnonzero(~np.isnan(row)), row) for row in scores]
        rows = [{"document": at, "score": row[at]} for at, row in known]
        tables |= {"documents": documents, "scores": _concatenate_methods(rows)}
    return Results(name, names[0], names, methods, tables)


def compare_files(
    data: StrPath,
    scores: Mapping[str, StrPath],
    models: Mapping[str, StrPath],
    measures: str = "ndcg@10,map",
    *,
    columns: ColumnRoles = NO_ROLES,
) -> Results:
    """Return results that compare score files and model files on judged documents, both given by name of method."""
    if not scores and not models:
        raise InputError("nothing to compare; give --scores or --model, at least one of them")
    queries, of_models = score_documents([load(path) for path in models.values()], [data], columns)
    found = {name: read_scores(path, queries) for name, path in scores.items()}
    found |= dict(zip(models, of_models, strict=True))
    return compare_scores(found, queries, measures, name=Path(data).name)


def _concatenate_methods(tables: Sequence[Table]) -> Table:
    """Return the tables of all methods as one table, with the key columns that an experiment adds."""
    return concatenate_tables([add_key_columns(table, number, fold=1, seed=0) for number, table in enumerate(tables)])
