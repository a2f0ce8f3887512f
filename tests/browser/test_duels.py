from __future__ import annotations

import numpy as np
import pytest
from tests.browser.pages import NAMES
from tests.browser.reading import DUEL, MINUS, column, head, names_shown, settle, wait_until_closed

from rankwright.analysis.significance import QueryWeighting
from rankwright.report.blocks import Duel, DuelQuery


def tallied(page, section=DUEL):
    return page.locator(f"{section} .tally dd").all_inner_texts()


def test_duel_counts_and_swaps(small):
    differences = [float(text.replace(MINUS, "-")) for text in column(small, f"{DUEL} .grid", 6)]
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    mean = sum(differences) / len(differences)
    better, equal, worse, shown = tallied(small)
    assert [int(better), int(equal), int(worse)] == [wins, len(differences) - wins - losses, losses]
    assert int(equal) > 0
    assert float(shown.replace(MINUS, "-")) == pytest.approx(mean, abs=1e-4)
    assert differences == sorted(differences, reverse=True)

    small.locator(f"{DUEL} .swap").click()
    assert tallied(small)[:3] == [worse, equal, better]
    small.locator(f"{DUEL} select").nth(0).select_option(label="RankNet")
    small.locator(f"{DUEL} select").nth(2).select_option(label="ndcg@1")
    assert small.locator(f"{DUEL} .tally p").inner_text().startswith("RankNet (A) against AdaRank.NDCG (B) by ndcg@1")
    small.locator(f"{DUEL} select").nth(1).select_option(label="RankNet")
    assert tallied(small)[0] == tallied(small)[2] == "0"


def test_a_query_opens_by_click_and_closes_by_escape(small):
    small.locator(f"{DUEL} tbody tr").nth(2).locator("td").nth(3).click()
    dialog = small.locator("dialog[open]")
    qid = names_shown(small, f"{DUEL} .grid")[2]
    assert dialog.locator("h3").inner_text() == f"Query {qid}"
    ranks = [int(text) for text in column(small, "dialog", 3)]
    assert ranks == sorted(ranks) == list(range(1, 7))
    for ours, theirs, moved in zip(*(column(small, "dialog", k) for k in (3, 4, 5)), strict=True):
        up = int(ours) - int(theirs)
        assert moved == ("=" if up == 0 else f"{'▲' if up > 0 else '▼'} {abs(up)}")
    small.keyboard.press("Escape")
    wait_until_closed(small)
    assert small.evaluate("document.activeElement.textContent") == qid


def test_a_query_opens_by_keyboard(small):
    rows = names_shown(small, f"{DUEL} .grid")
    small.locator(f"{DUEL} tbody button").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        small.keyboard.press(key)
    assert small.locator("dialog h3").inner_text() == f"Query {rows[1]}"
    small.keyboard.press("ArrowRight")
    assert small.locator("dialog h3").inner_text() == f"Query {rows[2]}"
    small.locator("dialog button", has_text="Close").click()
    wait_until_closed(small)
    assert small.evaluate("document.activeElement.textContent") == rows[1]
    small.keyboard.press("End")
    assert small.evaluate("document.activeElement.textContent") == rows[-1]


def test_a_bar_opens_its_query_and_queries_may_lack_documents(small):
    plot = small.locator(f"{DUEL} .plot")
    plot.scroll_into_view_if_needed()
    plot.locator(".bars .point").first.wait_for()
    plot.locator(".bars .point").first.hover(force=True)
    box = plot.locator(".bars .point").first.bounding_box()
    small.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert small.locator("dialog h3").inner_text() == f"Query {names_shown(small, f'{DUEL} .grid')[0]}"
    small.keyboard.press("Escape")
    wait_until_closed(small)

    small.locator(f"{DUEL} tbody button", has_text="10010").click()  # pages.py gives every tenth query no documents
    assert "not on this page" in small.locator("dialog .note").inner_text()


def test_differences_are_b_less_a_as_in_comparisons(open_blocks):
    queries = [DuelQuery(name, "1", 3) for name in ("gain", "tie", "loss")]
    values = np.array([[[0.1, 0.2, 0.9], [0.5, 0.2, 0.3]]])
    page = open_blocks(Duel(("a", "b"), ("map",), queries, values, "Duel"), methods=("a", "b"))
    assert tallied(page, "main") == ["1", "1", "1", f"{MINUS}0.0667"]  # (0.4 + 0 - 0.6) / 3
    assert page.locator(".tally dt").all_inner_texts() == ["B better", "Equal", "A better", f"Mean of B {MINUS} A"]
    assert column(page, "main .grid", 6) == ["+0.4000", "0.0000", f"{MINUS}0.6000"]
    page.locator("main .plot .main-svg").first.wait_for()
    assert page.evaluate("document.querySelector('.plot').data[0].y") == pytest.approx([0.4, 0, -0.6])
    page.locator("tbody button").first.click()
    facts = page.locator("dialog dd").all_inner_texts()
    assert facts[:3] == ["0.1000", "0.5000", "+0.4000"]
    page.keyboard.press("Escape")


