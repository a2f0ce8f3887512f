"""The devices, threads and random numbers of torch, and training steps as CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError
from rankwright.optimisers.step_rules import Adam

if TYPE_CHECKING:
    from rankwright.optimisers.torch_trainer import TorchTrainer

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


class CudaGraphs:
    """The training steps of Adam, captured as CUDA graphs: their many small kernels then start in one launch.

    A graph serves batches of one shape, so lengths are rounded up. The numbers of a batch's queries, which differ from
    batch to batch, are written to the memory that the graph reads.

    Parameters
    ----------
    trainer : TorchTrainer
        The trainer of a plain network, on a GPU.
    adam : Adam
        The optimiser, whose state is part of the graphs.
    """

    def __init__(self, trainer: TorchTrainer, adam: Adam) -> None:
        self.trainer, self.adam = trainer, adam
        self.total = torch.zeros((), device=trainer.device, dtype=torch.float64)
        self.noise = torch.Generator(trainer.device)
        self.known: dict[tuple[int, int, int], tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def epoch(self, batches: list[Ints], seed: tuple[int, ...]) -> float:
        """Take a step on each batch; return the sum of their losses, each before its step."""
        self.noise.manual_seed(self.trainer.generator(seed).initial_seed())
        self.total.zero_()
        for queries in batches:
            length, width = self.trainer.rows.max_length(queries), self.trainer.criterion.widest(queries)
            longest = int(self.trainer.rows.sizes.max())
            wide = min(1 << (width - 1).bit_length(), longest) if width else 0
            shape = len(queries), min(round_up(length), longest), wide
            if shape not in self.known:
                self.known[shape] = self._capture(queries, *shape)
            graph, at = self.known[shape]
            at.copy_(torch.from_numpy(queries), non_blocking=True)
            graph.replay()
        return float(self.total)

    def _capture(self, queries: Ints, n: int, length: int, width: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        trainer, at = self.trainer, torch.as_tensor(queries, device=self.trainer.device)

        def step() -> None:
            loss, gradient = trainer.differentiate_part(queries, at, length, min(width, length), 1.0 / n, self.noise)
            if trainer.alpha:
                gradient += trainer.penalty_gradient()
            self.adam.step(trainer.w, gradient)
            self.total.add_(loss)

        changed = (trainer.w, self.total, *self.adam.state)
        before, seed = [values.clone() for values in changed], self.noise.get_state()
        stream = _get_capture_stream(trainer.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries initialise on first use; the step is undone
            step()
        torch.cuda.current_stream().wait_stream(stream)
        for values, was in zip(changed, before, strict=True):
            values.copy_(was)
        self.noise.set_state(seed)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.noise)
        with torch.cuda.graph(graph, pool=self.pool, stream=stream):
            step()
        return graph, at


@lru_cache
def _get_capture_stream(device: torch.device) -> Any:
    """Return the one CUDA stream on which graphs are captured; libraries keep memory for every stream they see."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def round_up(length: int) -> int:
    """Round a length up to three significant binary digits, or to a multiple of eight, so that few lengths occur.

    >>> [round_up(length) for length in (0, 5, 8, 120, 129, 1000)]
    [0, 8, 8, 128, 160, 1024]
    """
    unit = max(8, 1 << max(length.bit_length() - 3, 0))
    return -(-length // unit) * unit
