"""Columns of a table: which one has the query ids, the grades and so on, and which are features."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, NamedTuple

from rankwright.basics.errors import InputError, make_printable, suggest
from rankwright.basics.optional_imports import require
from rankwright.data.column_roles import ColumnRoles

_USUAL_NAMES = {
    "qid": ("qid", "queryid", "query"),
    "label": ("label", "relevance", "grade", "rating", "rel", "relevancelabel", "relevancegrade"),
    "docid": ("docid", "documentid", "doc", "document", "docno"),
}
_MEANINGS = {
    "qid": "query id",
    "label": "grade",
    "docid": "document id",
    "weight": "query weight",
    "doc_weight": "document weight",
}
_WEIGHTS = re.compile(r"(query|doc|document|sample)?[_ .-]?weights?", re.IGNORECASE)
_logger = logging.getLogger("rankwright")


class TableColumns(NamedTuple):
    """The names of the columns that are read, by what they are."""

    qid: str
    label: str | None
    docid: str | None
    weight: str | None
    doc_weight: str | None
    features: tuple[str, ...]
    categorical: frozenset[str]  # those of the features whose values are categories

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of ids."""
        return tuple(name for name in (self.qid, self.docid) if name is not None)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers that are no features."""
        return tuple(name for name in (self.label, self.weight, self.doc_weight) if name is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.ids, *self.numbers, *self.features)


def choose_columns(types: Mapping[str, Any], roles: ColumnRoles, where: str) -> TableColumns:
    """Return the columns of a table by role: those a caller named, then those with a usual name; the rest are features.

    What was chosen by name is said in the log.

    Parameters
    ----------
    types : mapping of str to pyarrow.DataType
        The columns of the table.
    roles : ColumnRoles
        The columns that the caller named.
    where : str
        The table, for messages.

    Raises
    ------
    InputError
        If a named column is not there, a pattern matches nothing, two columns have the usual name of one role, or a
        feature is no number.
    """
    names = list(types)
    ignored = set(expand_patterns(roles.ignore, names, "ignore", where))
    given = {role: getattr(roles, role) for role in _MEANINGS}
    _check_given(given, names, ignored, where)
    taken = {name for name in given.values() if name is not None}
    wanted = None
    if roles.features is not None:
        free = [name for name in names if name not in ignored and name not in taken]
        _check_features(roles.features, given, ignored, where)
        wanted = expand_patterns(roles.features, free, "features", where)
    named = {name for name in names if {name, escape(name)}.intersection(roles.features or ())}
    explicit = {*taken, *ignored, *named}
    found = {}
    for role, usual in _USUAL_NAMES.items():
        if given[role] is None:
            candidates = [name for name in names if name not in explicit and _simplify(name) in usual]
            if len(candidates) > 1:
                raise InputError(
                    f"{where}: the columns {_join(candidates)} may each be the {_MEANINGS[role]}; choose with "
                    f"{_option(role)}, and leave the others out with {_option('ignore')} unless they are features"
                )
            found.update(dict.fromkeys([role], candidates[0]) if candidates else {})
    chosen: dict[str, Any] = {role: given[role] or found.get(role) for role in _MEANINGS}
    if chosen["qid"] is None:
        raise InputError(
            f"{where}: no column of query ids, such as 'qid' or 'query_id'; there are {_join(names)}. "
            f"Name it with {_option('qid')}"
        )
    own = {*ignored, *chosen.values()}
    features = tuple(name for name in (names if wanted is None else wanted) if name not in own)
    if not features:
        raise InputError(f"{where}: no feature; there are {_join(names)}, all of which have another role")
    categorical = {name for name in features if is_category(types[name])}
    categorical.update(expand_patterns(roles.categorical, features, "categorical", where))
    columns = TableColumns(**chosen, features=features, categorical=frozenset(categorical))
    _check_types(types, columns, where)
    _report(found, columns, where)
    return columns


def expand_patterns(patterns: Sequence[str], names: Sequence[str], option: str, where: str) -> list[str]:
    """Return the columns with these names, or that match these patterns, in the order of the patterns.

    >>> expand_patterns(["b", "a*"], ["a1", "a2", "b"], "features", "table")
    ['b', 'a1', 'a2']
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        found = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            kind = "pattern" if re.search(r"[*?\[]", pattern) else "column"
            raise InputError(f"{where}: no {kind} {pattern!r} for {_option(option)}; {suggest_column(pattern, names)}")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def is_category(type_: Any) -> bool:
    """Return whether an Arrow type has a dictionary: pandas' and polars' categories."""
    return bool(require("pyarrow").types.is_dictionary(type_))


