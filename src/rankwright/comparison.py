"""Comparison: scores and models on one set of judged queries, as results that tables and reports are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rankwright.data import Floats, Queries
from rankwright.errors import InputError
from rankwright.files import StrPath
from rankwright.letor import read_letor
from rankwright.measures import bound_values, parse, split
from rankwright.models import load
from rankwright.results import Results, Table, documents_table, joined, keyed, pairs_table, queries_table
from rankwright.scores import read_scores


def compare_scores(
    scores: Mapping[str, ArrayLike],
    queries: Queries,
    measures: str | Sequence[str] = "ndcg@10,map",
    *,
    name: str = "Comparison",
) -> Results:
    """Compare rankings of the same queries, given by their scores.

    Parameters
    ----------
    scores : mapping of str to array of shape (n_docs,)
        By the name of a method, its score of every row, in the order of the rows that ``queries`` was made of.
    queries : Queries
        Judged documents.
    measures : str or sequence of str
        The first one decides.
    name : str
        What the comparison is called.
    """
    parsed = [parse(m) for m in (split(measures) if isinstance(measures, str) else measures)]
    if not parsed or not scores:
        raise InputError("expected at least one measure and one method")
    found: list[Floats] = [queries.group_scores(row) for row in scores.values()]
    documents, queries = documents_table(queries), queries.grouped()
    names, bounds = tuple(str(measure) for measure in parsed), [measure.bind(queries) for measure in parsed]
    places = {"query": np.arange(len(queries))}
    values = [{**places, **dict(zip(names, bound_values(bounds, row), strict=True))} for row in found]
    tables: dict[str, Table] = {
        "queries": {"fold": np.ones(len(queries), int), **queries_table(queries)},
        "values": _of_methods(values),
        "pairs": _of_methods([pairs_table(queries, row) for row in found]),
    }
    if documents is not None:
        rows = [{"document": np.arange(queries.n_docs), "score": row} for row in found]
        tables |= {"documents": documents, "scores": _of_methods(rows)}
    return Results(name, names[0], names, tuple(scores), tables)


def compare_files(data: StrPath, scores: Sequence[Path], models: Sequence[Path], measures: str) -> Results:
    """Compare score files and saved models on a file of judged documents; the files name the methods."""
    paths = [*scores, *models]
    if not paths:
        raise InputError("nothing to compare; give --scores or --model, at least one of them")
    loaded = {path: load(path) for path in models}
    queries = read_letor(data, n_features=max((model.n_features for model in loaded.values()), default=None))
    names = [path.name.partition(".")[0] or path.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise InputError(f"{next(name for name in names if names.count(name) > 1)}: given twice")
    found = [loaded[path].predict(queries) if path in loaded else read_scores(path, queries) for path in paths]
    return compare_scores(dict(zip(names, found, strict=True)), queries, measures, name=Path(data).name)


def _of_methods(tables: Sequence[Table]) -> Table:
    """The tables of all methods, one each, as the artefacts of an experiment are."""
    return joined([keyed(table, number, fold=1, seed=0) for number, table in enumerate(tables)])
