"""Training in epochs, each evaluated by the measure: of networks, and of linear scorers on sampled losses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_files import digest_arrays, read_arrays, write_arrays
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, check_writable
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.measures.base import weighted_mean
from rankwright.objectives.base import Objective
from rankwright.optimisers.epochs import EpochLoop, EpochTrainer, LinearTrainer
from rankwright.optimisers.rounds import Deadline, RoundRecorder
from rankwright.rankers.base import FitResult
from rankwright.rankers.input_checks import check_early_stopping
from rankwright.rankers.networks.training_options import TrainingOptions
from rankwright.runtime.backends import Backend, Serial, choose_nearest
from rankwright.scorers import Scorer
from rankwright.scorers.linear import StandardScaling

_NUMBERS = {"phase": int, "n_done": int, "n_waited": int, "n_kept": int, "value": float}  # of a checkpoint
_RUN = ("optimiser", "learning_rate", "batch_size", "activation")  # of the training: what a checkpoint must agree in


class Phase(NamedTuple):
    """A phase of training: an objective, its number of epochs, and how its penalty is set."""

    objective: Objective
    n_epochs: int
    row: Mapping[str, Any] = {}  # added to the rows of the history
    centers: bool = False  # whether the penalty is centred on the weights at its start, from then on
    free: bool = False  # whether it has no penalty


class TrainingData:
    """The training and validation queries, their scaling, and the measure prepared to evaluate each epoch on them.

    Parameters
    ----------
    train, valid : Queries
        Training queries, and validation queries if there are any.
    measure : Measure
        The measure that epochs are evaluated by.
    scale : "standard", "query" or None
        Scaling of the features, which trainers do; per query it has been done.
    backend : Backend
        Where the work runs.
    """

    def __init__(
        self, train: Queries, valid: Queries | None, measure: Measure, scale: str | None, backend: Backend
    ) -> None:
        self.standard, self.backend = StandardScaling.fit(train, backend).for_scale(scale), backend
        self.measure, self.scale, self.train = measure, scale, train
        self.sets = {"train": train} if valid is None else {"train": train, "valid": valid}
        rules = {"train": measure.for_training(), "valid": measure}
        self.prepared = {name: rules[name].prepare(part) for name, part in self.sets.items()}

    def evaluate(self, scores: Mapping[str, Floats]) -> dict[str, float]:
        """Return the mean measure on the training and validation queries."""
        return {
            name: weighted_mean(prepared.values(scores[name], self.backend), self.sets[name].query_weight)
            for name, prepared in self.prepared.items()
        }


class _TrainingProgress:
    """The progress of training: phase, epochs done, and best model; with the loop's state it is a checkpoint."""

    def __init__(self, trainer: EpochTrainer, recorder: RoundRecorder[Floats]) -> None:
        self.phase, self.n_done = 0, 0  # epochs of the phase
        self.recorder, self.center = recorder, np.zeros_like(trainer.array(trainer.w))

    def enter(self, phase: int) -> None:
        """Begin a phase, unless training resumes in it."""
        if phase != self.phase:
            self.phase, self.n_done, self.recorder.n_waited = phase, 0, 0

    def save(self, checkpoint: Checkpoint, loop: EpochLoop) -> None:
        """Write a checkpoint."""
        recorder = self.recorder
        arrays = {**loop.state(), "kept": recorder.model, "center": self.center}
        numbers = self.phase, self.n_done, recorder.n_waited, recorder.n_kept, recorder.value
        checkpoint.save(arrays, dict(zip(_NUMBERS, numbers, strict=True)) | {"history": recorder.history})

    def load(self, checkpoint: Checkpoint, loop: EpochLoop, phases: Sequence[Phase]) -> None:
        """Resume from a checkpoint, if there is one."""
        found = checkpoint.load()
        if found is None:
            return
        arrays, notes = found
        expected = {**loop.state(), "kept": self.center, "center": self.center}
        if _describe_shapes(arrays) != _describe_shapes(expected) or not _has_complete_notes(notes, len(phases)):
            raise InputError(f"{checkpoint.path}: not a whole checkpoint of training; remove it, or name another file")
        if notes["n_done"] > phases[notes["phase"]].n_epochs:
            raise InputError(
                f"{checkpoint.path}: a checkpoint of {notes['n_done']} epochs; expected n_epochs to be as many, or more"
            )
        recorder, self.phase, self.n_done = self.recorder, notes["phase"], notes["n_done"]
        recorder.n_waited, recorder.n_kept, recorder.value = notes["n_waited"], notes["n_kept"], notes["value"]
        recorder.history, recorder.kept, self.center = notes["history"], arrays.pop("kept"), arrays.pop("center")
        loop.resume(arrays)


