"""Fixed models: methods of an experiment that were trained elsewhere, and are only tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from rankwright.basics.errors import InputError
from rankwright.data.feature_selection import FeatureSelection
from rankwright.data.queries import Queries
from rankwright.experiments.methods import Method, Params, check_method_name
from rankwright.models.imports import as_model
from rankwright.models.model import Model
from rankwright.models.model_files import load
from rankwright.models.model_json import compute_digest
from rankwright.rankers import Ranker


@dataclass(frozen=True, slots=True, init=False, eq=False)
class FixedModel:
    """A method of an experiment that is a trained model: it is tested on every fold, and trained on none.

    The test queries must be new to it, or its figures are too high.

    Parameters
    ----------
    model : path, fitted ranker, Model, or a model of another library
        The model, or its file. The file is read at once; later changes of it do not matter to the experiment.
    name : str
        The method's name in results; by default that of the file up to its first dot, or of the model's ranker.

    Examples
    --------
    >>> from rankwright import AdaRank, make_queries
    >>> FixedModel(AdaRank().fit(make_queries(20, random_state=0)), name="last month's").name
    "last month's"
    """

    model: Model
    name: str
    path: str | None  # of the file
    digest: str  # of what determines its scores: a model with another one is another method
    measure: ClassVar[None] = None  # it is trained on none
    n_candidates: ClassVar[int] = 1

    def __init__(self, model: Any, name: str = "") -> None:
        check_method_name(name)
        path = str(Path(model).expanduser().resolve()) if isinstance(model, str | PathLike) else None
        own = as_model(model) if path is None else load(path)
        default = own.ranker if path is None else Path(path).name.partition(".")[0]
        values = {"model": own, "name": name or default, "path": path, "digest": compute_digest(own)}
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def identity(self) -> tuple[str, str]:
        """The facts that determine its results on a fold."""
        return "model", self.digest

    def list_candidates(self) -> list[Params]:
        """Return one candidate, without parameters."""
        return [{}]

    def filter_seeds(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return 0 alone: a trained model does not depend on a seed."""
        return (0,)

    def check_candidates(self, measure: str) -> None:
        """Do nothing: a model was checked when it was loaded."""

    def choose_features(self, queries: Queries) -> Queries:
        """Return grouped queries with the model's features, by name, where both have names."""
        queries = self.model.choose_features(queries)
        if None in (self.model.features, queries.features) or self.model.features == queries.features:
            return queries
        chosen = FeatureSelection(queries.n_features, queries.features, queries.categories, "the documents")
        chosen.choose(None, self.model.features, self.model.categories)
        return queries.replace(X=chosen.apply(queries.X), features=chosen.features, categories=chosen.categories)

    def to_definition(self) -> dict[str, Any]:
        """Return what the store compares: a file may move, but not change."""
        return {"name": self.name, "digest": self.digest}

    def to_json(self) -> dict[str, Any]:
        """Return the method's part of a spec, which has no file for a model in memory."""
        return self.to_definition() | ({} if self.path is None else {"model": self.path})


AnyMethod = Method | FixedModel


def as_methods(methods: Any) -> tuple[AnyMethod, ...]:
    """Return the methods for names, rankers, models or methods; raise InputError if two have the same name."""
    is_one = hasattr(methods, "predict") or isinstance(methods, AnyMethod | PathLike)
    given = methods.split(",") if isinstance(methods, str) else [methods] if is_one else methods
    found = tuple(_as_method(each) for each in given)
    if not found:
        raise InputError("no methods; expected at least one ranker")
    names = [method.name for method in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two methods are called {name!r}; give one of them another name")
    return found


def _as_method(given: Any) -> AnyMethod:
    """Return the method for a ranker's name, a ranker, a model of any library, the path of its file, or a method."""
    if isinstance(given, AnyMethod):
        return given
    if isinstance(given, Ranker):
        return Method.from_ranker(given)
    is_model = hasattr(given, "predict") or isinstance(given, PathLike)
    return FixedModel(given) if is_model else Method.with_default_grid(given)
