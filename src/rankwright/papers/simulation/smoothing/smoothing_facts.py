"""What the two figures say, in numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.papers.simulation.smoothing.annealing import Annealing
from rankwright.papers.simulation.smoothing.smoothing_lines import TRUE, SmoothedLine

_THOUSANDTH = 0.001


class LineFacts(NamedTuple):
    """A measure along a line."""

    maxima: int  # local ones, both ends left out; of the measure itself every one, else of the points of the line
    distance: float  # from the measure itself, in the mean over the line
    highest_at: float  # the t where it is highest
    measure_there: float  # the measure itself at that t


def line_facts(line: SmoothedLine) -> dict[float, LineFacts]:
    """Return the facts by sigma."""
    found = {}
    for sigma, values in line.values.items():
        steps = line.profile.values if sigma == TRUE else values
        top = int(np.argmax(values))
        distance = np.abs(values - line.values[TRUE]).mean()
        found[sigma] = LineFacts(
            local_maxima(steps), float(distance), float(line.t[top]), float(line.values[TRUE][top])
        )
    return found


def local_maxima(values: Floats) -> int:
    """Return how often values stop rising and fall; flat tops count once, and the ends are none.

    >>> local_maxima(np.array([0.0, 1.0, 1.0, 0.0, 2.0, 2.0])), local_maxima(np.array([1.0, 0.0, 1.0]))
    (1, 0)
    """
    rounding = 1e-12  # what is less is not a change
    kept = [float(values[0])]
    for value in values[1:].tolist():
        if abs(value - kept[-1]) > rounding:
            kept.append(value)
    turns = np.sign(np.diff(kept))
    return int(((turns[:-1] > 0) & (turns[1:] < 0)).sum())


class AnnealingFacts(NamedTuple):
    """The measure while sigma falls."""

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


def annealing_facts(found: Annealing) -> AnnealingFacts:
    """Return the facts of an annealing, or of the mean of several."""
    sigma, train, test, smooth = (column[1:] for column in found)
    best = int(np.argmax(test))
    return AnnealingFacts(
        float(found.train[0]),
        float(train[0]),
        float(train[-1]),
        int((np.diff(train) > 0).sum()),
        len(sigma) - 1,
        _near(sigma, train),
        float(found.test[0]),
        float(test[0]),
        float(test[best]),
        float(sigma[best]),
        float(test[-1]),
        _near(sigma, test),
        float(smooth[0]),
        float(smooth[-1]),
    )


def _near(sigma: Floats, values: Floats) -> float:
    return float(sigma[np.argmax(values >= values.max() - _THOUSANDTH)])
