"""Data frames of pandas, polars and Arrow as tables, with the columns, defaults and errors of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.grouping import as_doc_weights, as_grades, as_matrix
from rankwright.data.ids import validate_ids
from rankwright.data.queries import Queries
from rankwright.data.row_sources import RowBlock, join_blocks
from rankwright.data.table_columns import ColumnKind, TableColumns, choose_columns, log_choice
from rankwright.data.table_files import TableFile, cut_tables, describe_type, name_columns
from rankwright.data.tables import TableSource

_FRAME = "the frame"


def read_frame(frame: Any, roles: ColumnRoles) -> Queries:
    """Return the documents of a data frame; numbers of pandas and polars need no pyarrow."""
    if find_spec("pyarrow") is None:
        return _read_without_arrow(frame, roles)
    return TableSource([FrameTable(frame)], roles).read()


class FrameTable(TableFile):
    """A data frame of pandas or polars, an Arrow table, or whatever else exports Arrow data.

    Parameters
    ----------
    frame : object
        The data frame.
    """

    def __init__(self, frame: Any) -> None:
        super().__init__(_FRAME)
        pa = require("pyarrow")
        is_frame = hasattr(frame, "iloc") or hasattr(frame, "to_series")  # pandas, polars
        self._columns = _split_columns(frame, pa) if is_frame else _split_arrow(frame, pa)
        self.kinds = {
            name: ColumnKind("other", values) if isinstance(values, str) else describe_type(values.type)
            for name, values in self._columns.items()
        }
        self.n_rows = next((len(values) for values in self._columns.values() if not isinstance(values, str)), 0)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield all rows as one table."""
        yield require("pyarrow").table({name: self._columns[name] for name in columns.names})

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the rows in blocks."""
        return cut_tables(self.read(columns), columns)

    def locate(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"{_FRAME}, row {row} (from 0)"


def _split_columns(frame: Any, pa: Any) -> dict[str, Any]:
    """Return the columns of a data frame as Arrow arrays, or the name of the type of one that Arrow cannot hold."""
    names = [str(name) for name in frame.columns]
    is_pandas = hasattr(frame, "iloc")
    found = []
    for place in range(len(names)):
        column = frame.iloc[:, place] if is_pandas else frame.to_series(place)
        try:
            found.append(_convert_series(column, pa) if is_pandas else column.to_arrow())
        except (pa.ArrowException, TypeError, ValueError) as error:
            found.append(f"{column.dtype}, {error}")
        except BaseException as error:  # polars raises a panic, which is no Exception
            if type(error).__name__ != "PanicException":
                raise
            found.append(str(column.dtype))
    return name_columns(names, found, _FRAME)


def _split_arrow(frame: Any, pa: Any) -> dict[str, Any]:
    """Return the columns of an Arrow table, or of what exports one."""
    try:
        table = pa.table(frame)
    except (TypeError, ValueError) as error:
        found = f"{type(frame).__name__}: {error}"
        raise InputError(f"{found}; expected a data frame of pandas or polars, or an Arrow table") from None
    return name_columns(table.column_names, table.columns, _FRAME)


def _convert_series(column: Any, pa: Any) -> Any:
    """Return a column of pandas as an Arrow array."""
    dtype = column.dtype
    if str(dtype).startswith("Sparse"):
        column, dtype = column.to_numpy(), dtype.subtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return pa.array(np.asarray(column))  # shares memory; NaN stays NaN
    return pa.Array.from_pandas(column)


def _read_without_arrow(frame: Any, roles: ColumnRoles) -> Queries:
    """Return the documents of a data frame of numbers and texts; raise ImportError for what needs pyarrow."""
    places = name_columns([str(name) for name in frame.columns], list(frame.columns), _FRAME)
    values = {name: np.asarray(frame[place]) for name, place in places.items()}
    kinds = {name: _describe_array(array) for name, array in values.items()}
    if any(kind.kind == "other" for kind in kinds.values()) or roles.categorical:
        require("pyarrow")
    columns = choose_columns(kinds, roles, _FRAME)
    log_choice(columns, roles, _FRAME)
    n = len(frame)

    def take(name: str | None, convert: Any) -> Any:
        return None if name is None else convert(values[name], n)

    block = RowBlock(
        as_matrix(np.column_stack([values[name].astype(np.float32) for name in columns.features])),
        take(columns.label, as_grades),
        validate_ids(values[columns.qid], n, columns.qid),
        take(columns.docid, lambda ids, n: validate_ids(ids, n, str(columns.docid))),
        take(columns.weight, as_doc_weights),
        take(columns.doc_weight, as_doc_weights),
    )
    return join_blocks([block], features=columns.features)


def _describe_array(array: Any) -> ColumnKind:
    """Return the kind of a NumPy array."""
    kinds: Mapping[str, Any] = dict.fromkeys("biuf", "number") | dict.fromkeys("OUT", "text")
    return ColumnKind(kinds.get(array.dtype.kind, "other"), str(array.dtype))
