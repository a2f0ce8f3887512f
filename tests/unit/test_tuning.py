"""Tuning: weights that are the best there are, gains that are honest, and a command that says so."""

from __future__ import annotations

import gzip
import json
import sys
from itertools import product

import numpy as np
import pytest
import pytrec_eval

import rankwright as rw
from rankwright import cli
from rankwright.data.document_pools import pool_documents
from rankwright.data.run_fusion import normalise_scores
from rankwright.tuning import fusion_problem
from rankwright.tuning import fusion_tuning as fusion
from rankwright.tuning.fusion_result import EQUAL, RRF, TUNED

TREC = "ndcg@10(dialect=trec_eval)"


def make_runs(n_queries=40, n_docs=25, n_runs=2, seed=0, digits=3, kept=0.7):
    """Judgments (of most documents, and of some that no run finds) and noisy runs that miss documents."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, [{} for _ in range(n_runs)]
    for q in range(n_queries):
        relevance = rng.normal(size=n_docs)
        grades = np.clip(np.floor(relevance + 0.7), 0, 3).astype(int)
        qrels[f"q{q:02d}"] = {f"d{i:02d}": int(grades[i]) for i in range(n_docs) if rng.random() < 0.8}
        for r, run in enumerate(runs):
            scores = np.round(relevance + (1 + 0.4 * r) * rng.normal(size=n_docs), digits) * 10**r
            run[f"q{q:02d}"] = {f"d{i:02d}": float(scores[i]) for i in range(n_docs) if rng.random() < kept}
    return qrels, {f"run{r}": run for r, run in enumerate(runs)}


def trec_eval(qrels, run, name):
    """By query; 0 where the run has no answer."""
    values = pytrec_eval.RelevanceEvaluator(qrels, {name}).evaluate(run)
    return {query: values[query][name] if query in values else 0.0 for query in qrels}


def mean_of(measure, qrels, run):
    """The mean measure of a fused run, ranked and judged query by query."""
    pool = pool_documents(list(qrels), [run], qrels)
    queries = rw.Queries(
        np.zeros((len(pool.grades), 1), np.float32), np.nan_to_num(pool.grades), pool.indptr, np.array(pool.qid)
    )
    found = pool.found
    return rw.parse_measure(measure).mean(queries.keep_retrieved(found), pool.scores[found, 0])


class TestWeights:
    @pytest.mark.parametrize("measure", ["ndcg@5", "map", "mrr", "p@3", "err@5", "ndcg"])
    @pytest.mark.parametrize("normalise", ["min-max", "rank"])
    def test_two_runs_exactly(self, measure, normalise):
        """No weights are better: the measure is constant between the weights at which two documents cross."""
        qrels, runs = make_runs(12, 10, seed=3, digits=1)
        found = rw.tune_fusion(qrels, runs, measure=measure, normalise=normalise, folds=None)
        pool = pool_documents(list(qrels), list(runs.values()), qrels)
        X = normalise_scores(pool, normalise).astype(np.float32).astype(float)
        crossings = {0.0, 1.0}
        for rows in np.split(X, pool.indptr[1:-1]):
            for a, b in product(rows, rows):
                slope = (a[0] - b[0]) - (a[1] - b[1])  # of the difference as weight moves to the first run
                if slope and 0 < (at := (b[1] - a[1]) / slope) < 1:
                    crossings.add(at)
        ends = np.array(sorted(crossings))
        kept, y = pool.found, np.nan_to_num(pool.grades)
        documents = rw.Queries(X.astype(np.float32), y, pool.indptr, np.array(pool.qid))
        bound = rw.parse_measure(measure).prepare(documents.keep_retrieved(kept))
        shares = np.concatenate([(ends[1:] + ends[:-1]) / 2, [0.0, 1.0]])
        best = max(bound.values(X[kept] @ np.array([t, 1 - t])).mean() for t in shares)
        assert found.train == pytest.approx(best, abs=1e-9)

    @pytest.mark.parametrize("n_runs", [3, 4])
    def test_more_runs_beat_a_grid_and_chance(self, n_runs):
        qrels, runs = make_runs(30, 20, n_runs)
        found = rw.tune_fusion(qrels, runs, folds=None)
        problem = fusion_problem.FusionProblem.prepare(
            pool_documents(list(qrels), list(runs.values()), qrels),
            rw.parse_measure("ndcg@10"),
            "min-max",
            True,
            rw.Serial(),
        )
        grid = [np.array(w) / 10 for w in product(range(11), repeat=n_runs) if sum(w) == 10]
        tried = [*grid, *np.random.default_rng(0).dirichlet(np.ones(n_runs), 200)]
        assert found.train >= max(problem.compute_mean(w) for w in tried)
        # and no single weight can improve it
        weights = np.array(list(found.weights.values()))
        for run, value in product(range(n_runs), np.linspace(0, 2, 301)):
            moved = weights.copy()
            moved[run] = value
            assert problem.compute_mean(moved) <= found.train + 1e-12

    def test_climbs_start_from_the_best_of_the_grid(self):
        qrels, runs = make_runs(20, n_runs=3)
        pool = pool_documents(list(qrels), list(runs.values()), qrels)
        problem = fusion_problem.FusionProblem.prepare(pool, rw.parse_measure("ndcg@10"), "min-max", True, rw.Serial())
        starts = fusion_problem.StartGrid.evaluate(problem.train, 3, nonnegative=True)
        assert len(starts.weights) == 66 + 1
        assert starts.weights.sum(axis=1) == pytest.approx(1.0)
        for seen in (np.ones(20), np.arange(20) < 5, np.arange(20) >= 5):
            first, *others = starts.choose(seen.astype(float))
            values = [problem.evaluate(weights) @ seen for weights in starts.weights]
            assert problem.evaluate(first) @ seen == max(values)
            assert len({tuple(weights) for weights in (first, *others)}) == 20

    def test_they_add_up_to_1_and_are_not_negative(self):
        qrels, runs = make_runs(seed=5, n_runs=3)
        weights = np.array(list(rw.tune_fusion(qrels, runs, folds=3).weights.values()))
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)

    def test_two_runs_with_negative_weights(self):
        """The best weights may both be negative."""
        qrels = {"1": {"a": 1}, "2": {"a": 1}}
        words = {"1": {"a": 7.0, "b": 1.0, "c": 9.0}, "2": {"a": 6.0, "b": 8.0, "c": 0.0}}
        dense = {"1": {"a": 3.0, "b": 4.0, "c": 3.0}, "2": {"a": 2.0, "b": 1.0, "c": 6.0}}
        options = {"measure": "mrr", "normalise": "none", "folds": 1}
        assert rw.tune_fusion(qrels, [words, dense], nonnegative=False, **options).train == 0.75

    def test_a_run_upside_down_needs_a_negative_weight(self):
        qrels, runs = make_runs()
        runs["run0"] = {q: {d: -s for d, s in found.items()} for q, found in runs["run0"].items()}
        kept = rw.tune_fusion(qrels, runs, normalise="z", folds=None)
        free = rw.tune_fusion(qrels, runs, normalise="z", folds=None, nonnegative=False)
        assert kept.weights["run0"] == pytest.approx(0.0, abs=0.1)
        assert free.weights["run0"] < -0.1
        assert free.train > kept.train
        assert "- " in str(free).splitlines()[0]

    def test_a_useless_run_gets_next_to_nothing(self):
        qrels, runs = make_runs(60)
        rng = np.random.default_rng(0)
        runs["noise"] = {q: {d: float(rng.normal()) for d in found} for q, found in runs["run0"].items()}
        assert rw.tune_fusion(qrels, runs).weights["noise"] < 0.15

    def test_whatever_the_order_and_the_threads(self):
        qrels, runs = make_runs(n_runs=3)
        first = rw.tune_fusion(qrels, runs)
        again = rw.tune_fusion(qrels, runs, backend=rw.Serial())
        reverse = {name: {q: dict(reversed(run[q].items())) for q in reversed(run)} for name, run in runs.items()}
        other = rw.tune_fusion(dict(reversed(qrels.items())), reverse)
        for result in (again, other):
            assert result.weights == first.weights
            assert result.fold_weights == first.fold_weights
            assert result.held_out == pytest.approx(first.held_out, abs=1e-12)
        assert rw.tune_fusion(qrels, runs, random_state=1).fold_weights != first.fold_weights

    def test_shown_weights_reach_what_is_promised(self):
        for seed in range(5):
            qrels, runs = make_runs(seed=seed, n_runs=3)
            found = rw.tune_fusion(qrels, runs, folds=None)
            shown = {name: round(weight, found.digits) for name, weight in found.weights.items()}
            for name, weight in shown.items():
                assert f"{weight:.{found.digits}f} {name}" in str(found) or weight == 0
            rounded = fusion_problem.FusionProblem.prepare(
                pool_documents(list(qrels), list(runs.values()), qrels),
                rw.parse_measure("ndcg@10"),
                "min-max",
                True,
                rw.Serial(),
            )
            assert rounded.compute_mean(np.array(list(shown.values()))) == found.train


class TestTrecEval:
    @pytest.mark.parametrize(
        ("measure", "name"),
        [(TREC, "ndcg_cut_10"), ("map(dialect=trec_eval)", "map"), ("p@5(dialect=trec_eval)", "P_5")],
    )
    @pytest.mark.parametrize("normalise", ["min-max", "none"])
    def test_a_written_run_has_the_value_that_is_promised(self, tmp_path, measure, name, normalise):
        """Judged documents that no run found and unjudged ones among them."""
        qrels, runs = make_runs(seed=2)
        found = rw.tune_fusion(qrels, runs, measure=measure, normalise=normalise)
        found.write_run(tmp_path / "fused.run")
        values = trec_eval(qrels, rw.read_run(tmp_path / "fused.run"), name)
        assert found.train == pytest.approx(np.mean(list(values.values())), abs=1e-12)

    def test_each_run_alone(self):
        qrels, runs = make_runs(seed=4, digits=1)
        silent = [f"q{i:02d}" for i in range(3, 20)]
        for query in silent:
            del runs["run1"][query]
        found = rw.tune_fusion(qrels, runs, measure=TREC)
        for name, run in runs.items():
            values = trec_eval(qrels, run, "ndcg_cut_10")
            assert dict(zip(found.qid.tolist(), found.per_query[name].tolist(), strict=True)) == pytest.approx(values)
        assert not found.per_query["run1"][3:20].any()
        assert found.counts.silent == {"run0": 0, "run1": len(silent)}

    def test_rrf(self):
        qrels, runs = make_runs(seed=4, n_runs=3)
        fused = {}
        for query in qrels:
            for run in runs.values():
                for rank, name in enumerate(sorted(run[query], key=run[query].get, reverse=True), 1):
                    scores = fused.setdefault(query, {})
                    scores[name] = scores.get(name, 0.0) + 1 / (60 + rank)
        found = rw.tune_fusion(qrels, runs, measure="map(dialect=trec_eval)")
        values = trec_eval(qrels, fused, "map")
        assert found.per_query[RRF].mean() == pytest.approx(np.mean(list(values.values())), abs=0.002)  # but for ties

    @pytest.mark.parametrize("alike", [False, True])
    def test_pruning_changes_nothing(self, monkeypatch, alike):
        """Where two runs are alike, the first k documents precede all others whatever the weights."""
        qrels, runs = make_runs(n_docs=60, n_runs=3, digits=1)
        if alike:
            runs = {"a": runs["run0"], "b": runs["run0"]}
        pruned = rw.tune_fusion(qrels, runs, measure="ndcg@5", folds=3)
        monkeypatch.setattr(fusion_problem, "find_reachable_documents", lambda X, *rest: np.ones(len(X), bool))
        whole = rw.tune_fusion(qrels, runs, measure="ndcg@5", folds=3)
        assert pruned.weights == pytest.approx(whole.weights, abs=1e-12)
        for name, values in whole.per_query.items():
            assert pruned.per_query[name] == pytest.approx(values, abs=1e-12)


class TestFolds:
    def test_a_fold_never_sees_its_own_judgments(self):
        """Other grades of a fold's queries change the weights of every fit but its own."""
        qrels, runs = make_runs(20, 15, n_runs=3)
        before = rw.tune_fusion(qrels, runs, folds=4)
        parts = fusion._cut_queries(list(qrels), np.ones(20, dtype=bool), 4, np.random.default_rng(0))
        assert sorted(np.concatenate(parts).tolist()) == list(range(20))
        for fold, part in enumerate(parts):
            changed = {q: dict(grades) for q, grades in qrels.items()}
            for i in part:
                grades = changed[f"q{i:02d}"]
                changed[f"q{i:02d}"] = {d: 3 - g for d, g in grades.items()}
            after = rw.tune_fusion(changed, runs, folds=4)
            assert after.fold_weights[fold] == before.fold_weights[fold]
            assert all(after.fold_weights[f] != before.fold_weights[f] for f in range(4) if f != fold)

    def test_held_out_values_are_those_of_the_folds_weights(self):
        qrels, runs = make_runs(12, 15)
        found = rw.tune_fusion(qrels, runs, folds=3)
        problem = fusion_problem.FusionProblem.prepare(
            pool_documents(list(qrels), list(runs.values()), qrels),
            rw.parse_measure("ndcg@10"),
            "min-max",
            True,
            rw.Serial(),
        )
        for part, weights in zip(
            fusion._cut_queries(list(qrels), np.ones(12, dtype=bool), 3, np.random.default_rng(0)),
            found.fold_weights,
            strict=True,
        ):
            expected = problem.evaluate(np.array(list(weights.values())))[part]
            assert found.per_query[TUNED][part].tolist() == expected.tolist()
        assert found.held_out == pytest.approx(found.per_query[TUNED].mean())

    def test_noise_has_a_gain_on_its_own_queries_only(self):
        """Grades that no run knows anything of: what is fitted to them is worth nothing elsewhere."""
        qrels, runs = make_runs(50, n_runs=3)
        rng = np.random.default_rng(1)
        qrels = {q: {d: int(rng.random() < 0.3) for d in grades} for q, grades in qrels.items()}
        found = rw.tune_fusion(qrels, runs)
        [equal] = [gain for gain in found.gains if gain.over == EQUAL]
        assert found.train > equal.value + 0.01
        assert equal.low < 0 < equal.high or equal.difference < 0

    def test_fewer_folds_where_there_are_few_queries(self):
        qrels, runs = make_runs(3)
        assert len(rw.tune_fusion(qrels, runs).fold_weights) == 3
        assert len(rw.tune_fusion(qrels, runs, folds=2).fold_weights) == 2

    @pytest.mark.parametrize("folds", [None, 1])
    def test_without_folds_it_says_so(self, folds):
        found = rw.tune_fusion(*make_runs(10), folds=folds)
        assert found.fold_weights == []
        assert np.isnan(found.held_out)
        assert found.to_json()["held_out"] is None
        assert "without folds, gains are too good" in str(found)
        assert "held-out" not in str(found)

    def test_one_query_has_no_folds(self):
        found = rw.tune_fusion(*make_runs(1))
        assert found.fold_weights == []
        assert str(found)

    def test_gains_are_paired_differences(self):
        found = rw.tune_fusion(*make_runs(n_runs=3))
        assert [gain.over for gain in found.gains] == ["run0", "run1", "run2", RRF, EQUAL]
        for gain in found.gains:
            d = found.per_query[TUNED] - found.per_query[gain.over]
            assert gain.difference == pytest.approx(d.mean(), abs=1e-9)
            assert gain.value == pytest.approx(found.per_query[gain.over].mean())
            assert gain.low < gain.difference < gain.high
            assert gain.wins + gain.ties + gain.losses == 40
            assert 0 < gain.p <= 1


