"""Random search of parameters, and checks of the values in a spec."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote
from rankwright.rankers import TrainingOptions
from rankwright.rankers.input_checks import check_whole

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
