"""Tables of contents of the site, and the pages that it shows from outside ``docs/``.

A page of contents is plain Markdown with lists whose items begin with a link. On the site these lists become the
navigation. So every page is listed once, at a place where a reader of the plain file finds it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FRONT = "index.md"
CONTENTS = (FRONT, "start.md", "guides.md", "engines/index.md", "algorithms/index.md", "gallery.md", "developers.md")
API = "api.md"  # its contents are the public names

# Files outside docs/ and the pages that show them.
OUTSIDE = {
    "CONTRIBUTING.md": "developers/contributing.md",
    "CHANGELOG.md": "developers/changelog.md",
    "benchmarks/GPU.md": "developers/gpu.md",
}
EXAMPLE = re.compile(r"examples/(\w+)\.py")
ITEM = re.compile(r"^- \[([^\]]+)\]\(([^)#\s]+)\)")
LINK = re.compile(r"\[([^][]*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")

COMMAND = re.compile(r"```\n(\$ )?([A-Z_]+=\S+ )*(rankwright|pip|python|make|dask)\b")


class Section(NamedTuple):
    """A part of a table of contents: its heading, and the pages in its list."""

    heading: str
    pages: tuple[str, ...]


def list_pages() -> list[str]:
    """Return the names of all Markdown pages of ``docs/``."""
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def read_page(page: str) -> str:
    """Return the text of a page of ``docs/``."""
    return (DOCS / page).read_text(encoding="utf-8")


def locate_page(target: str, folder: Path) -> str:
    """Return the page of the site that shows the target of a link in a file of this folder."""
    path = (folder / target).resolve()
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    if found := EXAMPLE.fullmatch(name):
        return f"gallery/{found[1]}.md"
    if name not in OUTSIDE:
        raise ValueError(
            f"a link to {target} in {folder}: expected a page of docs/, an example, or one of {[*OUTSIDE]}"
        )
    return OUTSIDE[name]


def read_sections(page: str) -> list[Section]:
    """Return the sections of a page of contents: the lists of links under its headings."""
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in read_page(page).splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif found := ITEM.match(line):
            sections.setdefault(heading, []).append(locate_page(found[2], (DOCS / page).parent))
    return [Section(heading, tuple(pages)) for heading, pages in sections.items()]


def format_sections(sections: list[Section]) -> str:
    """Return sections as hidden tables of contents for Sphinx."""
    lines: list[str] = []
    for section in sections:
        caption = [f":caption: {section.heading}"] if section.heading else []
        lines += ["", "```{toctree}", ":hidden:", *caption, "", *(f"/{page}" for page in section.pages), "```", ""]
    return "\n".join(lines)


def redirect_links(text: str, source: Path, page: str) -> str:
    """Return the text of a file as the text of a page: links to files point to the pages that show them.

    A link that is called by the name of a file gets the title of the page, which Sphinx puts into an empty one.
    """
    depth = "../" * page.count("/")

    def redirect(found: re.Match[str]) -> str:
        text = "" if found[1].endswith(".md") else found[1]
        return f"[{text}]({depth}{locate_page(found[2], source.parent)}{found[3] or ''})"

    return "".join(
        name_language(part) if part.startswith("```") else LINK.sub(redirect, part)
        for part in re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    )


def name_language(block: str) -> str:
    """Return a block of code with a language: one without is commands, if it begins with one, or else text."""
    return re.sub(r"\A```\n", "```sh\n" if COMMAND.match(block) else "```text\n", block)


def make_pages() -> Iterator[tuple[str, str]]:
    """Yield every page of ``docs/``, and those of files outside it, with the text that Sphinx reads."""
    for page in list_pages():
        text = redirect_links(read_page(page), DOCS / page, page)
        yield page, text + (format_sections(read_sections(page)) if page in CONTENTS else "")
    for name, page in OUTSIDE.items():
        yield page, redirect_links((ROOT / name).read_text(encoding="utf-8"), ROOT / name, page)
