"""Dialects against the figures that the tools themselves printed on toy.txt, and hand-worked rules.

toy.txt: q1 has 14 documents graded 0-4 without ties, q2 none relevant, q3 many ties, q4 3 documents, q5 60 graded.
"""

from __future__ import annotations

from math import log2
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import one_query

import rankwright as rw

NONE = float("nan")  # the tool printed nothing


@pytest.fixture(scope="module")
def toy():
    return rw.read_letor(Path(__file__).parent / "toy.txt")


@pytest.mark.parametrize(
    ("tool", "measure", "figures"),
    [
        ("reference, ties by input order", "ndcg@10(ties=file)", [0.4327, NONE, 0.8362, 0.6590, 0.3350]),
        ("reference, linear gain", "ndcg@10(gain=linear,ties=file)", [0.5838, NONE, 0.8380, 0.6697, 0.4948]),
        ("reference, LETOR discount", "ndcg@10(discount=letor,ties=file)", [0.4230, NONE, 0.7162, 0.9077, 0.3791]),
        ("LightGBM ndcg@10", "ndcg@10(dialect=lightgbm)", [0.4327, 1, 0.8362, 0.6590, 0.3350]),
        ("XGBoost ndcg@10", "ndcg@10(dialect=xgboost)", [0.4327, 1, 0.8362, 0.6590, 0.3350]),
        ("XGBoost ndcg@10-", "ndcg@10(dialect=xgboost,empty=0)", [0.4327, 0, 0.8362, 0.6590, 0.3350]),
        ("XGBoost ndcg", "ndcg(dialect=xgboost)", [0.6291, 1, 0.8362, 0.6590, 0.5041]),
        ("the true full list", "ndcg(ties=file)", [0.6291, 0, 0.8362, 0.6590, 0.7239]),
        ("CatBoost NDCG:top=10", "ndcg@10(dialect=catboost)", [0.5838, 1, 0.5436, 0.6697, 0.4948]),
        ("CatBoost type=Exp", "ndcg@10(dialect=catboost,gain=exp)", [0.4327, 1, 0.5170, 0.6590, 0.3350]),
        ("sklearn ndcg_score(k=10)", "ndcg@10(dialect=sklearn)", [0.5838, 0, 0.7005, 0.6697, 0.4948]),
        # ignore_ties=True is .6011 on q3 where NumPy sorts with AVX-512 or AVX2, which leaves ties in no particular
        # order, and .5987 where its sort is stable on short lists: no rule gives the first.
        ("sklearn ignore_ties", "ndcg@10(dialect=sklearn,ties=reverse)", [0.5838, 0, 0.5987, 0.6697, 0.4948]),
        ("ir_measures nDCG@10", "ndcg@10(dialect=trec_eval)", [0.5838, 0, 0.5987, 0.6697, 0.4948]),
        ("ir_measures exp-log2", "ndcg@10(dialect=trec_eval,gain=exp)", [0.4327, 0, 0.5592, 0.6590, 0.3350]),
        ("ranx ndcg@10", "ndcg@10(gain=linear,ties=file)", [0.5838, 0, 0.8380, 0.6697, 0.4948]),
        ("ranx ndcg_burges@10", "ndcg@10(ties=file)", [0.4327, 0, 0.8362, 0.6590, 0.3350]),
        ("rax ndcg topn=10", "ndcg@10(ties=file)", [0.4327, 0, 0.8362, 0.6590, 0.3350]),
        ("RankLib NDCG@10", "ndcg@10(dialect=ranklib)", [NONE, 0, 0.8362, 0.6590, NONE]),
        ("Eval-Score-MSLR.pl NDCG@10", "ndcg@10(dialect=mslr)", [0.4230, 0, 0.7162, 0, 0.3791]),
        ("ir_measures AP", "map(dialect=trec_eval)", [0.5933, 0, 0.5250, 0.5833, 0.9217]),
        ("ranx map", "map(ties=file)", [0.5933, 0, 0.6528, 0.5833, 0.9217]),
        ("ir_measures AP@10", "ap@10(dialect=trec_eval)", [0.3964, 0, NONE, 0.5833, 0.1639]),
        ("LightGBM map@10", "ap@10(dialect=lightgbm)", [0.3964, 1, NONE, 0.5833, 0.8521]),
        ("XGBoost map@10", "ap@10(dialect=xgboost)", [0.3964, 1, NONE, 0.5833, 0.8521]),
        ("CatBoost MAP:top=10", "ap@10(dialect=catboost)", [0.3964, 0, NONE, 0.5833, 0.8521]),
        ("XGBoost map", "map(dialect=xgboost)", [0.5933, 1, 0.6528, 0.5833, 0.8498]),
        ("ir_measures P@10 of q4", "p@10(dialect=trec_eval)", [NONE, NONE, NONE, 0.2, NONE]),
        ("RankLib P@10 of q4", "p@10(dialect=ranklib)", [NONE, NONE, NONE, 0.6667, NONE]),
        ("MSLR P@10 of q4: only grades 2 and up", "p@10(dialect=mslr)", [NONE, NONE, NONE, 0.1, NONE]),
    ],
)
def test_the_tools_own_figures(toy, tool, measure, figures):
    values = rw.parse_measure(measure).values(toy, toy.X[:, 0].astype(float))
    for value, figure in zip(values, figures, strict=True):
        assert np.isnan(figure) or value == pytest.approx(figure, abs=5.1e-5)


