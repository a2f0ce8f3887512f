"""Arrays in .npy files of their own: written row by row, and opened without being read."""

from __future__ import annotations

import hashlib
import mmap
import os
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath

_HEADER = 128  # bytes before the values: a fixed number, so that the number of rows can be written last
_PIECE = 1 << 24  # bytes that are read at a time
MAPPED_FROM = 1 << 20  # bytes: smaller arrays are read, because every mapping keeps a file open


class ArrayFile(NamedTuple):
    """A description of an array in a file of its own: its type as NumPy writes it, its shape and its checksum."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str  # of the values, without the header of the file

    @property
    def n_bytes(self) -> int:
        """The number of bytes of the values."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


class ArrayWriter:
    """A writer of one array, which is appended to in pieces; the file is complete after ``finish``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = hashlib.sha256()
        self._file = path.open("wb", buffering=0)
        self._write(memoryview(bytes(_HEADER)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Write the next values of the array."""
        if values.size:
            piece = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
            self._write(piece)
            self._digest.update(piece)

    def finish(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayFile:
        """Write the type and the shape of all values, wait until the file is on the disk, and return what it holds."""
        self._file.seek(0)
        self._write(memoryview(_make_header(dtype.str, shape)))
        os.fsync(self._file.fileno())
        self._file.close()
        return ArrayFile(dtype.str, shape, self._digest.hexdigest())

    def _write(self, piece: memoryview) -> None:
        """Write all bytes; the system may take fewer at a time."""
        while len(piece):
            piece = piece[self._file.write(piece) :]


def write_array(path: Path, array: NDArray[Any]) -> ArrayFile:
    """Write an array to a file, a few rows at a time, and return what the file holds."""
    step = max(1, _PIECE // max(array[:1].nbytes, 1))
    with ArrayWriter(path) as writer:
        for start in range(0, len(array), step):
            writer.append(array[start : start + step])
        return writer.finish(array.dtype, array.shape)


def open_array(path: StrPath, expected: ArrayFile, mapped: bool = True) -> NDArray[Any]:
    """Return the array in a file; raise InputError if it is another. A large one can be mapped, and is then read-only.

    The size of the file and its header are checked, the values are not: ``check_array`` does that.
    """
    dtype = np.dtype(expected.dtype)
    with Path(path).open("rb") as file:
        size, complete = os.fstat(file.fileno()).st_size, _HEADER + expected.n_bytes
        if size != complete:
            raise InputError(f"{path}: {size} bytes; expected {complete}: the file was cut off or replaced")
        if file.read(_HEADER) != _make_header(expected.dtype, expected.shape):
            raise InputError(f"{path}: not the array that was written there; the file was damaged or replaced")
        if not mapped or expected.n_bytes < MAPPED_FROM:
            values = np.fromfile(file, dtype, prod(expected.shape))
        else:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            values = np.frombuffer(content, dtype, prod(expected.shape), _HEADER)
    return values.reshape(expected.shape)


def map_values(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values in a file of an array, mapped into memory; its shape need not be known yet."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(content, dtype, offset=_HEADER)


def check_array(path: StrPath, expected: ArrayFile) -> None:
    """Read the values in a file and raise InputError if their checksum is not the expected one."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        file.seek(_HEADER)
        while piece := file.read(_PIECE):
            digest.update(piece)
    if digest.hexdigest() != expected.sha256:
        raise InputError(f"{path}: damaged: its content does not fit its checksum")


def _make_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an .npy file of format 1.0, padded to the fixed number of bytes."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text.ljust(_HEADER - 11).encode() + b"\n"
