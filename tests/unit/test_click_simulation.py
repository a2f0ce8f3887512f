"""Simulated clicks: what comes out has the distribution of the model, and the truth beside it."""

from __future__ import annotations

import numpy as np
import pytest

import rankwright as rw


@pytest.fixture(scope="module")
def queries() -> rw.Queries:
    return rw.make_queries(30, n_docs=12, n_features=5, random_state=0)


def simulate(queries, **options):
    options = {"n_sessions": 200_000, "random_state": 1} | options
    return rw.simulate_clicks(queries, options.pop("scores", queries.X[:, 0]), **options)


def true_rates(log):
    """The probability of a click in each cell, of the position model."""
    return log.truth.examination.look_up(log.position) * log.truth.relevance[log.cell_pair]


def check_rates(log, expected):
    error = (log.n_clicked - log.n_shown * expected) / np.sqrt(log.n_shown * expected * (1 - expected) + 1e-9)
    assert np.abs(error).max() < 5.5
    assert np.mean(error**2) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("swaps", [None, "first", "adjacent", "all"])
def test_click_rates_are_those_of_the_position_model(queries, swaps):
    log = simulate(queries, swaps=swaps, eta=0.7, noise=0.2, swap_share=0.5)
    check_rates(log, true_rates(log))
    grades = dict(zip(zip(queries.row_qid, queries.docid, strict=True), queries.y, strict=True))
    pairs = zip(np.repeat(log.qid, np.diff(log.indptr)), log.docid, strict=True)
    relevance = 0.2 + 0.8 * (2 ** np.array([grades[pair] for pair in pairs]) - 1) / 3
    assert log.truth.relevance == pytest.approx(relevance)


def test_impressions_are_those_of_the_ranking(queries):
    log = simulate(queries, n_positions=4)
    assert log.n_lists.sum() == 200_000
    rank = {}
    for i, rows in enumerate(queries):
        order = np.argsort(-queries.X[rows, 0], kind="stable")
        rank |= {(queries.qid[i], queries.docid[rows][row]): k + 1 for k, row in enumerate(order)}
    pairs = list(zip(np.repeat(log.qid, np.diff(log.indptr)), log.docid, strict=True))
    assert [rank[pairs[pair]] for pair in log.cell_pair] == log.position.tolist()
    assert log.n_shown.tolist() == log.n_lists[log.pair_query[log.cell_pair]].tolist()
    assert log.n_positions == 4


def test_cascades_stop_at_the_first_click(queries):
    log = simulate(queries, model="cascade", noise=0.3, n_positions=8)
    assert log.n_clicked.sum() <= log.n_lists.sum()
    by_query = np.bincount(log.pair_query[log.cell_pair], log.n_clicked)
    left = np.ones(len(log))
    clicked = np.zeros(log.n_pairs)
    for pair in np.argsort(log.position[log.cell_indptr[:-1]], kind="stable"):  # a cell for each pair: one ranker
        query = log.pair_query[pair]
        clicked[pair] = left[query] * log.truth.relevance[pair]
        left[query] -= clicked[pair]
    assert by_query == pytest.approx(log.n_lists * (1 - left), abs=5 * np.sqrt(log.n_lists.max()))
    check_rates(log, clicked)
    examined = log.truth.examination.probability
    assert examined[0] == 1.0
    assert (np.diff(examined) < 0).all()
    more = simulate(queries, model="cascade", abandon=0.0)
    check_rates(more, more.truth.relevance[more.cell_pair])  # nobody stops: every document is looked at


def test_trust_adds_clicks_on_irrelevant_documents_at_the_top(queries):
    log, plain = (simulate(queries, model=model, noise=0.0) for model in ("trust", "position"))
    is_irrelevant = log.truth.relevance[log.cell_pair] == 0
    assert plain.n_clicked[is_irrelevant].sum() == 0
    first = is_irrelevant & (log.position == 1)
    assert log.n_clicked[first].sum() / log.n_shown[first].sum() == pytest.approx(0.65, abs=0.01)


