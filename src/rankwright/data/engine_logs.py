"""Feature logs of Elasticsearch, OpenSearch, Solr and Vespa, joined with judgments."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import StrPath
from rankwright.data.hit_reader import HitReader, LogResponse
from rankwright.data.json_files import describe_json, read_json_values
from rankwright.data.judgments import Judgments, load_judgments
from rankwright.data.logged_rows import LoggedRows, Missing, Unjudged
from rankwright.data.queries import Queries
from rankwright.data.run_fusion import open_qrels

ENGINES = ("elasticsearch", "opensearch", "solr", "vespa")
Hits = StrPath | Sequence[StrPath] | Mapping[Any, Any]


def read_log(
    hits: Hits,
    judgments: StrPath | Mapping[Any, Any] | None = None,
    *,
    engine: Literal["elasticsearch", "opensearch", "solr", "vespa"] | None = None,
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
    engine : "elasticsearch", "opensearch", "solr" or "vespa", optional
        Whose format the responses have; recognised by the first one if not given.
    qid : str, optional
        The field with the query id, of the hit, its source, or the parameters that a Solr response repeats;
        ``"_ltrlog"`` is the name of the log. By default it is the key ``qid`` beside a response or of a hit, or else
        the name of the file.
    docid : str, optional
        The field with the document id: ``_id``, or ``id`` in Solr and Vespa, by default.
    log : str, optional
        The name of the log, if hits have several; for Solr and Vespa the field with the features,
        ``[features]`` and ``matchfeatures`` by default.
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
    reader = HitReader(engine, qid, docid, log, separators)
    for response in _open_responses(hits):
        for hit in reader.read_hits(response):
            rows.add(hit)
    reader.warn_of_partial_responses()
    queries = rows.join(missing)
    logging.getLogger("rankwright").info("%s", rows.summarise(missing))
    return queries


def read_scored_log(
    hits: Hits,
    *,
    engine: str | None = None,
    score: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    log: str | None = None,
    features: Sequence[str] | None = None,
    separators: str = "=,",
) -> tuple[Queries, Floats]:
    """Return the logged documents of search responses without grades, and the scores that the engine gave them.

    ``score`` is the field of a hit with its score: ``_score``, ``score`` in Solr or ``relevance`` in Vespa, by default.
    The other parameters are those of ``read_log``.
    """
    _check_choice("engine", engine, (None, *ENGINES))
    rows = LoggedRows(None, features, "drop")
    reader = HitReader(engine, qid, docid, log, separators, score, is_scored=True)
    for response in _open_responses(hits):
        for hit in reader.read_hits(response):
            rows.add(hit)
    reader.warn_of_partial_responses()
    queries = rows.join("nan")
    if rows.first_unscored is not None:
        raise InputError(
            f"{rows.first_unscored}: no score in the field {score or reader.formats[0].score}; expected a number. "
            "Ask for it (fl=id,score,[features] in Solr; no sort in Elasticsearch), or name its field: score= (--score)"
        )
    return queries, np.array(rows.scores)


def _check_choice(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    """Raise InputError if a parameter has none of its values."""
    if value not in known:
        raise InputError(f"{name}={quote(value)}; {suggest(str(value), [str(choice) for choice in known if choice])}")


def _open_judgments(judgments: StrPath | Mapping[Any, Any] | None) -> Judgments | None:
    """Return judgments, given as a file or as nested mappings."""
    if judgments is None or isinstance(judgments, str | PathLike):
        return None if judgments is None else load_judgments(judgments)
    return Judgments(open_qrels(judgments))


def _open_responses(hits: Hits) -> Iterator[LogResponse]:
    """Yield the JSON values of a log, one at a time."""
    if isinstance(hits, Mapping):
        for qid, value in progress.track(hits.items(), "reading", len(hits)):
            if isinstance(value, str | PathLike):
                yield from (LogResponse(part, f"{value}:{line}", qid) for line, part in read_json_values(value))
            else:
                # clients return objects that have the JSON in an attribute
                content = getattr(value, "body", getattr(value, "raw_response", value))
                yield LogResponse(content, f"query {quote(qid)}", qid)
        return
    paths = [hits] if isinstance(hits, str | PathLike) else list(hits)
    if not paths:
        raise InputError("no file to read; expected at least one")
    for path in progress.track(paths, "reading", len(paths)):
        if not isinstance(path, str | PathLike):
            raise InputError(f"hits has {describe_json(path)}; expected files, or a mapping of query ids to responses")
        for line, part in read_json_values(path):
            yield LogResponse(part, f"{path}:{line}", file=Path(path))
