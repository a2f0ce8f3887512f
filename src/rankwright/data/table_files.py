"""Files of tables: Parquet and Arrow, whose columns have types, and what all files of tables can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.basics.optional_imports import require
from rankwright.data.table_columns import TableColumns

BLOCK_CELLS = 1 << 22  # values in a block: 16 MB of float32
_PIECE_ROWS = 1 << 19


class TableFile(ABC):
    """A file with a table.

    Parameters
    ----------
    path : str or path
        The file, by the name that messages call it.

    Attributes
    ----------
    types : dict of str to pyarrow.DataType
        The columns, in the order of the file.
    n_rows : int, optional
        The number of rows, where it is known before the file is read.
    has_types : bool
        Whether the file says of which type the values of a column are. In text, ids are integers where each is
        written as one.
    """

    types: dict[str, Any]
    n_rows: int | None = None
    has_types = True

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)

    @abstractmethod
    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the columns as Arrow tables of consecutive rows, as fast as possible."""

    @abstractmethod
    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the columns as Arrow tables of consecutive rows, in bounded memory."""

    def locate(self, row: int) -> str:
        """Return the place of a row, counted from 0, for messages."""
        return f"{self.path}: row {row + 1}"

    def set_types(self, schema: Any) -> None:
        """Keep the columns of an Arrow schema; raise InputError if two have the same name."""
        self.types = name_columns(schema.names, schema.types, str(self.path))


class ParquetFile(TableFile):
    """A Parquet file."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        require("pyarrow")
        from pyarrow import parquet

        self._parquet = parquet
        with self._open() as file:
            self.n_rows = file.metadata.num_rows
            self.set_types(file.schema_arrow)

    def _open(self) -> Any:
        """Open the file."""
        return self._parquet.ParquetFile(self.path, memory_map=True)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield some row groups at a time, the columns decoded in parallel."""
        with self._open() as file:
            groups: list[int] = []
            rows = 0
            for group in range(file.num_row_groups):
                groups.append(group)
                rows += file.metadata.row_group(group).num_rows
                if rows >= _PIECE_ROWS or group == file.num_row_groups - 1:
                    yield file.read_row_groups(groups, columns=list(columns.names))
                    groups, rows = [], 0

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield record batches, a row group being in memory in pages."""
        names = list(columns.names)
        with self._open() as file:
            for batch in file.iter_batches(count_block_rows(len(names)), columns=names):
                yield require("pyarrow").Table.from_batches([batch])


class ArrowFile(TableFile):
    """An Arrow file or stream (IPC; Feather version 2)."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        self._pa = require("pyarrow")
        with self._pa.memory_map(str(self.path)) as source:
            self.set_types(self._open(source).schema)

    def _open(self, source: Any) -> Any:
        """Open the reader of a file or of a stream."""
        is_file = bytes(source.read_at(6, 0)) == b"ARROW1"
        return self._pa.ipc.open_file(source) if is_file else self._pa.ipc.open_stream(source)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the record batches as one table, sharing the memory of the file where it can."""
        with self._pa.memory_map(str(self.path)) as source:
            yield self._open(source).read_all().select(list(columns.names))

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the record batches, cut where they are large."""
        with self._pa.memory_map(str(self.path)) as source:
            reader = self._open(source)
            has_places = hasattr(reader, "get_batch")
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if has_places else reader
            yield from cut_tables(batches, columns)


def cut_tables(tables: Any, columns: TableColumns) -> Iterator[Any]:
    """Yield the columns of tables or record batches in Arrow tables of a bounded number of rows."""
    size = count_block_rows(len(columns.names))
    pa = require("pyarrow")
    for table in tables:
        chosen = table.select(list(columns.names))
        for start in range(0, chosen.num_rows, size):
            part = chosen.slice(start, size)
            yield part if isinstance(part, pa.Table) else pa.Table.from_batches([part])


def count_block_rows(n_columns: int) -> int:
    """Return the number of rows in a block of a table."""
    return max(1, min(1 << 16, BLOCK_CELLS // n_columns))


def name_columns(names: Sequence[str], types: Sequence[Any], where: str) -> dict[str, Any]:
    """Return the types of columns by name; raise InputError if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: two columns are called {name!r}; rename one")
        seen.add(name)
    if not names:
        raise InputError(f"{where}: no columns; expected a table")
    return dict(zip(names, types, strict=True))
