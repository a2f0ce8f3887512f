"""The page of an inspection in a real browser."""

from __future__ import annotations

import numpy as np

import rankwright as rw
from rankwright.report.inspection_page import make_inspection_page


def test_the_page_has_findings_charts_and_features(open_page):
    queries = rw.make_queries(40, n_docs=12, n_features=8, random_state=4)
    leaking = queries.with_X(np.column_stack([queries.X[:, :7], queries.y]).astype(np.float32))
    found = rw.inspect(leaking.take(range(30)), leaking.take(range(25, 40)))
    page = open_page(make_inspection_page(found, "train <b>"), ready=".block > :not(script)", height=4000)
    page.wait_for_selector(".plot .main-svg", state="attached")
    assert page.locator("h1").inner_text() == "Inspection of train <b>"
    assert page.locator("main h2").all_inner_texts() == ["Findings", "Queries", "Features"]
    text = page.locator("main").inner_text()
    for finding in found.findings:
        assert finding.what[1:] in text
        assert finding.way_out in text
    assert page.locator("table").last.locator("tbody tr").count() == 8
