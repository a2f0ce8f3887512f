"""The spec of an experiment: data, methods, seeds, and the measures that select and report."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath
from rankwright.data.feature_numbers import convert_grid, convert_numbers_to_columns
from rankwright.data.folds import Fold, has_folds
from rankwright.data.queries import Queries
from rankwright.experiments.data_sources import (
    DocumentFiles,
    FoldFolder,
    FoldsInMemory,
    FoldSource,
    QueriesInMemory,
    source_from_json,
)
from rankwright.experiments.fixed_models import AnyMethod, FixedModel, as_methods
from rankwright.experiments.methods import Method, RandomSearch, is_number
from rankwright.measures import Measure, TableMeasure, parse_measure, split_measures
from rankwright.rankers import find_ranker
from rankwright.rankers.input_checks import check_whole

_MOST_SEEDS = 1_000
_DEFAULT_MEASURES = (("ndcg", 1), ("ndcg", 3), ("ndcg", 5), ("ndcg", 10), ("ap", None), ("rr", None))


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure from a paper, a method's value of a measure, that the report shows beside ours.

    Parameters
    ----------
    method : str
        The method, by its name in the experiment.
    measure : str
        The measure.
    value : float
        The published figure.
    source : str
        Where it was published.
    lowest : float, optional
        The value that our figure must reach.
    note : str
        Why our figure differs.
    by_fold : sequence of float
        The figure of each fold, where known.
    """

    method: str
    measure: str
    value: float
    source: str = ""
    lowest: float | None = None  # our figure must reach this
    note: str = ""  # why our figure differs
    by_fold: Sequence[float] = ()  # the figure of each fold, where known

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", str(parse_measure(self.measure)))
        if not isinstance(self.by_fold, (list, tuple)) or not all(is_number(value) for value in self.by_fold):
            raise InputError(f"published.by_fold is {quote(self.by_fold)}; expected a list of numbers")
        object.__setattr__(self, "by_fold", tuple(self.by_fold))
        for name in ("method", "source", "note"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"published.{name} is {quote(getattr(self, name))}; expected a text")
        for name in ("value", "lowest"):
            number = getattr(self, name)
            if not is_number(number) and not (name == "lowest" and number is None):
                raise InputError(f"published.{name} is {quote(number)}; expected a number")


