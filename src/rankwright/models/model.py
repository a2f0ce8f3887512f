"""Models: the result of training, which scores documents without the ranker that made it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, UnnamedFeaturesWarning, warn
from rankwright.basics.html_tables import format_html_table
from rankwright.data.categories import Categories
from rankwright.data.feature_numbers import name_features
from rankwright.data.grouping import as_matrix
from rankwright.data.queries import Queries
from rankwright.data.table_columns import suggest_column
from rankwright.kernels.scorers.linear_scores import find_first_missing
from rankwright.measures import parse_measure
from rankwright.runtime.backends import Serial, choose_nearest
from rankwright.scorers import Scorer
from rankwright.scorers.linear import QueryScaling

CATEGORY_RANKERS = ("BoostedTrees", "DirectRankTrees", "GBRank", "LambdaMART", "MART", "AutoRanker", "Blend")
NAN_RANKERS = (*CATEGORY_RANKERS, "RankBoost")
_ZERO_BASED = ("LightGBM", "XGBoost")  # libraries whose columns are the indices of label-first text, from 0
_LISTED = 8  # names of features in an error
_LONGEST = 60  # characters of a parameter in a notebook
_NOT_SHOWN = ("measure", "backend")  # parameters that a notebook does not list
_OPEN_ENDED = ("RankLib",)  # libraries whose models know the largest feature that they use, and no number of features


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A trained scorer with everything needed to score documents, and a record of its training.

    Parameters
    ----------
    ranker : str
        The class of the ranker that trained it.
    params : mapping
        The parameters of that ranker, as JSON values: a record of its training.
    measure : str
        The measure it was selected by.
    scorer : Scorer
        The learned function, in raw units.
    n_features : int
        The number of features of its documents.
    features : tuple of str, optional
        The names of these features.
    scaling : QueryScaling, optional
        Scaling that cannot be folded into the scorer.
    history : list of dict
        The record of training, a dict per round.
    categories : tuple, optional
        For each feature None or, where it is categorical, its values: the scorer takes their numbers.
    """

    ranker: str
    params: Mapping[str, Any]
    measure: str
    scorer: Scorer
    n_features: int
    features: tuple[str, ...] | None = None
    scaling: QueryScaling | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    categories: Categories | None = None

    def __repr__(self) -> str:
        return f"Model({self.ranker}, {self.measure}, {self.n_features} features)"

    def _repr_html_(self) -> str:
        return format_html_table(self.ranker, ["", ""], list_model_facts(self))

    @property
    def is_zero_based(self) -> bool:
        """Whether its columns, which have no names, are the indices of features in text that counts from 0."""
        return self.features is None and self.ranker in _ZERO_BASED and not self.params.get("drop_first")

    @property
    def is_open_ended(self) -> bool:
        """Whether documents may have more features than it knows, which it does not use."""
        return self.features is None and self.ranker in _OPEN_ENDED

    def to_model(self) -> Model:
        """Return the model itself."""
        return self

    def predict(self, X: Any, *, qid: ArrayLike | None = None) -> Floats:
        """Return a float64 score per row, in the caller's order; larger is ranked earlier.

        ``qid`` is needed with arrays only where the model scales features per query.
        """
        if self.takes_rows(X):
            matrix = as_matrix(X)
            if self.scorer.allow_nan or find_first_missing(matrix) < 0:
                return self._check_finite(self.scorer(matrix), 0)
        return self.predict_rows(X if isinstance(X, Queries) else self.group_documents(X, qid))

    def takes_rows(self, X: Any) -> bool:
        """Return whether this is an array whose rows the scorer takes as they are: not by query, without categories."""
        is_matrix = isinstance(X, np.ndarray) and X.shape[1:] == (self.n_features,)
        return is_matrix and self.scaling is None and self.categories is None

    def group_documents(self, X: Any, qid: ArrayLike | None, categories: Categories | None = None) -> Queries:
        """Return documents as queries: those of ``qid``, or one of all documents where the model does not scale."""
        if self.scaling is not None and qid is None:
            raise InputError("this model scales features within each query: predict needs qid; pass qid=")
        if self.features is not None and hasattr(X, "columns") and hasattr(X, "dtypes"):  # before types are looked at
            check_names(tuple(map(str, X.columns)), self.features, "the model was trained on")
        n_docs = X.shape[0] if hasattr(X, "shape") else len(X)
        ids = {"group": [n_docs]} if self.scaling is None else {"qid": qid}
        return Queries.from_arrays(X, None, **ids, categories=categories)

    def predict_rows(self, queries: Queries, first_row: int | None = None) -> Floats:
        """Return a float64 score per row; ``first_row`` is the place of a block's first row in its file, for errors."""
        return self._check_finite(self.adapt(queries, first_row).compute_scores(self.scorer), first_row or 0)

    def adapt(self, queries: Queries, first_row: int | None = None) -> Queries:
        """Return documents as the scorer takes them: checked, categories in the model's numbers, and scaled."""
        queries = self.choose_features(queries)
        if self.is_zero_based and queries.n_features == self.n_features - 1:
            raise InputError(
                f"the documents have {queries.n_features} features; the {self.ranker} model has {self.n_features}. If "
                "it read text that counts from 1, its first column is empty: import it with drop_first=True "
                "(--drop-first)"
            )
        check_features(queries, self.n_features, self.features, "the model was trained on")
        if self.features is None and queries.features is not None:
            self._warn_of_names(queries.features)
        if not self.scorer.allow_nan:
            check_complete(queries, "the documents", f"this {self.ranker} model", self.features, first_row)
        own = queries.replace(features=self.features) if queries.features is None and self.features else queries
        recoded = own.with_categories(self.categories, "the model was trained on")
        return recoded if self.scaling is None else self.scaling(recoded)

    def choose_features(self, queries: Queries) -> Queries:
        """Return documents without the features beyond those that an open-ended model knows; else as they are."""
        n = self.n_features
        if not self.is_open_ended or queries.n_features <= n:
            return queries
        names, categories = queries.features, queries.categories
        return queries.map_X(partial(_take_columns, n=n)).replace(
            features=None if names is None else names[:n],
            categories=None if categories is None else categories[:n],
        )

    def _warn_of_names(self, names: tuple[str, ...]) -> None:
        """Warn that columns with names are taken in their order, unless their names are the model's numbers."""
        if names != tuple(map(str, range(1, len(names) + 1))):
            some = ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")
            warn(
                f"the model was trained without names of features: the columns {some} are taken in their order. Check "
                "it, and train on a table or a data frame, whose names a model keeps",
                UnnamedFeaturesWarning,
            )

    def _check_finite(self, scores: Floats, first_row: int) -> Floats:
        """Return the scores, or raise if some are not finite: their order would be arbitrary."""
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores)))
            raise InputError(
                f"the {self.ranker} model scores row {first_row + row} with {scores[row]}; expected finite scores: its "
                "weights are too large for these features. Scale the features, or train the model again"
            )
        return scores

    def rank(self, X: Any, k: int | None = None, *, qid: ArrayLike | None = None) -> dict[Any, NDArray[Any]]:
        """Return for each query id at most ``k`` documents in ranked order: their ids, or the caller's row numbers.

        ``qid`` is needed with arrays and data frames.
        """
        if isinstance(X, Queries) and qid is not None:
            raise InputError("qid is part of the Queries; expected rank(queries)")
        queries = X if isinstance(X, Queries) else group_for_ranking(X, qid)
        return rank(queries, self.predict(queries), k)

    def score(self, queries: Queries) -> float:
        """Return the mean of the model's measure."""
        return parse_measure(self.measure).mean(queries, self.predict(queries))


