"""The options of a measure: their values, and the values that a dialect gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.measures.definitions import DEFINITIONS
from rankwright.measures.dialects import DIALECTS

MAX_GRADE = 1000  # of err: 2^max must be finite
CHOICES: Mapping[str, tuple[str, ...]] = {
    "gain": ("exp", "linear", "pow2"),
    "discount": ("log2", "letor"),
    "empty": ("0", "1", "skip"),
    "short": ("pad", "list", "zero"),
    "norm": ("all", "min"),
    "ties": ("pessimistic", "file", "reverse", "docid", "average"),
}


def check_cut_off(name: str, k: object) -> int | None:
    """Return a cut-off as a whole number from 1, or None."""
    if k is None:
        return None
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise InputError(f"{name}@{k}: the cut-off must be a whole number of at least 1")
    if not DEFINITIONS[name].takes_cut_off:
        raise InputError(f"{name} takes no cut-off")
    return int(k)


def check_option(option: str, value: object) -> str | float | int:
    """Return an option's value, given as a Python value or as the text of a name."""
    text = str(value).strip("'\"")
    if option in CHOICES:
        if text not in CHOICES[option]:
            raise InputError(f"{option}={text}; expected one of {', '.join(CHOICES[option])}")
        return text
    if option == "max" and text == "data":
        return text
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{option}={text}; expected a number") from None
    if option == "max" and not (1 <= number <= MAX_GRADE and number == int(number)):
        raise InputError(f"max={text}; expected a whole number from 1 to {MAX_GRADE}, or data")
    if option == "p" and not 0 < number < 1:
        raise InputError(f"p={text}; expected a number between 0 and 1")
    if option == "rel" and not (math.isfinite(number) and number > 0):
        raise InputError(f"rel={text}; expected a number above 0")
    return int(number) if option == "max" else number


def resolve_dialect(dialect: str, name: str, k: int | None) -> tuple[int | None, dict[str, str | float | int]]:
    """Return the cut-off and the options of a measure in a dialect; raise an error if the dialect does not have it."""
    if dialect not in DIALECTS:
        raise InputError(f"unknown dialect {quote(dialect)}; {suggest(dialect, DIALECTS)}")
    rules, full_name = DIALECTS[dialect], DEFINITIONS[name].full_name
    key = full_name if k is None and full_name is not None and full_name in rules.measures else name
    entry = rules.measures.get(key)
    if entry is None:
        raise InputError(f"{dialect} does not define {name}; it has {', '.join(rules.measures)}")
    default = rules.without_cut_off.get(key) if k is None else None
    if isinstance(entry, str) or isinstance(default, str):
        raise InputError(f"{name}(dialect={dialect}) is refused: {entry if isinstance(entry, str) else default}")
    return (k if default is None else default), {option: check_option(option, value) for option, value in entry.items()}
