"""The findings of the simulation of smoothing: the data of both figures, and the facts that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.smooth_objectives import smooth_measure
from rankwright.papers.simulation.base import FoldData
from rankwright.papers.simulation.smoothing.smoothing_data import (
    TRUE,
    Annealing,
    FoldAnnealing,
    LineView,
    SmoothedLine,
    anneal_folds,
    draw_lines,
    group_by_name,
    with_fold_grades,
)

_THOUSANDTH = 0.001


class LineFacts(NamedTuple):
    """The facts about a smooth measure along a line: its local maxima, highest point, and distance from the measure."""

    maxima: int  # local maxima without both ends: of the measure all, of a smooth one at the computed points
    distance: float  # from the measure itself, in the mean over the line
    highest_at: float  # the t where it is highest
    measure_there: float  # the measure itself at that t


def compute_line_facts(line: SmoothedLine) -> dict[float, LineFacts]:
    """Compute the facts about a line for each sigma; 0 stands for the measure itself."""
    found = {}
    for sigma, values in line.values.items():
        steps = line.profile.values if sigma == TRUE else values
        top = int(np.argmax(values))
        distance = np.abs(values - line.values[TRUE]).mean()
        found[sigma] = LineFacts(
            count_local_maxima(steps), float(distance), float(line.t[top]), float(line.values[TRUE][top])
        )
    return found


def count_local_maxima(values: Floats) -> int:
    """Count the local maxima of a sequence of values; a flat top counts once, and the two ends do not count.

    >>> count_local_maxima(np.array([0.0, 1.0, 1.0, 0.0, 2.0, 2.0])), count_local_maxima(np.array([1.0, 0.0, 1.0]))
    (1, 0)
    """
    rounding = 1e-12  # smaller differences are rounding
    kept = [float(values[0])]
    for value in values[1:].tolist():
        if abs(value - kept[-1]) > rounding:
            kept.append(value)
    turns = np.sign(np.diff(kept))
    return int(((turns[:-1] > 0) & (turns[1:] < 0)).sum())


class AnnealingFacts(NamedTuple):
    """The facts about an annealing: the training and test measures at its start and end, and their best."""

    train_start: float  # of the regression
    train_first: float  # at the first sigma
    train_last: float
    rises: int  # halvings of sigma after which the training measure is higher
    halvings: int
    train_near: float  # the first sigma at which it is within a thousandth of its highest
    test_start: float
    test_first: float
    test_best: float  # the highest at any sigma
    best_sigma: float  # and at which; of equals the largest
    test_last: float
    test_near: float
    smooth_first: float
    smooth_last: float


def compute_annealing_facts(found: Annealing) -> AnnealingFacts:
    """Compute the facts about an annealing, or about the mean of several."""
    sigma, train, test, smooth = (column[1:] for column in found)
    best = int(np.argmax(test))
    return AnnealingFacts(
        float(found.train[0]),
        float(train[0]),
        float(train[-1]),
        int((np.diff(train) > 0).sum()),
        len(sigma) - 1,
        _find_nearly_best_sigma(sigma, train),
        float(found.test[0]),
        float(test[0]),
        float(test[best]),
        float(sigma[best]),
        float(test[-1]),
        _find_nearly_best_sigma(sigma, test),
        float(smooth[0]),
        float(smooth[-1]),
    )


def _find_nearly_best_sigma(sigma: Floats, values: Floats) -> float:
    """Return the first sigma at which a value is within 0.001 of the highest."""
    return float(sigma[np.argmax(values >= values.max() - _THOUSANDTH)])


class SmoothingFindings(NamedTuple):
    """The findings of the simulation of smoothing: the data of both figures, and the facts about them."""

    measure: Measure
    data: str  # the name of the queries
    seed: int
    n_train: int  # training queries of the first fold, which figure 1 is about
    n_tied: int  # training queries in which w* gives several documents the same score
    folds: Sequence[FoldAnnealing]
    annealings: Mapping[str, Annealing]  # fold means, by name
    annealing_facts: Mapping[str, AnnealingFacts]
    lines: Mapping[LineView, SmoothedLine]
    line_facts: Mapping[LineView, Mapping[float, LineFacts]]


def find(measure: Measure, seed: int, data: FoldData) -> SmoothingFindings:
    """Compute all findings of the simulation of smoothing; the seed draws the random directions."""
    # the limit of the smoothed measure, whatever a dialect adds
    measure = parse_measure(smooth_measure(measure, 1.0).measure)
    folds = anneal_folds(data.folds, measure)
    first = data.folds[0]
    lines = draw_lines(first.train, with_fold_grades(measure, first), folds[0].coef, seed)
    means = group_by_name(folds)
    return SmoothingFindings(
        measure,
        data.name,
        seed,
        len(first.train),
        _count_tied_queries(first.train, folds[0].coef),
        folds,
        means,
        {name: compute_annealing_facts(each) for name, each in means.items()},
        lines,
        {view: compute_line_facts(line) for view, line in lines.items()},
    )


def _count_tied_queries(queries: Queries, coef: Floats) -> int:
    """Return the number of queries in which the weights give two documents the same score."""
    scores = compute_linear_scores(queries.X, coef, 0.0)
    return sum(len(np.unique(own)) < len(own) for own in np.split(scores, queries.indptr[1:-1]))
