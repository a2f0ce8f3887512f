"""Scoring of documents in files, block by block, so that their features are never in memory all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, UnnamedFeaturesWarning, warn
from rankwright.basics.files import StrPath
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.letor_source import LetorSource
from rankwright.data.queries import Queries
from rankwright.data.reading import open_source
from rankwright.data.row_sources import RowBlock, RowSource, join_blocks
from rankwright.models.imports.first_columns import uses_first_feature
from rankwright.models.model import Model
from rankwright.runtime.backends import Backend


def open_for_model(model: Model, paths: Sequence[StrPath], roles: ColumnRoles) -> RowSource:
    """Return the documents of files as a source of rows with the features of a model."""
    for role in ("features", "categorical"):
        if role in roles.list_given():
            raise InputError(f"{role} (--{role}) with a model; expected neither: the model knows its features")
    source = open_source(paths, roles, **list_known(model))
    return _FirstFeatures(source, model.n_features) if model.is_open_ended else source


def list_known(model: Model) -> dict[str, Any]:
    """Return the options of ``open_source`` for the features of a model."""
    known: dict[str, Any] = {"n_features": model.n_features, "features": model.features}
    known |= {"categories": model.categories, "zero_based": model.is_zero_based, "open_ended": model.is_open_ended}
    return known


class _FirstFeatures(RowSource):
    """The documents of a source with the first features only; those that a block of rows lacks are 0."""

    def __init__(self, source: RowSource, n_features: int) -> None:
        self.features = None if source.features is None else source.features[:n_features]
        self.has_grades = source.has_grades
        self._source, self._n_features = source, n_features

    def read(self, backend: Backend | None = None) -> Queries:
        """Read all documents."""
        return join_blocks(self.read_blocks(), features=self.features, categories=self.categories)

    def read_blocks(self) -> Iterator[RowBlock]:
        """Yield the documents in the blocks of the source."""
        for block in self._source.read_blocks():
            lacking, found = max(self._n_features - block.X.shape[1], 0), self._source.categories
            self.categories = None if found is None else found[: self._n_features]
            yield block._replace(X=np.pad(block.X[:, : self._n_features], ((0, 0), (0, lacking))))
        self.unretrieved, self.clicks = self._source.unretrieved, self._source.clicks


def score_blocks(models: Sequence[Model], source: RowSource) -> Iterator[tuple[RowBlock, list[Floats]]]:
    """Yield the documents of a source in blocks, in the order of the files, with the scores of each model.

    Where a model scales features within each query, all documents are one block.
    """
    if any(model.scaling is not None for model in models):
        queries = source.read()
        yield make_block(queries), [model.predict(queries) for model in models]
        return
    first_row = 0
    shifted = [model for model in models if isinstance(source, LetorSource) and _may_be_shifted(model)]
    for block in source.read_blocks():
        n = len(block.X)
        shifted = [] if shifted and block.X[:, -1].any() else shifted
        queries = Queries(
            *(block.X, None, np.array([0, n]), np.zeros(1, int)),
            features=source.features,
            categories=source.categories,
        )
        yield block, [model.predict_rows(queries, first_row) for model in models]
        first_row += n
    for model in shifted:
        warn(
            f"the {model.ranker} model never uses feature 1, and feature {model.n_features} is 0 in all documents: all "
            f"features may be shifted by one. {model.ranker} keeps the numbers of text that counts from 1 as columns "
            "from 0. If it read such text, import the model without its empty column: rankwright import FILE "
            "--drop-first, or rw.import_model(..., drop_first=True)",
            UnnamedFeaturesWarning,
        )


def _may_be_shifted(model: Model) -> bool:
    """Return whether a model counts columns from 0 and does not use the first, as if its text had counted from 1."""
    return model.is_zero_based and not uses_first_feature(model)


def score_documents(
    models: Sequence[Model], paths: Sequence[StrPath], roles: ColumnRoles
) -> tuple[Queries, list[Floats]]:
    """Return the judged documents of files without their features, and for each model their scores, by row.

    The files are read once for all models that have the same features.
    """
    same: dict[Any, list[int]] = {}
    for at, model in enumerate(models):
        same.setdefault((model.n_features, model.features, model.categories), []).append(at)
    if len(same) > 1 and not all(Path(path).is_file() or Path(path).is_dir() for path in paths):
        raise InputError(f"{paths[0]}: a pipe, which can be read once; expected a file, for models of other features")
    if not models:
        source = open_source(paths, roles)
        source.check_grades(paths[0])
        documents = join_blocks(block.without_features() for block in source.read_blocks())
        return documents.replace(unretrieved=source.unretrieved, clicks=source.clicks), []
    scores: dict[int, list[Floats]] = {at: [] for at in range(len(models))}

    def keep_scores(source: RowSource, places: Sequence[int]) -> Iterator[RowBlock]:
        for block, found in score_blocks([models[at] for at in places], source):
            for at, values in zip(places, found, strict=True):
                scores[at].append(values)
            yield block.without_features()

    queries = []
    for places in same.values():
        source = open_for_model(models[places[0]], paths, roles)
        source.check_grades(paths[0])
        documents = join_blocks(keep_scores(source, places))
        queries.append(documents.replace(unretrieved=source.unretrieved, clicks=source.clicks))
    return queries[0], [np.concatenate(parts) for parts in scores.values()]


def make_block(queries: Queries) -> RowBlock:
    """Return all documents of a data set as one block."""
    weight = None if queries.weight is None else queries.restore(np.repeat(queries.weight, queries.sizes))
    y = queries.y if queries.has_grades else None
    return RowBlock(queries.X, y, queries.row_qid, queries.docid, weight, queries.doc_weight)
