"""The base of every section of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rankwright.analysis.results import Table
from rankwright.report.blocks import Block, Choice, Section
from rankwright.report.summary import Summary


class Content(NamedTuple):
    """The content of a section of the report: a lead of a sentence or two, and blocks."""

    lead: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report, which appears if the results have the tables that it needs and it has content.

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
    """Return a block that lets the reader choose among named blocks; if there is only one, return that block."""
    return Choice(label, options) if len(options) > 1 else options[0][1]


class TrainingMeasure(NamedTuple):
    """The names of the measure that methods were trained on, for an axis and a caption; a note if methods differ."""

    axis: str
    name: str
    more: str = ""


def find_training_measure(summary: Summary, methods: Mapping[str, Table]) -> TrainingMeasure:
    """Return the names of the measure that these methods were trained on, for axes and captions."""
    names = {m: str(table["measure"][0]) if "measure" in table else summary.decisive for m, table in methods.items()}
    heads = {m: summary.labels.get(name, name) for m, name in names.items()}
    if len(set(names.values())) <= 1:
        head = next(iter(heads.values()), summary.decisive)
        return TrainingMeasure(head, head)
    listed = ", ".join(f"{m}: {head}" for m, head in heads.items())
    explained = f" Each method has the measure that it trains on ({listed}): compare the shapes, not the heights."
    return TrainingMeasure("own measure", "Each method's own measure", explained)
