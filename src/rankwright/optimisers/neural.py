"""Trains a torch module on any objective, on CPU or GPU, by batches of whole queries.

Batches hold queries of about one length, padded to the longest. On a CPU a batch is cut into parts by its size alone,
each of which one thread computes, and their gradients are added up in order: the same bits on one thread and on many.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from rankwright.backends import Backend
from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.objectives.base import Objective
from rankwright.optimisers.steps import Adam, Place
from rankwright.scaling import Standard
from rankwright.scorers import Network, Scorer
from rankwright.torch import Loss, loss_of
from rankwright.torch.base import Lists, Rows

_ALIGNED = 16  # numbers: where parameters begin in memory
_APART = 1.25  # how much longer than another a query may be and still be taken for its equal
_MOST_DOCS = 1 << 17  # of a batch, with padding
_PART_DOCS, _MOST_PARTS = 2048, 16  # more would keep the threads waiting for each other's Python
_ROWS = 8192  # scored at a time

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
}


def feed_forward(n_features: int, hidden: tuple[int, ...], activation: str, seed: int) -> nn.Sequential:
    """A network with these hidden layers; weights are normal, of the size that keeps outputs of one size."""
    generator = torch.Generator().manual_seed(seed)
    widths = (n_features, *hidden, 1)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layer = nn.Linear(inputs, outputs)
        bend = 2.0 if activation == "relu" and layers else 1.0  # half of the inputs are 0
        with torch.no_grad():
            layer.weight.normal_(0.0, (bend / inputs) ** 0.5, generator=generator)
            layer.bias.zero_()
        layers += [layer, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


def plain_layers(module: nn.Module) -> tuple[list[Floats], list[Floats], str] | None:
    """Weights, biases and activation of a plain feed-forward network; None if the module is another."""
    layers: list[Any] = list(module) if isinstance(module, nn.Sequential) else [module]
    linear, bends = layers[::2], layers[1::2]
    kinds = {type(bend) for bend in bends}
    if len(layers) % 2 == 0 or len(kinds) > 1 or not all(type(layer) is nn.Linear for layer in linear):
        return None
    names = [name for name, kind in ACTIVATIONS.items() if {kind} == kinds or not kinds]
    if not names or any(getattr(bend, "approximate", "none") != "none" for bend in bends):
        return None
    weights = [layer.weight.detach().cpu().numpy().T.astype(np.float32) for layer in linear]
    biases = [
        np.zeros(layer.out_features, np.float32) if layer.bias is None else layer.bias.detach().cpu().numpy().copy()
        for layer in linear
    ]
    return (weights, biases, names[0]) if weights[-1].shape[1] == 1 else None


class Criterion(Protocol):
    """What is minimised, bound to the training queries."""

    is_sampled: bool

    def widest(self, queries: Ints) -> int:
        """How many rows its tables of pairs need for these queries."""
        ...

    def __call__(self, scores: Tensor, part: _Part, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The sum over the queries of a part, and its derivatives by their padded scores."""
        ...


class _Part(NamedTuple):
    """Some queries, padded."""

    queries: Ints  # on the host
    at: Tensor  # the same on the device
    rows: Tensor
    mask: Tensor
    width: int


