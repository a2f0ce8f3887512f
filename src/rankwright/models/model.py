"""Models: what a trained ranker leaves behind, saved as JSON and loaded without running code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, open_binary, write_atomic
from rankwright.data.feature_numbers import columns_to_numbers, feature_names, numbers_to_columns
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import first_missing
from rankwright.measures import parse
from rankwright.scorers import Scorer, scorer_from_json
from rankwright.scorers.scaling import QueryScaling

TAKE_NAN = ("BoostedTrees", "DirectRankTrees", "LambdaMART", "MART", "RankBoost")
FORMAT, VERSION = "rankwright", 1
MOST_FEATURES = 10_000_000  # of a model
_DEEPEST = 32  # lists and objects inside each other in what a model tells about its training


class Fitted(Protocol):
    """A fitted ranker or a model."""

    def to_model(self) -> Model:
        """What is saved."""
        ...

    def predict(self, X: Any, *, qid: ArrayLike | None = None) -> Floats:
        """Scores; larger is ranked earlier."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Everything needed to score documents, and to know how that was learned.

    Parameters
    ----------
    ranker : str
        The class that trained it.
    params : mapping
        That class's parameters, as JSON values.
    measure : str
        The measure it was selected by.
    scorer : Scorer
        The learned function, in raw units.
    n_features : int
        The number of features it takes.
    features : tuple of str, optional
        Their names.
    scaling : QueryScaling, optional
        Scaling that cannot be folded into the scorer.
    history : list of dict
        What training recorded, a dict per round.
    """

    ranker: str
    params: Mapping[str, Any]
    measure: str
    scorer: Scorer
    n_features: int
    features: tuple[str, ...] | None = None
    scaling: QueryScaling | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    def to_model(self) -> Model:
        """Itself."""
        return self

    def predict(self, X: Any, *, qid: ArrayLike | None = None) -> Floats:
        """Return a float64 score per row, in the caller's order; larger is ranked earlier.

        ``qid`` is needed with arrays only where the model scales features per query.
        """
        if isinstance(X, Queries):
            return self._score_rows(X)
        if self.scaling is not None and qid is None:
            raise InputError("this model scales features within each query: predict needs qid")
        n_docs = X.shape[0] if hasattr(X, "shape") else len(X)
        ids = {"group": [n_docs]} if self.scaling is None else {"qid": qid}
        queries = Queries.from_arrays(X, np.zeros(n_docs), **ids)
        return self.predict(queries)

    def _score_rows(self, queries: Queries) -> Floats:
        check_features(queries, self.n_features, self.features, "the model was trained on")
        if not self.scorer.allow_nan:
            check_complete(queries, "the documents", self.ranker, self.features)
        grouped = queries.grouped()
        scores = self.scorer((grouped if self.scaling is None else self.scaling(grouped)).X)
        return self._checked(queries.restore(scores))

    def _checked(self, scores: Floats) -> Floats:
        """Refuse scores that are no numbers: what they rank is chance."""
        finite = np.isfinite(scores)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InputError(
                f"the {self.ranker} model scores row {row} with {scores[row]}; expected finite scores: its weights are "
                "too large for these features. Scale the features, or train it anew"
            )
        return scores

    def rank(self, queries: Queries, k: int | None = None) -> dict[Any, NDArray[Any]]:
        """By query id, the documents in ranked order, at most ``k``: their ids, or the caller's row numbers."""
        return rank(queries, self.predict(queries), k)

    def score(self, queries: Queries) -> float:
        """The mean of the model's measure."""
        return parse(self.measure).mean(queries, self.predict(queries))


def rank(queries: Queries, scores: Floats, k: int | None = None) -> dict[Any, NDArray[Any]]:
    """Return by query id the document ids (or, without ids, the numbers of the caller's rows) by descending score."""
    if k is not None and k < 1:
        raise InputError(f"k={k}; expected at least 1")
    ranked: dict[Any, NDArray[Any]] = {}
    names = queries.docid
    for query, rows in zip(queries.qid.tolist(), queries.ranked(scores), strict=True):
        if query in ranked:
            raise InputError(
                f"query id {query!r} stands for two queries, and rank answers by id; expected ids that differ "
                "(take each query once)"
            )
        ranked[query] = rows[:k] if names is None else names[rows[:k]]
    return ranked


def check_features(queries: Queries, n_features: int, names: tuple[str, ...] | None, where: str) -> None:
    """Refuse documents whose features are not those expected: their number and, where both have them, their names."""
    if queries.n_features != n_features:
        raise InputError(f"the documents have {queries.n_features} features; {where} {n_features}")
    if names is not None and queries.features is not None and names != queries.features:
        at = next(i for i, (name, found) in enumerate(zip(names, queries.features, strict=True)) if name != found)
        raise InputError(f"feature {at + 1} is called {queries.features[at]!r}; {where} {names[at]!r} in its place")


def check_complete(queries: Queries, what: str, ranker: str, features: tuple[str, ...] | None = None) -> None:
    """Refuse missing values; ``features`` are names for documents that have none of their own."""
    place = first_missing(queries.grouped().X)
    if place >= 0:
        row, column = divmod(place, queries.n_features)
        names = feature_names(queries.features or features, queries.n_features)
        where = f"row {queries.caller_row(row)}, feature {names[column]}"
        raise InputError(
            f"{what} contain NaN ({where}); {ranker} takes complete features only: fill them in, or use a ranker that "
            f"takes NaN ({', '.join(TAKE_NAN)})"
        )


