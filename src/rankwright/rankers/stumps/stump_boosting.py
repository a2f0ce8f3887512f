"""Sums of stumps in training, as RankBoost and FRank share them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import GradedDocuments
from rankwright.measures import Measure, PreparedMeasure, weighted_mean
from rankwright.objectives.pairwise_objectives import compute_pair_weights, count_query_pairs, sort_by_grade
from rankwright.optimisers.weak.threshold_stumps import BinCut, BinnedShard, FeatureBins, Stump, sum_stumps
from rankwright.rankers.boosting import BoostingRanker, read_value
from rankwright.rankers.fit_memory import DataSize, estimate_bins
from rankwright.runtime.backends import Backend, Shards
from rankwright.runtime.shared_preparations import prepare_once

_LARGEST = float(np.finfo(np.float32).max)
_LARGEST_STEP = 20.0


class StumpChoice(NamedTuple):
    """The stump chosen in a round, and the values to record about the choice in the history."""

    stump: Stump
    notes: dict[str, Any]


class PairSums(Protocol):
    """A function that returns sums over pairs at given scores, and by document signed sums over its own pairs."""

    def __call__(self, graded: GradedDocuments, before: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Sum over pairs; ``before`` are the scores of the last round."""


class RoundInputs(NamedTuple):
    """The fixed inputs of every round: the function of sums over pairs, the bins, and the features summed at once."""

    pair_sums: PairSums
    bins: FeatureBins
    features: Ints  # those to sum worths of at once


class StumpShard(NamedTuple):
    """A part of the training documents, sorted by grade, with their scores, ranking, and sums at these scores."""

    rules: RoundInputs
    binned: BinnedShard
    prepared: PreparedMeasure
    weight: Floats  # of each query in the mean of the measure
    scores: Floats
    order: Ints  # the last ranking
    potentials: Floats  # rows of the documents' potentials
    worths: Floats  # the sums of the first row over all slots, where these are few
    totals: Floats  # the measure, then sums over pairs


@dataclass(kw_only=True, eq=False, repr=False)
class StumpRanker(BoostingRanker):
    """A ranker whose scores are a sum of threshold stumps: the base of RankBoost and FRank.

    Parameters
    ----------
    scale : "query", "standard" or None
        Scaling of the features. Only scaling per query makes a difference to stumps.
    max_bins : int or None
        The largest number of bins of a feature; None for thresholds wherever two training documents differ.
    """

    bytes_per_doc: ClassVar[int] = 110

    scale: str | None = None
    n_estimators: int = 300
    max_bins: int | None = 255

    is_doc_weighted: ClassVar[bool] = True
    takes_distributed: ClassVar[bool] = True

    def _more_memory(self, size: DataSize) -> float:
        return estimate_bins(size, self.max_bins)


