"""What rounds of training are judged by: the measure of a linear scorer on training and validation queries."""

from __future__ import annotations

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.landscape import Landscape
from rankwright.runtime.backends import Backend


class Judge:
    """The mean measure of weights, on the training queries and on the validation queries if there are any."""

    def __init__(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> None:
        self.sets = {"train": Landscape.of(train, measure.for_training(), backend)}
        if valid is not None:
            self.sets["valid"] = Landscape.of(valid, measure, backend)

    def __call__(self, coef: Floats) -> dict[str, float]:
        """By set."""
        return {name: landscape.evaluate(coef).value for name, landscape in self.sets.items()}


class Best:
    """The weights that did best, on validation queries if there are any; the first of equals."""

    def __init__(self) -> None:
        self.coef: Floats | None = None
        self.value = -float("inf")

    def offer(self, coef: Floats, judged: dict[str, float]) -> None:
        """Keep these weights if they are better."""
        value = judged.get("valid", judged["train"])
        if self.coef is None or value > self.value:
            self.coef, self.value = coef, value
