"""Messages between a client and the workers of a cluster: functions with their arguments, parts, results, errors."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require

_ALIGNMENT = 8  # bytes at whose multiples arrays begin


def pack(*message: Any) -> bytes:
    """Return a function and its arguments as bytes for workers; raise InputError if they cannot be pickled."""
    try:
        packed: bytes = _get_pickle().dumps(message)
    except Exception as error:
        raise _refuse(message[0], error) from error
    return packed


def unpack(message: bytes) -> Any:
    """Return what ``pack`` packed, on a worker; raise InputError if a module is not there."""
    return _load(message)


def dump_frames(content: Any) -> list[Any]:
    """Return content as frames that Dask sends without a copy: pickled bytes, then the memory of arrays."""
    buffers: list[Any] = []
    try:
        pickled = _get_pickle().dumps(content, buffer_callback=buffers.append)
    except Exception as error:
        raise _refuse(content, error) from error
    to_serialize = require("distributed.protocol").to_serialize
    return [to_serialize(memoryview(pickled)), *(to_serialize(buffer.raw()) for buffer in buffers)]


def load_frames(frames: Sequence[Any]) -> Any:
    """Return the content of frames that were received; raise InputError if a module is not there."""
    return _load(frames[0], [_align(frame) for frame in frames[1:]])


def dump_error(error: BaseException) -> list[Any]:
    """Return an error of a worker as frames, with its traceback as a note."""
    if not isinstance(error, InputError):
        error.add_note("".join(["On a worker:\n", *traceback.format_exception(error)]))
    try:
        pickled = _get_pickle().dumps(error)
        _get_pickle().loads(pickled)
    except Exception:
        return dump_frames(RuntimeError(f"{type(error).__name__}: {error}"))
    return dump_frames(error)


def _load(pickled: Any, buffers: Sequence[Any] = ()) -> Any:
    """Return pickled content; raise InputError if a module is not there."""
    try:
        return _get_pickle().loads(pickled, buffers=buffers)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker of the cluster cannot import a function of yours ({error}); define it in the script that you "
            "run, or install its module on all workers"
        ) from error


def _align(frame: Any) -> Any:
    """Return the memory of an array that can be written and begins where processors want it; a copy if it must be."""
    values = np.frombuffer(frame, np.uint8)
    return frame if values.flags.writeable and values.ctypes.data % _ALIGNMENT == 0 else values.copy()


def _refuse(content: Any, error: Exception) -> InputError:
    """Return the error of content that cannot be pickled."""
    return InputError(
        f"{content!r} cannot be sent to the workers of a cluster ({type(error).__name__}: {error}); define "
        "functions of your own without open files, locks and the like"
    )


def _get_pickle() -> Any:
    """Return Dask's pickle, which sends functions of a script by value."""
    return require("distributed.protocol.pickle")