@pytest.mark.parametrize(("swaps", "shares"), [("first", [1 / 2]), ("adjacent", [1 / 2]), ("all", [1 / 3])])
def test_swapped_positions_are_in_random_order(queries, swaps, shares):
    log = simulate(queries, swaps=swaps, n_positions=3, swap_share=1.0)
    for number, name in enumerate(log.groups):
        cells = (log.group == number) & (log.n_lists[log.pair_query[log.cell_pair]] > 0)
        shown = np.bincount(log.position[cells], log.n_shown[cells])
        positions = {"1-1": [1], "1-2": [1, 2], "1-3": [1, 2, 3]}.get(name) or [int(p) for p in name.split(",")]
        assert set(np.flatnonzero(shown)) <= set(positions)
        if shown.any() and len(positions) == int(1 / shares[0]):
            by_pair = np.bincount(log.cell_pair[cells], log.n_shown[cells], log.n_pairs)[log.cell_pair[cells]]
            error = (log.n_shown[cells] - by_pair * shares[0]) / np.sqrt(by_pair * shares[0])
            assert np.abs(error).max() < 5


def test_several_rankers_share_the_sessions(queries):
    log = simulate(queries, scores={"old": queries.X[:, 0], "new": -queries.X[:, 0]})
    assert log.rankers == ("new", "old")
    shown = np.bincount(log.ranker, log.n_shown)
    assert shown[0] == pytest.approx(shown[1], rel=0.02)
    check_rates(log, true_rates(log))


def test_the_seed_and_the_order_of_rows_decide_nothing_else(queries):
    order = np.random.default_rng(0).permutation(queries.n_docs)
    log, same = (simulate(queries, swaps="adjacent", n_sessions=500) for _ in range(2))
    assert log.n_clicked.tolist() == same.n_clicked.tolist()
    mixed = rw.Queries.from_arrays(
        queries.X[order], queries.y[order], queries.row_qid[order], docid=queries.docid[order]
    )
    grouped = mixed.grouped()
    one, other = simulate(mixed, n_sessions=500), simulate(grouped, n_sessions=500)
    assert one.n_clicked.tolist() == other.n_clicked.tolist()
    assert one.docid.tolist() == other.docid.tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "casacde"}, "did you mean cascade"),
        ({"swaps": "some"}, "there are first, adjacent, all"),
        ({"noise": 2}, "expected a probability from 0 to 1"),
        ({"n_sessions": 0}, "expected at least 1"),
        ({"examination": [1.0, 0.5]}, "expected the probability of positions 1 to 10"),
        ({"eta": -1.0}, "expected a finite number of at least 0"),
        ({"scores": [1.0]}, "scores have shape"),
        ({"scores": {}}, "expected at least one"),
        ({"relevance": [2.0]}, "probabilities, from 0 to 1"),
        ({"examination": rw.Examination.from_power(1.0, 3)}, "the examination is known to position 3"),
    ],
)
def test_errors(queries, options, said):
    with pytest.raises(rw.InputError, match=said):
        simulate(queries, **options)


def test_queries_of_one_document_are_shown(queries):
    single = rw.Queries.from_arrays([[1.0], [2.0]], [0, 1], [1, 2])
    for swaps in (None, "first", "adjacent", "all"):
        log = rw.simulate_clicks(single, [0.0, 0.0], swaps=swaps, n_sessions=100, random_state=0)
        assert log.n_shown.sum() == 100
        assert log.docid.tolist() == [1, 2]


def test_examination_is_a_value():
    found = rw.Examination.from_values([0.5, 0.25, 0.1])
    assert found.look_up([3, 1]).tolist() == [0.2, 1.0]
    again = rw.Examination.from_json(found.to_json())
    assert again.probability.tolist() == found.probability.tolist()
    assert found.to_pandas()["examination"].tolist() == [1.0, 0.5, 0.2]
    assert "0.200" in str(found)
    assert "<table>" in found._repr_html_()
    with pytest.raises(rw.InputError, match="known to position 3"):
        found.look_up([4])
    with pytest.raises(rw.InputError, match="max_position=1"):
        rw.Examination(np.array([1.0, np.nan])).look_up([2])
    for content in (None, {}, {"examination": ["a"]}, {"examination": [0.0]}, {"examination": [1.0], "low": [1, 2]}):
        with pytest.raises(rw.InputError, match="examination"):
            rw.Examination.from_json(content)
