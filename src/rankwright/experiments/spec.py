"""The spec of an experiment: data x methods x seeds, and the measures that select and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, product
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath
from rankwright.data.feature_numbers import columns_to_numbers, convert_grid
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.experiments.data_sources import FoldFolder, LetorFiles, Source
from rankwright.experiments.parameter_search import Params, Search, as_json, check_whole, is_number
from rankwright.measures import Measure, TableMeasure, parse, split
from rankwright.rankers import Ranker, find_ranker
from rankwright.runtime.backends import Serial

_MOST_CANDIDATES = 10_000  # of a method
_MOST_SEEDS = 1_000
_NOT_SET = ("measure", "backend", "random_state")  # the experiment sets these
_USUAL = (("ndcg", 1), ("ndcg", 3), ("ndcg", 5), ("ndcg", 10), ("ap", None), ("rr", None))


@dataclass(frozen=True, slots=True)
class Method:
    """A ranker and how it is tuned.

    Parameters
    ----------
    ranker : str
        The ranker's name, as on the command line.
    name : str
        What the method is called in results; by default the ranker's class.
    measure : str, optional
        What the ranker is trained on; by default the measure of the experiment.
    params : mapping
        Parameters that are fixed, as the ranker takes them.
    grid : mapping of str to sequence
        Values to try, all combinations.
    search : Search, optional
        Random search instead of a grid.
    """

    ranker: str
    name: str = ""
    measure: str | None = None
    params: Params = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    search: Search | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name != " ".join(self.name.split()):
            raise InputError(f"a method is called {quote(self.name)}; expected words on one line")
        object.__setattr__(self, "name", self.name or self.ranker_class.__name__)
        if self.measure is not None:
            object.__setattr__(self, "measure", str(parse(self.measure)))
        if self.grid and self.search is not None:
            raise InputError(f"{self.name}: a grid and a search; expected one of them")
        self._check_parameters()
        object.__setattr__(self, "params", {key: as_json(value, self.name, key) for key, value in self.params.items()})
        object.__setattr__(self, "grid", {key: as_json(list(v), self.name, key) for key, v in self.grid.items()})
        if self.n_candidates > _MOST_CANDIDATES:
            raise InputError(f"{self.name}: {self.n_candidates} combinations; expected at most {_MOST_CANDIDATES}")

    def _check_parameters(self) -> None:
        known = [name for name in self.ranker_class().get_params(deep=False) if name not in _NOT_SET]
        tried = self.grid if self.search is None else self.search.space
        for key in (*self.params, *tried):
            if key not in known:
                raise InputError(f"{self.name}: {quote(key)} is no parameter to set; {suggest(str(key), known)}")
            if key in self.params and key in tried:
                raise InputError(f"{self.name}: {key} is fixed and tried; expected one of them")
        for key, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or not len(values):
                raise InputError(f"{self.name}: grid.{key} is {quote(values)}; expected a list of values")

    @classmethod
    def of(cls, ranker: Ranker, grid: Mapping[str, Sequence[Any]] | None = None, *, name: str = "") -> Method:
        """The method of a ranker built in Python, with what is not its default; its measure, too, only then."""
        usual, given = type(ranker)().get_params(deep=False), ranker.get_params(deep=False)
        where = name or type(ranker).__name__
        values = {key: as_json(given[key], where, key) for key in usual if key not in _NOT_SET}
        params = {key: value for key, value in values.items() if value != as_json(usual[key], where, key)}
        measure = str(parse(given["measure"]))
        return cls(type(ranker).__name__, name, None if measure == usual["measure"] else measure, params, grid or {})

    @property
    def ranker_class(self) -> type[Ranker]:
        """The class of the ranker."""
        return find_ranker(self.ranker)

    @property
    def n_candidates(self) -> int:
        """The number of combinations of parameters to try."""
        return self.search.n if self.search is not None else prod(map(len, self.grid.values()))

    def candidates(self) -> list[Params]:
        """Every combination of parameters to try, the fixed ones included; of equals the first is chosen."""
        if self.search is not None:
            return [{**self.params, **drawn} for drawn in self.search.candidates()]
        combined = product(*self.grid.values())
        return [{**self.params, **dict(zip(self.grid, values, strict=True))} for values in combined]

    def seeds(self, wanted: Sequence[int]) -> tuple[int, ...]:
        """The seeds that make a difference: for a ranker without randomness 0 alone, whatever is wanted."""
        return tuple(wanted) if "random_state" in self.ranker_class().get_params(deep=False) else (0,)

    def build(self, params: Params, seed: int, measure: str) -> Ranker:
        """An untrained ranker that works serially."""
        random = {"random_state": seed} if "random_state" in self.ranker_class().get_params(deep=False) else {}
        return self.ranker_class(measure=self.measure or measure, backend=Serial(), **random, **params)

    def check_candidates(self, measure: str) -> None:
        """Raise InputError if a combination of parameters has a value that its ranker refuses whatever the data."""
        for params in self.candidates():
            try:
                self.build(params, 0, measure).check_parameters()
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """What a spec says, which numbers features from 1."""
        said: dict[str, Any] = {
            "ranker": self.ranker_class.__name__.lower(),
            "name": self.name,
            "measure": self.measure,
        }
        said |= {"set": columns_to_numbers(self.params), "grid": convert_grid(columns_to_numbers, self.grid)}
        if self.search is not None:
            space = convert_grid(columns_to_numbers, self.search.space)
            said["search"] = {"n": self.search.n, "seed": self.search.seed, **space}
        return {key: value for key, value in said.items() if value not in (None, {})}


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure to be shown beside ours."""

    method: str
    measure: str
    value: float
    source: str = ""
    lowest: float | None = None  # what ours must reach
    note: str = ""  # why ours differs
    by_fold: Sequence[float] = ()  # the figures of the folds, where they are known

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", str(parse(self.measure)))
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
    """Data x methods x seeds: every method is selected on validation queries and measured on test queries.

    Parameters
    ----------
    data : Source, Queries, sequence of Fold, or path
        Where the folds come from. Queries, and a path of a file, are cut into five folds.
    methods : sequence of Method, Ranker or str
        The name of a ranker stands for it with its usual grid.
    measure : str or Measure
        Selects on validation queries, and decides; the default of what is trained on.
    measures : str, or sequence of str or Measure
        What is measured on test queries besides.
    seeds : int or sequence of int
        One run each, for rankers that have randomness; figures are means over them.
    name : str
        What the experiment is called.
    published : sequence of Published
        Figures to be shown beside ours.
    """

    data: Source | Queries | list[Fold]
    methods: tuple[Method, ...]
    measure: str
    measures: tuple[str, ...]
    seeds: tuple[int, ...]
    name: str
    published: tuple[Published, ...]

    def __init__(
        self,
        data: Source | Queries | Sequence[Fold] | StrPath,
        methods: str | Sequence[Method | Ranker | str],
        measure: str | Measure = "ndcg@10",
        measures: str | Sequence[str | Measure] = (),
        seeds: int | Sequence[int] = (0,),
        name: str = "Experiment",
        published: Sequence[Published] = (),
    ) -> None:
        decisive = parse(measure)
        reported = [str(parse(m)) for m in (split(measures) if isinstance(measures, str) else measures)]
        reported = reported or usual_measures(decisive)
        if str(decisive) not in reported:
            reported.insert(0, str(decisive))
        for figure in published:
            if figure.measure not in reported:
                raise InputError(f"published: {figure.measure} is not among the measures, {', '.join(reported)}")
        settled = {
            "data": _as_data(data),
            "methods": _as_methods(methods),
            "measure": str(decisive),
            "measures": tuple(dict.fromkeys(reported)),
            "seeds": _as_seeds(seeds),
            "name": name,
            "published": tuple(published),
        }
        for key, value in settled.items():
            object.__setattr__(self, key, value)

    @property
    def files(self) -> list[Path]:
        """The files that the data are read from; none for data in memory."""
        return [] if isinstance(self.data, (Queries, list)) else self.data.files

    @property
    def curve(self) -> tuple[str, ...]:
        """NDCG at 1 to 10, in the definition of the deciding measure."""
        return tuple(str(_alike(parse(self.measure), "ndcg", k)) for k in range(1, 11))

    def n_trials(self, n_folds: int) -> int:
        """Return the number of trials on so many folds."""
        return n_folds * sum(method.n_candidates * len(method.seeds(self.seeds)) for method in self.methods)

    def with_source(self, source: Source) -> Experiment:
        """The same experiment on data that a worker can read."""
        return replace(self, data=source)

    def to_json(self) -> dict[str, Any]:
        """What a spec says; the data must be a source."""
        assert not isinstance(self.data, (Queries, list))
        said: dict[str, Any] = {"name": self.name, "measure": self.measure, "measures": list(self.measures)}
        said |= {"seeds": list(self.seeds), "data": self.data.to_json()}
        said["methods"] = [method.to_json() for method in self.methods]
        said["published"] = [
            {name: value for name, value in asdict(figure).items() if value not in (None, ())}
            for figure in self.published
        ]
        return said