def _describe_shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the shape and the kind of dtype of each array, by name."""
    return {name: (np.shape(values), np.asarray(values).dtype.kind) for name, values in arrays.items()}


def _has_complete_notes(notes: Mapping[str, Any], n_phases: int) -> bool:
    """Return whether a checkpoint's numbers and history are all there, of the right types and ranges."""
    history = notes.get("history")
    if any(type(notes.get(name)) is not kind for name, kind in _NUMBERS.items()) or not isinstance(history, list):
        return False
    counts = 0 <= notes["phase"] < n_phases and min(notes["n_done"], notes["n_waited"]) >= 0
    return counts and 0 < notes["n_kept"] <= len(history) and all(isinstance(row, dict) for row in history)


def train_epochs(
    trainer: EpochTrainer,
    data: TrainingData,
    phases: Sequence[Phase],
    training: TrainingOptions,
    seed: int,
    run: Mapping[str, Any],
    recorder: RoundRecorder[Floats],
    observe: Callable[[Floats], dict[str, Any]] | None = None,
) -> FitResult:
    """Train a model in epochs, one phase after another; return the result of the epoch that the recorder keeps.

    Parameters
    ----------
    trainer : EpochTrainer
        The model and its steps.
    data : TrainingData
        The queries.
    phases : sequence of Phase
        The objectives, one after another.
    training : TrainingOptions
        The options of the ranker.
    seed : int
        The seed of batches and samples.
    run : mapping
        JSON values that identify the run: a checkpoint of another run is refused.
    recorder : RoundRecorder
        It records the epochs, and says when to stop.
    observe : callable, optional
        Returns more values for the history from the scores of the training documents.
    """
    check_early_stopping("training.early_stopping_rounds", training.early_stopping_rounds, "valid" in data.sets)
    recorder.early_stopping_rounds = training.early_stopping_rounds
    loop = EpochLoop(trainer, training.optimiser, training.learning_rate, seed)
    state, checkpoint = _TrainingProgress(trainer, recorder), _open_checkpoint(data, training, {**run, "seed": seed})
    state.load(checkpoint, loop, phases)
    recorder.make_scorer = lambda: _make_scorer(trainer, recorder.model, data.standard)
    total = sum(phase.n_epochs for phase in phases)
    for at in range(state.phase, len(phases)):
        phase = phases[at]
        state.enter(at)
        trainer.set_objective(phase.objective.with_max_grade(data.train.max_grade))
        loop.forget()
        if phase.centers and state.n_done == 0:
            state.center = trainer.array(trainer.w)
        trainer.set_center(None if phase.free else state.center)
        while state.n_done < phase.n_epochs and not (recorder.history and recorder.should_stop()):
            epoch = next(loop)
            scores = {name: trainer.scores(part) for name, part in data.sets.items()}
            row = {"round": epoch.number - 1, **phase.row, "loss": epoch.loss, "objective": epoch.objective}
            row |= observe(scores["train"]) if observe is not None else {}
            recorder.record(trainer.array(trainer.w), row | data.evaluate(scores))
            state.n_done += 1
            state.save(checkpoint, loop)
            progress.report("epochs", min(epoch.number, total - 1), total)
    progress.report("epochs", total, total)
    trainer.w[...] = trainer.vector(recorder.model)
    return FitResult(trainer.scorer(data.standard), recorder.finish(), recorder.deadline.explain())


