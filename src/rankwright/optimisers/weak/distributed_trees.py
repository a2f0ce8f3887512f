"""Regression trees that LightGBM grows on the workers of a cluster, which have the documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.data.categories import list_categorical
from rankwright.data.queries import Queries
from rankwright.objectives.base import Evaluation
from rankwright.optimisers.functional_gradient import TreeTarget, round_shard
from rankwright.optimisers.weak.distributed_bins import Rows, agree_on_bins, fill_bins
from rankwright.optimisers.weak.lightgbm_bins import explain_version, read_bins
from rankwright.optimisers.weak.lightgbm_network import connect_lightgbm
from rankwright.optimisers.weak.regression_trees import RegressionTree, TreeGrower, translate_errors
from rankwright.optimisers.weak.split_counts import SplitCounter, finds_same_splits, measure_message
from rankwright.runtime.backends import Backend, Shards
from rankwright.runtime.process_group import GroupProcess, ProcessesLostError, ProcessGroup, restore_shards
from rankwright.runtime.workers.base import WorkersLostError
from rankwright.scorers.lightgbm_text import Forest

_ATTEMPTS = 3  # of a tree whose machines are lost
_LARGE = 2_000_000  # values of features on a machine, from which on LightGBM has several threads there
_LONGEST = 4096  # bytes of a message about splits
_DEFAULT_CATEGORIES = 32  # of a split
_EPSILON = 1e-15  # LightGBM adds no mean to the values of a tree that is nearer to 0


@dataclass(frozen=True, slots=True)
class _Job:
    """A description of a fit for all machines: LightGBM's parameters, and which rows of the data set each one has.

    Parameters
    ----------
    params : dict
        LightGBM's parameters.
    rows : list
        The rows of each machine, by rank: the first one and the end of each of its shards.
    bins : bytes or None
        The bins of the features; None if they are to be found.
    native : bool
        Whether trees are grown for an objective of LightGBM's own.
    n_grown : int
        The number of trees that were grown before.
    is_random : bool
        Whether one round may find a split where another found none.
    start : float
        The score of every document that LightGBM's own objective begins with, where there are no others.
    """

    params: dict[str, Any]
    rows: list[Rows]
    bins: bytes | None
    native: bool
    n_grown: int
    is_random: bool
    start: float


class _Machine(NamedTuple):
    """The objects that a machine keeps between trees."""

    grower: TreeGrower
    counter: SplitCounter | None


class DistributedGrower:
    """A grower of trees on the workers that have the documents, each of which is a machine of LightGBM.

    The trees have the bits of those that are grown on one machine, unless they are grown for an objective of LightGBM's
    own, whose sums over documents are not exact. When a worker is lost, the others take its documents, and grow the
    tree again.

    Parameters
    ----------
    weak : RegressionTree
        How trees are grown.
    queries : Queries
        The training queries.
    documents : Shards of Queries
        Their shards.
    backend : Backend
        The cluster.
    find_start : callable
        It returns the scores that LightGBM's own objective begins with, as shards; None where there are no trees yet.
    native : mapping, optional
        LightGBM's own objective and its parameters, where trees are to be grown for it.
    """

    def __init__(
        self,
        weak: RegressionTree,
        queries: Queries,
        documents: Shards[Queries],
        backend: Backend,
        find_start: Callable[[], Shards[Floats] | None] = lambda: None,
        native: Mapping[str, Any] | None = None,
    ) -> None:
        if queries.position is not None and (native or {}).get("objective") == "lambdarank":
            raise InputError(
                "LightGBM debiases positions on one machine only; bring the features here (queries.collect()), leave "
                "the positions out (queries.replace(position=None)), or take lambdas='exact' and a measure from clicks"
            )
        self.weak, self.documents, self.backend = weak, documents, backend
        self.find_start, self.native = find_start, dict(native or {})
        self.params = weak.to_lightgbm(1, **self.native)
        self.params["categorical_column"] = list_categorical(queries.categories)
        self.ends = [0, *accumulate(backend.gather(attrgetter("n_docs"), documents))]
        self.mean_grade = 0.0 if self.native.get("objective") != "regression" else _find_mean_grade(queries)
        self.bins: bytes | None = None
        self.group: ProcessGroup | None = None
        self.bias, self.n_grown = 0.0, 0
        self.is_weighted = queries.weight is not None or queries.doc_weight is not None

    def fit_target(self, target: TreeTarget, backend: Backend) -> Forest | None:
        """Return the tree along the gradients of a target; a single leaf or None where no split gains enough."""
        return self._grow(_fit_target, target.shards, target.factor, target.highest)

    def fit_own_objective(self) -> Forest | None:
        """Return the next tree of LightGBM's own objective."""
        tree = self._grow(_fit_own_objective, self.is_weighted or self.native.get("objective") != "regression")
        if tree is not None and self.bias and self.n_grown == 1:
            tree = replace(tree, trees=(tree.trees[0].shift(self.bias),))
        return tree

    def rescale(self, tree: Forest, weight: float) -> Forest:
        """Return the last tree with its values multiplied."""
        return tree.with_weights([weight])

    def close(self) -> None:
        """Free the workers."""
        if self.group is not None:
            self.group.close()
            self.group = None

    def _grow(self, fn: Callable[..., Any], *arguments: Any) -> Forest | None:
        """Return the tree that all machines grow; begin anew with other machines if one is lost."""
        for _ in range(_ATTEMPTS):
            try:
                group = self._open()
                found = group.call(fn, *arguments)
            except ProcessesLostError:
                self.group = None
                for each in arguments:
                    if isinstance(each, Shards):
                        restore_shards(each)
                continue
            except BaseException:
                self.group = None
                raise
            if len({digest for digest, _ in found}) > 1:
                raise explain_version("grows other trees on each machine")
            self.n_grown += 1
            tree: Forest | None = found[0][1]
            return tree
        raise WorkersLostError(
            f"workers of {self.backend!r} died {_ATTEMPTS} times while one tree was grown: look for a lack of memory "
            "in their logs"
        )

    def _open(self) -> ProcessGroup:
        """Return the machines, prepared to grow the next tree."""
        if self.group is not None:
            return self.group
        group = ProcessGroup(self.documents)
        rows: list[Rows] = [[] for _ in group.workers]
        for rank, (start, stop) in zip(group.ranks, pairwise(self.ends), strict=True):
            rows[rank].append((start, stop))
        start_scores = self.find_start()
        start = self.mean_grade if start_scores is None and abs(self.mean_grade) > _EPSILON else 0.0
        if start_scores is None:
            self.bias = start
        job = _Job(self.params, rows, self.bins, bool(self.native), self.n_grown, self.weak.is_random, start)
        found = group.call(_prepare, self.documents, job, start_scores)
        self.bins, self.group = found[0], group
        return group