class TestData:
    def test_what_is_left_out_is_counted(self):
        qrels = {"q1": {"a": 1, "b": 0, "lost": 2}, "q2": {"a": 1}, "q3": {"a": 0, "c": 1}, "q9": {"a": 1}}
        runs = {
            "words": {"q1": {"a": 3.0, "x": 2.0}, "q3": {"c": 1.0, "a": 0.5}, "q7": {"a": 1.0}},
            "dense": {"q1": {"b": 0.9}, "q2": {"y": 0.3, "a": 0.2}, "q8": {"a": 1.0}, "q7": {"b": 1.0}},
        }
        found = rw.tune_fusion(qrels, runs, folds=2)
        counts = found.counts
        assert (counts.queries, counts.unanswered, counts.unjudged) == (3, 1, 2)
        assert counts.silent == {"words": 1, "dense": 1}
        assert (counts.documents, counts.documents_unjudged) == (7, 2)
        assert (counts.relevant, counts.relevant_missed) == (4, 1)
        assert found.qid.tolist() == ["q1", "q2", "q3"]
        text = str(found)
        assert "1 judged query that no run answers: left out." in text
        assert "2 queries of the runs without judgments: left out." in text
        assert "Relevant documents that no run found: 1 of 4." in text
        assert "words does not answer 1 query, and counts 0 there." in text
        assert found.fuse().keys() == {"q1", "q2", "q3", "q7", "q8"}  # judged or not
        assert "lost" not in found.fuse()["q1"]

    def test_judged_shares(self):
        """By hand: of the first 2, the judged ones; where there are fewer than 2, of those."""
        qrels = {"q1": {"a": 1, "b": 0, "c": 0}, "q2": {"a": 1}}
        words = {"q1": {"x": 3.0, "a": 2.0, "b": 1.0}, "q2": {"a": 5.0}}
        dense = {"q1": {"c": 3.0, "a": 2.0, "x": 1.0}}
        found = rw.tune_fusion(qrels, {"words": words, "dense": dense}, measure="ndcg@2")
        assert found.judged_at == 2
        assert found.judged["words"] == (1 / 2 + 1) / 2
        assert found.judged["dense"] == 1.0  # of the query that it answers
        assert rw.tune_fusion(qrels, [words, dense], measure="map").judged_at == 10

    def test_judged_shares_of_ties_are_means(self):
        qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
        tied = {"q1": {"a": 1.0, "x": 1.0, "y": 1.0}, "q2": {"b": 2.0, "x": 1.0}}
        found = rw.tune_fusion(qrels, {"tied": tied, "other": tied}, measure="p@1")
        assert found.judged["tied"] == pytest.approx((1 / 3 + 1) / 2)

    def test_queries_without_a_relevant_document(self):
        qrels, runs = make_runs(12)
        qrels["q05"] = dict.fromkeys(qrels["q05"], 0)
        counted = rw.tune_fusion(qrels, runs, folds=3)
        assert counted.per_query[TUNED][5] == 0.0
        skipped = rw.tune_fusion(qrels, runs, measure="ndcg@10(empty=skip)", folds=3)
        assert np.isnan(skipped.per_query[TUNED][5])
        assert np.isnan(skipped.per_query["run0"][5])
        assert skipped.train == pytest.approx(counted.train * 12 / 11)
        assert skipped.held_out == pytest.approx(np.nanmean(skipped.per_query[TUNED]))
        one = rw.tune_fusion(qrels, runs, measure="ndcg@10(empty=1)", folds=3)
        assert one.per_query[TUNED][5] == 1.0

    def test_single_documents_and_constants(self):
        qrels = {"q1": {"a": 1}, "q2": {"a": 1, "b": 0}}
        runs = {
            "x": {"q1": {"a": 1.0}, "q2": {"a": 2.0, "b": 2.0}},
            "y": {"q1": {"a": 7.0}, "q2": {"a": 3.0, "b": 1.0}},
        }
        found = rw.tune_fusion(qrels, runs, measure="mrr")
        assert found.train == 1.0
        assert found.per_query["x"].tolist() == [1.0, 0.5]  # a tie is no advantage

    def test_a_measure_of_ones_own(self):
        rw.make_measure(lambda grades: float(grades[:2].max() >= 2), name="good_pair")
        qrels, runs = make_runs(15, 8)
        runs["run1"].pop("q02")
        found = rw.tune_fusion(qrels, runs, measure="good_pair", folds=3)
        assert found.measure == "good_pair"
        assert found.train >= max(gain.value for gain in found.gains)
        assert found.train == mean_of("good_pair", qrels, found.fuse())

    def test_data_dependent_options_are_settled_on_all_queries(self):
        qrels, runs = make_runs(10)
        assert rw.tune_fusion(qrels, runs, measure="err@5(max=data)", folds=2).measure == "err@5(max=3)"

    def test_files_compressed_and_unicode(self, tmp_path):
        qrels = {"ç": {"naïve": 1, "漢字": 0}, "2": {"b": 1}}
        runs = [{"ç": {"naïve": 0.5, "漢字": 0.75}, "2": {"b": 1.0, "c": 2.0}}, {"ç": {"naïve": 2.0}, "2": {"c": 0.5}}]
        (tmp_path / "qrels").write_text(
            "".join(f"{q} 0 {d} {g}\n" for q, docs in qrels.items() for d, g in docs.items())
        )
        paths = [tmp_path / "a.run", tmp_path / "b.run.gz"]
        for path, run in zip(paths, runs, strict=True):
            text = "".join(f"{q} Q0 {d} 1 {s} t\n" for q, docs in run.items() for d, s in docs.items()).encode()
            path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        read, given = rw.tune_fusion(tmp_path / "qrels", paths), rw.tune_fusion(qrels, runs)
        assert list(read.weights) == ["a", "b"]
        assert list(read.weights.values()) == list(given.weights.values())
        assert read.fuse() == given.fuse()

    def test_new_runs(self, tmp_path):
        qrels, runs = make_runs(10)
        found = rw.tune_fusion(qrels, runs, folds=None)
        assert found.fuse(runs) == found.fuse() == found.fuse(list(runs.values()))
        assert found.fuse(dict(reversed(runs.items()))) == found.fuse()  # by name
        new = [{"n": {"a": 2.0, "b": 1.0}}, {"n": {"c": 5.0}}]
        a, b = found.weights.values()
        assert found.fuse(new) == {"n": pytest.approx({"a": a, "c": b, "b": 0.0})}
        found.write_run(tmp_path / "n.run", new, depth=1, tag="mine")
        [line] = (tmp_path / "n.run").read_text().splitlines()
        assert line.split()[5] == "mine"
        for wrong in (new[:1], {"run0": new[0], "other": new[1]}, [*new, *new]):
            with pytest.raises(rw.InputError, match="expected run0, run1"):
                found.fuse(wrong)
        with pytest.raises(rw.InputError, match="depth=0"):
            found.fuse(depth=0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"runs": make_runs(3)[1]["run0"]}, "expected values by query and document"),
            ({"runs": [make_runs(3)[1]["run0"]]}, "1 run; expected at least two"),
            ({"runs": []}, "0 run; expected at least two"),
            ({"runs": {TUNED: {}, "b": {}}}, "cannot be called 'tuned weights'"),
            ({"qrels": {"other": {"a": 1}}}, "no query of run0 is judged: the judgments have 'other', the run 'q00'"),
            ({"runs": {"a": make_runs(3)[1]["run0"], "b": {"z1": {"d": 1.0}}}}, "no query of b is judged: .*'q00', the run 'z1'"),
            ({"nonnegative": "no"}, "nonnegative='no'"),
            ({"random_state": -1}, "random_state=-1"),
            ({"normalise": "minmax"}, "did you mean min-max?"),
            ({"measure": "ndgc"}, "did you mean ndcg"),
            ({"folds": 0}, "folds=0; expected a whole number"),
            ({"folds": 2.5}, "folds=2.5; expected a whole number"),
            ({"qrels": {"q00": {"d00": 0}}, "measure": "map(empty=skip)"}, "skips every judged query"),
            ({"measure": "err(max=1)"}, "grade"),
        ],
    )  # fmt: skip
    def test_mistakes(self, options, message):
        qrels, runs = make_runs(3)
        given = {"qrels": qrels, "runs": runs} | options
        with pytest.raises(rw.InputError, match=message):
            rw.tune_fusion(given.pop("qrels"), given.pop("runs"), **given)


