"""The report of a real experiment in a real browser."""

from __future__ import annotations

import pytest
from tests.browser.reading import SLACK, response, settle, wait_until_closed
from tests.results import simulated

import rankwright as rw

QUESTIONS = [
    "Which method is best?", "Do published figures agree?", "Could the differences be chance?",
    "Where does it win and lose?", "Which queries are hard?", "Which documents are confused?", "What does it cost?",
    "How did training go?", "Which features matter?", "Which parameters were best?", "What are the data?",
    "How was it made?",
]  # fmt: skip
INTERNALS = ["Feature weights", "Bounds"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    queries = rw.make_queries(40, n_docs=12, n_features=8, noise=1.5, random_state=4)
    methods = [
        rw.Method("regression", grid={"alpha": [0.1, 10.0]}),
        rw.Method("adarank", "Boosted <b>", params={"n_estimators": 20}),
        rw.Method("singlefeature"),
    ]
    published = [rw.PublishedFigure("Regression", "ndcg@10", 0.5, "somewhere")]
    experiment = rw.Experiment(queries, methods, name="A real one", published=published)
    results = rw.run_experiment(experiment, folder, rw.Serial())
    return rw.write_report(results, folder), results


def section(page, title):
    return page.get_by_role("heading", name=title, exact=True).locator("xpath=ancestor::section")


def unfold(page, title):
    details = section(page, title).locator("details").first
    if not details.evaluate("node => node.open"):
        details.locator("summary").first.click()


def test_every_section_is_there(browser_page, report):
    page = browser_page(report[0])
    assert page.locator("main h2").all_inner_texts() == [*QUESTIONS, "Method internals"]
    assert page.locator("main h3").all_inner_texts() == INTERNALS
    assert page.locator("h1").inner_text() == "A real one"


def test_the_figures_are_those_of_the_results(browser_page, report):
    page = browser_page(report[0])
    _, results = report
    row = page.locator("table").first.locator("tr", has_text="Regression")
    assert f"{results.means()[0]:.4f}" in row.inner_text()


def test_a_query_of_a_duel_opens_with_its_documents(browser_page, report):
    page = browser_page(report[0])
    _, results = report
    queries = section(page, "Where does it win and lose?")
    first = queries.locator("tbody tr").first.locator("button")
    qid = first.inner_text()
    first.click()
    dialog = page.get_by_role("dialog")
    assert qid in dialog.inner_text()
    table = results.tables["documents"]
    number = results.tables["queries"]["qid"].tolist().index(qid)
    ids = table["docid"][table["query"] == number].tolist()
    assert dialog.locator("tbody tr").count() == len(ids)
    for name in ids:
        assert name in dialog.inner_text()
    page.keyboard.press("Escape")
    wait_until_closed(page)


def test_hiding_a_method_hides_it_everywhere(browser_page, report):
    page = browser_page(report[0])
    table = page.locator("table").first
    assert table.locator("tbody tr:visible").count() == 3
    page.locator("#methods .chip", has_text="Boosted <b>").click()
    assert table.locator("tbody tr:visible").count() == 2
    assert "Boosted" not in table.inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_every_section_can_be_looked_at(browser_page, report, width, scheme):
    """Every choice of every select is drawn, and nothing sticks out."""
    page = browser_page(report[0], width=width, scheme=scheme)
    for title in [*QUESTIONS, *INTERNALS]:
        own = section(page, title)
        if title in INTERNALS:
            own.locator("summary").first.click()
        for number in range(own.locator(".choice select").count()):
            for option in range(own.locator(".choice select").nth(number).locator("option").count()):
                own.locator(".choice select").nth(number).select_option(index=option)
                for plot in own.locator(".plot:visible").all():
                    plot.scroll_into_view_if_needed()
                    plot.locator(".main-svg").first.wait_for()
            own.locator(".choice select").nth(number).select_option(index=0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_sections_are_folded_and_opened_by_keyboard(browser_page, report):
    page = browser_page(report[0])
    best, bounds = section(page, QUESTIONS[0]), section(page, "Bounds")
    best.locator("summary").first.press("Enter")
    assert not best.locator("table").first.is_visible()
    assert bounds.locator("table").count() == 0  # drawn when it is opened
    bounds.locator("summary").first.press("Space")
    bounds.locator("table").first.wait_for()
    bounds.locator(".plot .main-svg").first.wait_for()


def test_a_link_opens_a_folded_section(browser_page, report):
    page = browser_page(report[0])
    page.locator(".rail a", has_text="Bounds").click()
    section(page, "Bounds").locator(".plot .main-svg").first.wait_for()


def test_two_methods_query_by_query_as_points(browser_page, report):
    page = browser_page(report[0])
    own = section(page, "Where does it win and lose?")
    height = own.locator(".plot").bounding_box()["height"]
    own.get_by_label("Chart").select_option(label="both values")
    plot = own.locator(".plot")
    plot.scroll_into_view_if_needed()
    plot.locator(".scatterlayer .point").first.wait_for()
    assert plot.locator(".scatterlayer .point").count() == 40
    assert plot.bounding_box()["height"] > height
    settle(page)
    places = [node.bounding_box() for node in plot.locator(".xaxislayer-above text").all()]
    box = plot.bounding_box()
    assert all(place["y"] + place["height"] <= box["y"] + box["height"] for place in places)  # nothing is cut off


def test_the_kept_round_and_a_band_are_drawn(browser_page, report):
    page = browser_page(report[0])
    plot = section(page, "How did training go?").locator(".plot")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    data = plot.evaluate("node => node.data.map(t => [t.fill ?? '', t.fillcolor ?? '', t.marker?.symbol ?? ''])")
    assert sum(fill == "toself" for fill, *_ in data) == 2
    assert all(colour.startswith("rgba(") for fill, colour, _ in data if fill)
    assert sum(symbol == "circle-open" for *_, symbol in data) == 2


def test_printing_keeps_plots_whole(browser_page, report, tmp_path):
    """A chart and its caption stay on one page: they are shorter than a page, and may not be broken."""
    page = browser_page(report[0], scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function("() => [...document.querySelectorAll('.plot')].every(plot => plot.data)")
    charts = page.locator(".chart").evaluate_all(
        "all => all.map(node => [getComputedStyle(node).breakInside, node.getBoundingClientRect().height])"
    )
    assert len(charts) >= 8
    assert all(kind == "avoid" and height < 640 for kind, height in charts)  # a landscape page has about 680 pixels
    assert not page.locator("h2.part").is_visible()  # what is folded is not printed
    pdf = page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True, print_background=True)
    assert pdf.startswith(b"%PDF")
    assert 6 <= pdf.count(b"/Type /Page\n") <= 16


def test_the_page_is_small(browser_page, report):
    assert report[0].stat().st_size < 2.5e6  # 2.0 of them are the charting library
    page = browser_page(report[0])
    assert page.evaluate("document.documentElement.scrollHeight") < 9_000


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    """The report of methods that climb from several starts, on features with names that are long or hostile."""
    folder = tmp_path_factory.mktemp("climbed")
    made = rw.make_queries(40, n_docs=12, n_features=5, noise=1.5, random_state=4)
    names = ("bm25", "<b>bold</b>", "a_long_name_without_any_space_at_all", "x", "$y$")
    queries = made.replace(features=names)
    methods = [
        rw.Method("directrank", params={"n_restarts": 4}),
        rw.Method("coordinateascent", params={"n_restarts": 3}),
        rw.Method("regression"),
    ]
    results = rw.run_experiment(rw.Experiment(queries, methods, name="Climbs"), folder, rw.Serial())
    return rw.write_report(results, folder)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_climbs_have_sections_of_their_own(browser_page, climbed, width, scheme):
    page = browser_page(climbed, width=width, scheme=scheme)
    titles = page.locator("main h2").all_inner_texts()
    assert titles[-1] == "Method internals"
    assert page.locator("main h3").all_inner_texts() == ["Feature weights", "Along each weight", "Restarts", "Bounds"]
    for title in ("How did training go?", "Restarts", "Along each weight"):
        unfold(page, title)
        for plot in section(page, title).locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_panels_have_names_that_do_not_overlap(browser_page, climbed):
    page = browser_page(climbed, width=360)
    unfold(page, "Along each weight")
    plot = section(page, "Along each weight").locator(".plot")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    names = plot.locator(".annotation-text")
    assert set(names.all_text_contents()) == {"bm25", "<b>bold</b>", "a_long_na…e_at_all", "x", "$y$"}
    assert overlaps(plot) == []


def overlaps(plot):
    """The places of every two texts in a chart's panels that overlap."""
    labels = [*plot.locator(".annotation-text").all(), *plot.locator(".xtick text, .ytick text").all()]
    texts = [text.bounding_box() for text in labels]
    found = []
    for i, a in enumerate(texts):
        for b in texts[:i]:
            apart = (
                a["x"] + a["width"] <= b["x"] + 1
                or b["x"] + b["width"] <= a["x"] + 1
                or a["y"] + a["height"] <= b["y"] + 2
                or b["y"] + b["height"] <= a["y"] + 2
            )
            if not apart:
                found.append((a, b))
    return found


def test_the_numbers_behind_panels_say_whose_they_are(browser_page, climbed):
    page = browser_page(climbed)
    unfold(page, "Along each weight")
    weights = section(page, "Along each weight")
    weights.locator(".chart summary").click()
    table = weights.locator(".numbers table")
    table.locator("tbody tr").first.wait_for()
    assert table.locator("thead").inner_text().split() == ["series", "effect", "change", "of", "ndcg@10"]
    weights.locator(".numbers input[type=search]").fill("<b>bold</b>, validation")
    settle(page)
    series = table.locator("tbody tr > :first-child").all_inner_texts()
    assert {text.strip() for text in series} == {"<b>bold</b>, validation"}


@pytest.fixture(scope="module")
def stumped(tmp_path_factory):
    """The report of methods with stumps."""
    folder = tmp_path_factory.mktemp("stumped")
    made = rw.make_queries(40, n_docs=12, n_features=5, noise=1.5, random_state=4)
    queries = made.replace(features=("bm25", "<b>bold</b>", "a_long_name_without_any_space", "x", "$y$"))
    methods = [
        rw.Method("rankboost", params={"n_estimators": 20}),
        rw.Method("frank", params={"n_estimators": 10}),
        rw.Method("regression"),
    ]
    results = rw.run_experiment(rw.Experiment(queries, methods, name="Stumps"), folder, rw.Serial())
    return rw.write_report(results, folder)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_stumps_have_a_section_of_their_own(browser_page, stumped, width, scheme):
    page = browser_page(stumped, width=width, scheme=scheme)
    unfold(page, "Step functions")
    steps = section(page, "Step functions")
    for method in ("FRank", "RankBoost"):
        steps.locator("select").select_option(label=method)
        plot = steps.locator(".plot:visible")
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        assert plot.locator(".scatterlayer .trace").count() > 5
        assert overlaps(plot) == []
    used = steps.locator("tbody tr", has_text="RankBoost")
    assert used.count() > 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """The report of methods with trees."""
    folder = tmp_path_factory.mktemp("grown")
    made = rw.make_queries(40, n_docs=12, n_features=5, noise=1.5, random_state=4)
    queries = made.replace(features=("bm25", "<b>bold</b>", "a_long_name_without_any_space", "x", "$y$"))
    shape = {"n_estimators": 12, "num_leaves": 4, "min_child_samples": 5}
    methods = [
        rw.Method("directranktrees", params={**shape, "polish_rounds": 3}),
        rw.Method("lambdamart", "LambdaMART, polished", params={**shape, "polish_rounds": 3}),
        rw.Method("regression"),
    ]
    results = rw.run_experiment(rw.Experiment(queries, methods, name="Trees"), folder, rw.Serial())
    return rw.write_report(results, folder)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_trees_have_sections_of_their_own(browser_page, grown, width, scheme):
    page = browser_page(grown, width=width, scheme=scheme)
    internals = ["Feature weights", "Gain of splits", "Tree weights", "Polishing", "Bounds"]
    assert page.locator("main h3").all_inner_texts() == internals
    for title in ("Tree weights", "Polishing", "Gain of splits"):
        unfold(page, title)
        plot = section(page, title).locator(".plot:visible")
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        if title != "Gain of splits":  # whose names are slanted on a phone
            assert overlaps(plot) == []
    section(page, "Polishing").locator("select:visible").nth(1).select_option(label="fold 1")
    plot = section(page, "Polishing").locator(".plot:visible")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    assert plot.locator(".scatterlayer .trace").count() == 8  # lines and marks of both measures, growing and polishing
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_large_report_is_small_and_quick(browser_page, tmp_path):
    path = rw.write_report(simulated(15, 400), tmp_path)
    assert path.stat().st_size < 3.1e6  # 2.0 of them are the charting library
    page = browser_page(path)
    sections = {
        title: section(page, title) for title in ("Could the differences be chance?", "Where does it win and lose?")
    }
    significance, duel = ("#" + node.get_attribute("id") for node in sections.values())
    for plot in page.locator(".plot:visible").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    sections["Could the differences be chance?"].locator("select").first.select_option(label="every pair")
    actions = [
        (f"{significance} thead button", "click"),
        (f"{significance} input[type=search]", "RankNet"),
        (f"{duel} thead button", "click"),
        (f"{duel} input[type=search]", "11"),
        (f"{duel} .swap", "click"),
        (f"{duel} tbody button", "click"),
        ("dialog button[title='Next query']", "click"),
        ("#methods .chip", "click"),
        ("#theme", "click"),
    ]
    took = {action: response(page, *action) for action in actions}
    assert max(took.values()) < 200 * SLACK, took
    assert page.locator("dialog h3").count() == 1
