"""Bases of rankers: the parameters which many of them share, and fits for several values of one parameter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import IneffectiveParameterWarning, collect_warnings, warn
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.rankers.base import SET_BY_VALIDATION, FitInput, FitResult, Ranker
from rankwright.rankers.fit_result import warn_if_degenerate_or_unconverged
from rankwright.rankers.input_checks import QueriesLike, check_number
from rankwright.rankers.training_watch import Callback, TrainingWatch, check_callbacks, check_verbose
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear


@dataclass(kw_only=True, eq=False, repr=False)
class ScaledRanker(Ranker):
    """A ranker with the parameter ``scale``: how the features are scaled before training.

    Parameters
    ----------
    scale : "standard", "query" or None
        Scaling of the features: to mean 0 and variance 1, to the range 0 to 1 within each query, or none.
    """

    scale: str | None = "standard"


@dataclass(kw_only=True, eq=False, repr=False)
class SeededRanker(Ranker):
    """A ranker with the parameter ``random_state``: the seed of its random numbers.

    Parameters
    ----------
    random_state : int, Generator or None
        The seed of all random numbers; None takes a new one in every fit.
    """

    random_state: int | np.random.Generator | None = 0


@dataclass(kw_only=True, eq=False, repr=False)
class IterativeRanker(Ranker):
    """A ranker that trains in rounds, which can be watched, and ended after any of them.

    Parameters
    ----------
    max_seconds : float, optional
        Stop training after this many seconds and keep what there is, with a warning. The model then depends on the
        speed of the machine.
    callbacks : sequence of callable, optional
        Functions that are called with a ``TrainingRound`` after each round that ``history_`` records. If one returns
        True, training stops, and the model is what it would be with a time limit. They are not saved with the model.
    verbose : int
        0 prints nothing; 1 prints the round, its measure and the time left about once a second, on standard error;
        2 prints every round.
    """

    unsaved: ClassVar[frozenset[str]] = frozenset({"callbacks", "verbose"})

    max_seconds: float | None = None
    callbacks: Sequence[Callback] | None = None
    verbose: int = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without callbacks: they may hold files and connections, and stay in this process."""
        return {**super().__getstate__(), "callbacks": None}

    def _check_common(self) -> None:
        super()._check_common()
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, least=0.0)
        check_callbacks(self.callbacks)
        check_verbose(self.verbose)

    def _make_watch(self, task: FitInput) -> TrainingWatch:
        build = partial(self._build_model, task)
        return TrainingWatch(type(self).__name__, check_callbacks(self.callbacks), check_verbose(self.verbose), build)


@dataclass(kw_only=True, eq=False, repr=False)
class ConvergentRanker(IterativeRanker):
    """A ranker with the parameters ``tol`` and ``max_iter``: it iterates until it converges.

    Parameters
    ----------
    tol : float
        The tolerance of convergence.
    max_iter : int
        The largest number of iterations; a fit that stops there before it converged warns.
    """

    tol: float
    max_iter: int


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModelRanker(ScaledRanker):
    """A ranker with ``coef_`` and ``intercept_``: its scorer is linear, unless parameters ask for another kind.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights of the features as given, not of the scaled ones.
    """

    takes_distributed: ClassVar[bool] = True

    @property
    def coef_(self) -> Floats:
        """The weights of the features as given."""
        return self._linear("coef_").coef

    @property
    def intercept_(self) -> float:
        """The intercept of the scores."""
        return self._linear("intercept_").intercept

    def _linear(self, name: str) -> Linear:
        linear = self.scorer_.linear
        if linear is None:
            raise AttributeError(f"a {self.scorer_.kind} model has no {name}: it is not linear in the features")
        return linear


class PathRanker(Ranker):
    """A ranker whose ``fit_path`` fits several values of one parameter in less time than separate fits."""

    path_parameter: ClassVar[str]

    @abstractmethod
    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        """Train for every value of the parameter; outcomes in the order of the values."""

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        [outcome] = self._fit_path([getattr(self, self.path_parameter)], train, valid, measure, backend)
        return outcome

    def fit_path(
        self,
        values: Sequence[Any],
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        valid: QueriesLike | None = None,
    ) -> list[Self]:
        """Fit copies of this ranker, one for each value of the parameter that ``path_parameter`` names.

        Parameters
        ----------
        values : sequence
            The values, in any order.
        X, y, qid, valid : Queries or arrays
            As in ``fit``; ``valid`` is a ``Queries`` or (X, y, qid).

        Returns
        -------
        list of rankers
            In the order of the values. The ranker itself is not changed. Callbacks are not called.
        """
        values = list(values)
        rankers: list[Self] = [clone(self).set_params(**{self.path_parameter: value}) for value in values]
        if not rankers:
            return []
        first = rankers[0]
        with collect_warnings(issue=True) as shared:
            task = first._prepare_fit(X, y, qid, valid)
            # equal values are solved once, so that they have one answer
            firsts = [next(k for k, other in enumerate(values) if _is_same(other, value)) for value in values]
            different = sorted(set(firsts))
            if getattr(first, "callbacks", None):
                warn(
                    f"{type(first).__name__}: callbacks have no effect in fit_path, which trains for several values "
                    f"at once; call fit for each value of {self.path_parameter}",
                    IneffectiveParameterWarning,
                )
            found = first._fit_path([values[k] for k in different], task.train, task.valid, task.measure, task.backend)
        outcomes = dict(zip(different, found, strict=True))
        for ranker, value, outcome in zip(rankers, values, map(outcomes.__getitem__, firsts), strict=True):
            for name in SET_BY_VALIDATION:
                if hasattr(first, name):
                    setattr(ranker, name, getattr(first, name))
            ranker._store_result(task, outcome)
            with collect_warnings(issue=True) as own:
                ranker.fit_warnings_ = own
                warn_if_degenerate_or_unconverged(
                    outcome, f"{type(ranker).__name__} with {self.path_parameter}={value}", task.train
                )
            own[:0] = shared
        return rankers


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values of a parameter are of one type and equal."""
    return one is other or (type(one) is type(other) and bool(one == other))
