"""The formats of search engines' feature logs: where a response has its hits, and a hit its features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import parse_decimals
from rankwright.data.json_files import describe_json
from rankwright.data.trec import LARGEST

_EXTRA_LOGGING = "extra_logging"  # what the plugin calls an entry of anything but features
_NOT_A_NUMBER = "NaN"  # how Java writes it, in JSON as a text


class LoggedFeatures(NamedTuple):
    """The features of a hit; NaN for one that did not match."""

    names: Sequence[str]
    values: Sequence[float]


class LogFormat(ABC):
    """The format of the feature logs of an engine.

    Parameters
    ----------
    log : str, optional
        The name of the log, where a hit may have several.
    """

    place: ClassVar[str]  # where a response has its hits
    docid: ClassVar[str]  # the field with the id of a document, by default
    score: ClassVar[str]  # the field with the score that the engine gave a document, by default

    def __init__(self, log: str | None) -> None:
        self.log = log

    @staticmethod
    @abstractmethod
    def find_hits(response: Mapping[str, Any]) -> Any:
        """Return the hits of a response; None if it has none of this format."""

    @staticmethod
    @abstractmethod
    def find_lack(response: Mapping[str, Any]) -> str | None:
        """Return what a response says of hits that it lacks, such as ``timed_out``; None if it is whole."""

    @abstractmethod
    def is_hit(self, value: Mapping[str, Any]) -> bool:
        """Return whether a value is a hit of its own, as in a file with a hit on each line."""

    @abstractmethod
    def is_complete(self, hit: Mapping[str, Any]) -> bool:
        """Return whether a hit names all features of its set, also those that did not match."""

    @abstractmethod
    def read_features(self, hit: Mapping[str, Any], where: str) -> LoggedFeatures:
        """Return the features of a hit."""

    @abstractmethod
    def find_places(self, hit: Mapping[str, Any], response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the objects that may have a field with an id of a hit, in this order."""


class ElasticsearchFormat(LogFormat):
    """The format of the learning to rank plugin of Elasticsearch and OpenSearch, and of scores of named queries."""

    place = "hits.hits"
    docid = "_id"
    score = "_score"

    @staticmethod
    def find_hits(response: Mapping[str, Any]) -> Any:
        """Return the list ``hits.hits`` of a response."""
        hits = response.get("hits")
        return hits.get("hits") if isinstance(hits, Mapping) else None

    @staticmethod
    def find_lack(response: Mapping[str, Any]) -> str | None:
        """Return whether the search timed out or failed on some shards."""
        failed = as_mapping(response.get("_shards")).get("failed")
        if response.get("timed_out") is True:
            return "timed_out: true"
        return f"_shards.failed: {failed}" if isinstance(failed, int) and failed > 0 else None

    def is_hit(self, value: Mapping[str, Any]) -> bool:
        """Return whether there is an id, and fields or named queries."""
        return "_id" in value and ("fields" in value or "matched_queries" in value)

    def is_complete(self, hit: Mapping[str, Any]) -> bool:
        """Return whether it is the log of the plugin, which names all features."""
        return "_ltrlog" in as_mapping(hit.get("fields"))

    def find_places(self, hit: Mapping[str, Any], response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the hit, its source and its fields."""
        return (hit, as_mapping(hit.get("_source")), as_mapping(hit.get("fields")))

    def read_features(self, hit: Mapping[str, Any], where: str) -> LoggedFeatures:
        """Return the features of ``fields._ltrlog``, or else the scores of ``matched_queries``."""
        if not self.is_complete(hit) and isinstance(hit.get("matched_queries"), Mapping) and self.log is None:
            scores = hit["matched_queries"]
            return LoggedFeatures(list(scores), [parse_feature(value, name, where) for name, value in scores.items()])
        entries = self.read_entries(hit, where)
        if self.log is None and len(entries) > 1:
            found = quote(", ".join(entries))
            raise InputError(f"{where}: the logs {found}; expected one. Choose with log= (--log on the command line)")
        log = next(iter(entries)) if self.log is None else self.log
        if log not in entries:
            raise InputError(f"{where}: no log {quote(log)}; {suggest(log, entries)}")
        return _read_entry(entries[log], f"{where}, log {quote(log)}")

    def read_entries(self, hit: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Return the logs of a hit by name."""
        logs = as_mapping(hit.get("fields")).get("_ltrlog")
        if logs is None:
            raise InputError(
                f"{where}: no fields._ltrlog; expected a log of features, which ext.ltr_log of a search asks for"
            )
        entries = logs[0] if isinstance(logs, list) and len(logs) == 1 else logs
        if not isinstance(entries, Mapping) or not entries:
            raise InputError(f"{where}: fields._ltrlog is {describe_json(logs)}; expected a list of one object")
        return entries


def parse_score(value: Any, field: str, where: str) -> float:
    """Return the score in a field of a hit; NaN if there is none."""
    if isinstance(value, list) and len(value) == 1:  # a field of a hit is a list
        value = value[0]
    if value is None or (type(value) in (int, float) and abs(value) <= LARGEST):
        return math.nan if value is None else float(value)
    raise InputError(f"{where}: the score {quote(field)} is {describe_json(value)}; expected a number")


def _read_entry(entry: Any, where: str) -> LoggedFeatures:
    """Return the features of a log of the plugin: a list of names and values."""
    if not isinstance(entry, list):
        raise InputError(f"{where}: found {describe_json(entry)}; expected a list of features")
    names: list[str] = []
    values: list[float] = []
    for feature in entry:
        name = feature.get("name") if isinstance(feature, dict) else None  # faster than the check for a Mapping
        if not isinstance(name, str):
            raise InputError(f"{where}: found {describe_json(feature)}; expected an object with the name of a feature")
        value = feature.get("value")
        if name != _EXTRA_LOGGING or not isinstance(value, dict):
            names.append(name)
            is_usual = type(value) is float and abs(value) <= LARGEST
            values.append(value if is_usual else parse_feature(value, name, where))
    return LoggedFeatures(names, values)


def parse_feature(value: Any, name: str, where: str) -> float:
    """Return the value of a feature; NaN if there is none."""
    if value is None or value == _NOT_A_NUMBER:
        return math.nan
    if isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) > LARGEST:
        return float(value)
    raise InputError(f"{where}: feature {quote(name)} is {describe_json(value)}; expected a number")


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


