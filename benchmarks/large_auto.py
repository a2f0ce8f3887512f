"""AutoRanker against LightGBM on large synthetic data in the same wall time.

``python -m benchmarks.large_auto --seconds 300``.

LightGBM trains its lambdarank until the time is over, with a tenth of the queries to choose the number of trees. Each
method runs in a process of its own, one after the other, on the same number of threads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np

import rankwright as rw
from benchmarks.timing import THREADS

N_QUERIES, N_TEST, N_DOCS, N_FEATURES = 6_000, 1_000, 120, 136
LEAVES = {"lightgbm-31": 31, "lightgbm-63": 63}


def make_data(share: float) -> tuple[rw.Queries, rw.Queries]:
    """Return the training and test queries; ``share`` makes fewer for a trial."""
    n, n_test = int(share * N_QUERIES), int(share * N_TEST)
    shape: dict[str, Any] = {"n_docs": N_DOCS, "n_features": N_FEATURES, "grades": 5}
    made = rw.make_queries(n + n_test, kind="mixed", random_state=0, **shape)
    return made.take(np.arange(n)), made.take(np.arange(n, n + n_test))


def fit_auto(train: rw.Queries, seconds: float, n_threads: int) -> Any:
    """Fit AutoRanker within the time, and return its function that predicts."""
    return rw.AutoRanker(max_seconds=seconds, backend=rw.Threads(n_threads)).fit(train).predict


def fit_lightgbm(train: rw.Queries, seconds: float, n_threads: int, num_leaves: int) -> Any:
    """LightGBM's lambdarank until the time is over, with the number of trees that is best on a tenth of the queries."""
    import lightgbm as lgb

    end = perf_counter() + seconds
    order = np.random.default_rng(0).permutation(len(train))
    held_out, kept = train.take(np.sort(order[: len(order) // 10])), train.take(np.sort(order[len(order) // 10 :]))
    params = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": 10,
        "num_leaves": num_leaves,
        "num_threads": n_threads,
        "verbosity": -1,
    }
    data = lgb.Dataset(kept.X, kept.y, group=kept.sizes)
    valid = lgb.Dataset(held_out.X, held_out.y, group=held_out.sizes, reference=data)

    def stop_in_time(env: Any) -> None:
        if perf_counter() > end - 0.02 * seconds:
            raise lgb.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    results: dict[str, Any] = {}
    callbacks = [lgb.record_evaluation(results), stop_in_time]
    booster = lgb.train(params, data, 10_000, valid_sets=[valid], valid_names=["valid"], callbacks=callbacks)
    best = 1 + int(np.argmax(results["valid"]["ndcg@10"]))
    print(f"{len(results['valid']['ndcg@10'])} trees, {best} kept", file=sys.stderr)
    return lambda queries: booster.predict(queries.X, num_iteration=best, num_threads=n_threads)


def run_method(name: str, seconds: float, n_threads: int, share: float) -> dict[str, Any]:
    """Fit one method and measure it on test queries."""
    warnings.simplefilter("ignore")
    train, test = make_data(share)
    warm = train.take(np.arange(min(60, len(train))))
    start = perf_counter()
    if name == "auto":
        rw.AutoRanker(max_seconds=None).fit(warm)  # compiles what the fit needs
        start = perf_counter()
        predict = fit_auto(train, seconds, n_threads)
    else:
        predict = fit_lightgbm(train, seconds, n_threads, LEAVES[name])
    took = perf_counter() - start
    values = rw.NDCG(10).values(test, np.asarray(predict(test), dtype=np.float64))
    return {
        "method": name,
        "seconds": took,
        "ndcg@10": float(values.mean()),
        "error": float(values.std() / np.sqrt(len(values))),
    }


def main() -> None:
    """Run all methods, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--share", type=float, default=1.0, help="of the queries, for a trial")
    parser.add_argument("--method", choices=["auto", *LEAVES], help="run only this one, in this process")
    args = parser.parse_args()
    if args.method:
        print(json.dumps(run_method(args.method, args.seconds, args.threads, args.share)), flush=True)
        return
    for name in ["auto", *LEAVES]:
        options = ["--seconds", args.seconds, "--threads", args.threads, "--share", args.share, "--method", name]
        subprocess.run([sys.executable, "-m", "benchmarks.large_auto", *map(str, options)], check=True)


if __name__ == "__main__":
    main()
