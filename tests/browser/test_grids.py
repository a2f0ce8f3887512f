from __future__ import annotations

import csv
import io

import pytest
from tests.browser.pages import small_page
from tests.browser.reading import COMPARISONS, DASH, DUEL, MINUS, RESULTS, column, head, names_shown, settle

from rankwright.report.blocks import Cell, Column, Grid, Row


def test_sorts_by_every_column_and_back(small):
    table = f"{RESULTS} .grid"
    original = names_shown(small, table)
    means = [float(text.split()[0].rstrip("▼")) for text in column(small, table, 2)]
    ascending = [name for _, name in sorted(zip(means, original, strict=True))]

    head(small, table, "map").click()
    assert names_shown(small, table) == ascending[::-1]
    assert small.locator(f"{table} th[aria-sort=descending]").inner_text().startswith("map")
    assert small.evaluate("document.activeElement.textContent").startswith("map")
    small.keyboard.press("Enter")
    assert names_shown(small, table) == ascending
    small.keyboard.press("Enter")
    assert names_shown(small, table) == original
    assert small.locator(f"{table} thead [aria-sort=none]").count() == 4

    head(small, table, "Method").click()
    assert names_shown(small, table) == sorted(original)


def test_missing_values_come_last_in_both_directions(small):
    table = f"{COMPARISONS} .grid"
    for _ in range(2):
        head(small, table, "p (Holm)").click()
        shown = column(small, table, 4)
        assert shown[-1] == DASH
        assert DASH not in shown[:-1]


def test_filters_rows(small):
    small.locator(f"{DUEL} input[type=search]").fill("1002")
    settle(small)
    rows = names_shown(small, f"{DUEL} .grid")
    assert rows
    assert all("1002" in row for row in rows)
    assert small.locator(f"{DUEL} .grid output").inner_text().startswith(f"{len(rows)} of ")
    small.locator(f"{DUEL} input[type=search]").fill("no such row")
    settle(small)
    assert names_shown(small, f"{DUEL} .grid") == []


def test_a_typed_minus_finds_a_true_one(small):
    small.locator(f"{DUEL} input[type=search]").fill("-0.")
    settle(small)
    differences = column(small, f"{DUEL} .grid", 6)
    assert differences
    assert all(text.startswith(f"{MINUS}0.") for text in differences)