class StumpStages(ABC):
    """The state of boosting stumps between rounds: the stumps, the scores, and the sums over pairs.

    Parameters
    ----------
    train, valid : Queries
        Training queries, and validation queries if there are any.
    measure : Measure
        The measure that rounds are evaluated by.
    n_bins : int or None
        The largest number of bins of a feature; None for thresholds wherever two documents differ.
    pair_weighting : "pair" or "query"
        Whether all pairs have equal weight in the loss, or all queries.
    backend : Backend
        Where the work runs.
    """

    pair_sums: ClassVar[PairSums]  # what the scores of a round determine
    noted: ClassVar[Mapping[str, type]]  # what subclasses note of a choice
    takes_missing: ClassVar[bool]  # whether features may be missing

    def __init__(
        self,
        train: Queries,
        valid: Queries | None,
        measure: Measure,
        n_bins: int | None,
        pair_weighting: str,
        backend: Backend,
    ) -> None:
        self.backend, self.stumps = backend, list[Stump]()
        self.bins = prepare_once(train, ("stump bins", n_bins), lambda: FeatureBins.of(train, n_bins, backend))
        shards = backend.scatter(train)
        self.pair_weight = float(backend.sum(_sum_pair_weights, shards, pair_weighting))
        self.features = np.flatnonzero(self.bins.sizes > 2)  # that have a threshold
        self.groups, self.slots = self.bins.group_features(self.features), self.bins.list_slots(self.features)
        at_once = self.features if len(self.groups) == 1 else self.features[:0]
        rules = RoundInputs(self.pair_sums, self.bins, at_once)
        # kept, so that a backend finds the bins of the documents there whenever it saves the state of later rounds
        self.prepared = backend.apply(
            _prepare_part, shards, measure.for_training(), rules, pair_weighting, self.pair_weight or 1.0
        )
        self.query_weight = float(backend.sum(_sum_query_weights, self.prepared))
        self._move(self.prepared, None, None)
        self.valid = None if valid is None else (valid, measure.prepare(valid), np.zeros(valid.n_docs))

    def _move(self, parts: Shards[StumpShard], stump: Stump | None, cut: BinCut | None) -> None:
        """Add a stump to the scores of parts, and sum up what follows."""
        self.parts: Shards[StumpShard] = self.backend.apply(_add_to_part, parts, stump, cut)
        sums = self.backend.sum(_join_sums, self.parts)  # in one call
        n_worths = len(self.slots) if len(self.groups) == 1 else 0
        self.totals, self.sums = np.split(sums, [len(sums) - n_worths])

    @abstractmethod
    def choose(self) -> StumpChoice | None:
        """Return the next stump and its step; None where nothing is left to gain."""

    def worths(self) -> Floats:
        """Return for every slot the sum of the potentials of its documents."""
        worths = np.zeros(self.bins.n_slots)
        if len(self.groups) == 1:
            worths[self.slots] = self.sums
        else:
            sums = [self.backend.sum(_sum_worths, self.parts, self.bins, group) for group in self.groups]
            worths[self.slots] = np.concatenate(sums)
        return worths

    @property
    def loss(self) -> float:
        """The first sum over pairs."""
        return float(self.totals[1])

    def restore(self, record: Mapping[str, Any]) -> StumpChoice:
        """Return the stump of a round from its row in a history."""
        feature = read_value(record, "feature", int, 0, self.bins.n_features - 1)
        threshold = read_value(record, "threshold", float, -_LARGEST, _LARGEST)
        alpha = read_value(record, "alpha", float, -_LARGEST_STEP, _LARGEST_STEP)
        missing = read_value(record, "missing", bool, False, self.takes_missing)
        notes = {name: read_value(record, name, kind, -np.inf, np.inf) for name, kind in self.noted.items()}
        return StumpChoice(Stump(feature, threshold, alpha, missing), notes)

    def add(self, chosen: StumpChoice) -> dict[str, Any]:
        """Add a stump to the sum; returns the record of the round."""
        stump = chosen.stump
        self.stumps.append(stump)
        self._move(self.parts, stump, self.bins.find_cut(stump))
        if not np.isfinite(self.loss):
            raise InputError("init_model: the steps in the history of the model are too large for these documents")
        record = {
            "feature": stump.feature,
            "threshold": stump.threshold,
            "missing": stump.missing,
            "alpha": stump.weight,
            **chosen.notes,
            "loss": self.loss,
            "train": float(self.totals[0]) / self.query_weight,
        }
        if self.valid is not None:
            queries, prepared, scores = self.valid
            scores += queries.compute_scores(sum_stumps([stump], missing=True))
            record["valid"] = weighted_mean(prepared.values(scores, self.backend), queries.query_weight)
        return record


def _sum_pair_weights(queries: Queries, pair_weighting: str) -> float:
    """Return the sum of the weights of all pairs of these queries."""
    pairs = count_query_pairs(queries.y, queries.indptr, queries.doc_weight)
    return float((compute_pair_weights(queries, pair_weighting) * pairs).sum())


def _prepare_part(
    queries: Queries, measure: Measure, rules: RoundInputs, pair_weighting: str, total: float
) -> StumpShard:
    """Return these queries as a part of the training documents, binned, where all scores are 0."""
    rows, graded = sort_by_grade(queries, pair_weighting)
    graded = graded._replace(weight=graded.weight / total)
    binned = BinnedShard(queries.X, rows, graded, rules.bins.encode(queries.X, rows))
    prepared = measure.prepare(queries.reorder_labels(rows))
    weight = np.where(prepared.is_counted, queries.query_weight, 0.0)
    none = np.empty(0)
    scores, order = np.zeros(queries.n_docs), np.arange(queries.n_docs)
    return StumpShard(rules, binned, prepared, weight, scores, order, none, none, none)


def _sum_query_weights(part: StumpShard) -> float:
    """Return the sum of the weights of a part's queries that the measure counts."""
    return float(part.weight.sum())


def _add_to_part(part: StumpShard, stump: Stump | None, cut: BinCut | None) -> StumpShard:
    """Return a part with a stump added to its scores, and the ranking and sums at the new scores."""
    rules, binned, before, order = part.rules, part.binned, part.scores, part.order.copy()
    scores = before if stump is None else binned.add_stump(before, stump, cut)
    totals, potentials = rules.pair_sums(binned.graded, before, scores)
    worths = binned.sum_by_slot(potentials[0], rules.bins, rules.features)
    value = part.prepared.rank_and_sum(scores, order, part.weight)
    totals = np.concatenate([[value], totals])
    return StumpShard(rules, binned, part.prepared, part.weight, scores, order, potentials, worths, totals)


def _join_sums(part: StumpShard) -> Floats:
    """Return all sums of a part in one array."""
    return np.concatenate([part.totals, part.worths])


def _sum_worths(part: StumpShard, bins: FeatureBins, features: Ints) -> Floats:
    """Return for each bin of these features the sum of the potentials of this part's documents in it."""
    return part.binned.sum_by_slot(part.potentials[0], bins, features)
