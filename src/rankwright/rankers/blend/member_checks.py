"""Checks of the members of a blend: whether they can take the data, and what went wrong in their fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.frozen import FrozenEstimator

from rankwright.basics.errors import (
    CollectedWarning,
    DegenerateModelWarning,
    FailedCandidateWarning,
    FixedModelWarning,
    InputError,
    warn,
)
from rankwright.data.queries import Queries
from rankwright.models.model import Model, check_complete, check_features
from rankwright.rankers.base import Ranker
from rankwright.rankers.blend.candidates import Candidate, says_allow_nan
from rankwright.rankers.blend.cross_fitting import CrossFitter


def check_member_sets(member: Any, train: Queries, valid: Queries | None) -> None:
    """Raise InputError if a member cannot take the documents: for missing values, categories or other features."""
    if isinstance(member, Ranker):
        member._check_sets(train, valid)
    elif isinstance(member, Model):
        check_features(train, member.n_features, member.features, "the model was trained on")
        if member.categories != train.categories:
            raise InputError(
                "the model was trained on other categories of features; a blend takes models of the same categories"
            )
        for part in (train, valid):
            if part is not None and not member.scorer.allow_nan:
                check_complete(part, "the documents", f"this {member.ranker} model")
    elif train.categories is not None:
        raise InputError(
            f"a {type(member).__name__} takes numbers only, and some features have categories: leave such features "
            "out, or use rankers that take categories, such as MART"
        )


def explain_not_distributed(member: Any) -> str | None:
    """Return why a member needs the features in the memory of this machine; None if they may be on a cluster."""
    if isinstance(member, Model):
        return None
    return (
        member._explain_not_distributed()
        if isinstance(member, Ranker)
        else f"a {type(member).__name__} is fitted to arrays"
    )


def takes_missing(member: Any) -> bool:
    """Return whether a member takes documents with missing features."""
    if isinstance(member, Model):
        return member.scorer.allow_nan
    return says_allow_nan(member)


def warn_of_fits(
    cross: CrossFitter, members: Mapping[str, Sequence[Candidate]], *, is_given: bool, is_complete: bool
) -> None:
    """Warn once for each member and kind of trouble in its fits, and for models that were trained before.

    Parameters
    ----------
    cross : CrossFitter
        The fits.
    members : mapping of str to sequence of Candidate
        The candidates of each member.
    is_given : bool
        Whether the user chose the members; of a portfolio, only members that learned nothing are worth a warning.
    is_complete : bool
        Whether there was time for all fits; otherwise that they were cut short is known, and not worth a warning.
    """
    fits = {name: cross.list_fits(candidates) for name, candidates in members.items()}
    nothing = {name for name, own in fits.items() if own and all(map(_learned_nothing, own))}
    for name, own in fits.items():
        found = [warning for fit in own for warning in fit.warnings]
        if name in nothing and len(nothing) < len(fits):  # if it is all of them, the blend itself warns
            message = next(each.message for each in found if each.category is DegenerateModelWarning)
            warn(f"the member {name} learned no ranking in any fold: {message}", DegenerateModelWarning)
        if is_given and is_complete:
            _warn_once_each(name, [each for each in found if each.category is not DegenerateModelWarning], len(own))
        if any(_was_trained_before(candidate.estimator) for candidate in members[name]):
            warn(
                f"the member {name} was trained before: if it has seen these queries, its weight and the estimate of "
                "the blend are too high. Pass an unfitted ranker, or queries that it has not seen",
                FixedModelWarning,
            )


def warn_of_failures(cross: CrossFitter, members: Mapping[str, Sequence[Candidate]], ranker: str) -> None:
    """Warn of each candidate that a ranker left out because its fit failed."""
    used = {candidate for candidates in members.values() for candidate in candidates}
    for candidate, error in cross.failures.items():
        if candidate not in used:
            warn(f"{ranker} left out {candidate.describe()}, whose fit failed: {error}", FailedCandidateWarning)


def _was_trained_before(estimator: Any) -> bool:
    """Return whether an estimator has seen queries that are unknown here: a model, or what continues or wraps one."""
    is_continued = getattr(estimator, "init_model", None) is not None
    return isinstance(estimator, (Model, FrozenEstimator)) or is_continued


def _learned_nothing(fit: Any) -> bool:
    """Return whether all variants of a fit rank no document above another."""
    found = sum(each.category is DegenerateModelWarning for each in fit.warnings)
    return bool(found) and (found >= len(fit.variants) or len(fit.warnings) == 1)


def _warn_once_each(name: str, found: Sequence[CollectedWarning], n_fits: int) -> None:
    """Issue the first warning of each category that the fits of a member issued, and say how many did."""
    counts = Counter(each.category for each in found)
    for category, count in counts.items():
        first = next(each.message for each in found if each.category is category)
        warn(f"the member {name}, in {min(count, n_fits)} of {n_fits} fits: {first}", category)
