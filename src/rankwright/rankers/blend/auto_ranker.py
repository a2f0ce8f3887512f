"""AutoRanker: the best blend that can be found in a given time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np

from rankwright.basics import progress
from rankwright.basics.errors import IneffectiveParameterWarning, InputError, InterruptedFitWarning, warn
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.blend_weights import WEIGHT_RULES, WeightRule
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.base import FitResult
from rankwright.rankers.blend.blend_problem import BlendProblem
from rankwright.rankers.blend.blending_ranker import FIT_SHARE, BlendingRanker, find_weights, pool_queries
from rankwright.rankers.blend.candidates import Candidate, FoldFit
from rankwright.rankers.blend.cross_fitting import CrossFitter, FitTask, HeldOutQueries, build_member
from rankwright.rankers.blend.fold_plan import FoldKey, FoldPlan, estimate_fold_memory
from rankwright.rankers.blend.leaderboard import list_leaderboard
from rankwright.rankers.blend.member_checks import warn_of_failures
from rankwright.rankers.blend.portfolio import FAMILIES, check_families, list_auto_candidates
from rankwright.rankers.blend.racing import FIRST, Race, group_by_member
from rankwright.rankers.blend.serving_budget import check_budget, choose_within_budget
from rankwright.rankers.fit_memory import DataSize, estimate_shared
from rankwright.rankers.input_checks import check_number, check_whole, is_changed
from rankwright.rankers.trees.mart import MART
from rankwright.runtime.backends import Backend, count_fits, resolve

FIT_DONE = "fitting"  # begins the report of progress after a fit
_LARGE = 200_000  # documents from which on one fold is held out, in place of cross-fitting
_FEW = 500  # queries up to which all folds are held out even so: a tenth of them would say little
_LARGE_FOLDS = 10  # of which one is held out
_MANY = 1_000  # queries from which on they are partitioned once only: the mean of ten models gains little over five
_LARGE_FIT_SHARE = 0.95  # of the time is for fits where one fold is held out: weights are then found on few documents
_AFTER_INTERRUPT = 10.0  # seconds at the most for the weights, once the user has ended the search
_LEAST_MEMBERS = 2  # with fewer complete ones, all candidates fitted for the first fold are blended


@final
@dataclass(kw_only=True, eq=False, repr=False)
class AutoRanker(BlendingRanker):
    """AutoRanker: the best blend for the data at hand, found within a time limit.

    Candidates from a portfolio of linear models, stumps and trees are fitted, those first that gain the most per second
    of fitting. A fit *for* a fold is made without the queries of the fold. One setting of each member is fitted for all
    folds, the others for one fold, the best two of each member for all folds, and on small data for those of a second
    partition. Members and weights of the blend are then found as in :class:`Blend`.

    On more than 200,000 documents of more than 500 queries ``n_folds`` has no effect: candidates are compared on a
    sample, and the best are fitted once, without a tenth of the queries, which choose the number of rounds and the
    weights.

    The time limit or Ctrl-C ends the search with the best blend so far; Ctrl-C issues ``InterruptedFitWarning``. Before
    the first fit, and after the search, Ctrl-C raises KeyboardInterrupt.

    Parameters
    ----------
    max_seconds : float, optional
        The time limit of the search, 600 by default; None for as long as the portfolio takes. If the limit cuts the
        search short, the model depends on the speed of the machine; otherwise the same seed gives the same model.
    budget_ms : float, optional
        The time in milliseconds, on this machine and one thread, that the model may take to score 100 documents;
        members are left out until it does, by times that are measured anew in each search.
    families : sequence of "linear", "stumps" and "trees"
        The families of rankers that are tried. A blend of stumps and trees is one sum of trees, and a blend of linear
        models is one linear model; either goes to search engines that do not take a sum of both.

    Attributes
    ----------
    leaderboard_ : list of dict
        A row for each candidate that was fitted (on large data, after the comparison on a sample): ``member``,
        ``candidate`` (its parameters), ``n_fits``, ``mean``, ``low`` and ``high`` (its measure on held-out queries with
        a 95% interval), ``seconds`` (of all its fits), and ``weight`` (its share in the blend).

    Notes
    -----
    Validation queries join the training queries, as in :class:`Blend`.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = AutoRanker(measure="map", max_seconds=20).fit(make_queries(40, random_state=0))  # doctest: +SKIP
    >>> ranker.estimate_  # doctest: +SKIP
    MeanEstimate(mean=0.71, low=0.65, high=0.78)
    """

    max_seconds: float | None = 600.0
    budget_ms: float | None = None
    families: Sequence[str] = FAMILIES

    leaderboard_: list[dict[str, Any]] = field(init=False)

    def takes_doc_weight(self, measure: Measure) -> bool:
        """Return True: candidates that take no document weights are left out."""
        return True

    def _more_memory(self, size: DataSize) -> float:
        n_fits = count_fits(resolve(self.backend), size.n_docs)
        fits = n_fits * MART().estimate_memory(*size)
        return estimate_fold_memory(size, 2 * self.n_folds, n_fits) + fits + estimate_shared(size)

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        check_whole("n_folds", self.n_folds, least=2)
        if self.budget_ms is not None and check_number("budget_ms", self.budget_ms, least=0.0) == 0.0:
            raise InputError("budget_ms=0; expected a number above 0, or None for no limit")
        families = check_families(self.families)
        budget_ms = None if self.budget_ms is None else float(self.budget_ms)
        check_budget(budget_ms, train)
        deadline, rng = Deadline(self.max_seconds), make_generator(self.random_state)
        pool = pool_queries(train, valid, backend)
        is_large = pool.n_docs > _LARGE and len(pool) > _FEW
        if is_large and is_changed(self, "n_folds"):
            warn(
                f"AutoRanker: n_folds={self.n_folds} has no effect on more than {_LARGE:,} documents of more than "
                f"{_FEW} queries, of which one part in {_LARGE_FOLDS} is held out",
                IneffectiveParameterWarning,
            )
        n_repeats = 1 if is_large or len(pool) > _MANY else 2
        plan = FoldPlan.draw(pool, _LARGE_FOLDS if is_large else int(self.n_folds), n_repeats, rng, measure)
        cross = CrossFitter(plan, measure.for_training(), backend, leaves_out_failures=True)
        measure.for_training().prepare(pool).values(np.zeros(pool.n_docs))  # a user's may fail: before hours of fits
        race = self._race(
            cross, list_auto_candidates(pool, measure, families), deadline, is_large and plan.has_held_out
        )
        problem, members = self._collect(race)
        limit = deadline.limit(_AFTER_INTERRUPT) if race.was_interrupted else deadline
        rule: WeightRule = partial(find_weights, rule=WEIGHT_RULES["exact"], deadline=limit)
        if budget_ms is None:
            weights = rule(problem.scores)
        else:
            problem, members, weights = choose_within_budget(problem, members, rule, budget_ms)
        warn_of_failures(race.cross, members, "AutoRanker")
        for other in race.others:
            warn_of_failures(other, {}, "AutoRanker")
        scorer, history = self._finish(problem, weights, (train, valid), measure, limit)
        self.leaderboard_ = list_leaderboard(race.cross, problem, members, self.members_)
        why = None if race.was_interrupted else deadline.explain(race.was_cut)
        if race.cross.plan is not plan:
            n_sampled = f"the models are those of a sample of {race.cross.plan.queries.n_docs:,} documents"
            why = f"no candidate was fitted to all data: {n_sampled}" if why is None else f"{why}; {n_sampled}"
        return FitResult(scorer, history, why, "no candidate ranks any document above another")

    def _race(self, cross: CrossFitter, candidates: Sequence[Candidate], deadline: Deadline, is_large: bool) -> Race:
        """Run the race of the candidates until it is decided, the time is over, or the user interrupts it."""
        done = 0

        def report(task: FitTask, fit: FoldFit | None) -> None:
            nonlocal done
            done += 1
            what = f"{FIT_DONE} {task.candidate.name}" if fit is not None else f"leaving out {task.candidate.name}"
            progress.report(what, done, max(race.n_tasks, done))

        fitting = deadline.shorten(_LARGE_FIT_SHARE if is_large else FIT_SHARE)
        race = Race(cross, candidates, fitting, report)
        try:
            if is_large:
                race.search_large_data()
            else:
                race.search_with_folds()
        except KeyboardInterrupt:
            if not race.cross.fits:
                raise
            race.was_interrupted = True
            warn("AutoRanker was interrupted: the model is the best of what was fitted so far", InterruptedFitWarning)
        return race

    def _collect(self, race: Race) -> tuple[BlendProblem, dict[str, list[Candidate]]]:
        """Return the members that were fitted for as many folds as possible, as a problem of finding weights."""
        cross = race.cross
        if not cross.fits:
            errors = [error for fitter in (cross, *race.others) for error in fitter.failures.values()]
            why = errors[0] if errors else "there was no time"
            raise InputError(f"no candidate could be fitted: {why}. Look at the data with rw.inspect")
        kept = [each for each in race.kept if each in cross.fits and each not in cross.failures] or list(cross.fits)
        for keys in [*(cross.plan.list_keys(n) for n in range(len(cross.plan.folds), 0, -1)), [FIRST]]:
            complete = _list_complete(cross, kept, keys)
            # a second partition counts if all members have it, the first if several have
            wanted = len(group_by_member(kept)) if len(keys) > cross.plan.n_folds else _LEAST_MEMBERS
            if len(group_by_member(complete)) >= min(wanted, len(group_by_member(kept))):
                break
        if not complete:
            keys = cross.find_most_fitted_fold()
            complete = [candidate for candidate in cross.fits if cross.has_all(candidate, keys)]
        members = group_by_member(complete)
        held_out = HeldOutQueries.of(cross.plan, keys, cross.measure)
        fitted = [build_member(cross, name, found, held_out) for name, found in members.items()]
        return BlendProblem.of(fitted, held_out, cross.backend), members


def _list_complete(cross: CrossFitter, kept: Sequence[Candidate], keys: Sequence[FoldKey]) -> list[Candidate]:
    """Return the candidates that have fits for all these folds: of each member those that were kept, or else others."""
    complete = [candidate for candidate in cross.fits if cross.has_all(candidate, keys)]
    chosen = [candidate for candidate in kept if candidate in complete]
    names = {candidate.name for candidate in chosen}
    return chosen + [each for each in complete if each.name not in names and each not in cross.failures]
