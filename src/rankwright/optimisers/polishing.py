"""Polishing: exact weights for columns that are already there, and a guard against what others do not confirm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.optimisers.ascent import AscentStep, ClimbRules, Perturbation, climb_cyclic, climb_with_perturbations
from rankwright.optimisers.landscape import Landscape, LandscapePoint


class PolishedWeights(NamedTuple):
    """Weights, and what they gained: on the training queries, and on validation queries if there are any."""

    weights: Floats
    before: float
    after: float
    valid_before: float | None
    valid_after: float | None
    history: list[dict[str, Any]]  # the start, and every accepted step: round, column, weight, train, valid
    growth: float  # of the range of a query's scores

    @property
    def level(self) -> Floats:
        """The weights divided by a power of two, so that scores are of about the size they had: no ranking changes."""
        return self.weights * 2.0 ** -round(float(np.log2(self.growth)))


def polish_weights(
    train: Landscape,
    held_out: Landscape | None,
    start: Floats,
    rules: ClimbRules,
    rng: np.random.Generator,
    perturbation: Perturbation | None = None,
) -> PolishedWeights:
    """Climb the training measure from these weights; with validation queries, keep the step that is best on them.

    So the training measure of the climb never decreases, and the weights are never worse on the validation queries than
    those it began with. In the history, ``kept`` marks the step whose weights are returned.
    """
    here = train.at(start)
    valid = None if held_out is None else held_out.at(start)
    history = [_record(None, here.value, valid)]
    best, kept, decisive = start, 0, here.value if valid is None else valid.value
    perturbation = perturbation or Perturbation(0, 0.0, np.zeros(len(start)))
    for steps in climb_with_perturbations(train, here, rules, rng, climb_cyclic, perturbation):
        progress.report("rounds of polishing", min(steps[-1].round, rules.max_rounds - 1), rules.max_rounds)
        for step in steps:
            if held_out is not None and valid is not None:
                valid = held_out.step(valid, step.direction, step.t)
            history.append(_record(step, step.value, valid))
            reached = step.value if valid is None else valid.value
            if reached > decisive:
                best, kept, decisive = step.coef, len(history) - 1, reached
    progress.report("rounds of polishing", rules.max_rounds, rules.max_rounds)
    before, after = _judged(train, held_out, start), _judged(train, held_out, best)
    if _decisive(after) < _decisive(before):  # that it was better was rounding, which scores anew do not have
        best, kept, after = start, 0, before
    history[kept]["kept"] = True
    spread = train.at(best).spread
    growth = spread / here.spread if spread > 0.0 and here.spread > 0.0 else 1.0
    return PolishedWeights(best, before[0], after[0], before[1], after[1], history, growth)


def _judged(train: Landscape, held_out: Landscape | None, coef: Floats) -> tuple[float, float | None]:
    """The measure on the training queries, and on the validation queries if there are any."""
    return train.at(coef).value, None if held_out is None else held_out.at(coef).value


def _decisive(judged: tuple[float, float | None]) -> float:
    train, valid = judged
    return train if valid is None else valid


def _record(step: AscentStep | None, train: float, valid: LandscapePoint | None) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if step is not None:
        record["round"] = step.round
        if isinstance(step.direction, int):
            record |= {"column": step.direction, "weight": float(step.coef[step.direction])}
    return record | {"train": train} | ({} if valid is None else {"valid": valid.value})
