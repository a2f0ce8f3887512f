"""Output on streams whose encoding lacks characters: plain signs replace them, so that printing never fails."""

from __future__ import annotations

import codecs
import sys
from typing import Any

_HANDLER = "rankwright-plain"
_RAISED = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
_PLAIN = {
    "▲": "^",
    "▼": "v",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "∞": "inf",
    "\ufffd": "?",  # a byte that is no text
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "±": "+-",
    "π": "pi",
    "θ": "theta",
    "Φ": "Phi",
    "α": "alpha",
    "σ": "sigma",
    "₊": "+",
    "₂": "2",
    **_RAISED,
}


def replace_unencodable_characters() -> None:
    """Make standard output and standard error print ASCII for characters that their encoding lacks.

    Signs that Rankwright prints become plain ones; any other character becomes a backslash and its number. Output
    therefore never fails, whatever names the data have and whatever encoding the terminal or file has.
    """
    codecs.register_error(_HANDLER, _replace_characters)
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)  # a notebook's stream has none, and needs none
        if reconfigure is not None and not stream.closed:
            reconfigure(errors=_HANDLER)


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII text for the characters of an encoding error, and the position after them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    start, end = error.start, error.end
    parts = ["^"] if error.object[start] in _RAISED and error.object[start - 1 : start] not in _RAISED else []
    for character in error.object[start:end]:
        parts.append(_PLAIN.get(character) or character.encode("ascii", "backslashreplace").decode("ascii"))
    return "".join(parts), end