def test_letor_scripts_on_two_relevant_of_three():
    """P@10 of a query with 3 documents, 2 relevant: LETOR 3.0 counts 0, LETOR 4.0 divides by 10."""
    queries, scores = one_query(np.array([0.0, 2.0, 1.0])), np.array([0.9, 0.5, 0.1])
    assert rw.parse_measure("p@10(dialect=letor3)").values(queries, scores)[0] == 0
    assert rw.parse_measure("p@10(dialect=letor4)").values(queries, scores)[0] == pytest.approx(0.2)
    for dialect in ("letor3", "letor4"):
        assert rw.parse_measure(f"ndcg@10(dialect={dialect})").values(queries, scores)[0] == 0
        # within the list: gains 0, 3, 1 at discounts 1, 1, 1/log2(3); ideal 3 + 1
        expected = (0 + 3 + 1 / log2(3)) / (3 + 1 + 0)
        assert rw.parse_measure(f"ndcg@3(dialect={dialect})").values(queries, scores)[0] == pytest.approx(expected)
        # AP: relevant at ranks 2 and 3
        assert rw.parse_measure(f"map(dialect={dialect})").values(queries, scores)[0] == pytest.approx(
            (1 / 2 + 2 / 3) / 2
        )


def test_letor_discount_makes_the_first_two_ranks_equal():
    queries = one_query(np.array([1.0, 2.0]))
    for scores in ([2.0, 1.0], [1.0, 2.0]):
        assert rw.parse_measure("ndcg@2(dialect=letor3)").values(queries, np.array(scores))[0] == 1


def test_mslr_counts_grade_2_as_relevant():
    queries = one_query(np.array([1.0, 2.0, 0.0]))
    assert rw.parse_measure("map(dialect=mslr)").values(queries, np.array([3.0, 2.0, 1.0]))[0] == pytest.approx(1 / 2)
    assert rw.parse_measure("map(dialect=letor4)").values(queries, np.array([3.0, 2.0, 1.0]))[0] == 1


def test_mslr_precision_of_two_relevant_of_three():
    queries = one_query(np.array([0.0, 3.0, 2.0]))
    assert rw.parse_measure("p@10(dialect=mslr)").values(queries, np.array([0.9, 0.5, 0.1]))[0] == pytest.approx(0.2)


def test_no_relevant_document_in_letor_counts_zero_and_stays_in_the_mean():
    queries = rw.Queries.from_arrays(np.zeros((4, 1)), [0, 0, 1, 0], [1, 1, 2, 2])
    assert rw.parse_measure("ndcg@1(dialect=letor3)").mean(queries, np.array([1.0, 2.0, 2.0, 1.0])) == 0.5


def test_ranklib_err_and_rr():
    """ERR with 2^4 as the highest gain whatever the data: (2^2 - 1) / 16 at rank 1, then (2^1 - 1) / 16 at rank 2."""
    queries, scores = one_query(np.array([2.0, 1.0])), np.array([2.0, 1.0])
    expected = 3 / 16 + (1 - 3 / 16) * (1 / 16) / 2
    assert rw.parse_measure("err@10(dialect=ranklib)").values(queries, scores)[0] == pytest.approx(expected)
    assert rw.parse_measure("rr@10(dialect=ranklib)").values(queries, scores)[0] == 1


def test_trec_eval_breaks_ties_by_document_id_descending_and_reads_floats():
    queries = one_query(np.array([1.0, 0.0]), docid=["a", "b"])
    assert rw.parse_measure("mrr(dialect=trec_eval)").values(queries, np.array([0.5, 0.5]))[0] == 0.5
    nearly = np.array([1.0 + 1e-12, 1.0])  # equal as 32-bit floats
    assert rw.parse_measure("mrr(dialect=trec_eval)").values(queries, nearly)[0] == 0.5
    assert rw.parse_measure("mrr").values(queries, nearly)[0] == 1


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ("err(dialect=catboost)", "exceeds 1"),
        ("mrr(dialect=ranklib)", "RR@0"),
        ("ap@10(dialect=ranklib)", "no cut-off"),
        ("recall@10(dialect=lightgbm)", "does not define recall"),
        ("ap@10(dialect=letor3)", "does not define ap"),
        ("err(dialect=trec_eval)", "does not define err"),
    ],
)
def test_refusals_have_a_reason(measure, reason):
    with pytest.raises(rw.InputError, match=reason):
        rw.parse_measure(measure)
