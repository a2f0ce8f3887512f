"""Candidates of a blend: what can be fitted to a part of the queries, and the scorers that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from inspect import signature
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import CollectedWarning, IneffectiveParameterWarning, InputError, collect_warnings, warn
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.imports.importing import as_model
from rankwright.models.model import Model
from rankwright.rankers.base import Ranker
from rankwright.rankers.blend.estimator_scorer import EstimatorScorer
from rankwright.rankers.blend.fold_plan import iterate_round_counts
from rankwright.rankers.boosting import AdditiveRanker
from rankwright.rankers.common_parameters import PathRanker
from rankwright.rankers.input_checks import is_changed
from rankwright.rankers.networks.training_options import TrainingOptions
from rankwright.runtime.backends import Backend, Serial
from rankwright.scorers import Scorer


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An estimator that can be a member of a blend, in one or several variants.

    Parameters
    ----------
    name : str
        The name of the member that it is a candidate for.
    estimator : Ranker, Model or estimator of scikit-learn
        A model is fixed; anything else is fitted.
    path_values : tuple
        Values of the ranker's path parameter, each of which is a variant; empty for the ranker's own value.
    """

    name: str
    estimator: Any
    path_values: tuple[Any, ...] = ()

    def describe(self) -> str:
        """Return the candidate as text: its class, and the parameters that differ from their defaults."""
        estimator = self.estimator
        if not isinstance(estimator, Ranker):
            return estimator.ranker if isinstance(estimator, Model) else type(estimator).__name__
        hidden = ("measure", "backend", "random_state", "max_seconds")
        names = [name for name in estimator.parameter_names() if name not in hidden and is_changed(estimator, name)]
        values = [f"{name}={getattr(estimator, name)!r}" for name in names]
        values += (
            [f"{estimator.path_parameter}={self.path_values[0]:g} to {self.path_values[-1]:g}"]
            if self.path_values
            else []
        )
        return f"{type(estimator).__name__}({', '.join(values)})"


def adapt_to_blend(member: Any, measure: Measure) -> Any:
    """Return a member with the measure of its blend, unless it has one of its own, and without early stopping.

    A blend chooses the number of rounds by the queries of the other folds.
    """
    if isinstance(member, Model):
        _check_scaling(member.scaling is not None)
    if not isinstance(member, Ranker):
        return member
    ranker = clone(member)
    ranker.check_parameters()
    _check_scaling(getattr(ranker, "scale", None) == "query")
    if not is_changed(ranker, "measure"):
        ranker.set_params(measure=measure)
    if getattr(ranker, "early_stopping_rounds", None) is not None:
        _warn_of_option(ranker, "early_stopping_rounds")
        ranker.set_params(early_stopping_rounds=None)
    if getattr(ranker, "training", None) is not None:
        ranker.set_params(training=_adapt_training(ranker))
    return ranker


_OPTIONS = {  # of training, and why they have no effect in a blend
    "early_stopping_rounds": "whose fits have no validation queries",
    "checkpoint": "whose fits would all write to one file",
}


def _adapt_training(ranker: Ranker) -> dict[str, Any]:
    """Return the options of training in epochs without early stopping and checkpoints."""
    given = ranker.training
    options = asdict(given) if isinstance(given, TrainingOptions) else dict(given)
    for name in _OPTIONS:
        if options.pop(name, None) is not None:
            _warn_of_option(ranker, name)
    return options


def _warn_of_option(ranker: Ranker, name: str) -> None:
    """Warn that a blend does not use a parameter of a member."""
    warn(f"{type(ranker).__name__}: {name} has no effect in a blend, {_OPTIONS[name]}", IneffectiveParameterWarning)


