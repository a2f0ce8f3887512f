"""Columns of tables: which of them are the query id, the grade, the features and so on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRoles:
    """The names of the columns that a caller gave a role; the rest is found by the usual names.

    Parameters
    ----------
    qid : str, optional
        The query ids.
    label : str, optional
        The relevance grades.
    docid : str, optional
        The document ids.
    weight : str, optional
        The query weights: the same number in all rows of a query.
    doc_weight : str, optional
        The document weights.
    ignore : tuple of str
        Columns to leave out: names, or patterns such as ``*_text``.
    features : tuple of str, optional
        The features: names, or patterns, in this order; every other number by default.
    categorical : tuple of str
        The features whose values are categories: names, or patterns.
    """

    qid: str | None = None
    label: str | None = None
    docid: str | None = None
    weight: str | None = None
    doc_weight: str | None = None
    ignore: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
