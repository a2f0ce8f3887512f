"""Scorers, the result of training: functions from features to scores.

To add one, write a subclass of ``Scorer`` in a file of its own and add it to ``KINDS``.
"""

from collections.abc import Mapping
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.scorers.base import Scorer
from rankwright.scorers.kernel_sum import Kernel, KernelSum
from rankwright.scorers.linear import Feature, Linear
from rankwright.scorers.network import Network
from rankwright.scorers.stump_sum import Steps, Stumps
from rankwright.scorers.tree_sum import Trees

__all__ = [
    "KINDS",
    "Feature",
    "Kernel",
    "KernelSum",
    "Linear",
    "Network",
    "Scorer",
    "Steps",
    "Stumps",
    "Trees",
    "scorer_from_json",
]

KINDS = {scorer.kind: scorer for scorer in (Linear, Feature, Stumps, KernelSum, Network, Trees)}


def scorer_from_json(values: Mapping[str, Any]) -> Scorer:
    """Rebuild a scorer from its JSON, by its kind."""
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"scorer of kind {quote(kind)}; expected one of {', '.join(KINDS)}")
    return KINDS[kind].from_json(values)
