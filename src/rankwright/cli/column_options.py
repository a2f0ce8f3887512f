"""The options that name columns of tables, which every command that reads documents has."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_NAMES = {
    "qid": "The column with query ids (default: qid, query_id, query, ...).",
    "label": "The column with relevance grades (default: label, relevance, grade, rating, ...).",
    "docid": "The column with document ids.",
    "weight": "The column with query weights, the same number in all rows of a query.",
    "doc_weight": "The column with document weights.",
}
_LISTS = {
    "ignore": "Columns to leave out: names or patterns, separated by commas; may be repeated.",
    "features": "Columns that are features: names or patterns, separated by commas (default: all other numbers).",
    "categorical": "Features that are categories: names or patterns, separated by commas; may be repeated.",
}


def add_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name columns; it gets their values as its argument ``columns``.

    The command line parser reads the signature and the annotations of a function. Here they are those of ``command``,
    without ``columns`` and with an option for each role, so that the options are declared once for all commands.
    """

    @wraps(command)
    def run(**arguments: Any) -> None:
        from rankwright.data.column_roles import ColumnRoles

        names = {role: arguments.pop(role) for role in _NAMES}
        lists = {role: split_lists(role, arguments.pop(role)) for role in _LISTS}
        roles = {**names, **{role: value for role, value in lists.items() if value}}
        command(**arguments, columns=ColumnRoles(**roles))

    kinds: dict[str, Any] = {role: Annotated[str | None, _make_option(role, text)] for role, text in _NAMES.items()}
    kinds |= {role: Annotated[list[str] | None, _make_option(role, text)] for role, text in _LISTS.items()}
    hints = get_type_hints(command, localns={"ColumnRoles": object}, include_extras=True)  # not imported by commands
    own = [each for each in inspect.signature(command).parameters.values() if each.name != "columns"]
    kept = [each.replace(annotation=hints[each.name]) for each in own]
    options = [inspect.Parameter(role, _KEYWORD, default=None, annotation=kind) for role, kind in kinds.items()]
    run.__signature__ = inspect.Signature([*kept, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*kept, *options)}
    return run


def _make_option(role: str, text: str) -> Any:
    """Return the option of a role."""
    return typer.Option(f"--{role.replace('_', '-')}", help=text, metavar="NAME" if role in _NAMES else "NAMES")


def split_lists(role: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in the values of an option, each a list separated by commas; quotes keep a comma in a name.

    >>> split_lists("ignore", ["url,title", '"a,b"'])
    ('url', 'title', 'a,b')
    """
    from rankwright.basics.errors import InputError, quote

    names = []
    for text in texts or []:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
        if not found or "" in found:
            option = f"--{role.replace('_', '-')}"
            raise InputError(f"{option} {quote(text)}: expected names of columns, separated by commas")
        names.extend(found)
    return tuple(names)
