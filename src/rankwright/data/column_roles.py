"""Columns of tables: which of them are the query id, the grade, the features and so on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from glob import escape
from typing import Any

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath

_LISTS = ("ignore", "features", "categorical")


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
    ignore : str or sequence of str
        Columns to leave out: names, or patterns such as ``*_text``.
    features : str or sequence of str, optional
        The features: names, or patterns, in this order; every other number by default.
    categorical : str or sequence of str
        The features whose values are categories: names, or patterns.
    """

    qid: str | None = None
    label: str | None = None
    docid: str | None = None
    weight: str | None = None
    doc_weight: str | None = None
    ignore: Sequence[str] = ()
    features: Sequence[str] | None = None
    categorical: Sequence[str] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value, several = getattr(self, each.name), each.name in _LISTS
            if value is None and each.default is None:
                continue
            names = [value] if isinstance(value, str) or not several else _list_names(value)
            if not all(isinstance(name, str) and name for name in names):
                expected = "a list of names of columns" if several else "the name of a column"
                raise InputError(f"{each.name}={quote(value)}; expected {expected}")
            object.__setattr__(self, each.name, tuple(names) if several else value)

    def with_features(self, features: Sequence[str], categorical: Sequence[str]) -> ColumnRoles:
        """Return the same roles for the features of a model, whose names are no patterns."""
        return replace(self, features=tuple(map(escape, features)), categorical=tuple(map(escape, categorical)))

    def list_given(self) -> list[str]:
        """Return the roles that were given to columns, such as ``["qid", "ignore"]``."""
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def check_unused(self, path: StrPath, why: str) -> None:
        """Raise InputError if a column has a role, although the format of this file has no columns to choose."""
        if given := self.list_given():
            names = ", ".join(f"{role} (--{role.replace('_', '-')})" for role in given)
            raise InputError(f"{path}: {why}; expected no {names}, which names columns of tables")

    def to_json(self) -> dict[str, Any]:
        """Return the roles that were given, as a spec has them."""
        given = {role: getattr(self, role) for role in self.list_given()}
        return {role: list(value) if isinstance(value, tuple) else value for role, value in given.items()}

    @classmethod
    def from_json(cls, content: Any, where: str) -> ColumnRoles:
        """Return the roles that a part of a spec gives; ``where`` is how an error calls that part."""
        if not isinstance(content, Mapping):
            raise InputError(f'{where} is {quote(content)}; expected a table such as {{qid = "query"}}')
        roles: dict[str, Any] = {}
        for role, value in content.items():
            if role not in cls.__dataclass_fields__:
                raise InputError(f"{where}: unknown key {quote(role)}; {suggest(role, cls.__dataclass_fields__)}")
            several = role in _LISTS
            names = [value] if isinstance(value, str) else value if several and isinstance(value, list) else []
            if not names or not all(isinstance(name, str) and name for name in names):
                expected = "the names of columns" if several else "the name of a column"
                raise InputError(f"{where}.{role} is {quote(value)}; expected {expected}")
            roles[role] = tuple(names) if several else value
        return cls(**roles)


def _list_names(value: Any) -> list[Any]:
    """Return the names in a list, tuple or other iterable; a list of None if it is nothing of the kind."""
    return list(value) if isinstance(value, Iterable) else [None]


NO_ROLES = ColumnRoles()
