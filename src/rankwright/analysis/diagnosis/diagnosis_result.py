"""The result of a diagnosis, as numbers, a data frame and text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.diagnosis.loss_bounds import UpperBoundValues, mean
from rankwright.analysis.diagnosis.single_weights import SingleWeightGains
from rankwright.analysis.diagnosis.verdicts import Certificate, Verdict, format_percent
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import make_printable
from rankwright.basics.html_tables import NotebookText
from rankwright.basics.optional_imports import require
from rankwright.measures import weighted_mean


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis(NotebookText):
    """The result of diagnosing a ranker: its measure, the bounds on its loss, what is left to gain, and a verdict.

    Parameters
    ----------
    ranker : str
        The ranker that was diagnosed.
    measure, trained_measure : str
        The measure of interest, and the same with ties broken pessimistically, as bounds take it.
    qid, weight : arrays of shape (n_queries,)
        The queries and their weights.
    values : array of shape (n_queries,)
        The measure; NaN where it skips a query.
    E : array of shape (n_queries,)
        The measure divided by its highest value on the query, ties broken pessimistically. Queries on which every
        ranking is as good as any other have E = 1.
    live : array of shape (n_queries,)
        Which queries have rankings that are better than others.
    bounds : tuple of UpperBoundValues
        Every bound on 1 - E, and the one that the ranker minimises, which may be of another measure.
    left_out : mapping
        Bounds that could not be evaluated, and why.
    certificate : Certificate, optional
        How far from the least objective training ended at most, where the method can tell.
    weight_gains : SingleWeightGains, optional
        The gain from changing one weight alone; None if the scorer is not linear, or the search would take too long.
    seen : bool, optional
        Whether these seem to be the training queries: whether the ranker's measure is what training recorded.
    verdict : Verdict
        What should be changed first.
    """

    ranker: str
    measure: str
    trained_measure: str
    qid: NDArray[Any]
    weight: Floats
    values: Floats
    E: Floats
    live: NDArray[Any]
    bounds: tuple[UpperBoundValues, ...]
    left_out: Mapping[str, str]
    certificate: Certificate | None
    weight_gains: SingleWeightGains | None
    seen: bool | None
    verdict: Verdict

    @property
    def mean(self) -> float:
        """The mean measure."""
        return weighted_mean(self.values, self.weight)

    @property
    def loss(self) -> Floats:
        """The basic loss of each query, 1 - E."""
        return 1.0 - self.E

    @property
    def mean_loss(self) -> float:
        """The mean of the basic loss over all queries, as weighted."""
        return mean(self.loss, self.weight)

    @property
    def total_loss(self) -> float:
        """The weighted sum of the basic loss."""
        return float(self.loss @ self.weight)

    @property
    def own(self) -> UpperBoundValues | None:
        """The bound that the ranker minimises, if it minimises one."""
        return next((bound for bound in self.bounds if bound.own), None)

    def __getitem__(self, name: str) -> UpperBoundValues:
        for bound in self.bounds:
            if bound.name == name:
                return bound
        raise KeyError(f"no bound is called {name!r}; there are {', '.join(bound.name for bound in self.bounds)}")

    def __repr__(self) -> str:
        what = f"{self.ranker}: {self.measure}={self.mean:.4f}, loss={self.mean_loss:.4f}"
        return f"Diagnosis({what}; {len(self.qid)} queries; {self.verdict.problem})"

    def __str__(self) -> str:
        return format_text(self)

    def to_pandas(self) -> Any:
        """Return a data frame with a row per query: measure, E, loss, and value, gap and exactness of every bound."""
        columns: dict[str, Any] = {"weight": self.weight, self.measure: self.values, "E": self.E, "loss": self.loss}
        for bound in self.bounds:
            name = bound.name if bound.measure == self.trained_measure else f"{bound.name} on {bound.measure}"
            columns |= {name: bound.values, f"{name}: gap": bound.gap, f"{name}: exact": bound.exact}
            if bound.least is not None:
                columns[f"{name}: best scale"] = bound.least.values
        frame = require("pandas").DataFrame(columns, index=self.qid)
        frame.index.name = "qid"
        return frame


_HEADER = ("bound", "mean", "gap", "exact", "factor", "mean", "gap", "exact")
_WIDTH = 100


def format_text(found: Diagnosis) -> str:
    """Return a diagnosis as text: the queries, a table of the bounds, what the optimiser left, and the verdict."""
    parts = [
        "\n".join(_describe_queries(found)),
        _format_bounds_table(found),
        "\n".join(_describe_optimiser(found)),
        _format_verdict(found),
    ]
    return make_printable("\n\n".join(part for part in parts if part), keep="\n")


def _describe_queries(found: Diagnosis) -> list[str]:
    """Return lines of text on the diagnosed queries and on the measure of the ranking."""
    n, dead = len(found.qid), int((~found.live).sum())
    lines = [
        f"{found.ranker} on {n:,} queries: {found.measure} {found.mean:.4f}",
        f"Loss: {found.mean_loss:.4f} in the mean, {found.total_loss:.4g} in total. It is 1 - E, where E is the "
        "measure divided by its highest value on the query.",
    ]
    if dead:
        lines.append(f"On {dead:,} of the queries every ranking is as good as any other, which is no loss.")
    lines.append(_SEEN[found.seen])
    return lines


_SEEN = {
    True: "These seem to be the training queries: the measure is what training recorded.",
    False: "These are not the training queries, which alone say something about training: part of any gain is chance.",
    None: "Whether these are the training queries was not recorded; only those say something about training.",
}


def _format_bounds_table(found: Diagnosis) -> str:
    """Return the table of the bounds of a diagnosis as text."""
    if not found.bounds:
        return ""
    rows = [_HEADER, *(_format_bound_row(found, bound) for bound in found.bounds)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    first = sum(widths[:4]) + 6
    lines = [" " * (first + 2) + "at the best scale of the scores"] if any(row[4] for row in rows[1:]) else []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    if found.own is not None:
        lines.append(f"* minimised by {found.ranker}; gap: above the loss of its measure")
    lines += [f"{name}: left out, {why}" for name, why in found.left_out.items()]
    return "\n".join(lines)


def _format_bound_row(found: Diagnosis, bound: UpperBoundValues) -> tuple[str, ...]:
    """Return the cells, as texts, of one bound's row in the table of a diagnosis."""
    other = "" if bound.measure == found.trained_measure else f" on {bound.measure}"
    name = f"{bound.name}{other}{' *' if bound.own else ''}"
    own = format_number(bound.mean), format_number(bound.mean_gap), _format_exact_share(bound.exact)
    if bound.least is None:
        return (name, *own, "", "", "", "")
    gap = bound.least_mean - mean(bound.loss, bound.weight)
    return (
        name,
        *own,
        f"{bound.least.factor:.3g}",
        format_number(bound.least_mean),
        format_number(gap),
        _format_exact_share(bound.least.exact),
    )


