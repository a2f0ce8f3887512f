"""The concave-convex procedure: a loss with a concave part is minimised by a sequence of convex problems."""

from __future__ import annotations

from collections.abc import Iterator

from rankwright.basics.array_types import Floats
from rankwright.optimisers.cutting_plane import CuttingPlaneRound, find_best_scale, minimise_by_cutting_planes
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.rounds import Stop, never_stop


def minimise_in_stages(
    risk: LinearRisk,
    C: float,
    start: Floats,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    stop: Stop = never_stop,
) -> Iterator[CuttingPlaneRound]:
    """Minimise |w|^2 / 2 + C risk(w), a risk that is convex once its ranking is fixed; yield each round's result.

    Parameters
    ----------
    risk : LinearRisk
        The risk of an objective with ``fix_ranking``: with a fixed ranking it is convex, nowhere lower, and equal at
        the weights that the ranking is of.
    C : float
        Its weight.
    start : array of shape (n_features,)
        The weights whose ranking is fixed first. Their scale does not matter.
    tol : float
        The relative duality gap to reach in each stage. The last stage is the first that lowers the objective by less
        than this part of it.
    max_iter : int
        The most rounds of all stages together.
    stop : callable
        Whether to end after the round at hand.

    Notes
    -----
    A stage fixes the ranking of the weights so far and minimises the convex problem by cutting planes. So no stage ends
    higher than it began (Yuille and Rangarajan, 2003). The gap of a round is that of its stage: the end is a point from
    which no further stage leads down, not always the lowest of all.
    """
    w, fixed = start, risk.fix_ranking(risk.evaluate(start))
    if C > 0.0:
        w = find_best_scale(fixed, C, start) * start
    stage, n_left, before = 1, max_iter, float("inf")
    while True:
        for found in minimise_by_cutting_planes(fixed, C, start=w, tol=tol, max_iter=n_left, stop=stop):
            yield found._replace(stage=stage)
            n_left = max(n_left - 1, 0)
        w = found.w
        if not w.any() or found.gap > tol * found.primal or found.primal > (1.0 - tol) * before or stop():
            return
        stage, before, fixed = stage + 1, found.primal, risk.fix_ranking(risk.evaluate(w))
