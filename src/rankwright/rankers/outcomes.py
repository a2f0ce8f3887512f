"""What training yields, and the warning for training that did not converge."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from rankwright.data import Queries
from rankwright.errors import warn
from rankwright.scorers import Scorer


class Outcome(NamedTuple):
    """What training yields.

    Parameters
    ----------
    scorer : Scorer
        The model.
    history : list of dict
        One dict per round.
    unconverged : str, optional
        Where training stopped before its tolerance: the limit that stopped it, how far it got, and the way out, as
        in "stopped at max_iter=200 with a duality gap of 3.1% of the objective (tol=1e-06); raise max_iter".
    reason : str, optional
        Why the model ranks no document above another, if it does not, and the way out.
    """

    scorer: Scorer
    history: list[dict[str, Any]]
    unconverged: str | None = None
    reason: str | None = None


def warn_about(outcome: Outcome, name: str, train: Queries) -> None:
    """Warn if the training of a ranker did not converge."""
    if outcome.unconverged is not None:
        warn(f"{name} did not converge: {outcome.unconverged}", ConvergenceWarning)
