"""Networks as Solr takes them: one sequence of layers, behind a scaling of each feature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import block_diag

from rankwright.basics.array_types import Floats
from rankwright.scorers import Network

ACTIVATIONS = ("relu", "tanh", "sigmoid")

Layer = tuple[Floats, Floats, str]  # a row of weights for each output, a bias for each, and the activation


def find_network_obstacle(networks: Sequence[Network]) -> str | None:
    """Return why Solr cannot hold the sum of these networks; None if it can."""
    activations = sorted({network.activation for network in networks if len(network) > 1})
    other = [name for name in activations if name not in ACTIVATIONS]
    if other:
        return f"a network with activation {other[0]}: it has {', '.join(ACTIVATIONS)}"
    if len(activations) > 1 or len({len(network) for network in networks}) > 1:
        return "a sum of networks that differ in activation or number of layers: its layers have one activation each"
    return None


def choose_scaling(network: Network) -> tuple[Floats, Floats]:
    """Return mean and deviation of each feature in float32; 0 and 1 for a feature that these cannot scale."""
    with np.errstate(divide="ignore", over="ignore"):
        deviation, mean = (1.0 / network.factor).astype(np.float32), network.mean.astype(np.float32)
    is_usable = np.isfinite(deviation) & (deviation >= np.finfo(np.float32).tiny) & np.isfinite(mean)
    return (
        np.where(is_usable, mean, np.float32(0.0)).astype(np.float64),
        np.where(is_usable, deviation, np.float32(1.0)).astype(np.float64),
    )


def join_networks(
    networks: Sequence[tuple[float, Network]], intercept: float, mean: Floats, deviation: Floats
) -> list[Layer]:
    """Return the layers of one network of (x - mean) / deviation that is the weighted sum of networks.

    Networks lie beside each other: each layer has the blocks of all, and the last one adds their outputs. What the
    given scaling lacks of a network's own is folded into its first layer.
    """
    activation = networks[0][1].activation
    n_layers = len(networks[0][1])
    scaled = [_rescale(network, mean, deviation) for _, network in networks]
    joined: list[Layer] = []
    for k in range(n_layers):
        matrices = [layers[k][0] for layers in scaled]
        biases = [layers[k][1] for layers in scaled]
        if k == n_layers - 1:
            matrices = [weight * own for (weight, _), own in zip(networks, matrices, strict=True)]
            bias = sum((weight * own for (weight, _), own in zip(networks, biases, strict=True)), np.full(1, intercept))
            joined.append((sum(matrices[1:], matrices[0]) if k == 0 else np.hstack(matrices), bias, "identity"))
        else:
            matrix = np.vstack(matrices) if k == 0 else block_diag(*matrices)
            joined.append((matrix, np.concatenate(biases), activation))
    return joined


def _rescale(network: Network, mean: Floats, deviation: Floats) -> list[tuple[Floats, Floats]]:
    """Return the layers of a network, a row per output, as a function of (x - mean) / deviation."""
    layers = [
        (weight.T.astype(np.float64), bias.astype(np.float64))
        for weight, bias in zip(network.weights, network.biases, strict=True)
    ]
    first, bias = layers[0]
    shift = (mean - network.mean) * network.factor
    return [(first * (deviation * network.factor), bias + first @ shift), *layers[1:]]
