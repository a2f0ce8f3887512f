"""Training in epochs, each judged by the measure: of networks, and of linear scorers on estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.files import check_writable
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.measures.base import weighted_mean
from rankwright.objectives.base import Objective
from rankwright.optimisers.checkpoints import Checkpoint, digest
from rankwright.optimisers.epochs import EpochLoop, EpochTrainer
from rankwright.optimisers.linear_epochs import LinearTrainer
from rankwright.rankers.base import FitResult
from rankwright.rankers.networks.training_options import TrainingOptions
from rankwright.rankers.parameter_checks import check_early_stopping
from rankwright.runtime.backends import Backend
from rankwright.scorers.scaling import StandardScaling

_NOTES = ("phase", "done", "since", "best", "history")
_RUN = ("optimiser", "learning_rate", "batch_size", "activation")  # of the training: what a checkpoint must agree in


class Phase(NamedTuple):
    """A part of training."""

    objective: Objective
    n_epochs: int
    notes: Mapping[str, Any] = {}  # for the history
    centers: bool = False  # whether weights are held to where it begins, from then on
    free: bool = False  # whether they are held to nothing meanwhile


class TrainingData:
    """What is trained on and judged by: training and validation queries, scaled.

    Parameters
    ----------
    train, valid : Queries
        Training queries, and validation queries if there are any.
    measure : Measure
        What epochs are judged by.
    scale : "standard", "query" or None
        Scaling of the features; per query it has been done.
    backend : Backend
        Where the work runs.
    """

    def __init__(
        self, train: Queries, valid: Queries | None, measure: Measure, scale: str | None, backend: Backend
    ) -> None:
        self.standard, self.backend = StandardScaling.fit(train, backend).for_scale(scale), backend
        self.measure = measure
        self.train = self.standard(train)
        self.sets = {"train": self.train} if valid is None else {"train": self.train, "valid": self.standard(valid)}
        rules = {"train": measure.for_training(), "valid": measure}
        self.bound = {name: rules[name].prepare(part) for name, part in self.sets.items()}

    def judged(self, scores: Mapping[str, Floats]) -> dict[str, float]:
        """The measure by set."""
        return {
            name: weighted_mean(bound.values(scores[name], self.backend), self.sets[name].query_weight)
            for name, bound in self.bound.items()
        }


class _Record:
    """How training went so far; with the walk's state it is all that going on needs."""

    def __init__(self, trainer: EpochTrainer) -> None:
        self.phase, self.done, self.since = 0, 0, 0  # epochs of the phase; epochs since the best one
        self.best: float | None = None
        self.kept, self.center = trainer.array(trainer.w), np.zeros_like(trainer.array(trainer.w))
        self.history: list[dict[str, Any]] = []

    def enter(self, phase: int) -> None:
        """The next phase."""
        if phase != self.phase:
            self.phase, self.done, self.since = phase, 0, 0

    def add(self, row: dict[str, Any], w: Floats) -> None:
        """An epoch, and the weights it ends with; the first of equals is the best."""
        self.done, self.since = self.done + 1, self.since + 1
        value = row.get("valid", row["train"])
        if self.best is None or value > self.best:
            for earlier in self.history:
                earlier.pop("kept", None)
            self.best, self.kept, self.since = float(value), w, 0
            row = {**row, "kept": True}
        self.history.append(row)

    def save(self, checkpoint: Checkpoint, walk: EpochLoop) -> None:
        """Together with the walk's state."""
        arrays = {**walk.state(), "kept": self.kept, "center": self.center}
        checkpoint.save(arrays, {name: getattr(self, name) for name in _NOTES})

    def load(self, checkpoint: Checkpoint, walk: EpochLoop, phases: Sequence[Phase]) -> None:
        """Both, if anything was saved."""
        found = checkpoint.load()
        if found is None:
            return
        arrays, notes = found
        expected = {**walk.state(), "kept": self.kept, "center": self.center}
        if _shapes(arrays) != _shapes(expected) or not _whole(notes, len(phases)):
            raise InputError(f"{checkpoint.path}: not a whole checkpoint of training; remove it, or name another file")
        if notes["done"] > phases[notes["phase"]].n_epochs:
            raise InputError(
                f"{checkpoint.path}: a checkpoint of {notes['done']} epochs; expected n_epochs to be as many, or more"
            )
        self.phase, self.done, self.since, self.best, self.history = (notes[name] for name in _NOTES)
        self.kept, self.center = arrays.pop("kept"), arrays.pop("center")
        walk.resume(arrays)


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (np.shape(values), np.asarray(values).dtype.kind) for name, values in arrays.items()}


