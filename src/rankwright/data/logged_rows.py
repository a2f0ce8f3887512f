"""Rows of logged features, collected hit by hit and joined with judgments."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.data.ids import as_ids
from rankwright.data.judgments import Judgments, index_keywords
from rankwright.data.queries import Queries
from rankwright.data.unretrieved import Unretrieved

Missing = Literal["nan", "zero"]
Unjudged = Literal["drop", "zero", "error"]
_BLOCK = 2**16  # rows whose values are put into the matrix at a time


class LoggedHit(NamedTuple):
    """A document that a search found, with the values of its features; NaN for one that did not match."""

    query: str
    document: str
    names: Sequence[str]
    values: Sequence[float]
    is_complete: bool  # whether it names all features of its set, also those that did not match
    where: str
    score: float = math.nan  # that the engine gave it; NaN if the hit does not say


class LoggedRows:
    """The logged documents, as values of features and their columns, row by row.

    Parameters
    ----------
    judgments : Judgments or None
        Grades by query and document; None if documents are only to be scored.
    features : sequence of str, optional
        The features to keep; by default each gets a column when it first appears.
    unjudged : str
        What is done with a document that has no judgment: "drop", "zero" or "error".
    """

    def __init__(self, judgments: Judgments | None, features: Sequence[str] | None, unjudged: Unjudged) -> None:
        self.judgments, self.unjudged = judgments, unjudged
        self.by_keywords = {} if judgments is None else index_keywords(judgments)
        self.is_open = features is None
        self.column = {name: place for place, name in enumerate(features or ())}
        if features is not None and (isinstance(features, str) or not 0 < len(features) == len(self.column)):
            raise InputError(f"features={quote(features)}; expected a list of names, each once")
        self.first_set: tuple[str, frozenset[str]] | None = None  # a hit that names all features of its set, and these
        self.seen: set[str] = set()  # features
        self.row_of: dict[str, dict[str, int]] = {}  # by query and document
        self.queries: list[str] = []
        self.documents: list[str] = []
        self.grades = array("d")
        self.scores = array("d")
        self.first_unscored: str | None = None  # a hit without a score
        self.columns, self.values, self.ends = array("i"), array("f"), array("q", [0])
        self.n_unjudged = self.n_repeated = 0
        self.unjudged_queries: dict[str, None] = {}
        self.unjudged_example: tuple[str, str] | None = None

    def add(self, hit: LoggedHit) -> None:
        """Add a hit, unless it has no judgment and such hits are left out."""
        if len(set(hit.names)) < len(hit.names):
            twice = next(name for i, name in enumerate(hit.names) if name in hit.names[:i])
            raise InputError(f"{hit.where}: feature {quote(twice)} a second time; expected each once")
        if hit.is_complete:
            self._check_set(hit.names, hit.where)
        self.seen.update(hit.names)
        grade = self._find_grade(hit)
        if grade is None:
            return
        if self.is_open:
            for name in hit.names:
                self.column.setdefault(name, len(self.column))
        pairs = zip(hit.names, hit.values, strict=True)
        kept = {self.column[name]: value for name, value in pairs if name in self.column}
        row = self.row_of.setdefault(hit.query, {}).setdefault(hit.document, len(self.documents))
        if row < len(self.documents):
            self._check_repeated(row, kept, hit)
            return
        self.queries.append(hit.query)
        self.documents.append(hit.document)
        self.grades.append(grade)
        self.scores.append(hit.score)
        if math.isnan(hit.score) and self.first_unscored is None:
            self.first_unscored = hit.where
        self.columns.extend(kept)
        self.values.extend(kept.values())
        self.ends.append(len(self.values))

    def _check_set(self, names: Sequence[str], where: str) -> None:
        """Raise InputError if a hit has other features than the first one, or lacks one that is asked for."""
        if not self.is_open:
            absent = self.column.keys() - set(names)
            if absent:
                first = min(absent, key=self.column.__getitem__)
                raise InputError(f"{where}: no feature {quote(first)}; it has {quote(', '.join(names))}")
            return
        if self.first_set is None:
            self.first_set = (where, frozenset(names))
        first, known = self.first_set
        if known != frozenset(names):
            other = sorted(known.symmetric_difference(names))[0]
            lacks, has = (where, first) if other in known else (first, where)
            raise InputError(
                f"{where}: feature {quote(other)} is in {has} and not in {lacks}: the feature set changed. Log again, "
                "or choose features with features= (--features on the command line)"
            )

    def _find_grade(self, hit: LoggedHit) -> float | None:
        """Return the grade of a hit, None if it is left out; raise InputError if it is refused."""
        if self.judgments is None:
            return 0.0
        grades = self.judgments.grades.get(self._find_judged_query(hit.query) or "")
        if grades is not None and hit.document in grades:
            return grades[hit.document]
        if self.unjudged == "error":
            document = "" if grades is None else f"document {quote(hit.document)} of "
            raise InputError(
                f"{hit.where}: no judgment of {document}query {quote(hit.query)}; expected one. Leave such documents "
                "out with unjudged=drop (--unjudged drop on the command line)"
            )
        if grades is None:
            self.unjudged_queries[hit.query] = None
            return None
        self.n_unjudged += 1
        self.unjudged_example = self.unjudged_example or (hit.query, hit.document)
        return 0.0 if self.unjudged == "zero" else None

    def _find_judged_query(self, query: str) -> str | None:
        """Return the id by which the judgments know a query: its own, or that of the query with these keywords."""
        assert self.judgments is not None
        return query if query in self.judgments.grades else self.by_keywords.get(query)

    def _check_repeated(self, row: int, kept: Mapping[int, float], hit: LoggedHit) -> None:
        """Raise InputError if a document of a query is logged a second time with other values or another score."""
        part = slice(self.ends[row], self.ends[row + 1])
        known = dict(zip(self.columns[part], self.values[part], strict=True))
        new = dict(zip(kept, array("f", kept.values()), strict=True))
        if known.keys() != new.keys() or any(new[at] != value and value == value for at, value in known.items()):
            raise InputError(
                f"{hit.where}: document {quote(hit.document)} of query {quote(hit.query)} a second time, with other "
                "features; expected each document of a query once"
            )
        if not math.isnan(hit.score) and hit.score != self.scores[row]:
            raise InputError(
                f"{hit.where}: document {quote(hit.document)} of query {quote(hit.query)} a second time, with the "
                f"score {hit.score} after {self.scores[row]}; expected one score: leave one of the responses out"
            )
        self.n_repeated += 1

    def join(self, missing: Missing) -> Queries:
        """Return all rows as a data set, with the grades of judged documents that were not logged."""
        self._check_matches()
        queries = Queries.from_arrays(
            self._fill_matrix(np.nan if missing == "nan" else 0.0),
            None if self.judgments is None else np.array(self.grades),
            as_ids(self.queries),
            docid=as_ids(self.documents),
            weight=self._list_weights() or None,
            features=list(self.column),
        )
        left = [self._list_unlogged(str(query)) for query in queries.qid.tolist()]
        if not any(left):
            return queries
        indptr = np.concatenate([[0], np.cumsum([len(grades) for grades in left])]).astype(np.int64)
        return queries.replace(unretrieved=Unretrieved(np.array([g for grades in left for g in grades]), indptr))

    def _list_weights(self) -> list[float]:
        """Return the weight of each query in the judgments, 1 if they say none."""
        weights = {} if self.judgments is None else self.judgments.weights
        return [weights.get(self._find_judged_query(query) or "", 1.0) for query in self.row_of] if weights else []

    def _check_matches(self) -> None:
        """Raise InputError if no hit is left, or a feature that is asked for is in none."""
        absent = [name for name in self.column if name not in self.seen]
        if absent and self.documents:
            raise InputError(
                f"no hit has the feature {quote(absent[0])}; they have {quote(', '.join(sorted(self.seen)))}. A sparse "
                "log leaves out features at their default value: log with format=dense"
            )
        if self.documents:
            if not self.column:
                raise InputError("no hit has a feature; expected one at least")
            return
        if self.unjudged_example is not None and self.judgments is not None:
            query, document = self.unjudged_example
            judged = next(iter(self.judgments.grades[self._find_judged_query(query) or ""]))
            raise InputError(
                f"no logged document is judged: query {quote(query)} has {quote(document)} in the log and "
                f"{quote(judged)} in the judgments. Name the field with the ids of the judgments with docid= (--docid "
                "on the command line)"
            )
        if self.unjudged_queries and self.judgments is not None:
            raise InputError(
                f"no query of the log is judged: the log has {_name_some(self.unjudged_queries)}, the judgments have "
                f"{_name_some(self.judgments.grades)}; expected the same ids in both"
            )
        raise InputError("no hit in the log; expected one at least")

    def _fill_matrix(self, fill: float) -> Floats:
        """Return the values as a matrix, with ``fill`` for features that did not match."""
        columns, values = np.frombuffer(self.columns, np.intc), np.frombuffer(self.values, np.float32)
        ends = np.frombuffer(self.ends, np.int64)
        X = np.full((len(ends) - 1, len(self.column)), fill, np.float32)
        for first in range(0, len(X), _BLOCK):
            bounds = ends[first : first + _BLOCK + 1]
            part = slice(bounds[0], bounds[-1])
            rows = np.repeat(np.arange(first, first + len(bounds) - 1), np.diff(bounds))
            X[rows, columns[part]] = values[part]
        return X if np.isnan(fill) else np.nan_to_num(X, copy=False, nan=fill)

    def _list_unlogged(self, query: str) -> list[float]:
        """Return the grades of the judged documents of a query that were not logged."""
        if self.judgments is None:
            return []
        grades = self.judgments.grades[self._find_judged_query(query) or ""]
        return [grade for document, grade in grades.items() if document not in self.row_of[query]]

    def summarise(self, missing: Missing) -> str:
        """Return a line that says what was read, and what was left out or filled in."""
        n_docs = len(self.documents)
        present = np.frombuffer(self.values, np.float32)
        n_absent = n_docs * len(self.column) - int(np.count_nonzero(present == present))
        judged = {} if self.judgments is None else self.judgments.grades
        n_unlogged = sum(len(self._list_unlogged(query)) for query in self.row_of)
        n_silent = len(judged.keys() - {self._find_judged_query(query) for query in self.row_of}) if judged else 0
        filled = "missing (NaN)" if missing == "nan" else "0"
        fate = "left out" if self.unjudged == "drop" else "have grade 0"
        counts = {
            f"features that did not match are {filled}": n_absent,
            f"logged documents without a judgment {fate}": self.n_unjudged,
            "logged queries without a judgment left out": len(self.unjudged_queries),
            "judged documents not logged, which count in ideal rankings": n_unlogged,
            "judged queries not logged, left out": n_silent,
            "queries matched by their keywords": sum(query not in judged for query in self.row_of) if judged else 0,
            "repeated hits kept once": self.n_repeated,
            "queries with a weight from the judgment list": sum(weight != 1.0 for weight in self._list_weights()),
            "rows of judgments without a rating left out": 0 if self.judgments is None else self.judgments.n_unrated,
        }
        said = "".join(f"; {count} {what}" for what, count in counts.items() if count)
        return f"log: {len(self.row_of)} queries, {n_docs} documents, {len(self.column)} features{said}"


def _name_some(names: Mapping[str, object]) -> str:
    """Return the first names of many, for an error."""
    return ", ".join(quote(name) for name in islice(names, 2)) + (", ..." if len(names) > 2 else "")
