"""The methods of an experiment: rankers, and the parameters that are tried for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote
from rankwright.data.feature_numbers import convert_columns_to_numbers, convert_grid
from rankwright.measures import parse_measure
from rankwright.rankers import Ranker, TrainingOptions, find_ranker
from rankwright.rankers.input_checks import check_whole
from rankwright.rankers.parameter_names import explain_unknown
from rankwright.runtime.backends import Serial

Params = dict[str, Any]

_DEEPEST = 20  # nested lists and tables


@dataclass(frozen=True, slots=True)
class RandomSearch:
    """A random search: how many candidates to try, and the ranges from which their parameters are drawn.

    Parameters
    ----------
    n_candidates : int
        The number of candidates to draw.
    space : mapping of str to mapping
        The distribution of each parameter: ``{"uniform": [low, high]}``, ``{"log_uniform": [low, high]}``,
        ``{"int": [low, high]}`` or ``{"choice": [...]}``.
    seed : int
        The seed of the draws.
    """

    n_candidates: int
    space: Mapping[str, Mapping[str, Sequence[Any]]]
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("search.n_candidates", self.n_candidates, least=1)
        check_whole("search.seed", self.seed, least=0)
        if not self.space:
            raise InputError("search: no parameter; expected some, as in alpha = { log_uniform = [0.001, 10] }")
        space = {key: as_json(how, "search", key) for key, how in self.space.items()}
        object.__setattr__(self, "space", space)
        for key, how in space.items():
            if not isinstance(how, Mapping) or len(how) != 1 or next(iter(how)) not in _DISTRIBUTIONS:
                kinds = f"one of {', '.join(_DISTRIBUTIONS)}, as in {{ log_uniform = [0.001, 10] }}"
                raise InputError(f"search.{key} is {quote(how)}; expected {kinds}")
            kind, values = next(iter(how.items()))
            _check_range(kind, values, f"search.{key}.{kind}")

    def draw_candidates(self) -> list[Params]:
        """Return the candidates, which are the same at every call."""
        rng = np.random.default_rng(self.seed)
        return [{name: _draw_value(how, rng) for name, how in self.space.items()} for _ in range(self.n_candidates)]


_DISTRIBUTIONS = ("uniform", "log_uniform", "int", "choice")


def _check_range(kind: str, values: Any, where: str) -> None:
    """Raise InputError if a parameter's range does not fit its kind, such as "int" or "choice"."""
    expected = "a list" if kind == "choice" else "[lowest, highest]"
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise InputError(f"{where} is {quote(values)}; expected {expected}")
    if kind == "choice":
        return
    numbers = len(values) == 2 and all(is_number(v) and abs(v) < 2**53 for v in values)
    if kind == "int" and numbers and any(v != int(v) for v in values):
        raise InputError(f"{where} is {quote(values)}; expected two whole numbers")
    if not numbers or values[0] > values[1] or (kind == "log_uniform" and values[0] <= 0):
        raise InputError(
            f"{where} is {quote(values)}; expected {expected}{' above 0' if kind == 'log_uniform' else ''}"
        )


def _draw_value(how: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> Any:
    """Return a random value of a parameter from its range."""
    kind, values = next(iter(how.items()))
    if kind == "choice":
        return values[int(rng.integers(len(values)))]
    low, high = values
    if kind == "int":
        return int(rng.integers(int(low), int(high) + 1))
    if kind == "log_uniform":
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return float(rng.uniform(low, high))


def as_json(value: Any, where: str, key: str, depth: int = 0) -> Any:
    """Return a parameter's value in types that JSON can hold; raise InputError if that is not possible."""
    if depth > _DEEPEST:
        raise InputError(f"{where}: {key} has more than {_DEEPEST} lists inside each other")
    if isinstance(value, TrainingOptions):
        value = asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): as_json(item, where, key, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item, where, key, depth + 1) for item in value]
    if value is None or isinstance(value, bool | str | int) or is_number(value):
        return value
    raise InputError(f"{where}: {key} is {quote(value)}; expected numbers, texts, lists and tables")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    is_real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return is_real and bool(abs(value) <= sys.float_info.max)  # isfinite fails for integers of hundreds of digits


_MOST_CANDIDATES = 10_000  # for one method
_NOT_SET = ("measure", "backend", "random_state")  # the experiment sets these


