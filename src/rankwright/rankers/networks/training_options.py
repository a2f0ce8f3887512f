"""How networks are trained: the part of their rankers' parameters that all of them share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote
from rankwright.optimisers.epochs import ADAM, ADAPTIVE
from rankwright.rankers.input_checks import check_among, check_number, check_whole
from rankwright.rankers.parameter_names import ParameterNameError, explain_unknown
from rankwright.scorers.network import ACTIVATIONS

_WIDEST = 65_536  # units of a layer


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """The options of training in epochs: optimiser, learning rate, epochs, batches, early stopping and so on.

    Parameters
    ----------
    optimiser : "adam" or "adaptive"
        Adam on batches of queries; or batch descent, an epoch a step on all queries, with a rate that grows while the
        loss falls and is halved where it does not.
    learning_rate : float
        The rate of Adam; the first rate of batch descent.
    n_epochs : int
        The largest number of epochs.
    batch_size : int
        How many queries a step of Adam is on; they are of about one length. On a CPU batches of less than 4,096
        documents are the work of one thread.
    early_stopping_rounds : int or None
        Training ends after so many epochs without a better measure on validation queries; None for never.
    activation : "relu", "tanh", "sigmoid", "silu" or "gelu"
        The activation between layers.
    device : str
        "cpu", or "cuda" for a GPU.
    checkpoint : path or None
        A file that has the state of training after each epoch. A fit that finds it there goes on from it.
    """

    optimiser: str = ADAM
    learning_rate: float = 3e-3
    n_epochs: int = 100
    batch_size: int = 16
    early_stopping_rounds: int | None = None
    activation: str = "relu"
    device: str = "cpu"
    checkpoint: str | os.PathLike[str] | None = None

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all options."""
        return [field.name for field in fields(cls)]

    @classmethod
    def of(cls, value: Any, usual: TrainingOptions | None = None) -> TrainingOptions:
        """Return the options of a ranker's ``training``: None, options, or a mapping of those that are not the default.

        >>> TrainingOptions.of({"learning_rate": 0.01}).learning_rate
        0.01
        """
        usual = usual or cls()
        if value is None:
            return usual.checked()
        if isinstance(value, cls):
            return value.checked()
        if not isinstance(value, Mapping):
            raise InputError(f"training={value!r}; expected TrainingOptions or a mapping of its parameters")
        for name in value:
            if name not in cls.names():
                raise ParameterNameError(explain_unknown("training", name, cls.names()))
        return replace(usual, **value).checked()

    def checked(self) -> TrainingOptions:
        """Return the options as plain numbers; raise InputError if one is wrong."""
        check_among("training.optimiser", self.optimiser, (ADAM, ADAPTIVE))
        check_among("training.activation", self.activation, tuple(ACTIVATIONS))
        rate = check_number("training.learning_rate", self.learning_rate, least=0.0)
        if rate == 0.0:
            raise InputError("training.learning_rate=0; expected a number above 0")
        if not isinstance(self.device, str):
            raise InputError(f"training.device={self.device!r}; expected 'cpu' or 'cuda'")
        if self.checkpoint is not None:
            if not isinstance(self.checkpoint, (str, os.PathLike)):
                raise InputError(f"training.checkpoint={self.checkpoint!r}; expected a path")
            folder = Path(self.checkpoint).parent
            if not folder.is_dir():
                raise InputError(f"training.checkpoint: there is no folder {folder}")
        return replace(
            self,
            learning_rate=rate,
            n_epochs=check_whole("training.n_epochs", self.n_epochs, least=1),
            batch_size=check_whole("training.batch_size", self.batch_size, least=1),
            early_stopping_rounds=None
            if self.early_stopping_rounds is None
            else check_whole("training.early_stopping_rounds", self.early_stopping_rounds, least=1),
        )

    def ineffective(self, is_network: bool) -> Iterator[tuple[str, str]]:
        """Yield what of it has no effect, and why."""
        if not is_network:
            yield "training.activation", "a linear scorer has no hidden layers"
            yield "training.batch_size", "a linear scorer takes a step on all queries an epoch"
        elif self.optimiser == ADAPTIVE:
            yield "training.batch_size", "batch descent takes a step on all queries an epoch"

    def for_linear(self) -> TrainingOptions:
        """Return the options; raise InputError if a linear model cannot be trained by them."""
        if self.device != "cpu":
            raise InputError(
                f"training.device={self.device!r} without hidden layers; linear models train on the CPU only"
            )
        return self

    def of_one(self, values: Sequence[Any]) -> TrainingOptions:
        """Return the options; raise InputError if several fits would share one checkpoint."""
        if self.checkpoint is not None and len(values) > 1:
            raise InputError(f"training.checkpoint with {len(values)} fits; expected one, or a file for each")
        return self


def check_hidden(hidden: Any) -> tuple[int, ...]:
    """Return the widths of hidden layers as a tuple, () for a linear scorer; raise InputError if they are wrong.

    >>> check_hidden(None), check_hidden([8, 4]), check_hidden(8)
    ((), (8, 4), (8,))
    """
    if hidden is None:
        return ()
    if isinstance(hidden, (int, np.integer)):
        hidden = [hidden]
    flat = isinstance(hidden, np.ndarray) and hidden.ndim == 1
    if not flat and (isinstance(hidden, (str, Mapping)) or not isinstance(hidden, Sequence)):
        raise InputError(f"hidden={quote(hidden)}; expected the widths of hidden layers, as (64, 32)")
    widths = tuple(check_whole("hidden", width, least=1) for width in hidden)
    if max(widths, default=0) > _WIDEST:
        raise InputError(f"hidden={quote(hidden)}; expected layers of at most {_WIDEST} units")
    return widths
