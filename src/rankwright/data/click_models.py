"""Click models: how many of the users that are shown a list click at each position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.data.click_cells import ClickCells, join_cells
from rankwright.data.shown_lists import ShownLists

MODELS = ("position", "cascade", "trust")
_TRUSTED = 0.65  # the probability that an irrelevant document at position 1 is clicked by trust, once looked at


class ClickModel:
    """A click model: how many of the sessions that see a list click at each position.

    Parameters
    ----------
    name : str
        The model.
    examined : array of shape (n_positions,)
        The probability that each position is looked at; the cascade model does not use it.
    relevant : array of shape (n_docs,)
        The probability of a click on a document that is looked at.
    abandon : float
        The probability that a user of the cascade model stops after a click.
    """

    def __init__(self, name: str, examined: Floats, relevant: Floats, abandon: float) -> None:
        self.name, self.examined, self.relevant, self.abandon = name, examined, relevant, abandon
        self._n_looked, self._n_shown = np.zeros((2, len(examined)))

    def draw_clicks(self, lists: ShownLists, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the number of clicks at each position of each list."""
        is_shown = lists.rows >= 0
        if self.name == "cascade":
            return self._draw_cascade(lists, is_shown, rng)
        chance = self.examined * self.relevant[lists.rows]
        if self.name == "trust":
            positions = np.arange(1, len(self.examined) + 1)
            seen = np.maximum(1.0 - 0.01 * (positions + 1), 0.0)
            trusted = np.minimum(_TRUSTED / positions, seen)
            chance = self.examined * (trusted + (seen - trusted) * self.relevant[lists.rows])
        return rng.binomial(lists.n_sessions[:, None], np.where(is_shown, chance, 0.0))

    def _draw_cascade(
        self, lists: ShownLists, is_shown: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the clicks of users who look from the top down, and how many still look at each position."""
        clicks = np.zeros(lists.rows.shape, np.int64)
        active = lists.n_sessions.copy()
        for k in range(lists.rows.shape[1]):
            shown = is_shown[:, k]
            self._n_looked[k] += active[shown].sum()
            self._n_shown[k] += lists.n_sessions[shown].sum()
            clicks[:, k] = rng.binomial(active, np.where(shown, self.relevant[lists.rows[:, k]], 0.0))
            active -= rng.binomial(clicks[:, k], self.abandon)
        return clicks

    def find_examination(self) -> Floats:
        """Return the true examination; in the cascade model the share of lists that were looked at so far down."""
        if self.name != "cascade":
            return self.examined
        return np.asarray(np.maximum(self._n_looked, 0.5) / np.maximum(self._n_shown, 1.0))


def count_clicks(lists: ShownLists, model: ClickModel, rng: np.random.Generator) -> ClickCells:
    """Return the cells of lists, with clicks drawn for all sessions that see them."""
    clicks = model.draw_clicks(lists, rng)
    n_lists, n_positions = lists.rows.shape
    shown = lists.rows.ravel() >= 0
    cells = ClickCells(
        np.repeat(lists.query, n_positions)[shown],
        lists.rows.ravel()[shown],
        np.tile(np.arange(1, n_positions + 1), n_lists)[shown],
        np.repeat(lists.ranker, n_positions)[shown],
        lists.group.ravel()[shown],
        np.repeat(lists.n_sessions, n_positions)[shown],
        clicks.ravel()[shown],
    )
    return join_cells([cells])