def is_number(type_: Any) -> bool:
    """Return whether the values of an Arrow type are numbers, truth values or always missing."""
    types = require("pyarrow").types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(type_) for test in tests)


def is_text(type_: Any) -> bool:
    """Return whether the values of an Arrow type are texts."""
    types = require("pyarrow").types
    return any(test(type_) for test in (types.is_string, types.is_large_string, types.is_string_view))


def is_bytes(type_: Any) -> bool:
    """Return whether the values of an Arrow type are bytes: texts of writers that do not mark them as such."""
    types = require("pyarrow").types
    return any(test(type_) for test in (types.is_binary, types.is_large_binary, types.is_binary_view))


def _check_given(given: Mapping[str, str | None], names: Sequence[str], ignored: set[str], where: str) -> None:
    """Raise InputError if a column that has a role is not there, is ignored, or has two roles."""
    seen: dict[str, str] = {}
    for role, name in given.items():
        if name is None:
            continue
        if name not in names:
            raise InputError(f"{where}: no column {name!r} for {_option(role)}; {suggest_column(name, names)}")
        if name in ignored:
            raise InputError(f"{where}: the column {name!r} is named by {_option(role)} and by {_option('ignore')}")
        if name in seen:
            raise InputError(f"{where}: the column {name!r} is named by {_option(role)} and by {_option(seen[name])}")
        seen[name] = role


def _check_features(features: Sequence[str], given: Mapping[str, str | None], ignored: set[str], where: str) -> None:
    """Raise InputError if a feature is named that is ignored or has another role."""
    for role, name in (*given.items(), *(("ignore", name) for name in sorted(ignored))):
        if name in features:
            raise InputError(f"{where}: the column {name!r} is named by {_option('features')} and by {_option(role)}")


def _check_types(types: Mapping[str, Any], columns: TableColumns, where: str) -> None:
    """Raise InputError if columns have values that their role does not allow."""
    plain = [name for name in columns.features if name not in columns.categorical]
    bad = [f"{name!r} ({types[name]})" for name in plain if not is_number(types[name])]
    if bad:
        raise InputError(
            f"{where}: {', '.join(bad[:8])}{' and others' if len(bad) > 8 else ''}: no numbers, and no role. Leave "
            f"columns out with {_option('ignore')}, or name them with {_option('docid')} or {_option('categorical')}"
        )
    for name in columns.numbers:
        value = types[name].value_type if is_category(types[name]) else types[name]
        if not is_number(value):
            raise InputError(f"{where}: the column {name!r} is {types[name]}; expected numbers")
    for name in (*columns.ids, *columns.categorical):
        value = types[name].value_type if is_category(types[name]) else types[name]
        if not (is_number(value) or is_text(value) or is_bytes(value)):
            raise InputError(f"{where}: the column {name!r} is {types[name]}; expected whole numbers or text")


def _report(found: Mapping[str, str], columns: TableColumns, where: str) -> None:
    """Write to the log which columns were chosen by their names."""
    said = [f"{_MEANINGS[role]} {name!r}" for role, name in found.items()]
    hint = "".join(
        f"; {name!r} is a feature (a weight if you say {_option('weight')} or {_option('doc_weight')})"
        for name in columns.features
        if _WEIGHTS.fullmatch(name)
    )
    if said or hint:
        grades = "" if columns.label else "no grades, "
        _logger.info(
            "%s", make_printable(f"{where}: {', '.join(said)}, {grades}{len(columns.features)} features{hint}")
        )


def _simplify(name: str) -> str:
    """Return a column's name in lower case, without spaces and marks."""
    return re.sub(r"[\s_.-]+", "", name).lower()


def _option(role: str) -> str:
    """Return how a role is given in Python and on the command line."""
    return f"{role}= (--{role.replace('_', '-')})"


def _join(names: Sequence[str]) -> str:
    """Return the names of columns, the first ones if there are many."""
    return ", ".join(map(repr, names[:12])) + (f" and {len(names) - 12} others" if len(names) > 12 else "")


def suggest_column(name: str, names: Sequence[str]) -> str:
    """Return a hint for a column that is not there."""
    hint = suggest(name, names)
    return hint if hint.endswith("?") else f"there are {_join(names)}"
