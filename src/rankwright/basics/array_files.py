"""Files of named arrays (.npz), validated while they are read. Reading one runs no code."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, write_atomic_binary

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def digest_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a hash of named arrays, as text: of their names, types, shapes and values.

    >>> digest_arrays({"a": np.zeros(2)}) == digest_arrays({"a": np.zeros((2, 1))})
    False
    """
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"{name!a} {array.dtype.str} {array.shape} ".encode())
        if array.size:  # the bytes themselves, not a copy; texts have no buffer of their own
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_arrays(path: StrPath, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to an .npz file, which appears only when it is complete."""
    with write_atomic_binary(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: StrPath, expected: str) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an .npz file; if it is damaged, raise an InputError that says what was expected."""
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return {
                    info.filename.removesuffix(".npy"): _read_array(archive, info, size) for info in archive.infolist()
                }
        except Exception:  # the parsers of zip and npy raise many kinds of error on damaged files
            raise InputError(f"{path}: damaged; expected {expected}") from None


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> NDArray[Any]:
    """Read one array of an .npz file; raise ValueError if its size is not the one that its shape says."""
    if info.compress_type != zipfile.ZIP_STORED or not 0 <= info.file_size <= size:
        raise ValueError("compressed, or larger than the file")
    with archive.open(info) as member:
        shape, _, dtype = _HEADERS[npy.read_magic(member)](member)
        if dtype.hasobject or prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise ValueError("Python objects, or another size than its shape says")
    with archive.open(info) as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError("longer than its shape says")
    return array
