"""``python -m benchmarks.networks``: documents a second of training a network on each loss, on GPU and CPU.

For a machine with a GPU; without one the tables of the CPU are written.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Mapping
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
from benchmarks.timing import THREADS, medians, take_turns
from rankwright.basics.files import write_atomic
from rankwright.objectives import ExpectedMeasure, Lambdas, SoftPositions, Squares, TopOne
from rankwright.optimisers.devices import use_device
from rankwright.optimisers.step_rules import Adam
from rankwright.optimisers.torch_modules import build_network
from rankwright.optimisers.torch_trainer import TorchTrainer, make_batches
from rankwright.runtime.backends import count_cores
from rankwright.torch import make_loss

HIDDEN, FEATURES, DOCUMENTS = (256, 128), 136, 720_000
LENGTHS = (24, 120, 1000)
AT_ONCE = (120 * 512, 120 * 64)  # documents of a batch: large, and small
EPOCHS = 9
N_LISTS = 16  # whose memory is measured
FLOOR, PLAIN = "floor: squared errors", "squared errors in plain torch, its own threads"
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
NOTE = (
    "Memory is what a loss takes beyond the floor. Our steps are CUDA graphs, the usual forms run step by step, as "
    "they are usually run; ours without graphs stand beside them. Epochs are of training alone, without judging."
)
USUAL = {
    "SmoothNDCG@50": "ApproxNDCG of all pairs",
    "ExpectedNDCG@10, 8 samples": "ApproxNDCG of all pairs of 8 samples",
    "LambdaRank@10": "all pairs, masked",
    "ListNet": "two softmaxes",
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


def trainer_of(queries: rw.Queries, objective: Any, at_once: int, device: str, n_threads: int) -> TorchTrainer:
    """The network with this loss."""
    length = int(queries.sizes.max())
    return TorchTrainer(
        build_network(FEATURES, HIDDEN, "relu", 0),
        queries,
        objective,
        0.0,
        batch_size=max(1, at_once // length),
        device=device,
        backend=rw.Threads(n_threads),
    )


def usual_epoch(trainer: TorchTrainer, adam: Adam, labels: Tensor, loss: Callable[..., Tensor], seed: int) -> float:
    """The same epoch with a loss as it is usually written."""
    total = torch.zeros((), device=trainer.device)
    for queries in make_batches(trainer.rows.sizes, trainer.batch_size, np.random.default_rng(seed)):
        at = torch.as_tensor(queries, device=trainer.device)
        rows, mask = trainer.rows.pad(at, trainer.rows.max_length(queries))
        scores = trainer.module(trainer.take_documents(rows.flatten())).reshape(rows.shape)
        value = loss(scores, labels[rows], mask).sum()
        found = torch.autograd.grad(value / len(queries), trainer.parameters)
        gradient = torch.zeros_like(trainer.w)
        for part, g in zip(trainer.places, found, strict=True):
            gradient[part] = g.flatten()
        adam.step(trainer.w, gradient)
        total += value.detach()
    return float(total)


def timed(run: Callable[[int], Any], device: str, epochs: int) -> tuple[float, float]:
    """The median seconds of an epoch, and the most memory of the GPU in MB."""
    run(0)
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = []
    for number in range(1, epochs + 1):
        start = perf_counter()
        run(number)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
    return median(seconds), torch.cuda.max_memory_allocated() / 1e6 if device == "cuda" else 0.0


def forget() -> None:
    """Leave nothing of earlier runs on the GPU."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def our_seconds(
    queries: rw.Queries, name: str, at_once: int, device: str, n_threads: int, graphs: bool = True
) -> tuple[float, float]:
    """Of an epoch of ours."""
    if device == "cuda":
        forget()
    trainer = trainer_of(queries, OBJECTIVES[name], at_once, device, n_threads)
    trainer.is_plain = graphs  # only plain networks have graphs
    adam = Adam(1e-3, trainer.w)
    return timed(lambda number: trainer.epoch(adam, (0, number)), device, EPOCHS if device == "cuda" else 2)


def usual_seconds(queries: rw.Queries, name: str, at_once: int) -> tuple[float, float] | None:
    """Of an epoch with the usual form on the GPU; None where it does not fit into memory."""
    forget()
    trainer = trainer_of(queries, Squares(), at_once, "cuda", 1)
    adam = Adam(1e-3, trainer.w)
    labels = torch.as_tensor(queries.y, dtype=torch.float32, device=trainer.device)
    try:
        return timed(lambda number: usual_epoch(trainer, adam, labels, PEERS[name], number), "cuda", EPOCHS)
    except torch.OutOfMemoryError:
        return None


def rate(queries: rw.Queries, seconds: float) -> str:
    """Documents a second."""
    return f"{queries.n_docs / seconds / 1e6:.2f} M/s"


