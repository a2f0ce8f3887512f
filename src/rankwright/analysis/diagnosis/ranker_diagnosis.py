"""Diagnosis of a trained ranker on judged queries: surrogate or optimiser may be the problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.analysis.diagnosis.diagnosis_result import Diagnosis
from rankwright.analysis.diagnosis.loss_bounds import UpperBoundEvaluator, mean
from rankwright.analysis.diagnosis.single_weights import SingleWeightGains, search_single_weights
from rankwright.analysis.diagnosis.verdicts import DiagnosisFacts, decide_verdict, read_training_facts
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure, weighted_mean
from rankwright.models.imports import as_model
from rankwright.models.model import Model
from rankwright.objectives.phi import PHIS
from rankwright.objectives.upper_bounds import UpperBound, list_bounds
from rankwright.runtime.backends import Backend, resolve
from rankwright.scorers import Linear


def diagnose(
    ranking: Any,
    queries: Queries,
    measure: str | Measure | None = None,
    *,
    phi: str = "pairs",
    backend: Backend | None = None,
) -> Diagnosis:
    """Diagnose a trained ranker: its measure, every bound on its loss, and whether surrogate or optimiser failed.

    Parameters
    ----------
    ranking : fitted ranker, Model, or a model of another library
        The trained model.
    queries : Queries
        The queries to diagnose on. Only the training queries say something about training.
    measure : str or Measure, optional
        The measure of interest; by default the one that the ranker was trained on.
    phi : "pairs" or "ranks"
        The query-level score F of type two bounds.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Returns
    -------
    Diagnosis
        Values by query and means; ``print`` shows them as text, ``to_pandas`` makes a data frame.

    Notes
    -----
    Bounds are those of Xu et al., section 4 (``rankwright.objectives.upper_bounds``). Type two bounds change with the
    scale of the scores, which changes no ranking, so they are also shown at the scale where their mean is least. What
    one weight alone would gain is found by exact line searches. ``docs/diagnosis.md`` explains the verdicts.

    Examples
    --------
    >>> from rankwright import RankSVM, make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> found = diagnose(RankSVM(measure="ndcg@10").fit(queries), queries)
    >>> found.seen, bool((found["type two, margin"].gap >= 0).all())
    (True, True)
    """
    if phi not in PHIS:
        raise InputError(f"phi={phi!r}; expected one of {', '.join(PHIS)}")
    if queries.backend is not None:
        raise InputError(
            f"the features are on the workers of {queries.backend!r}, and a diagnosis takes all of them at once. Bring "
            "them here (queries.collect()), or those of some queries (queries.take(range(1000)).collect())"
        )
    asked = None if measure is None else parse_measure(measure)
    model, backend = as_model(ranking), resolve(backend)
    training = read_training_facts(ranking, model, asked)
    wanted = asked if asked is not None else training.measure
    if wanted is None:
        raise InputError(f"measure {model.measure!r} is a user's own, which the model does not hold; pass measure=")
    queries = wanted.label(model.choose_features(queries)).grouped()
    wanted = wanted.with_max_grade(queries.max_grade)
    scores = model.predict(queries)
    values = wanted.values(queries, scores, backend)
    bounds = UpperBoundEvaluator(queries, scores, backend)
    loss = bounds.loss(wanted.for_training())
    # the basic loss is listed among the bounds only if the ranker minimises it
    found = bounds.evaluate(list_bounds(wanted.for_training(), phi)[1:], training.own)
    gains = _search_weights(model, queries, wanted, backend)
    own = next((bound for bound in found if bound.own), None)
    after = (
        None
        if own is None or training.own is None
        else _evaluate_after_change(model, queries, gains, training.own, backend)
    )
    seen = training.matches_training(_compute_training_measure(training.measure, queries, scores, backend))
    mean_loss = mean(loss, queries.query_weight)
    facts = DiagnosisFacts(
        *(str(wanted), mean_loss, own, after, training.certificate, gains, training.validated, seen), training.known
    )
    return Diagnosis(
        model.ranker,
        str(wanted),
        str(wanted.for_training()),
        queries.qid,
        queries.query_weight,
        values,
        1.0 - loss,
        bounds.live(wanted.for_training()),
        found,
        bounds.left_out,
        training.certificate,
        gains,
        seen,
        decide_verdict(facts),
    )


def _compute_training_measure(measure: Measure | None, queries: Queries, scores: Floats, backend: Backend) -> float:
    """Return the mean of the ranker's measure, computed as training records it; NaN without a measure."""
    if measure is None:
        return float("nan")
    return weighted_mean(measure.for_training().values(queries, scores, backend), queries.query_weight)


def _search_weights(model: Model, queries: Queries, measure: Measure, backend: Backend) -> SingleWeightGains | None:
    """Return the gain from the best other value of each weight of a linear model; None for other models."""
    linear = model.scorer.linear
    if linear is None:
        return None
    names = tuple(name_features(queries.features or model.features, queries.n_features))
    scaled = queries if model.scaling is None else model.scaling(queries)
    return search_single_weights(scaled, np.asarray(linear.coef), measure, names, backend)


def _evaluate_after_change(
    model: Model, queries: Queries, gains: SingleWeightGains | None, own: UpperBound, backend: Backend
) -> float | None:
    """Return the mean of the bound that the ranker minimises, after the best change of one weight."""
    if gains is None:
        return None
    scaled = queries if model.scaling is None else model.scaling(queries)
    return (
        UpperBoundEvaluator(queries, Linear(gains.with_best_change())(scaled.X), backend).evaluate_one(own, True).mean
    )
