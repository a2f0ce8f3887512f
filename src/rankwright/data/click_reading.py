"""Reading of click logs: tables of impressions, counted block by block."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, NoDocumentsError
from rankwright.basics.files import StrPath
from rankwright.basics.optional_imports import require
from rankwright.data.click_cells import ClickCells
from rankwright.data.click_columns import ClickColumns, choose_click_columns
from rankwright.data.click_counting import ClickCounter, ClickRules
from rankwright.data.click_log import ClickLog, make_click_log
from rankwright.data.click_records import RECORD, RecordParts
from rankwright.data.file_formats import LETOR, TABLE_FILES, recognise_format
from rankwright.data.frames import FrameTable
from rankwright.data.id_numbers import IdNumbers, hash_column, mix_bits
from rankwright.data.reading import find_files
from rankwright.data.table_files import TableFile
from rankwright.data.ubi_events import count_ubi_events

_MAX_POSITION = 100_000
_QUERY = np.uint64(0xE7037ED1A0B428DB)


def read_clicks(
    source: Any,
    *,
    query: str | None = None,
    docid: str | None = None,
    position: str | None = None,
    clicked: str | None = None,
    session: str | None = None,
    time: str | None = None,
    ranker: str | None = None,
    shuffled: str | None = None,
    first_position: int = 1,
    duplicates: str = "merge",
    clashes: str = "keep",
    missing: str = "drop",
    max_clicks: int = 1000,
    min_impressions: int = 10,
    ubi_queries: StrPath | Sequence[StrPath] | None = None,
    click_actions: Sequence[str] = ("click", "item_click", "product_click"),
    impression_actions: Sequence[str] = (),
) -> ClickLog:
    """Read a log of impressions and clicks, and count them by query, document and position.

    The log is read in blocks and counted at once: memory is bounded by the number of different documents by query and
    position. With ``session`` rows go through temporary files if there are many, so that duplicates, bots and result
    lists are found wherever their rows are.

    Parameters
    ----------
    source : path, sequence of paths, or data frame
        A table with a row for each document that was shown: CSV, Parquet, Arrow or JSON lines; a name may be a
        pattern such as ``logs/*.parquet``, or a folder. Or, with ``ubi_queries``, the events of OpenSearch User
        Behavior Insights as JSON lines.
    query, docid, position, clicked : str, optional
        The columns of the query, the document, the position in the list, and whether the document was clicked; by
        default they are found by usual names.
    session : str, optional
        The column of the session. A result list is what one session saw for one query. Duplicates, bots and numbers of
        lists can be found with it only.
    time : str, optional
        The column of when the list was shown, the same in all its rows: a session may see a query's results twice.
    ranker : str, optional
        The column of the ranker, such as the arm of a test, that made the list.
    shuffled : str, optional
        The column of groups of positions that were put in random order: rows with the same value, such as ``"1,3"``,
        exchanged positions at random; it is empty where a position was not random.
    first_position : int
        The number of the first position, 0 or 1.
    duplicates, clashes, missing : str
        What is done about rows of one document in one list (``"merge"``, ``"keep"`` or ``"error"``), lists with two
        documents at one position (``"keep"``, ``"drop"`` or ``"error"``), and rows without a value (``"drop"`` or
        ``"error"``).
    max_clicks : int
        Sessions with more clicks are taken for robots and left out.
    min_impressions : int
        Queries with fewer impressions are named in a warning.
    ubi_queries : path or sequence of paths, optional
        The queries of User Behavior Insights as JSON lines: their results are the impressions.
    click_actions, impression_actions : sequence of str
        The names of events that are clicks, and of those that are impressions; without the latter the results of
        each query are its impressions.

    Returns
    -------
    ClickLog
        The counts; ``findings`` says what was wrong, each also in a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"query": ["tea"] * 4, "docid": ["a", "b"] * 2, "position": [1, 2] * 2})
    >>> read_clicks(frame.assign(clicked=[True, False, False, False]), min_impressions=0)
    ClickLog(1 queries, 2 documents, 4 impressions, 1 clicks)
    """
    rules = ClickRules(
        duplicates=duplicates,
        clashes=clashes,
        missing=missing,
        max_clicks=max_clicks,
        min_impressions=min_impressions,
    )
    if first_position not in (0, 1):
        raise InputError(f"first_position={first_position!r}; expected 0 or 1")
    given = {"query": query, "docid": docid, "position": position, "clicked": clicked}
    given |= {"session": session, "time": time, "ranker": ranker, "shuffled": shuffled}
    if ubi_queries is not None:
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise InputError(f"{named[0]}= names a column of a table; events of User Behavior Insights have none")
        log = count_ubi_events(
            _list_paths(source), _list_paths(ubi_queries), rules, click_actions, impression_actions, first_position
        )
    else:
        log = _TableCounter(_open_tables(source), given, rules, first_position).read()
    for finding in log.findings:
        finding.warn()
    return log


def _list_paths(source: Any) -> list[Any]:
    """Return the files that paths mean; raise InputError for what is no path."""
    paths = [source] if isinstance(source, str | PathLike) else source
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str | PathLike) for path in paths):
        raise InputError(f"found a {type(source).__name__}; expected names of files")
    files = [file for path in paths for file in find_files(path)]
    if not files:
        raise InputError("no file to read; expected at least one")
    return files


def _open_tables(source: Any) -> list[TableFile]:
    """Return the tables of files or of a data frame."""
    if not isinstance(source, str | PathLike | list | tuple):
        return [FrameTable(source)]
    tables = []
    for file in _list_paths(source):
        name = recognise_format(file)
        if name == LETOR:
            raise InputError(f"{file}: {LETOR}; expected a table of impressions: CSV, Parquet, Arrow or JSON lines")
        tables.append(TABLE_FILES[name](file))
    return tables


class _TableCounter:
    """The counting of tables of impressions.

    Parameters
    ----------
    tables : list of TableFile
        The tables; their columns may be in different orders.
    given : dict of str to str or None
        The columns that the caller named, by role.
    rules : ClickRules
        What is done about faults.
    first_position : int
        The number of the first position.
    """

    def __init__(
        self, tables: list[TableFile], given: dict[str, str | None], rules: ClickRules, first_position: int
    ) -> None:
        self._tables, self._first = tables, first_position
        self._columns = [choose_click_columns(table.kinds, given, table.name) for table in tables]
        first = self._columns[0]
        self._counter = ClickCounter(rules)
        self._queries, self._docs = IdNumbers(first.query), IdNumbers(first.docid)
        self._rankers, self._groups = IdNumbers(first.ranker or ""), IdNumbers(first.shuffled or "")
        self._has_sessions = first.session is not None

    def read(self) -> ClickLog:
        """Read and count all tables."""
        counter = self._counter
        with RecordParts("session") as parts:
            for table, columns in progress.track(
                list(zip(self._tables, self._columns, strict=True)), "reading", len(self._tables)
            ):
                self._read_table(table, columns, parts)
            counter.count_parts(parts.read())
        cells = counter.join()
        n_lists = counter.count_lists(cells, len(self._queries), has_sessions=self._has_sessions)
        first = self._columns[0]
        return make_click_log(
            cells,
            self._list_ids(self._queries, first.query),
            self._list_ids(self._docs, first.docid),
            n_lists,
            rankers=[str(name) for name in self._rankers.list_ids(parse=False).tolist()],
            groups=[str(name) for name in self._groups.list_ids(parse=False).tolist()],
            findings=counter.list_findings(cells, n_lists, has_sessions=self._has_sessions),
        )

    def _list_ids(self, numbers: IdNumbers, column: str) -> NDArray[Any]:
        """Return the ids of a column; those of text files and of numbers are integers if each is written as one."""
        is_plain = any(not table.has_types or table.kinds[column].kind == "number" for table in self._tables)
        return numbers.list_ids(parse=is_plain)

    def _read_table(self, table: TableFile, columns: ClickColumns, parts: RecordParts) -> None:
        """Count the rows of one table."""
        row = 0
        for block in table.read_blocks(columns.to_table_columns()):
            try:
                self._count_block(table, columns, block, row, parts)
            except _BadRowError as error:
                raise InputError(f"{table.locate(row + error.row)}: {error}") from None
            row += block.num_rows
        if table.n_rows is not None and row != table.n_rows:
            raise InputError(f"{table.name}: damaged: {row} rows; expected {table.n_rows}, as it says itself")
        if row == 0:
            raise NoDocumentsError(f"{table.name}: no rows; expected at least one impression")

    def _count_block(self, table: TableFile, columns: ClickColumns, block: Any, row: int, parts: RecordParts) -> None:
        """Count the rows of a block, or keep them by session."""
        counter = self._counter
        counter.n_rows += block.num_rows
        query, doc = self._queries.encode(block[columns.query]), self._docs.encode(block[columns.docid])
        position = _read_positions(block[columns.position], columns.position, self._first)
        clicked = _read_clicked(block[columns.clicked], columns.clicked)
        is_known = {"query": query >= 0, "document id": doc >= 0, "position": ~np.isnan(position)}
        is_known["click"] = ~np.isnan(clicked)
        session = None
        if columns.session is not None:
            session = hash_column(block[columns.session])
            is_known["session"] = session != 0
        whole = np.logical_and.reduce(list(is_known.values()))
        if not whole.all():
            self._count_missing(is_known, clicked)
        counter.n_repeated_clicks += int((clicked[whole] > 1).sum())
        zeros = np.zeros(block.num_rows, np.int64)
        ranker = zeros if columns.ranker is None else np.maximum(self._encode_ranker(block[columns.ranker]), 0)
        group = zeros if columns.shuffled is None else self._groups.encode(block[columns.shuffled]) + 1
        cells = ClickCells(
            query,
            doc,
            np.nan_to_num(position).astype(np.int64),
            ranker,
            group,
            zeros + 1,
            (clicked > 0).astype(np.int64),
        )
        if not whole.all():
            cells = cells.take(np.flatnonzero(whole))
        if session is None:
            counter.add_cells(cells)
            return
        time = 0 if columns.time is None else hash_column(block[columns.time])[whole]
        records = np.empty(len(cells.query), RECORD)
        records["session"] = session[whole]
        records["list"] = mix_bits(records["session"] ^ (cells.query.astype(np.uint64) * _QUERY) ^ np.uint64(time))
        for name in ("query", "doc", "position", "ranker", "group"):
            records[name] = getattr(cells, name)
        records["clicked"] = cells.n_clicked
        parts.add(records)

    def _encode_ranker(self, column: Any) -> NDArray[Any]:
        """Return the numbers of the rankers; rows without one have a ranker whose name is empty."""
        numbers = self._rankers.encode(column)
        return np.where(numbers < 0, self._rankers.find("") if (numbers < 0).any() else 0, numbers)

    def _count_missing(self, is_known: dict[str, NDArray[np.bool_]], clicked: Floats) -> None:
        """Count the rows without a value by the first value that they lack, and those of them that are clicks."""
        missing = self._counter.n_missing
        left = np.ones(len(clicked), bool)
        for name, known in is_known.items():
            count = int((left & ~known).sum())
            left &= known
            if count:
                missing[name] = missing.get(name, 0) + count
        no_place = ~(is_known["query"] & is_known["document id"] & is_known["position"])
        self._counter.n_lost_clicks += int((no_place & (clicked > 0)).sum())


class _BadRowError(Exception):
    """The exception for a value that cannot be used; whoever knows the table makes it an InputError."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


def _read_numbers(column: Any) -> Floats:
    """Return the numbers of a column, NaN where they are missing."""
    pa = require("pyarrow")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy()
    return numbers


def _read_positions(column: Any, name: str, first: int) -> Floats:
    """Return the positions from 1, NaN where they are missing; raise _BadRowError if one is none."""
    values = _read_numbers(column)
    with np.errstate(invalid="ignore"):
        bad = (values < first) | (values > _MAX_POSITION) | (values != np.floor(values))
    bad &= ~np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad))
        if values[row] == 0:
            problem = "expected positions from 1. Where they begin at 0: first_position=0 (--first-position 0)"
        else:
            problem = f"expected a whole number from {first} to {_MAX_POSITION}"
        raise _BadRowError(row, f"the position {name!r} is {values[row]:g}; {problem}")
    return values + (1 - first)


def _read_clicked(column: Any, name: str) -> Floats:
    """Return the clicks, NaN where they are missing; raise _BadRowError if one is negative or infinite."""
    values = _read_numbers(column)
    bad = (values < 0) | np.isinf(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise _BadRowError(row, f"the column {name!r} is {values[row]:g}; expected 0 or 1, or true or false")
    return values