class TestNames:
    def test_a_list_goes_by_name_where_names_are_known(self, tmp_path):
        qrels, runs = make_runs(6)
        paths = []
        for name, table in runs.items():
            lines = (f"{q} Q0 {d} 1 {s} t\n" for q, docs in table.items() for d, s in docs.items())
            (tmp_path / f"{name}.run").write_text("".join(lines))
            paths.append(tmp_path / f"{name}.run")
        found = rw.tune_fusion(qrels, paths)
        assert found.fuse(paths[::-1]) == found.fuse(paths) == found.fuse()

    def test_silent_runs_where_nothing_is_relevant(self):
        """A query without a relevant document has its one value, also for a run that does not answer it."""
        qrels = {"1": {"a": 1}, "2": {"a": 0}}
        full = {"1": {"a": 1.0, "b": 2.0}, "2": {"a": 2.0, "b": 1.0}}
        found = rw.tune_fusion(qrels, {"full": full, "part": {"1": full["1"]}}, measure="ndcg@10(empty=1)", folds=1)
        assert found.per_query["part"].tolist() == found.per_query["full"].tolist()

    def test_no_gain_is_not_a_loss(self):
        qrels, runs = make_runs(6)
        found = rw.tune_fusion(qrels, {"a": runs["run0"], "b": dict(runs["run0"])})
        assert "-0.0000" not in str(found)
        assert "-0.0," not in json.dumps(found.to_json())

    def test_skipped_queries_are_not_counted(self):
        qrels = {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 0}}
        runs = [{q: {"a": 1.0, "b": float(i)} for q in qrels} for i in (0, 2)]
        assert "on 2 queries" in str(rw.tune_fusion(qrels, runs, measure="ndcg@10(empty=skip)"))


