"""A diagnosis as text."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.diagnosis.diagnosis_result import Diagnosis
from rankwright.analysis.diagnosis.loss_bounds import UpperBoundValues, mean
from rankwright.analysis.diagnosis.verdicts import format_percent
from rankwright.basics.errors import printable

_HEADER = ("bound", "mean", "gap", "exact", "factor", "mean", "gap", "exact")
_WIDTH = 100


def format_text(found: Diagnosis) -> str:
    """Format a diagnosis: the queries, the bounds as a table, what the optimiser left, and the verdict."""
    parts = [
        "\n".join(_describe_queries(found)),
        _format_table(found),
        "\n".join(_describe_optimiser(found)),
        _format_verdict(found),
    ]
    return printable("\n\n".join(part for part in parts if part), keep="\n")


def _describe_queries(found: Diagnosis) -> list[str]:
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


def _format_table(found: Diagnosis) -> str:
    if not found.bounds:
        return ""
    rows = [_HEADER, *(_make_row(found, bound) for bound in found.bounds)]
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


def _make_row(found: Diagnosis, bound: UpperBoundValues) -> tuple[str, ...]:
    other = "" if bound.measure == found.trained_measure else f" on {bound.measure}"
    name = f"{bound.name}{other}{' *' if bound.own else ''}"
    own = format_number(bound.mean), format_number(bound.mean_gap), _format_share(bound.exact)
    if bound.least is None:
        return (name, *own, "", "", "", "")
    gap = bound.least_mean - mean(bound.loss, bound.weight)
    return (
        name,
        *own,
        f"{bound.least.factor:.3g}",
        format_number(bound.least_mean),
        format_number(gap),
        _format_share(bound.least.exact),
    )


def format_number(value: float) -> str:
    """Format a number with four decimals, or with its exponent if it is huge.

    >>> format_number(0.12345), format_number(1.5e300)
    ('0.1235', '1.5e+300')
    """
    return f"{value:.4f}" if abs(value) < 1e5 else f"{value:.1e}"


def _format_share(exact: NDArray[np.bool_]) -> str:
    """Format the number of queries for which a bound is exact."""
    n = int(exact.sum())
    return "all" if n == len(exact) else f"{n:,} of {len(exact):,}"


def _describe_optimiser(found: Diagnosis) -> list[str]:
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
    return fill(f"{_TITLES[found.verdict.problem]} {found.verdict.text}", _WIDTH)
