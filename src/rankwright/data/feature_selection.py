"""Choice of the features that a model knows, from documents that may have others and in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.categories import Categories


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
        self._tables: dict[int, Floats] = {}

    def choose(self, n_features: int | None, wanted: Sequence[str] | None, known: Categories | None) -> None:
        """Set what is wanted; each argument may be None.

        Parameters
        ----------
        n_features : int
            The number of features, where they have no names: missing ones are 0, more are an error.
        wanted : sequence of str
            The names of the features, in this order, where they have names; others are left out.
        known : tuple
            The values of categorical features that are known; another value is missing.
        """
        if self.features is not None and wanted is not None:
            self._choose_by_name(self.features, tuple(wanted))
        elif self.features is None and n_features is not None:
            if self._width > n_features:
                raise InputError(f"{self._where}: {self._width} features; expected at most {n_features}")
            if self.categories is not None:
                self.categories = (*self.categories, *(None,) * (n_features - self._width))
            self._width = n_features
        if known is not None and known != self.categories:
            self._translate_categories(known)

    def _choose_by_name(self, features: tuple[str, ...], wanted: tuple[str, ...]) -> None:
        """Set the columns of the features that are wanted."""
        if features == wanted:
            return
        places = {name: at for at, name in enumerate(features)}
        for name in wanted:
            if name not in places:
                raise InputError(
                    f"{self._where}: no feature {quote(name)}; expected all {len(wanted)} features of the model"
                )
        columns = np.array([places[name] for name in wanted])
        if self.categories is not None:
            self.categories = tuple(self.categories[at] for at in columns)
        self.features, self._columns, self._width = wanted, columns, len(wanted)

    def _translate_categories(self, known: Categories) -> None:
        """Set the tables that make the numbers of known values of the numbers of values."""
        own = self.categories or (None,) * self._width
        for column, (values, numbered) in enumerate(zip(own, known, strict=True)):
            if (values is None) != (numbered is None):
                name = self.features[column] if self.features else str(column + 1)
                kinds = ("numbers", "categories") if values is None else ("categories", "numbers")
                raise InputError(f"{self._where}: feature {quote(name)} has {kinds[0]}; expected {kinds[1]}")
            if values is not None and numbered is not None and values != numbered:
                places = {value: float(at) for at, value in enumerate(numbered)}
                self._tables[column] = np.array([*(places.get(value, np.nan) for value in values), np.nan], np.float32)
        self.categories = known

    def apply(self, X: Floats) -> Floats:
        """Return the wanted features of some rows; the matrix itself where it is what is wanted."""
        if self._columns is not None:
            X = X[:, self._columns]
        if X.shape[1] < self._width:
            X = np.pad(X, ((0, 0), (0, self._width - X.shape[1])))
        if self._tables:
            X = X.copy()
            for column, table in self._tables.items():
                numbers = np.where(np.isnan(X[:, column]), len(table) - 1, X[:, column]).astype(np.int64)
                X[:, column] = table[np.clip(numbers, 0, len(table) - 1)]
        return X