class TestText:
    def test_not_better_is_said_plainly(self):
        """The first run is the judgments themselves."""
        qrels, runs = make_runs(20)
        runs["run0"] = {q: {d: float(g) + 0.001 * int(d[1:]) for d, g in docs.items()} for q, docs in qrels.items()}
        found = rw.tune_fusion(qrels, runs)
        assert "The tuned weights are not better than run0 on held-out queries." in str(found)

    @pytest.mark.parametrize(("n_queries", "kept", "chance"), [(200, 0.7, True), (400, 1.0, False)])
    def test_better_is_said_with_its_p_value(self, n_queries, kept, chance):
        found = rw.tune_fusion(*make_runs(n_queries, kept=kept))
        rival = max(found.gains, key=lambda gain: gain.value)
        said = str(found)
        assert f"The tuned weights are +{rival.difference:.4f} ahead of the next best, {rival.over}" in said
        assert (rival.p >= 0.05) == ("may be chance" in said) == chance

    def test_the_table(self):
        found = rw.tune_fusion(*make_runs(n_runs=3))
        lines = str(found).splitlines()
        assert lines[0].startswith("score = 0.")
        rows = {line.split("  ")[0]: line for line in lines}
        for gain in found.gains:
            assert f"{gain.value:.4f}" in rows[gain.over]
            assert f"[{gain.low:.4f}, {gain.high:.4f}]" in rows[gain.over]
        assert f"{found.held_out:.4f}" in rows[TUNED]
        assert f"Fitted to all queries, they reach {found.train:.4f} on them." in lines
        low, high = (end(w["run1"] for w in found.fold_weights) for end in (min, max))
        assert f"{low:.2f} to {high:.2f}" in rows["run1"]


