"""The ranker that the options --measure, --set and --seed describe."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from rankwright.cli.app import list_parameters

if TYPE_CHECKING:
    from rankwright.rankers import Ranker


def make_ranker(name: str, measure: str, settings: list[str], seed: int) -> Ranker:
    """Return the unfitted ranker that the command's options describe; ``settings`` are texts such as ``alpha=1``."""
    from rankwright.basics.errors import InputError
    from rankwright.data.feature_numbers import convert_numbers_to_columns
    from rankwright.measures import parse_measure
    from rankwright.rankers import find_ranker
    from rankwright.rankers.parameter_names import explain_unknown

    ranker_class = find_ranker(name)
    defaults = list_parameters(ranker_class)
    known = [name for name in defaults if name != "backend"]
    chosen: dict[str, Any] = {"measure": str(parse_measure(measure))}
    if "random_state" in defaults:
        chosen["random_state"] = seed
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {_shorten(setting)}: expected NAME=VALUE")
        key, dot, part = key.partition(".")  # training.learning_rate=0.01, lightgbm_params.lambda_l2=1
        if key == "measure":
            raise InputError(f"--set {_shorten(setting)}: use --measure")
        if key not in known or (dot and key not in ranker_class.nested_names):
            unknown = explain_unknown(ranker_class.__name__, f"{key}{dot}{part}", known, ranker_class.nested_names)
            raise InputError(f"--set {_shorten(setting)}: {unknown}")
        if dot:
            if not isinstance(chosen.get(key) or {}, dict):
                raise InputError(f"--set {setting}: {key} is {chosen[key]!r} already; expected one or the other")
            chosen[key] = {**(chosen.get(key) or {}), part: _parse_value(part, text, None)}
        else:
            chosen[key] = _parse_value(key, text, defaults[key])
    if chosen.get("warm_start") is True:
        raise InputError(
            "--set warm_start=true: nothing was fitted before; continue a saved model by --set init_model=PATH"
        )
    return ranker_class(**convert_numbers_to_columns(chosen))


def _parse_value(key: str, text: str, default: Any) -> Any:
    """Return a parameter's value, given as text, with the type of its default."""
    from rankwright.basics.errors import InputError

    if text.lower() in ("none", "null"):
        return None
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except json.JSONDecodeError:
        value = text
    except (ValueError, RecursionError):  # thousands of digits or brackets
        raise InputError(f"--set {key}={_shorten(text)}: too long; expected a value like {default!r}") from None
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 10**300 else math.copysign(math.inf, value)
    if key == "hidden":  # one width or several
        return [int(width) for width in text.split(",")] if re.fullmatch(r"\d+(,\d+)*", text) else value
    if isinstance(default, tuple) and default and all(isinstance(each, str) for each in default):
        return tuple(word.strip() for word in text.split(","))  # families=linear,stumps
    if isinstance(default, tuple) and (numbers := _parse_numbers(text)) is not None:
        return numbers
    if default is not None and type(value) is not type(default):
        raise InputError(f"--set {key}={_shorten(text)}: expected a value like {default!r}")
    return value  # the ranker checks the rest


def _shorten(text: str) -> str:
    """Return an option's text for a message, cut if it is too long."""
    return text if len(text) <= 60 else text[:57] + "..."


def _parse_numbers(text: str) -> tuple[float, ...] | None:
    """Return the numbers in a text such as ``[1, 2]`` or ``1,2``; None if it holds anything else."""
    try:
        return tuple(float(word) for word in text.strip("()[] ").split(","))
    except ValueError:
        return None