class SolrFormat(LogFormat):
    """The format of Solr's transformer ``[features]``: a text ``name=value,name=value``.

    Parameters
    ----------
    log : str, optional
        The field of the text; ``[features]`` by default.
    separators : str
        The character between a name and its value, and the one between features.
    """

    place = "response.docs"
    docid = "id"
    score = "score"

    def __init__(self, log: str | None, separators: str = "=,") -> None:
        super().__init__(log or "[features]")
        if len(separators) != 2 or separators[0] == separators[1]:
            raise InputError(
                f"separators={quote(separators)}; expected two characters: the one between a name and its value, and "
                "the one between features"
            )
        self.separators = separators

    @staticmethod
    def find_hits(response: Mapping[str, Any]) -> Any:
        """Return the list ``response.docs`` of a response."""
        return as_mapping(response.get("response")).get("docs")

    @staticmethod
    def find_lack(response: Mapping[str, Any]) -> str | None:
        """Return whether the header says that results are partial."""
        partial = as_mapping(response.get("responseHeader")).get("partialResults")
        return "partialResults: true" if partial is True or partial == "true" else None

    def is_hit(self, value: Mapping[str, Any]) -> bool:
        """Return whether there is a text of features."""
        return self.log in value

    def is_complete(self, hit: Mapping[str, Any]) -> bool:
        """Return False: in the format ``sparse`` features at their default value are left out."""
        return False

    def find_places(self, hit: Mapping[str, Any], response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the document, and the parameters of the request that the response repeats."""
        return (hit, as_mapping(as_mapping(response.get("responseHeader")).get("params")))

    def read_features(self, hit: Mapping[str, Any], where: str) -> LoggedFeatures:
        """Return the features of a document's text."""
        assert self.log is not None
        text = hit.get(self.log)
        if not isinstance(text, str):
            found = f"no field {self.log}" if text is None else f"{self.log} is {describe_json(text)}"
            way_out = "expected a text such as 'a=0.5,b=2.0', which fl=id,[features] of a search asks for"
            raise InputError(f"{where}: {found}; {way_out}")
        between, after = self.separators[0], self.separators[1]
        parts = [part.rpartition(between) for part in text.split(after)] if text else []
        for name, separator, value in parts:
            if not (name and separator):
                raise InputError(
                    f"{where}: found {quote(value)} in {self.log}; expected name{between}value. Name other characters "
                    "with separators= (--separators on the command line)"
                )
        values = [value for _, _, value in parts]
        return LoggedFeatures([name for name, _, _ in parts], _parse_numbers(values, self.log, where))


def _parse_numbers(texts: list[str], log: str, where: str) -> list[float]:
    """Return numbers as Java writes them; NaN is a missing value."""
    try:
        values = parse_decimals(["0" if text == _NOT_A_NUMBER else text for text in texts])
    except ValueError:
        values = np.array([np.inf])
    if not (np.abs(values) <= LARGEST).all():
        bad = next(text for text in texts if not _is_number(text))
        raise InputError(f"{where}: found {quote(bad)} in {log}; expected a number")
    values[[text == _NOT_A_NUMBER for text in texts]] = np.nan
    numbers: list[float] = values.tolist()
    return numbers


def _is_number(text: str) -> bool:
    """Return whether a text is NaN or a number of float32's range."""
    try:
        return text == _NOT_A_NUMBER or abs(float(parse_decimals([text])[0])) <= LARGEST
    except ValueError:
        return False
