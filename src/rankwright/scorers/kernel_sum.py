"""Weighted sums of kernels: the similarities of a document to landmarks."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.kernels.scorers import landmarks as loops
from rankwright.scorers.base import Scorer, check_list, parse_number, parse_numbers

KERNELS = {
    "rbf": loops.RBF,
    "laplacian": loops.LAPLACIAN,
    "poly": loops.POLY,
    "sigmoid": loops.SIGMOID,
    "linear": loops.LINEAR,
}
MAX_DEGREE = 100


class Kernel(NamedTuple):
    """A kernel function and its parameters, as scikit-learn defines them, such as "rbf" with its gamma.

    Not every kernel uses all parameters.

    Parameters
    ----------
    name : str
        "rbf": ``exp(-gamma |x - z|^2)``, "laplacian": ``exp(-gamma |x - z|_1)``, "poly":
        ``(gamma x'z + coef0)^degree``, "sigmoid": ``tanh(gamma x'z + coef0)``, "linear": ``x'z``.
    gamma : float
        The scale of the kernel, from 0 up.
    coef0 : float
        The constant of "poly" and "sigmoid".
    degree : int
        The degree of "poly", from 1 to 100.
    """

    name: str
    gamma: float = 1.0
    coef0: float = 1.0
    degree: int = 3

    def validate(self) -> Kernel:
        """Return the kernel with float parameters, or raise if its name or parameters are invalid."""
        if not isinstance(self.name, str) or self.name not in KERNELS:
            raise InputError(f"kernel {quote(self.name)}; expected one of {', '.join(KERNELS)}")
        if type(self.degree) is not int or not 1 <= self.degree <= MAX_DEGREE:
            raise InputError(f"kernel of degree {quote(self.degree)}; expected a whole number from 1 to {MAX_DEGREE}")
        for name, value, least in (("gamma", self.gamma, 0.0), ("coef0", self.coef0, -math.inf)):
            if type(value) not in (int, float) or not abs(value) <= sys.float_info.max or value < least:
                above = " from 0 up" if least == 0.0 else ""
                raise InputError(f"kernel with {name} {quote(value)}; expected a finite number{above}")
        return Kernel(self.name, float(self.gamma), float(self.coef0), self.degree)

    @property
    def arguments(self) -> tuple[int, float, float, int]:
        """The number of the kernel and its parameters, for ``kernels/scorers/landmarks.py``."""
        return KERNELS[self.name], self.gamma, self.coef0, self.degree


@dataclass(frozen=True, slots=True, eq=False)
class KernelSum(Scorer):
    """A scorer by similarity: a weighted sum of kernels between a scaled document and landmarks.

    The score of x is ``intercept`` + the sum over landmarks z of ``dual`` k((x - mean) factor, z).

    Parameters
    ----------
    kernel : Kernel
        The kernel k.
    mean, factor : array of shape (n_features,)
        The scaling of raw features, which comes first.
    landmarks : array of shape (n_landmarks, n_features)
        Scaled documents.
    dual : array of shape (n_landmarks,)
        The weights of the landmarks.
    intercept : float
        A constant added to every score.

    Examples
    --------
    >>> landmarks = np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> scorer = KernelSum(Kernel("linear"), np.ones(2), np.full(2, 0.5), landmarks, np.ones(2))
    >>> scorer(np.array([[3, 5]], np.float32)).tolist()
    [7.0]
    """

    kind: ClassVar[str] = "kernel"
    kernel: Kernel
    mean: Floats
    factor: Floats
    landmarks: Floats
    dual: Floats
    intercept: float = 0.0
    columns: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", np.ascontiguousarray(self.landmarks.T))

    def __call__(self, X: Floats) -> Floats:
        """Return the sums."""
        if not self.accepts(X.shape[1]):
            raise InputError(f"{X.shape[1]} features; the landmarks have {len(self.mean)}")
        return loops.compute_kernel_scores(
            X, self.mean, self.factor, self.columns, *self.kernel.arguments, self.dual, self.intercept
        )

    def __len__(self) -> int:
        return len(self.dual)

    def accepts(self, n_features: int) -> bool:
        """Return whether landmarks have as many features."""
        return len(self.mean) == n_features

    def to_json(self) -> dict[str, Any]:
        """Return the kernel, the scaling, and a list per landmark."""
        name, gamma, coef0, degree = self.kernel
        return {
            "kernel": name,
            "gamma": gamma,
            "coef0": coef0,
            "degree": degree,
            "mean": self.mean.tolist(),
            "factor": self.factor.tolist(),
            "landmarks": self.landmarks.tolist(),
            "dual": self.dual.tolist(),
            "intercept": self.intercept,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> KernelSum:
        """Read what ``to_json`` wrote."""
        kernel = Kernel(*(values[name] for name in ("kernel", "gamma", "coef0", "degree"))).validate()
        mean, factor, dual = (parse_numbers(values[name]) for name in ("mean", "factor", "dual"))
        rows = [parse_numbers(row) for row in check_list(values["landmarks"])]
        if len(factor) != len(mean) or len(rows) != len(dual) or any(len(row) != len(mean) for row in rows):
            raise InputError("landmarks, weights and scaling that differ in length")
        with np.errstate(over="ignore"):
            if not rows or not np.isfinite(np.abs(dual).sum()):
                raise InputError("no landmarks, or weights that have no finite sum")
        return cls(kernel, mean, factor, np.stack(rows), dual, parse_number(values["intercept"]))
