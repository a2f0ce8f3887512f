"""The reader of hits in search responses: it recognises their format, and finds the ids and scores of documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rankwright.basics.errors import InputError, PartialResponseWarning, quote, warn
from rankwright.data.json_files import describe_json
from rankwright.data.log_formats import ElasticsearchFormat, LogFormat, SolrFormat, parse_score
from rankwright.data.logged_rows import LoggedHit
from rankwright.data.vespa_responses import VespaFormat

_LOG_NAME = "_ltrlog"  # as a field of query ids: the name of the log is the id of the query
_WAYS = (
    'Say qid= (--qid on the command line), the field with the query id; or write lines {"qid": ..., "response": ...}; '
    "or write one file for each query, named by its id"
)


class LogResponse(NamedTuple):
    """A JSON value of a log, which may be a response, several of them, or a hit."""

    value: Any
    where: str
    qid: Any = None  # as the caller has it
    file: Path | None = None


class HitReader:
    """A reader of the hits of responses: it recognises their format by the first, and finds the ids."""

    def __init__(
        self,
        engine: str | None,
        qid: str | None,
        docid: str | None,
        log: str | None,
        separators: str,
        score: str | None = None,
        is_scored: bool = False,
    ) -> None:
        self.qid, self.docid, self.score, self.is_scored = qid, docid, score, is_scored
        self.formats: list[LogFormat] = []
        if engine in ("elasticsearch", "opensearch", None):
            self.formats.append(ElasticsearchFormat(log))
        if engine in ("solr", None):
            self.formats.append(SolrFormat(log, separators))
        if engine in ("vespa", None):
            self.formats.append(VespaFormat(log))
        self.unnamed: set[Path] = set()  # files with a response that says no query id
        self.kinds: dict[str, type] = {}  # whether an id was a number or a text
        self.partial: list[str] = []  # the places of responses that lack hits

    def read_hits(self, found: LogResponse) -> Iterator[LoggedHit]:
        """Yield the hits of a JSON value of a log."""
        if not isinstance(found.value, list):
            yield from self._read_value(found)
            return
        for number, part in enumerate(found.value, 1):
            yield from self._read_value(found._replace(value=part, where=f"{found.where}, item {number}"))

    def warn_of_partial_responses(self) -> None:
        """Warn if responses lack hits because a search timed out or a shard failed."""
        if self.partial:
            others = f" and {len(self.partial) - 1} others" if len(self.partial) > 1 else ""
            warn(
                f"{self.partial[0]}{others}: partial responses; documents that the search did not reach are missing. "
                "Search again with a longer timeout, or leave these responses out",
                PartialResponseWarning,
            )

    def _read_value(self, found: LogResponse) -> Iterator[LoggedHit]:
        """Yield the hits of a response, a multi-search response or a hit, perhaps with a query id beside it."""
        where = found.where
        value = _check_object(found.value, where)
        qid = value.get("qid") if found.qid is None else found.qid
        inner = value.get("response")
        body = inner if isinstance(inner, Mapping) and "docs" not in inner else value
        parts = body.get("responses")
        if not isinstance(parts, list):
            yield from self._read_response(LogResponse(body, where, qid, found.file))
            return
        if qid is None and self.qid is None:
            raise InputError(f"{where}: a multi-search response without query ids. {_WAYS}")
        qids = qid if isinstance(qid, list) else [qid]
        if qid is None:
            qids = [None] * len(parts)
        if len(qids) != len(parts):
            raise InputError(f"{where}: {len(parts)} responses, and {len(qids)} query ids; expected as many")
        for number, (part, one) in enumerate(zip(parts, qids, strict=True), 1):
            yield from self._read_response(LogResponse(part, f"{where}, response {number}", one, found.file))

    def _read_response(self, found: LogResponse) -> Iterator[LoggedHit]:
        """Yield the hits of a response, or the hit itself where the value is one."""
        where = found.where
        body = _check_object(found.value, where)
        if "error" in body:
            raise InputError(f"{where}: the search failed{_find_reason(body['error'])}; expected hits. Search again")
        form, hits = self._find_hits(body, where)
        if lack := form.find_lack(body):
            self.partial.append(f"{where} ({lack})")
        if hits is not body and found.qid is None and self.qid is None and found.file is not None:
            if found.file in self.unnamed:
                raise InputError(f"{where}: a second response of this file without a query id. {_WAYS}")
            self.unnamed.add(found.file)
        for number, value in enumerate([body] if hits is body else hits, 1):
            place = where if hits is body else f"{where}, hit {number}"
            hit = _check_object(value, place)
            places = form.find_places(hit, body)
            query = self._find_query(form, hit, places, found._replace(where=place))
            document = self._find_field(places, self.docid or form.docid, place, "document")
            score = self._find_score(places, self.score or form.score, place)
            yield LoggedHit(query, document, *form.read_features(hit, place), form.is_complete(hit), place, score)

    def _find_hits(self, body: Mapping[str, Any], where: str) -> tuple[LogFormat, Any]:
        """Return the format of a response and its hits; a hit of its own is returned as it is."""
        for form in self.formats:
            hits = form.find_hits(body)
            if hits is None and form.is_hit(body):
                hits = body
            if hits is not None:
                if hits is not body and not isinstance(hits, list):
                    raise InputError(f"{where}: the hits are {describe_json(hits)}; expected a list")
                self.formats = [form]
                return form, hits
        expected = " or ".join(form.place for form in self.formats)
        raise InputError(f"{where}: found {describe_json(body)}; expected a response with {expected}")

    def _find_query(
        self, form: LogFormat, hit: Mapping[str, Any], places: Sequence[Mapping[str, Any]], found: LogResponse
    ) -> str:
        """Return the query id of a hit: of the field, beside the response, or the name of the file."""
        if self.qid == _LOG_NAME and isinstance(form, ElasticsearchFormat):
            entries = list(form.read_entries(hit, found.where))
            if len(entries) > 1:
                names = quote(", ".join(entries))
                raise InputError(f"{found.where}: the logs {names}; expected one log, named by the query")
            return self._as_id(entries[0], found.where, "query")
        if self.qid is not None:
            return self._find_field(places, self.qid, found.where, "query")
        if found.qid is not None or found.file is None:
            return self._as_id(found.qid, found.where, "query")
        name = found.file.name.removesuffix(".gz").removesuffix(".xz")
        return Path(name).stem if name.endswith((".json", ".jsonl", ".ndjson")) else name

    def _find_field(self, places: Sequence[Mapping[str, Any]], field: str, where: str, what: str) -> str:
        """Return the id that a field of a hit has."""
        for place in places:
            if field in place:
                return self._as_id(place[field], where, what)
        raise InputError(f"{where}: no field {quote(field)} with the {what} id in {describe_json(places[0])}")

    def _find_score(self, places: Sequence[Mapping[str, Any]], field: str, where: str) -> float:
        """Return the score that a field of a hit has; NaN if no place has the field, or scores are not read."""
        if not self.is_scored:
            return math.nan
        return next((parse_score(place[field], field, where) for place in places if field in place), math.nan)

    def _as_id(self, value: Any, where: str, what: str) -> str:
        """Return an id as text; raise InputError if it is neither a text nor an integer."""
        if isinstance(value, list) and len(value) == 1:  # a field of a hit is a list
            value = value[0]
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            raise InputError(f"{where}: the {what} id is {describe_json(value)}; expected a text or an integer")
        text = value if isinstance(value, str) else str(value)
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"{where}: the {what} id {quote(text)} has a character that no file can have")
        if what == "query" and self.kinds.setdefault(text, type(value)) is not type(value):
            raise InputError(f"{where}: the query ids {text} and {text!r} are one text; expected ids of one kind")
        return text


def _check_object(value: Any, where: str) -> Mapping[str, Any]:
    """Return a value that is an object of JSON; raise InputError if it is anything else."""
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: found {describe_json(value)}; expected a response or a hit, an object of JSON")
    return value


def _find_reason(error: Any) -> str:
    """Return the reason that an engine gives for an error, after a colon; nothing if it gives none."""
    if isinstance(error, Mapping):  # of Elasticsearch and of Solr
        error = error.get("reason", error.get("msg"))
    return f": {quote(error)}" if isinstance(error, str) else ""