class FoldFit(NamedTuple):
    """A candidate that was fitted without the queries of one fold, and the measure of its variants on that fold.

    Parameters
    ----------
    variants : tuple of Scorer
        A scorer for each value of the path parameter, or for each of some numbers of rounds.
    values : array of shape (n_variants, n_queries)
        The measure of each query of the fold.
    seconds : float
        The time that the fit took.
    warnings : tuple of CollectedWarning
        The warnings of the fit.
    """

    variants: tuple[Scorer, ...]
    values: Floats
    seconds: float
    warnings: tuple[CollectedWarning, ...]

    @property
    def was_cut_short(self) -> bool:
        """Whether a limit on the time ended the fit."""
        return any("max_seconds" in found.message for found in self.warnings)


def fit_candidate(
    candidate: Candidate, parts: tuple[Queries, Queries], measure: Measure, max_seconds: float | None, backend: Backend
) -> FoldFit:
    """Fit a candidate to the training queries of a fold, and measure its variants on the queries of the fold."""
    train, held_out = parts
    start = perf_counter()
    with collect_warnings() as found, name_member_in_errors(candidate.name):
        variants, scores = _fit_variants(candidate, train, held_out, max_seconds, backend)
        prepared = measure.prepare(held_out)
        values = np.array([prepared.values(each, Serial()) for each in scores])
    return FoldFit(variants, values, perf_counter() - start, tuple(found))


@contextmanager
def name_member_in_errors(member: str) -> Iterator[None]:
    """Name the member of a blend in the errors of its fits: at the start of an InputError, else in a note."""
    try:
        yield
    except InputError as error:
        raise InputError(f"the member {member}: {error}") from error
    except Exception as error:
        error.add_note(f"This was raised by {member}, a member of a blend.")
        raise


def _fit_variants(
    candidate: Candidate, train: Queries, held_out: Queries, max_seconds: float | None, backend: Backend
) -> tuple[tuple[Scorer, ...], Iterator[Floats]]:
    """Return a scorer for each variant, and the scores of the held-out documents by each."""
    estimator = candidate.estimator
    if isinstance(estimator, Model):
        variants: Sequence[Scorer] = [estimator.scorer]
    elif not isinstance(estimator, Ranker):
        variants = [_fit_foreign(estimator, train, bool(np.isnan(train.X).any() or np.isnan(held_out.X).any()))]
    else:
        ranker = _set_limits(clone(estimator), max_seconds, backend)
        if candidate.path_values and isinstance(ranker, PathRanker):
            fitted: Sequence[Ranker] = ranker.fit_path(candidate.path_values, train)
        else:
            fitted = [ranker.fit(train)]
        variants = [each.scorer_ for each in fitted]
        if isinstance(ranker, AdditiveRanker) and ranker.is_stagewise and ranker.init_model is None:
            checkpoints = list(iterate_round_counts(ranker.n_estimators))
            stages = _slice_stages(variants[0], checkpoints)
            if stages is not None:
                return stages, _score_stages(variants[0], checkpoints, held_out)
    return tuple(variants), (held_out.compute_scores(scorer) for scorer in variants)


def _set_limits(ranker: Ranker, max_seconds: float | None, backend: Backend) -> Ranker:
    """Return a ranker with a limit on its time, where it can have one, and the backend of the blend."""
    params: dict[str, Any] = {"backend": backend} if ranker.backend is None else {}
    if max_seconds is not None and hasattr(ranker, "max_seconds"):
        params["max_seconds"] = max_seconds if ranker.max_seconds is None else min(max_seconds, ranker.max_seconds)
    return ranker.set_params(**params)


def _slice_stages(scorer: Scorer, checkpoints: Sequence[int]) -> tuple[Scorer, ...] | None:
    """Return the sums of the first terms of a scorer, up to each checkpoint; None if it is no sum of terms."""
    stages = [scorer.slice_terms(0, n) for n in checkpoints]
    found = tuple(stage for stage in stages if stage is not None)
    return found if len(found) == len(stages) else None


def _score_stages(scorer: Scorer, checkpoints: Sequence[int], queries: Queries) -> Iterator[Floats]:
    """Yield the scores of documents by the first terms of a scorer, up to each checkpoint."""
    total = np.zeros(queries.n_docs)
    for start, stop in pairwise([0, *checkpoints]):
        part = scorer.slice_terms(start, stop)
        assert part is not None
        total = total + queries.compute_scores(part)
        yield total


