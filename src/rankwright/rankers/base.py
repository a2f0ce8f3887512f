"""The contract of every ranker: a scikit-learn estimator that knows queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, cast

from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import (
    CollectedWarning,
    IneffectiveParameterWarning,
    InputError,
    collect_warnings,
    quote,
    warn,
)
from rankwright.basics.html_tables import format_html_table
from rankwright.data.categories import Categories, join_categories
from rankwright.data.queries import Queries
from rankwright.data.row_hashes import LARGEST, SeenQueries, sort_by_content
from rankwright.measures import Measure, check_counted, parse_measure
from rankwright.models.model import Model, group_for_ranking, list_model_facts, to_json_value
from rankwright.objectives.upper_bounds import UpperBound
from rankwright.rankers.fit_memory import FIXED, DataSize, check_memory, estimate_copies
from rankwright.rankers.fit_result import FitResult as FitResult
from rankwright.rankers.fit_result import check_finite, warn_if_degenerate_or_unconverged
from rankwright.rankers.input_checks import QueriesLike, QueryEstimator, is_changed, refuse_arguments
from rankwright.rankers.parameter_names import ComposedDocstring
from rankwright.rankers.training_watch import TrainingWatch
from rankwright.runtime.backends import Backend, Serial, resolve
from rankwright.runtime.shared_preparations import prepare_once
from rankwright.scorers import Scorer
from rankwright.scorers.linear import QueryScaling, check_scale


class FitInput(NamedTuple):
    """The input of one fit after all checks: the scaled queries, the measure, the scaling and the backend."""

    train: Queries
    valid: Queries | None
    measure: Measure
    scaling: QueryScaling | None
    backend: Backend
    seen: SeenQueries | None  # None where documents came without query ids


SET_BY_VALIDATION = ("n_features_in_", "feature_names_in_")


_SOME_GRADE = 2.0  # that measures which depend on the highest grade are given where there are no data


class _NoQueries:
    """A stand-in for the data while parameters are checked: reading anything from it raises LookupError."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)

    def __len__(self) -> int:
        raise LookupError("len")


