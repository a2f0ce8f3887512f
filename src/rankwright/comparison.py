"""Comparison: scores and models on one set of judged queries, as results that tables and reports are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rankwright.data import Floats, Queries
from rankwright.errors import InputError
from rankwright.evaluation import evaluate
from rankwright.files import StrPath
from rankwright.letor import read_letor
from rankwright.measures import parse, split
from rankwright.models import load
from rankwright.results import Results, Table, documents_table, pairs_table, queries_table
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
        By the name of a method, its score of every row of ``queries``.
    queries : Queries
        Judged documents.
    measures : str or sequence of str
        The first one decides.
    name : str
        What the comparison is called.
    """
    wanted = tuple(str(parse(m)) for m in (split(measures) if isinstance(measures, str) else measures))
    if not wanted or not scores:
        raise InputError("expected at least one measure and one method")
    found: dict[str, Floats] = {method: np.asarray(row, dtype=np.float64) for method, row in scores.items()}
    values = {method: evaluate(row, queries, wanted).values for method, row in found.items()}
    n, m = len(queries), len(scores)
    keys = {"method": np.repeat(np.arange(m), n), "seed": np.zeros(n * m, int), "query": np.tile(np.arange(n), m)}
    measured = {measure: np.concatenate([values[key][i] for key in found]) for i, measure in enumerate(wanted)}
    tables: dict[str, Table] = {
        "queries": {"fold": np.ones(n, int), **queries_table(queries)},
        "values": {**keys, **measured},
        "pairs": _stacked([pairs_table(queries, row) for row in found.values()]),
    }
    documents = documents_table(queries)
    if documents is not None:
        rows = [{"document": np.arange(queries.n_docs), "score": row} for row in found.values()]
        tables |= {"documents": documents, "scores": _stacked(rows)}
    return Results(name, wanted[0], wanted, tuple(scores), tables)


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


def _stacked(tables: Sequence[Table]) -> Table:
    """The tables of all methods one under the other, as artefacts are."""
    sizes = [len(next(iter(table.values()))) for table in tables]
    total = sum(sizes)
    keys = {
        "method": np.repeat(np.arange(len(tables)), sizes),
        "fold": np.ones(total, int),
        "seed": np.zeros(total, int),
    }
    return keys | {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
