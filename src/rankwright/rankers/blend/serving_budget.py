"""A limit on the time of prediction: members are left out of a blend until it is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TypeVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.optimisers.blend_weights import BlendWeights, WeightRule
from rankwright.rankers.blend.blend_problem import BlendProblem
from rankwright.scorers import Linear, Scorer

C = TypeVar("C")
_N_DOCS = 100  # that the limit is about
_N_CALLS = 30  # of which the median is taken


def check_budget(budget_ms: float | None, queries: Queries) -> None:
    """Raise InputError for a budget that not even a linear function meets, before anything is fitted."""
    if budget_ms is None:
        return
    time = time_scoring(Linear(np.ones(queries.n_features)), np.nan_to_num(_repeat_documents(queries)))
    if time > budget_ms:
        raise InputError(
            f"budget_ms={budget_ms:g}: a linear function alone takes {time:.3g} ms for {_N_DOCS} documents; raise "
            "budget_ms, which is in milliseconds"
        )


def choose_within_budget(
    problem: BlendProblem, members: Mapping[str, Sequence[C]], rule: WeightRule, budget_ms: float
) -> tuple[BlendProblem, dict[str, list[C]], BlendWeights]:
    """Return the members of a blend that scores 100 documents within a time limit, and their weights.

    Members that are too slow alone are left out first. While the blend is too slow, the member is left out whose
    absence costs the least measure for the time it saves. Raise InputError if no member alone is fast enough.
    """
    X = _repeat_documents(problem.held_out.plan.queries)
    times = [time_scoring(problem.merge(alone), X) for alone in np.eye(len(problem.members))]
    if min(times) > budget_ms:
        raise InputError(
            f"budget_ms={budget_ms:g}: the fastest member alone takes {min(times):.3g} ms for {_N_DOCS} documents; "
            "raise budget_ms, or fit a linear ranker such as Regression"
        )
    problem = problem.take_members([at for at, time in enumerate(times) if time <= budget_ms])
    while True:
        weights = rule(problem.scores)
        is_fast = time_scoring(problem.merge(weights.coef), X) <= budget_ms
        if is_fast or len(problem.members) == 1:
            names = [member.name for member in problem.members]
            return problem, {name: list(found) for name, found in members.items() if name in names}, weights
        used = np.flatnonzero(weights.coef > 0.0).tolist()  # the others cost nothing
        if len(used) > 1:
            used = [used[at] for at in _drop_least_useful_member(problem.take_members(used), weights.coef[used], X)]
        problem = problem.take_members(used)


def _drop_least_useful_member(problem: BlendProblem, coef: Floats, X: Floats) -> list[int]:
    """Return the members without the one whose absence costs the least measure per millisecond that it saves."""
    scores, n = problem.scores, len(problem.members)
    value = scores.compute_mean(scores.compute_values(coef))
    loss_per_ms = np.empty(n)
    for at in range(n):
        alone = np.where(np.arange(n) == at, 1.0, 0.0)
        loss = value - scores.compute_mean(scores.compute_values(np.where(alone > 0, 0.0, coef)))
        loss_per_ms[at] = max(loss, 1e-6) / max(time_scoring(problem.merge(alone), X), 1e-3)
    left_out = int(np.argmin(loss_per_ms))
    return [at for at in range(n) if at != left_out]


def time_scoring(scorer: Scorer, X: Floats) -> float:
    """Return the median time in milliseconds that a scorer takes for some documents."""
    scorer(X)
    times = []
    for _ in range(_N_CALLS):
        start = perf_counter()
        scorer(X)
        times.append(perf_counter() - start)
    return 1e3 * float(np.median(times))


def _repeat_documents(queries: Queries) -> Floats:
    """Return the features of 100 documents, in turn those that there are."""
    return queries.read_rows(np.arange(_N_DOCS) % queries.n_docs)
