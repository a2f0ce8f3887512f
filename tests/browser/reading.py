"""What a reader sees of a page, for tests."""

from __future__ import annotations

MINUS, DASH = "\u2212", "\u2013"
RESULTS, CURVES, COMPARISONS, DUEL = (
    "#s1-results",
    "#s2-curves",
    "#s4-comparisons",
    "#s6-wins-and-losses",
)  # of pages.py
SLACK = 5  # how much slower than promised a busy machine may be


def column(page, table, number):
    return page.locator(f"{table} tbody tr > :nth-child({number})").all_inner_texts()


def names_shown(page, table):
    return [text.strip() for text in column(page, table, 1)]


def visible_traces(page, selector):
    page.wait_for_function("selector => document.querySelector(selector).data", arg=selector)
    return page.evaluate(
        "selector => document.querySelector(selector).data.filter(t => t.visible).map(t => t.name)", selector
    )


def settle(page):
    """Two frames, and what they left for later."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
    )


def wait_until_closed(page):
    """Wait for the dialog to go: the browser tells the page that it is closed in a task of its own."""
    page.locator("dialog").wait_for(state="detached")


def head(page, table, name):
    return page.locator(f"{table} thead button", has_text=name).first


_RESPONSE = """async ([selector, action]) => {
  const node = document.querySelector(selector);
  const start = performance.now();
  if (action === "click") node.click();
  else { node.value = action; node.dispatchEvent(new Event("input")); }
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
}"""


def response(page, selector, action):
    """Milliseconds from a click, or from text put into a field, to the frame after the next."""
    return page.evaluate(_RESPONSE, [selector, action])
