"""``python -m website [FOLDER]``: build the site into a folder, ``build/docs`` by default; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

from plotly.offline import get_plotlyjs
from sphinx.cmd.build import main as build

from website.api_pages import find_algorithm_pages, link_algorithm_page, make_api_pages
from website.contents import DOCS, make_pages
from website.gallery_pages import SCRIPT, make_gallery

HERE = Path(__file__).parent


def write_source(folder: Path) -> None:
    """Write the pages and images that Sphinx reads; files that did not change are left alone."""
    pages = dict(make_pages())
    pages |= {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.glob("images/*.svg")}
    for name, page in find_algorithm_pages().items():
        pages[page] = link_algorithm_page(pages[page], name)
    pages |= dict(make_api_pages())
    pages |= dict(make_gallery())
    wanted = {folder / name: text for name, text in pages.items()}
    for path in [*folder.rglob("*.md"), *folder.rglob("*.rst"), *folder.rglob("*.svg")]:
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Build the site, and return the exit status of Sphinx."""
    folder = Path(arguments[0] if arguments else "build/docs").resolve()
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    write_source(source)
    html = folder / "html"
    options = ["-b", "html", "-c", str(HERE), "-d", str(folder / "doctrees"), "-W", "--keep-going", "-q"]
    status = int(build([*options, str(source), str(html)]))
    if status == 0:
        (html / "_static" / SCRIPT).write_text(get_plotlyjs(), encoding="utf-8")
        print(f"site: {html / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
