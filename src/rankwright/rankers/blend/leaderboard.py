"""The leaderboard of an automatic search: how every candidate did, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.measures import weighted_mean
from rankwright.rankers.blend.blend_problem import BlendProblem, MeanEstimate
from rankwright.rankers.blend.candidates import Candidate
from rankwright.rankers.blend.cross_fitting import CrossFitter


def list_leaderboard(
    cross: CrossFitter,
    problem: BlendProblem,
    members: Mapping[str, Sequence[Candidate]],
    weights: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return a row for each candidate, those of the members of highest weight first.

    Parameters
    ----------
    cross : CrossFitter
        The fits of all candidates.
    problem : BlendProblem
        The members of the blend.
    members : mapping of str to sequence of Candidate
        The candidates among which the variants of each member were chosen.
    weights : sequence of mapping
        The members with their weights.
    """
    of_member = {row["member"]: row["weight"] for row in weights}
    fitted = {member.name: member for member in problem.members}
    rows = []
    for candidate, fits in cross.fits.items():
        share = 0.0
        if candidate.name in fitted and candidate in members.get(candidate.name, ()):
            variants = {id(scorer) for fit in fits.values() for scorer in fit.variants}
            share = float(np.mean([id(scorer) in variants for scorer in fitted[candidate.name].scorers]))
        rows.append(
            {
                "member": candidate.name,
                "candidate": candidate.describe(),
                "n_fits": len(fits),
                **_estimate_candidate(cross, candidate)._asdict(),
                "seconds": round(sum(fit.seconds for fit in fits.values()), 3),
                "weight": of_member.get(candidate.name, 0.0) * share,
            }
        )
    return sorted(rows, key=lambda row: (-row["weight"], -row["mean"]))


def _estimate_candidate(cross: CrossFitter, candidate: Candidate) -> MeanEstimate:
    """Return the measure of a candidate's best variant on the queries that its fits held out, with its interval."""
    if not cross.plan.has_held_out:
        return MeanEstimate(float("nan"), float("nan"), float("nan"))
    weight = cross.plan.queries.query_weight
    found: list[tuple[Any, Any]] = []
    for key, fit in cross.fits[candidate].items():
        if key.repeat == min(each.repeat for each in cross.fits[candidate]):
            found.append((fit.values, weight[cross.plan.find_held_out(key)]))
    values = np.concatenate([each for each, _ in found], axis=1)
    weights = np.concatenate([each for _, each in found])
    best = int(np.argmax([np.nan_to_num(weighted_mean(row, weights)) for row in values]))
    return MeanEstimate.of(values[best], weights).cut_to_range(cross.measure)
