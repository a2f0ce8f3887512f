"""What notebooks show: tables with numbers, escaped, without scripts and colours."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import rankwright as rw
from rankwright.analysis.significance import compare

HOSTILE = "<script>alert(1)</script>\x1b[0m&"
QUERIES = rw.make_queries(30, n_docs=8, n_features=4, random_state=0)
TRAIN, TEST = QUERIES.take(range(20)), QUERIES.take(range(20, 30))


class Reader(HTMLParser):
    """A parser that collects cells and checks that every tag that opens closes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.open, self.rows, self.text = set(), [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        assert all(name == "style" and re.fullmatch("text-align: (left|right)", value) for name, value in attrs)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def read(value) -> Reader:
    """Return the parsed HTML of a value; it has tags of tables and text only."""
    reader = Reader()
    reader.feed(value._repr_html_())
    assert reader.open == []
    assert reader.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "pre"}
    return reader


@pytest.fixture(scope="module")
def ranker():
    return rw.LambdaMART(n_estimators=4, num_leaves=4).fit(TRAIN, valid=TEST)


@pytest.fixture(scope="module")
def results(ranker):
    scores = {"trees": ranker, HOSTILE: TEST.X[:, 0], "second": TEST.X[:, 1]}
    return rw.compare_scores(scores, TEST, measures=["ndcg@10", "map"])


def test_rankers_and_models(ranker):
    kept = next(row for row in ranker.history_ if row.get("kept"))
    for value in (ranker, ranker.to_model()):
        rows = dict(read(value).rows)
        assert rows["ndcg@10 on validation queries"] == f"{kept['valid']:.4f}"
        assert rows["ndcg@10 on training queries"] == f"{kept['train']:.4f}"
        assert rows["rounds"] == "4"
        assert "num_leaves=4" in rows["parameters"]
        assert rows["model"].endswith("of 4 features")
    assert ranker._repr_mimebundle_()["text/html"] == ranker._repr_html_()
    assert ranker._repr_mimebundle_()["text/plain"] == repr(ranker)


def test_unfitted_rankers_show_their_parameters():
    found = read(rw.Regression(alpha=3.0))
    assert "Regression, not fitted" in found.text
    assert ["alpha", "3.0"] in found.rows
    assert "Regression" in make_pipeline(rw.Regression())._repr_html_()  # scikit-learn's own diagram


def test_blends_show_their_estimate():
    blend = rw.Blend(rankers=[rw.SingleFeature(), rw.Regression()], n_folds=2).fit(TRAIN)
    rows = dict(read(blend).rows)
    assert rows["ndcg@10 on new queries, estimated"].startswith(f"{blend.estimate_.mean:.4f} [")


def test_evaluations(ranker):
    found = rw.evaluate(ranker, TEST, ["ndcg@10", "map"])
    assert read(found).rows[1:] == [[name, f"{mean:.4f}"] for name, mean in found.means.items()]
    assert "10 queries" in read(found).text


def test_results_are_numbers_with_the_best_first(results):
    found = read(results)
    header, *rows = found.rows
    assert header[:3] == ["method", "ndcg@10", "map"]
    assert [float(row[1]) for row in rows] == sorted((round(mean, 4) for mean in results.means()), reverse=True)
    assert [row[0] for row in rows if row[0].startswith("<")] == ["<script>alert(1)</script>\\x1b[0m&"]
    assert "10 test queries" in found.text


def test_comparisons(results):
    found = results.compare()
    header, *rows = read(found).rows
    assert isinstance(found, list)
    assert header[:3] == ["first", "second", "difference"]
    assert [row[2] for row in rows] == [f"{each.difference:.4f}" for each in found]
    assert [int(row[5]) for row in rows] == [each.wins for each in found]
    assert len(read(found[0]).rows) == 2
    assert read(compare({"only": [1.0, 2.0]})).rows == [header]


def test_permutation_importance_and_texts(ranker):
    found = rw.permutation_importance(ranker, TEST, n_repeats=2)
    rows = read(found).rows[1:]
    assert [float(row[1]) for row in rows] == sorted(np.round(found.means, 4), reverse=True)
    for value in (rw.explain(ranker), rw.inspect(TRAIN)):
        assert read(value).text == str(value)


def test_names_are_escaped():
    queries = QUERIES.replace(features=(HOSTILE, "b", "c", "d"))
    ranker = rw.Regression().fit(queries)
    for value in (ranker, rw.explain(ranker), rw.permutation_importance(ranker, queries, n_repeats=1)):
        assert "<script" not in value._repr_html_()
        assert "\x1b" not in value._repr_html_()