def copied(page, selector):
    """What the button copies, read by a program that knows CSV."""
    page.evaluate("window.copied = ''; navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.locator(f"{selector} .grid button", has_text="Copy as CSV").click()
    return list(csv.reader(io.StringIO(page.evaluate("window.copied"), newline="")))


def test_copies_csv_of_all_rows(small):
    lines = copied(small, DUEL)
    assert lines[0] == ["Query", "Fold", "Documents", "A", "B", f"B {MINUS} A"]
    assert [line[0] for line in lines[1:]] == names_shown(small, f"{DUEL} .grid")


CELLS = {
    "number": (0.1234567, "0.1234567"),
    "negative": (-0.5, "-0.5"),
    "rounded": (Cell(-0.1234567, "-0.12"), "-0.1234567"),
    "small p": (Cell(0.0000123, "<0.001"), "0.0000123"),
    "interval": (Cell(0.1, "[0.10, 0.20]"), "[0.10, 0.20]"),
    "missing": (None, ""),
    "missing text": (Cell(None, DASH), ""),
    "infinite": (Cell(None, "∞"), "∞"),
    "word": (Cell(0.0, "best"), "0"),
    "formula": ("=1+1", "'=1+1"),
    "command": ("@SUM(A1)", "'@SUM(A1)"),
    "plus": ("+a", "'+a"),
    "minus": ("-a", "'-a"),
    "tab": ("\ta", "'\ta"),
    "text of a number": ("-1", "-1"),
    "quotes": ('a "b", c', 'a "b", c'),
}


def test_csv_has_numbers_in_full_intervals_as_shown_and_no_formulas(open_blocks):
    rows = [Row([name, cell]) for name, (cell, _) in CELLS.items()]
    page = open_blocks(Grid([Column("name"), Column("=value", digits=2)], rows, "Grid"))
    lines = copied(page, "main")
    assert lines[0] == ["name", "'=value"]
    found = dict(lines[1:])
    assert float(found.pop("small p")) == 0.0000123
    assert found == {name: text for name, (_, text) in CELLS.items() if name != "small p"}


def test_csv_has_a_column_of_marks_where_there_are_some(open_blocks):
    rows = [Row([k, Cell(k / 8, mark="▼" if k == 2 else ""), k]) for k in range(9)]
    page = open_blocks(Grid([Column("k"), Column("share"), Column("same")], rows, "Grid"))
    lines = copied(page, "main")
    assert lines[0] == ["k", "share", "share mark", "same"]
    assert lines[1:] == [[str(k), f"{k / 8:g}", "▼" if k == 2 else "", str(k)] for k in range(9)]


@pytest.mark.parametrize(("mark", "style"), [("▲", "better"), ("▼", "worse"), ("*", None)])
def test_a_mark_has_the_colour_of_its_direction_and_words(open_blocks, mark, style):
    grid = Grid([Column("v")], [Row([Cell(1.0, mark=mark, title="p = 0.003")])], "Grid")
    page = open_blocks(grid)
    node = page.locator("tbody .mark")
    expected = page.evaluate(
        """name => { document.body.style.color = `var(--${name})`; return getComputedStyle(document.body).color }""",
        style or "muted",
    )
    assert node.evaluate("node => getComputedStyle(node).color") == expected
    assert node.get_attribute("aria-hidden") == "true"
    said = page.locator("tbody .unseen").text_content()
    assert said == (f" ({style}: p = 0.003)" if style else " (p = 0.003)")


def test_a_table_without_methods_says_so(small):
    empty = small.locator(f"{COMPARISONS} .grid .empty")
    for name in ("AdaRank.NDCG", "AdaRank.MAP", "RankNet"):
        small.locator("#methods .chip", has_text=name).click()
    assert empty.inner_text() == "Everything here belongs to a hidden method."
    assert names_shown(small, f"{RESULTS} .grid") == ["ListNet"]
    small.locator("#methods button", has_text="None").click()
    for section in (RESULTS, COMPARISONS):
        assert small.locator(f"{section} .grid .empty").inner_text() == "All methods are hidden."
        assert not small.locator(f"{section} table").is_visible()
    small.locator("#methods button", has_text="All").click()
    assert empty.inner_text() == ""
    assert small.locator(f"{COMPARISONS} table").is_visible()


def test_columns_of_hidden_methods_are_hidden_too(open_blocks):
    grid = Grid([Column("feature"), Column("a", method="a"), Column("b", method="b")], [Row(["f", 1, 2])], "Grid")
    page = open_blocks(grid, methods=("a", "b"))
    page.locator("#methods .chip").first.click()
    assert page.locator("thead th").all_inner_texts() == ["feature", "b"]
    page.locator("#methods button", has_text="None").click()
    assert page.locator(".empty").inner_text() == "All methods are hidden."


def test_a_filter_without_matches_says_so(small):
    small.locator(f"{DUEL} input[type=search]").fill("no such row")
    settle(small)
    assert small.locator(f"{DUEL} .grid .empty").inner_text() == "No row matches the filter."
    assert small.locator(f"{DUEL} thead").is_visible()


NAMES = ("SingleFeature", "CoordinateAscent", "LambdaMART")
COMPARED = (
    "first", "second", "difference", "95% interval", "wins", "ties", "losses", "p randomisation", "p t", "p Wilcoxon",
    "effect", "queries", "seeds",
)  # fmt: skip


def comparisons(names=NAMES):
    numbers = (0.1234, Cell(0.0123, "[-0.0123, 0.1234]"), 123, 456, 789, *[Cell(0.0002, "<0.001")] * 3, 0.12, 1234, 5)
    rows = [Row([a, b, *numbers], (a, b)) for a in names for b in names if a < b]
    return Grid([Column(name, 4 if name == "difference" else None) for name in COMPARED], rows, "Comparisons")


def test_thirteen_columns_fit_on_a_laptop(open_blocks):
    page = open_blocks(comparisons(), methods=NAMES, width=1280)
    assert page.locator(".scroll").evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_both_methods_of_a_row_stay_in_sight(open_blocks):
    page = open_blocks(comparisons(), methods=NAMES, width=800)
    box = page.locator(".scroll")
    left = box.bounding_box()["x"]
    settle(page)
    box.evaluate("box => { box.scrollLeft = 200 }")
    assert box.evaluate("box => box.scrollLeft") == 200
    first, second = (page.locator(f"tbody tr:first-child > :nth-child({k})").bounding_box() for k in (1, 2))
    assert first["x"] == pytest.approx(left, abs=1)
    assert second["x"] == pytest.approx(left + first["width"], abs=1)


@pytest.mark.parametrize("width", [390, 1280])
def test_names_are_whole_and_marks_lie_inside(open_page, width):
    names = ("LambdaMART on NDCG (ours)", "LambdaMART on MAP (ours)", "RankNet", "ListNet")
    page = open_page(small_page(names), width=width)
    cells = page.locator(f"{RESULTS} .grid tbody th")
    assert sorted(cells.all_inner_texts()) == sorted(names)
    assert all(cells.nth(i).evaluate("node => node.scrollWidth <= node.clientWidth") for i in range(len(names)))
    inside = """table => [...table.querySelectorAll(".mark")].every(
        mark => mark.getBoundingClientRect().right <= table.getBoundingClientRect().right)"""
    assert page.locator(f"{RESULTS} .grid table").first.evaluate(inside)


def test_marks_of_the_last_column_lie_inside(open_blocks):
    page = open_blocks(Grid([Column("a"), Column("v", 4)], [Row(["x", Cell(0.5, mark="▼")])], "Grid"))
    right = "node => node.getBoundingClientRect().right"
    assert page.locator("tbody .mark").evaluate(right) <= page.locator("table").evaluate(right)


def test_long_texts_break_after_commas_first(open_blocks):
    text = "rankwright experiment --methods regression,lambdamart,coordinateascent"
    rows = [Row(["fingerprint of the data", text])]
    page = open_blocks(Grid([Column("what"), Column("value")], rows, "Grid"), width=390)
    assert page.locator(".scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert page.locator("td wbr").count() == 2
    assert page.locator("td").text_content() == text
