"""The data sets and the methods of the study of AutoRanker: each method is a function from a task to scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import ParameterGrid

import rankwright as rw
from benchmarks.peers import MEASURE, TUNERS, find_missing
from rankwright.basics.array_types import Floats
from rankwright.data.folds import Folds, FoldSplit
from rankwright.rankers import RANKERS
from rankwright.rankers.trees.tree_ranker import TreeRanker

AUTO = "auto"
FOLDERS = {"ohsumed": "OHSUMED", "mq2008": "MQ2008"}
MADE = "made"
DATA_SETS = (*FOLDERS, MADE)
MADE_QUERIES, MADE_DOCS, MADE_FEATURES, MADE_MISSING, MADE_SEED = 1_000, 40, 40, 0.05, 20
N_FOLDS = 5
# Blends of other rankers, which are no single rankers.
_COMPOSED = ("AutoRanker", "Blend")


class Task(NamedTuple):
    """One fold for one method: the queries, and what the method may use."""

    train: rw.Queries
    valid: rw.Queries
    test: rw.Queries
    seconds: float
    n_threads: int
    seed: int


class Answer(NamedTuple):
    """The scores of the test documents, NDCG@10 on the validation queries (NaN if unknown), and what was chosen."""

    scores: Floats
    valid: float
    chosen: str


Method = Callable[[Task], Answer]


def open_folds(name: str, folder: Path | None) -> Folds | FoldSplit:
    """Return the folds of a data set: of LETOR's files in a folder, or of synthetic queries."""
    if name == MADE:
        sizes = {"n_docs": MADE_DOCS, "n_features": MADE_FEATURES}
        queries = rw.make_queries(MADE_QUERIES, **sizes, kind="mixed", missing=MADE_MISSING, random_state=MADE_SEED)
        return rw.split_folds(queries, N_FOLDS, random_state=MADE_SEED)
    if folder is None:
        raise rw.InputError(f"{name} needs a folder with {FOLDERS[name]} in it: pass --data DIR")
    return rw.read_folds(folder / FOLDERS[name])


def list_methods() -> dict[str, Method]:
    """Return every method by name: auto, other libraries, and each ranker selected on validation queries."""
    peers = {name: partial(_use_peer, name) for name in TUNERS}
    singles = {each.__name__: partial(_select_ranker, each) for each in RANKERS if each.__name__ not in _COMPOSED}
    return {AUTO: _use_auto, **peers, **singles}


def find_absent() -> dict[str, str]:
    """Return, by method that cannot run here, a line that says why."""
    absent = find_missing()
    if not hasattr(rw, "AutoRanker"):
        absent[AUTO] = "auto is skipped: this version of rankwright has no AutoRanker"
    return absent


def _use_auto(task: Task) -> Answer:
    """Fit AutoRanker with the training and validation queries."""
    ranker = rw.AutoRanker(measure=MEASURE, max_seconds=task.seconds, backend=rw.Threads(task.n_threads))
    if "random_state" in ranker.get_params():
        ranker.set_params(random_state=task.seed)
    ranker.fit(task.train, valid=task.valid)
    return Answer(ranker.predict(task.test), math.nan, repr(ranker))


def _use_peer(name: str, task: Task) -> Answer:
    """Tune another library; its last fit is on the training and validation queries."""
    found = TUNERS[name](task.train, task.valid, task.seconds, task.n_threads, task.seed)
    test = task.test.grouped()
    scores = np.asarray(found.scores(test), dtype=np.float64)
    chosen = f"{found.rounds} rounds, best of {found.n_tried}: {found.params}"
    return Answer(task.test.restore(scores), found.valid, chosen)


def _select_ranker(kind: type[rw.Ranker], task: Task) -> Answer:
    """Select a ranker from its default grid on the validation queries; only trees see missing values."""
    train, valid, test = task.train, task.valid, task.test
    if not issubclass(kind, TreeRanker):
        medians = find_medians(train)
        train, valid, test = (fill_missing(part, medians) for part in (train, valid, test))
    n_fits = len(ParameterGrid(dict(kind.default_grid)))
    given: dict[str, Any] = {"max_seconds": task.seconds / n_fits, "random_state": task.seed}
    known = {each.name for each in fields(kind)}
    ranker = kind(
        measure=MEASURE,
        backend=rw.Threads(task.n_threads),
        **{name: value for name, value in given.items() if name in known},
    )
    best = rw.select(ranker, kind.default_grid, train, valid)
    trials: list[Mapping[str, Any]] = best.selection_
    top = max(trials, key=lambda trial: float(trial["value"]))
    chosen = ", ".join(f"{name}={value}" for name, value in top.items() if name != "value")
    return Answer(best.predict(test), float(top["value"]), chosen)


def find_medians(queries: rw.Queries) -> Floats:
    """Return the median of each feature where it is not missing; 0 for a feature that always is."""
    X = queries.X
    medians = np.zeros(X.shape[1], dtype=np.float32)
    for j in range(X.shape[1]):
        present = X[~np.isnan(X[:, j]), j]
        medians[j] = np.median(present) if len(present) else 0.0
    return medians


def fill_missing(queries: rw.Queries, values: Floats) -> rw.Queries:
    """Return the queries with a value per feature in place of each missing one."""
    grouped = queries.grouped()
    return grouped.with_X(np.where(np.isnan(grouped.X), values, grouped.X).astype(np.float32))
