"""The files of a report: tables, and one HTML page that needs nothing else, neither files nor a network."""

from __future__ import annotations

import datetime
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import product
from pathlib import Path
from string import Template
from typing import Any

from rankwright.analysis.results import Results
from rankwright.basics.errors import InputError, make_printable
from rankwright.basics.files import StrPath, write_atomic
from rankwright.basics.optional_imports import require
from rankwright.basics.version import __version__
from rankwright.report.blocks import Page, Section
from rankwright.report.notation import format_count
from rankwright.report.sections import SECTIONS
from rankwright.report.summary import Summary
from rankwright.report.text_tables import FORMATS, make_comparison_table, make_results_table

# One scope, in this order: the later files use what the earlier ones define.
_SCRIPTS = (
    "dom.js",
    "packing.js",
    "theme.js",
    "methods.js",
    "grids.js",
    "figures.js",
    "charts.js",
    "duels.js",
    "page.js",
)
_STYLES = ("colours.css", "page.css", "print.css")

# Runs before anything is painted, so that a remembered theme does not flash.
_RESTORE_THEME = (
    'try { document.documentElement.dataset.theme = localStorage.getItem("rankwright-theme") ?? "auto"; } catch { }'
)

_LONG = 8_000  # characters: longer texts of the page are packed

# Escapes in JSON of characters that a browser would not show: after an even number of backslashes.
_HIDDEN = re.compile(r"(?<!\\)((?:\\\\)*)\\(u(?:00[01][0-9a-f]|00[7-9][0-9a-f]|200[ef]|202[a-e]|206[0-9a-f]|feff))")


def render_page(page: Page) -> str:
    """Return a page as the text of one HTML file; equal pages give equal texts.

    Text is escaped, and data travel as JSON that the page's script turns into text nodes. As a second defence, the page
    forbids the browser every script but its own three, and every request.
    """
    plotly = _read_plotly()
    script = '(() => {\n"use strict";\n' + "\n".join(map(_read_asset, _SCRIPTS)) + "\n})();"
    template = Template(_read_asset("page.html"))
    return template.substitute(
        policy=_make_policy(_RESTORE_THEME, plotly, script),
        title=_escape_text(page.title),
        subtitle=_escape_text(page.subtitle),
        facts="\n".join(
            f"<div><dt>{_escape_text(name)}</dt><dd>{_escape_text(value)}</dd></div>" for name, value in page.facts
        ),
        navigation="\n".join(_render_navigation(page.sections)),
        sections="\n".join(_render_sections(page.sections)),
        footer=_escape_text(page.footer),
        methods=embed_json(page.methods),
        style="\n".join(_read_asset(name) for name in _STYLES),
        theme=_RESTORE_THEME,
        plotly=_render_plotly(),
        script=script,
    )


def embed_json(value: Any) -> str:
    r"""Return a value as JSON text that is safe inside a script element: pure ASCII, and without ``<``.

    Control characters, and what reverses the direction of text, show themselves as escapes.

    >>> embed_json({"name": "</script>", "other": "\x1b[0m"})
    '{"name":"\\u003c/script>","other":"\\\\u001b[0m"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return _HIDDEN.sub(r"\1\\\\\2", text).replace("<", "\\u003c")


def _escape_text(text: str) -> str:
    """Return a text escaped for HTML; control characters are made visible."""
    return escape(make_printable(text))


def _render_navigation(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the entries of the navigation as HTML: a link for each section, and the name of each part."""
    part = ""
    for number, section in enumerate(sections, start=1):
        if section.part != part:
            part = section.part
            yield f'<li class="part">{_escape_text(part)}</li>'
        yield f'<li><a href="#{_make_anchor(number, section)}">{_escape_text(section.title)}</a></li>'


