"""The report of a real experiment in a real browser."""

from __future__ import annotations

import pytest
from tests.browser.reading import SLACK, response, settle
from tests.results import simulated

import rankwright as rw

TITLES = [
    "Results", "Published figures", "Significance", "Curves", "Learning curves", "Bounds", "Pairs of grades",
    "Query groups", "Wins and losses", "Feature weights", "Selection", "Time and memory",
]  # fmt: skip


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


def test_every_section_is_there(browser_page, report):
    page = browser_page(report[0])
    assert page.locator("main h2").all_inner_texts() == TITLES
    assert page.locator("h1").inner_text() == "A real one"


def test_the_figures_are_those_of_the_results(browser_page, report):
    page = browser_page(report[0])
    _, results = report
    row = page.locator("table").first.locator("tr", has_text="Regression")
    assert f"{results.means()[0]:.4f}" in row.inner_text()


def test_a_query_of_a_duel_opens_with_its_documents(browser_page, report):
    page = browser_page(report[0])
    _, results = report
    queries = page.get_by_role("heading", name="Wins and losses").locator("xpath=ancestor::section")
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
    assert page.get_by_role("dialog").count() == 0


def test_hiding_a_method_hides_it_everywhere(browser_page, report):
    page = browser_page(report[0])
    table = page.locator("table").first
    assert table.locator("tbody tr:visible").count() == 3
    page.locator("#methods .chip", has_text="Boosted <b>").click()
    assert table.locator("tbody tr:visible").count() == 2
    assert "Boosted" not in table.inner_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(browser_page, report, width):
    page = browser_page(report[0], width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


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


def section(page, title):
    return page.get_by_role("heading", name=title, exact=True).locator("xpath=ancestor::section")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_climbs_have_sections_of_their_own(browser_page, climbed, width, scheme):
    page = browser_page(climbed, width=width, scheme=scheme)
    titles = page.locator("main h2").all_inner_texts()
    assert titles.index("Restarts") == titles.index("Learning curves") + 1
    assert titles.index("Along each weight") == titles.index("Feature weights") + 1
    for title in ("Learning curves", "Restarts", "Along each weight"):
        for plot in section(page, title).locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_panels_have_names_that_do_not_overlap(browser_page, climbed):
    page = browser_page(climbed, width=360)
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
    titles = page.locator("main h2").all_inner_texts()
    start = titles.index("Learning curves")
    assert titles[start : start + 3] == ["Learning curves", "Tree weights", "Polishing"]
    assert titles[titles.index("Feature weights") + 1] == "Feature importance"
    for title in ("Tree weights", "Polishing", "Feature importance"):
        plot = section(page, title).locator(".plot:visible")
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        if title != "Feature importance":  # whose names are slanted on a phone
            assert overlaps(plot) == []
    section(page, "Polishing").locator("select:visible").nth(1).select_option(label="fold 1")
    plot = section(page, "Polishing").locator(".plot:visible")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    assert plot.locator(".scatterlayer .trace").count() == 8  # lines and marks of both measures, growing and polishing
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_large_report_is_small_and_quick(browser_page, tmp_path):
    path = rw.write_report(simulated(15, 400), tmp_path)
    assert path.stat().st_size < 7.4e6  # 4.8 of them are the charting library
    page = browser_page(path)
    sections = {
        title: page.get_by_role("heading", name=title, exact=True) for title in ("Significance", "Wins and losses")
    }
    significance, duel = ("#" + node.locator("xpath=..").get_attribute("id") for node in sections.values())
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
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
