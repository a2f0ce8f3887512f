"""What methods were judged by while they were trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rankwright.analysis.results import Table
from rankwright.report.summary import Summary


class Judged(NamedTuple):
    """The measure that methods were judged by: on an axis, in a caption, and a sentence where they differ."""

    axis: str
    name: str
    more: str = ""


def find_judging_measures(summary: Summary, methods: Mapping[str, Table]) -> Judged:
    """Return the measures that the points of these tables are values of."""
    names = {m: str(table["measure"][0]) if "measure" in table else summary.decisive for m, table in methods.items()}
    heads = {m: summary.labels.get(name, name) for m, name in names.items()}
    if len(set(names.values())) <= 1:
        head = next(iter(heads.values()), summary.decisive)
        return Judged(head, head)
    listed = ", ".join(f"{m}: {head}" for m, head in heads.items())
    explained = f" What each trains on ({listed}): compare the shapes, not the heights."
    return Judged("own measure", "Each method's own measure", explained)
