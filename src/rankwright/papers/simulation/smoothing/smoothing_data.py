"""The data of figures 1 and 2 of Chapelle and Wu: smoothed measures along lines, and while the smoothing falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwright.analysis.selection import select
from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.progress import track
from rankwright.basics.randomness import make_generator
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.smooth_objectives import smooth_measure
from rankwright.optimisers.landscape import Landscape, MeasureProfile
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.rankers import Regression, SmoothRank
from rankwright.rankers.listwise.regression import ALPHAS as TRIED
from rankwright.runtime.backends import Backend, resolve
from rankwright.scorers.linear import StandardScaling

SIGMAS = (64.0, 4.0, 1.0, 2.0**-2, 2.0**-4, 2.0**-6, 2.0**-10)  # the last is below where annealing ends
TRUE = 0.0  # the sigma of the measure itself
DIRECTIONS = 3
STEPS = 400  # of a line
_WIDE, _CLOSE = 20.0, 2.0  # the end of a line, where a weight of w* is 1 (root mean square)


class LineView(NamedTuple):
    """A view of figure 1: all training queries or one, the number of its random direction, a wide or close range."""

    queries: str  # "mean" of all training queries, or "one query"
    direction: int  # 1, 2, ...
    range: str  # "wide" or "close"


class SmoothedLine(NamedTuple):
    """The measure and its smooth forms along a line of weights: at w* + t w_rand, for each t."""

    t: Floats
    values: Mapping[float, Floats]  # by sigma; TRUE is the measure
    profile: MeasureProfile  # of the measure: every jump


def draw_lines(train: Queries, measure: Measure, coef: Floats, seed: int) -> dict[LineView, SmoothedLine]:
    """Compute the smoothed lines of all views of figure 1; ``coef`` is SmoothRank's solution w* for raw features."""
    standard = StandardScaling.fit(train)
    # w_rand has unit variance on each component of the weights of scaled features
    drawn = make_generator(seed).standard_normal((DIRECTIONS, len(coef))) * standard.factor
    reaches = dict(zip(("wide", "close"), reach(coef * standard.deviation), strict=True))
    views = [LineView("mean", i + 1, name) for i in range(DIRECTIONS) for name in reaches]
    views += [LineView("one query", 1, name) for name in reaches]
    richest = train.take([int(np.argmax(np.add.reduceat(train.y > 0, train.indptr[:-1])))])
    return {
        view: draw_line(
            train if view.queries == "mean" else richest, measure, coef, drawn[view.direction - 1], reaches[view.range]
        )
        for view in track(views, "lines", len(views))
    }


def reach(w: Floats) -> tuple[float, float]:
    """Return how far the wide and the close lines go from the weights ``w``, each rounded to one digit."""
    size = float(np.sqrt(np.mean(w**2))) or 1.0
    far, near = (float(f"{times * size:.0e}") for times in (_WIDE, _CLOSE))
    return far, near


