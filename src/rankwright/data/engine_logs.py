"""Feature logs of Elasticsearch, OpenSearch and Solr, joined with judgments."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rankwright.basics import progress
from rankwright.basics.errors import InputError, PartialResponseWarning, quote, suggest, warn
from rankwright.basics.files import StrPath
from rankwright.data.json_files import describe_json, read_json_values
from rankwright.data.judgments import Judgments, load_judgments
from rankwright.data.log_formats import ElasticsearchFormat, LogFormat, SolrFormat
from rankwright.data.logged_rows import LoggedHit, LoggedRows, Missing, Unjudged
from rankwright.data.queries import Queries
from rankwright.data.run_fusion import open_qrels

ENGINES = ("elasticsearch", "opensearch", "solr")
Hits = StrPath | Sequence[StrPath] | Mapping[Any, Any]
_LOG_NAME = "_ltrlog"  # as a field of query ids: the name of the log is the id of the query
_WAYS = (
    'Say qid= (--qid on the command line), the field with the query id; or write lines {"qid": ..., "response": ...}; '
    "or write one file for each query, named by its id"
)


def read_log(
    hits: Hits,
    judgments: StrPath | Mapping[Any, Any] | None = None,
    *,
    engine: Literal["elasticsearch", "opensearch", "solr"] | None = None,
    qid: str | None = None,
    docid: str | None = None,
    log: str | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "nan",
    unjudged: Unjudged = "drop",
    separators: str = "=,",
) -> Queries:
    """Read search responses with logged features, join them with judgments, and return a data set to train on.

    Parameters
    ----------
    hits : path, sequence of paths, or mapping of query id to response
        JSON files, each a response, a multi-search response, or lines of responses or hits; or responses by query id:
        parsed JSON, or a file.
    judgments : path, mapping of query id to mapping of document id to grade, or None
        What :func:`rankwright.read_judgments` reads. None gives documents without grades, to be scored.
    engine : "elasticsearch", "opensearch" or "solr", optional
        Whose format the responses have; recognised by the first one if not given.
    qid : str, optional
        The field with the query id, of the hit, its source, or the parameters that a Solr response repeats;
        ``"_ltrlog"`` is the name of the log. By default it is the key ``qid`` beside a response or of a hit, or else
        the name of the file.
    docid : str, optional
        The field with the document id: ``_id``, or ``id`` in Solr, by default.
    log : str, optional
        The name of the log, if hits have several; for Solr the field with the features, ``[features]`` by default.
    features : sequence of str, optional
        The features to keep, in this order. By default all of them, in the order of their first appearance.
    missing : "nan" or "zero"
        What a feature is that did not match: a missing value, or 0.
    unjudged : "drop", "zero" or "error"
        What is done with a logged document that has no judgment: left out, given grade 0, or refused. Queries without
        any judgment are left out, or refused.
    separators : str
        The characters of Solr's log between a name and its value and between features.

    Returns
    -------
    Queries
        Judged documents that were not logged are its ``unretrieved``.

    Examples
    --------
    >>> hit = {"_id": "7555", "fields": {"_ltrlog": [{"main": [{"name": "title", "value": 9.5}, {"name": "body"}]}]}}
    >>> queries = read_log({"rambo": {"hits": {"hits": [hit]}}}, {"rambo": {"7555": 4}})
    >>> queries.features, queries.X.tolist(), queries.y.tolist()
    (('title', 'body'), [[9.5, nan]], [4.0])
    """
    _check_choice("engine", engine, (None, *ENGINES))
    _check_choice("missing", missing, ("nan", "zero"))
    _check_choice("unjudged", unjudged, ("drop", "zero", "error"))
    rows = LoggedRows(_open_judgments(judgments), features, unjudged)
    reader = _HitReader(engine, qid, docid, log, separators)
    for response in _open_responses(hits):
        for hit in reader.read_hits(response):
            rows.add(hit)
    reader.warn_of_partial_responses()
    queries = rows.join(missing)
    logging.getLogger("rankwright").info("%s", rows.summarise(missing))
    return queries


def _check_choice(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    """Raise InputError if a parameter has none of its values."""
    if value not in known:
        raise InputError(f"{name}={quote(value)}; {suggest(str(value), [str(choice) for choice in known if choice])}")


def _open_judgments(judgments: StrPath | Mapping[Any, Any] | None) -> Judgments | None:
    """Return judgments, given as a file or as nested mappings."""
    if judgments is None or isinstance(judgments, str | PathLike):
        return None if judgments is None else load_judgments(judgments)
    return Judgments(open_qrels(judgments))


class _Response(NamedTuple):
    """A JSON value of a log, which may be a response, several of them, or a hit."""

    value: Any
    where: str
    qid: Any = None  # as the caller has it
    file: Path | None = None


def _open_responses(hits: Hits) -> Iterator[_Response]:
    """Yield the JSON values of a log, one at a time."""
    if isinstance(hits, Mapping):
        for qid, value in progress.track(hits.items(), "reading", len(hits)):
            if isinstance(value, str | PathLike):
                yield from (_Response(part, f"{value}:{line}", qid) for line, part in read_json_values(value))
            else:
                # clients return objects that have the JSON in an attribute
                content = getattr(value, "body", getattr(value, "raw_response", value))
                yield _Response(content, f"query {quote(qid)}", qid)
        return
    paths = [hits] if isinstance(hits, str | PathLike) else list(hits)
    if not paths:
        raise InputError("no file to read; expected at least one")
    for path in progress.track(paths, "reading", len(paths)):
        if not isinstance(path, str | PathLike):
            raise InputError(f"hits has {describe_json(path)}; expected files, or a mapping of query ids to responses")
        for line, part in read_json_values(path):
            yield _Response(part, f"{path}:{line}", file=Path(path))


class _HitReader:
    """A reader of the hits of responses: it recognises their format by the first, and finds the ids."""

    def __init__(
        self, engine: str | None, qid: str | None, docid: str | None, log: str | None, separators: str
    ) -> None:
        self.qid, self.docid = qid, docid
        self.formats: list[LogFormat] = []
        if engine != "solr":
            self.formats.append(ElasticsearchFormat(log))
        if engine in ("solr", None):
            self.formats.append(SolrFormat(log, separators))
        self.unnamed: set[Path] = set()  # files with a response that says no query id
        self.kinds: dict[str, type] = {}  # whether an id was a number or a text
        self.partial: list[str] = []  # the places of responses that lack hits

    def read_hits(self, found: _Response) -> Iterator[LoggedHit]:
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

    def _read_value(self, found: _Response) -> Iterator[LoggedHit]:
        """Yield the hits of a response, a multi-search response or a hit, perhaps with a query id beside it."""
        where = found.where
        value = _check_object(found.value, where)
        qid = value.get("qid") if found.qid is None else found.qid
        inner = value.get("response")
        body = inner if isinstance(inner, Mapping) and "docs" not in inner else value
        parts = body.get("responses")
        if not isinstance(parts, list):
            yield from self._read_response(_Response(body, where, qid, found.file))
            return
        if qid is None and self.qid is None:
            raise InputError(f"{where}: a multi-search response without query ids. {_WAYS}")
        qids = qid if isinstance(qid, list) else [qid]
        if qid is None:
            qids = [None] * len(parts)
        if len(qids) != len(parts):
            raise InputError(f"{where}: {len(parts)} responses, and {len(qids)} query ids; expected as many")
        for number, (part, one) in enumerate(zip(parts, qids, strict=True), 1):
            yield from self._read_response(_Response(part, f"{where}, response {number}", one, found.file))

    def _read_response(self, found: _Response) -> Iterator[LoggedHit]:
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
            yield LoggedHit(query, document, *form.read_features(hit, place), form.is_complete(hit), place)

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
        self, form: LogFormat, hit: Mapping[str, Any], places: Sequence[Mapping[str, Any]], found: _Response
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
