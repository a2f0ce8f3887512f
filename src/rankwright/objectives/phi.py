"""Query-level scores: F of a ranking is a sum over pairs of documents, linear in their scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.objectives.ranking_search import fill_pair_coefficients, fill_rank_coefficients


class Phi(ABC):
    """The choice of the document pairs whose score differences are summed to F, the score of a whole ranking."""

    same_for_perfect: ClassVar[bool] = False  # whether all rankings by descending grade have the same F

    @abstractmethod
    def norms(self, sizes: Ints, pairs: Floats) -> Floats:
        """Return the divisor of F for queries of these sizes with so many pairs of different classes."""

    @abstractmethod
    def fill(self, order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
        """Write the derivative of F of a ranking by every score."""


class PairPhi(Phi):
    """The choice of the pairs of documents with different gains, after eq. (4) of Xu et al. (2008)."""

    same_for_perfect = True

    def norms(self, sizes: Ints, pairs: Floats) -> Floats:
        """Return the number of pairs."""
        return pairs

    def fill(self, order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
        """Write the derivatives, by counting classes."""
        fill_pair_coefficients(order, classes, n_classes, norm, indptr, out)


class RankPhi(Phi):
    """The choice of all pairs of documents, eq. (2) of Xu et al. (2008).

    The coefficient of a document's score in F is n + 1 - 2 rank.
    """

    def norms(self, sizes: Ints, pairs: Floats) -> Floats:
        """Return twice the number of pairs."""
        return (sizes * (sizes - 1)).astype(np.float64)

    def fill(self, order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
        """Write the derivatives, by rank."""
        fill_rank_coefficients(order, norm, indptr, out)


PHIS: Mapping[str, Phi] = {"pairs": PairPhi(), "ranks": RankPhi()}
