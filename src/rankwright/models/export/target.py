"""The interface of export targets: what a target takes, and the files that it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rankwright.data.categories import Categories
from rankwright.scorers.score_parts import ScoreParts


@dataclass(frozen=True, slots=True, eq=False)
class ExportRequest:
    """A model as a target writes it: the parts of its score, and the names it uses.

    Parameters
    ----------
    parts : ScoreParts
        The parts of the score; a shift is part of the intercept.
    names : tuple of str
        The names of the features in the target.
    model_name : str
        The name of the model in the target.
    file_name : str
        The name of the model's file, for targets that refer to it.
    categories : tuple, optional
        For each feature None or the values of its categories, whose numbers trees split by.
    record : mapping
        The parameters of the model: of an imported one, what its file was.
    """

    parts: ScoreParts
    names: tuple[str, ...]
    model_name: str
    file_name: str
    categories: Categories | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ExportedFiles:
    """The files of an exported model, and what the target's scores will be.

    Parameters
    ----------
    model : bytes
        The content of the model's file.
    beside : mapping
        The contents of further files, by what is added to the name of the model's file, such as ".features.json".
    offset : float
        The target's score minus the score of the request's parts: minus an intercept that the target cannot hold.
    notes : list of str
        Sentences for the user: what was left out, and what to do next.
    scoring_request : Any
        The request, as JSON values, that asks the engine for the scores of the parity file's rows, if there is one.
    gaps : list of (int, float, float)
        Open intervals (feature, low, high) of values that the target cannot score as the model does, if a note names
        them; the rows of the parity file have no values inside them.
    """

    model: bytes
    beside: Mapping[str, bytes] = field(default_factory=dict)
    offset: float = 0.0
    notes: list[str] = field(default_factory=list)
    scoring_request: Any = None
    gaps: list[tuple[int, float, float]] = field(default_factory=list)


_PLURALS = {
    "linear": "linear functions",
    "stumps": "stumps",
    "trees": "trees",
    "categories": "splits by category",
    "network": "networks",
    "kernel sum": "kernel sums",
}


class Target(ABC):
    """A format that models are exported to, for a search engine or another library.

    Attributes
    ----------
    name : str
        The name on the command line.
    title : str
        The name in sentences.
    takes : frozenset of str
        The kinds of parts (``ScoreParts.kinds``) that it can hold.
    mixes : bool
        Whether it can hold sums of several families, such as a linear function plus trees.
    precision : {"float32", "float64"}
        The precision of the scores that it computes.
    missing : {"nan", "zero"}
        Whether it can pass missing values on, or makes them 0.
    reasons : mapping
        Why a kind cannot be held, by kind; for the error.
    nearby : tuple of str
        The targets that a user of this one has at hand too, which the error names before all others.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    takes: ClassVar[frozenset[str]]
    mixes: ClassVar[bool] = False
    precision: ClassVar[str] = "float32"
    missing: ClassVar[str] = "nan"
    reasons: ClassVar[Mapping[str, str]] = {}
    nearby: ClassVar[tuple[str, ...]] = ()

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError, naming the name and the rule, if the target refuses the name of a feature."""
        return

    def find_obstacle(self, parts: ScoreParts) -> str | None:
        """Return which of the parts it cannot hold, a colon, and the reason; None if it can hold them all."""
        lacking = sorted(parts.kinds - self.takes)
        if not lacking and (self.mixes or len(parts.merged_kinds) < 2):
            return None
        reason = self.reasons.get(lacking[0] if lacking else "sum", "its format has no place for it")
        what = " and ".join(_PLURALS[kind] for kind in lacking or sorted(parts.merged_kinds))
        return f"{what}: {reason}" if lacking else f"a sum of {what}: {reason}"

    @abstractmethod
    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the files of a model whose parts the target takes; raise InputError if one cannot be exact."""
