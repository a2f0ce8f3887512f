"""Files of feature names: the name of each feature of a model in a target."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath, open_binary, skip_byte_order_mark

_HEADER = ("feature", "name")


def read_names(path: StrPath, known: Sequence[str]) -> dict[str, str]:
    """Read a CSV file with a feature of the model and its name in the target on each line.

    Parameters
    ----------
    path : str or Path
        The file. Its first line may be the header ``feature,name``; empty lines are skipped.
    known : sequence of str
        The features of the model: their names or, if it has none, their numbers from 1.

    Returns
    -------
    dict of str to str
        The names in the target by feature; features that are not in the file are not in it.
    """
    with open_binary(path) as file:
        data = skip_byte_order_mark(file.read())
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8; convert the file to UTF-8") from None
    reader = csv.reader(lines, strict=True)
    names: dict[str, str] = {}
    places: dict[str, int] = {}  # the lines of the names
    try:
        for row in reader:
            words = [word.strip() for word in row]
            is_header = not names and tuple(word.lower() for word in words) == _HEADER and _HEADER[0] not in known
            if any(words) and not is_header:
                _add_name(names, places, words, known, f"{path}:{reader.line_num}", reader.line_num)
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV: {error}; expected feature,name") from None
    if not names:
        raise InputError(f"{path}: no names; expected a line feature,name for each feature to be renamed")
    return names


def _add_name(
    names: dict[str, str], places: dict[str, int], words: list[str], known: Sequence[str], where: str, line: int
) -> None:
    """Add the name on a line; raise InputError if the line is not a known feature and a name that is new."""
    if len(words) != 2 or not all(words):
        raise InputError(f"{where}: found {quote(','.join(words))}; expected two values, feature,name")
    feature, name = words
    if feature not in known:
        raise InputError(f"{where}: the model has no feature {quote(feature)}; {suggest(feature, known)}")
    if feature in names:
        raise InputError(f"{where}: a second name for the feature {quote(feature)}; expected one")
    if name in places:
        raise InputError(f"{where}: the name {quote(name)} is on line {places[name]} too; expected names that differ")
    names[feature], places[name] = name, line
