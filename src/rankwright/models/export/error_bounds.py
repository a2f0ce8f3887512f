"""Bounds on the rounding errors of a target: how far its score of a row may be from the exact one."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.scorers import KernelSum, Network, Stumps, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.score_parts import ScoreParts

_UNITS = {"float32": 2.0**-24, "float64": 2.0**-53}  # the largest relative error of one rounding
_SMALLEST = {"float32": 2.0**-149, "float64": 2.0**-1074}  # the absolute error of a product that underflows
_ACTIVATION = 8.0  # units by which engines' tanh, erf, exponentials and sigmoids are off, at most
_LIPSCHITZ = {"relu": 1.0, "tanh": 1.0, "sigmoid": 0.25, "silu": 1.1, "gelu": 1.13}


def bound_errors(parts: ScoreParts, X: Floats, precision: str, offset: float = 0.0) -> Floats:
    """Return for each row a bound on the difference between a target's score and ours.

    A sum of n terms, each rounded when it is stored, is off by at most (n + 1) u times the sum of their absolute
    values, in whatever order it is added: u is 2^-24 in float32 and 2^-53 in float64. Networks and kernel sums add
    what their own roundings become on the way to the score.

    Parameters
    ----------
    parts : ScoreParts
        The parts of the score.
    X : array of shape (n_rows, n_features)
        The rows; missing values count as the model takes them.
    precision : {"float32", "float64"}
        The precision of the target.
    offset : float
        A constant that the target adds to the parts.

    Returns
    -------
    array of shape (n_rows,)
        The bounds.

    Examples
    --------
    >>> parts = ScoreParts(1, intercept=1.0, coef=np.array([2.0]))
    >>> bound_errors(parts, np.array([[3.0]], np.float32), "float32") < 1e-5
    array([ True])
    """
    unit = _UNITS[precision]
    values = np.nan_to_num(X.astype(np.float64))
    magnitude, own, count = np.full(len(X), abs(parts.intercept) + abs(offset)), np.zeros(len(X)), 1
    if parts.coef is not None:
        magnitude += np.abs(values) @ np.abs(parts.coef)
        count += len(parts.coef) + 1
    if parts.trees:
        absolute = Forest.from_trees([_take_absolute(tree) for tree in parts.trees], parts.n_features)
        magnitude += Trees(absolute)(X)
        count += len(parts.trees)
    for stumps in parts.stumps:  # a target may add them one by one, or as one step function per feature
        rows = X if stumps.missing is not None else values.astype(np.float32)
        magnitude += Stumps(stumps.feature, stumps.threshold, np.abs(stumps.weight), stumps.missing)(rows)
        count += len(stumps)
    for weight, network in parts.networks:
        size, error = _bound_network(network, values, unit)
        magnitude, own, count = magnitude + abs(weight) * size, own + abs(weight) * error, count + 2
    for weight, kernel_sum in parts.kernel_sums:
        size, error = _bound_kernel_sum(kernel_sum, values, unit)
        magnitude, own, count = magnitude + abs(weight) * size, own + abs(weight) * error, count + 2
    bound = (count + 2) * unit * magnitude + own + count * _SMALLEST[precision]
    return bound if precision == "float32" else 2.0 * bound  # our own score is rounded as well


def _take_absolute(tree: Tree) -> Tree:
    """Return the tree with the absolute values of its leaves."""
    return Tree({**tree.columns, "leaf_value": np.abs(tree.values)}, tree.shrinkage)


def _bound_network(network: Network, X: Floats, unit: float) -> tuple[Floats, Floats]:
    """Return bounds on the absolute scores of a network, and on their errors."""
    scaled, size = _scale(X, network.mean, network.factor)
    error, values = 3.0 * unit * size, scaled  # the difference, the product, or weights that have the factor in them
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        if layer:
            error = _LIPSCHITZ[network.activation] * error + _ACTIVATION * unit * (1.0 + np.abs(values))
            values = _activate(network.activation, values)
            size = np.abs(values)
        absolute = np.abs(weight.astype(np.float64))
        total = size @ absolute + np.abs(bias.astype(np.float64))
        error = error @ absolute + (len(weight) + 3) * unit * total
        values = values @ weight.astype(np.float64) + bias
    return np.abs(values[:, 0]), error[:, 0]


def _activate(kind: str, values: Floats) -> Floats:
    """Return an activation of values; that of gelu up to a factor of 1.2, which a bound does not need."""
    if kind == "relu":
        return np.maximum(values, 0.0)
    if kind == "tanh":
        return np.tanh(values)
    slope = 1.702 if kind == "gelu" else 1.0
    part: Floats = 0.5 * (1.0 + np.tanh(0.5 * slope * values))
    return part if kind == "sigmoid" else values * part


def _bound_kernel_sum(scorer: KernelSum, X: Floats, unit: float) -> tuple[Floats, Floats]:
    """Return bounds on the absolute scores of a kernel sum, and on their errors."""
    scaled, size = _scale(X, scorer.mean, scorer.factor)
    kernel, d = scorer.kernel, X.shape[1]
    z = scorer.landmarks
    if kernel.name in ("rbf", "laplacian"):
        # (|x| + |z|)^2 also bounds the errors of an engine that expands the square
        power = 2 if kernel.name == "rbf" else 1
        distance = sum((np.abs(scaled[:, j : j + 1] - z[:, j]) ** power for j in range(d)), np.zeros((len(X), len(z))))
        spans = sum((((size[:, j : j + 1] + np.abs(z[:, j])) ** power) for j in range(d)), np.zeros((len(X), len(z))))
        off = np.minimum(kernel.gamma * (d + 8) * unit * spans, 50.0)
        value = np.exp(-kernel.gamma * distance)
        error = np.minimum(value * np.expm1(off), 1.0) + _ACTIVATION * unit * value
    else:
        product, span = scaled @ z.T, size @ np.abs(z).T
        gamma, coef0 = (1.0, 0.0) if kernel.name == "linear" else (kernel.gamma, kernel.coef0)
        base, off = gamma * product + coef0, (d + 6) * unit * (gamma * span + abs(coef0))
        if kernel.name == "poly":
            value = base**kernel.degree
            error = (np.abs(base) + off) ** kernel.degree * (1.0 + 2 * kernel.degree * unit) - np.abs(value)
        elif kernel.name == "sigmoid":
            value, error = np.tanh(base), off + _ACTIVATION * unit
        else:
            value, error = base, off
    dual = np.abs(scorer.dual)
    total = np.abs(value) @ dual + abs(scorer.intercept)
    return total, error @ dual + (len(dual) + 3) * unit * total


def _scale(X: Floats, mean: Floats, factor: Floats) -> tuple[Floats, Floats]:
    """Return the scaled features, and the sizes of the two terms whose difference they are."""
    return (X - mean) * factor, (np.abs(X) + np.abs(mean)) * np.abs(factor)