def _render_sections(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the sections of the page as HTML, and the heading of each part before its first section."""
    part = ""
    for number, section in enumerate(sections, start=1):
        if section.part != part:
            part = section.part
            yield f'<h2 class="part">{_escape_text(part)}</h2>'
        yield _render_section(number, section)


def _render_section(number: int, section: Section) -> str:
    """Return a section of the page as HTML: open, or folded if it belongs to a part."""
    anchor, heading = _make_anchor(number, section), "h3" if section.part else "h2"
    blocks = (embed_json(block.to_json()) for block in section.blocks)  # from which the page's scripts draw them
    return "\n".join(
        [
            f'<section id="{anchor}" aria-labelledby="{anchor}-title">',
            f"<details{'' if section.part else ' open'}>",
            f'<summary><{heading} id="{anchor}-title">{_escape_text(section.title)}</{heading}></summary>',
            f'<p class="lead">{_escape_text(section.lead)}</p>',
            *(f'<div class="block">{_render_text("application/json", each)}</div>' for each in blocks),
            "</details>",
            "</section>",
        ]
    )


def _render_text(kind: str, text: str, attributes: str = "") -> str:
    """Return an element that holds a text for the page's script; a long one is packed: deflated, in base64."""
    opening = " ".join(filter(None, [f'<script type="{kind}"', attributes]))
    if len(text) < _LONG:
        return f"{opening}>{text}</script>"
    return f'{opening} data-bytes="{len(text.encode())}">{_pack(text)}</script>'


@lru_cache(maxsize=1)
def _read_plotly() -> str:
    """Return Plotly's script with the line ends that a browser sees before it computes the hash."""
    return str(require("plotly").offline.get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


@lru_cache(maxsize=1)
def _render_plotly() -> str:
    """Return the element that holds Plotly's script, packed; it takes a while to pack."""
    return _render_text("text/plain", _read_plotly(), 'id="plotly"')


def _pack(text: str) -> str:
    """Return a text deflated and in base64, as ``packing.js`` unpacks it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b64encode(packer.compress(text.encode()) + packer.flush()).decode()


def _make_anchor(number: int, section: Section) -> str:
    """Return the id of a section: unique by its number, readable by its title."""
    words = re.findall(r"[a-z0-9]+", section.title.lower())
    return "-".join([f"s{number}", *words])


def _make_policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts and inline styles (Plotly's), but no requests."""
    hashes = (f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(hashes)}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",  # charts saved as images, and the icon
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _read_asset(name: str) -> str:
    """Return the text of a file of this folder, such as a script or a style sheet."""
    return files("rankwright.report").joinpath(name).read_text(encoding="utf-8")


def write_report(results: Results, folder: StrPath, *, date: datetime.date | None = None) -> Path:
    """Write ``report.html`` and ``tables/{results,comparisons}.{md,csv,tex}``; return the path of the page.

    Parameters
    ----------
    results : Results
        What an experiment found.
    folder : path
        Made if it does not exist.
    date : datetime.date, optional
        Stands at the foot of the page. Without it the same results give the same bytes on any day.
    """
    if not len(results.tables["queries"]["qid"]):
        raise InputError(f"{results.name}: no trial has finished yet; there is nothing to report")
    summary = Summary(results)
    folder = Path(folder)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    page, *tables = list_report_files(folder)
    made = (make_results_table(summary), make_comparison_table(summary))
    for path, (table, formatted) in zip(tables, product(made, FORMATS.values()), strict=True):
        _write_text(path, formatted(table))
    _write_text(page, render_page(make_page(summary, date)))
    return page


def list_report_files(folder: StrPath) -> list[Path]:
    """Return the files that ``write_report`` writes into a folder, the page first."""
    names = [f"{name}.{ending}" for name in ("results", "comparisons") for ending in FORMATS]
    return [Path(folder) / "report.html", *(Path(folder) / "tables" / name for name in names)]


def make_page(summary: Summary, date: datetime.date | None = None) -> Page:
    """Make the page of a report, with the sections that have something to show for these results."""
    sections = [section for entry in SECTIONS if (section := entry.build(summary)) is not None]
    footer = f"Rankwright {__version__}" + (f", {date.isoformat()}" if date else "")
    subtitle = f"{format_count(len(summary.methods), 'method')} on {format_count(len(summary.results.folds), 'fold')}"
    return Page(summary.results.name, subtitle, _list_facts(summary), summary.methods, sections, footer)


def _list_facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the facts at the top of the page, such as the number of methods, as pairs of name and value."""
    queries, values = summary.table("queries"), summary.table("values")
    return [
        ("Methods", f"{len(summary.methods):,}"),
        ("Folds", f"{len(summary.results.folds):,}"),
        ("Seeds", f"{len(set(values['seed'].tolist())):,}"),
        ("Test queries", f"{len(queries['qid']):,}"),
        ("Documents", f"{int(queries['n_docs'].sum()):,}"),
        ("Selected by" if summary.has("trials") else "Decided by", summary.results.measure),
    ]


def _write_text(path: Path, content: str) -> None:
    """Write a text file as a whole: a failure leaves the former file."""
    with write_atomic(path) as file:
        file.write(content)
