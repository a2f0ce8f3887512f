"""Training of a torch module on any objective, on CPU or GPU, by batches of whole queries.

Batches hold queries of about one length, padded to the longest. On a CPU a batch is cut into parts by its size alone,
each of which one thread computes, and their gradients are added up in order: the same bits on one thread and on many.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.objectives.base import Objective
from rankwright.optimisers.devices import CudaGraphs, check_device, seed_torch
from rankwright.optimisers.step_rules import Adam, LossPoint
from rankwright.optimisers.torch_modules import ROWS, TorchScorer, read_layers
from rankwright.runtime.backends import Backend, Serial
from rankwright.scorers import Network, Scorer
from rankwright.scorers.linear import StandardScaling
from rankwright.torch import Loss, make_loss
from rankwright.torch.batches import DeviceLabels, QueryRows

_ALIGNED = 16  # numbers: where parameters begin in memory
_APART = 1.25  # how much longer than another a query may be and still be taken for its equal
_MOST_DOCS = 1 << 17  # of a batch, with padding
_PART_DOCS, _MOST_PARTS = 2048, 16  # more would keep the threads waiting for each other's Python
_QUICK = 300_000_000  # documents times weights: so many are scored to the last bit
_HALF = 1 << 6  # of the last of 16 bits that rounding keeps


class Criterion(Protocol):
    """The interface of a prepared loss: from the scores of a part of a batch to the loss and its derivatives."""

    is_sampled: bool

    def widest(self, queries: Ints) -> int:
        """Return how many rows the tables of pairs need for these queries."""

    def __call__(self, scores: Tensor, part: _PaddedPart, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return the sum over the queries of a part, and its derivatives by their padded scores."""


class _PaddedPart(NamedTuple):
    """A part of a batch: some queries, padded to one length, with the rows and the mask of their documents."""

    queries: Ints  # on the host
    at: Tensor  # the same on the device
    rows: Tensor
    mask: Tensor
    width: int


