"""``python -m benchmarks.networks``: documents a second of training a network on each loss, on GPU and CPU.

For a machine with a GPU; without one the tables of the CPU are written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rankwright as rw
from benchmarks import padded
from benchmarks.report import Row, Table, publish
from benchmarks.timing import THREADS
from rankwright.backends import n_cores
from rankwright.files import write_atomic
from rankwright.objectives import ExpectedMeasure, Lambdas, SoftPositions, Squares, TopOne
from rankwright.optimisers.neural import Trainer, batches_of, feed_forward, single_threaded
from rankwright.optimisers.steps import Adam

HIDDEN, FEATURES, DOCUMENTS = (256, 128), 136, 720_000
LENGTHS = (24, 120, 1000)
AT_ONCE = (120 * 512, 120 * 64)  # documents of a batch: large, and small
EPOCHS = 5
FLOOR = "floor: squared errors"
OBJECTIVES: dict[str, Any] = {
    FLOOR: Squares(),
    "SmoothNDCG@50": SoftPositions("ndcg@50"),
    "ExpectedNDCG@10, 8 samples": ExpectedMeasure("ndcg@10", 8),
    "LambdaRank@10": Lambdas("ndcg@10"),
    "ListNet": TopOne(),
}
PEERS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "SmoothNDCG@50": partial(padded.approx_ndcg, k=50),
    "ExpectedNDCG@10, 8 samples": partial(padded.gumbel_approx_ndcg, k=10, n_samples=8),
    "LambdaRank@10": partial(padded.lambda_rank, k=10),
    "ListNet": padded.list_net,
}


def make(length: int, n_docs: int = DOCUMENTS) -> rw.Queries:
    """Random documents; grades from 0 to 4 by a rough function of the features."""
    rng = np.random.default_rng(0)
    n_queries = n_docs // length
    X = rng.standard_normal((n_queries * length, FEATURES), dtype=np.float32)
    hidden = np.tanh(X[:, :16] @ rng.standard_normal((16, 8), dtype=np.float32)).sum(axis=1)
    noisy = hidden + rng.standard_normal(len(X), dtype=np.float32)
    y = np.searchsorted(np.quantile(noisy, (0.55, 0.8, 0.93, 0.98)), noisy).astype(np.float64)
    return rw.Queries(X, y, np.arange(n_queries + 1) * length, np.arange(n_queries))


def trainer_of(queries: rw.Queries, objective: Any, at_once: int, device: str, n_threads: int) -> Trainer:
    """The network with this loss."""
    length = int(queries.sizes.max())
    return Trainer(
        feed_forward(FEATURES, HIDDEN, "relu", 0),
        queries,
        objective,
        0.0,
        batch_size=max(1, at_once // length),
        device=device,
        backend=rw.Threads(n_threads),
    )


def usual_epoch(trainer: Trainer, adam: Adam, labels: Tensor, loss: Callable[..., Tensor], seed: int) -> float:
    """The same epoch with a loss as it is usually written."""
    total = torch.zeros((), device=trainer.device)
    for queries in batches_of(trainer.rows.sizes, trainer.batch_size, np.random.default_rng(seed)):
        at = torch.as_tensor(queries, device=trainer.device)
        rows, mask = trainer.rows.padded(at, trainer.rows.longest(queries))
        scores = trainer.module(trainer.X[rows.flatten()]).reshape(rows.shape)
        value = loss(scores, labels[rows], mask).sum()
        found = torch.autograd.grad(value / len(queries), trainer.parameters)
        gradient = torch.zeros_like(trainer.w)
        for place, g in zip(trainer.places, found, strict=True):
            gradient[place] = g.flatten()
        adam.step(trainer.w, gradient)
        total += value.detach()
    return float(total)


def timed(run: Callable[[int], Any], device: str, epochs: int = EPOCHS) -> tuple[float, float]:
    """The median seconds of an epoch, and the most memory of the GPU in MB."""
    run(0)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for number in range(1, epochs + 1):
        start = perf_counter()
        run(number)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
    return median(seconds), torch.cuda.max_memory_allocated() / 1e6 if device == "cuda" else 0.0


def our_seconds(queries: rw.Queries, name: str, at_once: int, device: str, n_threads: int) -> tuple[float, float]:
    """Of an epoch of ours, and what memory it takes beside the floor's."""
    trainer = trainer_of(queries, OBJECTIVES[name], at_once, device, n_threads)
    adam = Adam(1e-3, trainer.w)
    return timed(lambda number: trainer.epoch(adam, (0, number)), device, EPOCHS if device == "cuda" else 2)


def usual_seconds(queries: rw.Queries, name: str, at_once: int, device: str) -> tuple[float, float] | None:
    """Of an epoch with the usual form; None where it does not fit into memory."""
    trainer = trainer_of(queries, Squares(), at_once, device, 1)
    adam = Adam(1e-3, trainer.w)
    labels = torch.as_tensor(queries.y, dtype=torch.float32, device=trainer.device)
    try:
        return timed(lambda number: usual_epoch(trainer, adam, labels, PEERS[name], number), device)
    except torch.OutOfMemoryError:
        return None


def rate(queries: rw.Queries, seconds: float) -> str:
    """Documents a second."""
    return f"{queries.n_docs / seconds / 1e6:.2f} M/s"


def measure_gpu(queries: rw.Queries, at_once: int) -> Table:
    """Ours against the floor and the usual forms, on the GPU."""
    length = int(queries.sizes.max())
    rows, floor = [], 0.0
    for name in OBJECTIVES:
        seconds, memory = our_seconds(queries, name, at_once, "cuda", 1)
        floor = floor or seconds
        figure = f"{rate(queries, seconds)}, {memory:,.0f} MB"
        rows.append(Row(name, figure, f"{seconds / floor:.2f}x the floor", "at most 1.5x", seconds / floor <= 1.5))
        if name in PEERS:
            peer = usual_seconds(queries, name, at_once, "cuda")
            if peer is None:
                rows.append(Row(f"{name}, all pairs", "does not fit into memory"))
            else:
                said = f"{rate(queries, peer[0])}, {peer[1]:,.0f} MB"
                rows.append(Row(f"{name}, all pairs", said, f"{peer[0] / floor:.2f}x the floor"))
    title = f"{torch.cuda.get_device_name()}: lists of {length}, batches of {at_once:,} documents"
    return Table(title, rows, [])


def measure_cpu(queries: rw.Queries, at_once: int, n_threads: int) -> Table:
    """Ours against the floor, on the CPU."""
    rows, floor = [], 0.0
    with single_threaded("cpu"):
        for name in OBJECTIVES:
            seconds, _ = our_seconds(queries, name, at_once, "cpu", n_threads)
            floor = floor or seconds
            rows.append(Row(name, rate(queries, seconds), f"{seconds / floor:.2f}x the floor"))
    title = f"CPU, {n_threads} threads: lists of {int(queries.sizes.max())}, batches of {at_once:,} documents"
    return Table(title, rows, [])


def measure() -> list[Table]:
    """All tables that this machine can have."""
    found = []
    if torch.cuda.is_available():
        for length in LENGTHS:
            queries = make(length)
            found += [measure_gpu(queries, at_once) for at_once in AT_ONCE]
    queries = make(120)
    n_threads = n_cores() if torch.cuda.is_available() else THREADS
    return [*found, measure_cpu(queries, AT_ONCE[0], n_threads)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description="Training networks.")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    given = parser.parse_args()
    report = publish([measure])
    if given.out is not None:
        with write_atomic(given.out) as file:
            file.write(report)


if __name__ == "__main__":
    main()
