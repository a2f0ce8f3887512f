from __future__ import annotations

import pytest
from tests.browser.pages import LONG, NAMES, small_page
from tests.browser.reading import CURVES, RESULTS, column, head, names_shown, settle

from rankwright.report.blocks import Chart, Choice, Column, Grid, Row


def test_shows_the_numbers_behind_a_chart(small):
    small.locator(f"{RESULTS} .chart summary").click()
    table = f"{RESULTS} .chart .numbers"
    small.locator(f"{table} tbody tr").first.wait_for()  # built when the disclosure has opened
    assert names_shown(small, table) == list(NAMES[:4])
    head_row = small.locator(f"{table} thead").inner_text().split()
    assert head_row == ["series", "map", "y", "from", "to"]
    for value, low, high in zip(*(map(float, column(small, table, k)) for k in (2, 4, 5)), strict=True):
        assert high - value == pytest.approx(2 * (value - low), rel=1e-3)  # as pages.py has it


def test_saves_a_chart_as_an_image(small):
    with small.expect_download() as download:
        small.locator(f"{RESULTS} button", has_text="Save as image").click()
    assert download.value.suggested_filename == "mean-and-95-interval-of-each-method.png"
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_legend_switches_the_method_everywhere_and_keeps_the_focus(small):
    chip = small.locator(f"{CURVES} .legend .chip", has_text="RankNet").first
    chip.press("Enter")
    settle(small)
    assert "RankNet" not in names_shown(small, f"{RESULTS} .grid")
    assert small.evaluate("document.activeElement.textContent") == "RankNet"


def test_the_button_stays_on_its_line_when_the_numbers_are_open(small):
    extras = small.locator(f"{RESULTS} .chart .extras")
    extras.locator("summary").click()
    extras.locator("tbody tr").first.wait_for()
    line, save = extras.locator("summary").bounding_box(), extras.locator("> button").bounding_box()
    assert abs(save["y"] - line["y"]) < line["height"] / 2
    assert save["x"] >= line["x"] + line["width"]


def test_a_chart_without_methods_says_so(small):
    said = small.locator(f"{CURVES} .instead").first
    assert not said.is_visible()
    small.locator("#methods button", has_text="None").click()
    settle(small)
    assert said.inner_text() == "All methods are hidden."
    assert not small.locator(f"{CURVES} .plot").first.is_visible()
    small.locator("#methods .chip", has_text="RankNet").click()
    settle(small)
    assert not said.is_visible()
    assert small.locator(f"{CURVES} .plot").first.is_visible()


def test_what_is_of_no_method_stays(open_blocks):
    traces = [{"x": [1, 2], "y": [1, 2], "method": "a"}, {"x": [1, 2], "y": [2, 2], "name": "published"}]
    page = open_blocks(Chart(traces, {}, "Chart"), methods=("a", "b"))
    page.locator("#methods button", has_text="None").click()
    page.locator(".plot .main-svg").first.wait_for()
    assert not page.locator(".instead").is_visible()


@pytest.mark.parametrize(
    ("trace", "shapes"),
    [
        ({"type": "bar"}, ["rect", "path"]),
        ({"type": "box"}, ["rect"]),
        ({"mode": "lines"}, ["line"]),
        ({"mode": "markers"}, ["path"]),
        ({"mode": "lines+markers"}, ["line", "path"]),
    ],
)
def test_a_legend_looks_like_its_traces(open_blocks, trace, shapes):
    traces = [{**trace, "x": [1, 2], "y": [1, 2], "method": name} for name in ("a", "b")]
    page = open_blocks(Chart(traces, {}, "Chart"), methods=("a", "b"))
    swatch = page.locator(".legend .swatch").first
    assert swatch.evaluate("node => [...node.children].map(child => child.tagName)") == shapes


def test_long_labels_are_cut_and_say_what_they_were(open_page):
    page = open_page(small_page(LONG))
    ticks = page.locator(f"{RESULTS} .ytick text")
    shown = ticks.evaluate_all("all => all.map(node => node.firstChild.textContent)")
    assert {"RankNet", "ListNet"} < set(shown)
    assert max(map(len, shown)) == 28
    for name in LONG[:2]:
        assert f"{name[:14]}…{name[-13:]}" in shown
    assert set(page.locator(f"{RESULTS} .ytick title").all_text_contents()) == set(LONG[:2])


def test_labels_of_columns_are_cut_too(open_blocks):
    heat = {"type": "heatmap", "z": [[1, 2]], "x": [0, 1]}
    layout = {"xaxis": {"tickvals": [0, 1], "ticktext": [LONG[0], "short"]}}
    page = open_blocks(Chart([heat], layout, "Heat"))
    page.locator(".plot .main-svg").first.wait_for()
    shown = page.locator(".xtick text").evaluate_all("all => all.map(node => node.firstChild.textContent)")
    assert shown == [f"{LONG[0][:14]}…{LONG[0][-13:]}", "short"]


def test_choices_inside_choices_stand_on_one_line(open_blocks):
    grids = {name: Grid([Column("v")], [Row([name])], name) for name in ("ax", "ay", "b")}
    inner = Choice("Fold", [("x", grids["ax"]), ("y", grids["ay"])])
    page = open_blocks(Choice("Quantity", [("a", inner), ("b", grids["b"])]))
    boxes = [select.bounding_box() for select in page.locator("select").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert page.locator("figcaption").all_inner_texts() == ["ax"]
    page.locator("select").nth(1).select_option(label="y")
    assert page.locator("figcaption").all_inner_texts() == ["ay"]
    page.locator("select").nth(0).select_option(label="b")
    assert page.locator("figcaption").all_inner_texts() == ["b"]
    assert page.locator("select").count() == 1
    page.locator("select").nth(0).select_option(label="a")
    assert page.locator("figcaption").all_inner_texts() == ["ay"]  # as it was left


def test_tables_respond_before_plotly_is_there(browser, small_file):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("window.requestIdleCallback = (action) => { window.whenIdle = action }")
    page.goto(small_file.as_uri())
    page.wait_for_function("() => window.whenIdle")
    assert page.evaluate("window.Plotly === undefined")
    head(page, f"{RESULTS} .grid", "map").click()
    assert page.locator(f"{RESULTS} th[aria-sort=descending]").count() == 1
    assert page.locator(f"{RESULTS} .instead").inner_text() == "The chart is being drawn …"
    page.evaluate("window.whenIdle()")
    page.locator(f"{RESULTS} .plot .main-svg").first.wait_for()
    assert not page.locator(f"{RESULTS} .instead").is_visible()
    context.close()
