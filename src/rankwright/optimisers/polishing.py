"""Polishing: exact line searches on the weights of columns, with validation queries to choose the step to keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.optimisers.ascent import (
    AscentStep,
    ClimbRules,
    Perturbation,
    climb_cyclic,
    climb_with_perturbations,
    record_climb,
)
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.rounds import Evaluator, RoundRecorder


class PolishedWeights(NamedTuple):
    """The weights after polishing, and the measure before and after it on training and validation queries."""

    weights: Floats
    before: float
    after: float
    valid_before: float | None
    valid_after: float | None
    history: list[dict[str, Any]]  # the start, and every accepted step: round, column, weight, train, valid
    growth: float  # of the range of a query's scores, as a factor

    @property
    def level(self) -> Floats:
        """The weights divided by a power of two, so that scores keep about their size; no ranking changes."""
        return self.weights * 2.0 ** -round(float(np.log2(self.growth)))


def polish_weights(
    train: Landscape,
    valid: Landscape | None,
    start: Floats,
    rules: ClimbRules,
    rng: np.random.Generator,
    perturbation: Perturbation | None = None,
) -> PolishedWeights:
    """Improve weights by climbing the training measure; with validation queries, keep the step that is best on them.

    The training measure never decreases along the climb. On the validation queries the result is never worse than the
    start. In the history, ``kept`` marks the step whose weights are returned.
    """
    here, recorder = train.evaluate(start), RoundRecorder[Floats]()
    perturbation = perturbation or Perturbation(0, 0.0, np.zeros(len(start)))
    climb = climb_with_perturbations(train, here, rules, rng, climb_cyclic, perturbation)
    record_climb(here, _report_rounds(climb, rules.max_rounds), valid, recorder, _describe_step)
    evaluator = Evaluator(train, valid)
    before, after = evaluator(start), evaluator(recorder.model)
    if after.get("valid", after["train"]) < before.get("valid", before["train"]):
        # the gain was a rounding error of scores that are updated step by step
        recorder.kept, recorder.n_kept, after = start, 1, before
    best = recorder.model
    spread = train.evaluate(best).spread
    growth = spread / here.spread if spread > 0.0 and here.spread > 0.0 else 1.0
    valids = before.get("valid"), after.get("valid")
    return PolishedWeights(best, before["train"], after["train"], *valids, recorder.finish(), growth)


def _report_rounds(climb: Iterator[list[AscentStep]], n_rounds: int) -> Iterator[list[AscentStep]]:
    """Yield the steps of each round of a climb, and report how many rounds are done to the progress listener."""
    for steps in climb:
        progress.report("rounds of polishing", min(steps[-1].round, n_rounds - 1), n_rounds)
        yield steps
    progress.report("rounds of polishing", n_rounds, n_rounds)


def _describe_step(step: AscentStep) -> dict[str, Any]:
    """Return the row of a step in the training history; the row of the start has the measure only."""
    row: dict[str, Any] = {} if step.round == 0 else {"round": step.round}
    if isinstance(step.direction, int):
        row |= {"column": step.direction, "weight": float(step.coef[step.direction])}
    return row | {"train": step.value}
