"""The gallery: every example is run, and shown with its figure, its code and what it prints."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go

from website.contents import DOCS, EXAMPLE, ITEM, ROOT, format_sections, read_page, read_sections

PAGE = "gallery.md"
SCRIPT = "plotly.min.js"


class ExampleRun(NamedTuple):
    """What an example printed, and its figure."""

    output: str
    figure: go.Figure


def run_example(path: Path) -> ExampleRun:
    """Run ``main`` of an example in an empty folder, and return what it printed and the figure that it returned."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    printed, folder, arguments = StringIO(), Path.cwd(), sys.argv
    with tempfile.TemporaryDirectory() as own:
        os.chdir(own)
        sys.argv = [path.name]
        try:
            with redirect_stdout(printed):
                figure = module.main()
        finally:
            os.chdir(folder)
            sys.argv = arguments
    return ExampleRun(printed.getvalue().replace(own, ""), figure)


def format_figure(figure: go.Figure, name: str, *, small: bool = False) -> str:
    """Return a figure as HTML that takes its colours from the page; a small one has its legend above it."""
    figure = go.Figure(figure)
    has_legend = sum(trace.name is not None for trace in figure.data) > 1
    figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        colorway=["#3b76af", "#d98032", "#4f9d5b", "#9467bd", "#8c6d5b"],
        font={"family": "inherit", "size": 11 if small else 13},
        height=(260 if has_legend else 236) if small else 420,
        margin={"l": 10, "r": 10, "t": 8 if small else 36, "b": 16 if small else 10},
        showlegend=has_legend,
    )
    figure.update_xaxes(automargin=True).update_yaxes(automargin=True)
    if small:
        figure.update_layout(title=None, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})
    config = {"staticPlot": small, "responsive": True, "displayModeBar": False}
    html = figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"figure-{name}", config=config)
    return f'<div class="example-figure">{html}</div>'


def format_raw(*html: str) -> list[str]:
    """Return lines that put HTML into a page."""
    return ["````{raw} html", *html, "````", ""]


def format_example_page(title: str, path: Path, run: ExampleRun) -> str:
    """Return the page of an example."""
    code = path.read_text(encoding="utf-8").rstrip()
    lines = [f"# {title}", ""]
    lines += format_raw(f'<script src="../_static/{SCRIPT}"></script>', format_figure(run.figure, path.stem))
    lines += [f"The file is `examples/{path.name}`.", "", "```python", code, "```", ""]
    if run.output:
        lines += ["It prints:", "", "```output", run.output.rstrip(), "```", ""]
    return "\n".join(lines)


def make_gallery() -> Iterator[tuple[str, str]]:
    """Yield the gallery, with a card in place of each item of its list, and the page of each example."""
    cards = ["", *format_raw(f'<script src="_static/{SCRIPT}"></script>'), ":::::{grid} 1 1 2 2", ":gutter: 3", ""]
    others: list[str] = []
    for line in read_page(PAGE).splitlines():
        item = ITEM.match(line)
        if item is None:
            others.append(line)
            continue
        path = (DOCS / item[2]).resolve()
        if not EXAMPLE.fullmatch(path.relative_to(ROOT).as_posix()):
            raise ValueError(f"{PAGE}: found a link to {item[2]}; expected a file of examples/")
        run = run_example(path)
        text = line.removeprefix(item[0]).removeprefix(":").strip()
        cards += [f"::::{{grid-item-card}} {item[1]}", f":link: /gallery/{path.stem}", ":link-type: doc", ""]
        cards += [
            *format_raw(format_figure(run.figure, path.stem, small=True)),
            f"{text[:1].upper()}{text[1:]}.",
            "::::",
            "",
        ]
        yield f"gallery/{path.stem}.md", format_example_page(item[1], path, run)
    yield PAGE, "\n".join([*others, *cards, ":::::", "", format_sections(read_sections(PAGE))])
