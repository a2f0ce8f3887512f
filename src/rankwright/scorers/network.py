"""Feed-forward networks: layers of weighted sums with an activation between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.kernels.scorers import network_scores as loops
from rankwright.scorers.base import Scorer, check_list, parse_numbers

ACTIVATIONS = {"relu": loops.RELU, "tanh": loops.TANH, "sigmoid": loops.SIGMOID, "silu": loops.SILU, "gelu": loops.GELU}


@dataclass(frozen=True, slots=True, eq=False)
class Network(Scorer):
    """A scorer that is a feed-forward network of scaled features, in double precision and without torch.

    Parameters
    ----------
    mean, factor : array of shape (n_features,)
        The scaling of raw features, which comes first: (x - mean) factor.
    weights : sequence of arrays of shape (inputs, outputs)
        The weights of each layer; the last has one output.
    biases : sequence of arrays of shape (outputs,)
        The biases of each layer.
    activation : str
        The activation between layers: "relu", "tanh", "sigmoid", "silu" or "gelu".
    precision : {"float32", "float64"}
        The precision of weights and biases: those of torch are float32, those of some other libraries float64.

    Examples
    --------
    >>> one = Network(np.zeros(2), np.ones(2), [np.array([[1.0], [2.0]]), np.array([[3.0]])], [np.zeros(1), np.ones(1)])
    >>> one(np.array([[1, 1], [1, -1]], np.float32)).tolist()
    [10.0, 1.0]
    """

    kind: ClassVar[str] = "network"
    mean: Floats
    factor: Floats
    weights: Sequence[Floats]
    biases: Sequence[Floats]
    activation: str = "relu"
    precision: str = "float32"
    _flat: Floats = field(init=False, repr=False)
    _widths: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights, biases = ([np.array(x, dtype=self.precision) for x in part] for part in (self.weights, self.biases))
        for x in (*weights, *biases):
            x.flags.writeable = False  # predictions use a copy
        flat = [x.ravel() for pair in zip(weights, biases, strict=True) for x in pair]
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)
        object.__setattr__(self, "_flat", np.concatenate(flat).astype(np.float64))
        object.__setattr__(self, "_widths", np.array([len(weights[0]), *map(len, biases)]))

    def __call__(self, X: Floats) -> Floats:
        """Return the outputs."""
        if not self.accepts(X.shape[1]):
            raise InputError(f"{X.shape[1]} features; the network has {len(self.mean)} inputs")
        return loops.compute_network_scores(
            X, self.mean, self.factor, self._widths, self._flat, ACTIVATIONS[self.activation]
        )

    def __len__(self) -> int:
        return len(self.weights)

    def accepts(self, n_features: int) -> bool:
        """Return whether it has as many inputs."""
        return len(self.mean) == n_features

    def to_json(self) -> dict[str, Any]:
        """Return the scaling and, for each layer, the weights (a list per input) and the biases."""
        return {
            "activation": self.activation,
            **({} if self.precision == "float32" else {"precision": self.precision}),
            "mean": self.mean.tolist(),
            "factor": self.factor.tolist(),
            "layers": [
                {"weights": [_shorten(row) for row in weight], "bias": _shorten(bias)}
                for weight, bias in zip(self.weights, self.biases, strict=True)
            ],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Network:
        """Read what ``to_json`` wrote."""
        activation = values["activation"]
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise InputError(f"activation {quote(activation)}; expected one of {', '.join(ACTIVATIONS)}")
        precision = values.get("precision", "float32")
        if precision not in ("float32", "float64"):
            raise InputError(f"precision {quote(precision)}; expected float32 or float64")
        parse = _parse_singles if precision == "float32" else parse_numbers
        mean, factor = (parse_numbers(values[name]) for name in ("mean", "factor"))
        weights, biases, inputs = [], [], len(mean)
        for layer in check_list(values["layers"]):
            if type(layer) is not dict:
                raise InputError(f"{quote(layer)} in place of a layer; expected weights and bias")
            bias = parse(layer["bias"])
            rows = [parse(row) for row in check_list(layer["weights"])]
            if len(rows) != inputs or not rows or any(len(row) != len(bias) for row in rows):
                raise InputError("layers that do not fit each other")
            weights.append(np.stack(rows))
            biases.append(bias)
            inputs = len(bias)
        if len(factor) != len(mean) or not weights or inputs != 1:
            raise InputError("a network without layers, or with other than one output")
        return cls(mean, factor, weights, biases, activation, precision)


def _shorten(values: Floats) -> list[float]:
    """Return numbers as floats with the fewest digits that identify them in their precision."""
    return [float(str(value)) for value in values]


def _parse_singles(values: Any) -> Floats:
    """Return a saved list of numbers in single precision; raise InputError if one is too large for it."""
    with np.errstate(over="ignore"):
        found = parse_numbers(values).astype(np.float32)
    if not np.isfinite(found).all():
        raise InputError("a weight too large for single precision")
    return found
