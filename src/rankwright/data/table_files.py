"""Files of tables: Parquet and Arrow, whose columns have types, and what all files of tables can do."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.basics.optional_imports import require
from rankwright.data.table_columns import ColumnKind, TableColumns, logger

T = TypeVar("T")

BLOCK_CELLS = 1 << 22  # values in a block: 16 MB of float32
_PIECE_ROWS = 1 << 19
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class TableFile(ABC):
    """A file with a table.

    Parameters
    ----------
    path : str or path
        The file, by the name that messages call it.

    Attributes
    ----------
    kinds : dict of str to ColumnKind
        The columns, in the order of the file.
    n_rows : int, optional
        The number of rows, where it is known before the file is read.
    text_size : int
        The size of a text file in bytes; 0 if it is no text.
    has_types : bool
        Whether the file says of which type the values of a column are. In text, ids are integers where each is
        written as one.
    """

    kinds: dict[str, ColumnKind]
    n_rows: int | None = None
    text_size = 0
    has_types = True

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)

    @property
    def name(self) -> str:
        """The name of the file, for messages."""
        return str(self.path)

    @abstractmethod
    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the columns as Arrow tables of consecutive rows, as fast as possible."""

    @abstractmethod
    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the columns as Arrow tables of consecutive rows, in bounded memory."""

    def count_lines(self) -> int | None:
        """Return the number of lines, which is about that of rows, where the file is text; None if it is not."""
        return None

    def locate(self, row: int) -> str:
        """Return the place of a row, counted from 0, for messages."""
        return f"{self.path}: row {row + 1}"

    def name_kinds(self, schema: Any) -> dict[str, ColumnKind]:
        """Return the kinds of the columns of an Arrow schema; raise InputError if two have the same name."""
        named = name_columns(schema.names, [describe_type(each) for each in schema.types], str(self.path))
        index = [name for name in named if _PANDAS_INDEX.fullmatch(name)]
        if index:
            logger.info("%s: left out %s, the index of a pandas frame", self.path, ", ".join(index))
        return {name: kind for name, kind in named.items() if name not in index}


class ParquetFile(TableFile):
    """A Parquet file."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        require("pyarrow")
        from pyarrow import parquet

        self._parquet = parquet
        with explain_damage(self.path), self._open() as file:
            self.n_rows = file.metadata.num_rows
            self.kinds = self.name_kinds(file.schema_arrow)

    def _open(self) -> Any:
        """Open the file."""
        return self._parquet.ParquetFile(self.path, memory_map=True)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield some row groups at a time, the columns decoded in parallel."""
        with explain_damage(self.path), self._open() as file:
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
        with explain_damage(self.path), self._open() as file:
            for batch in file.iter_batches(count_block_rows(len(names)), columns=names):
                yield require("pyarrow").Table.from_batches([batch])


class ArrowFile(TableFile):
    """An Arrow file or stream (IPC; Feather version 2)."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        self._pa = require("pyarrow")
        with explain_damage(self.path), self._pa.memory_map(str(self.path)) as source:
            reader = self._open(source)
            self.kinds = self.name_kinds(reader.schema)
            self.n_rows = reader.count_rows() if hasattr(reader, "count_rows") else None  # a stream does not say

    def _open(self, source: Any) -> Any:
        """Open the reader of a file or of a stream."""
        is_file = bytes(source.read_at(6, 0)) == b"ARROW1"
        return self._pa.ipc.open_file(source) if is_file else self._pa.ipc.open_stream(source)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the record batches as one table, sharing the memory of the file where it can."""
        with explain_damage(self.path), self._pa.memory_map(str(self.path)) as source:
            yield self._open(source).read_all().select(list(columns.names))

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the record batches, cut where they are large."""
        with explain_damage(self.path), self._pa.memory_map(str(self.path)) as source:
            reader = self._open(source)
            has_places = hasattr(reader, "get_batch")
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if has_places else reader
            yield from cut_tables(batches, columns)


@contextmanager
def explain_damage(path: Path) -> Iterator[None]:
    """Turn an error of pyarrow inside the block into an InputError that names the file."""
    pa = require("pyarrow")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        problem = " ".join(str(error).split())
        raise InputError(f"{path}: damaged or cut off, or of an unknown version: {problem}") from None


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


def describe_type(type_: Any) -> ColumnKind:
    """Return the kind of an Arrow type."""
    types = require("pyarrow").types
    if types.is_dictionary(type_):
        return describe_type(type_.value_type)._replace(is_category=True, name=str(type_))
    tests = {
        "number": (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "bytes": (types.is_binary, types.is_large_binary, types.is_binary_view),
    }
    kind: Any = next((kind for kind, found in tests.items() if any(test(type_) for test in found)), "other")
    return ColumnKind(kind, str(type_))


def name_columns(names: Sequence[str], values: Sequence[T], where: str) -> dict[str, T]:
    """Return something of each column by name; raise InputError if two columns have the same name."""
    if not names:
        raise InputError(f"{where}: no columns; expected a table")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{where}: two columns are called {twice!r}; rename one")
    return dict(zip(names, values, strict=True))
