"""Metavars: what the help calls the value of an option or an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

_BY_TYPE: dict[Any, str] = {Path: "FILE", int: "N", float: "X"}


def set_metavars(command: Callable[..., Any]) -> None:
    """Give each option and argument of a command that has no metavar the one of its type: FILE, N or X."""
    hints = get_type_hints(command, include_extras=True)
    for hint in hints.values():
        if get_origin(hint) is Annotated:
            kind, option = get_args(hint)[:2]
            if option.metavar is None:
                option.metavar = next((_BY_TYPE[each] for each in _list_types(kind) if each in _BY_TYPE), None)
    command.__annotations__ = hints  # those of text would be evaluated anew, without the metavars


def simplify_argument(argument: Any) -> None:
    """Show an argument in help by its metavar alone: in brackets if it is optional, with dots if it is repeated."""
    name = argument.metavar or argument.name.upper()
    usage = name if argument.nargs == 1 or name.endswith("...") else f"{name}..."
    argument.get_usage_pieces = lambda context: [usage if argument.required else f"[{usage}]"]
    argument.get_help_record = lambda context: (name, argument.help or "")


def _list_types(kind: Any) -> Iterator[Any]:
    """Yield a type and those that it is made of."""
    yield kind
    for each in get_args(kind):
        yield from _list_types(each)
