from __future__ import annotations

import time

import pytest
from tests.browser.pages import HOSTILE, LONG, NAMES, large_page, small_page
from tests.browser.reading import (
    COMPARISONS,
    CURVES,
    DUEL,
    RESULTS,
    SLACK,
    names_shown,
    response,
    settle,
    visible_traces,
)

from rankwright.report.page import render_page


def test_draws_every_block(small):
    assert small.locator("main > section").count() == 6
    assert small.locator(".block > script").count() == 0
    for plot in small.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        assert plot.get_attribute("aria-label")


def test_hiding_a_method_hides_its_traces_rows_and_pairs(small):
    hidden, *others = NAMES[:4]
    small.locator("#methods .chip", has_text=hidden).click()
    settle(small)
    assert names_shown(small, f"{RESULTS} .grid") == others
    assert visible_traces(small, f"{RESULTS} .plot") == others
    assert visible_traces(small, f"{CURVES} .plot") == others
    assert len(names_shown(small, f"{COMPARISONS} .grid")) == 3  # pairs of three methods
    assert small.locator("#methods output").inner_text() == "3 of 4"
    assert small.locator(f"{CURVES} .chip[aria-pressed=false]").first.inner_text() == hidden

    small.locator("#methods button", has_text="None").click()
    settle(small)
    assert visible_traces(small, f"{RESULTS} .plot") == []
    small.locator("#methods button", has_text="All").click()
    settle(small)
    assert visible_traces(small, f"{RESULTS} .plot") == list(NAMES[:4])
    assert names_shown(small, f"{RESULTS} .grid") == list(NAMES[:4])


def test_a_choice_switches_its_block(small):
    chart = f"{CURVES} .choice"
    small.locator(f"{chart} select").select_option(label="Fold 3")
    assert small.locator(f"{chart} figcaption").inner_text().endswith("fold 3.")
    small.locator(f"{chart} .plot").scroll_into_view_if_needed()
    small.locator(f"{chart} .main-svg").first.wait_for()


def test_theme_follows_the_system_and_the_button_is_remembered(small):
    def looks():
        ink = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
        return small.evaluate(f"[getComputedStyle(document.documentElement).backgroundColor, {ink}]")

    light = looks()
    small.emulate_media(color_scheme="dark")
    settle(small)
    dark = looks()
    assert dark[0] != light[0]
    assert dark[1] != light[1]

    small.locator("#theme", has_text="Light theme").click()
    settle(small)
    assert looks() == light
    assert small.evaluate("localStorage.getItem('rankwright-theme')") == "light"
    assert small.locator("#theme").inner_text() == "Dark theme"


def test_hostile_names_are_text(open_page):
    page = open_page(small_page(HOSTILE))
    assert names_shown(page, f"{RESULTS} .grid") == [name.strip() for name in HOSTILE]
    ticks = page.evaluate(
        f"[...document.querySelectorAll('{RESULTS} .ytick text')].map(node => node.textContent.trim())"
    )
    assert sorted(ticks) == sorted(name.strip() for name in HOSTILE)
    page.locator(f"{DUEL} tbody button").first.click()
    assert page.locator("dialog").count() == 1
    assert page.locator("main img, main b, dialog img, dialog b").count() == 0


@pytest.mark.parametrize("names", [NAMES[:4], LONG], ids=["usual", "long"])
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_overflows_the_page(open_page, names, width):
    page = open_page(small_page(names), width=width)
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
    page.locator(f"{DUEL} .main-svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator(f"{DUEL} tbody button").first.click()
    assert page.evaluate("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function("plot => document.querySelector(plot).clientWidth <= 500", arg=f"{DUEL} .main-svg")


def test_a_large_page_is_small_and_quick(browser_page, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(render_page(large_page()), encoding="utf-8")
    assert path.stat().st_size < 3.5e6
    start = time.perf_counter()
    page = browser_page(path)
    assert time.perf_counter() - start < 2 * SLACK
    page.locator(f"{DUEL} .plot").scroll_into_view_if_needed()
    page.locator(f"{DUEL} .main-svg").first.wait_for()
    actions = {
        "sort": (f"{DUEL} thead button", "click"),
        "filter": (f"{DUEL} input[type=search]", "101"),
        "open": (f"{DUEL} tbody button", "click"),
        "method": ("#methods .chip", "click"),
    }
    took = {name: response(page, *action) for name, action in actions.items()}
    assert max(took.values()) < 200 * SLACK, took
