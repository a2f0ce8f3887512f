"""Polishing: exact weights for the scorers, or the trees of a model, that exist already."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwright.analysis.evaluation import compute_scores
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.measures import Measure, check_counted, parse_measure
from rankwright.optimisers.ascent import ClimbRules, Perturbation
from rankwright.optimisers.columns import MatrixColumns, ScoreColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.polishing import polish_weights
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.input_checks import check_number, check_whole
from rankwright.runtime.backends import Backend, count_threads, resolve
from rankwright.scorers.linear import compute_moments
from rankwright.tuning.tree_ensembles import make_ensemble

_PERTURBATION_SIZE = 0.3
_HISTORY_COLUMNS = ("column", "weight", "train", "valid")


@dataclass(frozen=True, slots=True, eq=False)
class PolishResult:
    """The result of ``polish``: the polished weights of scorers, and the measure before and after.

    Parameters
    ----------
    weights : array of shape (n_scorers,)
        The polished weights; the given ones if nothing was gained.
    measure : str
        The measure that was maximised.
    before, after : float
        The mean measure on the training queries with the given weights, and with these.
    valid_before, valid_after : float, optional
        The same on the validation queries.
    history : list of dict
        A row for the start and for every accepted step: ``column``, ``weight``, ``train``, ``valid``.
    """

    weights: Floats
    measure: str
    before: float
    after: float
    valid_before: float | None
    valid_after: float | None
    history: list[dict[str, Any]]

    def __call__(self, scores: ArrayLike) -> Floats:
        """Return the weighted sum of scores, which have a column per scorer."""
        matrix = _as_matrix(scores)
        if matrix.shape[1] != len(self.weights):
            raise InputError(f"scores of {matrix.shape[1]} scorers; there are {len(self.weights)} weights")
        return compute_linear_scores(matrix, self.weights, 0.0)

    def __repr__(self) -> str:
        valid = "" if self.valid_after is None else f"; valid {self.valid_before:.4f} -> {self.valid_after:.4f}"
        return f"PolishResult({len(self.weights)} scorers, {self.measure} {self.before:.4f} -> {self.after:.4f}{valid})"


def polish(
    scores: Any,
    queries: Queries,
    measure: str | Measure = "ndcg@10",
    *,
    start: ArrayLike | None = None,
    valid: tuple[Any, Queries] | None = None,
    nonnegative: bool = False,
    n_perturbations: int = 0,
    max_iter: int = 100,
    max_seconds: float | None = None,
    random_state: int | np.random.Generator | None = 0,
    backend: Backend | None = None,
) -> PolishResult:
    """Find weights of given scorers that maximise a measure of their weighted sum, by exact line searches.

    The scorers may be several models, the trees of one model, or the features of the queries. The training measure
    never decreases. With ``valid``, the step that is best on the validation queries is kept, so the weights are never
    worse there than the given ones.

    Parameters
    ----------
    scores : array-like of shape (n_docs, n_scorers), or list of models
        A column per scorer and a row per document, in the order of ``queries.X`` and of what ``predict`` returns. Or
        the scorers themselves: fitted rankers and models, of this or another library.
    queries : Queries
        The judged documents.
    measure : str or Measure
        The measure that is maximised.
    start : array-like of shape (n_scorers,), optional
        The initial weights; by default all 1, which is the sum of the scorers.
    valid : (scores, Queries), optional
        The scorers' scores of validation documents, or the same list of models, and their queries.
    nonnegative : bool
        Whether weights must not be negative.
    n_perturbations : int
        How many random perturbations follow the climb; each climbs again, and a better result is kept.
    max_iter : int
        The largest number of rounds.
    max_seconds : float, optional
        Stop after this time.
    random_state : int, Generator or None
        The seed of the order of the weights and of the perturbations.
    backend : Serial, Threads or None
        Runs the work; None means all cores.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> polished = polish(queries.X[:, [0, 2, 5]], queries, "ndcg@10")
    >>> polished.after > polished.before
    True
    """
    wanted, found, rng = parse_measure(measure), resolve(backend), make_generator(random_state)
    check_whole("n_perturbations", n_perturbations, least=0)
    rules = _make_rules(max_iter, max_seconds, nonnegative)
    if valid is not None and not (isinstance(valid, tuple) and len(valid) == 2):
        raise InputError(f"valid is a {type(valid).__name__}; expected a pair of scores and Queries")
    matrix = _check_scores(scores, queries, "scores")
    other = None if valid is None else _check_scores(*valid, "validation scores")
    if other is not None and other.shape[1] != matrix.shape[1]:
        raise InputError(f"validation scores of {other.shape[1]} scorers; there are {matrix.shape[1]} in training")
    wanted = wanted.with_max_grade(max(wanted.label(each).max_grade for each in (queries, *(valid or ())[1:])))
    train = _make_landscape(MatrixColumns(matrix), queries, wanted, "training", found)
    weights = _check_start(start, matrix.shape[1], nonnegative)
    held_out = None
    if valid is not None and other is not None:
        held_out = _make_landscape(MatrixColumns(other), valid[1], wanted, "validation", found)
    perturbation = Perturbation(
        n_perturbations,
        _PERTURBATION_SIZE,
        compute_moments(matrix)[1] if n_perturbations > 0 else np.zeros(matrix.shape[1]),
    )
    found_weights = polish_weights(train, held_out, weights, rules, rng, perturbation)
    history = [{name: row[name] for name in _HISTORY_COLUMNS if name in row} for row in found_weights.history]
    return PolishResult(found_weights.weights, str(wanted), *found_weights[1:5], history)


def polish_model(
    model: Any,
    queries: Queries,
    measure: str | Measure = "ndcg@10",
    *,
    valid: Queries | None = None,
    nonnegative: bool = False,
    max_iter: int = 100,
    max_seconds: float | None = None,
    random_state: int | np.random.Generator | None = 0,
    backend: Backend | None = None,
) -> Any:
    """Return a tree model with its trees weighted anew to maximise a measure, by exact line searches.

    The splits of the trees do not change; their leaf values are multiplied. In a sum of trees and other scorers, each
    other part is multiplied as a whole. The training measure never decreases.
    With ``valid``, the step that is best on the validation queries is kept, and if the polished model is not better
    there, the given model is returned.

    Parameters
    ----------
    model : fitted ranker, Model, or a model of another library
        A sum of trees, or of trees and other scorers. With early stopping, the trees that the model predicts with are
        polished.
    queries : Queries
        The judged documents, with the features of the model in its order.
    measure : str or Measure
        The measure that is maximised.
    valid : Queries, optional
        Validation queries. Without them, the weights overfit the training queries.
    nonnegative : bool
        Whether weights must not be negative. They never are if the model has monotone constraints; XGBoost does not
        save these with a Booster, so pass ``nonnegative=True`` for a Booster that was loaded.
    max_iter : int
        The largest number of rounds.
    max_seconds : float, optional
        Stop after this time.
    random_state : int, Generator or None
        The seed of the order of the trees.
    backend : Serial, Threads or None
        Runs the work; None means all cores.

    Returns
    -------
    model
        A model of the same kind for LightGBM and XGBoost: a Booster for a Booster, an estimator for an estimator. For
        any other a Model, whose measure is the one that was maximised. If nothing is gained, the given model itself.

    Examples
    --------
    >>> from rankwright import MART, make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> ranker = MART(n_estimators=20, num_leaves=4).fit(queries)
    >>> bool(polish_model(ranker, queries).score(queries) > ranker.score(queries))
    True
    """
    wanted, found, rng = parse_measure(measure), resolve(backend), make_generator(random_state)
    sets = {"training": queries} | ({} if valid is None else {"validation": valid})
    for what, each in sets.items():
        if not isinstance(each, Queries):
            raise InputError(f"the {what} queries are a {type(each).__name__}; expected a Queries")
        if each.backend is not None:
            raise InputError(
                f"the features of the {what} queries are on the workers of a cluster; polish_model needs them here: "
                "pass some of the queries, fetched by queries.take(positions).collect()"
            )
    sets = {what: wanted.label(each).grouped() for what, each in sets.items()}
    wanted = wanted.with_max_grade(max(each.max_grade for each in sets.values()))
    ensemble, rules = (
        make_ensemble(model, str(wanted), count_threads(found)),
        _make_rules(max_iter, max_seconds, nonnegative),
    )
    if ensemble.monotone:
        rules = replace(rules, least=0.0)
    train, *held_out = (
        _make_landscape(ensemble.make_columns(each), each, wanted, what, found) for what, each in sets.items()
    )
    start = np.ones(ensemble.n_columns)
    found_weights = polish_weights(train, held_out[0] if held_out else None, start, rules, rng)
    polished, compared = ensemble.apply_weights(found_weights), [*sets.values()][-1]
    X = ensemble.adapt(compared).X
    before, after = (wanted.mean(compared, ensemble.predict(each, X), found) for each in (model, polished))
    return polished if after > before else model


def _make_rules(max_iter: int, max_seconds: float | None, nonnegative: bool) -> ClimbRules:
    """Return the rules of a climb: the most rounds, the deadline, and the least weight."""
    check_whole("max_iter", max_iter, least=1)
    if max_seconds is not None:
        check_number("max_seconds", max_seconds, least=0.0)
    return ClimbRules(max_rounds=max_iter, least=0.0 if nonnegative else -np.inf, stop=Deadline(max_seconds))


def _make_landscape(
    columns: ScoreColumns, queries: Queries, measure: Measure, what: str, backend: Backend
) -> Landscape:
    """Return the measure as a function of the columns' weights, for line searches."""
    check_counted(measure, queries, what)
    return Landscape.of_prepared(
        columns, measure.for_training().prepare(queries.grouped()), queries.query_weight, backend
    )


