"""The demonstration: the whole job on built-in data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankwright import progress
from rankwright.evaluation import Evaluations, evaluate
from rankwright.files import write_atomic
from rankwright.letor import write_letor
from rankwright.measures import parse
from rankwright.models import save
from rankwright.rankers import AdaRank, Ranker, Regression, SingleFeature
from rankwright.selection import select
from rankwright.synthetic import make_queries
from rankwright.trec import write_run

MEASURE = "ndcg@10"
REPORTED = ("ndcg@1", "ndcg@5", "ndcg@10", "map")


def run_demo(folder: Path) -> str:
    """Make data, train the rankers, compare them on test queries, and leave every file in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    queries = make_queries(600, n_docs=40, n_features=30, noise=2.0, random_state=7)
    parts = {"train": range(360), "valid": range(360, 480), "test": range(480, 600)}
    train, valid, test = (queries.take(part) for part in parts.values())
    for name, part in zip(parts, (train, valid, test), strict=True):
        write_letor(part, folder / f"{name}.txt")

    results: dict[str, Evaluations] = {}
    rankers: list[tuple[Ranker, dict[str, list[float]]]] = [
        (SingleFeature(measure=MEASURE), {}),
        (Regression(measure=MEASURE), {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0]}),
        (AdaRank(measure=MEASURE), {}),
    ]
    for untrained, grid in progress.track(rankers, "rankers", len(rankers)):
        ranker = select(untrained, grid, train, valid)
        name = type(ranker).__name__
        save(ranker, folder / f"{name.lower()}.json")
        write_run(test, ranker.predict(test), folder / f"{name.lower()}.run", tag=name)
        results[name] = evaluate(ranker, test, REPORTED)
    table = comparison(results)
    with write_atomic(folder / "comparison.txt") as file:
        file.write(table + "\n")
    sizes = f"{len(train)} training, {len(valid)} validation and {len(test)} test queries"
    return (
        f"Synthetic data: {sizes}, {queries.n_features} features. Test results:\n\n{table}\n\n"
        f"Data, models (*.json), TREC runs (*.run) and this table are in {folder}{'/' if folder.name else ''}"
    )


def comparison(results: dict[str, Evaluations]) -> str:
    """A table of means, with wins and losses against the first ranker by the demo's measure."""
    baseline, *_ = results
    decisive = str(parse(MEASURE))
    rows = [["", *REPORTED, f"{decisive} against {baseline}"]]
    for name, result in results.items():
        cells = [f"{result[measure]:.4f}" for measure in REPORTED]
        difference = result.per_query[decisive] - results[baseline].per_query[decisive]
        wins, losses = int(np.sum(difference > 0)), int(np.sum(difference < 0))
        against = "" if name == baseline else f"{difference.mean():+.4f} ({wins} queries better, {losses} worse)"
        rows.append([name, *cells, against])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
