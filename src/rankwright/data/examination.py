"""Examination: how probable it is that a position of a result list is looked at, relative to the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.basics.html_tables import format_html_table
from rankwright.basics.optional_imports import require

_SHOWN = 5  # positions in the repr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Examination:
    """The probability that each position of a result list is looked at, relative to position 1.

    Make one with :func:`rankwright.estimate_examination`, with :meth:`from_power`, or with :meth:`from_values`.

    Parameters
    ----------
    probability : array of shape (n_positions,)
        The probability of position 1, 2, ... divided by that of position 1; NaN where it could not be estimated.
    low, high : array of shape (n_positions,), optional
        The ends of the confidence intervals, if it was estimated.
    method : str
        How it was found: "given", "swaps", "harvesting", "em" or "power".
    reason : str
        Why this method was used, and what it rests on.
    n_shown, n_clicked : array of shape (n_positions,), optional
        The impressions and clicks at each position that the estimate is made of.
    confidence : float
        The confidence level of the intervals.

    Examples
    --------
    >>> examination = Examination.from_power(1.0, 4)
    >>> examination
    Examination(1, 0.5, 0.333, 0.25; given)
    >>> examination.look_up([1, 4]).tolist()
    [1.0, 0.25]
    """

    probability: Floats
    low: Floats | None = None
    high: Floats | None = None
    method: str = "given"
    reason: str = ""
    n_shown: Floats | None = None
    n_clicked: Floats | None = None
    confidence: float = 0.95

    @classmethod
    def from_values(cls, probability: ArrayLike) -> Examination:
        """Return the examination with these probabilities of positions 1, 2, ..., divided by that of position 1.

        >>> Examination.from_values([0.8, 0.4])
        Examination(1, 0.5; given)
        """
        values = np.array(probability, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not (np.isfinite(values).all() and (values > 0).all()):
            raise InputError(
                f"examination is {quote(values.tolist())}; expected the probability of each position, above 0"
            )
        return cls(values / values[0], reason="given by the caller")

    @classmethod
    def from_power(cls, eta: float, n_positions: int) -> Examination:
        """Return the examination that falls as ``1 / position ** eta``."""
        if not (np.isfinite(eta) and eta >= 0):
            raise InputError(f"eta={eta!r}; expected a finite number of at least 0: examination is 1 / position ** eta")
        if n_positions < 1:
            raise InputError(f"n_positions={n_positions!r}; expected at least 1")
        values = np.arange(1, n_positions + 1, dtype=np.float64) ** -float(eta)
        return cls(values, reason=f"1 / position ** {eta:g}, given by the caller")

    def fit_power(self) -> Examination:
        """Return the examination ``1 / position ** eta`` that is nearest to this one, for all its positions.

        Logarithms are fitted by least squares, weighted by the intervals if there are any. It fills positions that are
        not known, and needs fewer clicks than a number for each position.

        >>> Examination(np.array([1.0, 0.5, np.nan, 0.25])).fit_power()
        Examination(1, 0.5, 0.333, 0.25; power)
        """
        known = ~np.isnan(self.probability)
        known[0] = False
        if not known.any():
            raise InputError("no position but the first is known; expected at least one")
        depth, log_value = np.log(np.arange(1, len(self) + 1))[known], np.log(self.probability[known])
        weight = np.ones(len(depth))
        if self.low is not None and self.high is not None:
            weight = 1.0 / np.maximum(np.log(self.high[known] / np.maximum(self.low[known], 1e-300)), 1e-6) ** 2
        eta = max(-float((weight * depth) @ log_value / ((weight * depth) @ depth)), 0.0)
        reason = f"1 / position ** {eta:.3f}, fitted to {known.sum()} positions ({self.method})"
        return replace(Examination.from_power(eta, len(self)), method="power", reason=reason)

    def __len__(self) -> int:
        return len(self.probability)

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.3g}" for value in self.probability[:_SHOWN])
        more = f", ... {len(self)} positions" if len(self) > _SHOWN else ""
        return f"Examination({shown}{more}; {self.method})"

    def __str__(self) -> str:
        header = f"examination by position, relative to position 1 ({self.method})"
        lines = [header, f"{'position':>8}  {'examined':>8}"]
        if self.low is not None:
            lines[1] += f"  {f'{self.confidence:.0%} interval':>17}"
        if self.n_shown is not None:
            lines[1] += f"  {'shown':>12}  {'clicked':>10}"
        for i, value in enumerate(self.probability):
            line = f"{i + 1:>8}  {_format_number(value):>8}"
            if self.low is not None and self.high is not None:
                line += f"  {_format_number(self.low[i]) + ' to ' + _format_number(self.high[i]):>17}"
            if self.n_shown is not None and self.n_clicked is not None:
                line += f"  {self.n_shown[i]:>12,.0f}  {self.n_clicked[i]:>10,.0f}"
            lines.append(line)
        return "\n".join([*lines, *([self.reason] if self.reason else [])])

    def _repr_html_(self) -> str:
        columns = self._list_columns()
        rows = [[_as_cell(name, values[i]) for name, values in columns.items()] for i in range(len(self))]
        title = f"Examination by position, relative to position 1 ({self.method})"
        return format_html_table(title, list(columns), rows, self.reason)

    def _list_columns(self) -> dict[str, Any]:
        """Return the columns that are known, by name."""
        columns: dict[str, Any] = {"position": np.arange(1, len(self) + 1), "examination": self.probability}
        others = {"low": self.low, "high": self.high, "n_shown": self.n_shown, "n_clicked": self.n_clicked}
        return columns | {name: values for name, values in others.items() if values is not None}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per position: position, examination, and what else is known of it."""
        return require("pandas").DataFrame(self._list_columns())

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON; NaN becomes null."""
        columns = {
            name: [_as_json(value) for value in values.tolist()] for name, values in self._list_columns().items()
        }
        return {"method": self.method, "reason": self.reason, "confidence": self.confidence, **columns}

    @classmethod
    def from_json(cls, content: Any, where: str = "examination") -> Examination:
        """Return the examination that :meth:`to_json` made a dictionary of."""
        if not isinstance(content, Mapping) or not isinstance(content.get("examination"), Sequence):
            raise InputError(f'{where}: {quote(content)}; expected an object with a list "examination"')
        known: dict[str, Floats | None] = {}
        for name in ("examination", "low", "high", "n_shown", "n_clicked"):
            values = content.get(name)
            try:
                known[name] = None if values is None else np.array(values, dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"{where}: {name!r} is {quote(values)}; expected a list of numbers") from None
        probability = known.pop("examination")
        assert probability is not None
        for name, array in known.items():
            if array is not None and array.shape != probability.shape:
                raise InputError(f"{where}: {name!r} has {array.size} numbers; expected {probability.size}")
        if probability.ndim != 1 or not len(probability) or not np.nanmin(probability, initial=1.0) > 0:
            raise InputError(f"{where}: 'examination' is {quote(content['examination'])}; expected numbers above 0")
        method, reason = str(content.get("method", "given")), str(content.get("reason", ""))
        return cls(
            probability, method=method, reason=reason, confidence=float(content.get("confidence", 0.95)), **known
        )

    @classmethod
    def check(cls, value: Any) -> None:
        """Raise InputError if a value is neither an examination nor None."""
        if value is not None and not isinstance(value, cls):
            raise InputError(
                f"examination={quote(value)}; expected an Examination: rw.estimate_examination(log), or what you know: "
                "rw.Examination.from_values([1.0, 0.6]), rw.Examination.from_power(1.0, 10)"
            )

    def look_up(self, position: ArrayLike) -> Floats:
        """Return the probabilities of these positions, counted from 1; raise InputError if one is not known."""
        at: Ints = np.asarray(position, dtype=np.int64)
        if at.size and at.max() > len(self):
            raise InputError(
                f"position {at.max()} was shown; the examination is known to position {len(self)}. Give it for more "
                "positions, or leave lower ones out with max_position="
            )
        found = self.probability[at - 1]
        if np.isnan(found).any():
            place = int(at[np.isnan(found)].min())
            raise InputError(
                f"the examination of position {place} is not known. Leave it and lower ones out with max_position="
                f"{place - 1} (--max-position), or fill it: examination.fit_power() (--examination power)"
            )
        return np.asarray(found)


def _format_number(value: float) -> str:
    """Return a probability with three decimals, or a dash."""
    return "-" if np.isnan(value) else f"{value:.3f}"


def _as_cell(name: str, value: Any) -> int | float:
    """Return a value as the cell of a table: counts and positions are whole."""
    return int(value) if name in ("position", "n_shown", "n_clicked") and value == value else float(value)


def _as_json(value: float) -> float | None:
    """Return a number, or None for one that is not finite."""
    return value if np.isfinite(value) else None
