"""Steps of training as CUDA graphs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankwright.basics.array_types import Ints
from rankwright.optimisers.step_rules import Adam

if TYPE_CHECKING:
    from rankwright.optimisers.torch_trainer import TorchTrainer


class Graphs:
    """Steps of Adam as CUDA graphs: a step is a hundred small kernels, which take longer to launch than to run.

    A graph is of batches of one shape, so that lengths are rounded up; what differs from batch to batch, the numbers
    of its queries, is written to where the graph reads it.

    Parameters
    ----------
    trainer : TorchTrainer
        Of a plain network, on a GPU.
    adam : Adam
        Its state is part of the graphs.
    """

    def __init__(self, trainer: TorchTrainer, adam: Adam) -> None:
        self.trainer, self.adam = trainer, adam
        self.total = torch.zeros((), device=trainer.device, dtype=torch.float64)
        self.noise = torch.Generator(trainer.device)
        self.known: dict[tuple[int, int, int], tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def epoch(self, batches: list[Ints], seed: tuple[int, ...]) -> float:
        """A step on each batch; the sum of the losses as they were met."""
        self.noise.manual_seed(self.trainer.generator(seed).initial_seed())
        self.total.zero_()
        for queries in batches:
            length, width = self.trainer.rows.max_length(queries), self.trainer.criterion.widest(queries)
            longest = int(self.trainer.rows.sizes.max())
            wide = min(1 << (width - 1).bit_length(), longest) if width else 0
            shape = len(queries), min(rounded_up(length), longest), wide
            if shape not in self.known:
                self.known[shape] = self._captured(queries, *shape)
            graph, at = self.known[shape]
            at.copy_(torch.from_numpy(queries), non_blocking=True)
            graph.replay()
        return float(self.total)

    def _captured(self, queries: Ints, n: int, length: int, width: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        trainer, at = self.trainer, torch.as_tensor(queries, device=self.trainer.device)

        def step() -> None:
            loss, gradient = trainer.slopes(queries, at, length, min(width, length), 1.0 / n, self.noise)
            if trainer.alpha:
                gradient += trainer.pull()
            self.adam.step(trainer.w, gradient)
            self.total.add_(loss)

        changed = (trainer.w, self.total, *self.adam.state)
        before, seed = [values.clone() for values in changed], self.noise.get_state()
        stream = _stream(trainer.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # once, for what is made on first use; then undone
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
def _stream(device: torch.device) -> Any:
    """The one stream on which graphs are made: libraries keep memory for each that they have seen."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def rounded_up(length: int) -> int:
    """To three binary digits, or to a multiple of eight: few lengths for all.

    >>> [rounded_up(length) for length in (0, 5, 8, 120, 129, 1000)]
    [0, 8, 8, 128, 160, 1024]
    """
    unit = max(8, 1 << max(length.bit_length() - 3, 0))
    return -(-length // unit) * unit
