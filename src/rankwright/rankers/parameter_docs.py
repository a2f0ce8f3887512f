"""Docstrings of rankers, composed of what a class and its bases document."""

from __future__ import annotations

import re
from inspect import cleandoc, get_annotations
from typing import Any, ClassVar

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
_INHERITED = ("Parameters", "Attributes")


class ComposedDocstring:
    """A base of classes whose docstrings include the parameters and attributes that their bases document.

    Parameters are in the order of the signature. The text of a class replaces that of its bases.
    """

    _sections: ClassVar[dict[str, str]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls._sections = split_sections(vars(cls).get("__doc__") or "")
        if own[""]:
            inherited = {name: "\n".join(_inherit_entries(cls, name).values()) for name in _INHERITED}
            sections = inherited | {name: text for name, text in own.items() if name not in ("", *_INHERITED)}
            headed = [f"{name}\n{'-' * len(name)}\n{text}" for name, text in sections.items() if text]
            cls.__doc__ = "\n\n".join([own[""], *headed]) + "\n"


def split_sections(docstring: str) -> dict[str, str]:
    r"""Return the sections of a numpydoc docstring by heading; what comes before the first heading is under "".

    >>> split_sections("A ranker.\n\nParameters\n----------\nk : int\n    The cut-off.")
    {'': 'A ranker.', 'Parameters': 'k : int\n    The cut-off.'}
    """
    first, *rest = _HEADING.split(cleandoc(docstring))
    return {"": first.rstrip()} | {name: text.rstrip() for name, text in zip(rest[::2], rest[1::2])}


def split_entries(section: str) -> dict[str, str]:
    r"""Return the entries of a numpydoc section by name; names that share an entry each get a copy of it.

    >>> split_entries("low, high : float\n    The range.")
    {'low': 'low : float\n    The range.', 'high': 'high : float\n    The range.'}
    """
    entries = {}
    for entry in filter(None, map(str.rstrip, _ENTRY.split(section))):
        names, _, rest = entry.partition(" : ")
        entries.update({name.strip(): f"{name.strip()} : {rest}" for name in names.split(",")})
    return entries


def _inherit_entries(cls: type[ComposedDocstring], section: str) -> dict[str, str]:
    """Return a section's entries by name, from a class and its bases, in the order of their annotations."""
    entries: dict[str, str] = {}
    order: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        entries |= split_entries(vars(base).get("_sections", {}).get(section, ""))
        order |= dict.fromkeys(get_annotations(base))
    first = {name: entries[name] for name in order if name in entries}
    return first | entries
