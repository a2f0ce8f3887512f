from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from tests.browser.pages import HOSTILE, small_page
from tests.packed import unpack

from rankwright.basics.errors import InputError
from rankwright.report import blocks, page
from rankwright.report.blocks import (
    TRACES,
    Cell,
    Chart,
    Choice,
    Column,
    Duel,
    DuelDocuments,
    DuelQuery,
    Grid,
    Page,
    Row,
    Section,
    Text,
)
from rankwright.report.notation import to_plain
from rankwright.report.page import embed_json, render_page

ASSETS = {
    path.name: path.read_text(encoding="utf-8")
    for path in files("rankwright.report").iterdir()
    if path.name.endswith((".js", ".css"))
}


class Parsed(HTMLParser):
    """The attributes, and the scripts with their types, unpacked, as a browser would see them."""

    def __init__(self, html):
        super().__init__()
        self.attributes, self.tags, self.scripts = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))
            self.is_packed = "data-bytes" in dict(attrs)

    def handle_data(self, data):
        if self.lasttag == "script" and self.cdata_elem == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + (unpack(data) if self.is_packed else data))

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]


@pytest.fixture(scope="module")
def html():
    pytest.importorskip("plotly")
    return render_page(small_page())


def duel(values, n_queries=2, documents=None, **more):
    queries = [DuelQuery(str(k), "1", 3, documents) for k in range(n_queries)]
    return Duel(("a", "b"), ("map",), queries, values, "Duel", **more)


# Blocks


def test_plain_makes_json_of_what_numpy_gives():
    value = {"x": np.array([0.1, np.nan, np.inf]), 3: (np.float32(0.5), np.int8(7), np.bool_(True), None, "a")}
    assert to_plain(value) == {"x": [0.1, None, None], "3": [0.5, 7, True, None, "a"]}
    assert to_plain(np.array(["a", "b"])) == ["a", "b"]
    assert to_plain(123456.789) == 123456.8  # seven digits
    assert to_plain(-0.0) == 0
    with pytest.raises(InputError, match="on a page; expected numbers"):
        to_plain(object())


def test_text_has_paragraphs():
    text = Text("One\n  line.\n\n\n\nTwo.", "note")
    assert text.to_json() == {"kind": "text", "paragraphs": ["One line.", "Two."], "level": "note"}


def test_grid_cells_are_bare_where_they_can_be():
    grid = Grid(
        [Column("m", title="t"), Column("v", 2, method="b")],
        [Row(["a", Cell(np.float64(0.5), mark="▼", title="p")], ("a",)), Row([None, float("nan")])],
        "Caption",
    )
    json_ = grid.to_json()
    assert json_["columns"] == [{"name": "m", "title": "t"}, {"name": "v", "digits": 2, "method": "b"}]
    assert json_["rows"] == [
        {"cells": ["a", {"value": 0.5, "mark": "▼", "title": "p"}], "methods": ["a"]},
        {"cells": [None, None]},
    ]
    assert grid.mentioned == {"a", "b"}


def test_grid_refuses_a_row_of_another_length():
    with pytest.raises(InputError, match="row 1 of 'T' has 2 cells; there are 1 columns"):
        Grid([Column("a")], [Row([1]), Row([1, 2])], "T")


def test_chart_refuses_traces_it_cannot_draw():
    with pytest.raises(InputError, match="trace of type 'scattergl' in 'C'; there are scatter, bar"):
        Chart([{"type": "scattergl"}], {}, "C")


@pytest.mark.parametrize(
    ("options", "message"),
    [((), "no option of the choice 'L'"), ((("a", Text("")), ("a", Text(""))), "'L' 'a' appears 2 times")],
)
def test_choice_needs_different_options(options, message):
    with pytest.raises(InputError, match=message):
        Choice("L", options)


