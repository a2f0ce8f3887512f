"""Torch modules as scorers: plain networks are made, and read back as arrays; others are checked and kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.scorers import Scorer
from rankwright.scorers.linear import StandardScaling

ROWS = 8192  # scored at a time

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
}


def build_network(n_features: int, hidden: tuple[int, ...], activation: str, seed: int) -> nn.Sequential:
    """Build a network with the given hidden layers; the variance of its random weights keeps the size of outputs."""
    generator = torch.Generator().manual_seed(seed)
    widths = (n_features, *hidden, 1)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        # nn.Linear alone would draw from torch's own random numbers
        layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, inputs, outputs, device="cpu", dtype=torch.float32
        )
        gain = 2.0 if activation == "relu" and layers else 1.0  # half of the inputs are 0
        with torch.no_grad():
            layer.weight.normal_(0.0, (gain / inputs) ** 0.5, generator=generator)
            layer.bias.zero_()
        layers += [layer, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


def read_layers(module: nn.Module) -> tuple[list[Floats], list[Floats], str] | None:
    """Return the weights, biases and activation of a plain feed-forward network; None for any other torch module."""
    layers: list[Any] = list(module) if type(module) is nn.Sequential else [module]
    linear, activations = layers[::2], layers[1::2]
    kinds = {type(layer) for layer in activations}
    if len(layers) % 2 == 0 or len(kinds) > 1 or not all(type(layer) is nn.Linear for layer in linear):
        return None
    if any(part._forward_hooks or part._forward_pre_hooks for part in (module, *layers)):
        return None
    names = [name for name, kind in ACTIVATIONS.items() if {kind} == kinds or not kinds]
    if not names or any(getattr(layer, "approximate", "none") != "none" for layer in activations):
        return None
    weights = [layer.weight.detach().cpu().numpy().T.astype(np.float32) for layer in linear]
    biases = [
        np.zeros(layer.out_features, np.float32) if layer.bias is None else layer.bias.detach().cpu().numpy().copy()
        for layer in linear
    ]
    return (weights, biases, names[0]) if weights[-1].shape[1] == 1 else None


def check_module(module: nn.Module, n_features: int) -> nn.Module:
    """Return the network; raise InputError if it does not give each document a score of its own features alone."""
    for name, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._NormBase):
            raise InputError(
                f"layer {name!r} of the network ({type(part).__name__}) looks from one document at others, padding "
                "among them; expected one that does not, as LayerNorm"
            )
    rows = torch.linspace(-1.0, 1.0, 3 * n_features).reshape(3, n_features)
    try:
        with torch.no_grad():
            module.to("cpu", torch.float32).eval()
            found, alone = module(rows), module(rows[1:2])
    except Exception as error:
        raise InputError(f"the network does not take {n_features} features: {error}") from error
    if not isinstance(found, Tensor) or found.shape not in ((3,), (3, 1)):
        what = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise InputError(f"the network returned {what} for 3 documents; expected a score for each")
    if not torch.allclose(found[1].flatten(), alone.flatten(), rtol=1e-3, atol=1e-5, equal_nan=True):
        raise InputError("the network scores a document otherwise where others stand beside it; expected it not to")
    return module


@dataclass(frozen=True, slots=True, eq=False)
class TorchScorer(Scorer):
    """A scorer that is a torch module other than a plain feed-forward network; it cannot be saved as arrays."""

    kind: ClassVar[str] = "torch"
    module: nn.Module
    standard: StandardScaling

    def __call__(self, X: Floats) -> Floats:
        """Return the outputs of the module."""
        found = np.empty(len(X))
        with torch.no_grad():
            for start in range(0, len(X), ROWS):
                scaled = (X[start : start + ROWS] - self.standard.mean) * self.standard.factor
                inputs = torch.as_tensor(scaled, dtype=torch.float32)
                found[start : start + ROWS] = self.module(inputs).reshape(-1).numpy()
        return found

    def accepts(self, n_features: int) -> bool:
        """Return whether it was trained on as many features."""
        return len(self.standard.mean) == n_features

    def to_json(self) -> dict[str, Any]:
        """Raise: a module of any shape has no arrays to save."""
        raise InputError(
            "only plain feed-forward networks (linear layers with one kind of activation between them) are saved as "
            "models; save scorer_.module.state_dict() of this one with torch"
        )
