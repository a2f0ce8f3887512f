"""Specs in files: experiments are read from TOML, or from the dicts that TOML and JSON hold."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath
from rankwright.data.feature_numbers import convert_grid, convert_numbers_to_columns
from rankwright.experiments.data_sources import source_from_json
from rankwright.experiments.methods import Method
from rankwright.experiments.parameter_search import RandomSearch
from rankwright.experiments.spec import Experiment, PublishedFigure
from rankwright.rankers import find_ranker

_KEYS = ("name", "measure", "measures", "seeds", "data", "methods", "published")
_METHOD_KEYS = ("ranker", "name", "measure", "set", "grid", "search")


def read_experiment(path: StrPath) -> Experiment:
    """Read an experiment's spec, a TOML file, and return the experiment; relative paths start from its folder."""
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except ValueError as error:  # also a number of thousands of digits
        raise InputError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply; expected the spec of an experiment") from None
    try:
        return experiment_from_json(content, Path(path).parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def experiment_from_json(content: Mapping[str, Any], folder: Path) -> Experiment:
    """Return the experiment that a spec's content describes; relative paths start from ``folder``."""
    _check_keys(content, _KEYS, "the spec")
    for key, kind in (("data", dict), ("methods", list)):
        if not isinstance(content.get(key), kind):
            raise InputError(
                f"{key} is {'missing' if key not in content else quote(content[key])}; expected a [{key}] part"
            )
    given: dict[str, Any] = {key: content[key] for key in ("name", "measure", "measures", "seeds") if key in content}
    for key, value in given.items():
        if not isinstance(value, list if key in ("measures", "seeds") else str):
            expected = "a list" if key in ("measures", "seeds") else "a text"
            raise InputError(f"{key} is {quote(value)}; expected {expected}")
    if not isinstance(content.get("published", []), list):
        raise InputError(f"published is {quote(content['published'])}; expected [[published]]")
    methods = [_read_method(entry, f"methods[{i}]") for i, entry in enumerate(content["methods"], 1)]
    published = [_read_published(entry, f"published[{i}]") for i, entry in enumerate(content.get("published", []), 1)]
    return Experiment(source_from_json(content["data"], folder), methods, **given, published=published)


def _read_method(entry: Any, where: str) -> Method:
    """Return the method that an entry of a spec describes."""
    if not isinstance(entry, dict) or not isinstance(entry.get("ranker"), str):
        raise InputError(f'{where}: expected a table with at least ranker = "NAME"')
    _check_keys(entry, _METHOD_KEYS, where)
    for key in ("set", "search"):
        if not isinstance(entry.get(key, {}), dict):
            raise InputError(f"{where}.{key} is {quote(entry[key])}; expected a table")
    grid = entry.get("grid", {})
    if grid == "default":
        grid = find_ranker(entry["ranker"]).default_grid
    if not isinstance(grid, Mapping):
        raise InputError(f'{where}.grid is {quote(grid)}; expected a table of lists, or "default"')
    try:
        search = _read_search(entry["search"]) if "search" in entry else None
        params, grid = convert_numbers_to_columns(entry.get("set", {})), convert_grid(convert_numbers_to_columns, grid)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return Method(entry["ranker"], entry.get("name", ""), entry.get("measure"), params, grid, search)


def _read_search(entry: Mapping[str, Any]) -> RandomSearch:
    """Return the random search that an entry of a spec describes."""
    space = {key: value for key, value in entry.items() if key not in ("n_candidates", "seed")}
    return RandomSearch(
        entry.get("n_candidates", 20), convert_grid(convert_numbers_to_columns, space), entry.get("seed", 0)
    )


def _read_published(entry: Any, where: str) -> PublishedFigure:
    """Return the published figure that an entry of a spec describes."""
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a table")
    _check_keys(entry, tuple(PublishedFigure.__dataclass_fields__), where)
    for key in ("method", "measure", "value"):
        if key not in entry:
            raise InputError(f"{where}: no {key}; expected method, measure and value")
    return PublishedFigure(**entry)


def _check_keys(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raise InputError if part of a spec has a key that is not known."""
    for key in content:
        if key not in known:
            raise InputError(f"{where}: unknown key {quote(key)}; {suggest(key, known)}")
