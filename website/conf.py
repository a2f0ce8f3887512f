"""The configuration of Sphinx."""

import re
from typing import Any

from rankwright import __version__

project = "Rankwright"
author = "The Rankwright developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_validation_checks = {
    *("GL03", "GL05", "GL06", "GL07", "GL09", "SS01", "SS02", "SS03", "SS04", "SS06"),
    *("PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10", "RT02", "RT03", "RT04", "RT05"),
}
numpydoc_validation_exclude = {r"\.set_params$"}  # scikit-learn's
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div[class*=highlight-]:not(.highlight-output):not(.highlight-text) div.highlight pre"

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "Rankwright"
html_static_path = ["static"]
smartquotes = False
toc_object_entries_show_parents = "hide"
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": [],
    "footer_end": [],
}
html_sidebars: dict[str, list[str]] = {"index": [], "BENCHMARKS": [], "REPRODUCTION": []}


def skip_tuple_fields(app: Any, kind: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Return True for fields of named tuples, which their classes describe as parameters."""
    return True if str(getattr(value, "__doc__", "")).startswith("Alias for field") else None


def link_pages(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Make links of the files of ``docs/`` that a docstring names."""
    lines[:] = [re.sub(r"``docs/([\w/-]+)\.md``", r":doc:`/\1`", line) for line in lines]


def setup(app: Any) -> None:
    """Connect what is above with Sphinx."""
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-skip-member", skip_tuple_fields)