class _NativeCriterion:
    """A criterion computed by the torch form of an objective, on the device."""

    def __init__(self, loss: Loss, lists: DeviceLabels) -> None:
        self.loss, self.lists, self.is_sampled = loss, lists, loss.is_sampled

    def widest(self, queries: Ints) -> int:
        return self.lists.max_width(queries)

    def __call__(self, scores: Tensor, part: _PaddedPart, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        batch = self.lists.gather(part.at, part.rows, part.mask, part.width)
        values, slopes = self.loss.evaluate_in_parts(scores, batch, generator)
        return values.sum(dtype=torch.float64), slopes


class _KernelCriterion:
    """A criterion computed by the NumPy form of an objective, on the CPU and in double precision."""

    def __init__(self, objective: Objective, queries: Queries) -> None:
        self.objective, self.queries = objective, queries
        longest = objective.prepare(queries.take([int(np.argmax(queries.sizes))]))
        self.is_sampled = longest.is_sampled

    def widest(self, queries: Ints) -> int:
        return 0

    def __call__(self, scores: Tensor, part: _PaddedPart, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        there = part.mask.cpu().numpy()
        rng = None if generator is None else np.random.default_rng(generator.initial_seed())
        own = scores.cpu().numpy()[there].astype(np.float64)
        found = self.objective.prepare(self.queries.take(part.queries))(own, rng)
        slopes = np.zeros(there.shape)
        slopes[there] = found.gradient
        loss = torch.tensor(found.loss, dtype=torch.float64, device=scores.device)
        return loss, torch.as_tensor(slopes, dtype=scores.dtype, device=scores.device)


class TorchTrainer:
    """A trainer of a torch module, by batches of queries, on a CPU or a GPU.

    Parameters
    ----------
    module : nn.Module
        Takes a matrix of documents, and returns a score for each. It is changed in place.
    train : Queries
        Training queries, as given.
    objective : Objective
        The objective: its mean over the queries is minimised, with the penalty.
    alpha : float
        The strength of the penalty alpha |w - center|^2 against the sum over the queries; biases have none.
    batch_size : int
        The number of queries of a batch.
    device : str
        Where it runs.
    backend : Backend
        The threads of the CPU.
    standard : StandardScaling, optional
        The scaling of the features, done batch by batch on a CPU, so that no copy of all is made; none by default.
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
        standard: StandardScaling | None = None,
    ) -> None:
        d, self.strength = train.n_features, alpha
        self.standard = StandardScaling(np.zeros(d), np.ones(d)) if standard is None else standard
        self.objective: Objective | None = None
        self.held: dict[int, tuple[Floats, Tensor]] = {}  # documents that are scored again and again, on a GPU
        self.device, self.backend, self.alpha, self.batch_size = check_device(device), backend, alpha, batch_size
        self.module, self.train, self.n_queries = module.to(self.device, torch.float32), train, len(train)
        self.rows = QueryRows(train.indptr, self.device)
        self.is_plain = read_layers(self.module) is not None
        self._flatten_parameters([p for p in self.module.parameters() if p.requires_grad])
        self.center = torch.zeros_like(self.w)
        self.set_objective(objective)

    def _flatten_parameters(self, parameters: list[nn.Parameter]) -> None:
        """Lay the parameters into one vector, of which they become views."""
        if not parameters:
            raise InputError("the network has no parameters to train")
        sizes = [-(-p.numel() // _ALIGNED) * _ALIGNED for p in parameters]
        starts = np.cumsum([0, *sizes]).tolist()
        self.parameters = parameters
        self.places = [slice(start, start + p.numel()) for start, p in zip(starts, parameters, strict=False)]
        self.w = torch.zeros(starts[-1], device=self.device, dtype=torch.float32)
        self.decays = torch.zeros_like(self.w)
        for part, p in zip(self.places, parameters, strict=True):
            self.w[part] = p.data.flatten()
            self.decays[part] = float(p.ndim > 1)
            p.data = self.w[part].view(p.shape)

    @property
    def is_sampled(self) -> bool:
        """Whether losses are estimates; modules that are not plain may draw random numbers of their own."""
        return self.criterion.is_sampled or not self.is_plain

    def vector(self, values: Floats) -> Tensor:
        """Return an array as a vector of the kind of ``w``."""
        return torch.as_tensor(values, dtype=self.w.dtype, device=self.device)

    def array(self, values: Tensor) -> Floats:
        """Return a vector as an array."""
        found: Floats = values.detach().cpu().numpy().copy()
        return found

    def set_objective(self, objective: Objective) -> None:
        """Set the objective to minimise from now on."""
        if self.objective is not None and objective == self.objective:
            return
        self.objective, loss = objective, make_loss(objective)
        self.criterion: Criterion
        if loss is None:
            self.criterion = _KernelCriterion(objective, self.train)
        elif self.device.type == "cpu":  # where kernels are faster; ours do not look at features
            self.criterion = _KernelCriterion(
                objective, self.train.with_X(np.zeros((self.train.n_docs, 1), dtype=np.float32))
            )
        else:
            self.criterion = _NativeCriterion(
                loss, DeviceLabels(loss.compute_labels(self.train), self.device, torch.float32)
            )
        self.graphs: CudaGraphs | None = None

    def set_center(self, center: Floats | None) -> None:
        """Centre the penalty on these weights; None removes it."""
        alpha = 0.0 if center is None else self.strength
        if alpha != self.alpha:
            self.alpha, self.graphs = alpha, None
        if center is not None:
            self.center.copy_(self.vector(center))

    def scorer(self, standard: StandardScaling) -> Scorer:
        """Build the scorer: arrays if the module is a plain network, or else the module itself."""
        plain = read_layers(self.module)
        if plain is None:
            return TorchScorer(deepcopy(self.module).cpu().eval(), standard)
        return Network(standard.mean, standard.factor, *plain)

    def differentiate(self, queries: Ints, seed: tuple[int, ...], share: float) -> tuple[Tensor, Tensor]:
        """Return the loss summed over these queries, and the derivative of ``share`` times it by the weights."""
        parts = [queries]
        if self.device.type == "cpu":
            docs = len(queries) * self.rows.max_length(queries)
            parts = np.array_split(queries, min(max(docs // _PART_DOCS, 1), _MOST_PARTS, len(queries)))

        def one(number: int) -> tuple[Tensor, Tensor]:
            if self.device.type == "cpu" and torch.get_num_threads() != 1:
                torch.set_num_threads(1)
            part = parts[number]
            at = torch.as_tensor(part, device=self.device)
            generator = self.generator((*seed, number)) if self.criterion.is_sampled else None
            return self.differentiate_part(
                part, at, self.rows.max_length(part), self.criterion.widest(part), share, generator
            )

        # other modules may draw random numbers, whose order is to be one
        backend = self.backend if self.is_plain else Serial()
        (loss, gradient), *rest = backend.each(one, range(len(parts)))
        for its_loss, its_gradient in rest:
            loss, gradient = loss + its_loss, gradient.add_(its_gradient)
        return loss, gradient

    def differentiate_part(
        self, queries: Ints, at: Tensor, length: int, width: int, share: float, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Return loss and derivative of one part, padded to this length."""
        rows, mask = self.rows.pad(at, length)
        with torch.enable_grad():
            scores = self.module(self.take_documents(rows.flatten())).reshape(rows.shape)
            loss, slopes = self.criterion(scores.detach(), _PaddedPart(queries, at, rows, mask, width), generator)
            found = torch.autograd.grad(scores, self.parameters, share * slopes, allow_unused=True)
        gradient = torch.zeros_like(self.w)
        for part, g in zip(self.places, found, strict=True):
            if g is not None:
                gradient[part] = g.flatten()
        return loss, gradient

    def generator(self, seed: tuple[int, ...]) -> torch.Generator:
        """Return random numbers of the device, from this seed."""
        number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))
        return torch.Generator(self.device).manual_seed(number)

    def penalty(self) -> float:
        """Return the penalty at the weights."""
        away = self.decays * (self.w - self.center)
        return float(self.alpha * (away * away).sum())

    def penalty_gradient(self) -> Tensor:
        """Return the derivative of the penalty, as a part of the mean over the queries."""
        return (2.0 * self.alpha / self.n_queries) * self.decays * (self.w - self.center)

    def epoch(self, adam: Adam, seed: tuple[int, ...]) -> float:
        """Take a step on each batch; return the sum of their losses, each before its step."""
        batches = make_batches(self.rows.sizes, self.batch_size, np.random.default_rng(seed))
        self.module.train()
        if self.device.type == "cuda" and isinstance(self.criterion, _NativeCriterion) and self.is_plain:
            if self.graphs is None or self.graphs.adam is not adam:
                self.graphs = CudaGraphs(self, adam)
            return self.graphs.epoch(batches, seed)
        total = torch.zeros((), device=self.device, dtype=torch.float64)
        with self.seed_draws(seed):
            for number, queries in enumerate(batches):
                loss, gradient = self.differentiate(queries, (*seed, number), 1.0 / len(queries))
                if self.alpha:
                    gradient += self.penalty_gradient()
                adam.step(self.w, gradient)
                total += loss
        return float(total)

    def seed_draws(self, seed: tuple[int, ...]) -> AbstractContextManager[None]:
        """Set the seed of the random numbers that a module other than a plain network may draw inside the block."""
        return nullcontext() if self.is_plain else seed_torch(self.generator(seed).initial_seed(), self.device)

    def evaluate(self, w: Tensor, seed: tuple[int, ...]) -> LossPoint:
        """Set the weights; return loss, penalty and gradient over all queries, for batch descent."""
        batches = make_batches(self.rows.sizes, len(self.rows.sizes), np.random.default_rng(0))
        self.w.copy_(w)
        self.module.train()
        total, gradient = 0.0, self.penalty_gradient() if self.alpha else torch.zeros_like(self.w)
        with self.seed_draws(seed):
            for number, queries in enumerate(batches):
                loss, its = self.differentiate(queries, (*seed, number), 1.0 / self.n_queries)
                gradient += its
                total += float(loss)
        return LossPoint(w, total, total + self.penalty(), gradient)

    def scores(self, queries: Queries) -> Floats:
        """Score documents as given.

        They are for evaluation: documents with equal features must have equal scores, or ties would be broken by luck,
        and torch's products treat some rows otherwise than others. A plain network scores as its model will, unless
        that takes too long; then scores are rounded.
        """
        plain, X = read_layers(self.module), queries.X
        if plain is not None and len(X) * self.w.numel() <= (_QUICK if self.device.type == "cpu" else _QUICK // 10):
            network, starts = Network(np.zeros(X.shape[1]), np.ones(X.shape[1]), *plain), range(0, len(X), ROWS)
            scale = self.standard.scale_rows
            return np.concatenate(self.backend.each(lambda start: network(scale(X[start : start + ROWS])), starts))
        self.module.eval()
        rows = ROWS if self.device.type == "cpu" else 16 * ROWS

        def some(start: int) -> Floats:
            if self.device.type == "cpu" and torch.get_num_threads() != 1:
                torch.set_num_threads(1)
            with torch.no_grad():
                found = self.module(self._slice_documents(X, start, start + rows))
            bits = found.reshape(-1).cpu().numpy().view(np.int32)
            scores: Floats = ((bits + _HALF) & ~(2 * _HALF - 1)).view(np.float32).astype(np.float64)
            return scores

        return np.concatenate(self.backend.each(some, range(0, len(X), rows)))

    def take_documents(self, rows: Tensor) -> Tensor:
        """Return the scaled features of these training documents, on the device."""
        if self.device.type == "cpu":
            return torch.from_numpy(self.standard.scale_rows(self.train.X[rows.numpy()]))
        return self._hold_documents(self.train.X)[rows]

    def _slice_documents(self, X: Floats, start: int, stop: int) -> Tensor:
        """Return scaled documents from ``start`` to ``stop``, on the device."""
        if self.device.type == "cpu":
            return torch.from_numpy(self.standard.scale_rows(X[start:stop]))
        return self._hold_documents(X)[start:stop]

    def _hold_documents(self, X: Floats) -> Tensor:
        """Return the scaled documents on a GPU, where they stay."""
        if id(X) not in self.held:
            moved = torch.empty(X.shape, dtype=torch.float32, device=self.device)
            for start in range(0, len(X), 16 * ROWS):
                rows = slice(start, start + 16 * ROWS)
                moved[rows] = torch.from_numpy(self.standard.scale_rows(X[rows])).to(self.device)
            self.held[id(X)] = X, moved
        return self.held[id(X)][1]


def make_batches(sizes: Ints, batch_size: int, rng: np.random.Generator) -> list[Ints]:
    """Cut queries into batches of queries of about the same length; return the batches in random order.

    >>> [batch.tolist() for batch in make_batches(np.array([9, 100, 10, 90]), 2, np.random.default_rng(0))]
    [[2, 0], [3, 1]]
    """
    order = np.argsort(sizes * rng.uniform(1.0, _APART, len(sizes)), kind="stable")
    found: list[Ints] = []
    for batch in np.array_split(order, -(-len(order) // batch_size)):
        docs = len(batch) * int(sizes[batch].max())
        found += np.array_split(batch, min(-(-docs // _MOST_DOCS), len(batch)))
    return [found[i] for i in rng.permutation(len(found))]
