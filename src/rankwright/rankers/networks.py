"""Networks as scorers of rankers that minimise an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwright._optional import require
from rankwright.backends import Backend
from rankwright.data import Floats, Queries
from rankwright.errors import InputError
from rankwright.measures import Measure
from rankwright.objectives.names import Written
from rankwright.randomness import generator
from rankwright.rankers.base import Outcome
from rankwright.rankers.lessons import Chapter, Lesson, teach
from rankwright.rankers.training import Training

if TYPE_CHECKING:
    from torch import nn


class Design(NamedTuple):
    """A network to be trained."""

    hidden: tuple[int, ...]
    training: Training
    alpha: float
    scale: str | None
    random_state: Any
    make: Any = None  # a torch module, or a function of the number of features that returns one; None for ``hidden``

    def fit(
        self,
        chapters: Sequence[Chapter],
        train: Queries,
        valid: Queries | None,
        measure: Measure,
        backend: Backend,
        *,
        keeps_last: bool = False,
        observe: Callable[[Floats], dict[str, Any]] | None = None,
    ) -> Outcome:
        """Train it on these objectives, one after another."""
        require("torch")
        from rankwright.optimisers.devices import single_threaded
        from rankwright.optimisers.neural import Trainer

        seed = int(generator(self.random_state).integers(2**31))
        lesson = Lesson(train, valid, measure, self.scale, backend)
        with single_threaded(self.training.device):
            module = self._module(train.n_features, seed)
            trainer = Trainer(
                module,
                lesson.train,
                lesson.settled(chapters[0].objective),
                self.alpha,
                batch_size=self.training.batch_size,
                device=self.training.device,
                backend=backend,
            )
            return teach(
                trainer,
                lesson,
                chapters,
                self.training,
                seed,
                self._run(chapters, module),
                keeps_last=keeps_last,
                observe=observe,
            )

    def _module(self, n_features: int, seed: int) -> nn.Module:
        from torch import nn

        from rankwright.optimisers.devices import seeded
        from rankwright.optimisers.modules import check_module, feed_forward

        if self.make is None:
            return feed_forward(n_features, self.hidden, self.training.activation, seed)
        if not callable(self.make):
            raise InputError(f"network={self.make!r}; expected a torch module, or a function that makes one")
        with seeded(seed):
            module = deepcopy(self.make) if isinstance(self.make, nn.Module) else self.make(n_features)
        if not isinstance(module, nn.Module):
            raise InputError(f"network made a {type(module).__name__}; expected a torch module")
        return check_module(module, n_features)

    def _run(self, chapters: Sequence[Chapter], module: nn.Module) -> dict[str, Any]:
        """What makes this run no other."""
        return {
            "network": list(self.hidden) if self.make is None else str(module),
            "alpha": self.alpha,
            "scale": self.scale,
            "centers": [each.centers for each in chapters],
            "objective": [
                "a function" if isinstance(chapter.objective, Written) else str(chapter.objective)
                for chapter in chapters
            ],
        }
