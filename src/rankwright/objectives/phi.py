"""Query-level scores: F of a ranking, from pairs of its documents, is linear in the documents' scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.objectives.ranking_search import pair_coefficients, rank_coefficients


class Phi(ABC):
    """Which pairs of documents a query-level score F is made of."""

    @abstractmethod
    def norms(self, sizes: Ints, pairs: Floats) -> Floats:
        """What F is divided by: of queries of these sizes, and with so many pairs of different classes."""

    @abstractmethod
    def fill(self, order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
        """Write the derivative of F of a ranking by every score."""


class PairPhi(Phi):
    """Pairs of documents of different classes, after eq. (4) of the paper: F is the same for all perfect rankings."""

    def norms(self, sizes: Ints, pairs: Floats) -> Floats:
        """The number of pairs."""
        return pairs

    def fill(self, order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
        """By counting classes."""
        pair_coefficients(order, classes, n_classes, norm, indptr, out)


class RankPhi(Phi):
    """All pairs, eq. (2) of the paper: a document counts n + 1 - 2 rank."""

    def norms(self, sizes: Ints, pairs: Floats) -> Floats:
        """Twice the number of pairs."""
        return (sizes * (sizes - 1)).astype(np.float64)

    def fill(self, order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
        """By rank."""
        rank_coefficients(order, norm, indptr, out)


PHIS: Mapping[str, Phi] = {"pairs": PairPhi(), "ranks": RankPhi()}
