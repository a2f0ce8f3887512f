"""The spec of an experiment: data x methods x seeds, and the measures that select and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from rankwright.backends import Serial
from rankwright.data import Queries
from rankwright.errors import InputError, shown, suggest
from rankwright.experiments.sources import Source
from rankwright.folds import Fold
from rankwright.measures import Measure, TableMeasure, parse
from rankwright.models import plain
from rankwright.rankers import Ranker, find_ranker

Params = dict[str, Any]

_MOST_CANDIDATES = 10_000
_NOT_SET = ("measure", "backend", "random_state")  # the experiment sets these
_USUAL = (("ndcg", 1), ("ndcg", 3), ("ndcg", 5), ("ndcg", 10), ("ap", None), ("rr", None))


@dataclass(frozen=True, slots=True)
class Search:
    """Random search: ``n`` draws of parameters, each uniform, log-uniform, an integer, or one of several."""

    n: int
    space: Mapping[str, Mapping[str, Sequence[Any]]]
    seed: int = 0

    def candidates(self) -> list[Params]:
        """The draws; the same seed gives the same."""
        rng = np.random.default_rng(self.seed)
        return [{name: _draw(name, how, rng) for name, how in self.space.items()} for _ in range(self.n)]


def _draw(name: str, how: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> Any:
    kind, values = next(iter(how.items()))
    if kind == "choice":
        return values[int(rng.integers(len(values)))]
    low, high = values
    if kind == "int":
        return int(rng.integers(low, high + 1))
    if kind == "log":
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return float(rng.uniform(low, high))


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
        Parameters that are fixed.
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
        object.__setattr__(self, "name", self.name or self.ranker_class.__name__)
        known = self.ranker_class().get_params(deep=False)
        for given in (self.params, self.grid, {} if self.search is None else self.search.space):
            for key in given:
                if key not in known or key in _NOT_SET:
                    usable = [name for name in known if name not in _NOT_SET]
                    raise InputError(f"{self.name}: {key!r} is no parameter to set; {suggest(key, usable)}")
        if self.grid and self.search is not None:
            raise InputError(f"{self.name}: a grid and a search; expected one of them")
        for key, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
                raise InputError(f"{self.name}: grid.{key} is {shown(values)}; expected a list of values")
        if self.measure is not None:
            object.__setattr__(self, "measure", str(parse(self.measure)))
        if len(self.candidates()) > _MOST_CANDIDATES:
            raise InputError(f"{self.name}: {len(self.candidates())} combinations; expected at most {_MOST_CANDIDATES}")

    @classmethod
    def of(cls, ranker: Ranker, grid: Mapping[str, Sequence[Any]] | None = None, *, name: str = "") -> Method:
        """The method of a ranker built in Python, with what is not its default."""
        usual = type(ranker)().get_params(deep=False)
        given = ranker.get_params(deep=False)
        params = {key: given[key] for key in usual if key not in _NOT_SET and given[key] != usual[key]}
        if plain(params) != params:
            raise InputError(f"{type(ranker).__name__}: parameters {shown(params)}; expected numbers, texts and lists")
        return cls(type(ranker).__name__, name, str(parse(ranker.measure)), params, grid or {})

    @property
    def ranker_class(self) -> type[Ranker]:
        """The class of the ranker."""
        return find_ranker(self.ranker)

    def candidates(self) -> list[Params]:
        """Every combination of parameters to try, the fixed ones included; of equals the first is chosen."""
        if self.search is not None:
            return [{**self.params, **drawn} for drawn in self.search.candidates()]
        combined = product(*self.grid.values())
        return [{**self.params, **dict(zip(self.grid, values, strict=True))} for values in combined]

    def seeds(self, wanted: Sequence[int]) -> tuple[int, ...]:
        """The seeds that make a difference: one is enough for a ranker without randomness."""
        return tuple(wanted) if "random_state" in self.ranker_class().get_params(deep=False) else tuple(wanted[:1])

    def build(self, params: Params, seed: int, measure: str) -> Ranker:
        """An untrained ranker that works serially."""
        random = {"random_state": seed} if "random_state" in self.ranker_class().get_params(deep=False) else {}
        return self.ranker_class(measure=self.measure or measure, backend=Serial(), **random, **params)

    def to_json(self) -> dict[str, Any]:
        """What a spec says."""
        said: dict[str, Any] = {
            "ranker": self.ranker_class.__name__.lower(),
            "name": self.name,
            "measure": self.measure,
        }
        said |= {"set": dict(self.params), "grid": {key: list(values) for key, values in self.grid.items()}}
        if self.search is not None:
            said["search"] = {"n": self.search.n, "seed": self.search.seed, **self.search.space}
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


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Data x methods x seeds: every method is selected on validation queries and measured on test queries.

    Parameters
    ----------
    data : Source, Queries or sequence of Fold
        Where the folds come from. Queries are cut into five folds.
    methods : sequence of Method, or of names of rankers
        A name stands for the ranker with its usual grid.
    measure : str
        Selects on validation queries, and decides; the default of what is trained on.
    measures : sequence of str
        What is measured on test queries besides.
    seeds : sequence of int
        One run each, for rankers that have randomness; figures are means over them.
    name : str
        What the experiment is called.
    """

    data: Source | Queries | Sequence[Fold]
    methods: Sequence[Method]
    measure: str = "ndcg@10"
    measures: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    name: str = "Experiment"
    published: Sequence[Published] = ()

    def __post_init__(self) -> None:
        methods = tuple(usual_method(m) if isinstance(m, str) else m for m in self.methods)
        if not methods:
            raise InputError("no methods; expected at least one ranker")
        names = [method.name for method in methods]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two methods are called {name!r}; give one of them another name")
        if not self.seeds or any(type(seed) is not int or seed < 0 for seed in self.seeds):
            raise InputError(f"seeds are {shown(list(self.seeds))}; expected whole numbers")
        decisive = parse(self.measure)
        wanted = [str(parse(m)) for m in self.measures] or usual_measures(decisive)
        if str(decisive) not in wanted:
            wanted.insert(0, str(decisive))
        settled = {
            "methods": methods,
            "measure": str(decisive),
            "measures": tuple(dict.fromkeys(wanted)),
            "seeds": tuple(dict.fromkeys(self.seeds)),
            "published": tuple(self.published),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def curve(self) -> tuple[str, ...]:
        """NDCG at 1 to 10, in the definition of the deciding measure."""
        return tuple(str(_alike(parse(self.measure), "ndcg", k)) for k in range(1, 11))

    def with_source(self, source: Source) -> Experiment:
        """The same experiment on data that a worker can read."""
        return replace(self, data=source)

    def to_json(self) -> dict[str, Any]:
        """What a spec says; the data must be a source."""
        assert hasattr(self.data, "to_json")
        said: dict[str, Any] = {"name": self.name, "measure": self.measure, "measures": list(self.measures)}
        said |= {"seeds": list(self.seeds), "data": self.data.to_json()}
        said["methods"] = [method.to_json() for method in self.methods]
        said["published"] = [
            {name: value for name, value in asdict(figure).items() if value is not None} for figure in self.published
        ]
        return said


def usual_method(ranker: str) -> Method:
    """A ranker with the grid that is worth trying on any data."""
    return Method(ranker, grid=find_ranker(ranker).usual_grid)


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
