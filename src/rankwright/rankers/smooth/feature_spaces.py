"""Spaces: what a linear ranker is linear in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rankwright.data.queries import Queries
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear, Scorer


class Space(Protocol):
    """Where a linear ranker is trained."""

    @property
    def scale(self) -> str | None:
        """How features are to be scaled there."""
        ...

    def __call__(self, queries: Queries) -> Queries:
        """The documents as they are there."""
        ...

    def scorer(self, linear: Linear) -> Scorer:
        """What scores documents as they came, from what scores them there."""
        ...


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Features as they are."""

    scale: str | None

    def __call__(self, queries: Queries) -> Queries:
        """The same."""
        return queries

    def scorer(self, linear: Linear) -> Linear:
        """The same."""
        return linear


def space_of(kernel_map: Any, train: Queries, scale: str | None, backend: Backend) -> Space:
    """The features as they are, or those that a kernel map makes of them, see ``learn_map``."""
    if kernel_map is None:
        return Unmapped(scale)
    from rankwright.rankers.smooth.kernel_map import learn_map  # with parts of scikit-learn that take long to import

    return learn_map(kernel_map, train, scale, backend)
