"""Grades of clicks, and the data sets that they make."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.reference.clicks import coec

import rankwright as rw
from rankwright.data.click_grades import estimate_prior


@pytest.fixture(scope="module")
def queries() -> rw.Queries:
    return rw.make_queries(12, n_docs=8, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def log(queries) -> rw.ClickLog:
    rankers = {"a": queries.X[:, 0], "b": queries.X[:, 2]}
    return rw.simulate_clicks(queries, rankers, n_sessions=4_000, n_positions=6, random_state=0)


def list_cells(log: rw.ClickLog) -> list[tuple]:
    query, doc = log.qid[log.pair_query[log.cell_pair]], log.docid[log.cell_pair]
    columns = (query, doc, log.position, log.n_shown, log.n_clicked)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("known", [False, True])
def test_coec_is_clicks_over_expected_clicks(log, known):
    examination = log.truth.examination if known else None
    found = log.grade(prior=2.5, examination=examination)
    expected = coec(list_cells(log), 2.5, None if examination is None else examination.probability)
    pairs = list(zip(found.qid.tolist(), found.docid.tolist(), strict=True))
    assert len(pairs) == log.n_pairs == len(expected)
    assert found.value == pytest.approx([expected[pair] for pair in pairs])
    assert ((found.low < found.value) & (found.value < found.high)).all()
    assert found.n_clicked.sum() == pytest.approx(found.expected.sum())
    assert found.to_pandas()["value"].tolist() == found.value.tolist()
    assert "<table>" in found._repr_html_()
    frame = pd.DataFrame(list_cells(log), columns=["q", "d", "k", "shown", "clicked"]).query("k <= 2")
    sums = frame.groupby(["q", "d"])["shown"].sum()
    assert log.grade(max_position=2).n_shown.tolist() == sums.tolist()


def test_click_rates_are_smoothed_to_the_mean(log):
    found = log.grade("ctr", prior=1.0)
    mean = log.n_clicked.sum() / log.n_shown.sum()
    expected = (found.n_clicked + 1.0) / (found.n_shown * mean + 1.0) * mean
    assert found.value == pytest.approx(expected)


def test_intervals_cover_the_true_ratio(queries):
    """Values that are Gamma distributed, as the prior has them: the interval has 95 % of them."""
    rng = np.random.default_rng(0)
    relevance = np.minimum(0.1 * rng.gamma(2.0, 0.5, queries.n_docs), 1.0)
    hits = []
    for seed in range(20):
        log = rw.simulate_clicks(
            queries, rng.normal(size=queries.n_docs), relevance=relevance, n_sessions=2_000, random_state=seed
        )
        found = log.grade(examination=log.truth.examination)
        looked = log.n_shown * log.truth.examination.look_up(log.position)
        average = (looked * log.truth.relevance[log.cell_pair]).sum() / looked.sum()
        truth = log.truth.relevance / average
        hits += ((found.low <= truth) & (truth <= found.high)).tolist()
    assert np.mean(hits) == pytest.approx(0.95, abs=0.025)


def test_cuts(log):
    found = log.grade()
    assert found.cut(None).tolist() == found.value.tolist()
    assert found.cut([1.0]).tolist() == (found.value >= 1.0).astype(float).tolist()
    assert np.bincount(found.cut(4).astype(int)).tolist() == pytest.approx([log.n_pairs / 4] * 4, abs=1.5)
    for bad in (1, [], [1.0, 0.5], [np.nan], [[1.0]]):
        with pytest.raises(rw.InputError, match="cuts="):
            found.cut(bad)


def make_table(queries: rw.Queries) -> pd.DataFrame:
    names = [f"f{i}" for i in range(queries.n_features)]
    frame = pd.DataFrame(queries.X, columns=names)
    return frame.assign(query=queries.row_qid, doc=queries.docid).sample(frac=1.0, random_state=0)


def test_features_are_joined_by_query_and_document(queries, log, tmp_path):
    table = make_table(queries)
    table.to_csv(tmp_path / "features.csv", index=False)
    names = {"qid": "query", "docid": "doc"}
    value = dict(zip(zip(log.grade().qid, log.grade().docid, strict=True), log.grade().cut([0.5, 1, 2]), strict=True))
    for features, options in ((queries, {}), (table, names), (tmp_path / "features.csv", names)):
        made = log.to_queries(features, examination=log.truth.examination, **options)
        assert made.n_docs == log.n_pairs
        grades, rates = log.to_queries(features, **options), log.to_queries(features, grades="ctr", **options)
        pairs = list(zip(grades.row_qid, grades.docid, strict=True))
        assert grades.y.tolist() == [value[pair] for pair in pairs]
        own = dict(zip(zip(queries.row_qid, queries.docid, strict=True), queries.X[:, 1], strict=True))
        assert grades.X[:, 1] == pytest.approx([own[pair] for pair in pairs])
        cells = pd.DataFrame(list_cells(log), columns=["q", "d", "k", "shown", "clicked"])
        cells = cells.groupby(["q", "d", "k"], as_index=False).sum()
        for row in (0, 17, made.n_docs - 1):
            part = cells[(cells.q == made.row_qid[row]) & (cells.d == made.docid[row])]
            counts = made.clicks.take([row], slice(None))
            assert counts.position.tolist() == part.k.tolist()
            assert counts.n_shown.tolist() == part.shown.tolist()
            assert counts.n_clicked.tolist() == part.clicked.tolist()
            assert rates.position[row] == part.k.iloc[part.shown.to_numpy().argmax()]
        lists = dict(zip(log.qid, log.n_lists, strict=True))
        assert made.clicks.n_lists.tolist() == [lists[name] for name in made.qid]
        assert made.clicks.examination.tolist() == log.truth.examination.probability.tolist()
        assert grades.clicks is None
        assert grades.position is None  # LightGBM would correct for it a second time


def test_what_is_not_joined_is_named(queries, log, caplog):
    part = make_table(queries)[:60]
    with pytest.warns(
        rw.ClickLogWarning, match=r"of \d+ documents that were shown have no features, with .* impressions"
    ):
        made = log.to_queries(part, qid="query", docid="doc")
    shown = set(zip(log.qid[log.pair_query].tolist(), log.docid.tolist(), strict=True))
    assert list(zip(made.row_qid, made.docid, strict=True)) == [
        pair for pair in zip(part["query"], part["doc"], strict=True) if pair in shown
    ]
    with caplog.at_level("INFO", logger="rankwright"):
        log.to_queries(queries)
    assert f"{queries.n_docs - log.n_pairs} of {queries.n_docs} documents with features were not shown" in caplog.text
    with pytest.raises(rw.InputError, match=r"no document of the log has features: the log has query '1'"):
        log.to_queries(part.assign(query="x"), qid="query", docid="doc")
    with pytest.raises(rw.InputError, match="the features have 2 rows of query"):
        log.to_queries(pd.concat([part, part]), qid="query", docid="doc")
    with pytest.raises(rw.InputError, match="no document ids"):
        log.to_queries(part.drop(columns="doc"), qid="query")
    with pytest.raises(rw.InputError, match="names columns of a table"):
        log.to_queries(queries, qid="query")


def test_ids_are_joined_by_their_text(queries, log):
    texts = rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid.astype(str), docid=queries.docid)
    assert log.to_queries(texts).y.tolist() == log.to_queries(queries).y.tolist()


def test_weights_and_categories_of_features_are_kept(queries, log):
    frame = make_table(queries).sort_index()
    frame["kind"] = pd.Categorical(np.where(frame["f0"] > 0, "new", "old"))
    weighted = rw.Queries.from_frame(
        frame.assign(weight=frame["query"] * 1.0), qid="query", docid="doc", weight="weight"
    )
    made = log.to_queries(weighted)
    assert made.weight.tolist() == made.qid.astype(float).tolist()
    assert made.categories[-1] == ("new", "old")


def test_documents_without_features_can_be_evaluated(queries, log):
    made = log.to_queries(examination=log.truth.examination)
    assert (made.n_docs, made.n_features) == (log.n_pairs, 0)
    assert made.y.tolist() == log.grade(examination=log.truth.examination).cut([0.5, 1, 2]).tolist()
    assert 0 < rw.evaluate(log.truth.relevance, made, "ndcg@5")["ndcg@5"] <= 1
    assert made.clicks.n_shown.sum() == log.n_shown.sum()
    assert not log.to_queries(grades=None).has_grades


def test_few_impressions_and_low_positions_are_left_out(queries, log):
    shown = np.bincount(log.cell_pair, log.n_shown)
    limit = int(np.median(shown))
    assert log.to_queries(queries, min_shown=limit).n_docs == (shown >= limit).sum()
    top = log.to_queries(queries, max_position=2, examination=rw.Examination.from_power(1.0, 2))
    assert top.clicks.position.max() == 2
    assert top.clicks.n_shown.sum() == log.n_shown[log.position <= 2].sum()
    for options, said in (
        ({"min_shown": 10**9}, "Lower min_shown"),
        ({"max_position": 0}, "expected at least 1"),
        ({"grades": "coecs"}, "did you mean coec"),
        ({"prior": 0.0}, "expected a number of clicks above 0"),
        ({"examination": rw.Examination.from_power(1.0, 2)}, "known to position 2"),
    ):
        with pytest.raises(rw.InputError, match=said):
            log.to_queries(queries, **options)


def test_grades_learn_to_rank(queries):
    """On many clicks the grades order documents almost as the true relevance does."""
    log = rw.simulate_clicks(queries, queries.X[:, 0], n_sessions=200_000, noise=0.05, swaps="all", random_state=1)
    made = log.to_queries(queries, cuts=None, examination=log.truth.examination)
    truth = dict(zip(zip(log.qid[log.pair_query], log.docid, strict=True), log.truth.relevance, strict=True))
    true = [truth[pair] for pair in zip(made.row_qid, made.docid, strict=True)]
    assert np.corrcoef(made.y, true)[0, 1] > 0.99


@pytest.mark.parametrize(("rate", "shown"), [(0.4, 10), (0.4, 60), (0.1, 40)])
def test_the_prior_of_documents_that_are_clicked_often(rate, shown):
    """Counts of clicks vary less than those of Poisson where most impressions are clicked."""
    rng, n = np.random.default_rng(0), 4_000
    value = rng.beta(2.0, 3.0, n) / 0.4  # mean 1, variance 1/4
    chance = rate * (1.0 + rng.integers(0, 10, n)) ** -0.7
    clicked = rng.binomial(shown, value * chance).astype(float)
    found = estimate_prior(clicked, shown * chance, shown * chance**2)
    assert 3.0 < found < 5.2


def test_documents_that_clicks_cannot_tell_apart():
    rng = np.random.default_rng(0)
    shape = {"query": np.repeat(np.arange(30), 40), "docid": np.tile(np.arange(10), 120)}
    frame = pd.DataFrame({**shape, "position": shape["docid"] + 1, "clicked": rng.random(1200) < 0.3})
    log = rw.read_clicks(frame)
    with pytest.warns(rw.ClickLogWarning, match="no more between documents than by chance.* pass prior="):
        log.grade()
    with pytest.raises(rw.InputError, match=r"examination=1\.0; expected an Examination: rw\.estimate_examination"):
        log.to_queries(examination=1.0)
