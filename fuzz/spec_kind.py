"""Specs of experiments, in TOML."""

from __future__ import annotations

import json
import tomllib
from random import Random
from typing import Any, NamedTuple

from fuzz.cases import UNDECIDED, Kind
from fuzz.mutation import maybe, mutate_bytes, wrap_text
from fuzz.trees import Raw, change_value
from rankwright.experiments import Experiment, read_experiment

_MEASURES = ("ndcg@10", "ndcg@1", "map", "mrr", "err@10", "p@5")
_RANKERS: dict[str, tuple[str, dict[str, tuple[Any, ...]]]] = {
    "regression": ("Regression", {"alpha": (0.01, 0.1, 1.0, 10.0), "scale": ("standard", "query")}),
    "adarank": ("AdaRank", {"n_estimators": (1, 5, 100)}),
    "rankboost": ("RankBoost", {"n_estimators": (1, 5, 100)}),
}
_KEYS = ("name", "measure", "measures", "seeds", "data", "methods", "published")
_METHOD_KEYS = ("ranker", "name", "measure", "set", "grid", "search")
_PUBLISHED_KEYS = ("method", "measure", "value", "source", "lowest", "note", "by_fold")
_SOURCES = {"folds": ("folds",), "file": ("file", "n_folds", "seed"), "qrels": ("qrels", "runs", "n_folds", "seed")}
_LITERALS: tuple[str, ...] = (
    "1979-05-27",
    "1979-05-27T07:32:00Z",
    "07:32:00",
    "nan",
    "-inf",
    "1_000",
    "0x10",
    "1e400",
    "'''a\nb'''",
    "{}",
)
_LITERALS += (
    "9" * 5000,
    "[" * 2000 + "]" * 2000,
    "{a = " * 300 + "1" + "}" * 300,
    '"\\ud800"',
    '"\\u0000"',
    "+1",
    "01",
    "",
)


class Content(NamedTuple):
    """What a spec says, as far as it is compared."""

    name: str
    measure: str
    seeds: tuple[int, ...]
    methods: list[tuple[str, str]]


class Specs(Kind):
    """A spec of an experiment."""

    name = "spec"

    def make(self, rng: Random) -> bytes:
        """Make a spec, most of the time damaged in one place."""
        content = _make_spec(rng)
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            change_value(rng, content)
        data = _as_toml(content, rng).encode("utf-8", errors="replace")
        if maybe(rng, 0.15):
            data = mutate_bytes(rng, data)
        return wrap_text(rng, data) if maybe(rng, 0.2) else data

    def reference(self, data: bytes) -> Any:
        """Check the parts that the documentation describes; of the values of parameters a few are known."""
        try:
            content = tomllib.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
        return _Reference(content).decide()

    def read(self, data: bytes) -> Experiment:
        """Read it, and write what it says."""
        found = read_experiment(self.write(data, "spec.toml"))
        json.dumps(found.to_json(), allow_nan=False)
        return found

    def difference(self, expected: Content, found: Experiment) -> str:
        """Compare what is known of it."""
        methods = [(method.identity[0], method.name) for method in found.methods]
        said = Content(found.name, found.measure.partition("(")[0], found.seeds, methods)
        return "" if said == expected else "what the spec says"


