"""Comparisons of methods as a table of text."""

from __future__ import annotations

from collections.abc import Sequence

from rankwright.analysis.significance.comparison import Comparison, PValues
from rankwright.basics.aligned_tables import Entry, TextTable
from rankwright.basics.number_texts import format_p, format_signed

LEVEL = 0.05  # a difference is called significant below this p
ABOVE, BELOW = "▲", "▼"
TESTS = ("p randomisation", "p t", "p Wilcoxon")  # the first one decides significance
COMPARISON_NOTE = (
    f"{ABOVE} the second method is significantly better than the first, {BELOW} worse: p < {LEVEL:g} in the "
    "randomisation test. All p are after Holm's correction over the pairs of this table; the 95% intervals are for "
    "each pair alone. Effect: Cohen's d of the paired differences."
)


def tabulate_comparisons(comparisons: Sequence[Comparison], caption: str) -> TextTable:
    """Make a table with a row for each comparison: the difference, its interval, counts of queries, and p-values."""
    header = ["first", "second", "difference", "low", "high", "wins", "ties", "losses", *TESTS, "effect", "queries"]
    rows = []
    for found in comparisons:
        differences = [Entry(value, format_signed(value)) for value in (found.low, found.high)]
        counts = [Entry(value, str(value)) for value in (found.wins, found.ties, found.losses)]
        p = [Entry(value, format_p(value)) for value in order_p_values(found.adjusted)]
        rows.append([
            Entry(found.first, found.first), Entry(found.second, found.second),
            Entry(found.difference, format_signed(found.difference), mark=choose_mark(found)),
            *differences, *counts, *p,
            Entry(found.effect, format_signed(found.effect, 2)), Entry(found.n, str(found.n)),
        ])  # fmt: skip
    return TextTable(header, rows, caption, COMPARISON_NOTE)


def choose_mark(comparison: Comparison) -> str:
    """Return the mark of a significant comparison: whether the second method is above or below; else empty."""
    if not comparison.adjusted.randomisation < LEVEL:
        return ""
    return ABOVE if comparison.difference > 0 else BELOW


def order_p_values(p: PValues) -> tuple[float, float, float]:
    """Return the three p-values of a comparison in the order of ``TESTS``."""
    return p.randomisation, p.t, p.wilcoxon