def has_same_bits(params: Mapping[str, Any], queries: Queries) -> bool:
    """Return whether trees along gradients have the bits of those that grow on one machine."""
    return finds_same_splits(params) and queries.categories is None


def explain_refusal(params: Mapping[str, Any]) -> str | None:
    """Return why LightGBM cannot grow the trees of one machine on several, with these parameters; None if it can."""
    if params.get("bagging_freq", 0) > 0 and params.get("bagging_fraction", 1.0) < 1.0:
        return "with bagging_fraction each worker would draw other documents than one machine does"
    if params.get("data_sample_strategy") == "goss":
        return "with data_sample_strategy='goss' each worker would draw other documents than one machine does"
    if params.get("feature_fraction_bynode", 1.0) < 1.0:
        return "with feature_fraction_bynode workers draw other features than one machine (feature_fraction works)"
    if params.get("extra_trees"):
        return "with extra_trees workers draw other thresholds than one machine does"
    if params.get("interaction_constraints"):
        return "LightGBM takes interaction_constraints on one machine only"
    if params.get("monotone_constraints_method", "basic") != "basic":
        return "LightGBM takes monotone_constraints_method='basic' only on several machines"
    if any(name.startswith("cegb_penalty") and params[name] for name in params):
        return "with cegb_penalty each worker would know the costs of its own documents only"
    if measure_message(int(params.get("max_cat_threshold", _DEFAULT_CATEGORIES))) >= _LONGEST:
        return f"max_cat_threshold={params['max_cat_threshold']} is above 480, which is the most on several machines"
    return None


