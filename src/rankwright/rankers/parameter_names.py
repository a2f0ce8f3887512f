"""Names and documentation of parameters: the error for a name that a ranker lacks, and docstrings that bases share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from inspect import cleandoc, get_annotations, signature
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.synonyms import find_synonym

# What other libraries take in their constructors and rankers take elsewhere.
_ELSEWHERE = {
    "validation queries are passed to fit(valid=...)": "eval_set eval_sets valid valid_sets validation_data evals",
    "query ids are passed to fit(qid=...)": "qid group groups query query_id group_id",
    "queries are weighted by Queries(weight=...)": "sample_weight class_weight weight scale_pos_weight",
    "missing values are NaN in the features": "missing",
    "the ranker decides it; BoostedTrees, LinearRanker, NeuralRanker take any": "objective application loss_function",
}
_PLACES = {name: place for place, names in _ELSEWHERE.items() for name in names.split()}


class ParameterNameError(InputError, TypeError):
    """The error raised for the name of a parameter that a ranker does not have."""


class CheckedNames(BaseEstimator):
    """A base of estimators that raises ParameterNameError, with a suggestion, for unknown parameters."""

    nested_names: ClassVar[Mapping[str, Collection[str]]] = {}  # the names inside parameters that are mappings

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Return a new estimator; raise ParameterNameError for a name that is no parameter."""
        cls._check_names(params)
        made: Self = super().__new__(cls)
        return made

    def set_params(self, **params: Any) -> Self:
        """Set parameters and return the estimator; raise ParameterNameError for a name that is no parameter."""
        self._check_names(name.partition("__")[0] for name in params)
        changed: Self = super().set_params(**params)
        return changed

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of all parameters, in the order of the signature."""
        return [name for name in signature(cls.__init__).parameters if name != "self"]

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        known = cls.parameter_names()
        for name in names:
            if name not in known:
                raise ParameterNameError(explain_unknown(cls.__name__, name, known, cls.nested_names))


def explain_unknown(
    owner: str, name: object, known: Collection[str], nested: Mapping[str, Collection[str]] | None = None
) -> str:
    """Return the error message for an unknown parameter: which class lacks it, and what to use instead.

    Parameters
    ----------
    owner : str
        The class that has no such parameter.
    name : object
        The name that was given.
    known : collection of str
        The names of its parameters.
    nested : mapping of str to collection of str, optional
        The names inside those of its parameters that are mappings.

    >>> explain_unknown("LambdaMART", "eta", ["num_leaves", "learning_rate"])
    "LambdaMART has no parameter 'eta'; it is called learning_rate here"
    """
    return f"{owner} has no parameter {quote(name)}; {_suggest_instead(str(name), known, nested or {})}"


def _suggest_instead(name: str, known: Collection[str], nested: Mapping[str, Collection[str]]) -> str:
    """Return what to use instead of an unknown parameter: its name here, or where to pass it."""
    if find_synonym(name, known) is None:
        for parameter, names in nested.items():
            inside = name if name in names else find_synonym(name, names)
            if inside is not None:
                return f"pass it as {parameter}={{{inside!r}: ...}}"
        if name in _PLACES:
            return _PLACES[name]
    return suggest(name, known)


_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
_INHERITED = ("Parameters", "Attributes")


class ComposedDocstring:
    """A base of classes whose docstrings include the parameters and attributes that their bases document.

    Parameters are in the order of the signature. The text of a class replaces that of its bases.
    """

    _sections: ClassVar[dict[str, str]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls._sections = split_sections(vars(cls).get("__doc__") or "")
        if own[""]:
            inherited = {name: "\n".join(_inherit_entries(cls, name).values()) for name in _INHERITED}
            sections = inherited | {name: text for name, text in own.items() if name not in ("", *_INHERITED)}
            headed = [f"{name}\n{'-' * len(name)}\n{text}" for name, text in sections.items() if text]
            cls.__doc__ = "\n\n".join([own[""], *headed]) + "\n"


def split_sections(docstring: str) -> dict[str, str]:
    r"""Return the sections of a numpydoc docstring by heading; what comes before the first heading is under "".

    >>> split_sections("A ranker.\n\nParameters\n----------\nk : int\n    The cut-off.")
    {'': 'A ranker.', 'Parameters': 'k : int\n    The cut-off.'}
    """
    first, *rest = _HEADING.split(cleandoc(docstring))
    return {"": first.rstrip()} | {name: text.rstrip() for name, text in zip(rest[::2], rest[1::2])}


def split_entries(section: str) -> dict[str, str]:
    r"""Return the entries of a numpydoc section by name; names that share an entry each get a copy of it.

    >>> split_entries("low, high : float\n    The range.")
    {'low': 'low : float\n    The range.', 'high': 'high : float\n    The range.'}
    """
    entries = {}
    for entry in filter(None, map(str.rstrip, _ENTRY.split(section))):
        names, _, rest = entry.partition(" : ")
        entries.update({name.strip(): f"{name.strip()} : {rest}" for name in names.split(",")})
    return entries


def _inherit_entries(cls: type[ComposedDocstring], section: str) -> dict[str, str]:
    """Return a section's entries by name, from a class and its bases, in the order of their annotations."""
    entries: dict[str, str] = {}
    order: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        entries |= split_entries(vars(base).get("_sections", {}).get(section, ""))
        order |= dict.fromkeys(get_annotations(base))
    first = {name: entries[name] for name in order if name in entries}
    return first | entries
