"""The parameters of a ranker as the command line shows them: name, default, type and meaning."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from rankwright.cli.app import list_parameters

if TYPE_CHECKING:
    from rankwright.rankers import Ranker

_WIDEST = 120  # columns of a terminal that lines use
_GAP = "  "
_BY_OPTION = {"measure": "--measure", "random_state": "--seed", "backend": "--backend"}
_IN_PYTHON = re.compile(r"column, from 0( \([^)]*\))?")  # the command line counts features from 1


def describe_parameters(ranker: type[Ranker]) -> list[dict[str, Any]]:
    """Return the name, option, type, default and meaning of each parameter; options of training have a row each."""
    from rankwright.rankers import TrainingOptions

    rows = _read_entries(ranker.__doc__, list_parameters(ranker))
    if "training" in ranker.nested_names:
        usual = TrainingOptions()
        defaults = {name: getattr(usual, name) for name in TrainingOptions.names()}
        rows += _read_entries(TrainingOptions.__doc__, defaults, prefix="training.")
    return rows


def get_width() -> int:
    """Return how many columns lines use: those of the terminal, and at most 120."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


def format_parameters(rows: list[dict[str, Any]]) -> str:
    """Return a table of parameters as text, as wide as the terminal and at most 120 columns."""
    width = get_width()
    heads = ("parameter", "default", "type and meaning")
    cells = [(row["name"], _format_default(row["default"]), row) for row in rows]
    first, second = (max(len(heads[at]), *(len(cell[at]) for cell in cells)) for at in (0, 1))
    first, second = min(first, width // 4), min(second, 12)
    indent = " " * (first + second + 2 * len(_GAP))
    lines = [f"{heads[0]:<{first}}{_GAP}{heads[1]:<{second}}{_GAP}{heads[2]}"]
    for name, default, row in cells:
        text = [*_wrap(row["type"], width - len(indent)), *_wrap(row["meaning"], width - len(indent))]
        if len(name) > first or len(default) > second:  # they have a line of their own
            lines += [f"{name:<{first}}{_GAP}{default}", *(indent + line for line in text)]
        else:
            lines.append(f"{name:<{first}}{_GAP}{default:<{second}}{_GAP}{text[0]}")
            lines += [indent + line for line in text[1:]]
    return "\n".join(line.rstrip() for line in lines)


def describe_options(name: str, rows: list[dict[str, Any]]) -> str:
    """Return the sentence that says by which options ``rankwright fit`` takes the parameters of a ranker."""
    own = {row["name"]: row["option"] for row in rows if row["name"] in _BY_OPTION}
    pairs = ", ".join(f"{parameter} by {own[parameter]}" for parameter in _BY_OPTION if parameter in own)
    return f"rankwright fit {name} takes {pairs}, and all others by --set NAME=VALUE."


def _read_entries(docstring: str | None, defaults: dict[str, Any], prefix: str = "") -> list[dict[str, Any]]:
    """Return a row for each parameter of a docstring."""
    from rankwright.rankers.parameter_names import split_entries, split_sections

    rows = []
    for name, entry in split_entries(split_sections(docstring or "").get("Parameters", "")).items():
        head, _, text = entry.partition("\n")
        text = _IN_PYTHON.sub("number, from 1", " ".join(text.split()))
        option = _BY_OPTION.get(name, f"--set {prefix}{name}=")
        row = {"name": prefix + name, "option": option, "type": head.partition(" : ")[2], "default": defaults[name]}
        rows.append(row | {"meaning": re.sub(r"`+", "", text)})
    return rows


def _format_default(value: Any) -> str:
    """Return a default value as --set takes it."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text of this width, and of at least 30 columns."""
    return textwrap.wrap(text, max(width, 30), break_long_words=False, break_on_hyphens=False)