def test_duel_values_travel_as_whole_numbers():
    documents = DuelDocuments(["d", "e", "f"], np.array([2.0, 0.0, 0.5]), np.array([[1, 2, 3], [0, 0, 0]]))
    json_ = duel(np.array([[[0.12344, np.nan], [1.0, 0.00006]]]), documents=documents).to_json()
    assert json_["values"] == [[[123440, None], [1_000_000, 60]]]
    assert json_["scale"] == 1_000_000
    assert json_["documents"][0] == {"ids": ["d", "e", "f"], "grades": [2, 0, 0.5], "ranks": [[1, 2, 3], [0, 0, 0]]}
    assert duel(np.zeros((1, 2, 2))).to_json()["documents"] == [None, None]


def test_duel_refuses_shapes_that_do_not_fit():
    with pytest.raises(InputError, match=re.escape("expected (measures, methods, queries) = (1, 2, 2)")):
        duel(np.zeros((2, 1, 2)))
    with pytest.raises(InputError, match="query '0' has ranks by 1 methods; expected 2"):
        duel(np.zeros((1, 2, 2)), documents=DuelDocuments(["d"], np.zeros(1), np.zeros((1, 1), dtype=int)))
    with pytest.raises(InputError, match="for 2 documents"):
        DuelDocuments(["d", "e"], np.zeros(2), np.zeros((1, 3), dtype=int))


def test_duel_starts_with_a_pair():
    values = np.zeros((1, 2, 2))
    assert duel(values).to_json()["start"] == [0, 1]
    assert duel(values, start=("b", "a")).to_json()["start"] == [1, 0]
    alone = Duel(("a",), ("map",), [DuelQuery("1", "1", 3)], np.zeros((1, 1, 1)), "Duel")
    assert alone.to_json()["start"] == [0, 0]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (("a", "c"), "starts with 'c', which is none of its methods"),
        (("a", "a"), "expected two different methods"),
        (("a",), "expected two different methods"),
    ],
)
def test_duel_refuses_a_start_that_is_no_pair(start, message):
    with pytest.raises(InputError, match=message):
        duel(np.zeros((1, 2, 2)), start=start)


def test_page_refuses_a_method_it_does_not_know():
    section = Section("S", "", [Choice("C", [("o", Chart([{"method": "b"}], {}, ""))])])
    with pytest.raises(InputError, match="section 'S' mentions 'b', which is no method of the page"):
        Page("T", "", (), ("a",), [section], "")


# The page


def test_same_page_same_text(html):
    assert render_page(small_page()) == html


def test_page_asks_for_nothing(html):
    parsed = Parsed(html)
    assert parsed.values("src") == []
    assert all(link.startswith(("#", "data:")) for link in parsed.values("href"))
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    assert "@import" not in html[: html.index("<body>")]
    assert "url(" not in html[: html.index("<body>")]


def test_policy_names_exactly_the_scripts_of_the_page(html):
    parsed = Parsed(html)
    policy = next(value for value in parsed.values("content") if value.startswith("default-src 'none'"))
    programs = [text for kind, text in parsed.scripts if kind in (None, "text/plain")]  # Plotly waits as text
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in programs]
    named = re.search(r"script-src ([^;]*)", policy)[1].split()
    assert len(programs) == 3
    assert sorted(named) == sorted(hashes)


@pytest.mark.parametrize("text", [*HOSTILE, "\u2028\u2029\ud800", "]]>", "\\u003c"])
def test_embedded_text_survives_and_ends_nothing(text):
    carried = embed_json({text: [text]})
    assert "<" not in carried
    assert carried.isascii()
    assert json.loads(carried) == {text: [text]}


def test_hostile_text_is_text_everywhere():
    pytest.importorskip("plotly")
    name = "".join(HOSTILE)
    grid = Grid([Column(name)], [Row([name], (name,))], name, name)
    parsed = Parsed(render_page(Page(name, name, ((name, name),), (name,), [Section(name, name, [grid])], name)))
    harmless = Parsed(render_page(Page("t", "t", (("t", "t"),), ("t",), [Section("t", "t", [Text("t")])], "t")))
    assert parsed.tags == harmless.tags
    data = [json.loads(text) for kind, text in parsed.scripts if kind == "application/json"]
    assert [name] in data
    assert grid.to_json() in data


