"""Model files: saved whole or not at all, and loaded without running code."""

from __future__ import annotations

from typing import Any

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, open_binary, write_atomic
from rankwright.models.imports import as_model, parse_file
from rankwright.models.model import Model
from rankwright.models.model_json import format_model


def save(fitted: Any, path: StrPath) -> None:
    """Save a fitted ranker, or a model of any library, as a JSON file; if that fails, the file is not changed.

    Parameters
    ----------
    fitted : fitted ranker, Model, or model of another library
        What to save.
    path : str or path
        The file to write; names in ``.gz`` and ``.xz`` are compressed.
    """
    model = as_model(fitted)
    try:
        text = format_model(model, indent=1)
    except InputError as error:
        raise InputError(f"{path}: not written: {error}") from None
    except ValueError:
        raise InputError(f"{path}: not written: the model has weights that are not finite") from None
    with write_atomic(path) as file:
        file.write(text + "\n")


def load(path: StrPath) -> Model:
    """Load a model from a file that Rankwright or another library wrote, without running any code from it.

    Parameters
    ----------
    path : str or path
        The file.
    """
    with open_binary(path) as file:
        return parse_file(file.read(), path)
