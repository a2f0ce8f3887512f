from __future__ import annotations

from rankwright.report.blocks import Chart, Column, Grid, Row


def test_print_draws_every_chart_in_light_colours_without_controls(browser_page, small_file):
    page = browser_page(small_file, scheme="dark")
    before = page.locator(".plot .main-svg").first.bounding_box()["width"]
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function("() => [...document.querySelectorAll('.plot')].every(plot => plot.data)")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    widths = page.evaluate("[...document.querySelectorAll('.plot')].map(plot => plot._fullLayout.width)")
    assert set(widths) == {660}
    assert not any(
        page.locator(".rail, .tools, #theme, .extras").evaluate_all("all => all.map(node => node.checkVisibility())")
    )
    assert (
        page.evaluate("Math.max(...[...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().width))")
        <= 661
    )
    page.emulate_media(media="screen", color_scheme="dark")
    page.wait_for_function(
        "width => document.querySelector('.main-svg').getBoundingClientRect().width === width", arg=before
    )
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != "rgb(255, 255, 255)"


def visible_rows(page):
    return page.locator("tbody tr").evaluate_all("all => all.filter(row => row.checkVisibility()).length")


def test_long_tables_are_cut_and_heads_are_plain(open_blocks):
    page = open_blocks(Grid([Column("k")], [Row([k]) for k in range(45)], "Grid"))
    page.emulate_media(media="print")
    page.wait_for_function("() => 'printing' in document.documentElement.dataset")
    assert visible_rows(page) == 40
    said = page.locator(".scroll").evaluate("box => getComputedStyle(box, '::after').content")
    assert "45" in said
    assert "The first 40 of" in said
    assert not page.locator("thead button").is_visible()
    assert "k" in page.locator("thead th").evaluate("cell => getComputedStyle(cell, '::after').content")
    page.emulate_media(media="screen")
    page.wait_for_function("() => !('printing' in document.documentElement.dataset)")
    assert visible_rows(page) == 45
    assert page.locator("thead button").is_visible()


def test_wide_tables_are_printed_on_landscape_pages(open_blocks):
    wide = Grid([Column(f"column {k}") for k in range(12)], [Row([0.1234] * 12)], "Wide")
    chart = Chart([{"x": [1, 2], "y": [1, 2]}], {}, "Chart")
    page = open_blocks(wide, chart)
    page.emulate_media(media="print")
    page.wait_for_function("() => document.querySelector('.plot').data")
    assert page.locator("main > section").evaluate("node => getComputedStyle(node).page") == "wide"
    assert page.evaluate("document.querySelector('.plot')._fullLayout.width") == 940
    assert page.locator("table").evaluate("table => table.getBoundingClientRect().width") <= 941


def test_print_does_not_wait_for_an_idle_browser(browser_page, small_file):
    """Charts are drawn although Plotly has not been loaded: printing loads it."""
    page = browser_page(small_file, ready="main")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('.plot')].every(plot => plot.data)")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