def list_model_facts(model: Model) -> list[tuple[str, str]]:
    """Return what a notebook shows of a model: names and texts."""
    kept = next((row for row in model.history if row.get("kept")), model.history[-1] if model.history else {})
    chosen = {name: value for name, value in model.params.items() if value is not None and name not in _NOT_SHOWN}
    texts = {name: str(value) for name, value in chosen.items()}
    shown = [f"{name}={text[:_LONGEST]}{'...' * (len(text) > _LONGEST)}" for name, text in texts.items()]
    values = {f"on {what} queries": kept.get(what[:5]) for what in ("training", "validation")}
    return [
        ("model", f"{model.scorer.kind} of {model.n_features:,} features"),
        *((f"{model.measure} {what}", f"{value:.4f}") for what, value in values.items() if isinstance(value, float)),
        *([("rounds", f"{len(model.history):,}")] if model.history else []),
        *([("parameters", ", ".join(shown))] if shown else []),
    ]


def _take_columns(queries: Queries, n: int) -> Floats:
    """Return the first ``n`` features of the documents."""
    return np.ascontiguousarray(queries.X[:, :n])


def group_for_ranking(X: Any, qid: ArrayLike | None, **options: Any) -> Queries:
    """Return documents that come as an array or a data frame as queries; raise InputError without query ids."""
    if qid is None:
        raise InputError("rank needs qid with arrays and data frames: which documents are ranked together; pass qid=")
    return Queries.from_arrays(X, None, qid, **options)