@pytest.fixture
def folder(tmp_path):
    qrels, runs = make_runs(15)
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, docs in qrels.items() for d, g in docs.items()))
    for name, run in runs.items():
        lines = (f"{q} Q0 {d} 1 {s} t\n" for q, docs in run.items() for d, s in docs.items())
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return tmp_path


def run(capsys, *arguments):
    status = cli.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


class TestCommand:
    def test_the_whole_job(self, folder, capsys):
        out = folder / "fused.run"
        status, said, err = run(
            capsys, "tune", "--qrels", folder / "qrels", "--run", folder / "run0.run", "--run", f"mine={folder}/run1.run",
            "--measure", "map", "--out", out, "--depth", 5,
        )  # fmt: skip
        assert (status, err) == (0, "")
        expected = rw.tune_fusion(
            folder / "qrels", {"run0": folder / "run0.run", "mine": folder / "run1.run"}, measure="map"
        )
        assert said == f"{expected}\nfused run: {out}\n"
        assert rw.read_run(out) == expected.fuse(depth=5)

    def test_json_equals_python(self, folder, capsys):
        runs = [folder / "run0.run", folder / "run1.run"]
        options = ["--folds", 3, "--seed", 7, "--normalise", "z", "--negative", "--json"]
        _, said, _ = run(capsys, "tune", "--qrels", folder / "qrels", "--run", runs[0], "--run", runs[1], *options)
        expected = rw.tune_fusion(
            folder / "qrels", runs, folds=3, random_state=7, normalise="z", nonnegative=False
        ).to_json()
        assert json.loads(said, parse_constant=pytest.fail) == expected | {"out": None}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--run", "{f}/run0.run"], "1 run; expected at least two"),
            ([], "Missing option '--run'"),
            (["--run", "{f}/run0.run", "--run", "{f}/no.run"], "no.run: No such file"),
            (["--run", "{f}/run0.run", "--run", "{f}/run0.run"], "another run is called run0; use NAME=FILE"),
            (["--run", "a={f}/run0.run", "--run", "a={f}/run1.run"], "another run is called a"),
            (["--run", "={f}/run0.run", "--run", "{f}/run1.run"], "expected FILE or NAME=FILE"),
            (["--run", "{f}/run0.run", "--run", "{f}/qrels"], "qrels:1: 4 fields; expected 'qid Q0 docid rank score tag'"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--normalise", "max"], "did you mean min-max?"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--measure", "ndgc"], "did you mean ndcg?"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--folds", "0"], "folds=0"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--depth", "0"], "--depth 0: expected at least 1"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--out", "{f}/no/x"], "there is no folder"),
            (["--run", "{f}/run0.run", "--run", "{f}/alien.run"], "alien.run:1: found 'high'"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--seed", "-1"], "random_state=-1"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--out", "{f}/run1.run"], "one of the files that are read"),
            (["--run", "{f}/run0.run", "--run", "{f}/run1.run", "--out", "{f}/qrels"], "one of the files that are read"),
        ],
    )  # fmt: skip
    def test_one_line_status_2_and_nothing_written(self, folder, capsys, arguments, message):
        (folder / "alien.run").write_text("q00 Q0 d00 1 high t\n")
        before = sorted(folder.iterdir())
        filled = [argument.format(f=folder) for argument in arguments]
        if "--out" not in filled:
            filled += ["--out", str(folder / "fused.run")]
        status, out, err = run(capsys, "tune", "--qrels", folder / "qrels", *filled)
        assert (status, out) == (2, "")
        assert err.startswith("rankwright: ")
        assert message in err
        assert err.count("\n") == 1
        assert sorted(folder.iterdir()) == before

    def test_progress_goes_to_a_terminal_only(self, folder, capsys, monkeypatch):
        arguments = ["tune", "--qrels", folder / "qrels", "--run", folder / "run0.run", "--run", folder / "run1.run"]
        assert run(capsys, *arguments)[2] == ""
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        assert "fitting" in run(capsys, *arguments)[2]

    def test_a_name_with_an_equals_sign_may_be_a_file(self, folder, capsys):
        (folder / "k=60.run").write_text((folder / "run1.run").read_text())
        _, out, _ = run(
            capsys,
            "tune",
            "--qrels",
            folder / "qrels",
            "--run",
            folder / "run0.run",
            "--run",
            folder / "k=60.run",
            "--json",
        )
        assert list(json.loads(out)["weights"]) == ["run0", "k=60"]
