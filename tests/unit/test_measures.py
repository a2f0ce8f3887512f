"""Measures against their definitions, on small lists with ties, single documents and no relevant document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import one_query, random_queries, ranked_lists
from tests.reference import measures as reference

import rankwright as rw
from rankwright.measures import DEFINITIONS, TableMeasure, compute_values, weighted_mean

NAMES = sorted(reference.BY_NAME)


@pytest.mark.parametrize("name", NAMES)
@given(ranked_lists(top=3))
def test_values_equal_the_definition(name, case):
    grades, scores = case
    ranked = [grades[i] for i in reference.rank(grades, scores)]
    expected = reference.BY_NAME[name](ranked)
    assert rw.parse_measure(name).values(one_query(grades), scores)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ties", ["file", "reverse", "docid"])
@given(ranked_lists())
def test_tie_rules(ties, case):
    grades, scores = case
    docid = [f"d{(7 * i) % 10}" for i in range(len(grades))]
    ranked = [grades[i] for i in reference.rank(grades, scores, ties, docid)]
    for name in ("ndcg@2", "map", "err"):
        measure = rw.parse_measure(f"{name}(ties={ties})")
        expected = reference.BY_NAME[name](ranked) if name != "ndcg@2" else reference.ndcg(ranked, 2)
        assert measure.values(one_query(grades, docid), scores)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["ndcg", "ndcg@2", "map", "ap@2", "err", "err@2(max=3)", "mrr", "p@2", "rbp"])
@given(ranked_lists(most=5))
def test_averaged_ties_are_the_mean_over_all_orders(name, case):
    grades, scores = case
    plain = reference.BY_NAME.get(name) or (lambda g: reference.ndcg(g, 2))
    measure = rw.parse_measure(name[:-1] + ",ties=average)" if name.endswith(")") else name + "(ties=average)")
    expected = reference.averaged(plain, grades.tolist(), scores.tolist())
    assert measure.values(one_query(grades), scores)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(ranked_lists(most=6))
def test_swap_deltas_equal_brute_force(name, case):
    grades, scores = case
    bound = rw.parse_measure(name).prepare(one_query(grades))
    deltas = bound.compute_swap_deltas(scores, 0)
    order = bound.rank(scores, 0)
    value = reference.BY_NAME[name]
    now = value([grades[i] for i in order])
    for a in range(len(grades)):
        for b in range(len(grades)):
            swapped = [{a: b, b: a}.get(i, i) for i in order]
            assert deltas[a, b] == pytest.approx(value([grades[i] for i in swapped]) - now, abs=1e-12)


@given(ranked_lists(), st.randoms(use_true_random=False))
def test_pessimistic_ties_never_depend_on_the_order_of_rows(case, random):
    grades, scores = case
    rows = list(range(len(grades)))
    random.shuffle(rows)
    for name in ("ndcg@3", "map", "err", "wta"):
        measure = rw.parse_measure(name)
        moved = measure.values(one_query(grades[rows]), scores[rows])
        assert moved == measure.values(one_query(grades), scores)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 200, 1000])
def test_long_lists_are_sorted_from_any_start(n):
    rng = np.random.default_rng(n)
    grades, scores = rng.integers(0, 3, n).astype(float), rng.integers(0, max(n // 3, 1), n).astype(float)
    bound = rw.NDCG().prepare(one_query(grades))
    assert bound.rank(scores, 0).tolist() == reference.rank(grades, scores)
    from rankwright.kernels.measures.sorting import sort_rows

    order = rng.permutation(n)
    sort_rows(scores, grades, np.array([0, n]), 0, 1, order)
    assert order.tolist() == reference.rank(grades, scores)


def test_empty_queries():
    grades, scores = np.zeros(3), np.arange(3.0)
    for option, expected in (("0", 0.0), ("1", 1.0)):
        for name in ("ndcg@2", "map", "mrr", "err"):
            assert rw.parse_measure(f"{name}(empty={option})").values(one_query(grades), scores)[0] == expected
    queries = rw.Queries.from_arrays(np.zeros((4, 1)), [0, 0, 1, 0], [1, 1, 2, 2])
    values = rw.parse_measure("ndcg@10(empty=skip)").values(queries, np.array([1.0, 2.0, 2.0, 1.0]))
    assert np.isnan(values[0])
    assert values[1] == 1.0
    assert weighted_mean(values, np.ones(2)) == 1.0


def test_lists_shorter_than_the_cut_off():
    queries, scores = one_query(np.array([0.0, 2.0, 1.0])), np.array([0.9, 0.5, 0.1])
    assert rw.parse_measure("p@10").values(queries, scores)[0] == pytest.approx(2 / 10)
    assert rw.parse_measure("p@10(short=list)").values(queries, scores)[0] == pytest.approx(2 / 3)
    assert rw.parse_measure("p@10(short=zero)").values(queries, scores)[0] == 0
    assert rw.parse_measure("ndcg@10(short=zero)").values(queries, scores)[0] == 0
    assert rw.parse_measure("ndcg@3(short=zero)").values(queries, scores)[0] > 0


OPTIONS = {
    "gain": ["exp", "linear", "pow2"],
    "discount": ["log2", "letor", "reciprocal"],
    "short": ["pad", "list", "zero"],
    "norm": ["all", "min"],
    "empty": ["0", "1", "skip"],
    "ties": ["pessimistic", "file", "reverse", "average"],
    "rel": [1, 2],
    "max": [3, "data"],
    "p": [0.5, 0.9],
}


@given(st.data(), ranked_lists(), st.sampled_from(sorted(DEFINITIONS)), st.sampled_from([None, 1, 3, 10]))
def test_every_combination_of_options_lies_between_0_and_1_and_prints_itself(data, case, name, k):
    definition = DEFINITIONS[name]
    options = {o: data.draw(st.sampled_from(OPTIONS[o])) for o in definition.options}
    measure = TableMeasure.of(name, k if definition.takes_cut_off else None, **options)
    assert rw.parse_measure(str(measure)) == measure
    grades, scores = case
    value = measure.values(one_query(grades), scores)[0]
    assert np.isnan(value) == (options["empty"] == "skip" and not (grades >= options.get("rel", 1)).any())
    assert np.isnan(value) or value >= 0
    assert np.isnan(value) or not measure.is_normalised or value <= 1 + 1e-12


def test_names_print_numbers_exactly():
    for measure in (rw.AP(rel=1.23456789), rw.RBP(p=1 / 3), rw.AP(rel=0.1), rw.ERR(5, max=3)):
        assert rw.parse_measure(str(measure)) == measure


@pytest.mark.parametrize("name", ["ndcg@10", "ndcg(gain=linear)", "ndcg(empty=skip)"])
def test_grades_too_small_to_gain_anything(name):
    for grade in (1e-17, 5e-324):
        value = rw.parse_measure(name).values(one_query(np.array([grade, 0.0])), np.array([1.0, 0.0]))[0]
        assert value in (0.0, 1.0) or np.isnan(value)


def test_a_cut_off_far_beyond_the_list_costs_nothing():
    assert rw.parse_measure("ndcg@99999999999").values(one_query(np.array([0.0, 1.0])), np.array([1.0, 2.0]))[0] == 1
    assert rw.parse_measure("p@1000000000000").values(one_query(np.array([1.0])), np.zeros(1))[0] == 1e-12


def test_integer_document_ids_compare_as_text_as_in_trec_eval():
    for docid in ([9, 10], ["9", "10"]):
        queries = rw.Queries.from_arrays(np.zeros((2, 1)), [1, 0], [1, 1], docid=docid)
        assert rw.parse_measure("mrr(ties=docid)").values(queries, np.zeros(2))[0] == 1


def test_weights_enter_the_mean():
    queries = rw.Queries.from_arrays(np.zeros((2, 1)), [1, 0], [1, 2], weight=[3, 1])
    assert rw.parse_measure("map").mean(queries, np.zeros(2)) == pytest.approx(0.75)


def test_measures_of_one_tie_rule_share_a_sort_and_keep_their_rows():
    queries = random_queries(np.random.default_rng(0))
    scores = np.random.default_rng(1).normal(size=queries.n_docs)
    names = ["ndcg@3", "map(ties=file)", "err", "p@2(ties=file)", "ndcg(ties=average)"]
    together = compute_values([rw.parse_measure(n).prepare(queries) for n in names], scores)
    for name, row in zip(names, together, strict=True):
        assert row.tolist() == rw.parse_measure(name).values(queries, scores).tolist()


@pytest.mark.parametrize("backend", [rw.Serial(), rw.Threads(1), rw.Threads(3)])
def test_backends_give_the_same_bits(backend):
    queries = rw.make_queries(900, n_docs=30, random_state=0)
    scores = np.random.default_rng(0).normal(size=queries.n_docs)
    one = rw.parse_measure("ndcg@10").values(queries, scores, rw.Serial())
    assert rw.parse_measure("ndcg@10").values(queries, scores, backend).tobytes() == one.tobytes()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ndcg@10", "ndcg@10"),
        ("nDCG@10", "ndcg@10"),
        ("NDCG@10", "ndcg@10"),
        ("nDCG(dcg='exp-log2')@10", "ndcg@10"),
        ("nDCG(dcg='log2')@10", "ndcg@10(gain=linear)"),
        ("MAP", "map"),
        ("AP", "map"),
        ("AP(rel=2)@100", "ap@100(rel=2)"),
        ("map@5", "ap@5"),
        ("ERR@10", "err@10"),
        ("RR@10", "rr@10"),
        ("MRR", "mrr"),
        ("P@5", "p@5"),
        ("P(rel=2)@5", "p@5(rel=2)"),
        ("R@50", "recall@50"),
        ("RBP(p=0.9)", "rbp(p=0.9)"),
        ("ndcg@10( gain = linear , empty = skip )", "ndcg@10(gain=linear,empty=skip)"),
        ("ndcg@10(gain=exp)", "ndcg@10"),
        ("ndcg(dialect=xgboost)", "ndcg@32(dialect=xgboost)"),
        ("ndcg@10(dialect=catboost,gain=exp)", "ndcg@10(dialect=catboost,gain=exp)"),
        ("ndcg@10(dialect=trec_eval,gain=linear)", "ndcg@10(dialect=trec_eval)"),
        ("err(max=data)", "err(max=data)"),
    ],
)
def test_names_parse_and_print(text, printed):
    measure = rw.parse_measure(text)
    assert str(measure) == printed
    assert rw.parse_measure(printed) == measure
    assert hash(rw.parse_measure(printed)) == hash(measure)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "did you mean ndcg@10?"),
        ("ndgc", "did you mean ndcg?"),
        ("ndcg@", "cannot read"),
        ("ndcg@0", "at least 1"),
        ("ndcg@5@6", "two cut-offs"),
        ("ndcg@5()@6", "two cut-offs"),
        ("ndcg(foo=1)", "no option 'foo'"),
        ("ndcg(rel=2)", "no option 'rel'"),
        ("ndcg(gain=cubic)", "expected one of exp, linear, pow2"),
        ("ndcg(gain)", "expected option=value"),
        ("ndcg(gain=exp,gain=linear)", "twice"),
        ("wta@5", "no cut-off"),
        ("rbp(p=1.5)", "between 0 and 1"),
        ("map(rel=many)", "expected a number"),
        ("err(max=2.5)", "whole number"),
        ("err(max=nan)", "whole number"),
        ("err(max=inf)", "whole number"),
        ("map(rel=inf)", "above 0"),
        ("ndcg(dialect=klingon)", "unknown dialect 'klingon'"),
        ("err(dialect=sklearn)", "sklearn does not define err"),
        ("", "cannot read"),
    ],
)
def test_bad_names_say_what_is_wrong(text, message):
    with pytest.raises(rw.InputError, match=message.replace("?", r"\?")):
        rw.parse_measure(text)


@pytest.mark.parametrize("k", [True, 2.5, "3", 0, -1])
def test_bad_cut_offs(k):
    with pytest.raises(rw.InputError, match="whole number of at least 1"):
        rw.NDCG(k)


def test_measures_are_values():
    assert rw.NDCG(10) == rw.parse_measure("ndcg@10")
    assert rw.NDCG(10) != rw.NDCG(5)
    with pytest.raises(AttributeError):
        rw.NDCG(10).k = 5
    assert {rw.P(1): "a"}[rw.parse_measure("p@1")] == "a"


def test_training_is_pessimistic_whatever_the_dialect():
    assert rw.parse_measure("ndcg@10(dialect=letor3)").for_training().ties == "pessimistic"
    assert rw.parse_measure("ndcg@10(dialect=letor3)").for_training().discount == "letor"


@pytest.mark.parametrize(
    ("name", "grades", "message"),
    [
        ("ndcg@5", [0, -1], "grades start at 0"),
        ("ndcg@5", [0, 1000], "use gain=linear"),
        ("err", [0, 5], "err\\(max=5\\)"),
        ("err(max=data)", [0, 2000], "too high"),
        ("err", [0, 4.5], "err\\(max=5\\)"),
        ("ndcg(dialect=letor3)", [0, 3], "has grades up to 2"),
        ("ndcg(dialect=lightgbm)", [0, 0.5], "integer grades only"),
        ("map(ties=docid)", [0, 1], "needs document ids"),
    ],
)
def test_grades_that_a_measure_cannot_take(name, grades, message):
    with pytest.raises(rw.InputError, match=message):
        rw.parse_measure(name).prepare(one_query(np.array(grades, dtype=float)))


def test_scores_are_checked():
    queries = one_query(np.array([0.0, 1.0]))
    with pytest.raises(rw.InputError, match="there are 2 documents"):
        rw.parse_measure("map").values(queries, np.zeros(3))
    with pytest.raises(rw.InputError, match="score 1 is NaN"):
        rw.parse_measure("map").values(queries, np.array([0.0, np.nan]))
    bound = rw.parse_measure("map").prepare(queries)
    with pytest.raises(rw.InputError, match="there are 2 documents"):
        bound.compute_swap_deltas(np.zeros(1), 0)
    with pytest.raises(rw.InputError, match="is NaN"):
        bound.rank(np.array([0.0, np.nan]), 0)
    for query in (-1, 1):
        with pytest.raises(rw.InputError, match="there are 1, counted from 0"):
            bound.rank(np.zeros(2), query)


class TestCustomMeasures:
    def test_values_deltas_and_name(self):
        mine = rw.make_measure(lambda grades: reference.average_precision(grades.tolist()), name="my_ap")
        rng = np.random.default_rng(0)
        queries = random_queries(rng)
        scores = rng.integers(0, 3, queries.n_docs).astype(float)
        assert rw.parse_measure("my_ap") is mine
        assert str(mine) == "my_ap"
        ours, theirs = mine.prepare(queries), rw.parse_measure("map").prepare(queries)
        assert ours.values(scores) == pytest.approx(theirs.values(scores))
        for q in range(len(queries)):
            assert ours.compute_swap_deltas(scores, q) == pytest.approx(
                theirs.compute_swap_deltas(scores, q), abs=1e-12
            )

    def test_out_of_range_is_refused(self):
        bad = rw.make_measure(lambda grades: 1.5, name="too_much")
        with pytest.raises(rw.InputError, match="from 0 to 1"):
            bad.values(one_query(np.array([1.0])), np.zeros(1))

    @pytest.mark.parametrize("name", ["ndcg", "MAP", "with space", "a@b", ""])
    def test_names_that_are_taken_or_unreadable(self, name):
        with pytest.raises(rw.InputError):
            rw.make_measure(lambda grades: 0.0, name=name)