def _check_scaling(is_by_query: bool) -> None:
    """Raise InputError if a member needs the other documents of a query, for its scaling of features."""
    if is_by_query:
        raise InputError(
            "it scales features within each query (scale='query'), but a blend scores each document by itself; use "
            "scale='standard' or None for its members"
        )


def _fit_foreign(estimator: Any, train: Queries, has_missing: bool) -> Scorer:
    """Fit an estimator of scikit-learn's interface to documents and their grades; return it as a scorer.

    Rankers of other libraries get the queries, under the name that their ``fit`` has for them. ``has_missing`` says
    whether the documents have missing features, which may be those of the held-out documents alone.
    """
    fitted, kind = clone(estimator), type(estimator).__name__
    is_of_sklearn = type(estimator).__module__.startswith("sklearn.")
    X = train.X.astype(np.float64) if is_of_sklearn else train.X  # in single precision it solves in single precision
    try:
        fitted.fit(X, train.y, **_list_fit_options(fitted, train))
    except ValueError as error:
        if has_missing and not says_allow_nan(fitted):
            why = str(error).partition("\n")[0]
            raise InputError(
                f"a {kind} failed on documents with missing features ({why}); put an imputer before it, as in "
                "make_pipeline(SimpleImputer(), ...), or leave it out"
            ) from error
        raise
    try:
        return as_model(fitted).scorer
    except InputError as error:
        if _predicts_classes(fitted):
            raise InputError(f"a {kind} predicts classes; expected a regressor, which is fitted to grades") from error
        allow_nan = says_allow_nan(fitted) or (has_missing and _scores_missing(fitted, train.n_features))
        return EstimatorScorer(fitted, train.n_features, allow_nan)


def says_allow_nan(estimator: Any) -> bool:
    """Return whether an estimator says that it takes missing features."""
    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except AttributeError:  # of an estimator that says nothing of itself
        return False


def _scores_missing(fitted: Any, n_features: int) -> bool:
    """Return whether a fitted estimator scores a document without any feature, as a pipeline with an imputer does."""
    try:
        return bool(np.isfinite(fitted.predict(np.full((1, n_features), np.nan))).all())
    except ValueError:
        return False


def _predicts_classes(estimator: Any) -> bool:
    """Return whether an estimator says that it is a classifier."""
    try:
        return bool(is_classifier(estimator))
    except AttributeError:  # of an estimator that says nothing of itself
        return False


def _list_fit_options(estimator: Any, train: Queries) -> dict[str, Any]:
    """Return what ``fit`` of another library's estimator takes beside documents and grades: queries and weights."""
    names = signature(estimator.fit).parameters
    options: dict[str, Any] = {}
    if "qid" in names or "group_id" in names:
        options["qid" if "qid" in names else "group_id"] = np.repeat(np.arange(len(train)), train.sizes)
    elif "group" in names:
        options["group"] = train.sizes
    if train.weight is None and train.doc_weight is None:
        return options
    if "sample_weight" in names:
        options["sample_weight"] = train.query_weight if "qid" in names else train.row_weight
    else:
        warn(
            f"{type(estimator).__name__}.fit takes no sample_weight: the weights of queries count in the weights of "
            "the blend, but not in its training",
            IneffectiveParameterWarning,
        )
    return options


def check_takes_doc_weight(estimator: Any) -> None:
    """Raise InputError unless an estimator of another library takes a weight for each document."""
    if not takes_doc_weight(estimator):
        raise InputError(
            f"the documents have weights, and {type(estimator).__name__}.fit takes none (sample_weight); leave them "
            "out (queries.replace(doc_weight=None)), weight queries instead, or leave the member out"
        )


def takes_doc_weight(estimator: Any) -> bool:
    """Return whether an estimator of another library takes a weight for each document."""
    names = signature(estimator.fit).parameters
    return "sample_weight" in names and "qid" not in names
