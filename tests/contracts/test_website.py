"""The site, as far as it can be checked without building it: contents, names, code on every page, links.

``make docs`` builds it, with warnings as errors.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import click_picture, picture
from website import api_pages, contents
from website.contents import CONTENTS, DOCS, ITEM, ROOT, Section

import rankwright as rw

GUIDES = [page for section in contents.read_sections("guides.md") for page in section.pages]
STARTS = [page for section in contents.read_sections("start.md") for page in section.pages]
ALGORITHMS = [page for page in contents.list_pages() if page.startswith("algorithms/") and page not in CONTENTS]
ENGINES = [page for page in contents.list_pages() if page.startswith("engines/") and page not in CONTENTS]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")


def make_anchor(heading: str) -> str:
    """Return the anchor that code hosts and the site give to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def list_anchors(path: Path) -> set[str]:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return {make_anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def list_markdown_files() -> list[Path]:
    return [*(ROOT / name for name in ("README.md", *contents.OUTSIDE)), *sorted(DOCS.rglob("*.md"))]


def test_every_page_is_in_the_contents_once():
    listed = Counter(page for name in CONTENTS for section in contents.read_sections(name) for page in section.pages)
    examples = {f"gallery/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")}
    pages = {*contents.list_pages(), *contents.OUTSIDE.values(), *examples} - {contents.FRONT}
    assert set(listed) == pages
    assert {page: count for page, count in listed.items() if count > 1} == {}


def test_sections_are_the_lists_under_the_headings():
    text = "# Page\n\n- [A](a.md): one\n- [B](../README.md)\n\n## More\n\ntext [C](c.md)\n\n- [D](start/d.md)\n"
    assert [bool(ITEM.match(line)) for line in text.splitlines()].count(True) == 3
    sections = [Section("", ("a.md",)), Section("More", ("start/d.md",))]
    assert contents.format_sections(sections).count("{toctree}") == 2
    assert ":caption: More" in contents.format_sections(sections)


def test_links_out_of_the_docs_lead_to_pages_of_the_site():
    text = "[a](../examples/trees.py) [b.md](ARCHITECTURE.md#rooms) [c](#here) [d](https://x.org/a.md)\n```\n[e](f.md)\n```\n"
    redirected = contents.redirect_links(text, DOCS / "data.md", "data.md")
    assert redirected == text.replace("```\n[", "```text\n[").replace(
        "../examples/trees.py", "gallery/trees.md"
    ).replace("b.md]", "]")
    assert contents.redirect_links("```\npip install x\n```\n", DOCS / "data.md", "data.md").startswith("```sh\n")
    assert contents.redirect_links("```\nmethod 1\n```\n", DOCS / "data.md", "data.md").startswith("```text\n")
    assert "(../api.md)" in contents.redirect_links("[a](docs/api.md)", ROOT / "README.md", "developers/readme.md")
    with pytest.raises(ValueError, match="pyproject"):
        contents.redirect_links("[a](../pyproject.toml)", DOCS / "data.md", "data.md")


def test_every_public_name_is_in_the_reference_once():
    topics = api_pages.list_topics()
    names = Counter(name for topic in topics if topic.module == "rankwright" for name in topic.names)
    assert set(names) == set(rw.__all__)
    assert {name: count for name, count in names.items() if count > 1} == {}
    pages = [name for name, _ in api_pages.make_api_pages()]
    assert sorted(pages) == sorted({*pages})
    assert len(pages) == 1 + sum(len(topic.names) for topic in topics)


def test_every_name_that_pages_import_is_in_the_reference():
    known = {(topic.module, name) for topic in api_pages.list_topics() for name in topic.names}
    for path in list_markdown_files():
        for module, names in re.findall(
            r"^(?:>>> )?from (rankwright[\w.]*) import (.+)$", path.read_text(encoding="utf-8"), re.M
        ):
            if path.name not in ("CONTRIBUTING.md", "CHANGELOG.md"):
                missing = {name for name in names.split(", ") if (module, name) not in known}
                assert not missing, f"{path.relative_to(ROOT)}: {missing} of {module}"


@pytest.mark.parametrize("name", [name for name in rw.__all__ if inspect.isfunction(getattr(rw, name))])
def test_functions_describe_their_parameters(name):
    text = inspect.getdoc(getattr(rw, name))
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^(\*{0,2}\w[\w, *]*?)(?: :.*)?$", section[1], re.MULTILINE)
    described = {name.strip(" *") for line in lines for name in line.split(",")}
    assert described == set(inspect.signature(getattr(rw, name)).parameters)


@pytest.mark.parametrize("page", ALGORITHMS)
def test_algorithm_pages_begin_with_when_to_use_them_and_code(page):
    title, lead, code = contents.read_page(page).split("\n\n", 2)
    assert title.startswith("# ")
    assert re.match(r"Use (it|them) when ", lead)
    assert code.startswith("```python\n")


def test_every_ranker_has_an_algorithm_page():
    rankers = {
        name for name in rw.__all__ if inspect.isclass(each := getattr(rw, name)) and issubclass(each, rw.Ranker)
    }
    assert set(api_pages.find_algorithm_pages()) == rankers - {"Ranker"}


@pytest.mark.parametrize("page", [*GUIDES, *ENGINES, *STARTS])
def test_guides_have_code(page):
    assert re.search(r"^```python\n", contents.read_page(page), re.MULTILINE)


@pytest.mark.parametrize("path", list_markdown_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in list_anchors(target), f"{link}: {target.name} has no such heading"


def test_the_picture_of_readme_shows_the_tables_of_benchmarks():
    tables = picture.read_tables(picture.TABLES.read_text(encoding="utf-8"))
    assert [len(table) for table in tables.values()] == [4, 4, 4]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"{row.mean:.4f}" in readme for table in tables.values() for row in table)
    assert picture.draw_svg(tables) == picture.PICTURE.read_text(encoding="utf-8"), "python -m benchmarks.picture"


def test_the_picture_of_clicks_shows_the_tables_of_its_page():
    sessions, tables = click_picture.read_tables(click_picture.TABLES.read_text(encoding="utf-8"))
    assert len(sessions) == 4
    assert all(click_picture.LINES.keys() <= table.keys() for table in tables.values())
    drawn = click_picture.draw_svg(sessions, tables)
    assert drawn == click_picture.PICTURE.read_text(encoding="utf-8"), "python -m benchmarks.click_picture"