def _whole(notes: Mapping[str, Any], n_phases: int) -> bool:
    """Whether notes are what a record keeps."""
    kinds = {"phase": int, "done": int, "since": int, "best": float, "history": list}
    if any(type(notes.get(name)) is not kind for name, kind in kinds.items()):
        return False
    counts = 0 <= notes["phase"] < n_phases and min(notes["done"], notes["since"]) >= 0
    return counts and all(isinstance(row, dict) for row in notes["history"])


def train_epochs(
    trainer: EpochTrainer,
    data: TrainingData,
    phases: Sequence[Phase],
    training: TrainingOptions,
    seed: int,
    run: Mapping[str, Any],
    *,
    keeps_last: bool = False,
    observe: Callable[[Floats], dict[str, Any]] | None = None,
) -> FitResult:
    """Train in epochs, and keep the one that is best on validation queries, or on training queries without any.

    Parameters
    ----------
    trainer, data, phases, training, seed
        Who, what, in which order, how.
    run : mapping
        What makes this run no other, as JSON values: a checkpoint of another is refused.
    keeps_last : bool
        Whether the model is that of the last epoch all the same.
    observe : callable, optional
        More for the history, from the scores of the training documents.
    """
    check_early_stopping("training.early_stopping_rounds", training.early_stopping_rounds, "valid" in data.sets)
    walk, record = EpochLoop(trainer, training.optimiser, training.learning_rate, seed), _Record(trainer)
    checkpoint = _checkpoint(data, training, {**run, "seed": seed})
    record.load(checkpoint, walk, phases)
    total = sum(phase.n_epochs for phase in phases)
    for at in range(record.phase, len(phases)):
        phase = phases[at]
        record.enter(at)
        trainer.aim(phase.objective.with_max_grade(data.train.max_grade))
        walk.forget()
        if phase.centers and record.done == 0:
            record.center = trainer.array(trainer.w)
        trainer.hold(None if phase.free else record.center)
        while record.done < phase.n_epochs and not (
            training.early_stopping_rounds and record.since >= training.early_stopping_rounds
        ):
            epoch = next(walk)
            scores = {name: trainer.scores(part.X) for name, part in data.sets.items()}
            row = {"round": epoch.number - 1, **phase.notes, "loss": epoch.loss, "objective": epoch.objective}
            row |= observe(scores["train"]) if observe is not None else {}
            record.add(row | data.judged(scores), trainer.array(trainer.w))
            record.save(checkpoint, walk)
            progress.report("epochs", min(epoch.number, total - 1), total)
    progress.report("epochs", total, total)
    if keeps_last:
        for row in record.history:
            row.pop("kept", None)
        record.history[-1]["kept"] = True
    else:
        trainer.w[...] = trainer.vector(record.kept)
    return FitResult(trainer.scorer(data.standard), record.history)


def fit_linear(
    objective: Objective,
    training: TrainingOptions,
    alpha: float,
    random_state: Any,
    data: TrainingData,
    observe: Callable[[Floats], dict[str, Any]] | None = None,
) -> FitResult:
    """A linear scorer trained in epochs, where the loss is an estimate and line searches have nothing to go by."""
    seed = int(make_generator(random_state).integers(2**31))
    trainer = LinearTrainer(data.train, objective.with_max_grade(data.train.max_grade), alpha, data.backend)
    run = {"hidden": [], "alpha": alpha, "objective": [str(objective)]}
    return train_epochs(trainer, data, [Phase(objective, training.n_epochs)], training, seed, run, observe=observe)


def _checkpoint(data: TrainingData, training: TrainingOptions, run: Mapping[str, Any]) -> Checkpoint:
    if training.checkpoint is None:
        return Checkpoint(None, {})
    check_writable(training.checkpoint)
    said = asdict(training)
    digests = " ".join(digest(part) for part in data.sets.values())
    own = {**{name: said[name] for name in _RUN}, "measure": str(data.measure), "data": digests}
    return Checkpoint(training.checkpoint, {**run, **own})
