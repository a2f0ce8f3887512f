"""Examination estimated from logs: against the slow twins, against the truth, and when it cannot be had."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.clicks import all_pairs, maximise_conditional_likelihood, regression_em

import rankwright as rw
from rankwright.analysis.clicks.click_regression import spread_features


@pytest.fixture(scope="module")
def queries() -> rw.Queries:
    return rw.make_queries(40, n_docs=10, n_features=6, random_state=0)


@pytest.fixture(scope="module")
def rankers(queries) -> dict[str, np.ndarray]:
    return {"a": queries.X[:, 0], "b": queries.X[:, 2], "c": -queries.X[:, 0]}


def simulate(queries, scores, **options) -> rw.ClickLog:
    return rw.simulate_clicks(queries, scores, **{"n_sessions": 20_000, "n_positions": 5, "random_state": 0} | options)


def list_cells(log, stratum) -> list[tuple[int, int, int, int]]:
    rows = np.flatnonzero(stratum >= 0)
    columns = (stratum[rows], log.position[rows], log.n_shown[rows], log.n_clicked[rows])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_harvesting_maximises_the_likelihood_within_documents(queries, rankers):
    log = simulate(queries, rankers, n_sessions=3_000)
    found = rw.estimate_examination(log)
    assert found.method == "harvesting"
    assert "a, b, c" in found.reason
    cells = list_cells(log, log.cell_pair)
    assert found.probability == pytest.approx(maximise_conditional_likelihood(cells, 5), rel=1e-4)
    # all-pairs harvesting has the same aim, with other weights of documents
    assert np.log(all_pairs(cells, 5)) == pytest.approx(np.log(found.probability), abs=0.5)
    assert found.low[0] == found.high[0] == 1.0
    assert (found.low[1:] < found.probability[1:]).all()
    assert (found.high[1:] > found.probability[1:]).all()


@pytest.mark.parametrize("swaps", ["first", "adjacent", "all"])
def test_swaps_maximise_the_likelihood_within_groups(queries, rankers, swaps):
    log = simulate(queries, rankers["a"], swaps=swaps, swap_share=0.5)
    found = rw.estimate_examination(log)
    assert found.method == "swaps"
    expected = maximise_conditional_likelihood(list_cells(log, log.group), 5)
    assert found.probability == pytest.approx(expected, rel=1e-4)


def test_em_reaches_what_em_reaches(queries, rankers):
    log = simulate(queries, rankers, n_sessions=200_000, noise=0.3)
    found = rw.estimate_examination(log, "em")
    several = np.diff(log.cell_indptr)[log.cell_pair] > 1
    stratum = np.where(several, log.cell_pair, -1)
    clicks = np.bincount(log.cell_pair, log.n_clicked)
    positions = [len(set(log.position[a:b])) for a, b in zip(log.cell_indptr, log.cell_indptr[1:], strict=False)]
    stratum = np.where((clicks > 0) & (np.array(positions) > 1), np.arange(log.n_pairs), -1)[log.cell_pair]
    slow = regression_em(list_cells(log, stratum), 5, log.n_pairs)
    assert found.probability == pytest.approx(slow, rel=0.02)
    assert "number for each document" in found.reason


def test_em_with_features_needs_no_moves(queries):
    rng = np.random.default_rng(0)
    many = rw.make_queries(400, n_docs=8, n_features=3, random_state=1)
    logit = np.nan_to_num((many.X[:, 0] - many.X[:, 0].mean()) / many.X[:, 0].std()) - 1.0
    relevance = 1 / (1 + np.exp(-logit))
    log = simulate(many, rng.normal(size=many.n_docs), n_sessions=400_000, relevance=relevance)
    with pytest.raises(rw.InputError, match="each document was shown at one position only"):
        rw.estimate_examination(log)
    with pytest.raises(rw.InputError, match="there are no features="):
        rw.estimate_examination(log, "em")
    found = rw.estimate_examination(log, features=many)
    assert found.method == "em"
    assert found.probability == pytest.approx(log.truth.examination.probability, rel=0.1)


@pytest.mark.parametrize("how", ["first", "adjacent", "all", "rankers"])
def test_intervals_cover_the_truth(queries, rankers, how):
    hits = []
    for seed in range(25):
        scores = rankers if how == "rankers" else rankers["a"]
        log = simulate(queries, scores, swaps=None if how == "rankers" else how, random_state=seed, eta=0.8)
        found = rw.estimate_examination(log)
        truth = log.truth.examination.probability
        hits += ((found.low <= truth) & (truth <= found.high))[1:].tolist()
    assert 0.86 <= np.mean(hits) <= 1.0  # 100 intervals of 95 %
    narrow = rw.estimate_examination(log, confidence=0.5)
    assert (narrow.high - narrow.low)[1:].max() < (found.high - found.low)[1:].max()


def test_positions_that_are_not_compared_are_unknown(queries):
    log = simulate(queries, queries.X[:, 0], swaps="adjacent")
    kept = np.isin(log.group, [i for i, name in enumerate(log.groups) if name in ("1,2", "4,5")])
    part = rw.ClickLog(
        **{name: getattr(log, name) for name in ("qid", "indptr", "docid", "cell_indptr", "position", "n_lists")},
        n_shown=np.where(kept, log.n_shown, 0),
        n_clicked=np.where(kept, log.n_clicked, 0),
        group=np.where(kept, log.group, -1),
        groups=log.groups,
    )
    with pytest.warns(rw.ClickLogWarning, match="3 of 5 positions is not known: 3, 4, 5"):
        found = rw.estimate_examination(part, "swaps")
    assert np.isnan(found.probability).tolist() == [False, False, True, True, True]
    assert found.to_json()["examination"][2] is None
    again = rw.Examination.from_json(found.to_json())
    assert np.isnan(again.probability).tolist() == np.isnan(found.probability).tolist()
    assert rw.estimate_examination(part, "swaps", max_position=2).probability == pytest.approx(found.probability[:2])
    with pytest.raises(rw.InputError, match="max_position=2"):
        log.to_queries(queries, examination=found)
    filled = found.fit_power()
    assert filled.method == "power"
    assert log.to_queries(queries, examination=filled).clicks.examination == pytest.approx(
        np.arange(1, 6) ** -1.0, rel=0.2
    )
    with pytest.raises(rw.InputError, match="no position but the first"):
        rw.Examination.from_values([1.0]).fit_power()
    assert log.to_queries(queries, examination=found, max_position=2).clicks.examination.shape == (2,)


def test_groups_that_were_not_shuffled_are_refused(queries):
    log = simulate(queries, queries.X[:, 0], swaps="first", swap_share=0.5)
    wrong = rw.ClickLog(
        **{name: getattr(log, name) for name in ("qid", "indptr", "docid", "cell_indptr", "position", "n_lists")},
        n_shown=log.n_shown,
        n_clicked=log.n_clicked,
        group=np.zeros_like(log.group),
        groups=("x",),
    )
    fewer = wrong.n_shown.copy()
    fewer[wrong.position == 2] = np.maximum(fewer[wrong.position == 2] // 3, wrong.n_clicked[wrong.position == 2])
    object.__setattr__(wrong, "n_shown", fewer)
    with pytest.raises(rw.InputError, match=r"the shuffled group 'x' has .* impressions at position .*other names"):
        rw.estimate_examination(wrong, "swaps")


def test_errors(queries, rankers):
    log = simulate(queries, rankers["a"])
    for options, said in (
        ({"method": "swap"}, "did you mean swaps"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"max_position": 0}, "max_position=0"),
        ({"method": "swaps"}, "the log names no positions in random order"),
        ({"method": "harvesting"}, "no document that was clicked was shown at two positions"),
    ):
        with pytest.raises(rw.InputError, match=said):
            rw.estimate_examination(log, **options)


def test_regressions_are_piecewise_linear_and_small_where_documents_are_few():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    X[::7, 1] = np.nan
    design = spread_features(X).toarray()
    assert (design[:, 0] == 1).all()
    assert design.shape[1] == 1 + 2 * 9  # 400 documents allow ten knots for each feature; nine are the most
    assert design[:, 1:10].sum(axis=1) == pytest.approx(np.ones(400))
    assert design[:, 10:].sum(axis=1) == pytest.approx((~np.isnan(X[:, 1])).astype(float))
    knots = np.quantile(X[:, 0].astype(float), np.linspace(0, 1, 9))
    assert design[:, 1:10] @ knots == pytest.approx(X[:, 0].astype(float))
    assert spread_features(X[:60]).shape[1] == 1 + 2 * 2
    assert spread_features(np.column_stack([X[:, 0], np.ones(400), np.full(400, np.nan)])).shape[1] == 1 + 6
