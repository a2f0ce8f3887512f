"""Bases of rankers that add up weak rankers: their parameters, the loop, and continuing a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import Model, check_features
from rankwright.models.model_files import load
from rankwright.optimisers.boosting_loop import AdditiveModel, boost
from rankwright.optimisers.rounds import RoundRecorder
from rankwright.rankers.common_parameters import IterativeRanker, ScaledRanker
from rankwright.rankers.input_checks import check_among, check_whole

W = TypeVar("W")


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveRanker(ScaledRanker, IterativeRanker):
    """A ranker whose scores are a sum of weak rankers, added one at a time; it can continue a saved model.

    Parameters
    ----------
    n_estimators : int
        The largest number of weak rankers, those of an earlier model included.
    warm_start : bool
        Whether to continue after the weak rankers of the last fit. On the same data the model is that of one long fit,
        to the bit.
    init_model : path, optional
        A saved model whose weak rankers the first fit continues after.
    """

    n_estimators: int
    warm_start: bool = False
    init_model: str | os.PathLike[str] | None = None

    @property
    def is_stagewise(self) -> bool:
        """Whether the first weak rankers are the model that fewer rounds would have made."""
        return True

    def _check_additive(self) -> None:
        """Raise InputError if one of these parameters is wrong."""
        check_whole("n_estimators", self.n_estimators, least=1)
        check_among("warm_start", self.warm_start, (True, False))
        if not isinstance(self.init_model, str | os.PathLike | None):
            raise InputError(f"init_model={quote(self.init_model)}; expected the path of a saved model")

    def _last_model(self) -> Model | None:
        """Return the model of the last fit if ``warm_start`` continues it."""
        return getattr(self, "model_", None) if self.warm_start else None

    def _check_model(self, model: Model, train: Queries) -> Model:
        """Return the model to continue; raise InputError if it does not fit the training queries or the scaling."""
        check_features(train, model.n_features, model.features, "the model of init_model was trained on")
        train.with_categories(model.categories, "the model of init_model was trained on")
        if model.params.get("scale") != self.scale:
            scale = model.params.get("scale")
            raise InputError(f"init_model: a model with scale={scale!r}; this ranker has {self.scale!r}")
        return model


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingRanker(AdditiveRanker):
    """A ranker that boosts single features or threshold stumps; its history suffices to continue a model."""

    has_thresholds: ClassVar[bool] = True  # whether weak rankers are thresholds of features

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if self.has_thresholds and self.scale == "standard":
            yield "scale", "thresholds depend on the order of a feature's values, which only scale='query' changes"

    def _boost(
        self,
        stages: AdditiveModel[W],
        restore: Callable[[Mapping[str, Any]], W],
        train: Queries,
        recorder: RoundRecorder[None],
    ) -> None:
        """Run the loop of boosting; ``restore`` makes a weak ranker from the row of its round in a history."""
        n_estimators, earlier = int(self.n_estimators), self._earlier(train)
        try:
            done = [] if earlier is None else [restore(record) for record in earlier.history[:n_estimators]]
        except InputError as error:
            raise InputError(f"init_model: the history of the model lacks its rounds: {error}") from None
        boost(stages, n_estimators, recorder, done)

    def _earlier(self, train: Queries) -> Model | None:
        """Return the model to continue."""
        model = self._last_model()
        if model is None and self.init_model is not None:
            model = load(self.init_model)
        if model is None:
            return None
        if model.ranker != type(self).__name__:
            raise InputError(f"init_model: a model of {model.ranker}; expected one of {type(self).__name__}")
        return self._check_model(model, train)


def read_value(record: Mapping[str, Any], name: str, kind: type, least: float, most: float) -> Any:
    """Return one value from a round's row of a history; raise InputError if its type or range is wrong."""
    value: Any = record.get(name)
    if type(value) is int and kind is float:
        value = float(value) if abs(value) <= most else value
    right = type(value) is kind
    if not right or not least <= value <= most:
        raise InputError(f"{name} is {quote(value)} in a round")
    return value
