"""Columns of a table of impressions: which of them are the query, the document, the position and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rankwright.basics.errors import InputError
from rankwright.data.table_columns import ColumnKind, TableColumns, suggest_column

_USUAL_NAMES = {
    "query": ("query", "qid", "queryid", "querytext", "userquery", "searchterm", "keyword"),
    "docid": ("docid", "documentid", "doc", "document", "docno", "objectid", "productid", "itemid"),
    "position": ("position", "pos", "rank", "ordinal"),
    "clicked": ("clicked", "click", "clicks", "isclicked", "isclick", "wasclicked"),
}
_MEANINGS = {
    "query": "queries",
    "docid": "document ids",
    "position": "positions",
    "clicked": "clicks",
    "session": "sessions",
    "time": "times",
    "ranker": "rankers",
    "shuffled": "shuffled groups",
}


class ClickColumns(NamedTuple):
    """The names of the columns of a table of impressions, by what they are."""

    query: str
    docid: str
    position: str
    clicked: str
    session: str | None = None
    time: str | None = None
    ranker: str | None = None
    shuffled: str | None = None

    def to_table_columns(self) -> TableColumns:
        """Return what readers of tables need: ids and numbers to read, the other columns as they are."""
        others = tuple(name for name in self[4:] if name is not None)
        return TableColumns(
            qid=self.query,
            label=self.position,
            docid=self.docid,
            weight=self.clicked,
            doc_weight=None,
            features=others,
            categorical=frozenset(others),
            left_out=("*",),
        )


def choose_click_columns(kinds: Mapping[str, ColumnKind], given: Mapping[str, str | None], where: str) -> ClickColumns:
    """Return the columns by role: those a caller named, then those with a usual name.

    Raises
    ------
    InputError
        If a column is not there, has two roles, cannot be found by its name, or has values of the wrong kind.
    """
    names = list(kinds)
    chosen: dict[str, str | None] = {}
    for role, name in given.items():
        if name is not None and name not in kinds:
            raise InputError(f"{where}: no column {name!r} for {_option(role)}; {suggest_column(name, names)}")
        chosen[role] = name
    for role, usual in _USUAL_NAMES.items():
        if chosen.get(role) is None:
            taken = {name for name in chosen.values() if name is not None}
            chosen[role] = _find_usual(role, usual, [name for name in names if name not in taken], where)
    roles: dict[str, str] = {}
    for role, name in chosen.items():
        if name is None:
            continue
        if name in roles:
            raise InputError(f"{where}: the column {name!r} is named by {_option(roles[name])} and by {_option(role)}")
        roles[name] = role
        kind = kinds[name]
        if role in ("position", "clicked") and kind.kind != "number":
            expected = "whole numbers from 1" if role == "position" else "0 and 1, or true and false"
            found = "text" if kind.kind == "text" else kind.name
            raise InputError(
                f"{where}: the column {name!r} is {found}; expected {expected}. Convert it, or name another with "
                f"{_option(role)}"
            )
        if kind.kind == "other" and role != "time":
            raise InputError(f"{where}: the column {name!r} is {kind.name}; expected whole numbers or text")
    return ClickColumns(**{role: name for role, name in chosen.items() if name is not None})


def _find_usual(role: str, usual: Sequence[str], names: Sequence[str], where: str) -> str:
    """Return the one column with a usual name of a role; raise InputError if there is none, or several."""
    found = [name for name in names if re.sub(r"[\s_.-]+", "", name).lower() in usual]
    if len(found) == 1:
        return found[0]
    meaning = _MEANINGS[role]
    if not found:
        there = ", ".join(map(repr, names[:12]))
        raise InputError(
            f"{where}: no column of {meaning}, such as {usual[0]!r}; there are {there}. Name it with {_option(role)}"
        )
    there = ", ".join(map(repr, found))
    raise InputError(f"{where}: the columns {there} may each be the {meaning}; choose with {_option(role)}")


def _option(role: str) -> str:
    """Return how a role is given in Python and on the command line."""
    return f"{role}= (--{role})"