def format_number(value: float) -> str:
    """Return a number as text with four decimals, or in exponent notation if it is huge.

    >>> format_number(0.12345), format_number(1.5e300)
    ('0.1235', '1.5e+300')
    """
    return f"{value:.4f}" if abs(value) < 1e5 else f"{value:.1e}"


def _format_exact_share(exact: NDArray[np.bool_]) -> str:
    """Return as text the number of queries for which the value of a bound is exact."""
    n = int(exact.sum())
    return "all" if n == len(exact) else f"{n:,} of {len(exact):,}"


def _describe_optimiser(found: Diagnosis) -> list[str]:
    """Return lines of text on how much the optimiser left to gain."""
    lines, certificate, alone = [], found.certificate, found.weight_gains
    if certificate is not None:
        lines.append(
            f"Optimiser: objective {certificate.objective:.6g}, certified to be at most "
            f"{format_percent(certificate.relative)} above the least."
        )
    else:
        lines.append("Optimiser: without a certificate.")
    if alone is None:
        lines.append("One weight alone: not searched.")
    elif alone.gain[alone.best] > 0:
        at = alone.best
        lines.append(
            f"One weight alone: feature {alone.features[at]} from {alone.coef[at]:.4g} to {alone.to[at]:.4g} would "
            f"gain {alone.gain[at]:.4f}; {int((alone.gain > 0).sum())} of {len(alone.gain)} would gain."
        )
    else:
        lines.append("One weight alone: none would gain.")
    return lines


_TITLES = {
    "optimiser": "The optimiser is the problem.",
    "scale": "The scale of the scores is the problem.",
    "surrogate": "The surrogate is the problem.",
    "neither": "Neither surrogate nor optimiser is the problem.",
    "unknown": "Nothing here shows what the problem is.",
}


def _format_verdict(found: Diagnosis) -> str:
    """Return the verdict of a diagnosis as text."""
    return fill(f"{_TITLES[found.verdict.problem]} {found.verdict.text}", _WIDTH)