def test_queries_count_in_the_mean_by_weight_and_fold(open_blocks):
    queries = [DuelQuery(name, fold, 3) for name, fold in (("x", "1"), ("y", "1"), ("z", "2"))]
    values, counting = (
        np.array([[[0.1, 0.2, 0.9], [0.5, 0.2, 0.3]]]),
        QueryWeighting(np.array([3.0, 1, 1]), np.array([1, 1, 2])),
    )
    page = open_blocks(Duel(("a", "b"), ("map",), queries, values, "Duel", weighting=counting), methods=("a", "b"))
    assert tallied(page, "main") == ["1", "1", "1", f"{MINUS}0.1500"]  # (3 * 0.4 / 4 - 0.6) / 2


def test_a_duel_starts_with_the_pair_it_is_given(open_blocks):
    names = ("a", "b", "c")
    duel = Duel(names, ("map",), [DuelQuery("1", "1", 3)], np.zeros((1, 3, 1)), "Duel", start=("c", "a"))
    page = open_blocks(duel, methods=names)
    assert page.locator(".tally p").inner_text().startswith("c (A) against a (B)")
    assert [node.input_value() for node in page.locator(".duel select").all()[:2]] == ["2", "0"]


def test_a_duel_offers_the_methods_that_are_shown(small):
    def offered():
        return small.locator(f"{DUEL} select").first.locator("option").all_inner_texts()

    small.locator("#methods .chip", has_text=NAMES[0]).click()
    assert offered() == list(NAMES[1:4])
    assert small.locator(f"{DUEL} .tally p").inner_text().startswith(f"{NAMES[2]} (A) against {NAMES[1]} (B)")
    small.locator(f"{DUEL} select").first.select_option(label=NAMES[3])
    assert small.locator(f"{DUEL} .tally p").inner_text().startswith(f"{NAMES[3]} (A) against {NAMES[1]} (B)")
    note = small.locator(f"{DUEL} .duel > .note-line")
    assert not note.is_visible()
    small.locator("#methods button", has_text="None").click()
    assert offered() == list(NAMES[:4])
    assert "all of them can be chosen" in note.inner_text()


def titles_by_steps(page, n_steps):
    titles = [page.locator("dialog h3").inner_text()]
    for _ in range(n_steps):
        page.locator("dialog button", has_text="→").click()
        titles.append(page.locator("dialog h3").inner_text())
    return titles


def test_steps_follow_the_list_as_it_is_sorted_and_filtered(small):
    head(small, f"{DUEL} .grid", "Query").click()
    small.locator(f"{DUEL} input[type=search]").fill("1001")
    settle(small)
    rows = names_shown(small, f"{DUEL} .grid")
    assert rows == sorted(rows)
    small.locator(f"{DUEL} tbody button").nth(1).click()
    assert titles_by_steps(small, len(rows) - 2) == [f"Query {qid}" for qid in rows[1:]]
    assert small.locator("dialog .position").inner_text() == f"{len(rows)} of {len(rows)}"
    small.keyboard.press("ArrowLeft")
    assert small.locator("dialog h3").inner_text() == f"Query {rows[-2]}"


def test_a_bar_that_the_list_leaves_out_steps_through_the_bars(small):
    bars = names_shown(small, f"{DUEL} .grid")
    small.locator(f"{DUEL} input[type=search]").fill("no such row")
    settle(small)
    plot = small.locator(f"{DUEL} .plot")
    plot.scroll_into_view_if_needed()
    plot.locator(".bars .point").first.wait_for()
    small.evaluate(f"document.querySelector('{DUEL} .plot').emit('plotly_click', {{ points: [{{ pointIndex: 0 }}] }})")
    assert titles_by_steps(small, 2) == [f"Query {qid}" for qid in bars[:3]]


def test_the_focus_stays_in_the_dialog(small):
    def focus():
        return small.evaluate("[document.activeElement.tagName, document.activeElement.closest('dialog') !== null]")

    small.locator(f"{DUEL} tbody button").nth(1).click()
    small.locator("dialog button", has_text="←").click()  # the first query: there is no previous one
    previous = small.locator("dialog button", has_text="←")
    assert previous.get_attribute("aria-disabled") == "true"
    assert focus() == ["BUTTON", True]
    title = small.locator("dialog h3").inner_text()
    small.keyboard.press("Enter")
    assert small.locator("dialog h3").inner_text() == title

    small.locator("dialog thead button").first.focus()  # what is replaced by a step
    small.keyboard.press("ArrowRight")
    assert focus() == ["H3", True]
    small.keyboard.press("ArrowRight")
    assert focus() == ["H3", True]
    assert small.locator("dialog h3").get_attribute("aria-live") == "polite"

    small.locator("dialog .facts dd").first.click()  # text that cannot have the focus
    title = small.locator("dialog h3").inner_text()
    small.keyboard.press("ArrowRight")
    assert small.locator("dialog h3").inner_text() != title