class _Reference:
    """The rules of docs/experiments.md, one by one."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.wrong = self.unsure = False

    def decide(self) -> Any:
        """Return what the spec says, None if a rule is broken, or that nothing is known."""
        content = self.content
        self.require(all(key in _KEYS for key in content))
        self.require(type(content.get("data")) is dict and type(content.get("methods")) is list)
        self.require(all(type(content.get(key, "")) is str for key in ("name", "measure")))
        self.require(all(type(content.get(key, [])) is list for key in ("measures", "seeds", "published")))
        if self.wrong:
            return None
        self.check_data(content["data"])
        self.check_seeds(content.get("seeds", [0]))
        for measure in (content.get("measure", "ndcg@10"), *content.get("measures", [])):
            self.trust(measure in _MEASURES if type(measure) is str else False)
        methods = [self.check_method(entry) for entry in content["methods"]]
        names = [name for _, name in methods]
        self.require(bool(methods) and len(set(names)) == len(names))
        for entry in content.get("published", []):
            self.check_published(entry)
        if self.wrong:
            return None
        if self.unsure:
            return UNDECIDED
        name, measure = content.get("name", "Experiment"), content.get("measure", "ndcg@10")
        return Content(name, measure, tuple(dict.fromkeys(content.get("seeds", [0]))), methods)

    def require(self, right: bool) -> None:
        """Note a rule; a spec that breaks it must be refused."""
        self.wrong |= not right

    def trust(self, known: bool) -> None:
        """Note a value; of one that is not known, nothing is expected."""
        self.unsure |= not known

    def check_seeds(self, seeds: list[Any]) -> None:
        """Whole numbers from 0, at least one."""
        self.require(bool(seeds) and all(type(seed) is int and seed >= 0 for seed in seeds))
        self.trust(all(type(seed) is int and seed < 2**31 for seed in seeds))

    def check_data(self, data: dict[str, Any]) -> None:
        """One of three kinds of sources."""
        kinds = [kind for kind in _SOURCES if kind in data]
        self.require(len(kinds) == 1 and all(key in _SOURCES[kinds[0]] for key in data))
        if self.wrong:
            return
        self.require(kinds[0] != "qrels" or "runs" in data)
        for key, value in data.items():
            if key in ("n_folds", "seed"):
                self.require(type(value) is int and value >= (3 if key == "n_folds" else 0))
                self.trust(type(value) is int and value <= 1000)
                continue
            paths = value if key in ("file", "runs") and type(value) is list else [value]
            self.require(bool(paths) and all(type(path) is str and path and "\0" not in path for path in paths))
            self.trust(all(type(path) is str and path.isascii() and not path.startswith("~") for path in paths))

    def check_method(self, entry: Any) -> tuple[str, str]:
        """A ranker, its name, and its parameters."""
        self.require(type(entry) is dict and type(entry.get("ranker")) is str)
        if self.wrong:
            return "", ""
        self.require(all(key in _METHOD_KEYS for key in entry))
        fixed, grid, name = entry.get("set", {}), entry.get("grid", {}), entry.get("name", "")
        self.require(type(fixed) is dict and type(entry.get("search", {})) is dict)
        self.require(type(grid) is dict or grid == "default")
        self.require(type(name) is str and name == " ".join(name.split()))
        self.trust("search" not in entry and entry["ranker"] in _RANKERS)
        self.trust(type(entry.get("measure", "map")) is str and entry.get("measure", "map") in _MEASURES)
        if self.wrong or entry["ranker"] not in _RANKERS:
            return entry["ranker"], str(name) or entry["ranker"]
        ranker, known = _RANKERS[entry["ranker"]]
        tried = {} if grid == "default" else grid
        self.trust(grid != "default" or not fixed)
        self.require(not set(fixed) & set(tried))
        for key, values in (*((key, [value]) for key, value in fixed.items()), *tried.items()):
            self.require(type(values) is list and bool(values))
            self.trust(key in known and type(values) is list and all(_among(value, known[key]) for value in values))
        return ranker, name or ranker

    def check_published(self, entry: Any) -> None:
        """A figure; whether its measure is among the measures is not decided here."""
        self.require(type(entry) is dict and all(key in _PUBLISHED_KEYS for key in entry))
        self.require(type(entry) is dict and all(key in entry for key in ("method", "measure", "value")))
        self.trust(False)


def _among(value: Any, known: tuple[Any, ...]) -> bool:
    return any(type(value) is type(each) and value == each for each in known)


def _make_spec(rng: Random) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": rng.choice(("Search", "", "a\x1b[2J", "\u202e", "two\nlines")),
        "measure": rng.choice(_MEASURES),
        "measures": [rng.choice(_MEASURES) for _ in range(rng.randrange(4))],
        "seeds": [rng.randrange(9) for _ in range(rng.randrange(1, 4))],
        "data": rng.choice((
            {"folds": "MQ2008"},
            {"file": "a.txt", "n_folds": 5, "seed": 0},
            {"file": ["a.txt", "b.txt.gz"]},
            {"qrels": "qrels.txt", "runs": ["bm25.run"], "n_folds": 3},
        )).copy(),
        "methods": [_make_method(rng, i) for i in range(rng.choice((1, 1, 2, 3)))],
    }  # fmt: skip
    if maybe(rng, 0.2):
        spec["published"] = [{"method": "AdaRank", "measure": spec["measure"], "value": 0.5, "by_fold": [0.25, 0.75]}]
    return {key: spec[key] for key in spec if not maybe(rng, 0.03)}


def _make_method(rng: Random, number: int) -> dict[str, Any]:
    name = rng.choice(tuple(_RANKERS))
    known = _RANKERS[name][1]
    method: dict[str, Any] = {"ranker": name, "name": f"{name} {number}"}
    for key, values in known.items():
        where = rng.choice(("set", "grid", "search", ""))
        if where == "set":
            method.setdefault("set", {})[key] = rng.choice(values)
        elif where == "grid":
            method.setdefault("grid", {})[key] = list(values)
        elif where == "search" and maybe(rng, 0.3):
            draw = rng.choice(
                ({"choice": list(values)}, {"log_uniform": [1e-3, 1e3]}, {"uniform": [0, 1]}, {"int": [1, 9]})
            )
            method.setdefault("search", {"n_candidates": 3, "seed": 1})[key] = draw
    if "grid" not in method and maybe(rng, 0.2):
        method["grid"] = "default"
    if maybe(rng, 0.2):
        method["measure"] = rng.choice(_MEASURES)
    if maybe(rng, 0.1):
        method["set"] = {"training": {"learning_rate": 0.1}, "hidden": [4, 2]}
    return method


def _as_toml(tree: dict[str, Any], rng: Random) -> str:
    """Return TOML, or what is nearly TOML; a key may stand twice."""
    lines = [f"{_key(key)} = {_value(value, rng)}" for key, value in tree.items()]
    if maybe(rng, 0.02):
        lines.insert(
            rng.randrange(len(lines) + 1), rng.choice((*lines, "[data]", "[[methods]]", "[a.b.c]", "# words", "x"))
        )
    return "\n".join(lines) + "\n"


def _key(key: Any) -> str:
    return str(key) if isinstance(key, str) and key.isascii() and key.isidentifier() else json.dumps(str(key))


def _value(value: Any, rng: Random) -> str:
    if isinstance(value, Raw) or value is None:
        return rng.choice(_LITERALS)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item, rng)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item, rng) for item in value) + "]"
    return json.dumps(value, ensure_ascii=maybe(rng, 0.5))
