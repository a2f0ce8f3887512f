"""Figure 2 of Chapelle and Wu: the measure on training and test queries while the smoothing falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwright.analysis.selection import select
from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.data.folds import Fold
from rankwright.measures import Measure
from rankwright.rankers import Regression, SmoothRank
from rankwright.rankers.listwise.regression import ALPHAS as TRIED

ALPHAS = (0.001, 0.1, 10.0, 1000.0)  # of the paper's 1e-6 to 1e3
CHOSEN = "chosen"  # what the fold means with the chosen alphas are called


class Annealing(NamedTuple):
    """The course of SmoothRank by sigma; the first sigma is infinite: the regression that it starts from."""

    sigma: Floats
    train: Floats  # the measure on the training queries
    test: Floats  # and on the test queries
    smooth: Floats  # the smooth measure on the training queries, which is maximised; NaN for the regression


class Annealed(NamedTuple):
    """The annealings of a fold."""

    by_alpha: Mapping[float, Annealing]
    chosen: float  # the alpha that is best on the validation queries, at the last sigma
    coef: Floats  # w* under it, in raw units


def anneal_fold(fold: Fold, measure: Measure) -> Annealed:
    """Train for each alpha; the regression's strength and the alpha are chosen on validation queries.

    The smooth measure has the measure's own cut-off, so that the measure is its limit.
    """
    start = select(Regression(measure=measure), {"alpha": TRIED}, fold.train, fold.valid)
    # Test queries only judge here: the start is given, and the model is that of the last sigma.
    path = SmoothRank(measure=measure, k=None, start=start.coef_).fit_path(ALPHAS, fold.train, valid=fold.test)
    before = (
        measure.for_training().mean(fold.train, start.predict(fold.train)),
        measure.mean(fold.test, start.predict(fold.test)),
    )
    total = _weight(measure, fold)
    by_alpha = {alpha: _annealing(ranker, before, total) for alpha, ranker in zip(ALPHAS, path, strict=True)}
    valid = [measure.mean(fold.valid, ranker.predict(fold.valid)) for ranker in path]
    best = int(np.argmax(valid))
    return Annealed(by_alpha, ALPHAS[best], path[best].coef_)


def _weight(measure: Measure, fold: Fold) -> float:
    """Return the total weight of the training queries that count."""
    counted = measure.prepare(fold.train).counted
    return float(np.where(counted, fold.train.query_weight, 0.0).sum())


def _annealing(ranker: SmoothRank, before: tuple[float, float], total: float) -> Annealing:
    rows = [(row["sigma"], row["train"], row["valid"], 1.0 - row["loss"] / total) for row in ranker.history_]
    return Annealing(*np.array([(np.inf, *before, np.nan), *rows]).T)


def anneal_folds(folds: Sequence[Fold], measure: Measure) -> list[Annealed]:
    """Return every fold."""
    found = []
    for i in range(len(folds)):
        with progress.labelled(f"fold {i + 1} of {len(folds)}"):
            fold = folds[i]
            found.append(anneal_fold(fold, settled(measure, fold)))
    return found


def settled(measure: Measure, fold: Fold) -> Measure:
    """Return the measure with what it takes from the grades of all queries."""
    return measure.with_max_grade(max(part.max_grade for part in fold))


def fold_mean(found: Sequence[Annealing]) -> Annealing:
    """Return the mean over the folds."""
    return Annealing(*np.mean(np.array(found), axis=0))


def by_name(found: Sequence[Annealed]) -> dict[str, Annealing]:
    """Return the fold means: for each alpha, and with the alpha that each fold chose."""
    means = {f"alpha {alpha:g}": fold_mean([fold.by_alpha[alpha] for fold in found]) for alpha in ALPHAS}
    return {CHOSEN: fold_mean([fold.by_alpha[fold.chosen] for fold in found])} | means
