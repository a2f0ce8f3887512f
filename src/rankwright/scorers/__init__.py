"""Scorers, the result of training: functions from features to scores.

To add one, write a subclass of ``Scorer`` in a file of its own and add it to ``KINDS``.
"""

from collections.abc import Mapping
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.scorers.base import Scorer as Scorer
from rankwright.scorers.kernel_sum import Kernel as Kernel
from rankwright.scorers.kernel_sum import KernelSum as KernelSum
from rankwright.scorers.linear import Feature as Feature
from rankwright.scorers.linear import Linear as Linear
from rankwright.scorers.network import Network as Network
from rankwright.scorers.scorer_merging import merge_scorers as merge_scorers
from rankwright.scorers.stump_sum import Steps as Steps
from rankwright.scorers.stump_sum import Stumps as Stumps
from rankwright.scorers.tree_sum import Trees as Trees
from rankwright.scorers.weighted_sum import WeightedSum as WeightedSum

KINDS = {scorer.kind: scorer for scorer in (Linear, Feature, Stumps, KernelSum, Network, Trees)}


def read_scorer(values: Mapping[str, Any]) -> Scorer:
    """Rebuild a scorer from its JSON values, whose ``kind`` names its class."""
    kind = values.get("kind")
    if kind == WeightedSum.kind:
        return WeightedSum.from_json(values, read_scorer)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"scorer of kind {quote(kind)}; expected one of {', '.join([*KINDS, WeightedSum.kind])}")
    return KINDS[kind].from_json(values)