@dataclass(frozen=True, init=False, eq=False)
class Experiment:
    """An experiment: every method is selected on validation queries and measured on test queries, fold by fold.

    Parameters
    ----------
    data : FoldSource, Queries, sequence of Fold, or path
        The source of the folds. Queries, and a path of a file, are cut into five folds.
    methods : sequence of Method, FixedModel, Ranker, str, or a trained model
        The methods to compare. The name of a ranker stands for the ranker with its default grid. A Model, the Path of
        a model file, or a model of another library is only tested (``FixedModel``).
    measure : str or Measure
        The measure that selects on validation queries, and that rankers are trained on by default.
    measures : str, or sequence of str or Measure
        Further measures on the test queries.
    seeds : int or sequence of int
        One run for each, of rankers that depend on a seed; figures are means over the runs.
    name : str
        The title of the experiment.
    published : sequence of PublishedFigure
        Published figures that the report shows beside ours.
    """

    data: FoldSource
    methods: tuple[AnyMethod, ...]
    measure: str
    measures: tuple[str, ...]
    seeds: tuple[int, ...]
    name: str
    published: tuple[PublishedFigure, ...]

    def __init__(
        self,
        data: FoldSource | Queries | Sequence[Fold] | StrPath,
        methods: Any,
        measure: str | Measure = "ndcg@10",
        measures: str | Sequence[str | Measure] = (),
        seeds: int | Sequence[int] = (0,),
        name: str = "Experiment",
        published: Sequence[PublishedFigure] = (),
    ) -> None:
        selecting = parse_measure(measure)
        reported = [
            str(parse_measure(m)) for m in (split_measures(measures) if isinstance(measures, str) else measures)
        ]
        reported = reported or list(
            dict.fromkeys(str(_define_alike(selecting, name, k)) for name, k in _DEFAULT_MEASURES)
        )
        if str(selecting) not in reported:
            reported.insert(0, str(selecting))
        for figure in published:
            if figure.measure not in reported:
                raise InputError(f"published: {figure.measure} is not among the measures, {', '.join(reported)}")
        values = {
            "data": _as_source(data),
            "methods": as_methods(methods),
            "measure": str(selecting),
            "measures": tuple(dict.fromkeys(reported)),
            "seeds": _as_seeds(seeds),
            "name": name,
            "published": tuple(published),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def curve_measures(self) -> tuple[str, ...]:
        """The names of NDCG at 1 to 10, defined as the experiment's measure is."""
        return tuple(str(_define_alike(parse_measure(self.measure), "ndcg", k)) for k in range(1, 11))

    def count_trials(self) -> int:
        """Return the number of trials."""
        per_fold = (method.n_candidates * len(method.filter_seeds(self.seeds)) for method in self.methods)
        return self.data.n_folds * sum(per_fold)

    def with_data(self, data: FoldSource) -> Experiment:
        """Return the same experiment on other data."""
        return replace(self, data=data)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON can hold it; the data must not be in memory."""
        content: dict[str, Any] = {"name": self.name, "measure": self.measure, "measures": list(self.measures)}
        content |= {"seeds": list(self.seeds), "data": self.data.to_json()}
        content["methods"] = [method.to_json() for method in self.methods]
        content["published"] = [
            {name: value for name, value in asdict(figure).items() if value not in (None, ())}
            for figure in self.published
        ]
        return content


def _as_source(data: Any) -> FoldSource:
    """Return the source of folds for the data that a user gives, such as a path or a data set."""
    if isinstance(data, FoldSource):
        return data
    if isinstance(data, Queries):
        return QueriesInMemory(queries=data)
    if isinstance(data, (str, PathLike)):
        path = str(Path(data).expanduser().resolve())
        return FoldFolder(path) if has_folds(path) else DocumentFiles(file=(path,))
    if isinstance(data, Fold):
        return FoldsInMemory((data,))
    if not isinstance(data, Sequence):
        raise InputError(f"data is a {type(data).__name__}; expected Queries, folds, a path or a source")
    for fold in data:
        if not isinstance(fold, Sequence) or len(fold) != 3 or not all(isinstance(part, Queries) for part in fold):
            raise InputError("data: expected folds of training, validation and test queries")
    if not data:
        raise InputError("data: no folds; expected at least one")
    return FoldsInMemory(tuple(Fold(*fold) for fold in data))


def _as_seeds(seeds: Any) -> tuple[int, ...]:
    """Return one or several seeds as a tuple; raise InputError if there are none, too many, or one is not whole."""
    found = [seeds] if isinstance(seeds, int | np.integer | str) else list(islice(seeds, _MOST_SEEDS + 1))
    for seed in found:
        check_whole("seeds", seed, least=0)
    if len(found) > _MOST_SEEDS:
        raise InputError(f"{len(found)} seeds; expected at most {_MOST_SEEDS}")
    if not found:
        raise InputError("no seeds; expected at least one")
    return tuple(dict.fromkeys(int(seed) for seed in found))


def _define_alike(model: Measure, name: str, k: int | None) -> Measure:
    """Return the measure with this name and cut-off, defined as ``model`` or its dialect, else by default."""
    if not isinstance(model, TableMeasure):
        return TableMeasure.of(name, k)
    if model.name == name:
        return replace(model, k=k)
    try:
        return TableMeasure.of(name, k, **({} if model.dialect is None else {"dialect": model.dialect}))
    except InputError:  # the dialect does not define it
        return TableMeasure.of(name, k)


_KEYS = ("name", "measure", "measures", "seeds", "data", "methods", "published")
_METHOD_KEYS = ("ranker", "name", "measure", "set", "grid", "search")
_MODEL_KEYS = ("model", "name", "digest")


def read_experiment(path: StrPath) -> Experiment:
    """Read an experiment's spec, a TOML file, and return the experiment; relative paths start from its folder.

    Parameters
    ----------
    path : str or path
        The file.
    """
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
    methods = [_read_method(entry, folder, f"methods[{i}]") for i, entry in enumerate(content["methods"], 1)]
    published = [_read_published(entry, f"published[{i}]") for i, entry in enumerate(content.get("published", []), 1)]
    return Experiment(source_from_json(content["data"], folder), methods, **given, published=published)


def _read_method(entry: Any, folder: Path, where: str) -> AnyMethod:
    """Return the method that an entry of a spec describes; the path of a model starts from ``folder``."""
    if isinstance(entry, dict) and isinstance(entry.get("model"), str):
        return _read_model(entry, folder, where)
    if not isinstance(entry, dict) or not isinstance(entry.get("ranker"), str):
        raise InputError(f'{where}: expected a table with at least ranker = "NAME" or model = "FILE"')
    _check_keys(entry, _METHOD_KEYS, where)
    for key in ("set", "search"):
        if not isinstance(entry.get(key, {}), dict):
            raise InputError(f"{where}.{key} is {quote(entry[key])}; expected a table")
    grid = entry.get("grid", {})
    if grid == "default":
        fixed = entry.get("set", {})
        grid = {key: values for key, values in find_ranker(entry["ranker"]).default_grid.items() if key not in fixed}
    if not isinstance(grid, Mapping):
        raise InputError(f'{where}.grid is {quote(grid)}; expected a table of lists, or "default"')
    try:
        search = _read_search(entry["search"]) if "search" in entry else None
        params, grid = convert_numbers_to_columns(entry.get("set", {})), convert_grid(convert_numbers_to_columns, grid)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return Method(entry["ranker"], entry.get("name", ""), entry.get("measure"), params, grid, search)


def _read_model(entry: Mapping[str, Any], folder: Path, where: str) -> FixedModel:
    """Return the trained model that an entry of a spec describes; raise InputError if it has another digest."""
    if "ranker" in entry:
        raise InputError(f"{where}: a ranker and a model; expected one of them")
    _check_keys(entry, _MODEL_KEYS, where)
    found = FixedModel(folder / Path(entry["model"]).expanduser(), entry.get("name", ""))
    if found.digest != entry.get("digest", found.digest):
        raise InputError(f"{where}: {found.path} has the digest {found.digest}; expected {quote(entry['digest'])}")
    return found


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