def draw_line(
    queries: Queries, measure: Measure, coef: Floats, way: Floats, end: float, backend: Backend | None = None
) -> SmoothedLine:
    """Compute the measure and its smooth forms on the line of weights from coef - end * way to coef + end * way."""
    backend = resolve(backend)
    objective = smooth_measure(measure, SIGMAS[0])
    target = parse_measure(objective.measure)
    landscape = Landscape.of(queries, target, backend)
    t = np.arange(-STEPS // 2, STEPS // 2 + 1) * (2.0 * end / STEPS)
    profile = landscape.profile(landscape.evaluate(coef), way, -end, end)
    shards, ones = backend.scatter(queries), np.ones(len(coef))
    risk = LinearRisk(objective, shards, ones, landscape.total_weight, backend)
    values = {sigma: _compute_smooth_values(risk.with_sigma(sigma), coef, way, t) for sigma in SIGMAS}
    return SmoothedLine(t, values | {TRUE: profile(t)}, profile)


def _compute_smooth_values(risk: LinearRisk, coef: Floats, way: Floats, t: Floats) -> Floats:
    """Return the smooth measure at coef + t * way, for each t."""
    here, there = risk.evaluate(coef), risk.evaluate(coef + way)
    return np.array([1.0 - risk.loss(risk.interpolate(here, there, float(each))) for each in t])


ALPHAS = (0.001, 0.1, 10.0, 1000.0)  # of the paper's 1e-6 to 1e3
CHOSEN = "chosen"  # the name of the fold means with the chosen alphas


class Annealing(NamedTuple):
    """The course of SmoothRank's training: its measures at each sigma; the first, infinite, is the regression's."""

    sigma: Floats
    train: Floats  # the measure on the training queries
    test: Floats  # and on the test queries
    smooth: Floats  # the smooth measure on the training queries, which is maximised; NaN for the regression


class FoldAnnealing(NamedTuple):
    """The results of SmoothRank on a fold: an annealing for each alpha, the chosen alpha, and its weights."""

    by_alpha: Mapping[float, Annealing]
    chosen: float  # the alpha that is best on the validation queries, at the last sigma
    coef: Floats  # w* under it, in raw units


def anneal_fold(fold: Fold, measure: Measure) -> FoldAnnealing:
    """Train SmoothRank on a fold for each alpha; the validation queries choose the alpha and the regression's strength.

    The smooth measure has the measure's own cut-off, so that the measure is its limit.
    """
    start = select(Regression(measure=measure), {"alpha": TRIED}, fold.train, fold.valid)
    # Test queries only evaluate: they choose neither the start nor the sigma.
    path = SmoothRank(measure=measure, k=None, start=start.coef_).fit_path(ALPHAS, fold.train, valid=fold.test)
    before = (
        measure.for_training().mean(fold.train, start.predict(fold.train)),
        measure.mean(fold.test, start.predict(fold.test)),
    )
    total = _sum_query_weights(measure, fold)
    by_alpha = {alpha: _make_annealing(ranker, before, total) for alpha, ranker in zip(ALPHAS, path, strict=True)}
    valid = [measure.mean(fold.valid, ranker.predict(fold.valid)) for ranker in path]
    best = int(np.argmax(valid))
    return FoldAnnealing(by_alpha, ALPHAS[best], path[best].coef_)


def _sum_query_weights(measure: Measure, fold: Fold) -> float:
    """Return the sum of the weights of the training queries that the measure counts."""
    counted = measure.prepare(fold.train).is_counted
    return float(np.where(counted, fold.train.query_weight, 0.0).sum())


def _make_annealing(ranker: SmoothRank, before: tuple[float, float], total: float) -> Annealing:
    """Make the annealing of a trained ranker from its history; ``before`` are the regression's measures."""
    rows = [(row["sigma"], row["train"], row["valid"], 1.0 - row["loss"] / total) for row in ranker.history_]
    return Annealing(*np.array([(np.inf, *before, np.nan), *rows]).T)


def anneal_folds(folds: Sequence[Fold], measure: Measure) -> list[FoldAnnealing]:
    """Train SmoothRank on every fold for each alpha; return the results by fold."""
    found = []
    for i in range(len(folds)):
        with progress.add_label(f"fold {i + 1} of {len(folds)}"):
            fold = folds[i]
            found.append(anneal_fold(fold, with_fold_grades(measure, fold)))
    return found


def with_fold_grades(measure: Measure, fold: Fold) -> Measure:
    """Return the measure with its highest grade set to the highest of all queries of the fold."""
    return measure.with_max_grade(max(part.max_grade for part in fold))


def fold_mean(found: Sequence[Annealing]) -> Annealing:
    """Return the mean of several folds' annealings."""
    return Annealing(*np.mean(np.array(found), axis=0))


def group_by_name(found: Sequence[FoldAnnealing]) -> dict[str, Annealing]:
    """Return the means of the annealings over the folds: for each alpha, and for the alpha that each fold chose."""
    means = {f"alpha {alpha:g}": fold_mean([fold.by_alpha[alpha] for fold in found]) for alpha in ALPHAS}
    return {CHOSEN: fold_mean([fold.by_alpha[fold.chosen] for fold in found])} | means
