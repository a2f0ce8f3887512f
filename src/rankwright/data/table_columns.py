"""Columns of a table: which one has the query ids, the grades and so on, and which are features."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, Literal, NamedTuple

from rankwright.basics.errors import InputError, InspectionWarning, make_printable, suggest, warn
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
_DECIMAL_COMMA = re.compile(r"such as '[+-]?[0-9]+,[0-9]+'")
_WEIGHTS = re.compile(r"(query|doc|document|sample)?[_ .-]?weights?", re.IGNORECASE)
logger = logging.getLogger("rankwright")


class ColumnKind(NamedTuple):
    """The kind of the values of a column: numbers, texts, bytes (texts that are not marked as such) or others."""

    kind: Literal["number", "text", "bytes", "other"]
    name: str  # how messages call it
    is_category: bool = False  # whether the column lists its values, as pandas' and polars' categories do
    stray: str = ""  # the place of the first text, and what it is, in a column of texts that are mostly numbers


class TableColumns(NamedTuple):
    """The names of the columns that are read, by what they are."""

    qid: str
    label: str | None
    docid: str | None
    weight: str | None
    doc_weight: str | None
    features: tuple[str, ...]
    categorical: frozenset[str]  # those of the features whose values are categories
    left_out: tuple[str, ...]  # names and patterns of columns that are no features

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


def choose_columns(kinds: Mapping[str, ColumnKind], roles: ColumnRoles, where: str) -> TableColumns:
    """Return the columns of a table by role: those a caller named, then those with a usual name; the rest are features.

    Parameters
    ----------
    kinds : mapping of str to ColumnKind
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
    names = list(kinds)
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
    categorical = {name for name in features if kinds[name].is_category}
    categorical.update(expand_patterns(roles.categorical, features, "categorical", where))
    left_out = roles.ignore if wanted is None else ("*",)
    columns = TableColumns(**chosen, features=features, categorical=frozenset(categorical), left_out=tuple(left_out))
    _check_kinds(kinds, columns, where)
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


def _check_kinds(kinds: Mapping[str, ColumnKind], columns: TableColumns, where: str) -> None:
    """Raise InputError if columns have values that their role does not allow."""
    plain = [name for name in columns.features if name not in columns.categorical]
    bad = [f"{name!r} ({kinds[name].name})" for name in plain if kinds[name].kind != "number"]
    if bad:
        if any(_DECIMAL_COMMA.search(text) for text in bad):
            raise InputError(
                f"{where}: numbers with decimal commas: {', '.join(bad[:8])}. Write them with points, such as by "
                "pandas.read_csv(file, sep=';', decimal=',').to_csv(...)"
            )
        way_out = f"with {_option('ignore')}, or name {{}} with {_option('docid')} or {_option('categorical')}"
        if stray := next(filter(None, (kinds[name].stray for name in plain)), None):
            raise InputError(f"{stray}. Write a number or nothing, leave the column out {way_out.format('it')}")
        raise InputError(
            f"{where}: no numbers, and no role: {', '.join(bad[:8])}{' and others' if len(bad) > 8 else ''}. Leave "
            f"columns out {way_out.format('them')}"
        )
    for name in columns.numbers:
        if kinds[name].kind != "number":
            raise InputError(
                f"{where}: the column {name!r} is {kinds[name].name}; expected numbers. Write it as numbers, or name "
                f"another column with {_option(next(role for role in _MEANINGS if getattr(columns, role) == name))}"
            )
    for name in (*columns.ids, *sorted(columns.categorical)):
        if kinds[name].kind == "other":
            raise InputError(f"{where}: the column {name!r} is {kinds[name].name}; expected whole numbers or text")


def log_choice(columns: TableColumns, roles: ColumnRoles, where: str) -> None:
    """Write to the log which columns were chosen by their names; warn if a second column of grades is a feature."""
    others = [name for name in columns.features if _simplify(name) in _USUAL_NAMES["label"]]
    if others and roles.label is not None and roles.features is None:
        found = f"{where}: the grades are {roles.label!r}, and {_join(others)} among the features may be grades too"
        way_out = f"Leave them out with {_option('ignore')}, or list {_option('features')}"
        warn(make_printable(f"{found}, which give the label away. {way_out}"), InspectionWarning)
    by_name = [role for role in _USUAL_NAMES if getattr(roles, role) is None and getattr(columns, role) is not None]
    said = [f"{_MEANINGS[role]} {getattr(columns, role)!r}" for role in by_name]
    if columns.label is None:
        said.append("no grades")
    weights = [name for name in columns.features if _WEIGHTS.fullmatch(name)] if roles.features is None else []
    if said or weights:
        n = len(columns.features)
        said.append(f"{n} feature{'s' if n != 1 else ''}")
        said.extend(f"among them {name!r} (for a weight say {_option('weight')})" for name in weights)
        logger.info("%s", make_printable(f"{where}: {', '.join(said)}"))


def check_same_columns(first: TableColumns, other: TableColumns, where: str, first_where: str) -> None:
    """Raise InputError if another file has other features, or another column in some role."""
    for role, meaning in _MEANINGS.items():
        ours, theirs = getattr(first, role), getattr(other, role)
        if ours != theirs:
            found = f"no {meaning}" if theirs is None else f"the {meaning} {theirs!r}"
            expected = "none" if ours is None else repr(ours)
            raise InputError(f"{where}: {found}; expected {expected} as in {first_where}. Name it with {_option(role)}")
    for name in sorted(set(first.features) ^ set(other.features)):
        found = "no column" if name in first.features else "the column"
        raise InputError(
            f"{where}: {found} {name!r}, unlike {first_where}; expected the same columns in each file, in any order. "
            f"Leave it out with {_option('ignore')}"
        )
    for name in sorted(first.categorical ^ other.categorical):
        raise InputError(
            f"{where}: the column {name!r} is categorical in one file only, not in {first_where} too; name it with "
            f"{_option('categorical')}"
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
