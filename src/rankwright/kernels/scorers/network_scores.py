"""Scores of feed-forward networks; the score of a document depends on its own features only, to the last bit."""

from __future__ import annotations

import math

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel

RELU, TANH, SIGMOID, SILU, GELU = 0, 1, 2, 3, 4
_ROWS = 8  # at a time, so that weights are read once for all of them


@inner_kernel
def _apply_activation(kind: int, values: Floats) -> None:
    """Apply an activation function, such as ReLU, to each of the values, in place."""
    if kind == RELU:
        for i in range(len(values)):
            values[i] = max(values[i], 0.0)
    elif kind == TANH:
        for i in range(len(values)):
            values[i] = math.tanh(values[i])
    elif kind == GELU:
        for i in range(len(values)):
            values[i] *= 0.5 * (1.0 + math.erf(values[i] * math.sqrt(0.5)))
    else:
        for i in range(len(values)):
            small = math.exp(-abs(values[i]))
            part = (1.0 if values[i] >= 0.0 else small) / (1.0 + small)
            values[i] = part if kind == SIGMOID else values[i] * part


@inner_kernel
def _apply_layer(x: Floats, rows: int, n_inputs: int, weight: Floats, bias: Floats, out: Floats) -> None:
    """Write the outputs of a linear layer, ``x weight + bias``, for ``rows`` rows of ``x``, before the activation.

    Each is summed in the order of its inputs.
    """
    width = len(bias)
    for r in range(rows):
        for j in range(width):
            out[r, j] = bias[j]
    for i in range(n_inputs):
        w = weight[i * width : (i + 1) * width]
        for r in range(rows):
            own, row = x[r, i], out[r]
            for j in range(len(w)):
                row[j] += own * w[j]


@kernel
def compute_network_scores(
    X: Floats, mean: Floats, factor: Floats, widths: Ints, weights: Floats, activation: int
) -> Floats:
    """Return the scores of documents by a feed-forward network, whose weights and biases lie in one array.

    Each layer's weights are followed by its biases.
    ``widths`` has the number of inputs, of each hidden layer, and 1.
    """
    n, d = X.shape
    widest = 0
    for layer in range(len(widths)):
        widest = max(widest, widths[layer])
    found, inputs, outputs = np.empty(n), np.empty((_ROWS, widest)), np.empty((_ROWS, widest))
    for start in range(0, n, _ROWS):
        rows = min(_ROWS, n - start)
        for r in range(rows):
            for i in range(d):
                inputs[r, i] = (X[start + r, i] - mean[i]) * factor[i]
        at = 0
        for layer in range(len(widths) - 1):
            a, b = widths[layer], widths[layer + 1]
            weight, bias = weights[at : at + a * b], weights[at + a * b : at + a * b + b]
            at += a * b + b
            _apply_layer(inputs, rows, a, weight, bias, outputs)
            if layer < len(widths) - 2:
                for r in range(rows):
                    _apply_activation(activation, outputs[r, :b])
            inputs, outputs = outputs, inputs
        for r in range(rows):
            found[start + r] = inputs[r, 0]
    return found
