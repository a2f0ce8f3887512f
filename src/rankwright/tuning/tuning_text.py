"""What tuning found, as text for people."""

from __future__ import annotations

import numpy as np

from rankwright.basics.errors import printable
from rankwright.data.run_fusion import NORMALISATIONS
from rankwright.report.notation import (
    MISSING,
    format_count,
    format_interval,
    format_number,
    format_p,
    format_p_equals,
    format_signed,
)
from rankwright.report.text_tables import Entry, TextTable, format_aligned
from rankwright.tuning.fusion_result import TUNED, FusionResult, Gain

_LEVEL = 0.05
_NOTE = "gain: of the tuned weights. p: randomisation test, Holm."
_BLANK = Entry(float("nan"), "")


def told(found: FusionResult) -> str:
    """The weights, the gains as a table, whether they are worth it, and what they rest on."""
    reach = f"Fitted to all queries, they reach {format_number(found.train)} on them."
    parts = [_formula(found), format_aligned(_table(found)), f"{_verdict(found)}\n{reach}", "\n".join(_basis(found))]
    return printable("\n\n".join(parts), keep="\n")


def _formula(found: FusionResult) -> str:
    terms = [
        f"{'-' if weight < 0 else '+'} {format_number(abs(weight), found.digits)} {name}"
        for name, weight in found.weights.items()
        if weight
    ]
    title = NORMALISATIONS[found.normalise].title
    return f"score = {' '.join(terms).removeprefix('+ ')}\n        ({found.normalise}: {title})"


def _table(found: FusionResult) -> TextTable:
    short = found.measure.partition("(")[0]  # the caption has all of it
    header = ["ranking", "weight", "in the folds", short, "gain", "95% interval", "p"]
    best = max(found.tuned, *(gain.value for gain in found.gains))
    rows = [_row(found, gain, gain.value == best) for gain in found.gains]
    tuned = Entry(found.tuned, format_number(found.tuned), found.tuned == best)
    rows.append([_words(TUNED), _BLANK, _words(""), tuned, _BLANK, _words(""), _BLANK])
    return TextTable(header, rows, _caption(found), _NOTE)


def _row(found: FusionResult, gain: Gain, best: bool) -> list[Entry]:
    weight = found.weights.get(gain.over, float("nan"))
    in_folds = [weights[gain.over] for weights in found.fold_weights if gain.over in weights]
    return [
        _words(gain.over),
        Entry(weight, format_number(weight, found.digits)),
        _words(f"{format_number(min(in_folds), 2)} to {format_number(max(in_folds), 2)}" if in_folds else MISSING),
        Entry(gain.value, format_number(gain.value), best),
        Entry(gain.difference, format_signed(gain.difference)),
        _words(format_interval(gain.low, gain.high)),
        Entry(gain.p, format_p(gain.p)),
    ]


def _caption(found: FusionResult) -> str:
    counted = int((~np.isnan(found.per_query[TUNED])).sum())
    basis = f"{found.measure} on {format_count(counted, 'query')}"
    if not found.fold_weights:
        return f"{basis}, the same that the weights were fitted to: without folds, gains are too good."
    return (
        f"{basis}; each is judged with weights fitted without it, in {format_count(len(found.fold_weights), 'fold')}."
    )


def _verdict(found: FusionResult) -> str:
    """Whether tuning was worth it, against the best of what there is without it."""
    rival = max(found.gains, key=lambda gain: gain.value)
    if not rival.difference > 0:
        where = "on held-out queries" if found.fold_weights else "even on the queries they were fitted to"
        return f"The tuned weights are not better than {rival.over} {where}."
    ahead = f"The tuned weights are {format_signed(rival.difference)} ahead of the next best, {rival.over}"
    if not found.fold_weights:
        return f"{ahead}, on the queries they were fitted to."
    return f"{ahead}{': ' if rival.p < _LEVEL else ', which may be chance: '}{format_p_equals(rival.p)}."


def _basis(found: FusionResult) -> list[str]:
    """How much is judged, and what was left out."""
    c = found.counts
    shares = ", ".join(f"{name} {format_number(share, 2)}" for name, share in found.judged.items())
    documents, relevant = format_count(c.documents, "document"), format_count(c.relevant, "relevant document")
    notes = [
        f"judged@{found.judged_at}, the share of the first that a judge saw: {shares}.",
        f"{c.documents_unjudged:,} of {documents} found have no judgment and count as grade 0.",
        f"Of {relevant}, {c.relevant_missed:,} found by no run.",
    ]
    if c.unanswered:
        notes.append(f"{format_count(c.unanswered, 'judged query')} that no run answers: left out.")
    if c.unjudged:
        notes.append(f"{format_count(c.unjudged, 'query')} of the runs without judgments: left out.")
    silent = ((name, format_count(n, "query")) for name, n in c.silent.items() if n)
    return notes + [f"{name} does not answer {queries}, and counts 0 there." for name, queries in silent]


def _words(words: str) -> Entry:
    return Entry(words, words)