def check_method_name(name: Any) -> None:
    """Raise InputError if the name of a method is not a text on one line; it may be empty."""
    if not isinstance(name, str) or name != " ".join(name.split()):
        raise InputError(f"a method is called {quote(name)}; expected words on one line")


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an experiment: a ranker, its fixed parameters, and those to try.

    Parameters
    ----------
    ranker : str
        The ranker's name, as on the command line.
    name : str
        The method's name in results; by default the name of the ranker's class.
    measure : str, optional
        The measure the ranker is trained on; by default that of the experiment.
    params : mapping
        Parameters with fixed values, as the ranker takes them.
    grid : mapping of str to sequence
        Values to try, in all combinations.
    search : RandomSearch, optional
        Random search instead of a grid.
    """

    ranker: str
    name: str = ""
    measure: str | None = None
    params: Params = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    search: RandomSearch | None = None

    def __post_init__(self) -> None:
        check_method_name(self.name)
        object.__setattr__(self, "name", self.name or self.ranker_class.__name__)
        if self.measure is not None:
            object.__setattr__(self, "measure", str(parse_measure(self.measure)))
        if self.grid and self.search is not None:
            raise InputError(f"{self.name}: a grid and a search; expected one of them")
        self._check_names()
        object.__setattr__(self, "params", {key: as_json(value, self.name, key) for key, value in self.params.items()})
        object.__setattr__(self, "grid", {key: as_json(list(v), self.name, key) for key, v in self.grid.items()})
        if self.n_candidates > _MOST_CANDIDATES:
            raise InputError(f"{self.name}: {self.n_candidates} combinations; expected at most {_MOST_CANDIDATES}")

    def _check_names(self) -> None:
        ranker = self.ranker_class
        known = [name for name in ranker.parameter_names() if name not in _NOT_SET]
        tried = self.grid if self.search is None else self.search.space
        for key in (*self.params, *tried):
            if key in _NOT_SET:
                raise InputError(f"{self.name}: {key} is set by the experiment, not by a method")
            if key not in known:
                unknown = explain_unknown(ranker.__name__, key, known, ranker.nested_names)
                raise InputError(unknown if self.name == ranker.__name__ else f"{self.name}: {unknown}")
            if key in self.params and key in tried:
                raise InputError(f"{self.name}: {key} is fixed and tried; expected one of them")
        for key, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or not len(values):
                raise InputError(f"{self.name}: grid.{key} is {quote(values)}; expected a list of values")

    @classmethod
    def from_ranker(cls, ranker: Ranker, grid: Mapping[str, Sequence[Any]] | None = None, *, name: str = "") -> Method:
        """Return the method of a ranker built in Python, with the parameters and the measure that are not defaults."""
        defaults, given = type(ranker)().get_params(deep=False), ranker.get_params(deep=False)
        where = name or type(ranker).__name__
        values = {key: as_json(given[key], where, key) for key in defaults if key not in _NOT_SET}
        params = {key: value for key, value in values.items() if value != as_json(defaults[key], where, key)}
        measure = str(parse_measure(given["measure"]))
        return cls(type(ranker).__name__, name, None if measure == defaults["measure"] else measure, params, grid or {})

    @classmethod
    def with_default_grid(cls, ranker: str) -> Method:
        """Return the method of a ranker's name, with the ranker's default grid."""
        if not isinstance(ranker, str):
            raise InputError(f"a method is {quote(ranker)}; expected a Method, a ranker, its name or a FixedModel")
        return cls(ranker.strip(), grid=find_ranker(ranker.strip()).default_grid)

    @property
    def ranker_class(self) -> type[Ranker]:
        """The class of the ranker."""
        return find_ranker(self.ranker)

    @property
    def identity(self) -> tuple[str, str | None]:
        """The facts that, with parameters, seed and experiment, determine its results on a fold."""
        return self.ranker_class.__name__, self.measure

    @property
    def n_candidates(self) -> int:
        """The number of combinations of parameters to try."""
        return self.search.n_candidates if self.search is not None else prod(map(len, self.grid.values()))

    def list_candidates(self) -> list[Params]:
        """Return the combinations of parameters to try, fixed ones included; the first of equally good ones wins."""
        if self.search is not None:
            return [{**self.params, **drawn} for drawn in self.search.draw_candidates()]
        combined = product(*self.grid.values())
        return [{**self.params, **dict(zip(self.grid, values, strict=True))} for values in combined]

    @property
    def is_random(self) -> bool:
        """Whether the ranker depends on a seed."""
        return "random_state" in self.ranker_class().get_params(deep=False)

    def filter_seeds(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return the seeds, or 0 alone for a ranker that does not depend on a seed."""
        return tuple(seeds) if self.is_random else (0,)

    def make_ranker(self, params: Params, seed: int, measure: str) -> Ranker:
        """Return an unfitted ranker that works serially."""
        random = {"random_state": seed} if self.is_random else {}
        return self.ranker_class(measure=self.measure or measure, backend=Serial(), **random, **params)

    def check_candidates(self, measure: str) -> None:
        """Raise InputError if a combination of parameters has a value that its ranker refuses whatever the data."""
        for params in self.list_candidates():
            try:
                ranker = self.make_ranker(params, 0, measure)
                ranker.check_parameters()
                if ranker.pools_valid and parse_measure(ranker.measure) != parse_measure(measure):
                    raise InputError(
                        f"measure={str(ranker.measure)!r}; expected {measure!r}, that of the experiment: the ranker "
                        "trains on the validation queries as well, and is chosen by its own estimate of its measure"
                    )
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None

    def to_definition(self) -> dict[str, Any]:
        """Return what the store compares: all of the method's part of a spec."""
        return self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the method's part of a spec, which numbers features from 1."""
        content: dict[str, Any] = {
            "ranker": self.ranker_class.__name__.lower(),
            "name": self.name,
            "measure": self.measure,
        }
        content |= {
            "set": convert_columns_to_numbers(self.params),
            "grid": convert_grid(convert_columns_to_numbers, self.grid),
        }
        if self.search is not None:
            space = convert_grid(convert_columns_to_numbers, self.search.space)
            content["search"] = {"n_candidates": self.search.n_candidates, "seed": self.search.seed, **space}
        return {key: value for key, value in content.items() if value not in (None, {})}
