"""docs/ARCHITECTURE.md and CONTRIBUTING.md name files and classes that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rankwright"
NAMES = {
    node.name
    for path in PACKAGE.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
}


def quoted(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


@pytest.mark.parametrize("page", ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(page):
    paths = [text for text in quoted(page) if re.fullmatch(r"\w[\w./-]*(/|\.(py|md|toml))", text)]
    family_folders = {f"{path.name}/" for path in (PACKAGE / "rankers").iterdir() if path.is_dir()}
    missing = [
        text
        for text in paths
        if not (PACKAGE / text).exists() and not (ROOT / text).exists() and text not in family_folders
    ]
    assert paths
    assert missing == []


@pytest.mark.parametrize("page", ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_class_that_is_named_exists(page):
    classes = {text.partition(".")[0] for text in quoted(page) if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w*(\.\w+)?", text)}
    assert classes
    assert sorted(classes - NAMES) == []
