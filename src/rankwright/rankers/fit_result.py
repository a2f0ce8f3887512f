"""The result of training, and the warnings for a model that learned nothing or a search that did not converge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import DegenerateModelWarning, InputError, warn
from rankwright.data.queries import Queries
from rankwright.runtime.backends import Serial, choose_nearest
from rankwright.scorers import Scorer

_FIRST_DOCS = 1_000  # that are scored at first to see whether a model ranks anything
_FEW_DOCS = 10_000  # of the first queries, up to which they are scored before all others


class FitResult(NamedTuple):
    """The result of training: a scorer, its history, and messages for fits that did not converge or learn.

    Parameters
    ----------
    scorer : Scorer
        The model.
    history : list of dict
        One dict per round.
    unconverged : str, optional
        Where training stopped before its tolerance: the limit that stopped it, how far it got, and the way out, as
        in "stopped at max_iter=200 with a duality gap of 3.1% of the objective (tol=1e-06); raise max_iter".
    reason : str, optional
        Why the model ranks no document above another, if it does not, and the way out.
    """

    scorer: Scorer
    history: list[dict[str, Any]]
    unconverged: str | None = None
    reason: str | None = None


def check_finite(outcome: FitResult, name: str, train: Queries) -> None:
    """Raise InputError if a trained model has weights or scores that are infinite or NaN."""
    scorer = outcome.scorer
    linear = scorer.linear
    finite = linear is None or bool(np.isfinite([*linear.coef, linear.intercept]).all())
    if not finite or not np.isfinite(scorer(_read_first(train, _FIRST_DOCS))).all():
        raise InputError(
            f"{name} ended with a model that is not finite: numbers became too large in training. Expected parameters, "
            "grades and features of ordinary size; scale them down"
        )


def warn_if_degenerate_or_unconverged(outcome: FitResult, name: str, train: Queries) -> None:
    """Warn if a trained model learned nothing from its queries, or if training did not converge."""
    nothing = _explain_unlearnable(train)
    if nothing is None and not _ranks_any(outcome.scorer, train):
        nothing = _explain_equal_scores(outcome, train)
    if nothing is not None:
        warn(f"{name} learned no ranking: {nothing}", DegenerateModelWarning)
    if outcome.unconverged is not None:
        warn(f"{name} did not converge: {outcome.unconverged}", ConvergenceWarning)


def describe_gap(gap: float, objective: float, tol: float, steps: int, max_iter: int) -> str | None:
    """Return a message if the duality gap is above ``tol`` times the objective: how large, what to do; else None."""
    if gap <= tol * objective:
        return None
    left = f"with a duality gap of {100 * gap / objective:.3g}% of the objective"
    if steps >= max_iter:
        return f"stopped at max_iter={max_iter} {left} (tol={tol:g}); raise max_iter, or tol"
    return f"stopped after {steps} steps {left} (tol={tol:g}), where rounding allows no more progress; raise tol"


def _explain_unlearnable(train: Queries) -> str | None:
    """Return why no query has documents of different grades to learn from; None if some query has."""
    starts, counted = train.indptr[:-1], train.query_weight > 0
    varies = np.maximum.reduceat(train.y, starts) > np.minimum.reduceat(train.y, starts)
    if (varies & counted).any():
        return None
    if varies.any():
        return "every training query with documents of different grades has the weight 0"
    if train.y.min() == train.y.max():
        return f"all training documents have the grade {train.y[0]:g}; check the labels"
    if train.sizes.max() == 1:
        return "every training query has one document; check the query ids"
    return "no training query has documents of different grades; check the labels and the query ids"


def _explain_equal_scores(outcome: FitResult, train: Queries) -> str:
    """Return why the model gives equal scores to all documents of each query."""
    near = choose_nearest(train, Serial())
    if not any(near.gather(_has_varying_feature, near.scatter(train))):
        return "no feature differs between the documents of any training query"
    equal = "all documents of a query have equal scores"
    return f"{equal}, since {outcome.reason}" if outcome.reason is not None else f"{equal} in every training query"


def _read_first(train: Queries, n_docs: int) -> Floats:
    """Return the features of the first documents, at most ``n_docs``."""
    return train.read_rows(np.arange(min(n_docs, train.n_docs)))


def _ranks_any(scorer: Scorer, train: Queries) -> bool:
    """Return whether scores differ between documents of one query; a few queries are looked at first."""
    indptr = train.indptr
    few = indptr[: max(int(np.searchsorted(indptr, _FIRST_DOCS, side="right")), 2)]
    n_docs = int(few[-1])
    if n_docs <= _FEW_DOCS and _differ_within_query(scorer(_read_first(train, n_docs))[:, None], few):
        return True
    return _differ_within_query(train.compute_scores(scorer)[:, None], indptr)


def _has_varying_feature(queries: Queries) -> bool:
    """Return whether any feature differs between documents of one query."""
    return any(_differ_within_query(part.X, part.indptr) for part in _split_growing(queries))


def _differ_within_query(columns: Any, indptr: Ints) -> bool:
    """Return whether any column differs between documents of one query; missing values count as equal."""
    first = np.repeat(columns[indptr[:-1]], np.diff(indptr), axis=0)
    return bool(((columns != first) & ~(np.isnan(columns) & np.isnan(first))).any())


def _split_growing(train: Queries) -> Iterator[Queries]:
    """Yield all queries in consecutive parts, each with more documents than the one before, up to a limit."""
    start, n_docs = 0, _FIRST_DOCS
    while start < len(train):
        stop = int(np.searchsorted(train.indptr, train.indptr[start] + n_docs))
        stop = min(max(stop, start + 1), len(train))
        yield train.slice(start, stop)
        start, n_docs = stop, min(2 * n_docs, 100 * _FIRST_DOCS)
