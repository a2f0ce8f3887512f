"""The result of tuning the weights of runs, as text."""

from __future__ import annotations

import numpy as np

from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.errors import make_printable
from rankwright.basics.number_texts import (
    MISSING,
    format_interval,
    format_number,
    format_p,
    format_p_equals,
    format_signed,
)
from rankwright.data.run_fusion import NORMALISATIONS
from rankwright.report.notation import format_count
from rankwright.tuning.fusion_result import TUNED, FusionGain, FusionResult

_LEVEL = 0.05
_NOTE = "p: randomisation test, Holm."
_BLANK = Entry(float("nan"), "")


def format_text(result: FusionResult) -> str:
    """Format a tuning result as text: the weights, a table of gains, a verdict, and counts of judgments."""
    reach = f"Fitted to all queries, they reach {format_number(result.train)} on them."
    parts = [
        _format_formula(result),
        format_aligned(_make_table(result)),
        f"{_format_verdict(result)}\n{reach}",
        "\n".join(_format_counts(result)),
    ]
    return make_printable("\n\n".join(parts), keep="\n")


def _format_formula(result: FusionResult) -> str:
    """Return the weighted sum as a formula, such as ``score = 0.7 bm25 + 0.3 dense``, with the normalisation."""
    terms = [
        f"{'-' if weight < 0 else '+'} {format_number(abs(weight), result.digits)} {name}"
        for name, weight in result.weights.items()
        if weight
    ]
    title = NORMALISATIONS[result.normalise].title
    return f"score = {' '.join(terms).removeprefix('+ ')}\n        ({result.normalise}: {title})"


def _make_table(result: FusionResult) -> TextTable:
    """Make the table of the gains over each run, RRF and equal weights."""
    short = result.measure.partition("(")[0]  # the caption has the full name
    header = ["ranking", "weight", "in the folds", short, "tuned minus this", "95% interval", "p"]
    best = max(result.tuned, *(gain.value for gain in result.gains))
    rows = [_make_row(result, gain, gain.value == best) for gain in result.gains]
    tuned = Entry(result.tuned, format_number(result.tuned), result.tuned == best)
    rows.append([_make_cell(TUNED), _BLANK, _make_cell(""), tuned, _BLANK, _make_cell(""), _BLANK])
    return TextTable(header, rows, _format_caption(result), _NOTE)


def _make_row(result: FusionResult, gain: FusionGain, best: bool) -> list[Entry]:
    """Make the row of one run or baseline in the table of gains."""
    weight = result.weights.get(gain.over, float("nan"))
    in_folds = [weights[gain.over] for weights in result.fold_weights if gain.over in weights]
    return [
        _make_cell(gain.over),
        Entry(weight, format_number(weight, result.digits)),
        _make_cell(f"{format_number(min(in_folds), 2)} to {format_number(max(in_folds), 2)}" if in_folds else MISSING),
        Entry(gain.value, format_number(gain.value), best),
        Entry(gain.difference, format_signed(gain.difference)),
        _make_cell(format_interval(gain.low, gain.high)),
        Entry(gain.p, format_p(gain.p)),
    ]


def _format_caption(result: FusionResult) -> str:
    """Return the table's caption: the measure, the queries, and whether they were held out."""
    counted = int((~np.isnan(result.per_query[TUNED])).sum())
    basis = f"{result.measure} on {format_count(counted, 'query')}"
    if not result.fold_weights:
        return f"{basis}, the same that the weights were fitted to: without folds, gains are too good."
    return (
        f"{basis}; each is ranked with weights fitted without it, in {format_count(len(result.fold_weights), 'fold')}."
    )


def _format_verdict(result: FusionResult) -> str:
    """Return a sentence that compares the tuned weights with the best other ranking."""
    rival = max(result.gains, key=lambda gain: gain.value)
    if not rival.difference > 0:
        where = "on held-out queries" if result.fold_weights else "even on the queries they were fitted to"
        return f"The tuned weights are not better than {rival.over} {where}."
    ahead = f"The tuned weights are {format_signed(rival.difference)} ahead of the next best, {rival.over}"
    if not result.fold_weights:
        return f"{ahead}, on the queries they were fitted to."
    return f"{ahead}{': ' if rival.p < _LEVEL else ', which may be chance: '}{format_p_equals(rival.p)}."


def _format_counts(result: FusionResult) -> list[str]:
    """Return sentences that count judged documents, and queries that were left out."""
    c = result.counts
    shares = ", ".join(f"{name} {format_number(share, 2)}" for name, share in result.judged.items())
    notes = [
        f"judged@{result.judged_at}, the share of judged documents among the first: {shares}.",
        f"Found documents without a judgment, which count as grade 0: {c.documents_unjudged:,} of {c.documents:,}.",
        f"Relevant documents that no run found: {c.relevant_missed:,} of {c.relevant:,}.",
    ]
    if c.unanswered:
        notes.append(f"{format_count(c.unanswered, 'judged query')} that no run answers: left out.")
    if c.unjudged:
        notes.append(f"{format_count(c.unjudged, 'query')} of the runs without judgments: left out.")
    silent = ((name, format_count(n, "query")) for name, n in c.silent.items() if n)
    return notes + [f"{name} does not answer {queries}, and counts 0 there." for name, queries in silent]


def _make_cell(words: str) -> Entry:
    return Entry(words, words)