def rank(queries: Queries, scores: Floats, k: int | None = None) -> dict[Any, NDArray[Any]]:
    """Return for each query id the document ids by descending score; without ids, the numbers of the caller's rows."""
    if k is not None and k < 1:
        raise InputError(f"k={k}; expected at least 1")
    ranked: dict[Any, NDArray[Any]] = {}
    names = queries.docid
    for query, rows in zip(queries.qid.tolist(), queries.ranked(scores), strict=True):
        if query in ranked:
            raise InputError(
                f"query id {query!r} occurs twice, and rank returns a ranking per id; expected ids that differ "
                "(take each query once)"
            )
        ranked[query] = rows[:k] if names is None else names[rows[:k]]
    return ranked


def check_features(
    queries: Queries, n_features: int, names: tuple[str, ...] | None, where: str, what: str = "the documents"
) -> None:
    """Raise InputError if the features differ from the expected ones: by name where both are named, else in number."""
    if names is not None and queries.features is not None:
        check_names(queries.features, names, where, what)
    elif queries.n_features != n_features:
        raise InputError(f"{what} have {queries.n_features} features; {where} {n_features}")


def check_names(found: tuple[str, ...], names: tuple[str, ...], where: str, what: str = "the documents") -> None:
    """Raise InputError if names of features are not the expected ones: one is missing, is too many, or elsewhere."""
    if found == names:
        return
    missing = [name for name in names if name not in found]
    if missing:
        hint = suggest_column(missing[0], found)
        shown = ", ".join(map(repr, missing[:_LISTED])) + (", ..." if len(missing) > _LISTED else "")
        raise InputError(f"{what} have no feature {shown}, which {where}; {hint}")
    extra = [name for name in found if name not in names]
    way_out = "frame[list(model.features)], or features=model.features of rw.read and Queries.from_frame"
    if "model" not in where:
        way_out = "frame[list(names)] with the names of the training features"
    if extra or len(found) != len(names):
        shown = ", ".join(map(repr, extra[:_LISTED])) + (", ..." if len(extra) > _LISTED else "")
        other = f"other columns ({shown})" if extra else "a column twice"
        raise InputError(
            f"{what} have {other} beside the {len(names)} features that {where}. Choose columns by name: {way_out}"
        )
    at = next(i for i, (name, own) in enumerate(zip(names, found, strict=True)) if name != own)
    raise InputError(
        f"feature {at + 1} is called {found[at]!r}; {where} {names[at]!r} in its place. Choose columns by name: "
        f"{way_out}"
    )


def check_complete(
    queries: Queries, what: str, ranker: str, features: tuple[str, ...] | None = None, first_row: int | None = None
) -> None:
    """Raise InputError if a feature of a document is NaN.

    ``features`` are names for queries without names; ``first_row`` is the place of a block's first row in its file.
    """
    if not has_missing(queries):
        return
    near = choose_nearest(queries, Serial())
    is_bad = queries.restore(near.concat(_flag_incomplete, near.scatter(queries.grouped())))
    row = int(np.argmax(is_bad))
    column = int(np.argmax(np.isnan(queries.read_rows([row])[0])))
    name = name_features(queries.features or features, queries.n_features)[column]
    n_bad = int(is_bad.sum())
    count = f"in {n_bad:,} of {len(is_bad):,} rows, first in " if first_row is None else ""
    raise InputError(
        f"{what} contain NaN ({count}row {row + (first_row or 0)}, counted from 0, feature {name}); {ranker} takes "
        "complete features only: fill them in, leave the feature out, or use a ranker that takes NaN "
        f"({', '.join(NAN_RANKERS)})"
    )


def has_missing(queries: Queries) -> bool:
    """Return whether a feature of a document is NaN."""
    near = choose_nearest(queries, Serial())
    return any(place >= 0 for place in near.gather(_find_missing, near.scatter(queries.grouped())))


def _find_missing(queries: Queries) -> int:
    """Return the place of the first NaN of these documents, counted along the rows; -1 if there is none."""
    return find_first_missing(queries.X)


def _flag_incomplete(queries: Queries) -> NDArray[np.bool_]:
    """Return for each of these documents whether a feature of it is NaN."""
    return np.asarray(np.isnan(queries.X).any(axis=1))


def to_json_value(value: Any) -> Any:
    """Convert a value to what JSON can hold: objects such as measures to text, NaN and infinity to null."""
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_json_value(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if callable(value) and " at 0x" in repr(value):  # an address differs from run to run
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return None if value is None else str(value)
