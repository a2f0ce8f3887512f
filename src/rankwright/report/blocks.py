"""Blocks of a report's page: text, charts, tables. A page knows blocks only, not their subject.

A block becomes plain JSON, which the page's script draws by its ``kind``. Numbers may come as numpy arrays and scalars;
NaN and infinity become ``null`` and are shown as missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from rankwright.basics.errors import InputError, quote
from rankwright.report.grid_blocks import Cell as Cell
from rankwright.report.grid_blocks import Column as Column
from rankwright.report.grid_blocks import Duel as Duel
from rankwright.report.grid_blocks import DuelDocuments as DuelDocuments
from rankwright.report.grid_blocks import DuelQuery as DuelQuery
from rankwright.report.grid_blocks import Grid as Grid
from rankwright.report.grid_blocks import Row as Row
from rankwright.report.notation import Json, check_names, to_plain

# The traces that figures.js can style. None needs WebGL, which would require the page to allow eval.
TRACES = ("scatter", "bar", "box", "violin", "histogram", "heatmap")


class Block(Protocol):
    """A piece of a section of the page, such as text, a chart or a table."""

    kind: ClassVar[str]

    @property
    def mentioned(self) -> frozenset[str]:
        """The methods that this block follows: it changes when the reader hides one of them."""

    def to_json(self) -> Json:
        """Return the block as JSON: numbers, text, lists and objects with text keys."""


@dataclass(frozen=True, slots=True)
class Text:
    """A block of plain text; a blank line begins a new paragraph.

    Parameters
    ----------
    text : str
    level : {"plain", "note", "warning"}
        A note or a warning stands in a box.
    """

    text: str
    level: Literal["plain", "note", "warning"] = "plain"
    kind: ClassVar[str] = "text"

    @property
    def mentioned(self) -> frozenset[str]:
        """The methods of a text: none."""
        return frozenset()

    def to_json(self) -> Json:
        """Return the paragraphs, and the level."""
        paragraphs = [" ".join(part.split()) for part in self.text.split("\n\n")]
        return {"kind": self.kind, "paragraphs": [part for part in paragraphs if part], "level": self.level}


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A chart drawn by Plotly: its traces and its layout, as Plotly's JSON.

    A trace with the key ``"method"`` has that method's colour, dash and marker, unless it sets its own, takes its name,
    unless it has one, and disappears when the reader hides the method. Fonts, grid and background are the page's. Text
    of the form ``"var(--better)"`` anywhere in a trace or the layout is a colour of the theme: ``--ink``, ``--muted``,
    ``--line``, ``--paper``, ``--accent``, ``--better``, ``--worse``, and ``--method-0`` to ``--method-7``. Names, data
    and titles are shown literally (a line end is a line end); only ``hovertemplate`` and ``texttemplate`` have markup.
    The legend is the page's own, below the chart; ``showlegend`` false hides it, or one entry of it. Long tick labels
    lose their middle, and are whole when the reader points at them. Where several traces have one name, ``meta`` tells
    them apart in the numbers behind the chart. A trace with ``fill`` is a faint area, which has no numbers there.

    Parameters
    ----------
    data : sequence of mappings
        Plotly traces, of the types in ``TRACES``.
    layout : mapping
        Plotly layout; titles are objects: ``{"xaxis": {"title": {"text": "k"}}}``.
    caption : str
        What the reader sees; also the name of the chart for those who cannot see it.
    height : int
        In CSS pixels.
    """

    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    caption: str
    height: int = 360
    kind: ClassVar[str] = "chart"

    def __post_init__(self) -> None:
        for trace in self.data:
            name = trace.get("type", "scatter")
            if name not in TRACES:
                raise InputError(f"trace of type {quote(name)} in {quote(self.caption)}; there are {', '.join(TRACES)}")

    @property
    def mentioned(self) -> frozenset[str]:
        """The methods of the traces."""
        return frozenset(trace["method"] for trace in self.data if "method" in trace)

    def to_json(self) -> Json:
        """Return the figure, its caption and its height."""
        return {
            "kind": self.kind,
            "data": to_plain(self.data),
            "layout": to_plain(self.layout),
            "caption": self.caption,
            "height": self.height,
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """A block made of several blocks, of which the reader sees one at a time, such as one for each measure or fold.

    Parameters
    ----------
    label : str
        What is chosen, such as "Measure".
    options : sequence of (str, Block)
        The first is shown at the beginning.
    """

    label: str
    options: Sequence[tuple[str, Block]]
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        check_names([name for name, _ in self.options], f"option of the choice {quote(self.label)}")

    @property
    def mentioned(self) -> frozenset[str]:
        """The methods of all options."""
        return frozenset().union(*(block.mentioned for _, block in self.options))

    def to_json(self) -> Json:
        """Return the label, and the options with their names."""
        options = [{"name": name, "block": block.to_json()} for name, block in self.options]
        return {"kind": self.kind, "label": self.label, "options": options}


@dataclass(frozen=True, slots=True)
class Section:
    """A titled section of a page: a lead sentence, and blocks. The reader can fold it.

    Parameters
    ----------
    title : str
        Also its entry in the navigation.
    lead : str
        A sentence or two below the title: what this section says.
    blocks : sequence of Block
    part : str
        Sections of one part of the page stand below its name, folded until the reader opens them.
    """

    title: str
    lead: str
    blocks: Sequence[Block]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report as one page: title, facts, methods and sections.

    Parameters
    ----------
    title, subtitle : str
    facts : sequence of (str, str)
        Names and values, shown small below the subtitle.
    methods : tuple of str
        Everything that has a colour and can be hidden, in the order of the colours.
    sections : sequence of Section
    footer : str
        The version and the date, for example: the page itself never asks for the time.
    """

    title: str
    subtitle: str
    facts: Sequence[tuple[str, str]]
    methods: tuple[str, ...]
    sections: Sequence[Section]
    footer: str

    def __post_init__(self) -> None:
        if self.methods:
            check_names(self.methods, "method of the page")
        for section in self.sections:
            for block in section.blocks:
                unknown = sorted(block.mentioned.difference(self.methods))
                if unknown:
                    raise InputError(
                        f"section {quote(section.title)} mentions {quote(unknown[0])}, which is no method of the page"
                    )