@dataclass(kw_only=True, eq=False, repr=False)
class Ranker(ComposedDocstring, QueryEstimator, ABC):
    """The base of all rankers: ``fit`` on judged queries, ``predict`` scores, ``score`` by the ranker's measure.

    Concrete rankers are final, take keyword parameters only and implement ``_fit``. ``qid`` is routed by scikit-learn
    (``sklearn.set_config(enable_metadata_routing=True)``) without further requests.

    Parameters
    ----------
    measure : str or Measure
        Measure recorded in `history_` and used to choose the model that is kept.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Attributes
    ----------
    scorer_ : Scorer
        The learned function of raw features.
    history_ : list of dict
        One dict per round: loss, the measure on training and validation queries, and what else the method has.
    n_features_in_ : int
        The number of features.
    n_queries_ : int
        The number of training queries.
    fit_warnings_ : list of CollectedWarning
        The category and the message of each warning that ``fit`` issued.
    """

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # parameters worth selecting on any data
    searches_weights: ClassVar[bool] = False  # training searches the measure along single weights
    is_doc_weighted: ClassVar[bool] = False  # its loss is a sum over documents or pairs that uses ``doc_weight``
    keeps_last: ClassVar[bool] = False  # the model is the last round, an optimum, and not the best one by validation
    pools_valid: ClassVar[bool] = False  # validation queries join training; the choice is by ``estimate_``, not by them
    unsaved: ClassVar[frozenset[str]] = frozenset()  # parameters that say nothing about the model
    bytes_per_doc: ClassVar[int] = 180  # of memory that a fit takes beside the data, measured and rounded up

    measure: str | Measure = "ndcg@10"
    backend: Backend | None = None

    scorer_: Scorer = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    fit_warnings_: list[CollectedWarning] = field(init=False)
    _seen: SeenQueries | None = field(init=False)

    @abstractmethod
    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        """Train; per-query scaling has been done, standard scaling is the ranker's own affair."""

    def _sorts_rows(self) -> bool:
        """Return whether training rows are sorted by their content, so that their order changes nothing."""
        return True

    def estimate_memory(self, n_docs: int, n_features: int, n_queries: int) -> int:
        """Return about how many bytes of memory a fit on so much data takes, beside the data set itself.

        A data set that is mapped from files takes none itself. ``fit`` refuses to begin if less than this is free.
        """
        size = DataSize(n_docs, n_features, n_queries)
        return int(FIXED + self.bytes_per_doc * n_docs + estimate_copies(self, size) + self._more_memory(size))

    def _more_memory(self, size: DataSize) -> float:
        """Return the bytes that a fit takes beside those of each document: bins, tables, copies; none by default."""
        return 0.0

    def find_minimised_bound(self, measure: Measure) -> UpperBound | None:
        """Return the bound on this measure that training minimises; None if it minimises no bound on a measure."""
        return None

    def takes_doc_weight(self, measure: Measure) -> bool:
        """Return whether document weights have a meaning in the loss that training minimises."""
        return self.is_doc_weighted

    def _check_doc_weight(self, train: Queries, measure: Measure) -> None:
        """Raise InputError if documents are weighted and the loss has no use for that."""
        if train.doc_weight is None or self.takes_doc_weight(measure):
            return
        objective = getattr(self, "objective", None)
        what = type(self).__name__ + ("" if objective is None else f" with objective={quote(objective)}")
        raise InputError(
            f"the documents have weights; {what} takes none: its loss is of whole rankings, not a sum over documents "
            "or pairs (an objective of your own says takes_doc_weight = True if it uses queries.doc_weight). Leave "
            "them out (queries.replace(doc_weight=None)), weight queries instead, or use Regression, MART, GBRank, "
            "RankNet, RankSVM, RankBoost or FRank, or another objective"
        )

    def _earlier_categories(self, train: Queries) -> Categories | None:
        """Return the categories of the model that training continues; None if there is no such model."""
        return None

    def _label(self, queries: Queries, measure: Measure) -> Queries:
        """Return queries with the grades that training sees: those made of clicks, if the measure is from clicks."""
        if not measure.is_from_clicks:
            return queries
        return prepare_once(queries, f"grades of {measure}", lambda: measure.label(queries), 8 * queries.n_docs)

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        """Yield the parameters that have no effect together with the others, and why.

        ``random_state`` is never among them: a seed where nothing is random is kept to, too.
        """
        yield from ()

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        valid: QueriesLike | None = None,
        **other: Any,
    ) -> Self:
        """Train on judged queries.

        Parameters
        ----------
        X : Queries, or array-like, data frame or sparse matrix of shape (n_docs, n_features)
            The documents.
        y : array-like of shape (n_docs,)
            Relevance grades from 0 up; not with a ``Queries``.
        qid : array-like of shape (n_docs,)
            Query ids in any order. Without them all documents count as one query, and ``MissingQueryIdWarning`` is
            issued.
        valid : Queries or (X, y, qid), optional
            Validation queries, also as a tuple of arrays or data frames like those of training. The round that is
            best on them by the ranker's measure is kept, unless training ends at an optimum. Without them the last
            round is kept; AdaRank keeps the best one on training queries.
        **other
            Anything else is an error; ``sample_weight`` is one that names the way to weight documents.
        """
        refuse_arguments(other, "fit")
        with collect_warnings(issue=True) as found:
            with self._restore_on_failure():
                task = self._prepare_fit(X, y, qid, valid)
                with self._make_watch(task) as watch:
                    outcome = self._fit(task.train, task.valid, task.measure, task.backend)
                if watch.should_stop:
                    outcome = outcome._replace(unconverged=None)  # it ended where it was told to
                self._store_result(task, outcome)
            self.fit_warnings_ = found
            watch.warn_if_interrupted()
            warn_if_degenerate_or_unconverged(outcome, type(self).__name__, task.train)
        return self

    def check_parameters(self) -> None:
        """Raise the InputError that ``fit`` with validation queries would raise for these parameters on any data.

        A check that depends on the data, such as the number of a feature or the length of a prior, is left to ``fit``.
        It takes microseconds: ``_fit`` is run up to where it first looks at the data.
        """
        self._check_common()
        measure = parse_measure(self.measure).with_max_grade(_SOME_GRADE)
        resolve(self.backend)
        nothing = cast(Queries, _NoQueries())
        try:
            with collect_warnings(), progress.mute():
                self._fit(nothing, nothing, measure, Serial())
        except InputError:
            raise
        except Exception:  # the data are asked for, and whatever comes of it that there are none
            return

    def _check_common(self) -> None:
        """Raise InputError for a parameter of many rankers that is wrong on any data."""
        scale = getattr(self, "scale", None)
        if scale is not None:
            check_scale(scale)

    def _make_watch(self, task: FitInput) -> TrainingWatch:
        """Return what watches the rounds of a fit; nobody does by default."""
        return TrainingWatch(type(self).__name__, (), 0, partial(self._build_model, task))

    @contextmanager
    def _restore_on_failure(self) -> Iterator[None]:
        """Restore the attributes of the last fit if fitting fails."""
        state: dict[str, Any] = self.__dict__
        before = dict(state)
        try:
            yield
        except BaseException:
            state.clear()
            state.update(before)
            raise

    def _prepare_fit(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, validation: QueriesLike | None
    ) -> FitInput:
        """Check everything and do per-query scaling."""
        self._check_common()
        measure, train = parse_measure(self.measure), self._group_training_rows(X, y, qid)
        valid = self._group_validation_rows(validation)
        backend = resolve(self.backend, train, valid)
        if train.backend is None:
            check_memory(self, DataSize.of(train))
        self._check_sets(train, valid)
        train, valid = self._label(train, measure), None if valid is None else self._label(valid, measure)
        self._check_doc_weight(train, measure)
        train = train.with_categories(
            join_categories(self._earlier_categories(train), train.categories), "training has"
        )
        valid = None if valid is None else valid.with_categories(train.categories, "training has")
        for parameter, why in self._find_ineffective(measure, valid):
            if is_changed(self, parameter):
                warn(f"{type(self).__name__}: {parameter} has no effect here: {why}", IneffectiveParameterWarning)
        train, valid = train.grouped(), None if valid is None else valid.grouped()
        measure = measure.with_max_grade(max(part.max_grade for part in (train, valid) if part is not None))
        for part, what in ((train, "training"), (valid, "validation")):
            if part is not None:
                check_counted(measure, part, what)
        seen = None if qid is None and not isinstance(X, Queries) else SeenQueries.of(train)
        if self._sorts_rows():
            rows = train
            n_bytes = 0 if rows.X.nbytes > LARGEST else rows.X.nbytes  # such rows are not copied
            train = prepare_once(rows, "rows by content", lambda: sort_by_content(rows, backend), n_bytes)
        scaling = QueryScaling() if getattr(self, "scale", None) == "query" else None
        if scaling is not None:
            train, valid = scaling(train), None if valid is None else scaling(valid)
        return FitInput(train, valid, measure, scaling, backend, seen)

    def _store_result(self, task: FitInput, outcome: FitResult) -> None:
        """Store the result of training as fitted attributes."""
        train = task.train
        check_finite(outcome, type(self).__name__, train)
        self.model_ = self._build_model(task, outcome.scorer, outcome.history)
        self.measure_, self.scorer_, self.history_ = task.measure, outcome.scorer, outcome.history
        self.n_features_in_, self.n_queries_ = train.n_features, len(train)
        self._seen = task.seen

    def _build_model(self, task: FitInput, scorer: Scorer, history: list[dict[str, Any]]) -> Model:
        """Return the model of a scorer that was trained on these queries."""
        given, train = self.get_params(deep=False), task.train
        params = to_json_value({name: value for name, value in given.items() if name not in self.unsaved})
        about = train.features, task.scaling, history, train.categories
        return Model(type(self).__name__, params, str(task.measure), scorer, train.n_features, *about)

    def predict(self, X: Any, *, qid: ArrayLike | None = None) -> Floats:
        """Return a float64 score per row, in the caller's order; larger is ranked earlier.

        ``qid`` is needed with arrays under ``scale="query"`` only.

        Parameters
        ----------
        X : Queries, or array-like, data frame or sparse matrix of shape (n_docs, n_features)
            The documents.
        qid : array-like of shape (n_docs,), optional
            Query ids; needed under ``scale="query"`` only.
        """
        model = self.to_model()
        # of anything but a matrix of floats, scikit-learn checks types and names
        takes_rows = model.takes_rows(X) and X.dtype.kind == "f" and not hasattr(self, "feature_names_in_")
        return model.predict(X if takes_rows or isinstance(X, Queries) else self._group_documents(X, qid))

    def _group_documents(self, X: Any, qid: ArrayLike | None) -> Queries:
        """Return documents that come as an array or a data frame as queries, checked by scikit-learn."""
        model = self.to_model()
        matrix, categories = self._validate_matrix(X, reset=False)
        return model.group_documents(matrix, qid, categories)

    def rank(self, X: Any, k: int | None = None, *, qid: ArrayLike | None = None) -> dict[Any, NDArray[Any]]:
        """Return by query id its documents in ranked order, at most ``k``: their ids, or their row numbers.

        Parameters
        ----------
        X : Queries, or array-like, data frame or sparse matrix of shape (n_docs, n_features)
            The documents. Rows are numbered from 0, in the caller's order.
        k : int, optional
            The number of documents of each query; None returns all.
        qid : array-like of shape (n_docs,)
            Query ids in any order; not with a ``Queries``.
        """
        model = self.to_model()
        if isinstance(X, Queries):
            return model.rank(X, k, qid=qid)
        matrix, categories = self._validate_matrix(X, reset=False)
        names = getattr(self, "feature_names_in_", None)
        return model.rank(group_for_ranking(matrix, qid, features=names, categories=categories), k)

    def score(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, sample_weight: None = None
    ) -> float:
        """Return the mean over the queries of the measure that the ranker was fitted with.

        ``SplitQueryWarning`` is issued where queries have the ids of training queries but other documents: a split,
        as of ``KFold``, may have cut them apart.

        ``sample_weight`` exists because ``Pipeline.score`` passes it; give weights to ``Queries`` instead.

        Parameters
        ----------
        X : Queries, or array-like, data frame or sparse matrix of shape (n_docs, n_features)
            The documents.
        y : array-like of shape (n_docs,)
            Relevance grades; not with a ``Queries``.
        qid : array-like of shape (n_docs,)
            Query ids; not with a ``Queries``.
        sample_weight : None
            An argument that scikit-learn passes; anything but None is an error.
        """
        check_is_fitted(self)
        if sample_weight is not None:
            raise InputError("score takes no sample_weight; queries are weighted by Queries(weight=...)")
        if isinstance(X, Queries):
            return self._mean(X)
        if qid is None and self.n_queries_ > 1:
            raise InputError(
                "score needs qid: the ranker was trained on several queries, and without query ids all documents "
                "would count as one. Pass qid=, and sklearn.set_config(enable_metadata_routing=True) in "
                "cross-validation"
            )
        return self._mean(self._group_rows(X, y, qid, "score"))

    def _mean(self, queries: Queries) -> float:
        """Return the mean measure on these queries."""
        if self._seen is not None:
            self._seen.warn_if_split(queries)
        return self.measure_.mean(queries, self.predict(queries))

    def to_model(self) -> Model:
        """Return what is saved: scorer, scaling, measure, parameters, feature names and history, as of the fit."""
        check_is_fitted(self)
        return self.model_

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the facts of the model or, before a fit, the parameters."""
        name = type(self).__name__
        if self.__sklearn_is_fitted__():
            facts = [*list_model_facts(self.model_), ("training queries", f"{self.n_queries_:,}")]
            estimate = getattr(self, "estimate_", None)
            if estimate is not None:
                range_ = f"[{estimate.low:.4f}, {estimate.high:.4f}]"
                facts.insert(1, (f"{self.measure_} on new queries, estimated", f"{estimate.mean:.4f} {range_}"))
            return format_html_table(name, ["", ""], facts)
        rows = [(parameter, str(value)) for parameter, value in self.get_params(deep=False).items()]
        return format_html_table(f"{name}, not fitted", ["parameter", "value"], rows)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return text and HTML for notebooks, in place of scikit-learn's diagram."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
