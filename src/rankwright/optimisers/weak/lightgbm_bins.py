"""LightGBM's bins as bytes: made from a sample of rows, and read on machines that put their own rows into them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require

_ZERO = 1e-35  # LightGBM's zero
_ALIGNED = 8  # bytes
_HEADER_NUMBERS = 10  # of the header, each in 8 bytes; the second and third are the numbers of features
_CATEGORICAL, _NAN = 1, 2
_TOKEN, _VERSION = b"______LightGBM_Binary_Serialized_Token______\n", b"v1"


def draw_rows(n_docs: int, params: Mapping[str, Any]) -> Ints:
    """Return the numbers of the rows that LightGBM draws from so many to find bins, ascending."""
    basic, text, count = require("lightgbm").basic, _describe(_make_dataset(params)), ctypes.c_int32()
    basic._safe_call(basic._LIB.LGBM_GetSampleCount(ctypes.c_int32(n_docs), text, ctypes.byref(count)))
    rows = np.empty(count.value, dtype=np.int32)
    place = ctypes.c_void_p(rows.ctypes.data)
    basic._safe_call(basic._LIB.LGBM_SampleIndices(ctypes.c_int32(n_docs), text, place, ctypes.byref(count)))
    return rows[: count.value].astype(np.int64)


def make_bins(sample: Floats, n_docs: int, params: Mapping[str, Any]) -> bytes:
    """Return the bins that LightGBM finds from these rows of a data set of ``n_docs`` documents."""
    basic = require("lightgbm").basic
    values, places = [], []
    for column in sample.T:
        kept = np.flatnonzero((np.abs(column) > _ZERO) | np.isnan(column))
        values.append(column[kept].astype(np.float64))
        places.append(kept.astype(np.int32))
    pointers = [(ctypes.c_void_p * len(each))(*(part.ctypes.data for part in each)) for each in (values, places)]
    sizes = np.array([len(each) for each in places], dtype=np.int32)
    data, buffer, n_bytes = _make_dataset(params), ctypes.c_void_p(), ctypes.c_int32()
    data._handle = ctypes.c_void_p()
    basic._safe_call(
        basic._LIB.LGBM_DatasetCreateFromSampledColumn(
            *(*pointers, ctypes.c_int32(len(sizes)), ctypes.c_void_p(sizes.ctypes.data)),
            *(ctypes.c_int32(len(sample)), ctypes.c_int32(len(sample)), ctypes.c_int64(n_docs)),
            *(_describe(data), ctypes.byref(data._handle)),
        )
    )
    basic._safe_call(
        basic._LIB.LGBM_DatasetSerializeReferenceToBinary(data._handle, ctypes.byref(buffer), ctypes.byref(n_bytes))
    )
    found, value = bytearray(n_bytes.value), ctypes.c_uint8()
    for i in range(len(found)):  # there is no other way to read it
        basic._LIB.LGBM_ByteBufferGetAt(buffer, i, ctypes.byref(value))
        found[i] = value.value
    basic._safe_call(basic._LIB.LGBM_ByteBufferFree(buffer))
    return bytes(found)


def open_bins(bins: bytes, n_docs: int, params: Mapping[str, Any]) -> Any:
    """Return a Dataset of LightGBM with these bins for ``n_docs`` documents, whose rows are to be pushed."""
    basic, data = require("lightgbm").basic, _make_dataset(params)
    data._handle, data._start_row = ctypes.c_void_p(), 0
    basic._safe_call(
        basic._LIB.LGBM_DatasetCreateFromSerializedReference(
            *(bins, ctypes.c_int32(len(bins)), ctypes.c_int64(n_docs), ctypes.c_int32(0)),
            *(_describe(data), ctypes.byref(data._handle)),
        )
    )
    return data


class LightGBMBins(NamedTuple):
    """The bins of one feature.

    Parameters
    ----------
    bounds : array
        The highest value of each bin; of a categorical feature the category of each bin.
    is_categorical : bool
        Whether the feature is categorical.
    has_missing : bool
        Whether missing values have a bin of their own, the last one. Otherwise they count as 0.
    most_frequent : int
        The bin that has the most documents of the sample.
    """

    bounds: NDArray[np.float64]
    is_categorical: bool
    has_missing: bool
    most_frequent: int

    def goes_left(self, values: Floats, threshold: int, missing_left: bool, bins: Ints) -> NDArray[np.bool_]:
        """Return whether each value is in a bin up to the threshold, or of a categorical feature in one of ``bins``."""
        if self.is_categorical:  # the first bin has all values without another one
            in_bins = np.isin(values, self.bounds[bins[bins > 0]])
            return np.asarray(in_bins | ~np.isin(values, self.bounds[1:]) if 0 in bins else in_bins)
        left: NDArray[np.bool_] = values <= self.bounds[threshold]
        missing = np.isnan(values)
        if missing.any():
            left[missing] = missing_left if self.has_missing else self.bounds[threshold] >= 0.0
        return left


def read_bins(bins: bytes) -> dict[int, LightGBMBins]:
    """Return the bins of each feature that has more than one."""
    reader = _BinReader(bins)
    if reader.read(np.uint8, len(_TOKEN)).tobytes() != _TOKEN or reader.read(np.uint8, 2).tobytes() != _VERSION:
        raise explain_version("has bins in another format")
    end = reader.read_size() + reader.at + _ALIGNED
    reader.at += _ALIGNED
    numbers = [int(reader.read(np.int32, 1)[0]) for _ in range(_HEADER_NUMBERS)]
    n_features, n_columns = numbers[1], numbers[2]
    reader.read(np.int32, n_columns)
    n_groups = int(reader.read(np.int32, 1)[0])
    columns, group, place = (reader.read(np.int32, n_features) for _ in range(3))
    numbered = {(int(g), int(p)): int(c) for c, g, p in zip(columns, group, place, strict=True)}
    reader.at, found = end, dict[int, LightGBMBins]()
    for number in range(n_groups):
        end = reader.read_size() + reader.at + _ALIGNED
        reader.at += _ALIGNED
        *_, n_in_group = (int(reader.read(np.int32, 1)[0]) for _ in range(4))
        for i in range(n_in_group):
            found[numbered[number, i]] = reader.read_feature()
        if reader.at != end:
            raise explain_version("has bins in another format")
    if len(found) != n_features:
        raise explain_version("has bins in another format")
    return found


class _BinReader:
    """A reader of LightGBM's bytes, whose entries begin at whole multiples of 8 bytes."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def read(self, kind: Any, n: int) -> NDArray[Any]:
        """Return an array."""
        found = np.frombuffer(self.content, kind, n, self.at)
        self.at += -(-found.nbytes // _ALIGNED) * _ALIGNED
        return found

    def read_size(self) -> int:
        """Return a number of bytes, without moving on."""
        return int(np.frombuffer(self.content, np.uint64, 1, self.at)[0])

    def read_feature(self) -> LightGBMBins:
        """Return the bins of a feature."""
        n_bins, missing, _ = (int(self.read(np.int32, 1)[0]) for _ in range(3))
        self.read(np.float64, 1)
        kind = int(self.read(np.int32, 1)[0])
        self.read(np.float64, 2)
        self.read(np.uint32, 1)
        most_frequent = int(self.read(np.uint32, 1)[0])
        start, size = self.at, 4 if kind == _CATEGORICAL else 8
        bounds = self.read(np.int32 if kind == _CATEGORICAL else np.float64, n_bins).astype(np.float64)
        self.at = start + size * n_bins  # these alone are not aligned
        return LightGBMBins(bounds, kind == _CATEGORICAL, missing == _NAN, most_frequent)


def explain_version(what: str) -> InputError:
    """Return the error of a version of LightGBM that does something in another way than those that are known here."""
    return InputError(
        f"LightGBM {require('lightgbm').__version__} {what}; expected a version such as 4.7, where trees are grown on "
        "the workers of a cluster"
    )


def _make_dataset(params: Mapping[str, Any]) -> Any:
    """Return a Dataset of LightGBM that nothing is in yet."""
    return require("lightgbm").Dataset(None, params=dict(params))


def _describe(data: Any) -> Any:
    """Return the parameters of a Dataset as LightGBM takes them."""
    basic = require("lightgbm").basic
    return basic._c_str(basic._param_dict_to_str(data.params))
