"""The page of an automatic search in a real browser."""

from __future__ import annotations

import warnings

import pytest

import rankwright as rw
from rankwright.report.leaderboard_page import make_leaderboard_page
from rankwright.report.leaderboard_text import name_candidates


@pytest.fixture(scope="module")
def searched():
    queries = rw.make_queries(40, n_docs=12, n_features=8, kind="mixed", missing=0.05, random_state=4)
    train, valid = queries.take(range(30)), queries.take(range(30, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rw.AutoRanker(max_seconds=3.0).fit(train, valid=valid), train, valid


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_has_the_leaderboard_charts_and_data(open_page, searched, width, scheme):
    ranker, train, valid = searched
    made = make_leaderboard_page(ranker, train, valid, command="rankwright auto <b>", seconds=3.0)
    page = open_page(made, ready=".block > :not(script)", width=width, height=6000, scheme=scheme)
    page.wait_for_selector(".plot .main-svg", state="attached")
    assert page.locator("h1").inner_text() == "Automatic ranking"
    titles = ["Leaderboard", "Weights", "Time", "Data", "How it was made"]
    assert page.locator("main h2").all_inner_texts() == titles
    board = page.locator("table").first
    assert board.locator("tbody tr").count() == len(ranker.leaderboard_) + 1
    first = board.locator("tbody tr").first.inner_text()
    assert "the blend" in first
    assert f"{ranker.estimate_.mean:.4f}" in first
    text = page.locator("main").inner_text()
    for name in name_candidates(ranker.leaderboard_):
        assert name in text
    assert "rankwright auto <b>" in text
    assert "40 queries with" in text
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
