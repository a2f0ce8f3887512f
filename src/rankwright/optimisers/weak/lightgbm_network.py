"""The network of LightGBM's distributed learning, on connections of ours.

LightGBM takes functions for the two operations that its machines do together. Its own connections wait for a machine
that died without end, at full load; these end with an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankwright.basics.optional_imports import require
from rankwright.optimisers.weak.split_counts import SplitCounter
from rankwright.runtime.communicator import Communicator

_Sizes = ctypes.POINTER(ctypes.c_int32)
_Reduce = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int32)
_ReduceScatter = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_void_p, ctypes.c_int32, ctypes.c_int, _Sizes, _Sizes, ctypes.c_int),
    *(ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(_Reduce)),
)
_Allgather = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int32, _Sizes, _Sizes, ctypes.c_int, ctypes.c_void_p, ctypes.c_int32
)


@contextmanager
def connect_lightgbm(communicator: Communicator, counter: SplitCounter | None = None) -> Iterator[None]:
    """Let LightGBM's calls of this thread, inside the block, work together with those of the other processes.

    Raise the error of a lost connection at the end of the block: LightGBM itself cannot be stopped, and goes on as if
    the others had the numbers of this process.

    Parameters
    ----------
    communicator : Communicator
        The connections with the other processes.
    counter : SplitCounter, optional
        It corrects the numbers of documents in messages about splits; None where LightGBM's estimates are exact.
    """
    if communicator.size == 1:
        yield
        return
    operations = _Operations(communicator, counter)
    reduce_scatter, allgather = _ReduceScatter(operations.reduce_scatter), _Allgather(operations.allgather)
    basic = require("lightgbm").basic
    basic._get_sample_count(1, "verbosity=-1")  # LightGBM's level of messages is set for each thread
    given = (ctypes.cast(each, ctypes.c_void_p) for each in (reduce_scatter, allgather))
    basic._safe_call(basic._LIB.LGBM_NetworkInitWithFunctions(communicator.size, communicator.rank, *given))
    try:
        yield
    except Exception:
        if operations.error is None:
            raise
    finally:
        basic._safe_call(basic._LIB.LGBM_NetworkFree())
    if operations.error is not None:
        raise operations.error


class _Operations:
    """The operations that LightGBM's machines do together.

    Attributes
    ----------
    error : Exception or None
        The first error: operations after it are not done.
    """

    def __init__(self, communicator: Communicator, counter: SplitCounter | None) -> None:
        self.communicator, self.counter = communicator, counter
        self.error: Exception | None = None

    def _exchange(self, outgoing: list[memoryview], incoming: list[memoryview]) -> bool:
        """Exchange bytes with the other processes; return whether it was possible."""
        if self.error is None:
            try:
                self.communicator.exchange(outgoing, incoming)
            except Exception as error:  # an exception must not pass through LightGBM
                self.error = error
        return self.error is None

    def allgather(
        self, given: int, n_given: int, starts: Any, sizes: Any, n_blocks: int, output: int, n_output: int
    ) -> None:
        """Put the block of each machine at its place in the output."""
        own = self.communicator.rank
        ctypes.memmove(output + starts[own], given, sizes[own])  # given may lie in the output
        blocks = [_view_bytes(output + starts[i], sizes[i]) for i in range(n_blocks)]
        if not self._exchange([blocks[own]] * n_blocks, blocks):
            for i, block in enumerate(blocks):
                if i != own and sizes[i] == sizes[own]:
                    ctypes.memmove(output + starts[i], output + starts[own], sizes[own])
                elif i != own:
                    block[:] = bytes(sizes[i])
        elif self.counter is not None and n_given == self.counter.n_bytes:
            try:
                self.counter.correct(blocks)
            except Exception as error:
                self.error = error

    def reduce_scatter(
        self,
        given: int,
        n_given: int,
        size_of_one: int,
        starts: Any,
        sizes: Any,
        n_blocks: int,
        output: int,
        n_output: int,
        reduce: Any,
    ) -> None:
        """Combine what all machines have of the block of this one, in the order of the machines."""
        own = self.communicator.rank
        n = sizes[own]
        others = [bytearray(0 if i == own else n) for i in range(n_blocks)]
        mine = given + starts[own]
        add: Callable[..., None] = reduce[0]
        blocks = [_view_bytes(given + starts[i], sizes[i]) for i in range(n_blocks)]
        if not self._exchange(blocks, [memoryview(each) for each in others]):
            ctypes.memmove(output, mine, n)
            return
        addresses = [mine if i == own else _find_address(each, n) for i, each in enumerate(others)]
        ctypes.memmove(output, addresses[0], n)
        for address in addresses[1:]:
            add(address, output, size_of_one, n)
        if self.counter is not None:
            try:
                self.counter.prune(np.frombuffer(_view_bytes(output, n), np.float64))
            except Exception as error:
                self.error = error


def _view_bytes(address: int, n: int) -> memoryview:
    """Return the bytes at an address."""
    return memoryview((ctypes.c_char * n).from_address(address)).cast("B") if n else memoryview(b"")


def _find_address(buffer: bytearray, n: int) -> int:
    """Return the address of a buffer of so many bytes."""
    return ctypes.addressof((ctypes.c_char * n).from_buffer(buffer)) if n else 0
