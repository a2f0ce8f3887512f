"""Blend: many rankers as one, with exact weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, final

from rankwright.basics import progress
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import Model
from rankwright.optimisers.blend_weights import WEIGHT_RULES, WeightRule, fit_with_strength
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.base import FitResult, Ranker
from rankwright.rankers.blend.blend_problem import BlendProblem
from rankwright.rankers.blend.blending_ranker import FIT_SHARE, BlendingRanker, find_weights, pool_queries
from rankwright.rankers.blend.candidates import (
    Candidate,
    adapt_to_blend,
    check_takes_doc_weight,
    name_member_in_errors,
    takes_doc_weight,
)
from rankwright.rankers.blend.cross_fitting import CrossFitter, FitTask, HeldOutQueries, build_member
from rankwright.rankers.blend.fold_plan import FoldPlan, estimate_fold_memory
from rankwright.rankers.blend.member_checks import (
    check_member_sets,
    explain_not_distributed,
    takes_missing,
    warn_of_failures,
    warn_of_fits,
)
from rankwright.rankers.blend.member_names import name_members
from rankwright.rankers.blend.portfolio import list_default_candidates
from rankwright.rankers.blend.racing import group_by_member
from rankwright.rankers.fit_memory import DataSize, estimate_shared
from rankwright.rankers.input_checks import check_among, check_strength, check_whole
from rankwright.rankers.trees.mart import MART
from rankwright.runtime.backends import Backend, count_fits, resolve


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Blend(BlendingRanker):
    """Blend: a weighted sum of rankers, whose weights maximise the measure on queries that they were not trained on.

    Every member is fitted once for each fold, without the queries of the fold, and scores these. The scores are divided
    by their standard deviation. Exact line searches then find nonnegative weights of the members that maximise
    the measure of the held-out queries, less a penalty on the distance from equal weights. The model is the weighted
    mean of all fitted models, merged into one scorer: prediction needs no statistics of a query.

    Parameters
    ----------
    rankers : "default" or list
        The members: rankers, regressors of scikit-learn or of its interface, or fitted models (``rw.load``,
        ``rw.import_model``), which are not fitted again. A member may be a pair of a name and one of these. Members
        whose ``measure`` is the default one are trained on the blend's. "default" is a portfolio of linear models,
        stumps and trees, without those that the data do not allow.
    n_repeats : int
        How often the queries are partitioned into folds. Each member is fitted ``n_folds * n_repeats`` times. With 2
        or more, ``estimate_`` includes the gain from averaging models.
    weights : "exact", "equal", "greedy" or "stacking"
        How the weights are found on held-out queries: by exact line searches with shrinkage to equal weights, not at
        all, by greedy selection with replacement, or by a nonnegative regression of gains (stacking).
    shrinkage : "auto" or float
        How strongly ``weights="exact"`` are drawn to equal weights: ``shrinkage / n * sum of (n w - n p)^2`` is
        subtracted from the measure. The prior p is 1/n for the n members that are not significantly below the best
        one, and 0 for the others. "auto" takes the strongest shrinkage that is not below the best one by more than a
        standard error in cross-validation over queries.

    Notes
    -----
    Validation queries join the training queries: every query is held out once, so that none needs to be set aside.
    A boosted member has the number of rounds that is best on the queries of the other folds. Where there are no two
    queries to learn from, none is held out: members have equal weights, and ``estimate_`` is NaN.

    Examples
    --------
    >>> from rankwright import MART, Regression, make_queries
    >>> queries = make_queries(40, random_state=0)
    >>> blend = Blend(rankers=[Regression(), MART(num_leaves=4, n_estimators=20)], n_folds=3).fit(queries)
    >>> [row["member"] for row in blend.members_]
    ['regression', 'mart']
    """

    rankers: Any = "default"
    n_repeats: int = 1
    weights: str = "exact"
    shrinkage: Any = "auto"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also the members by name, and theirs as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, member in self._given_members(is_checked=False):
                params[name] = member
                if hasattr(member, "get_params"):
                    params |= {f"{name}__{key}": value for key, value in member.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, members by name, or parameters of members as ``name__parameter``; return the blend."""
        own, former = self.parameter_names(), self.rankers
        self.rankers = params.pop("rankers", former)
        members = dict(self._given_members(is_checked=False))
        of_members = {key: params.pop(key) for key in list(params) if key.partition("__")[0] in members}
        try:
            self._check_names(key for key in params if key.partition("__")[0] not in own)
        except InputError:
            self.rankers = former
            raise
        for key, value in sorted(of_members.items(), key=lambda item: "__" in item[0]):  # members come first
            name, _, rest = key.partition("__")
            if not rest:
                members[name] = value
                self.rankers = list(members.items())
            elif isinstance(members[name], Model):
                raise InputError(f"{key}: the member {name} is a trained model, which has no parameters to set")
            else:
                members[name].set_params(**{rest: value})
        return super().set_params(**params) if params else self

    def _given_members(self, is_checked: bool = True) -> list[tuple[str, Any]]:
        """Return the members with their names; none for "default", and for a wrong value unless it is checked."""
        if isinstance(self.rankers, str):
            return []
        try:
            return name_members(self.rankers, self.parameter_names())
        except InputError:
            if is_checked:
                raise
            return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [member for _, member in self._given_members(is_checked=False)]
        tags.input_tags.allow_nan = all(map(takes_missing, members))
        return tags

    def takes_doc_weight(self, measure: Measure) -> bool:
        """Return whether every member that is fitted takes document weights; "default" has only such ones."""
        members = [member for _, member in self._given_members() if not isinstance(member, Model)]
        return all(
            member.takes_doc_weight(measure) if isinstance(member, Ranker) else takes_doc_weight(member)
            for member in members
        )

    def _explain_not_distributed(self) -> str | None:
        found = ((name, explain_not_distributed(member)) for name, member in self._given_members())
        return next((f"of the member {name}, {why}" for name, why in found if why is not None), None)

    def _check_sets(self, train: Queries, valid: Queries | None) -> None:
        super()._check_sets(train, valid)
        for name, member in self._given_members():
            with name_member_in_errors(name):
                check_member_sets(member, train, valid)

    def _check_doc_weight(self, train: Queries, measure: Measure) -> None:
        for name, member in self._given_members():
            with name_member_in_errors(name):
                if isinstance(member, Ranker):
                    member._check_doc_weight(train, measure)
                elif not isinstance(member, Model) and train.doc_weight is not None:
                    check_takes_doc_weight(member)
        super()._check_doc_weight(train, measure)

    def _more_memory(self, size: DataSize) -> float:
        members = [member for _, member in self._given_members() if isinstance(member, Ranker)]
        needs = [member.estimate_memory(*size) for member in members or [MART()]]
        n_fits = count_fits(resolve(self.backend), size.n_docs)
        parts = estimate_fold_memory(size, self.n_folds * self.n_repeats, n_fits)
        return parts + n_fits * max(needs, default=0) + estimate_shared(size)

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        yield from super()._find_ineffective(measure, valid)
        if self.weights != "exact":
            yield "shrinkage", f"weights={self.weights!r} have no shrinkage to equal weights"

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        check_whole("n_folds", self.n_folds, least=2)
        check_whole("n_repeats", self.n_repeats, least=1)
        check_among("weights", self.weights, tuple(WEIGHT_RULES))
        rule = self._choose_rule()
        if isinstance(self.rankers, str):
            check_among("rankers", self.rankers, ("default",))
        given = {} if isinstance(self.rankers, str) else self._list_members(measure)
        deadline, rng = Deadline(self.max_seconds), make_generator(self.random_state)
        pool = pool_queries(train, valid, backend)
        members = given or group_by_member(list_default_candidates(pool, measure))
        plan = FoldPlan.draw(pool, int(self.n_folds), int(self.n_repeats), rng, measure)
        cross = CrossFitter(plan, measure.for_training(), backend, leaves_out_failures=not given)
        fitting = deadline.shorten(FIT_SHARE)
        problem = _cross_fit(cross, members, fitting, is_cut=self.weights != "stacking")
        warn_of_fits(cross, members, is_given=bool(given), is_complete=not fitting.has_passed)
        warn_of_failures(cross, {}, "Blend")
        weights = find_weights(problem.scores, rule, deadline)
        scorer, history = self._finish(problem, weights, (train, valid), measure, deadline)
        left_out = [name for name in members if name not in {each.name for each in problem.members}]
        why = deadline.explain(fitting.has_passed)
        if why is not None and left_out:
            why += f", as these members were left out: {', '.join(left_out)}"
        return FitResult(scorer, history, why, "no member ranks any document above another")

    def _choose_rule(self) -> WeightRule:
        """Return the function that finds the weights."""
        if self.weights != "exact" or (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            return WEIGHT_RULES[self.weights]
        return partial(fit_with_strength, shrinkage=check_strength("shrinkage", self.shrinkage))

    def _list_members(self, measure: Measure) -> Mapping[str, list[Candidate]]:
        """Return the candidates of the given members, one each."""
        named = self._given_members()
        if not named:
            raise InputError("rankers is empty; expected at least one ranker, or 'default'")
        found = {}
        for name, member in named:
            with name_member_in_errors(name):
                found[name] = [Candidate(name, adapt_to_blend(member, measure))]
        return found


def _cross_fit(
    cross: CrossFitter, members: Mapping[str, Sequence[Candidate]], deadline: Deadline, is_cut: bool
) -> BlendProblem:
    """Fit every candidate for every fold, and return the members that were fitted before the deadline."""
    plan = cross.plan
    keys = plan.list_keys()
    tasks = [FitTask(candidate, key) for candidates in members.values() for candidate in candidates for key in keys]
    done = 0

    def report(task: FitTask, fit: Any) -> None:
        nonlocal done
        done += 1
        progress.report("cross-fitting", done, len(tasks))

    cross.run(tasks, deadline, report)
    choices = [plan.list_keys(n) for n in range(len(plan.folds), 0, -1)]
    if not cross.fits:
        raise InputError(f"no member could be fitted: {next(iter(cross.failures.values()))}")
    for keys in [*choices, cross.find_most_fitted_fold()]:
        complete = {
            name: [each for each in candidates if cross.has_all(each, keys)] for name, candidates in members.items()
        }
        if any(complete.values()):
            break
    held_out = HeldOutQueries.of(plan, keys, cross.measure)
    fitted = [build_member(cross, name, found, held_out) for name, found in complete.items() if found]
    return BlendProblem.of(fitted, held_out, cross.backend, is_cut)