def _as_matrix(scores: ArrayLike) -> Floats:
    """Return scores as a float matrix; raise InputError unless they are finite numbers in rows and columns."""
    try:
        matrix = np.ascontiguousarray(scores)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"scores are not numbers in rows and columns: {error}") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"scores have shape {matrix.shape}; expected a row per document and a column per scorer")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"score [{row}, {column}] is {matrix[row, column]}; expected finite numbers")
    return matrix


def _check_scores(scores: Any, queries: Queries, what: str) -> Floats:
    """Return the matrix of scores with rows grouped by query; raise InputError unless it fits the queries."""
    if not isinstance(queries, Queries):
        raise InputError(f"queries is a {type(queries).__name__}; expected a Queries, as from Queries.from_arrays")
    if isinstance(scores, (list, tuple)) and scores and all(hasattr(each, "predict") for each in scores):
        return _as_matrix(np.column_stack([compute_scores(each, queries) for each in scores]))
    matrix = _as_matrix(scores)
    if len(matrix) != queries.n_docs:
        raise InputError(f"{what} have {len(matrix)} rows; the queries have {queries.n_docs} documents")
    return queries.group(matrix)


def _check_start(start: ArrayLike | None, n: int, nonnegative: bool) -> Floats:
    """Return the starting weights, by default 1; raise InputError unless there is a finite one per scorer."""
    try:
        weights = np.ones(n) if start is None else np.array(start, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"start={start!r}; expected a weight for each of {n} scorers") from None
    if weights.shape != (n,) or not np.isfinite(weights).all():
        raise InputError(f"start has shape {weights.shape}; expected a finite weight for each of {n} scorers")
    if nonnegative and (weights < 0).any():
        raise InputError("start has negative weights; nonnegative=True allows none")
    return weights
