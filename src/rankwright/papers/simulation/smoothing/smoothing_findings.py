"""Everything that is computed, and from what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import linear_scores
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.smooth_objectives import smooth_measure
from rankwright.papers.simulation.base import FoldData
from rankwright.papers.simulation.smoothing.annealing import Annealed, Annealing, anneal_folds, by_name, settled
from rankwright.papers.simulation.smoothing.smoothing_facts import (
    AnnealingFacts,
    LineFacts,
    annealing_facts,
    line_facts,
)
from rankwright.papers.simulation.smoothing.smoothing_lines import LineView, SmoothedLine, draw_lines


class SmoothingFindings(NamedTuple):
    """The data of both figures, and the facts that they show."""

    measure: Measure
    data: str  # what the queries are called
    seed: int
    n_train: int  # training queries of the first fold, which figure 1 is about
    n_tied: int  # those of them in which w* gives several documents one score
    folds: Sequence[Annealed]
    annealings: Mapping[str, Annealing]  # fold means, by name
    annealing_facts: Mapping[str, AnnealingFacts]
    lines: Mapping[LineView, SmoothedLine]
    line_facts: Mapping[LineView, Mapping[float, LineFacts]]


def find(measure: Measure, seed: int, data: FoldData) -> SmoothingFindings:
    """Compute everything; the seed is that of the directions."""
    measure = parse_measure(
        smooth_measure(measure, 1.0).measure
    )  # whose limit the smooth one is, whatever a dialect adds
    folds = anneal_folds(data.folds, measure)
    first = data.folds[0]
    lines = draw_lines(first.train, settled(measure, first), folds[0].coef, seed)
    means = by_name(folds)
    return SmoothingFindings(
        measure,
        data.name,
        seed,
        len(first.train),
        _tied(first.train, folds[0].coef),
        folds,
        means,
        {name: annealing_facts(each) for name, each in means.items()},
        lines,
        {view: line_facts(line) for view, line in lines.items()},
    )


def _tied(queries: Queries, coef: Floats) -> int:
    scores = linear_scores(queries.X, coef, 0.0)
    return sum(len(np.unique(own)) < len(own) for own in np.split(scores, queries.indptr[1:-1]))
