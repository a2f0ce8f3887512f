"""Where torch works: its devices, its threads, and its random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

from rankwright.backends import inside_pool
from rankwright.errors import InputError


def check_device(device: str) -> torch.device:
    """A device that there is."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise InputError(f"device={device!r}; expected 'cpu' or 'cuda'") from None
    if found.type not in ("cpu", "cuda"):
        raise InputError(f"device={device!r}; expected 'cpu' or 'cuda'")
    if found.type == "cuda":
        if (found.index or 0) >= torch.cuda.device_count():
            raise InputError(f"device={device!r}; torch sees {torch.cuda.device_count() or 'no'} GPU here")
        # torch's thread of gradients meets the GPU here, and not in a library that warns of it
        one = torch.ones(1, device=found, requires_grad=True)
        torch.autograd.grad(2.0 * one, one)
    return found


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Torch's own random numbers from a seed, and as they were afterwards."""
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


class _Threads:
    """How many threads torch had before, while any fit runs: the number that new threads will have."""

    lock, fits, before = Lock(), 0, 0


@contextmanager
def single_threaded(device: str) -> Iterator[None]:
    """Torch's own threads off, on a CPU: parts of batches run side by side instead."""
    if device != "cpu" or inside_pool():  # a pool's threads stay as they are, and whoever fits in them has called this
        yield
        return
    own = torch.get_num_threads()  # of the calling thread
    with _Threads.lock:
        if _Threads.fits == 0:
            _Threads.before = own
        _Threads.fits += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _Threads.lock:
            _Threads.fits -= 1
            torch.set_num_threads(_Threads.before if _Threads.fits == 0 else own)