def _prepare(
    process: GroupProcess, parts: Sequence[Queries], job: _Job, start_scores: Sequence[Floats] | None
) -> bytes | None:
    """Bin the documents of a machine; the first machine returns the bins of the features."""
    own = process.communicator
    n_values = sum(part.X.size for part in parts)
    params = {**job.params, "num_threads": process.n_threads if n_values > _LARGE else 1}
    bins = agree_on_bins(own, parts, job.rows, params) if job.bins is None else job.bins
    params |= {"tree_learner": "data", "num_machines": own.size}
    data = fill_bins(bins, parts, params)
    if job.native:
        _set_labels(data, parts, job.start, start_scores)
    with connect_lightgbm(own), translate_errors():
        booster = require("lightgbm").Booster(params, data)
    can_split = any(data.feature_num_bin(i) > 1 for i in range(data.num_feature()))
    grower = TreeGrower(data, booster, can_split, job.is_random)
    if params.get("feature_fraction", 1.0) < 1.0:
        for _ in range(job.n_grown):  # draws the features of one tree
            grower.booster.reset_parameter({"learning_rate": params["learning_rate"]})
    counter = None if own.size == 1 else SplitCounter([part.X for part in parts], read_bins(bins), params, own)
    process.state = _Machine(grower, counter)
    return bins if own.rank == 0 else None


def _set_labels(data: Any, parts: Sequence[Queries], start: float, start_scores: Sequence[Floats] | None) -> None:
    """Give LightGBM what its own objectives need: grades, weights, and scores to begin with."""
    data.set_label(np.concatenate([part.y for part in parts]))
    data.set_group(np.concatenate([part.sizes for part in parts]))
    if any(part.weight is not None or part.doc_weight is not None for part in parts):
        data.set_weight(np.concatenate([part.row_weight for part in parts]))
    if start_scores is not None:
        data.set_init_score(np.concatenate(start_scores))
    elif start:
        data.set_init_score(np.full(data.num_data(), start))


def _fit_target(
    process: GroupProcess, found: Sequence[Evaluation], factor: float, highest: tuple[float, float]
) -> tuple[bytes, Forest | None]:
    """Grow a tree along gradients of the machine's documents."""
    rounded = [round_shard(part, factor, highest) for part in found]
    gradient, curvature = (np.concatenate(column) for column in zip(*rounded, strict=True))
    counter = process.state.counter
    if counter is not None:
        counter.begin_tree((float(gradient.sum(dtype=np.float64)), float(curvature.sum(dtype=np.float64))))
    return _grow(process, lambda grower: grower.fit(gradient, curvature), counter)


def _fit_own_objective(process: GroupProcess, counts: bool) -> tuple[bytes, Forest | None]:
    """Grow a tree for LightGBM's own objective."""
    counter = process.state.counter if counts else None
    if counter is not None:
        counter.begin_tree()
    return _grow(process, TreeGrower.fit_own_objective, counter)


def _grow(
    process: GroupProcess, fit: Callable[[TreeGrower], Forest | None], counter: SplitCounter | None
) -> tuple[bytes, Forest | None]:
    """Grow a tree together with the other machines; return a digest, and on the first machine the tree."""
    with connect_lightgbm(process.communicator, counter):
        tree = fit(process.state.grower)
    if tree is None:
        return b"", None
    if counter is not None:
        counter.check_tree(tree.trees[0])
    digest = blake2b(tree.trees[0].text().encode()).digest()
    return digest, tree if process.communicator.rank == 0 else None


def _find_mean_grade(queries: Queries) -> float:
    """Return the mean grade that LightGBM's regression begins with."""
    y, weight = queries.grouped().y.astype(np.float32).astype(np.float64), queries.row_weight.astype(np.float32)
    return float((y * weight).sum() / weight.sum(dtype=np.float64))
