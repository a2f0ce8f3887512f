"""Counting of tables of impressions, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, NoDocumentsError
from rankwright.basics.optional_imports import require
from rankwright.data.click_cells import ClickCells
from rankwright.data.click_columns import ClickColumns, choose_click_columns
from rankwright.data.click_counting import ClickCounter, ClickRules
from rankwright.data.click_log import ClickLog, make_click_log
from rankwright.data.click_records import RECORD, RecordParts
from rankwright.data.id_numbers import IdNumbers, hash_column, mix_bits
from rankwright.data.table_files import TableFile

_MAX_POSITION = 100_000
_QUERY = np.uint64(0xE7037ED1A0B428DB)


class ClickTables:
    """A group of tables of impressions that are counted together.

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
        if self._first == 0 and cells.position.min() > 1:
            raise InputError("no row has position 0; leave out first_position=0 (--first-position 0)")
        n_lists = counter.count_lists(cells, len(self._queries), has_sessions=self._has_sessions)
        return make_click_log(
            cells,
            self._list_ids(self._queries, [columns.query for columns in self._columns]),
            self._list_ids(self._docs, [columns.docid for columns in self._columns]),
            n_lists,
            rankers=[str(name) for name in self._rankers.list_ids(parse=False).tolist()],
            groups=[str(name) for name in self._groups.list_ids(parse=False).tolist()],
            findings=counter.list_findings(cells, n_lists, has_sessions=self._has_sessions),
        )

    def _list_ids(self, numbers: IdNumbers, columns: list[str]) -> NDArray[Any]:
        """Return the ids of a column; those of text files and of numbers are integers if each is written as one."""
        tables = zip(self._tables, columns, strict=True)
        is_plain = any(not table.has_types or table.kinds[name].kind == "number" for table, name in tables)
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
        self._counter.n_without_ranker += int((numbers < 0).sum())
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
    """Return the clicks, NaN where they are missing; raise _BadRowError if one is no number of clicks."""
    values = _read_numbers(column)
    with np.errstate(invalid="ignore"):
        bad = (values < 0) | np.isinf(values) | (values != np.floor(values))
    bad &= ~np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise _BadRowError(row, f"the column {name!r} is {values[row]:g}; expected 0 or 1, or true or false")
    return values
