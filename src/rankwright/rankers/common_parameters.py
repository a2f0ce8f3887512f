"""Bases of rankers that declare and document the parameters which many of them share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.rankers.base import Ranker
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
    """A ranker with the parameter ``max_seconds``: a limit on the time of its iterations.

    Parameters
    ----------
    max_seconds : float, optional
        Stop training after this many seconds and keep what there is, with a warning. The model then depends on the
        speed of the machine.
    """

    max_seconds: float | None = None


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