def as_model(fitted: Fitted) -> Model:
    """The model of a fitted ranker, or a model itself."""
    if not hasattr(fitted, "to_model"):
        raise InputError(f"found a {type(fitted).__name__}; expected a fitted ranker or a Model (rw.load reads a file)")
    return fitted.to_model()


def save(fitted: Fitted, path: StrPath) -> None:
    """Save a fitted ranker or a model as JSON, whole or not at all."""
    model = as_model(fitted)
    try:
        text = to_text(model, indent=1)
    except InputError as error:  # the scorer's own
        raise InputError(f"{path}: not written: {error}") from None
    except ValueError:
        raise InputError(f"{path}: not written: the model has weights that are not finite") from None
    with write_atomic(path) as file:
        file.write(text + "\n")


def to_text(model: Model, indent: int | None = None) -> str:
    """A model as JSON text."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "ranker": model.ranker,
        "params": columns_to_numbers(plain(model.params)),
        "measure": model.measure,
        "n_features": model.n_features,
        "features": model.features,
        "scaling": None if model.scaling is None else {"kind": "query"},
        "scorer": {"kind": model.scorer.kind, **model.scorer.to_json()},
        "history": model.history,
    }
    try:
        return json.dumps(content, allow_nan=False, indent=indent, default=plain)
    except ValueError:  # NaN or infinity: in the history they become null
        content["history"] = plain(model.history)
        return json.dumps(content, allow_nan=False, indent=indent)


def load(path: StrPath) -> Model:
    """Load a model; reads JSON and runs no code."""
    with open_binary(path) as file:
        return from_text(file.read(), path)


def from_text(data: bytes, path: StrPath) -> Model:
    """A model from JSON text that was found at ``path``."""
    content = _parse(data, path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{path}: not a Rankwright model; expected a JSON object with "format": "{FORMAT}"')
    if type(content.get("version")) is not int or content["version"] != VERSION:
        found = quote(content.get("version"))
        raise InputError(f"{path}: model version {found}; this release reads version {VERSION}")
    try:
        return _from_json(content)
    except KeyError as error:
        raise InputError(f"{path}: the model lacks {error}") from None
    except (InputError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: damaged model: {error}") from None


def _parse(data: bytes, path: StrPath) -> Any:
    """Parse JSON, and nothing that only some readers take for it: no NaN, no key twice."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_as_object)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not a whole JSON file: {error.msg}; expected a saved model") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; expected a model saved as JSON") from None
    except RecursionError:
        raise InputError(f"{path}: not a model: lists inside lists without end") from None
    except ValueError as error:  # an InputError, or an integer of thousands of digits
        raise InputError(f"{path}: not a model: {error}") from None


def _refuse_constant(name: str) -> Any:
    raise InputError(f"found {name}, which JSON does not have; expected a finite number or null")


def _as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(f"found {quote(next(name for name in names if names.count(name) > 1))} twice in one object")
    return found


def _check_plain(value: Any, what: str, depth: int = 0) -> None:
    """Refuse what ``plain`` never makes: infinite numbers, and lists inside lists without end."""
    if depth > _DEEPEST:
        raise InputError(f"{what} has more than {_DEEPEST} lists or objects inside each other")
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            _check_plain(item, what, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{what} has a number that is too large; expected finite ones or null")


def _from_json(content: Mapping[str, Any]) -> Model:
    kinds = {"ranker": str, "params": dict, "measure": str, "n_features": int, "scorer": dict, "history": list}
    for name, kind in kinds.items():
        if type(content[name]) is not kind:
            raise InputError(f"{name} is {quote(content[name])}")
    features, scaling, n_features = content["features"], content["scaling"], content["n_features"]
    if not 1 <= n_features <= MOST_FEATURES:
        raise InputError(f"n_features is {quote(n_features)}; expected 1 to {MOST_FEATURES}")
    if features is not None:
        named = isinstance(features, list) and all(isinstance(name, str) for name in features)
        if not named or len(features) != n_features:
            raise InputError(f"features are {quote(features)}; expected {n_features} names")
    if scaling is not None and scaling != {"kind": "query"}:
        raise InputError(f"scaling is {quote(scaling)}; expected that of kind 'query'")
    if not all(isinstance(record, dict) for record in content["history"]):
        raise InputError("history is not a list of records")
    for name in ("params", "history"):
        _check_plain(content[name], name)
    scorer = scorer_from_json(content["scorer"])
    if not scorer.accepts(n_features):
        raise InputError(f"the scorer does not fit {n_features} features")
    return Model(
        content["ranker"],
        numbers_to_columns(content["params"]),
        content["measure"],
        scorer,
        n_features,
        None if features is None else tuple(features),
        None if scaling is None else QueryScaling(),
        content["history"],
    )


def plain(value: Any) -> Any:
    """A value as JSON can hold it: measures, backends and the like by their text, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if callable(value) and " at 0x" in repr(value):  # an address would differ from run to run
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return None if value is None else str(value)
