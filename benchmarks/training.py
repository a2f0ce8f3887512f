"""Training: what methods reach on the training queries of LETOR's folds, and what that is worth on the test queries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rankwright as rw
from benchmarks.report import Row, Table, publish, skipped
from rankwright.data.folds import Fold

MEASURE = "ndcg@10"
RESTARTS, KICKS = 20, 3
DATA_SETS = ("OHSUMED", "MQ2008")


class Reached(NamedTuple):
    """The best training measure of a fit, and the test measure of what validation chose."""

    train: float
    test: float


def find_data(name: str) -> Path | None:
    """The folder of a data set: in RANKWRIGHT_DATA, or beside the checkout."""
    places = [Path(os.environ["RANKWRIGHT_DATA"])] if "RANKWRIGHT_DATA" in os.environ else []
    places.append(Path(__file__).resolve().parents[2] / "shared" / "data")
    return next((place / name for place in places if (place / name).is_dir()), None)


def fit(fold: Fold) -> dict[str, Reached]:
    """Every method on one fold; coordinate ascent and DirectRank from the same starts."""
    found = {}
    grid = rw.Regression.default_grid
    chosen = rw.select(rw.Regression(measure=MEASURE), grid, fold.train, fold.valid)
    highest = max(rw.Regression(measure=MEASURE, alpha=a).fit(fold.train).score(fold.train) for a in grid["alpha"])
    found["Regression"] = Reached(highest, chosen.score(fold.test))
    rankers: dict[str, rw.Ranker] = {
        "AdaRank": rw.AdaRank(measure=MEASURE),
        "CoordinateAscent": rw.CoordinateAscent(measure=MEASURE, n_restarts=RESTARTS, start="regression"),
        "DirectRank": rw.DirectRank(measure=MEASURE, n_restarts=RESTARTS, n_perturbations=KICKS),
    }
    for name, ranker in rankers.items():
        ranker.fit(fold.train, valid=fold.valid)
        found[name] = Reached(max(record["train"] for record in ranker.history_), ranker.score(fold.test))
    return found


def measure_training(name: str) -> Table:
    """One data set."""
    title = f"Training {MEASURE} on {name}"
    folder = find_data(name)
    if folder is None:
        return Table(title, [skipped(name, "the data are not here")])
    folds = [fit(fold) for fold in rw.read_folds(folder)]
    rows = []
    for method in folds[0]:
        reached = [fold[method] for fold in folds]
        figure = f"{' '.join(f'{each.train:.4f}' for each in reached)}; test {sum(r.test for r in reached) / 5:.4f}"
        if method == "DirectRank":
            rows.append(Row(method, figure))
            continue
        least = min(fold["DirectRank"].train - fold[method].train for fold in folds)
        equal = method == "CoordinateAscent"
        target = f"DirectRank {'at least' if equal else 'above'} on every fold"
        rows.append(Row(method, figure, f"{least:+.4f}", target, least >= 0 if equal else least > 0))
    notes = [
        "The best training measure of folds 1 to 5, and the mean over the folds of the test measure of what was chosen "
        "on validation queries. The ratio is DirectRank's least advantage in training over the folds.",
        f"Coordinate ascent and DirectRank climb from the same {RESTARTS} starts, the first of them a regression's; "
        f"DirectRank is kicked {KICKS} times after each climb. Regression: of ten penalties the best in training, and "
        "the one chosen on validation queries for the test.",
    ]
    return Table(title, rows, notes)


def measure() -> Iterator[Table]:
    """All tables on training."""
    for name in DATA_SETS:
        yield measure_training(name)


if __name__ == "__main__":
    publish([measure])
