"""Grades of clicks: clicks over expected clicks, smoothed, and data sets that have them as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import ClickLogWarning, InputError, quote, suggest, warn
from rankwright.basics.html_tables import format_html_table
from rankwright.basics.optional_imports import require
from rankwright.data.click_cells import sum_by
from rankwright.data.click_log import ClickLog
from rankwright.data.examination import Examination

KINDS = ("coec", "ctr")
CUTS = (0.5, 1.0, 2.0)
_PRIOR_RANGE = (0.05, 1000.0)  # expected clicks
_ROUNDS = 20
_LEAST_VARIANCE = 1e-9  # of clicks, where each impression is clicked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClickGrades:
    """The clicks of each document compared with what was expected of its positions.

    Parameters
    ----------
    kind : "coec" or "ctr"
        What the value is: clicks over expected clicks, or clicks over impressions.
    qid, docid : array of shape (n_pairs,)
        The query and the document.
    n_shown, n_clicked : array of shape (n_pairs,)
        Impressions and clicks.
    expected : array of shape (n_pairs,)
        The clicks that an average document would have got at these positions; of "ctr", at any position.
    value : array of shape (n_pairs,)
        Smoothed: ``(clicks + prior) / (expected + prior)``, times the mean click rate for "ctr".
    low, high : array of shape (n_pairs,)
        The ends of the 95 % interval of the value, given the prior.
    prior : float
        The strength of the prior, in expected clicks.
    """

    kind: str
    qid: NDArray[Any]
    docid: NDArray[Any]
    n_shown: Floats
    n_clicked: Floats
    expected: Floats
    value: Floats
    low: Floats
    high: Floats
    prior: float

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        quartiles = ", ".join(f"{each:.3g}" for each in np.quantile(self.value, [0.25, 0.5, 0.75]))
        return f"ClickGrades({len(self)} documents, {self.kind}, quartiles {quartiles}, prior {self.prior:.3g} clicks)"

    def _repr_html_(self) -> str:
        columns = self._list_columns()
        rows = [[_as_cell(values[i]) for values in columns.values()] for i in range(min(len(self), 10))]
        return format_html_table(repr(self), list(columns), rows, f"the first {len(rows)} of {len(self):,} documents")

    def _list_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name."""
        names = ("qid", "docid", "n_shown", "n_clicked", "expected", "value", "low", "high")
        return {name: getattr(self, name) for name in names}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per document: ids, counts, the value and its interval."""
        return require("pandas").DataFrame(self._list_columns())

    def cut(self, cuts: Sequence[float] | int | None) -> Floats:
        """Return grades 0, 1, ...: how many of ``cuts`` the value reaches.

        Parameters
        ----------
        cuts : sequence of float, int or None
            Rising values; or a number of grades of about equally many documents; None keeps the values themselves.
        """
        if cuts is None:
            return self.value.copy()
        if isinstance(cuts, int | np.integer):
            if cuts < 2:
                raise InputError(f"cuts={cuts}; expected at least 2 grades, or the values to cut at")
            cuts = np.quantile(self.value, np.arange(1, cuts) / cuts).tolist()
        bounds = np.array(cuts, dtype=np.float64)
        if bounds.ndim != 1 or not len(bounds) or not np.isfinite(bounds).all() or (np.diff(bounds) < 0).any():
            raise InputError(f"cuts={quote(cuts)}; expected rising numbers, a number of grades, or None")
        return np.searchsorted(bounds, self.value, side="right").astype(np.float64)


def _as_cell(value: Any) -> str | int | float:
    """Return a value as the cell of a table; ids are texts."""
    return float(value) if isinstance(value, float | np.floating) else str(value)


def check_prior(prior: float | None) -> None:
    """Raise InputError if a strength of the prior is not a number above 0."""
    if prior is not None and not (np.isfinite(prior) and prior > 0):
        raise InputError(f"prior={prior!r}; expected a number of clicks above 0, or None to estimate it")


def grade_clicks(
    log: ClickLog,
    kind: str = "coec",
    *,
    prior: float | None = None,
    examination: Examination | None = None,
    max_position: int | None = None,
) -> ClickGrades:
    """Compare the clicks of each document with those expected at its positions.

    Parameters
    ----------
    log : ClickLog
        The log.
    kind : "coec" or "ctr"
        Clicks over expected clicks, 1 being the average; or the click rate, which knows no positions.
    prior : float, optional
        How many expected clicks the average counts for. By default the strength under which clicks vary between
        documents as much as they do in the log.
    examination : Examination, optional
        Expected clicks follow it. By default they follow the mean click rate of each position in the log, which
        mixes how often users look there with how good the documents there are.
    max_position : int, optional
        Leave out impressions at larger positions.
    """
    if kind not in KINDS:
        raise InputError(f"grades={kind!r}; {suggest(str(kind), KINDS)}")
    check_prior(prior)
    Examination.check(examination)
    cells = choose_cells(log, max_position)
    pair = log.cell_pair[cells]
    shown = sum_by(pair, log.n_shown[cells], log.n_pairs)
    clicked = sum_by(pair, log.n_clicked[cells], log.n_pairs)
    expected_by_cell = _expect_clicks(log, cells, kind, examination)
    expected = sum_by(pair, expected_by_cell, log.n_pairs)
    pairs = np.flatnonzero(shown)
    shown, clicked, expected = shown[pairs], clicked[pairs], expected[pairs]
    strength = float(prior or 0.0)
    if prior is None:
        of_cells = expected_by_cell**2 / np.maximum(log.n_shown[cells], 1.0)
        strength = estimate_prior(clicked, expected, sum_by(pair, of_cells, log.n_pairs)[pairs])
        if strength >= _PRIOR_RANGE[1]:
            warn(
                "clicks vary no more between documents than by chance: all grades are near the average. Collect more "
                "impressions, or pass prior=, such as 5.0",
                ClickLogWarning,
            )
    unit = clicked.sum() / max(shown.sum(), 1.0) if kind == "ctr" else 1.0
    low, high = (gammaincinv(clicked + strength, tail) / (expected + strength) * unit for tail in (0.025, 0.975))
    return ClickGrades(
        kind=kind,
        qid=log.qid[log.pair_query[pairs]],
        docid=log.docid[pairs],
        n_shown=shown,
        n_clicked=clicked,
        expected=expected,
        value=(clicked + strength) / (expected + strength) * unit,
        low=low,
        high=high,
        prior=strength,
    )


def choose_cells(log: ClickLog, max_position: int | None) -> Ints:
    """Return the numbers of the cells down to a position; raise InputError if there is none."""
    if max_position is not None and max_position < 1:
        raise InputError(f"max_position={max_position!r}; expected at least 1")
    cells = np.arange(len(log.position))
    chosen = cells if max_position is None else cells[log.position <= max_position]
    if not len(chosen):
        raise InputError(f"no document was shown at positions 1 to {max_position}; expected at least one")
    return chosen


def _expect_clicks(log: ClickLog, cells: Ints, kind: str, examination: Examination | None) -> Floats:
    """Return the clicks that an average document would have got in each of these cells."""
    shown, clicked = log.n_shown[cells].astype(np.float64), log.n_clicked[cells]
    if kind == "ctr":
        return np.asarray(shown * (clicked.sum() / shown.sum()))
    position = log.position[cells]
    if examination is not None:
        looked = shown * examination.look_up(position)
        return np.asarray(looked * (clicked.sum() / looked.sum()))
    size = log.n_positions + 1
    of_position = sum_by(position, clicked, size) / np.maximum(sum_by(position, shown, size), 1.0)
    return np.asarray(shown * of_position[position])


def estimate_prior(clicked: Floats, expected: Floats, certain: Floats | None = None) -> float:
    """Return the strength s of the prior under which counts of clicks spread as far around what is expected as they do.

    With true values of mean 1 and variance 1 / s, clicks have the variance ``m - q + (m^2 - q) / s``, where m clicks
    are expected. Here ``certain`` has q: the sum over impressions of the squared chance of a click, by which counts
    vary less than those of Poisson, for which q is 0. The value of 1 / s is fitted by least squares to the squared
    deviations, weighted by their own variance, in a few rounds.

    >>> rng = np.random.default_rng(0)
    >>> expected = rng.uniform(0.5, 20.0, 5_000)
    >>> clicked = rng.poisson(expected * rng.gamma(3.0, 1.0 / 3.0, 5_000))
    >>> 2.7 < estimate_prior(clicked.astype(float), expected) < 3.3
    True
    """
    known = expected > 0
    if not known.any() or not clicked.any():
        return 1.0
    mean = expected[known]
    square = np.zeros(len(mean)) if certain is None else certain[known]
    excess, slope = (clicked[known] - mean) ** 2 - mean + square, mean**2 - square
    low, high = _PRIOR_RANGE
    spread = 0.5
    for _ in range(_ROUNDS):
        weight = slope / (mean - square + slope * spread + _LEAST_VARIANCE) ** 2
        total = float(weight @ slope)
        spread = float(np.clip(weight @ excess / total if total > 0.0 else 0.0, 1.0 / high, 1.0 / low))
    return 1.0 / spread
