"""Cross-fitting: candidates fitted without the queries of each fold in turn, and the members that come of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure, PreparedMeasure, weighted_mean
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.blend.candidates import Candidate, FoldFit, fit_candidate
from rankwright.rankers.blend.fold_plan import FoldKey, FoldPlan, standardise
from rankwright.runtime.backends import Backend, Serial, map_fits
from rankwright.runtime.shared_preparations import PreparationCache
from rankwright.scorers import Scorer

_N_GROUPS = 5  # of the held-out queries, where one fold alone holds queries out


class FitTask(NamedTuple):
    """A fit to be done: a candidate, the fold whose queries it does not see, and the time that it may take."""

    candidate: Candidate
    key: FoldKey
    max_seconds: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitter:
    """The fits of candidates, each made without the queries of one fold.

    Parameters
    ----------
    plan : FoldPlan
        The queries and their folds.
    measure : Measure
        The measure that chooses variants and weights, with the rule of ties of training.
    backend : Backend
        Where fits run: several at a time if the data are small.
    fits : dict
        The fits that were made, by candidate and fold.
    leaves_out_failures : bool
        Whether candidates whose fits fail are left out; otherwise the error is raised.
    failures : dict
        The errors of candidates whose fits failed.
    prepared : PreparationCache
        What fits to the same fold share, such as the bins of the features.
    """

    plan: FoldPlan
    measure: Measure
    backend: Backend
    fits: dict[Candidate, dict[FoldKey, FoldFit]] = field(default_factory=dict)
    leaves_out_failures: bool = False
    failures: dict[Candidate, str] = field(default_factory=dict)
    prepared: PreparationCache = field(default_factory=PreparationCache)
    _last: dict[FoldKey, tuple[Queries, Queries]] = field(default_factory=dict)

    def run(
        self,
        tasks: Sequence[FitTask],
        deadline: Deadline,
        report: Callable[[FitTask, FoldFit | None], None] | None = None,
        keep_shortened: bool = False,
    ) -> None:
        """Make the fits of the tasks, in order; after the deadline nothing more is begun.

        A fit that the deadline cuts short is dropped, unless it is the first of all or ``keep_shortened`` is set.
        """

        def work(at: int) -> FoldFit | str | None:
            is_first = at == 0 and not self.fits
            if deadline() and not is_first:
                return None
            task, left = tasks[at], deadline.remaining()
            limit = min(task.max_seconds, math.inf if left is None else left)
            fit = self._fit(task, None if limit == math.inf else limit)
            is_cut = isinstance(fit, FoldFit) and fit.was_cut_short and deadline()
            return None if is_cut and not is_first and not keep_shortened else fit

        found = map_fits(self.backend, work, range(len(tasks)), self.plan.queries.n_docs)
        for task, fit in zip(tasks, found, strict=True):
            if isinstance(fit, FoldFit):
                self.fits.setdefault(task.candidate, {})[task.key] = fit
            elif fit is not None:
                self.failures.setdefault(task.candidate, fit)
            if report is not None:
                report(task, fit if isinstance(fit, FoldFit) else None)

    def _fit(self, task: FitTask, max_seconds: float | None) -> FoldFit | str:
        """Make the fit of a task; return the error if it fails and such candidates are left out."""
        try:
            parts = self._split_fold(task.key)
            with self.prepared.use():
                return fit_candidate(task.candidate, parts, self.measure, max_seconds, self.backend)
        except Exception as error:
            if not self.leaves_out_failures:
                raise
            return f"{type(error).__name__}: {error}"

    def _split_fold(self, key: FoldKey) -> tuple[Queries, Queries]:
        """Return the training queries of a fold and its own; those of the last fold are the same objects again."""
        parts = self._last.pop(key, None)
        self._last.clear()  # before others are copied
        parts = self.plan.split_fold(key) if parts is None else parts
        self._last[key] = parts
        return parts

    def has_all(self, candidate: Candidate, keys: Sequence[FoldKey]) -> bool:
        """Return whether a candidate has a fit for each of these folds."""
        return set(keys) <= self.fits.get(candidate, {}).keys()

    def list_fits(self, candidates: Iterable[Candidate]) -> list[FoldFit]:
        """Return all fits of some candidates."""
        return [fit for candidate in candidates for fit in self.fits.get(candidate, {}).values()]

    def find_most_fitted_fold(self) -> list[FoldKey]:
        """Return the fold that most candidates were fitted for, for a search that ended before any had all folds."""
        counts = Counter(key for fits in self.fits.values() for key in fits if key.repeat == 0)
        if not counts:  # every fit for the first partition failed
            raise InputError(f"no member could be fitted: {next(iter(self.failures.values()))}")
        return [max(counts, key=lambda key: counts[key])]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutQueries:
    """The queries that were held out by some folds, without their features.

    Parameters
    ----------
    plan : FoldPlan
        All queries and their folds.
    keys : sequence of FoldKey
        The folds: all of one or more partitions, or some of the first.
    queries : Queries
        The held-out queries.
    measure : Measure
        The measure.
    prepared_measure : PreparedMeasure
        The measure prepared for them.
    positions : array
        Their positions among all queries.
    groups : array
        The group of each query, whose weights are found without the others of its group: its fold in the first
        partition, or where one fold alone holds queries out, one of five random parts of that fold.
    """

    plan: FoldPlan
    keys: Sequence[FoldKey]
    queries: Queries
    measure: Measure
    prepared_measure: PreparedMeasure
    positions: Ints
    groups: Ints

    @classmethod
    def of(cls, plan: FoldPlan, keys: Sequence[FoldKey], measure: Measure) -> HeldOutQueries:
        """Return the queries that these folds hold out."""
        positions = np.unique(np.concatenate([plan.find_held_out(key) for key in keys]))
        bare = plan.queries.replace(X=np.empty((plan.queries.n_docs, 0), np.float32), features=None, categories=None)
        queries = bare.take(positions)
        groups = plan.folds[0][positions]
        if len(keys) == 1:
            groups = make_generator(0).permutation(np.arange(len(positions)) % _N_GROUPS)
        return cls(plan, keys, queries, measure, measure.prepare(queries), positions, groups)

    @property
    def cut_off(self) -> int | None:
        """The number of first ranks that the measure looks at; None for all."""
        return self.measure.cut_off

    def prepare_measure(self, queries: Queries) -> PreparedMeasure:
        """Return the measure prepared for other documents of the same queries."""
        return self.measure.prepare(queries)

    @property
    def n_repeats(self) -> int:
        """The number of partitions that the folds are of."""
        return 1 + max(key.repeat for key in self.keys)

    def find_positions(self, key: FoldKey) -> Ints:
        """Return which of the held-out queries are those of a fold, as their positions here."""
        return np.searchsorted(self.positions, self.plan.find_held_out(key))

    def find_rows(self, key: FoldKey) -> Ints:
        """Return the rows of the documents of a fold."""
        return np.flatnonzero(np.repeat(self.find_own(key), self.queries.sizes))

    def find_own(self, key: FoldKey) -> NDArray[np.bool_]:
        """Return for each held-out query whether it is of a fold."""
        own = np.zeros(len(self.queries), dtype=bool)
        own[self.find_positions(key)] = True
        return own

    def list_parts(self, key: FoldKey) -> list[NDArray[np.bool_]]:
        """Return the parts of a fold that are scored by a variant chosen on other queries, each as a mask of queries.

        The fold is one part, unless it is the only one.
        """
        return (
            [self.groups == group for group in np.unique(self.groups)] if len(self.keys) == 1 else [self.find_own(key)]
        )


@dataclass(frozen=True, slots=True, eq=False)
class FittedMember:
    """A member of a blend after cross-fitting: a model for each fold, and scores of documents that it did not see.

    Parameters
    ----------
    name : str
        The name of the member.
    scorers : tuple of Scorer
        The scorer of each fold, in the variant that is best on the queries of the other folds, if there are any.
    factors : array of shape (n_folds,)
        The factor of each scorer, which makes the deviation of its scores 1; 0 where all scores of a query are equal.
    scores : array of shape (n_repeats, n_docs)
        The standardised scores of the held-out documents, centred within each query, by partition.
    values : array of shape (n_queries,)
        The measure of each held-out query, ranked by the mean of these scores.
    """

    name: str
    scorers: tuple[Scorer, ...]
    factors: Floats
    scores: Floats
    values: Floats


def build_member(
    cross: CrossFitter, name: str, candidates: Sequence[Candidate], held_out: HeldOutQueries
) -> FittedMember:
    """Choose the variant of each fold among those of all candidates, and score held-out documents.

    The documents of a query are scored by a variant that was chosen on other queries.
    """
    keys, queries = held_out.keys, held_out.queries
    fits = {key: [cross.fits[candidate][key] for candidate in candidates] for key in keys}
    values = _average_values({key: np.concatenate([fit.values for fit in fits[key]]) for key in keys}, held_out)
    scorers, factors = list[Scorer](), np.zeros(len(keys))
    scores = np.zeros((held_out.n_repeats, queries.n_docs))
    for at, key in enumerate(keys):
        variants = [variant for fit in fits[key] for variant in fit.variants]
        part, own, masks = cross.plan.take_held_out(key), held_out.find_rows(key), held_out.list_parts(key)
        chosen = [_choose_variant(values, held_out, ~mask) for mask in masks]
        kept = _choose_variant(values, held_out, ~held_out.find_own(key))
        found = {each: standardise(part.compute_scores(variants[each]), part.indptr) for each in {kept, *chosen}}
        for mask, each in zip(masks, chosen, strict=True):
            rows = np.repeat(mask, queries.sizes)
            scores[key.repeat, rows] = found[each][0][rows[own]]
        scorers.append(variants[kept])
        factors[at] = found[kept][1]
    ranked = held_out.prepared_measure.values(scores.mean(axis=0), Serial())
    return FittedMember(name, tuple(scorers), factors, scores, ranked)


def _average_values(values: dict[FoldKey, Floats], held_out: HeldOutQueries) -> Floats:
    """Return the measure of each variant on each held-out query, averaged over the partitions."""
    n_variants = len(next(iter(values.values())))
    total = np.zeros((n_variants, len(held_out.queries)))
    for key, found in values.items():
        total[:, held_out.find_positions(key)] += found / held_out.n_repeats
    return total


def _choose_variant(values: Floats, held_out: HeldOutQueries, others: NDArray[np.bool_]) -> int:
    """Return the variant that is best on the other queries, or on all if there are no others."""
    if len(values) == 1:
        return 0
    others = others if others.any() else ~others
    weight = held_out.queries.query_weight[others]
    return int(np.argmax([np.nan_to_num(weighted_mean(row[others], weight)) for row in values]))
