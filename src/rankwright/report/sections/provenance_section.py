"""Section on provenance: when, by what command and versions, and on what machine and data the trials were run."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from rankwright.report.blocks import Cell, Column, Grid, Row
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary


def _make_content(summary: Summary) -> Content:
    """Make the lead and the blocks of the section."""
    runs = summary.table("runs")
    last = {name: str(column[-1]) for name, column in runs.items()}
    versions = ", ".join(f"{name} {text}" for name, text in last.items() if name not in _OTHERS and text)
    entries = [("date", " to ".join(dict.fromkeys([str(runs["date"][0]), last["date"]])))]
    if len(runs["date"]) > 1:
        entries.append(("runs", f"{len(runs['date'])}; what follows is of the last one"))
    entries += [("command", last["command"])] if last["command"] else []
    entries += [("versions", versions), ("machine", last["machine"])]
    if summary.has("data"):
        entries.append(("fingerprint of the data", compute_fingerprint(summary)))
    trials = summary.table("trials")
    entries.append(("finished trials", f"{int(np.sum(trials['status'] == 'done')):,}"))
    rows = [Row([name, Cell(text, title=text)]) for name, text in entries]
    lead = "What to run to do it again. Equal fingerprints mean equal data, in training, validation and test."
    return Content(lead, [Grid([Column("what"), Column("value")], rows, "Command, versions, machine and data.")])


_OTHERS = ("date", "command", "machine")


def compute_fingerprint(summary: Summary) -> str:
    """Return a digest of the data of all folds that have results."""
    table = summary.table("data")
    _, first = np.unique(table["fold"], return_index=True)
    text = "\n".join(f"{table['fold'][row]} {table['digest'][row]}" for row in first)
    return blake2b(text.encode(), digest_size=8).hexdigest()


PROVENANCE = ReportSection("How was it made?", ("runs", "trials"), _make_content)
