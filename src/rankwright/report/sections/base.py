"""The base of every section of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rankwright.analysis.results import Table
from rankwright.report.blocks import Block, Choice, Section
from rankwright.report.summary import Summary


class Content(NamedTuple):
    """The content of a section: a lead of a sentence or two, and blocks."""

    lead: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report: it appears when the results have what it needs, and it has something to say.

    Parameters
    ----------
    title : str
        Its heading, and its entry in the navigation.
    needs : tuple of str
        The tables of the results that must be there and not empty.
    content : callable
        Takes the summary of the results; returns what the section says, or None if that is nothing.
    """

    title: str
    needs: tuple[str, ...]
    content: Callable[[Summary], Content | None]

    def build(self, summary: Summary) -> Section | None:
        """Return the section for these results, or None where it does not appear."""
        if not all(summary.has(name) for name in self.needs):
            return None
        content = self.content(summary)
        return None if content is None else Section(self.title, content.lead, content.blocks)


def make_choice(label: str, options: Sequence[tuple[str, Block]]) -> Block:
    """Return a choice among blocks; a single one needs no choice."""
    return Choice(label, options) if len(options) > 1 else options[0][1]


class TrainingMeasure(NamedTuple):
    """The measure that methods were trained on: for an axis, for a caption, and a sentence where methods differ."""

    axis: str
    name: str
    more: str = ""


def find_training_measure(summary: Summary, methods: Mapping[str, Table]) -> TrainingMeasure:
    """Return the measure whose values these tables hold."""
    names = {m: str(table["measure"][0]) if "measure" in table else summary.decisive for m, table in methods.items()}
    heads = {m: summary.labels.get(name, name) for m, name in names.items()}
    if len(set(names.values())) <= 1:
        head = next(iter(heads.values()), summary.decisive)
        return TrainingMeasure(head, head)
    listed = ", ".join(f"{m}: {head}" for m, head in heads.items())
    explained = f" Each method has the measure that it trains on ({listed}): compare the shapes, not the heights."
    return TrainingMeasure("own measure", "Each method's own measure", explained)
