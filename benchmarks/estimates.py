"""Whether the estimate of a blend is honest: its error against the true measure, and the coverage of its interval.

``python -m benchmarks.estimates --sets 200 --out F`` makes data sets of 50 to 200 queries, fits a blend to each, and
compares its estimate with the measure on 2,000 more queries of the same kind. With ``--seconds 20`` it fits an
AutoRanker for so long instead.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import rankwright as rw

N_TEST = 2_000


def make_blend(seed: int) -> rw.Blend:
    """Return a blend of linear models, stumps and trees, whose queries are partitioned twice."""
    members = [
        rw.Regression(),
        rw.RankSVM(loss="squared_hinge"),
        rw.ListNet(),
        rw.AdaRank(),
        rw.RankBoost(n_estimators=100),
        rw.MART(num_leaves=4),
        rw.LambdaMART(num_leaves=8),
    ]
    return rw.Blend(rankers=members, n_repeats=2, random_state=seed, backend=rw.Serial())


def measure_set(seed: int, seconds: float | None = None) -> dict[str, Any]:
    """Return the estimate of a blend of one synthetic data set, its interval, and the measure on test queries.

    The blend has fixed members, or is the one that AutoRanker finds in some seconds.
    """
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    n, kind = int(rng.integers(50, 201)), ("linear", "mixed")[seed % 2]
    made = rw.make_queries(n + N_TEST, n_docs=20, kind=kind, noise=float(rng.uniform(0.5, 2.0)), random_state=seed)
    train, test = made.take(np.arange(n)), made.take(np.arange(n, len(made)))
    options: dict[str, Any] = {"max_seconds": seconds, "random_state": seed, "backend": rw.Serial()}
    unfitted: rw.Blend | rw.AutoRanker = make_blend(seed) if seconds is None else rw.AutoRanker(**options)
    blend = unfitted.fit(train)
    values = rw.evaluate(blend, test, "ndcg@10").means["ndcg@10"]
    weights = [row["weight"] for row in blend.members_]
    return {"seed": seed, "n": n, "kind": kind, **blend.estimate_._asdict(), "test": values, "weights": weights}


def describe(rows: list[dict[str, Any]]) -> str:
    """Return the mean error with its standard error, and the coverage, as Markdown."""
    lines = ["| data sets | mean error | standard error | coverage of 95% intervals |", "|---|---|---|---|"]
    groups = {"all": rows, **{kind: [row for row in rows if row["kind"] == kind] for kind in ("linear", "mixed")}}
    for name, group in groups.items():
        errors = np.array([row["mean"] - row["test"] for row in group])
        covered = np.mean([row["low"] <= row["test"] <= row["high"] for row in group])
        error = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else float("nan")
        lines.append(f"| {name} ({len(group)}) | {errors.mean():+.4f} | {error:.4f} | {covered:.1%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, help="of a search by AutoRanker, in place of fixed members")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    missing = sorted(set(range(options.sets)) - {row["seed"] for row in done})
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool, options.out.open("a") as file:
        for row in pool.map(partial(measure_set, seconds=options.seconds), missing):
            done.append(row)
            print(json.dumps(row), file=file, flush=True)
    print(describe(done))
