"""Measures that are estimated from clicks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import click_measures as reference
from tests.reference.measures import averaged, rank

import rankwright as rw

EXAMINATION = (1.0, 0.5, 0.25)
SUMS = ("dcg", "dcg@2", "dcg@2(discount=reciprocal)", "p@2", "rbp")


def make_queries(lists: list[list[list[tuple[int, int, int]]]], examination=EXAMINATION) -> rw.Queries:
    """Return queries whose documents are given as lists of cells (position, shown, clicked)."""
    documents = [cells for one in lists for cells in one]
    columns = np.array([cell for cells in documents for cell in cells], dtype=float).reshape(-1, 3).T
    indptr = np.cumsum([0, *map(len, documents)])
    counts = rw.ClickCounts(indptr, *columns, np.ones(len(lists)), examination)
    qid = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    X = np.arange(len(documents), dtype=float)[:, None]
    return rw.Queries.from_arrays(X, None, qid, clicks=counts)


def name_measure(name: str, options: str) -> str:
    return f"{name[:-1]},{options})" if name.endswith(")") else f"{name}({options})"


@st.composite
def click_lists(draw):
    """One query: documents with cells, and scores with ties."""
    documents = []
    for _ in range(draw(st.integers(1, 5))):
        positions = draw(st.lists(st.integers(1, 3), unique=True, max_size=3))
        shown = [draw(st.integers(0, 6)) for _ in positions]
        documents.append([(k, n, draw(st.integers(0, n))) for k, n in zip(positions, shown, strict=True)])
    scores = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(documents), max_size=len(documents)))
    return documents, np.array(scores)


@given(click_lists(), st.sampled_from(["naive", "ips", "ips,clip=2", "snips", "snips,clip=1", "coec"]))
def test_values_are_those_of_the_definition(case, options):
    documents, scores = case
    estimator, _, clip = options.partition(",clip=")
    relevance = reference.relevance(documents, estimator, EXAMINATION, float(clip or math.inf))
    ranked = [relevance[i] for i in rank(relevance, scores)]
    queries = make_queries([documents])
    for name, function in reference.BY_NAME.items():
        measure = rw.parse_measure(name_measure(name, f"clicks={options}"))
        mean = averaged(function, relevance, scores)
        assert measure.values(queries, scores)[0] == pytest.approx(mean, abs=1e-12), measure
        assert rw.parse_measure(str(measure)) == measure
        pessimistic = measure.for_training()
        assert pessimistic.values(queries, scores)[0] == pytest.approx(function(ranked), abs=1e-12), measure
        assert rw.parse_measure(str(pessimistic)) == pessimistic
        assert measure.label(queries).y == pytest.approx(relevance, abs=1e-12)


SHOWN = [[(1, 2), (3, 1)], [(2, 2)], [(3, 2), (2, 1)]]  # documents: positions and impressions
TWICE = [[(1, 2), (3, 2)], [(2, 2)], [(3, 2)]]
RELEVANT = [0.7, 0.2, 0.5]
SCORES = np.array([2.0, 3.0, 1.0])


def expect(measure: str, shown=SHOWN, scores=SCORES) -> tuple[float, float, float]:
    """Return the exact expectation of a measure and of its estimated variance, and its exact variance."""
    cells = [(d, k, n) for d, own in enumerate(shown) for k, n in own]
    chances = [EXAMINATION[k - 1] * RELEVANT[d] for d, k, _ in cells]
    sums = np.zeros(3)
    for clicks, probability in reference.outcomes([n for *_, n in cells], chances):
        documents = [[] for _ in shown]
        for (d, k, n), c in zip(cells, clicks, strict=True):
            documents[d].append((k, n, c))
        found = rw.evaluate(scores, make_queries([documents]), measure)
        value, error = next(iter(found.means.values())), next(iter(found.click_errors.values()))
        sums += probability * np.array([value, error**2, value**2])
    return sums[0], sums[1], sums[2] - sums[0] ** 2


@pytest.mark.parametrize("estimator", ["ips", "coec"])
@pytest.mark.parametrize("name", ["dcg@2", "dcg@2(discount=reciprocal)", "rbp"])
def test_sums_are_unbiased(name, estimator):
    """The expectation over all clicks, computed exactly, is the value of the true relevance."""
    truth = reference.BY_NAME[name]([RELEVANT[i] for i in np.argsort(-SCORES)])
    assert expect(name_measure(name, f"clicks={estimator}"))[0] == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("scores", [[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
def test_sums_are_unbiased_where_scores_tie(scores):
    """The value is the mean over the orders of tied documents: to put the less clicked one first would be biased."""
    truth = averaged(reference.BY_NAME["dcg@2"], RELEVANT, scores)
    value, estimated, exact = expect("dcg@2(clicks=ips)", TWICE, np.array(scores))
    assert value == pytest.approx(truth, abs=1e-12)
    assert estimated == pytest.approx(exact, rel=1e-9)
    assert expect("dcg@2(clicks=ips,ties=pessimistic)", TWICE, np.array(scores))[0] < truth - 0.01


def test_what_is_biased():
    order = np.argsort(-SCORES)
    truth = reference.dcg([RELEVANT[i] for i in order], 2)
    chances = [sum(n * EXAMINATION[k - 1] for k, n in cells) / sum(n for _, n in cells) for cells in SHOWN]
    naive = reference.dcg([RELEVANT[i] * chances[i] for i in order], 2)
    assert expect("dcg@2(clicks=naive)")[0] == pytest.approx(naive, abs=1e-12)
    clipped = [
        sum(n * min(1.0, 2 * EXAMINATION[k - 1]) for k, n in cells) / sum(n for _, n in cells) for cells in SHOWN
    ]
    biased = reference.dcg([RELEVANT[i] * clipped[i] for i in order], 2)
    assert biased < truth - 0.01
    assert expect("dcg@2(clicks=ips,clip=2)")[0] == pytest.approx(biased, abs=1e-12)
    truth = reference.ndcg([RELEVANT[i] for i in order], 2)
    assert abs(expect("ndcg@2(clicks=ips)")[0] - truth) > 0.01  # an ideal of noise is too high


def test_ndcg_with_a_floor_above_every_ideal_is_unbiased():
    truth = reference.dcg([RELEVANT[i] for i in np.argsort(-SCORES)], 2) / 50
    assert expect("ndcg@2(clicks=coec,floor=50)")[0] == pytest.approx(truth, abs=1e-12)


def test_the_estimated_variance_is_unbiased_for_sums_where_documents_are_shown_twice():
    """Cells of a single impression count with an upper bound."""
    for estimator in ("naive", "ips", "ips,clip=2", "coec"):
        _, estimated, exact = expect(f"dcg@2(clicks={estimator})", TWICE)
        assert estimated == pytest.approx(exact, rel=1e-9), estimator
    _, estimated, exact = expect("dcg@2(clicks=ips)")
    assert estimated > exact


@pytest.mark.parametrize(
    "measure", ["ndcg@2(clicks=ips)", "recall@2(clicks=coec)", "dcg@3(clicks=snips)", "ndcg@2(clicks=coec,floor=0.9)"]
)
def test_the_variance_of_ratios_is_right_for_many_impressions(measure):
    """Ratios are taken as linear: with many impressions the variance over draws of clicks is the estimated one."""
    rng, cells = np.random.default_rng(0), [(d, k, 400 * n) for d, shown in enumerate(SHOWN) for k, n in shown]
    chances = [EXAMINATION[k - 1] * RELEVANT[d] for d, k, _ in cells]
    lists = []
    for _ in range(3000):
        documents = [[] for _ in SHOWN]
        for (d, k, n), chance in zip(cells, chances, strict=True):
            documents[d].append((k, n, int(rng.binomial(n, chance))))
        lists.append(documents)
    found = rw.evaluate(np.tile(SCORES, len(lists)), make_queries(lists), measure)
    [values], [variance] = found.per_query.values(), found.click_variance.values()
    assert variance.mean() == pytest.approx(values.var(), rel=0.15)


@given(click_lists())
def test_estimators_agree_where_they_must(case):
    documents, scores = case
    queries, seen = make_queries([documents]), make_queries([documents], (1.0, 1.0, 1.0))
    for name in ("dcg", "ndcg@2", "recall@2"):
        value = {o: rw.parse_measure(f"{name}(clicks={o})").values(queries, scores)[0] for o in ("ips", "ips,clip=4")}
        assert value["ips"] == value["ips,clip=4"]  # no weight is above 4
        naive = rw.parse_measure(f"{name}(clicks=naive)").values(queries, scores)[0]
        for other in ("ips", "coec", "ips,clip=1"):
            assert rw.parse_measure(f"{name}(clicks={other})").values(seen, scores)[0] == pytest.approx(naive)
    for name in ("ndcg@2", "recall@2"):  # the norm takes the self-normalisation back
        one, other = (rw.parse_measure(f"{name}(clicks={o})").values(queries, scores)[0] for o in ("ips", "snips"))
        assert one == pytest.approx(other)


def test_texts():
    assert str(rw.NDCG(10, clicks="ips", clip=10)) == "ndcg@10(clicks=ips,clip=10)"
    assert rw.parse_measure("ndcg@10(clicks=ips, clip=10)") == rw.NDCG(10, clicks="ips", clip=10.0)
    assert str(rw.parse_measure("ndcg@10(gain=linear,clicks=ips,floor=0)")) == "ndcg@10(clicks=ips)"
    assert str(rw.parse_measure("p@5(clicks=ips,ties=file)")) == "p@5(ties=file,clicks=ips)"
    assert rw.parse_measure("ndcg(clicks=none)") == rw.NDCG()
    assert rw.parse_measure("ndcg(clicks=ips)") != rw.NDCG(gain="linear")
    assert str(rw.DCG(5, discount="reciprocal", clicks="coec")) == "dcg@5(discount=reciprocal,clicks=coec)"
    assert not rw.P(5, clicks="ips").is_normalised
    assert rw.Recall(5, clicks="ips").is_normalised


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map(clicks=ips)", r"ap has no form .* no sum over documents. ndcg\(clicks=ips\) is one"),
        ("rr@10(clicks=ips)", r"dcg\(discount=reciprocal,clicks=ips\) is one"),
        ("err(clicks=ips)", "no sum"),
        ("wta(clicks=ips)", "no sum"),
        ("ndcg(clicks=dm)", "expected one of none, naive, ips, snips, coec"),
        ("ndcg(clip=10)", "clip has no effect without clicks="),
        ("ndcg(floor=1)", "floor has no effect without clicks="),
        ("dcg(clicks=ips,floor=1)", "dcg has no option 'floor'"),
        ("ndcg(clicks=naive,clip=2)", "clip has no effect with clicks=naive"),
        ("ndcg(clicks=ips,clip=0.5)", "expected the largest weight of a click, a number of at least 1"),
        ("ndcg(clicks=ips,gain=exp)", "gain=exp with clicks=ips"),
        ("p@5(clicks=ips,rel=2)", "rel has no effect with clicks=ips"),
        ("ndcg@10(clicks=ips,dialect=letor3)", "tools have no measures from clicks"),
    ],
)
def test_options_that_do_not_go_together_are_refused(text, message):
    with pytest.raises(rw.InputError, match=message):
        rw.parse_measure(text)


def test_data_that_lack_what_the_measure_needs_are_refused():
    queries = make_queries([[[(1, 5, 1)], [(3, 5, 2)]]])
    scores = np.zeros(2)
    with pytest.raises(rw.InputError, match=r"dcg\(clicks=ips\) needs clicks; these queries have none"):
        rw.evaluate(scores, queries.replace(clicks=None), "dcg(clicks=ips)")
    short = queries.replace(clicks=queries.clicks.with_examination([1.0, 0.5]))
    with pytest.raises(rw.InputError, match="shown at position 3; the examination of positions 1 to 2 is known"):
        rw.evaluate(scores, short, "dcg(clicks=ips)")
    assert rw.evaluate(scores, short, "dcg(clicks=naive)").means  # needs no examination
    blind = queries.replace(clicks=queries.clicks.with_examination([1.0, 0.5, 0.0]))
    with pytest.raises(rw.InputError, match="clicks at position 3, which is looked at with probability 0"):
        rw.evaluate(scores, blind, "dcg(clicks=coec)")
    with pytest.raises(rw.InputError, match="needs clicks"):
        rw.SingleFeature(measure="ndcg@10(clicks=ips)").fit(rw.make_queries(5, random_state=0))
    with pytest.raises(rw.InputError, match="SVMMap with"):
        rw.SVMMap(measure="ndcg@2(clicks=ips)").fit(queries)


def test_evaluations_show_both_errors():
    lists = [[[(1, 50, c)], [(2, 50, 9)]] for c in (10, 20, 30)]
    found = rw.evaluate(np.tile([1.0, 0.0], 3), make_queries(lists), ["dcg@1(clicks=ips)"])
    values = np.array([0.2, 0.4, 0.6])
    assert found.per_query["dcg@1(clicks=ips)"] == pytest.approx(values)
    assert found.query_errors["dcg@1(clicks=ips)"] == pytest.approx(values.std(ddof=1) / math.sqrt(3))
    by_clicks = math.sqrt(sum(p * (1 - p) / 49 for p in values)) / 3
    assert found.click_errors["dcg@1(clicks=ips)"] == pytest.approx(by_clicks)
    assert repr(found) == (
        f"Evaluations(dcg@1(clicks=ips)=0.4000 (standard error {by_clicks:.4f} by clicks, 0.1155 over queries); 3 queries)"
    )
    assert "standard error by clicks" in found._repr_html_()