def test_sections_of_one_title_have_anchors_of_their_own():
    pytest.importorskip("plotly")
    parsed = Parsed(
        render_page(
            Page("t", "", (), (), [Section("Same", "", []), Section("Same", "", []), Section("日本", "", [])], "")
        )
    )
    ids = parsed.values("id")
    assert len(set(ids)) == len(ids)
    assert {"s1-same", "s2-same", "s3"} <= set(ids)


# The script and the style


def test_every_asset_is_on_the_page():
    assert sorted([*page._SCRIPTS, *page._STYLES]) == sorted(ASSETS)


def test_script_draws_every_kind_of_block_and_trace():
    kinds = {block.kind for block in (Text, Chart, Grid, Choice, Duel)}
    drawn = re.search(r"const KINDS = \{(.*?)\n\};", ASSETS["page.js"], re.DOTALL)[1]
    dressed = re.search(r"const DRESSES = \{(.*?)\n\};", ASSETS["figures.js"], re.DOTALL)[1]
    assert set(re.findall(r"^  (\w+):", drawn, re.MULTILINE)) == kinds
    assert set(re.findall(r"^  (\w+):", dressed, re.MULTILINE)) == set(TRACES)


def test_script_never_makes_markup_of_text():
    for name, text in ASSETS.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text), (
            name
        )


def test_every_colour_in_use_is_defined_for_both_themes():
    defined = set(re.findall(r"(--[\w-]+): light-dark\(#\w{6}, #\w{6}\);", ASSETS["colours.css"]))
    for name, text in ASSETS.items():
        used = set(re.findall(r"var\((--[a-z-]+(?:\d)?)\)", text)) - {"--tint", "--first"}  # set by the script
        assert used <= defined, name
    documented = set(re.findall(r"``(--[\w-]+)``", blocks.Chart.__doc__))
    assert documented <= defined


def linear(colour):
    value = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def oklab(light):
    lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(lab) @ np.cbrt(np.array(lms) @ np.clip(light, 0, 1))


def contrast(one, other):
    high, low = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# How readers see colours: Machado, Oliveira and Fernandes (2009), severity 1
EYES = {
    "usual": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


@pytest.fixture(params=[0, 1], ids=["light", "dark"])
def colours(request):
    found = re.findall(r"(--[\w-]+): light-dark\((#\w{6}), (#\w{6})\)", ASSETS["colours.css"])
    return {name: both[request.param] for name, *both in found}


def test_methods_can_be_told_apart(colours):
    methods = [colours[f"--method-{k}"] for k in range(8)]
    assert all(contrast(colour, colours["--paper"]) >= 3 for colour in methods)
    for eyes in EYES.values():
        seen = [oklab(np.array(eyes) @ linear(colour)) for colour in methods]
        assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 0.07


@pytest.mark.parametrize("ground", ["--paper", "--raised"])  # raised: a row that the reader points at
def test_text_and_controls_have_contrast(colours, ground):
    """WCAG 1.4.3 asks 4.5 of text, 1.4.11 asks 3 of what shows where a control is."""
    for text in ("--ink", "--muted", "--accent", "--better", "--worse"):
        assert contrast(colours[text], colours[ground]) >= 4.5, text
    assert contrast(colours["--control"], colours[ground]) >= 3
    assert contrast(colours["--ink"], colours["--best"]) >= 4.5


def test_controls_have_the_border_of_controls():
    rule = re.search(r"button\.quiet, select, input\[type=\"search\"\] \{(.*?)\}", ASSETS["page.css"], re.DOTALL)[1]
    assert "border: 1px solid var(--control)" in rule


def test_what_a_browser_would_hide_shows_itself():
    hostile = "a\x1b\u202eb\x7f\u2066c\\u001bd\U0001f600"
    text = embed_json({hostile: [hostile]})
    shown = json.loads(text)
    assert shown == {
        "a\\u001b\\u202eb\\u007f\\u2066c\\u001bd\U0001f600": ["a\\u001b\\u202eb\\u007f\\u2066c\\u001bd\U0001f600"]
    }
