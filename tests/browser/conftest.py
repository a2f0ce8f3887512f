"""A browser for the report's page, which must neither complain nor ask for anything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.pages import small_page

from rankwright.report.blocks import Block, Page, Section
from rankwright.report.page import render_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
CHART = ".plot .main-svg"
OWN = ("blob:", "data:")  # what the page made itself: an image to save


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: looked for {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=ARGUMENTS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tab(browser: Any) -> Iterator[Any]:
    """One tab for all tests: it compiles Plotly once."""
    context = browser.new_context()
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "small.html"
    path.write_text(render_page(small_page()), encoding="utf-8")
    return path


@pytest.fixture
def browser_page(tab: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file; afterwards there must be no error, no warning, and no request but the one for the file."""
    requests: list[str] = []
    problems: list[str] = []
    opened: list[str] = []
    listeners = {
        "request": lambda request: None if request.url.startswith(OWN) else requests.append(request.url),
        "console": lambda message: problems.append(f"{message.type}: {message.text}"),
        "pageerror": lambda error: problems.append(f"exception: {error}"),
        "dialog": lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)

    def open_file(path: Path, width: int = 1280, height: int = 900, scheme: str = "light", ready: str = CHART) -> Any:
        tab.set_viewport_size({"width": width, "height": height})
        tab.emulate_media(media="screen", color_scheme=scheme, reduced_motion="reduce")
        opened.append(path.as_uri())
        tab.goto(path.as_uri())
        tab.wait_for_selector(ready, state="attached")
        return tab

    yield open_file
    tab.evaluate("try { localStorage.clear() } catch {}")
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    assert problems == []
    assert requests == opened


@pytest.fixture
def small(browser_page: Callable[..., Any], small_file: Path) -> Any:
    return browser_page(small_file)


@pytest.fixture(scope="session")
def blocks_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for all: the browser keeps what it compiled of Plotly as long as the address is the same."""
    return tmp_path_factory.mktemp("page") / "blocks.html"


@pytest.fixture
def open_page(browser_page: Callable[..., Any], blocks_file: Path) -> Callable[..., Any]:
    """Opens a page."""

    def open_it(page: Page, **options: Any) -> Any:
        blocks_file.write_text(render_page(page), encoding="utf-8")
        return browser_page(blocks_file, **options)

    return open_it


@pytest.fixture
def open_blocks(open_page: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a page of one section with these blocks."""

    def open_them(*blocks: Block, methods: tuple[str, ...] = (), **options: Any) -> Any:
        page = Page("Blocks", "", (), methods, [Section("Section", "", blocks)], "")
        return open_page(page, ready=".block > :not(script)", **options)

    return open_them
