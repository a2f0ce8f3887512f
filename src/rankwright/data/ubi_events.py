"""Events of OpenSearch User Behavior Insights: the results of queries are impressions, and clicks are events."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.errors import InputError, quote
from rankwright.data.click_counting import ClickCounter, ClickRules
from rankwright.data.click_log import ClickLog, make_click_log
from rankwright.data.click_records import RECORD, RecordParts
from rankwright.data.id_numbers import IdNumbers, mix_bits
from rankwright.data.table_texts import open_text

_RESULTS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids")
_BATCH = 1 << 16


def count_ubi_events(
    events: Sequence[Path],
    queries: Sequence[Path],
    rules: ClickRules,
    click_actions: Sequence[str],
    impression_actions: Sequence[str],
    first_position: int,
) -> ClickLog:
    """Count the impressions and clicks of files of events and of queries: a JSON object per line, or a hit of a search.

    Parameters
    ----------
    events, queries : sequence of path
        What the indexes ``ubi_events`` and ``ubi_queries`` hold.
    rules : ClickRules
        What is done about faults.
    click_actions, impression_actions : sequence of str
        The names of events that are clicks or impressions; without the latter all results of a query are shown.
    first_position : int
        The number of the first position in events that are impressions.
    """
    return _UbiCounter(rules, set(click_actions), set(impression_actions), first_position).read(events, queries)


class _UbiCounter:
    """The counting of events, with the numbers of queries, documents and result lists."""

    def __init__(self, rules: ClickRules, clicks: set[str], impressions: set[str], first_position: int) -> None:
        self._counter, self._queries, self._docs = ClickCounter(rules), IdNumbers("user_query"), IdNumbers("object_id")
        self._click_actions, self._impression_actions, self._first = clicks, impressions, first_position
        self._n_clicks: Counter[int] = Counter()
        self._query_of_list: dict[int, int] = {}
        self._actions: set[str] = set()

    def read(self, events: Sequence[Path], queries: Sequence[Path]) -> ClickLog:
        """Read and count all files."""
        counter = self._counter
        with RecordParts("list") as parts:
            for path in queries:
                _add_records(parts, self._read_queries(path))
            n_lists = len(self._query_of_list)
            for path in events:
                _add_records(parts, self._read_events(path))
            if not self._n_clicks:
                found = ", ".join(map(repr, sorted(self._actions)[:12])) or "no event"
                raise InputError(
                    f"{events[0]}: no event is a click on a result of a query; there are {found}. Name those that are "
                    "clicks with click_actions= (--click-action)"
                )
            bots = [client for client, count in self._n_clicks.items() if count > counter.rules.max_clicks]
            counter.n_bots, counter.n_rows = len(bots), counter.n_rows or n_lists
            counter.count_parts(parts.read(), np.array(bots, np.uint64))
        cells = counter.join()
        shown = counter.count_lists(cells, len(self._queries), has_sessions=True)
        return make_click_log(
            cells,
            self._queries.list_ids(parse=False),
            self._docs.list_ids(parse=False),
            shown,
            findings=counter.list_findings(cells, shown, has_sessions=False),
        )

    def _read_queries(self, path: Path) -> Iterator[tuple[Any, ...]]:
        """Yield a record for each result of each query, unless impressions are events."""
        for place, query in _read_objects(path):
            self._counter.n_rows += 1
            query_id, text = query.get("query_id"), query.get("user_query")
            if not isinstance(query_id, str) or not isinstance(text, str) or not query_id or not text:
                self._count_missing("query_id" if not query_id else "user_query")
                continue
            key = next((key for key in _RESULTS if query.get(key) is not None), None)
            results = [] if key is None else query[key]
            if not isinstance(results, list):
                raise InputError(f"{place}: {key!r} is {quote(results)}; expected a list of ids")
            number = self._queries.find(text)
            list_hash = _hash_text(query_id)
            self._query_of_list[list_hash] = number
            if self._impression_actions:
                continue
            session = _hash_text(query.get("client_id") or query_id)
            for at, result in enumerate(results):
                yield session, list_hash, number, self._docs.find(str(result)), at + 1, 0, 0, 0

    def _read_events(self, path: Path) -> Iterator[tuple[Any, ...]]:
        """Yield a record for each click, and for each impression if these are events."""
        for place, event in _read_objects(path):
            action = event.get("action_name")
            is_click = action in self._click_actions
            self._actions.add(str(action))
            if not is_click and action not in self._impression_actions:
                continue
            self._counter.n_rows += 1
            found = event.get("event_attributes")
            attributes: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
            target = attributes.get("object")
            document = target.get("object_id") if isinstance(target, Mapping) else None
            query_id = event.get("query_id")
            if not query_id or document is None or document == "":
                self._count_missing("query_id" if not query_id else "object_id")
                continue
            list_hash, doc = _hash_text(str(query_id)), self._docs.find(str(document))
            session = _hash_text(event.get("client_id") or str(query_id))
            if is_click:
                self._n_clicks[session] += 1
                yield session, list_hash, -1, doc, 0, 0, 0, 1
                continue
            number = self._query_of_list.get(list_hash)
            position = self._read_position(place, attributes)
            if number is None or position is None:
                self._count_missing("query of ubi_queries" if number is None else "position.ordinal")
                continue
            yield session, list_hash, number, doc, position, 0, 0, 0

    def _read_position(self, place: str, attributes: Mapping[str, Any]) -> int | None:
        """Return the position of an impression from 1; None if it has none."""
        where = attributes.get("position")
        ordinal = where.get("ordinal") if isinstance(where, Mapping) else None
        if ordinal is None:
            return None
        if not isinstance(ordinal, int) or not self._first <= ordinal <= 100_000:
            way_out = ". Where positions begin at 0: first_position=0 (--first-position 0)" if ordinal == 0 else ""
            raise InputError(
                f"{place}: position.ordinal is {quote(ordinal)}; expected a whole number from {self._first}{way_out}"
            )
        return ordinal + 1 - self._first

    def _count_missing(self, name: str) -> None:
        """Count an object without a value."""
        self._counter.n_missing[name] = self._counter.n_missing.get(name, 0) + 1


def _hash_text(text: Any) -> int:
    """Return a 64-bit hash of a text."""
    return int(mix_bits(np.array([hash(str(text))], np.int64).view(np.uint64))[0])


def _add_records(parts: RecordParts, records: Iterator[tuple[Any, ...]]) -> None:
    """Add records to the parts, some at a time."""
    while batch := list(islice(records, _BATCH)):
        array: NDArray[Any] = np.array(batch, RECORD)
        parts.add(array)


def _read_objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the place and the object of each line of a file; of hits of a search their source."""
    with open_text(path) as stream, io.BufferedReader(stream) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                found = json.loads(line)
            except ValueError as error:
                raise InputError(f"{place}: no JSON: {error}; expected a JSON object on each line") from None
            if isinstance(found, dict) and isinstance(found.get("_source"), dict):
                found = found["_source"]
            if not isinstance(found, dict):
                raise InputError(f"{place}: {quote(found)}; expected a JSON object, such as an event")
            yield place, found