def _make_scorer(trainer: EpochTrainer, weights: Floats, standard: StandardScaling) -> Scorer:
    """Return the scorer with these weights of a model in training, whose own weights stay as they are."""
    own = trainer.array(trainer.w)
    trainer.w[...] = trainer.vector(weights)
    try:
        return trainer.scorer(standard)
    finally:
        trainer.w[...] = trainer.vector(own)


def fit_linear(
    objective: Objective,
    training: TrainingOptions,
    alpha: float,
    random_state: Any,
    data: TrainingData,
    deadline: Deadline,
    observe: Callable[[Floats], dict[str, Any]] | None = None,
) -> FitResult:
    """Train a linear scorer in epochs, for objectives that are sampled and too noisy for line searches."""
    seed = int(make_generator(random_state).integers(2**31))
    objective = objective.with_max_grade(data.train.max_grade)
    trainer = LinearTrainer(data.train, objective, alpha, data.standard, data.backend)
    run = {"hidden": [], "alpha": alpha, "objective": [str(objective)]}
    recorder, phases = RoundRecorder[Floats](deadline=deadline), [Phase(objective, training.n_epochs)]
    return train_epochs(trainer, data, phases, training, seed, run, recorder, observe)


def _open_checkpoint(data: TrainingData, training: TrainingOptions, run: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint file of this run, marked by its data and options so that no other run resumes it."""
    if training.checkpoint is None:
        return Checkpoint(None, {})
    check_writable(training.checkpoint)
    options = asdict(training)
    digests = " ".join(digest_queries(part) for part in data.sets.values())
    own = {**{name: options[name] for name in _RUN}, "measure": str(data.measure), "data": digests, "scale": data.scale}
    return Checkpoint(training.checkpoint, {**run, **own})


_NOTES = "notes"
_CHECKSUM = "checksum"


class Checkpoint:
    """A file with the state of one training run: arrays and JSON, so that loading it runs no code.

    Parameters
    ----------
    path : path or None
        The file; None writes nothing.
    run : mapping
        JSON values that identify the run.
    """

    def __init__(self, path: StrPath | None, run: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.run = json.loads(json.dumps(dict(run)))

    def save(self, arrays: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Write the file, or replace it."""
        if self.path is None:
            return
        content = {_NOTES: np.array(json.dumps({"run": self.run, **notes})), **arrays}
        write_arrays(self.path, {_CHECKSUM: np.array(digest_arrays(content)), **content})

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the arrays and notes that were saved last; None if nothing was."""
        if self.path is None or not self.path.exists():
            return None
        expected = "a checkpoint of training: remove it, or name another file"
        arrays: dict[str, Any] = read_arrays(self.path, expected)
        checksum = arrays.pop(_CHECKSUM, None)
        if str(checksum) != digest_arrays(arrays):
            raise InputError(f"{self.path}: damaged: its content does not fit its checksum; expected {expected}")
        try:
            notes = json.loads(str(arrays.pop(_NOTES)))
            run = dict(notes.pop("run"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{self.path}: damaged: its notes cannot be read; expected {expected}") from None
        differ = [name for name in {**self.run, **run} if self.run.get(name) != run.get(name)]
        if differ:
            raise InputError(
                f"{self.path}: a checkpoint of another run (other {', '.join(differ)}); remove it, or name another file"
            )
        return arrays, notes


def digest_queries(queries: Queries) -> str:
    """Return a short hash of the features, grades, query bounds and weights of a data set."""
    found = hashlib.blake2b(digest_size=16)
    near = choose_nearest(queries, Serial())
    for digest in near.gather(_digest_features, near.scatter(queries)):
        found.update(digest)
    for array in (queries.y, queries.indptr, queries.query_weight, queries.doc_weight):
        if array is not None:
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _digest_features(queries: Queries) -> bytes:
    """Return a short hash of the features of some queries."""
    return hashlib.blake2b(np.ascontiguousarray(queries.X).data, digest_size=16).digest()
