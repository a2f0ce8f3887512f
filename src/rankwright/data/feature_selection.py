"""Choice of the features that a model knows, from documents that may have others and in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.categories import Categories, renumber


class FeatureSelection:
    """The columns that are wanted of a matrix, and what becomes of the numbers of categories.

    Parameters
    ----------
    width : int
        The number of features of the documents.
    features : tuple of str, optional
        Their names.
    categories : tuple, optional
        The values of their categorical features.
    where : str
        What an error calls the documents by, such as their file.
    """

    def __init__(self, width: int, features: tuple[str, ...] | None, categories: Categories | None, where: str) -> None:
        self.features, self.categories = features, categories
        self._width, self._where = width, where
        self._columns: Ints | None = None
        self._own: Categories | None = categories  # of the wanted columns, before they are renumbered

    def choose(
        self, n_features: int | None, wanted: Sequence[str] | None, known: Categories | None, owner: str = "the model"
    ) -> None:
        """Set what is wanted; each argument but the last may be None.

        Parameters
        ----------
        n_features : int
            The number of features, where they have no names: missing ones are 0, more are an error.
        wanted : sequence of str
            The names of the features, in this order, where they have names; others are left out.
        known : tuple
            The values of categorical features that are known; another value is missing.
        owner : str
            What has these features, for messages.
        """
        if self.features is not None and wanted is not None:
            self._choose_by_name(self.features, tuple(wanted), owner)
        elif self.features is None and n_features is not None:
            if self._width > n_features:
                raise InputError(f"{self._where}: {self._width} features; expected at most {n_features}")
            if self.categories is not None:
                self.categories = (*self.categories, *(None,) * (n_features - self._width))
            self._width = n_features
        self._own = self.categories
        if known is not None:
            self.categories = known
            self._renumber(np.empty((0, self._width), np.float32))  # a feature of another kind is an error

    def _choose_by_name(self, features: tuple[str, ...], wanted: tuple[str, ...], owner: str) -> None:
        """Set the columns of the features that are wanted."""
        if features == wanted:
            return
        places = {name: at for at, name in enumerate(features)}
        for name in wanted:
            if name not in places:
                raise InputError(
                    f"{self._where}: no feature {quote(name)}; expected all {len(wanted)} features of {owner}"
                )
        columns = np.array([places[name] for name in wanted])
        if self.categories is not None:
            self.categories = tuple(self.categories[at] for at in columns)
        self.features, self._columns, self._width = wanted, columns, len(wanted)

    def apply(self, X: Floats) -> Floats:
        """Return the wanted features of some rows; the matrix itself where it is what is wanted."""
        if self._columns is not None:
            X = X[:, self._columns]
        if X.shape[1] < self._width:
            X = np.pad(X, ((0, 0), (0, self._width - X.shape[1])))
        return self._renumber(X) if self._own != self.categories else X

    def _renumber(self, X: Floats) -> Floats:
        """Return features with the numbers of the known categories."""
        where = f"{self._where} is to have"
        return renumber(X, self._own, self.categories, self.features, where)