class _Native:
    """An objective with a torch form."""

    def __init__(self, loss: Loss, lists: Lists) -> None:
        self.loss, self.lists, self.is_sampled = loss, lists, loss.is_sampled

    def widest(self, queries: Ints) -> int:
        return self.lists.widest(queries)

    def __call__(self, scores: Tensor, part: _Part, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        batch = self.lists.batch(part.at, part.rows, part.mask, part.width)
        values, slopes = self.loss.evaluated(scores, batch, generator)
        return values.sum(), slopes


class _Bridged:
    """Any other objective: it sees the scores on the CPU, in double precision."""

    def __init__(self, objective: Objective, queries: Queries) -> None:
        self.objective, self.queries = objective, queries
        self.is_sampled = bool(getattr(objective.bind(queries.slice(0, 1)), "is_sampled", False))

    def widest(self, queries: Ints) -> int:
        return 0

    def __call__(self, scores: Tensor, part: _Part, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        there = part.mask.cpu().numpy()
        rng = None if generator is None else np.random.default_rng(generator.initial_seed())
        own = scores.cpu().numpy()[there].astype(np.float64)
        found = self.objective.bind(self.queries.take(part.queries))(own, rng)
        slopes = np.zeros(there.shape)
        slopes[there] = found.gradient
        return scores.new_tensor(found.loss), torch.as_tensor(slopes, dtype=scores.dtype, device=scores.device)


class Trainer:
    """A module and what it is trained on.

    Parameters
    ----------
    module : nn.Module
        Takes a matrix of documents, and returns a score for each. It is changed in place.
    train : Queries
        Training queries, scaled.
    objective : Objective
        What is minimised: its mean over the queries, with the penalty.
    alpha : float
        Of the penalty alpha |w - center|^2 against the sum over the queries, w all weights but the biases.
    batch_size : int
        Queries of a batch.
    device : str
        Where it runs.
    backend : Backend
        The threads of the CPU.
    """

    def __init__(
        self,
        module: nn.Module,
        train: Queries,
        objective: Objective,
        alpha: float,
        *,
        batch_size: int,
        device: str,
        backend: Backend,
    ) -> None:
        self.device, self.backend, self.alpha, self.batch_size = check_device(device), backend, alpha, batch_size
        self.module, self.train, self.n_queries = module.to(self.device, torch.float32), train, len(train)
        self.X = torch.as_tensor(train.X, device=self.device)
        self.rows = Rows(train.indptr, self.device)
        self._adopt([p for p in self.module.parameters() if p.requires_grad])
        self.center = torch.zeros_like(self.w)
        self.aim(objective)

    def _adopt(self, parameters: list[nn.Parameter]) -> None:
        """Lay the parameters into one vector, of which they become views."""
        if not parameters:
            raise InputError("the network has no parameters to train")
        sizes = [-(-p.numel() // _ALIGNED) * _ALIGNED for p in parameters]
        starts = np.cumsum([0, *sizes]).tolist()
        self.parameters = parameters
        self.places = [slice(start, start + p.numel()) for start, p in zip(starts, parameters, strict=False)]
        self.w = torch.zeros(starts[-1], device=self.device)
        self.decays = torch.zeros_like(self.w)
        for place, p in zip(self.places, parameters, strict=True):
            self.w[place] = p.data.flatten()
            self.decays[place] = float(p.ndim > 1)
            p.data = self.w[place].view(p.shape)

    @property
    def is_sampled(self) -> bool:
        """Whether losses are estimates."""
        return self.criterion.is_sampled

    def vector(self, values: Floats) -> Tensor:
        """An array as a vector of the kind of ``w``."""
        return torch.as_tensor(values, dtype=self.w.dtype, device=self.device)

    def array(self, values: Tensor) -> Floats:
        """A vector as an array."""
        found: Floats = values.detach().cpu().numpy().copy()
        return found

    def aim(self, objective: Objective) -> None:
        """Minimise this from now on."""
        loss = loss_of(objective)
        self.criterion: Criterion
        if loss is None:
            self.criterion = _Bridged(objective, self.train)
        else:
            self.criterion = _Native(loss, Lists(loss.labels(self.train), self.device, torch.float32))
        self.graphs: Graphs | None = None

    def hold(self, center: Floats) -> None:
        """Hold weights to these."""
        self.center.copy_(self.vector(center))

    def scorer(self, standard: Standard) -> Scorer:
        """What the module has become: arrays if it is a plain network, or else the module itself."""
        plain = plain_layers(self.module)
        if plain is None:
            return TorchScorer(deepcopy(self.module).cpu().eval(), standard)
        return Network(standard.mean, standard.factor, *plain)

    def look(self, queries: Ints, seed: tuple[int, ...], share: float) -> tuple[Tensor, Tensor]:
        """The loss summed over these queries, and the derivative of ``share`` times it by the weights."""
        parts = [queries]
        if self.device.type == "cpu":
            docs = len(queries) * self.rows.longest(queries)
            parts = np.array_split(queries, min(max(docs // _PART_DOCS, 1), _MOST_PARTS, len(queries)))

        def one(number: int) -> tuple[Tensor, Tensor]:
            if self.device.type == "cpu" and torch.get_num_threads() != 1:
                torch.set_num_threads(1)
            part = parts[number]
            at = torch.as_tensor(part, device=self.device)
            generator = self.generator((*seed, number)) if self.is_sampled else None
            return self.slopes(part, at, self.rows.longest(part), self.criterion.widest(part), share, generator)

        (loss, gradient), *rest = self.backend.each(one, range(len(parts)))
        for its_loss, its_gradient in rest:
            loss, gradient = loss + its_loss, gradient.add_(its_gradient)
        return loss, gradient

    def slopes(
        self, queries: Ints, at: Tensor, length: int, width: int, share: float, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The same of one part, padded to this length."""
        rows, mask = self.rows.padded(at, length)
        with torch.enable_grad():
            scores = self.module(self.X[rows.flatten()]).reshape(rows.shape)
            loss, slopes = self.criterion(scores.detach(), _Part(queries, at, rows, mask, width), generator)
            found = torch.autograd.grad(scores, self.parameters, share * slopes, allow_unused=True)
        gradient = torch.zeros_like(self.w)
        for place, g in zip(self.places, found, strict=True):
            if g is not None:
                gradient[place] = g.flatten()
        return loss, gradient

    def generator(self, seed: tuple[int, ...]) -> torch.Generator:
        """Random numbers of the device, from this seed."""
        number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))
        return torch.Generator(self.device).manual_seed(number)

    def penalty(self) -> float:
        """Its value."""
        away = self.decays * (self.w - self.center)
        return float(self.alpha * (away * away).sum())

    def pull(self) -> Tensor:
        """Its derivative, as a part of the mean over the queries."""
        return (2.0 * self.alpha / self.n_queries) * self.decays * (self.w - self.center)

    def epoch(self, adam: Adam, seed: tuple[int, ...]) -> float:
        """A step on each batch; the sum of the losses as they were met."""
        batches = batches_of(self.rows.sizes, self.batch_size, np.random.default_rng(seed))
        self.module.train()
        if self.device.type == "cuda" and isinstance(self.criterion, _Native) and plain_layers(self.module) is not None:
            if self.graphs is None or self.graphs.adam is not adam:
                self.graphs = Graphs(self, adam)
            return self.graphs.epoch(batches, seed)
        total = torch.zeros((), device=self.device, dtype=torch.float64)
        for number, queries in enumerate(batches):
            loss, gradient = self.look(queries, (*seed, number), 1.0 / len(queries))
            if self.alpha:
                gradient += self.pull()
            adam.step(self.w, gradient)
            total += loss
        return float(total)

    def place(self, w: Tensor, seed: tuple[int, ...]) -> Place:
        """Loss, penalty and gradient over all queries, for batch descent."""
        batches = batches_of(self.rows.sizes, len(self.rows.sizes), np.random.default_rng(0))
        self.w.copy_(w)
        self.module.train()
        total, gradient = 0.0, self.pull() if self.alpha else torch.zeros_like(self.w)
        for number, queries in enumerate(batches):
            loss, its = self.look(queries, (*seed, number), 1.0 / self.n_queries)
            gradient += its
            total += float(loss)
        return Place(w, total, total + self.penalty(), gradient)

    def scores(self, X: Floats) -> Floats:
        """The scores of documents, scaled as the training queries are."""
        self.module.eval()

        def some(start: int) -> Floats:
            if self.device.type == "cpu" and torch.get_num_threads() != 1:
                torch.set_num_threads(1)
            with torch.no_grad():
                found = self.module(torch.as_tensor(X[start : start + _ROWS], device=self.device))
            scores: Floats = found.reshape(-1).cpu().numpy().astype(np.float64)
            return scores

        return np.concatenate(self.backend.each(some, range(0, len(X), _ROWS)))


class Graphs:
    """Steps of Adam as CUDA graphs: a step is a hundred small kernels, which take longer to launch than to run.

    A graph is of batches of one shape, so that lengths are rounded up; what differs from batch to batch, the numbers
    of its queries, is written to where the graph reads it.

    Parameters
    ----------
    trainer : Trainer
        Of a plain network, on a GPU.
    adam : Adam
        Its state is part of the graphs.
    """

    def __init__(self, trainer: Trainer, adam: Adam) -> None:
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
            length, width = self.trainer.rows.longest(queries), self.trainer.criterion.widest(queries)
            longest = int(self.trainer.rows.sizes.max())
            shape = len(queries), min(rounded_up(length), longest), min(rounded_up(width), longest)
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


@dataclass(frozen=True, slots=True, eq=False)
class TorchScorer:
    """A torch module of scaled features, where that is no plain feed-forward network; it cannot be saved as arrays."""

    kind: ClassVar[str] = "torch"
    allow_nan: ClassVar[bool] = False
    module: nn.Module
    standard: Standard

    def __call__(self, X: Floats) -> Floats:
        """Its outputs."""
        found = np.empty(len(X))
        with torch.no_grad():
            for start in range(0, len(X), _ROWS):
                scaled = (X[start : start + _ROWS] - self.standard.mean) * self.standard.factor
                inputs = torch.as_tensor(scaled, dtype=torch.float32)
                found[start : start + _ROWS] = self.module(inputs).reshape(-1).numpy()
        return found

    def takes(self, n_features: int) -> bool:
        """Whether it was trained on as many."""
        return len(self.standard.mean) == n_features

    def to_json(self) -> dict[str, Any]:
        """There is none."""
        raise InputError(
            "only plain feed-forward networks (linear layers with one kind of activation between them) are saved as "
            "models; save scorer_.module.state_dict() of this one with torch"
        )


def batches_of(sizes: Ints, batch_size: int, rng: np.random.Generator) -> list[Ints]:
    """Queries in batches of about one length, in random order.

    >>> [batch.tolist() for batch in batches_of(np.array([9, 100, 10, 90]), 2, np.random.default_rng(0))]
    [[2, 0], [3, 1]]
    """
    order = np.argsort(sizes * rng.uniform(1.0, _APART, len(sizes)), kind="stable")
    found: list[Ints] = []
    for batch in np.array_split(order, -(-len(order) // batch_size)):
        docs = len(batch) * int(sizes[batch].max())
        found += np.array_split(batch, min(-(-docs // _MOST_DOCS), len(batch)))
    return [found[i] for i in rng.permutation(len(found))]


def check_device(device: str) -> torch.device:
    """A device that there is."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise InputError(f"device={device!r}; expected 'cpu' or 'cuda'") from None
    if found.type == "cuda":
        if not torch.cuda.is_available():
            raise InputError(f"device={device!r}; torch sees no GPU here")
        # torch's thread of gradients meets the GPU here, and not in a library that warns of it
        one = torch.ones(1, device=found, requires_grad=True)
        torch.autograd.grad(2.0 * one, one)
    return found


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's own random numbers from a seed, and as they were afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def single_threaded(device: str) -> Iterator[None]:
    """Torch's own threads off, on a CPU: parts of batches run side by side instead."""
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
