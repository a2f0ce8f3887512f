"""Spaces: what a linear ranker is linear in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rankwright.data.queries import Queries
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear, Scorer


class FeatureSpace(Protocol):
    """A space that a linear ranker is trained in: it maps queries into it, and scorers back to raw features."""

    @property
    def scale(self) -> str | None:
        """Return how features are to be scaled in this space."""

    def __call__(self, queries: Queries) -> Queries:
        """Return the documents in this space."""

    def scorer(self, linear: Linear) -> Scorer:
        """Return a scorer of documents as given, made of one in this space."""


@dataclass(frozen=True, slots=True)
class RawFeatures:
    """The space of the features as given: queries and scorers stay unchanged."""

    scale: str | None

    def __call__(self, queries: Queries) -> Queries:
        """Return the argument unchanged."""
        return queries

    def scorer(self, linear: Linear) -> Linear:
        """Return the argument unchanged."""
        return linear


def make_feature_space(kernel_map: Any, train: Queries, scale: str | None, backend: Backend) -> FeatureSpace:
    """Return the space to train in: that of ``kernel_map``, or for None that of the features as given."""
    if kernel_map is None:
        return RawFeatures(scale)
    from rankwright.rankers.smooth.kernel_map import learn_map  # with parts of scikit-learn that take long to import

    return learn_map(kernel_map, train, scale, backend)