def _as_data(data: Any) -> Source | Queries | list[Fold]:
    """Data as they may be given in Python."""
    if isinstance(data, (str, PathLike)):
        path = str(Path(data).expanduser().resolve())
        return FoldFolder(path) if Path(path).is_dir() else LetorFiles(file=(path,))
    if isinstance(data, Fold):
        return [data]
    if isinstance(data, Sequence):
        for fold in data:
            if not isinstance(fold, Sequence) or len(fold) != 3 or not all(isinstance(part, Queries) for part in fold):
                raise InputError("data: expected folds of training, validation and test queries")
        if not data:
            raise InputError("data: no folds; expected at least one")
        return [Fold(*fold) for fold in data]
    if not isinstance(data, Queries) and not hasattr(type(data), "n_folds"):
        raise InputError(f"data is a {type(data).__name__}; expected Queries, folds, a path or a source")
    return cast("Source | Queries", data)


def _as_methods(methods: Any) -> tuple[Method, ...]:
    """Methods as they may be given in Python; their names differ."""
    given = methods.split(",") if isinstance(methods, str) else [methods] if isinstance(methods, Ranker) else methods
    found = tuple(
        m if isinstance(m, Method) else Method.of(m) if isinstance(m, Ranker) else usual_method(m) for m in given
    )
    if not found:
        raise InputError("no methods; expected at least one ranker")
    names = [method.name for method in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two methods are called {name!r}; give one of them another name")
    return found


def _as_seeds(seeds: Any) -> tuple[int, ...]:
    found = [seeds] if isinstance(seeds, int | np.integer | str) else list(islice(seeds, _MOST_SEEDS + 1))
    for seed in found:
        check_whole("seeds", seed, 0)
    if len(found) > _MOST_SEEDS:
        raise InputError(f"{len(found)} seeds; expected at most {_MOST_SEEDS}")
    if not found:
        raise InputError("no seeds; expected at least one")
    return tuple(dict.fromkeys(int(seed) for seed in found))


def usual_method(ranker: str) -> Method:
    """A ranker with the grid that is worth trying on any data."""
    if not isinstance(ranker, str):
        raise InputError(f"a method is {quote(ranker)}; expected a Method, a ranker or a name")
    return Method(ranker.strip(), grid=find_ranker(ranker.strip()).usual_grid)


def usual_measures(decisive: Measure) -> list[str]:
    """What is reported if nothing is said, in the definitions of the deciding measure's dialect."""
    return list(dict.fromkeys(str(_alike(decisive, name, k)) for name, k in _USUAL))


def _alike(decisive: Measure, name: str, k: int | None) -> Measure:
    """The measure of this name and cut-off whose definition is like another's, as far as that has a meaning."""
    if not isinstance(decisive, TableMeasure):
        return TableMeasure.of(name, k)
    if decisive.name == name:
        return replace(decisive, k=k)
    try:
        return TableMeasure.of(name, k, **({} if decisive.dialect is None else {"dialect": decisive.dialect}))
    except InputError:  # the dialect does not define it
        return TableMeasure.of(name, k)
