"""Scores of tree ensembles, from one query at a time to many: ``python -m benchmarks.serving``, which takes minutes.

Everything runs on one core. LightGBM trains the trees, and all others score these same trees.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import lightgbm as lgb
import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, faster, publish, skipped
from benchmarks.smoothing import wild
from benchmarks.timing import find_peer, medians, take_turns
from rankwright.basics.array_types import Floats
from rankwright.scorers import Scorer, Stumps, WeightedSum, merge_scorers

QUERIES, FEATURES, LEAVES = 600, 136, 31  # of training
TREES = (100, 1_000)
BATCHES = {100: 30, 100_000: 1}  # documents a call, and calls in a repetition
TURNS = 7
_SHARE = 100  # trees that one C file holds

Predict = Callable[[Floats], Any]


def measure() -> Iterable[Table]:
    """A table for each number of trees and of documents, and those of ``measure_sums``."""
    train, X = wild(QUERIES), wild(max(BATCHES) // 120 + 1, random_state=1).X[: max(BATCHES)]
    for n_trees in TREES:
        with tempfile.TemporaryDirectory() as folder, one_core():
            booster = train_lightgbm(train, n_trees)
            predictors = find_predictors(booster, Path(folder))
            expected = booster.predict(X[:2_000])
            errors = {name: compute_error(predict, X[:2_000], expected) for name, predict in predictors.items()}
            for n_docs, n_calls in BATCHES.items():
                yield measure_batch(predictors, errors, X, (n_trees, n_docs, n_calls))
    yield from measure_sums()


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one core inside the block, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def train_lightgbm(train: rw.Queries, n_trees: int) -> Any:
    """LightGBM's lambdarank, on one thread."""
    params = {"objective": "lambdarank", "num_leaves": LEAVES, "num_threads": 1, "verbosity": -1, "seed": 0}
    params |= {"learning_rate": 0.1 if n_trees <= 100 else 0.03}
    return lgb.train(params, lgb.Dataset(train.X, train.y, group=train.sizes, params=params), n_trees)


def find_predictors(booster: Any, folder: Path) -> dict[str, Predict]:
    """By name what scores a matrix: ours, LightGBM, and the peers that are installed."""
    model = rw.import_model(booster)
    found: dict[str, Predict] = {"ours": model.predict}
    found["LightGBM"] = partial(booster.predict, raw_score=True, num_threads=1)
    if xgboost := find_peer("xgboost"):
        found["XGBoost"] = make_xgboost(xgboost, model, folder)
    if (converters := find_peer("onnxmltools")) and (runtime := find_peer("onnxruntime")):
        found["onnxruntime"] = make_onnx(converters, runtime, booster)
    if (treelite := find_peer("treelite")) and (compiler := find_peer("tl2cgen")):
        found["tl2cgen, compiled C"] = make_compiled(treelite, compiler, booster, folder)
    return found


def make_xgboost(xgboost: Any, model: rw.Model, folder: Path) -> Predict:
    """The trees as we export them to XGBoost, predicted in place."""
    path = folder / "xgboost.json"
    rw.export(model, to="xgboost", path=path)
    predict: Predict = xgboost.Booster({"nthread": 1}, model_file=path).inplace_predict
    return predict


def make_onnx(converters: Any, runtime: Any, booster: Any) -> Predict:
    """A tree ensemble of ONNX, in single precision, as onnxmltools converts it."""
    kind = converters.convert.common.data_types.FloatTensorType([None, FEATURES])
    model = converters.convert_lightgbm(booster, initial_types=[("X", kind)])
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda X: session.run(None, {"X": X})[0]


