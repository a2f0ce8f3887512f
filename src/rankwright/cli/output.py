"""Output on streams whose encoding lacks characters: plain marks instead of an error after all the work."""

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


def show_every_character() -> None:
    """Make standard output and standard error replace what their encoding lacks.

    Our own signs become plain marks, anything else a backslash and its number. So output never fails, whatever the
    names in the data and whatever the encoding of the terminal or the file it is redirected to.
    """
    codecs.register_error(_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)  # a notebook's stream has none, and takes everything
        if reconfigure is not None and not stream.closed:
            reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII text for the characters that an encoding lacks, and where to go on behind them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    start, end = error.start, error.end
    parts = ["^"] if error.object[start] in _RAISED and error.object[start - 1 : start] not in _RAISED else []
    for character in error.object[start:end]:
        parts.append(_PLAIN.get(character) or character.encode("ascii", "backslashreplace").decode("ascii"))
    return "".join(parts), end
