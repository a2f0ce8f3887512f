"""Published figures beside ours: five folds with LETOR's splits and definitions.

Data: a folder with OHSUMED and MQ2008, named by RANKWRIGHT_DATA or as the only argument, each with Fold1 to Fold5 or
with the parts S1.txt.gz to S5.txt.gz (fold i trains on parts i to i + 2, validates on the next, tests on the last).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rankwright as rw
from rankwright.data import Floats
from rankwright.folds import Fold
from rankwright.models import Fitted

ALPHAS = (10.0 ** np.arange(-6, 4)).tolist()


@dataclass(frozen=True)
class Goal:
    """A published value, and the range ours must fall into."""

    published: float
    lowest: float
    highest: float | None = None


Ranking = Callable[[Fold], Fitted | Floats]


@dataclass(frozen=True)
class Figure:
    """A ranking of a data set's test queries with the values it must reach; None where there is nothing to reach."""

    name: str
    data: str
    rank: Ranking
    goals: dict[str, Goal | None]


def _regression(measure: str) -> Ranking:
    return lambda fold: rw.select(rw.Regression(measure=measure), {"alpha": ALPHAS}, fold.train, fold.valid)


def _adarank(measure: str | rw.Measure) -> Ranking:
    return lambda fold: rw.AdaRank(measure=measure).fit(fold.train, valid=fold.valid)


def _pessimistic_map() -> rw.Measure:
    """MAP as a user's function: such measures judge weak rankers pessimistically."""

    def average_precision(grades: Floats) -> float:
        ranks = np.flatnonzero(grades >= 1) + 1
        return float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0

    return rw.measure(average_precision, name="pessimistic_map")


def _within(value: float, distance: float) -> Goal:
    return Goal(value, value - distance, value + distance)


_MAP3, _NDCG3 = "map(dialect=letor3)", "ndcg@10(dialect=letor3)"
_MAP4, _NDCG4 = "map(dialect=letor4)", "ndcg@10(dialect=letor4)"

FIGURES = (
    Figure(
        "Regression on OHSUMED",
        "OHSUMED",
        _regression(_MAP3),
        {_MAP3: _within(0.4466, 0.005), _NDCG3: _within(0.4442, 0.005)},
    ),
    Figure(
        "AdaRank on MAP, OHSUMED",
        "OHSUMED",
        _adarank(_MAP3),
        {_MAP3: Goal(0.449, 0.449 - 0.008), _NDCG3: Goal(0.443, 0.443 - 0.008)},
    ),
    Figure(
        "AdaRank on NDCG, OHSUMED",
        "OHSUMED",
        _adarank(_NDCG3),
        {_MAP3: Goal(0.450, 0.450 - 0.008), _NDCG3: Goal(0.450, 0.450 - 0.008)},
    ),
    Figure(
        "Regression on MQ2008",
        "MQ2008",
        _regression(_MAP4),
        {"ndcg@10": _within(0.4935, 0.003), _NDCG4: _within(0.2259, 0.003)},
    ),
)
REMARKS = (
    Figure(
        "the order of the files alone, OHSUMED",
        "OHSUMED",
        lambda fold: -np.arange(fold.test.n_docs, dtype=np.float64),
        {_MAP3: None, _NDCG3: None},
    ),
    Figure(
        "AdaRank on MAP, features judged pessimistically, OHSUMED",
        "OHSUMED",
        _adarank(_pessimistic_map()),
        {_MAP3: None, _NDCG3: None},
    ),
)


def measure_figure(figure: Figure, folds: Iterable[Fold]) -> dict[str, float]:
    """The means over the folds of the figure's measures on the test queries."""
    rows = []
    for fold in folds:
        means = rw.evaluate(figure.rank(fold), fold.test, list(figure.goals)).means
        rows.append([means[name] for name in figure.goals])
    return dict(zip(figure.goals, np.mean(rows, axis=0).tolist(), strict=True))


def read_data_set(folder: Path) -> list[Fold]:
    """Folds from a folder of folds, or from LETOR's five parts."""
    if (folder / "Fold1").is_dir():
        return list(rw.read_folds(folder))
    parts = [sorted(folder.glob(f"S{i}.txt*"))[0] for i in range(1, 6)]
    orders = [[parts[(fold + j) % 5] for j in range(5)] for fold in range(5)]
    return [Fold(rw.read_letor(*o[:3]), rw.read_letor(o[3]), rw.read_letor(o[4])) for o in orders]


def main() -> None:
    """Print every figure as a table."""
    default = Path(__file__).parent.parent.parent / "shared" / "data"
    place = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RANKWRIGHT_DATA", default))
    print("| figure | measure | reference | ours | difference |\n|---|---|---|---|---|")
    for figure in (*FIGURES, *REMARKS):
        if not (place / figure.data).is_dir():
            print(f"| {figure.name} | {figure.data} is not in {place}: set RANKWRIGHT_DATA | | | |")
            continue
        for name, value in measure_figure(figure, read_data_set(place / figure.data)).items():
            goal = figure.goals[name]
            beside = (
                f"{goal.published:.4f} | {value:.4f} | {value - goal.published:+.4f}" if goal else f" | {value:.4f} | "
            )
            print(f"| {figure.name} | {name} | {beside} |")


if __name__ == "__main__":
    main()
