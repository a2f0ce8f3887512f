"""Specs as text: an experiment from TOML, or from what JSON can hold."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwright.errors import InputError, shown, suggest
from rankwright.experiments.sources import source_from_json
from rankwright.experiments.spec import Experiment, Method, Published, Search
from rankwright.files import StrPath
from rankwright.measures import parse
from rankwright.rankers import find_ranker

_KEYS = ("name", "measure", "measures", "seeds", "data", "methods", "published")
_METHOD_KEYS = ("ranker", "name", "measure", "set", "grid", "search")
_KINDS = {"uniform": 2, "log": 2, "int": 2, "choice": None}


def read_experiment(path: StrPath) -> Experiment:
    """Read the spec of an experiment from a TOML file; paths in it are taken from the file's folder."""
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    try:
        return experiment_from_json(content, Path(path).parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def experiment_from_json(content: Mapping[str, Any], folder: Path) -> Experiment:
    """The experiment that a spec describes."""
    _check_keys(content, _KEYS, "the spec")
    for key, kind in (("data", dict), ("methods", list)):
        if not isinstance(content.get(key), kind):
            raise InputError(
                f"{key} is {'missing' if key not in content else shown(content[key])}; expected a [{key}] part"
            )
    given: dict[str, Any] = {key: content[key] for key in ("name", "measure", "measures", "seeds") if key in content}
    for key, value in given.items():
        if isinstance(value, str) is (key in ("measures", "seeds")):
            expected = "a list" if key in ("measures", "seeds") else "a text"
            raise InputError(f"{key} is {shown(value)}; expected {expected}")
    methods = [_method(entry, f"methods[{i}]") for i, entry in enumerate(content["methods"], 1)]
    published = [_published(entry, f"published[{i}]") for i, entry in enumerate(content.get("published", []), 1)]
    return Experiment(source_from_json(content["data"], folder), methods, **given, published=published)


def _method(entry: Any, where: str) -> Method:
    if not isinstance(entry, dict) or not isinstance(entry.get("ranker"), str):
        raise InputError(f'{where}: expected a table with at least ranker = "NAME"')
    _check_keys(entry, _METHOD_KEYS, where)
    for key in ("set", "search"):
        if not isinstance(entry.get(key, {}), dict):
            raise InputError(f"{where}.{key} is {shown(entry[key])}; expected a table")
    grid = entry.get("grid", {})
    if grid == "usual":
        grid = find_ranker(entry["ranker"]).usual_grid
    if not isinstance(grid, Mapping):
        raise InputError(f'{where}.grid is {shown(grid)}; expected a table of lists, or "usual"')
    search = _search(entry["search"], where) if "search" in entry else None
    return Method(entry["ranker"], entry.get("name", ""), entry.get("measure"), entry.get("set", {}), grid, search)


def _search(entry: Mapping[str, Any], where: str) -> Search:
    space = {key: value for key, value in entry.items() if key not in ("n", "seed")}
    n, seed = entry.get("n", 20), entry.get("seed", 0)
    if type(n) is not int or n < 1 or type(seed) is not int or seed < 0:
        raise InputError(f"{where}.search: n is {n!r} and seed {seed!r}; expected whole numbers")
    for key, how in space.items():
        if not isinstance(how, dict) or len(how) != 1 or next(iter(how)) not in _KINDS:
            kinds = f"one of {', '.join(_KINDS)}, as in {{ log = [0.001, 10] }}"
            raise InputError(f"{where}.search.{key} is {shown(how)}; expected {kinds}")
        kind, values = next(iter(how.items()))
        _check_range(kind, values, f"{where}.search.{key}.{kind}")
    return Search(n, space, seed)


def _check_range(kind: str, values: Any, where: str) -> None:
    if not isinstance(values, list) or not values or _KINDS[kind] not in (None, len(values)):
        expected = "a list" if kind == "choice" else "[lowest, highest]"
        raise InputError(f"{where} is {shown(values)}; expected {expected}")
    if kind == "choice":
        return
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not numbers or values[0] > values[1] or (kind == "log" and values[0] <= 0):
        raise InputError(f"{where} is {shown(values)}; expected [lowest, highest]{' above 0' if kind == 'log' else ''}")


def _published(entry: Any, where: str) -> Published:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a table")
    _check_keys(entry, tuple(Published.__dataclass_fields__), where)
    for key, kind in (("method", str), ("measure", str), ("value", (int, float))):
        if not isinstance(entry.get(key), kind):
            raise InputError(f"{where}.{key} is {shown(entry.get(key))}; expected method, measure and value")
    return Published(**{**entry, "measure": str(parse(entry["measure"]))})


def _check_keys(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in content:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; {suggest(key, known)}")