def make_compiled(treelite: Any, compiler: Any, booster: Any, folder: Path) -> Predict:
    """The trees as a C program, compiled by gcc."""
    text, library = folder / "model.txt", folder / "model.so"
    booster.save_model(text)
    shared = {"parallel_comp": max(booster.num_trees() // _SHARE, 1)}
    compiler.export_lib(
        treelite.frontend.load_lightgbm_model(text), toolchain="gcc", libpath=library, params=shared, nthread=1
    )
    predictor = compiler.Predictor(library, nthread=1)
    return lambda X: predictor.predict(compiler.DMatrix(X))


def compute_error(predict: Predict, X: Floats, expected: Floats) -> float:
    """The largest difference from LightGBM's scores."""
    return float(np.abs(np.ravel(predict(X)) - expected).max())


def measure_batch(
    predictors: dict[str, Predict], errors: dict[str, float], X: Floats, sizes: tuple[int, int, int]
) -> Table:
    """Time every predictor on batches of so many documents, others at each call."""
    n_trees, n_docs, n_calls = sizes
    parts = [X[start : start + n_docs] for start in range(0, n_docs * n_calls, n_docs)]

    def repeat(predict: Predict) -> None:
        for part in parts:
            predict(part)

    tasks = {name: partial(repeat, predict) for name, predict in predictors.items()}
    for task in tasks.values():
        task()
    found = {name: seconds / n_calls for name, seconds in medians(take_turns(tasks, TURNS, process_time)).items()}
    rows = [
        Row("ours", f"{show(found['ours'])}; the same bits as LightGBM: {'yes' if not errors['ours'] else '**no**'}")
    ]
    rows += [
        faster(name, f"{show(seconds)}; off by at most {errors[name]:.1e}", seconds / found["ours"], 1.0)
        for name, seconds in found.items()
        if name != "ours"
    ]
    rows += [skipped(name) for name in ("XGBoost", "onnxruntime", "tl2cgen, compiled C") if name not in found]
    nanoseconds = 1e9 * found["ours"] / n_docs / n_trees
    notes = [
        f"{FEATURES} features, {LEAVES} leaves, one core; processor time of a call, from float32 to scores. "
        f"Ours takes {nanoseconds:.2f} ns for a document and a tree. Medians of {TURNS} repetitions that take turns."
    ]
    return Table(f"{n_docs:,} documents scored by {n_trees:,} trees", rows, notes)


def show(seconds: float) -> str:
    """A time in the unit that suits it."""
    return f"{1e6 * seconds:,.0f} µs" if seconds < 0.01 else f"{1e3 * seconds:,.0f} ms"


SUM_OF = {"stumps": 300, "forests": 5, "trees": 100, "leaves": 10}
SUM_BATCHES = {1: 300, 100: 30, 100_000: 1}


def measure_sums() -> Iterable[Table]:
    """A table for each number of documents: a weighted sum of scorers, merged into one forest and part by part."""
    train, X = wild(QUERIES), wild(max(SUM_BATCHES) // 120 + 1, random_state=1).X[: max(SUM_BATCHES)]
    with one_core():
        scorers = make_scorers(train)
        weights = 1.0 / np.arange(1, len(scorers) + 1)
        forests = merge_scorers(scorers[1:], weights[1:])
        sums = {
            "merged into one forest": merge_scorers(scorers, weights),
            "part by part": WeightedSum(scorers, weights),
            "stumps beside one forest": WeightedSum([scorers[0], forests], np.array([weights[0], 1.0])),
        }
        for n_docs, n_calls in SUM_BATCHES.items():
            yield measure_sum(sums, X, n_docs, n_calls)


def make_scorers(train: rw.Queries) -> list[Scorer]:
    """Stumps at values of the features, and forests that LightGBM trains with different seeds."""
    rng = np.random.default_rng(0)
    feature = rng.integers(0, FEATURES, SUM_OF["stumps"])
    threshold = train.X[rng.integers(0, train.n_docs, len(feature)), feature]
    scorers: list[Scorer] = [Stumps(feature, threshold, rng.normal(size=len(feature)), rng.random(len(feature)) < 0.5)]
    params = {"objective": "lambdarank", "num_leaves": SUM_OF["leaves"], "num_threads": 1, "verbosity": -1}
    for seed in range(SUM_OF["forests"]):
        own = {**params, "seed": seed, "feature_fraction": 0.5}
        booster = lgb.train(own, lgb.Dataset(train.X, train.y, group=train.sizes, params=own), SUM_OF["trees"])
        scorers.append(rw.import_model(booster).scorer)
    return scorers


def measure_sum(sums: dict[str, Scorer], X: Floats, n_docs: int, n_calls: int) -> Table:
    """Time the forms of one sum on the same documents."""
    rows = np.ascontiguousarray(X[:n_docs])

    def repeat(scorer: Scorer) -> None:
        for _ in range(n_calls):
            scorer(rows)

    tasks = {name: partial(repeat, scorer) for name, scorer in sums.items()}
    for task in tasks.values():
        task()
    found = {name: seconds / n_calls for name, seconds in medians(take_turns(tasks, TURNS, process_time)).items()}
    first, *others = found.items()
    listed = [Row(first[0], show(first[1]))]
    listed += [faster(name, show(seconds), seconds / first[1], 1.0) for name, seconds in others]
    what = f"a sum of {SUM_OF['stumps']} stumps and {SUM_OF['forests']} forests"
    notes = [f"{SUM_OF['trees']} trees of {SUM_OF['leaves']} leaves in each forest, {FEATURES} features, one core."]
    return Table(f"{n_docs:,} document{'s' * (n_docs > 1)} scored by {what}", listed, notes)


if __name__ == "__main__":
    publish([measure])
