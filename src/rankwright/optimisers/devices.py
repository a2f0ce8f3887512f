"""The devices, threads and random numbers of torch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, RLock

import torch

from rankwright.basics.errors import InputError

_random = RLock()  # torch's own random numbers are one for all threads
_gpu = RLock()  # graphs can be captured by one thread at a time, while no other uses the GPU


def check_device(device: str) -> torch.device:
    """Return the torch device of a name such as "cuda"; raise InputError if this machine has no such device."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise InputError(f"device={device!r}; expected 'cpu' or 'cuda'") from None
    if found.type not in ("cpu", "cuda"):
        raise InputError(f"device={device!r}; expected 'cpu' or 'cuda'")
    if found.type == "cpu":
        return torch.device("cpu")
    if (found.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device={device!r}; torch sees {torch.cuda.device_count() or 'no'} GPU here")
    found = torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)
    # torch's gradient thread initialises the GPU here; in a library it would cause a warning
    one = torch.ones(1, device=found, requires_grad=True)
    torch.autograd.grad(2.0 * one, one)
    return found


@contextmanager
def use_device(device: torch.device) -> Iterator[None]:
    """Prepare torch for a fit inside the block: no threads of torch's own on a CPU, no other fit on a GPU."""
    with torch.inference_mode(False), torch.enable_grad():
        if device.type == "cpu":
            with _turn_threads_off():
                yield
        else:
            with _gpu, torch.cuda.device(device):
                yield


@contextmanager
def seed_torch(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Set the seed of torch's own random numbers inside the block, and restore their state afterwards."""
    with _random:
        generators = [torch.default_generator]
        if device is not None and device.type == "cuda":
            generators.append(torch.cuda.default_generators[device.index])
        states = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(seed)
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


class _ThreadCount:
    """The shared record of fits that run now, and of torch's usual number of threads, to restore after the last."""

    lock, fits, usual = Lock(), 0, 0


@contextmanager
def _turn_threads_off() -> Iterator[None]:
    """Turn torch's own threads off inside the block: parts of batches run in parallel instead.

    Their number belongs to the calling thread, and setting it sets that of all new threads, too.
    """
    own = torch.get_num_threads()
    with _ThreadCount.lock:
        if _ThreadCount.fits == 0:
            with ThreadPoolExecutor(1) as new:
                _ThreadCount.usual = new.submit(torch.get_num_threads).result()
        _ThreadCount.fits += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _ThreadCount.lock:
            _ThreadCount.fits -= 1
            torch.set_num_threads(_ThreadCount.usual if _ThreadCount.fits == 0 else own)
