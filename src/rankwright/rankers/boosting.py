"""What all boosting rankers share: the loop, and going on from where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import Model, check_features, load
from rankwright.optimisers.stagewise import Boosted, Stages, boost
from rankwright.rankers.common_parameters import AdditiveRanker
from rankwright.rankers.parameter_checks import check_warm_start, check_whole

W = TypeVar("W")


@dataclass(kw_only=True, eq=False, repr=False)
class Boosting(AdditiveRanker):
    """A ranker that adds weak rankers one at a time.

    With ``warm_start=True`` another fit goes on after the rounds of the last one, and with the path of a saved model
    after those of that model; ``n_estimators`` counts them all. On the same data the model is that of one long fit, to
    the bit.
    """

    has_thresholds: ClassVar[bool] = True  # whether weak rankers are thresholds of features

    def _check_boosting(self) -> None:
        """Check the parameters of every boosted ranker."""
        check_whole("n_estimators", self.n_estimators, least=1)
        check_warm_start(self.warm_start)

    def _ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if self.has_thresholds and getattr(self, "scale", None) == "standard":
            yield "scale", "thresholds depend on the order of a feature's values, which only scale='query' changes"

    def _boost(self, stages: Stages[W], recall: Callable[[Mapping[str, Any]], W], train: Queries) -> Boosted:
        """Run the loop; ``recall`` makes a weak ranker of the record of its round."""
        n_estimators, earlier = int(self.n_estimators), self._earlier(train)
        try:
            done = [] if earlier is None else [recall(record) for record in earlier.history[:n_estimators]]
        except InputError as error:
            raise InputError(f"warm_start: the history of the model does not tell its rounds: {error}") from None
        return boost(stages, n_estimators, done)

    def _earlier(self, train: Queries) -> Model | None:
        """The model to go on from."""
        if isinstance(self.warm_start, bool):
            model: Model | None = getattr(self, "model_", None) if self.warm_start else None
        else:
            model = load(self.warm_start)
        if model is None:
            return None
        name = type(self).__name__
        if model.ranker != name:
            raise InputError(f"warm_start: a model of {model.ranker}; expected one of {name}")
        check_features(train, model.n_features, model.features, "the model of warm_start was trained on")
        scale = getattr(self, "scale", None)
        if model.params.get("scale") != scale:
            raise InputError(f"warm_start: a model with scale={model.params.get('scale')!r}; this ranker has {scale!r}")
        return model


def recalled(record: Mapping[str, Any], name: str, kind: type, least: float, most: float) -> Any:
    """A value of a record of the history, which may have been written by anyone."""
    value: Any = record.get(name)
    if type(value) is int and kind is float:
        value = float(value) if abs(value) <= most else value
    right = type(value) is kind
    if not right or not least <= value <= most:
        raise InputError(f"{name} is {quote(value)} in a round")
    return value
