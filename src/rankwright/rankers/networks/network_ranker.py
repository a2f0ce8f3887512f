"""Networks as scorers of rankers that minimise an objective."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.rounds import Deadline, Keep, RoundRecorder
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import IterativeRanker, ScaledRanker, SeededRanker
from rankwright.rankers.fit_memory import DataSize
from rankwright.rankers.networks.epoch_training import Phase, TrainingData, train_epochs
from rankwright.rankers.networks.training_options import TrainingOptions
from rankwright.runtime.backends import Backend, map_fits

if TYPE_CHECKING:
    from torch import nn


_BATCHES = 100 << 20  # bytes of the parts of a batch in work


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkRanker(ScaledRanker, SeededRanker, IterativeRanker):
    """A ranker that trains a feed-forward network if its parameter ``hidden`` asks for one.

    Parameters
    ----------
    hidden : sequence of int or None
        The widths of hidden layers: a network, trained by torch, in place of the linear scorer. The model is then the
        epoch that is best on validation queries.
    training : TrainingOptions, mapping or None
        Options of the training of a network.
    random_state : int, Generator or None
        The seed of the first weights of a network, and of the order of batches.
    """

    nested_names: ClassVar[Mapping[str, Collection[str]]] = {"training": TrainingOptions.names()}

    hidden: Sequence[int] | None = None
    training: TrainingOptions | Mapping[str, Any] | None = None

    def _explain_not_distributed(self) -> str | None:
        if not self.hidden and self.takes_distributed:
            return None
        why = "a network is trained on batches of documents, taken at random from all"
        return f"{why}; with hidden=None {type(self).__name__} trains on the cluster" if self.takes_distributed else why

    def _more_memory(self, size: DataSize) -> float:
        return _BATCHES if self.hidden else 0.0


class NetworkDesign(NamedTuple):
    """A network that is yet to be trained: its layers or module, training options, scaling, seed and time limit."""

    hidden: tuple[int, ...]
    training: TrainingOptions
    scale: str | None
    random_state: Any
    max_seconds: float | None
    make: Any = None  # a torch module, or a function of the number of features that returns one; None for ``hidden``

    def fit(
        self,
        phases: Sequence[Phase],
        strengths: Sequence[float],
        train: Queries,
        valid: Queries | None,
        measure: Measure,
        backend: Backend,
        *,
        keep: Keep = "valid",
        observe: Callable[[Floats], dict[str, Any]] | None = None,
    ) -> list[FitResult]:
        """Train the network on these objectives, one after another; once for each strength of the penalty."""
        require("torch")
        deadline = Deadline(self.max_seconds)
        from rankwright.optimisers.devices import check_device, use_device
        from rankwright.optimisers.torch_trainer import TorchTrainer

        training, device = self.training.of_one(strengths), check_device(self.training.device)
        seed = int(make_generator(self.random_state).integers(2**31))
        data = TrainingData(train, valid, measure, self.scale, backend)

        def run(alpha: float) -> FitResult:
            module = self._build_module(train.n_features, seed)
            trainer = TorchTrainer(
                module,
                data.train,
                phases[0].objective.with_max_grade(data.train.max_grade),
                alpha,
                batch_size=training.batch_size,
                device=training.device,
                backend=backend,
                standard=data.standard,
            )
            about = {**self._run(phases, module), "alpha": alpha}
            try:
                recorder = RoundRecorder[Floats](keep, deadline)
                return train_epochs(trainer, data, phases, training, seed, about, recorder, observe)
            finally:
                trainer.graphs = None  # which know the trainer, and hold memory of the GPU

        with use_device(device):
            if device.type == "cpu":
                return list(map_fits(backend, run, strengths, train.n_docs))
            return [run(alpha) for alpha in strengths]

    def _build_module(self, n_features: int, seed: int) -> nn.Module:
        from torch import nn

        from rankwright.optimisers.devices import seed_torch
        from rankwright.optimisers.torch_modules import build_network, check_module

        if self.make is None:
            return build_network(n_features, self.hidden, self.training.activation, seed)
        if not callable(self.make):
            raise InputError(f"network={self.make!r}; expected a torch module, or a function that makes one")
        with seed_torch(seed):
            made = self.make if isinstance(self.make, nn.Module) else self._make_module(n_features)
            module = deepcopy(made)
        if not isinstance(module, nn.Module):
            raise InputError(f"network made a {type(module).__name__}; expected a torch module")
        return check_module(module, n_features)

    def _make_module(self, n_features: int) -> Any:
        try:
            return self.make(n_features)
        except Exception as error:
            raise InputError(f"network({n_features}) failed: {error}") from error

    def _run(self, phases: Sequence[Phase], module: nn.Module) -> dict[str, Any]:
        """Return the facts that identify this run: a checkpoint of another run is refused."""
        return {
            "network": list(self.hidden) if self.make is None else str(module),
            "scale": self.scale,
            "centers": [each.centers for each in phases],
            "epochs": [each.n_epochs for each in phases[:-1]],  # the last may go on for longer
            "objective": [each.objective.identity for each in phases],
        }
