"""Races: which candidates are fitted for how many folds, and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.measures import weighted_mean
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.blend.candidates import Candidate, FoldFit
from rankwright.rankers.blend.cross_fitting import CrossFitter, FitTask
from rankwright.rankers.blend.fold_plan import FoldKey, FoldPlan

FIRST = FoldKey(0, 0)  # the fold that every candidate is fitted for, if there is time
_KEPT = 2  # candidates of a member that are fitted for all folds
_SCREENING = 0.12  # of the time, at the most, for comparisons on a sample
_SAMPLE = 80_000  # documents of large data that candidates are compared on
_SAMPLE_FOLDS = 2  # of which one is held out: as many queries to compare on as to train on
_NEAR = 0.97  # of the best value on the sample: candidates from there on share the time, at most three of them
_MOST_NEAR = 3
_LONGEST = 0.9  # of the time that is left, for the fits of these

Report = Callable[[FitTask, FoldFit | None], None]


@dataclass(slots=True, eq=False)
class Race:
    """A race of candidates under a time limit: those that do well get more fits.

    Parameters
    ----------
    cross : CrossFitter
        It makes the fits and keeps them.
    candidates : sequence of Candidate
        Those first that gain the most per second of fitting.
    deadline : Deadline
        The end of all fits.
    report : callable
        Called after each fit.
    kept : list of Candidate
        The candidates that were not dropped.
    was_cut : bool
        Whether the time limit changed what was fitted, or for how long.
    was_interrupted : bool
        Whether the user ended the race.
    others : list of CrossFitter
        Those whose fits are not the answer: on large data the one of the sample, or of all data if none succeeded.
    n_tasks : int
        The number of fits that are planned so far.
    """

    cross: CrossFitter
    candidates: Sequence[Candidate]
    deadline: Deadline
    report: Report
    kept: list[Candidate] = field(default_factory=list)
    was_cut: bool = False
    was_interrupted: bool = False
    others: list[CrossFitter] = field(default_factory=list)
    n_tasks: int = 0

    def search_with_folds(self) -> None:
        """Fit the first candidate of every member for all folds, then better ones, then for the other partitions.

        The other candidates of a member are fitted for one fold. The best two of a member there are fitted for all.
        """
        plan = self.cross.plan
        first = [candidates[0] for candidates in group_by_member(self.candidates).values()]
        self.kept = first
        self._run(first, [key for key in plan.list_keys() if key.repeat == 0])
        self._run([each for each in self.candidates if each not in first], [FIRST])
        self.kept = self._choose_kept()
        self._run(self.kept, [key for key in plan.list_keys() if key.repeat == 0])
        for key in (key for key in plan.list_keys() if key.repeat > 0):  # fold by fold: its fits share the bins
            self._run(self.kept, [key])

    def _run(self, candidates: Sequence[Candidate], keys: Sequence[FoldKey]) -> None:
        """Make the fits of candidates for folds that were not made before."""
        fits, failures = self.cross.fits, self.cross.failures
        tasks = [FitTask(candidate, key) for candidate in candidates for key in keys if candidate not in failures]
        new = [task for task in tasks if task.key not in fits.get(task.candidate, {})]
        self.n_tasks += len(new)
        self.cross.run(new, self.deadline, self.report)
        self.was_cut |= self.deadline.has_passed

    def _choose_kept(self) -> list[Candidate]:
        """Return the best two candidates of each member on the first fold, in their order."""
        fits, failures = self.cross.fits, self.cross.failures
        screened = [each for each in self.candidates if FIRST in fits.get(each, {}) and each not in failures]
        chosen = {
            each
            for candidates in group_by_member(screened).values()
            for each in sorted(candidates, key=lambda one: -self._find_best_mean(self.cross, one))[:_KEPT]
        }
        return [candidate for candidate in screened if candidate in chosen]

    def search_large_data(self) -> None:
        """Compare all candidates on a sample, then fit the best of each member to all queries but those of one fold.

        Under a time limit the best candidate and those near it share most of the time, and candidates are compared by
        what they reach in the rounds that there is time for. If there is time for the sample only, the models are those
        of the sample.
        """
        full = self.cross
        self.cross = sample = self._draw_sample(full)  # its models are the answer until one is fitted to all data
        self.others = [full]
        try:
            self._screen(sample)
        finally:
            self.kept = list(sample.fits)
        if self.deadline() or not sample.fits:
            return
        found, kept = self._list_best(sample, full), list[Candidate]()
        n_near = len([entry for entry in found if entry.value >= _NEAR * found[0].value][:_MOST_NEAR])
        self.n_tasks += len(found)
        for place, entry in enumerate(found):
            left = self.deadline.remaining()
            limit = math.inf if left is None else _LONGEST * left / max(n_near - place, 1)
            if entry.is_stagewise or entry.seconds <= limit:
                full.run([FitTask(entry.candidate, FIRST, limit)], self.deadline, self.report, keep_shortened=True)
            else:
                self.was_cut = True
            if entry.candidate in full.fits:
                kept.append(entry.candidate)
                self.cross, self.others, self.kept = full, [sample], kept
        self.was_cut |= self.deadline.has_passed or _has_shortened_fits(full)

    def _draw_sample(self, full: CrossFitter) -> CrossFitter:
        """Return a cross-fitting of a sample of the queries, which has no query of the first fold."""
        plan, rng = full.plan, np.random.default_rng(0)
        order = rng.permutation(np.flatnonzero(plan.folds[0] != FIRST.fold))
        n = int(np.searchsorted(np.cumsum(plan.queries.sizes[order]), _SAMPLE)) + 1
        sample = FoldPlan.draw(plan.queries.take(np.sort(order[:n])), _SAMPLE_FOLDS, 1, rng, full.measure)
        return CrossFitter(sample, full.measure, full.backend, leaves_out_failures=True)

    def _screen(self, sample: CrossFitter) -> None:
        """Fit all candidates for a fold of a sample, in a part of the time."""
        screening = self.deadline.shorten(_SCREENING)
        each = math.inf if screening.max_seconds is None else 2.0 * screening.max_seconds / len(self.candidates)
        tasks = [FitTask(candidate, FIRST, each) for candidate in self.candidates]
        self.n_tasks += len(tasks)
        sample.run(tasks, screening, self.report, keep_shortened=True)
        self.was_cut |= screening.has_passed or _has_shortened_fits(sample)

    def _list_best(self, sample: CrossFitter, full: CrossFitter) -> list[ScreenedCandidate]:
        """Return the best candidate of each member on a sample, the best member first."""
        growth = _count_training_docs(full.plan) / _count_training_docs(sample.plan)
        left = self.deadline.remaining()
        limit = math.inf if left is None else _LONGEST * left / 2
        best: dict[str, ScreenedCandidate] = {}
        for candidate, fits in sample.fits.items():
            entry = self._estimate_on_all_data(sample, candidate, fits[FIRST], growth, limit)
            if candidate.name not in best or entry.value > best[candidate.name].value:
                best[candidate.name] = entry
        return sorted(best.values(), key=lambda entry: -entry.value)

    def _estimate_on_all_data(
        self, sample: CrossFitter, candidate: Candidate, fit: FoldFit, growth: float, limit: float
    ) -> ScreenedCandidate:
        """Return the measure and the seconds that a candidate would reach on all data, in the time that there is."""
        seconds, is_stagewise = fit.seconds * growth, len(fit.variants) > 1 and not candidate.path_values
        n = len(fit.variants)
        if is_stagewise and seconds > limit:
            n = max(1, int(np.searchsorted(_list_shares(fit), limit / seconds, side="right")))
            self.was_cut = True
        return ScreenedCandidate(candidate, self._find_best_mean(sample, candidate, n), seconds, is_stagewise)

    def _find_best_mean(self, cross: CrossFitter, candidate: Candidate, n: int | None = None) -> float:
        """Return the highest mean measure of a candidate's first ``n`` variants on the first fold."""
        weight = cross.plan.queries.query_weight[cross.plan.find_held_out(FIRST)]
        rows = cross.fits[candidate][FIRST].values[:n]
        return max(float(np.nan_to_num(weighted_mean(row, weight))) for row in rows)


class ScreenedCandidate(NamedTuple):
    """A candidate after its fit to a sample: what it would reach on all data, and in what time."""

    candidate: Candidate
    value: float
    seconds: float
    is_stagewise: bool


def _has_shortened_fits(cross: CrossFitter) -> bool:
    """Return whether a limit on the time ended any of the fits."""
    return any(fit.was_cut_short for fits in cross.fits.values() for fit in fits.values())


def _count_training_docs(plan: FoldPlan) -> int:
    """Return the number of documents that a fit for the first fold is trained on."""
    return int(plan.queries.sizes[plan.folds[0] != FIRST.fold].sum()) if plan.has_held_out else plan.queries.n_docs


def _list_shares(fit: FoldFit) -> Floats:
    """Return for each number of rounds its share of all rounds."""
    sizes = np.array([len(variant) for variant in fit.variants], dtype=np.float64)  # type: ignore[arg-type]
    shares: Floats = sizes / sizes.max()
    return shares


def group_by_member(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """Return the candidates of each member, by the name of the member."""
    members: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        members.setdefault(candidate.name, []).append(candidate)
    return members
