"""The page of a report: one HTML file that needs nothing else, neither files nor a network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from rankwright.basics.errors import make_printable
from rankwright.basics.optional_imports import require
from rankwright.report.blocks import Block, Page, Section

# One scope, in this order: the later files use what the earlier ones define.
_SCRIPTS = ("dom.js", "theme.js", "methods.js", "grids.js", "figures.js", "charts.js", "duels.js", "page.js")
_STYLES = ("colours.css", "page.css", "print.css")

# Runs before anything is painted, so that a remembered theme does not flash.
_RESTORE_THEME = (
    'try { document.documentElement.dataset.theme = localStorage.getItem("rankwright-theme") ?? "auto"; } catch { }'
)

# Escapes in JSON of characters that a browser would not show: after an even number of backslashes.
_HIDDEN = re.compile(r"(?<!\\)((?:\\\\)*)\\(u(?:00[01][0-9a-f]|00[7-9][0-9a-f]|200[ef]|202[a-e]|206[0-9a-f]|feff))")


def render_page(page: Page) -> str:
    """Return a page as the text of one HTML file; equal pages give equal texts.

    Text is escaped, and data travel as JSON that the page's script turns into text nodes. As a second defence, the page
    forbids the browser every script but its own three, and every request.
    """
    plotly, script = _read_plotly(), _join_scripts()
    template = Template(_read_asset("page.html"))
    return template.substitute(
        policy=_make_policy(_RESTORE_THEME, plotly, script),
        title=_escape_text(page.title),
        subtitle=_escape_text(page.subtitle),
        facts="\n".join(
            f"<div><dt>{_escape_text(name)}</dt><dd>{_escape_text(value)}</dd></div>" for name, value in page.facts
        ),
        navigation="\n".join(_render_link(number, section) for number, section in enumerate(page.sections, start=1)),
        sections="\n".join(_render_section(number, section) for number, section in enumerate(page.sections, start=1)),
        footer=_escape_text(page.footer),
        methods=embed_json(page.methods),
        style="\n".join(_read_asset(name) for name in _STYLES),
        theme=_RESTORE_THEME,
        plotly=plotly,
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


def _render_section(number: int, section: Section) -> str:
    """Return a section of the page as HTML."""
    anchor = _make_anchor(number, section)
    return "\n".join(
        [
            f'<section id="{anchor}" aria-labelledby="{anchor}-title">',
            f'<h2 id="{anchor}-title">{_escape_text(section.title)}</h2>',
            f'<p class="lead">{_escape_text(section.lead)}</p>',
            *(_render_block(block) for block in section.blocks),
            "</section>",
        ]
    )


def _render_block(block: Block) -> str:
    """Return a block as HTML: an element with the block's JSON, from which the page's scripts draw it."""
    return f'<div class="block"><script type="application/json">{embed_json(block.to_json())}</script></div>'


def _render_link(number: int, section: Section) -> str:
    """Return the link to a section as HTML, for the table of contents."""
    return f'<li><a href="#{_make_anchor(number, section)}">{_escape_text(section.title)}</a></li>'


def _make_anchor(number: int, section: Section) -> str:
    """Return the id of a section: unique by its number, readable by its title."""
    words = re.findall(r"[a-z0-9]+", section.title.lower())
    return "-".join([f"s{number}", *words])


def _make_policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts and inline styles (Plotly's), but no requests."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(_hash_scripts(scripts))}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",  # charts saved as images, and the icon
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash_scripts(scripts: Sequence[str]) -> list[str]:
    """Return the SHA-256 hash of each script, as a content security policy names it."""
    return [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]


def _join_scripts() -> str:
    """Return the page's own scripts as one script in strict mode."""
    parts = "\n".join(_read_asset(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def _read_plotly() -> str:
    """Return Plotly's script, with the line ends that a browser sees before it computes the hash."""
    return str(require("plotly").offline.get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


def _read_asset(name: str) -> str:
    """Return the text of a file of this folder, such as a script or a style sheet."""
    return files("rankwright.report").joinpath(name).read_text(encoding="utf-8")