def measure_gpu(queries: rw.Queries, at_once: int) -> tuple[Table, dict[str, float]]:
    """Ours against the floor and the usual forms, on the GPU; and our seconds."""
    length, rows, ours = int(queries.sizes.max()), list[Row](), dict[str, float]()
    least = 0.0
    for name in OBJECTIVES:
        ours[name], memory = our_seconds(queries, name, at_once, "cuda", 1)
        least = least or memory
        floor = ours[FLOOR]
        figure = f"{rate(queries, ours[name])}, {max(memory - least, 0.0):,.0f} MB"
        if name == FLOOR:
            rows.append(Row(name, f"{rate(queries, floor)}, {memory:,.0f} MB in all"))
            continue
        ratio = ours[name] / floor
        rows.append(Row(name, figure, f"{ratio:.2f}x the floor", "at most 1.5x", ratio <= 1.5))
        eager, _ = our_seconds(queries, name, at_once, "cuda", 1, graphs=False)
        rows.append(Row("the same, without graphs", rate(queries, eager), f"{eager / floor:.2f}x the floor"))
        peer = usual_seconds(queries, name, at_once)
        said = "does not fit into memory"
        if peer is not None:
            said = f"{rate(queries, peer[0])}, {max(peer[1] - least, 0.0):,.0f} MB"
        rows.append(Row(f"the same, {USUAL[name]}", said, "" if peer is None else f"{peer[0] / floor:.2f}x the floor"))
    title = f"{torch.cuda.get_device_name()}: lists of {length:,}, batches of {at_once:,} documents"
    return Table(title, rows, [NOTE]), ours


def plain_torch(queries: rw.Queries, at_once: int, n_threads: int) -> None:
    """An epoch of the network with squared errors as anyone would write it, on torch's own threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    X, y = torch.from_numpy(queries.X), torch.from_numpy(queries.y).float()
    network = build_network(FEATURES, HIDDEN, "relu", 0)
    optimiser = torch.optim.Adam(network.parameters())
    order = torch.randperm(len(X))
    for start in range(0, len(X), at_once):
        rows = order[start : start + at_once]
        optimiser.zero_grad()
        loss = ((network(X[rows]).squeeze(1) - y[rows]) ** 2).mean()
        loss.backward()
        optimiser.step()
    torch.set_num_threads(before)


def measure_cpu(queries: rw.Queries, at_once: int, n_threads: int, gpu: Mapping[str, float]) -> Table:
    """Ours against the floor, on the CPU; and the GPU against that. Epochs take turns."""
    with use_device(torch.device("cpu")):
        tasks: dict[str, Callable[[], object]] = {}
        for name, objective in OBJECTIVES.items():
            trainer = trainer_of(queries, objective, at_once, "cpu", n_threads)
            tasks[name] = partial(trainer.epoch, Adam(1e-3, trainer.w), (0, 1))
        tasks[PLAIN] = partial(plain_torch, queries, at_once, n_threads)
        take_turns(tasks, 1)
        seconds = medians(take_turns(tasks, 5))
    floor, rows = seconds[FLOOR], []
    for name, own in seconds.items():
        said = f"{own / floor:.2f}x the floor"
        if name in gpu:
            said += f"; the GPU is {own / gpu[name]:.0f}x as fast"
        if name.startswith("LambdaRank"):
            rows.append(Row(name, rate(queries, own), said, "at most 2x", own <= 2.0 * floor))
        else:
            rows.append(Row(name, rate(queries, own), said))
    title = f"CPU, {n_threads} threads: lists of {int(queries.sizes.max())}, batches of {at_once:,} documents"
    return Table(title, rows, ["The floor is a network with squared errors, by the same trainer."])


def loss_memory(name: str, length: int, usual: bool) -> float:
    """The most memory in MB that a loss and its gradient take for a batch, beyond scores and labels."""
    queries = make(length, N_LISTS * length)
    forget()
    scores = torch.randn(N_LISTS, length, device="cuda", requires_grad=True)
    if usual:
        labels = torch.as_tensor(queries.y, dtype=torch.float32, device="cuda").view_as(scores)
        mask = torch.ones_like(scores, dtype=torch.bool)
        before = torch.cuda.memory_allocated()
        torch.autograd.grad(PEERS[name](scores, labels, mask).sum(), scores)
    else:
        loss = make_loss(OBJECTIVES[name])
        assert loss is not None
        prepared = loss.prepare(queries.y.reshape(N_LISTS, length)).to("cuda", torch.float32)
        before = torch.cuda.memory_allocated()
        torch.autograd.grad(loss(scores, prepared), scores)
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def measure_memory() -> Table:
    """How memory grows with the length of lists."""
    rows = []
    for name in PEERS:
        for usual in (False, True):
            found = [loss_memory(name, length, usual) for length in (120, 1000, 4000)]
            what = f"the same, {USUAL[name]}" if usual else name
            grown = f"{found[2] / found[1]:.1f}x from 1,000 to 4,000"
            rows.append(Row(what, ", ".join(f"{mb:,.0f} MB" for mb in found), grown))
    notes = [
        f"Value and gradient of {N_LISTS} lists of 120, 1,000 and 4,000 documents: memory beyond scores and labels."
    ]
    return Table(f"{torch.cuda.get_device_name()}: memory of the losses alone", rows, notes)


def measure() -> list[Table]:
    """All tables that this machine can have."""
    found, gpu = [], dict[str, float]()
    if torch.cuda.is_available():
        for length in LENGTHS:
            queries = make(length)
            for at_once in AT_ONCE:
                table, ours = measure_gpu(queries, at_once)
                found.append(table)
                if (length, at_once) == (120, AT_ONCE[0]):
                    gpu = ours
        found.append(measure_memory())
    n_threads = count_cores() if gpu else THREADS
    return [*found, measure_cpu(make(120), AT_ONCE[0], n_threads, gpu)]


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
