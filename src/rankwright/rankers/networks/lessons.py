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
from rankwright.objectives.objective_names import settled
from rankwright.optimisers.checkpoints import Checkpoint, digest
from rankwright.optimisers.epochs import Trainee, Walk
from rankwright.optimisers.linear_epochs import LinearTrainer
from rankwright.rankers.base import Outcome
from rankwright.rankers.networks.training_options import Training
from rankwright.rankers.parameter_checks import check_patience
from rankwright.runtime.backends import Backend
from rankwright.scorers.scaling import Standard

_NOTES = ("chapter", "done", "since", "best", "history")
_RUN = ("optimiser", "rate", "batch_size", "activation")  # of the training: what a checkpoint must agree in


class Chapter(NamedTuple):
    """A part of training."""

    objective: Objective
    n_epochs: int
    notes: Mapping[str, Any] = {}  # for the history
    centers: bool = False  # whether weights are held to where it begins, from then on
    free: bool = False  # whether they are held to nothing meanwhile


class Lesson:
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
        self.standard, self.backend = Standard.of(train, backend).under(scale), backend
        self.measure = measure
        self.train = self.standard(train)
        self.sets = {"train": self.train} if valid is None else {"train": self.train, "valid": self.standard(valid)}
        rules = {"train": measure.for_training(), "valid": measure}
        self.bound = {name: rules[name].prepare(part) for name, part in self.sets.items()}

    def settled(self, objective: Objective) -> Objective:
        """For these training queries."""
        return settled(objective, self.train.max_grade)

    def judged(self, scores: Mapping[str, Floats]) -> dict[str, float]:
        """The measure by set."""
        return {
            name: weighted_mean(bound.values(scores[name], self.backend), self.sets[name].query_weight)
            for name, bound in self.bound.items()
        }


class _Record:
    """How training went so far; with the walk's state it is all that going on needs."""

    def __init__(self, trainee: Trainee) -> None:
        self.chapter, self.done, self.since = 0, 0, 0  # epochs of the chapter; epochs since the best one
        self.best: float | None = None
        self.kept, self.center = trainee.array(trainee.w), np.zeros_like(trainee.array(trainee.w))
        self.history: list[dict[str, Any]] = []

    def enter(self, chapter: int) -> None:
        """The next chapter."""
        if chapter != self.chapter:
            self.chapter, self.done, self.since = chapter, 0, 0

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

    def save(self, checkpoint: Checkpoint, walk: Walk) -> None:
        """Together with the walk's state."""
        arrays = {**walk.state(), "kept": self.kept, "center": self.center}
        checkpoint.save(arrays, {name: getattr(self, name) for name in _NOTES})

    def load(self, checkpoint: Checkpoint, walk: Walk, chapters: Sequence[Chapter]) -> None:
        """Both, if anything was saved."""
        found = checkpoint.load()
        if found is None:
            return
        arrays, notes = found
        expected = {**walk.state(), "kept": self.kept, "center": self.center}
        if _shapes(arrays) != _shapes(expected) or not _whole(notes, len(chapters)):
            raise InputError(f"{checkpoint.path}: not a whole checkpoint of training; remove it, or name another file")
        if notes["done"] > chapters[notes["chapter"]].n_epochs:
            raise InputError(
                f"{checkpoint.path}: a checkpoint of {notes['done']} epochs; expected n_epochs to be as many, or more"
            )
        self.chapter, self.done, self.since, self.best, self.history = (notes[name] for name in _NOTES)
        self.kept, self.center = arrays.pop("kept"), arrays.pop("center")
        walk.resume(arrays)


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (np.shape(values), np.asarray(values).dtype.kind) for name, values in arrays.items()}


def _whole(notes: Mapping[str, Any], n_chapters: int) -> bool:
    """Whether notes are what a record keeps."""
    kinds = {"chapter": int, "done": int, "since": int, "best": float, "history": list}
    if any(type(notes.get(name)) is not kind for name, kind in kinds.items()):
        return False
    counts = 0 <= notes["chapter"] < n_chapters and min(notes["done"], notes["since"]) >= 0
    return counts and all(isinstance(row, dict) for row in notes["history"])


def teach(
    trainee: Trainee,
    lesson: Lesson,
    chapters: Sequence[Chapter],
    training: Training,
    seed: int,
    run: Mapping[str, Any],
    *,
    keeps_last: bool = False,
    observe: Callable[[Floats], dict[str, Any]] | None = None,
) -> Outcome:
    """Train in epochs, and keep the one that is best on validation queries, or on training queries without any.

    Parameters
    ----------
    trainee, lesson, chapters, training, seed
        Who, what, in which order, how.
    run : mapping
        What makes this run no other, as JSON values: a checkpoint of another is refused.
    keeps_last : bool
        Whether the model is that of the last epoch all the same.
    observe : callable, optional
        More for the history, from the scores of the training documents.
    """
    check_patience("training.patience", training.patience, "valid" in lesson.sets)
    walk, record = Walk(trainee, training.optimiser, training.rate, seed), _Record(trainee)
    checkpoint = _checkpoint(lesson, training, {**run, "seed": seed})
    record.load(checkpoint, walk, chapters)
    total = sum(chapter.n_epochs for chapter in chapters)
    for at in range(record.chapter, len(chapters)):
        chapter = chapters[at]
        record.enter(at)
        trainee.aim(lesson.settled(chapter.objective))
        walk.forget()
        if chapter.centers and record.done == 0:
            record.center = trainee.array(trainee.w)
        trainee.hold(None if chapter.free else record.center)
        while record.done < chapter.n_epochs and not (training.patience and record.since >= training.patience):
            epoch = next(walk)
            scores = {name: trainee.scores(part.X) for name, part in lesson.sets.items()}
            row = {"round": epoch.number - 1, **chapter.notes, "loss": epoch.loss, "objective": epoch.objective}
            row |= observe(scores["train"]) if observe is not None else {}
            record.add(row | lesson.judged(scores), trainee.array(trainee.w))
            record.save(checkpoint, walk)
            progress.report("epochs", min(epoch.number, total - 1), total)
    progress.report("epochs", total, total)
    if keeps_last:
        for row in record.history:
            row.pop("kept", None)
    else:
        trainee.w[...] = trainee.vector(record.kept)
    return Outcome(trainee.scorer(lesson.standard), record.history)


def fit_linear(
    objective: Objective,
    training: Training,
    alpha: float,
    random_state: Any,
    lesson: Lesson,
    observe: Callable[[Floats], dict[str, Any]] | None = None,
) -> Outcome:
    """A linear scorer trained in epochs, where the loss is an estimate and line searches have nothing to go by."""
    seed = int(make_generator(random_state).integers(2**31))
    trainer = LinearTrainer(lesson.train, lesson.settled(objective), alpha, lesson.backend)
    run = {"hidden": [], "alpha": alpha, "objective": [str(objective)]}
    return teach(trainer, lesson, [Chapter(objective, training.n_epochs)], training, seed, run, observe=observe)


def _checkpoint(lesson: Lesson, training: Training, run: Mapping[str, Any]) -> Checkpoint:
    if training.checkpoint is None:
        return Checkpoint(None, {})
    check_writable(training.checkpoint)
    said = asdict(training)
    data = " ".join(digest(part) for part in lesson.sets.values())
    own = {**{name: said[name] for name in _RUN}, "measure": str(lesson.measure), "data": data}
    return Checkpoint(training.checkpoint, {**run, **own})
