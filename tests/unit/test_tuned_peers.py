"""Peers that are tuned by validation, and the study that compares AutoRanker with them."""

from __future__ import annotations

import json
import math
from functools import partial
from itertools import count

import numpy as np
import pytest
from benchmarks import auto, auto_methods, peers
from benchmarks.peer_libraries import Fitted, Peer, make_catboost, make_lightgbm, make_xgboost

import rankwright as rw
from rankwright.analysis.significance import compare, randomisation

QUERIES = rw.make_queries(60, n_docs=12, n_features=12, kind="mixed", missing=0.05, random_state=1)
TRAIN, VALID, TEST = (QUERIES.take(range(a, a + 20)) for a in (0, 20, 40))
MEASURE = rw.parse_measure("ndcg@10")


def column(j, queries):
    return np.nan_to_num(queries.X[:, j]).astype(float)


class TestSearch:
    """The search itself, with a library whose models are single features."""

    def make_peer(self, n_tried, refits):
        """Return a peer that spends the time with its last candidate."""
        number = count(1)
        now = {"left": False}

        def fit(params, train, valid, left):
            assert train.n_docs == TRAIN.n_docs
            assert left() > 0.0
            now["left"] = next(number) == n_tried
            return Fitted(partial(column, params["j"]), 7, 14)

        def refit(params, queries, rounds):
            refits.append((params, queries, rounds))
            return Fitted(partial(column, params["j"]), rounds, rounds)

        draws = count(1)
        return Peer("numpy", {"j": 0}, lambda rng: {"j": next(draws)}, fit, refit), now

    def run(self, monkeypatch, n_tried, refit):
        refits = []
        peer, now = self.make_peer(n_tried, refits)
        monkeypatch.setattr(peers, "_seconds_left", lambda end: -1.0 if now["left"] else 1.0)
        return peers.tune(peer, TRAIN, VALID, 1e6, 0, refit), refits

    @pytest.mark.parametrize("n_tried", [1, 4, 9])
    def test_the_best_on_validation_queries_is_fitted_again_on_both(self, monkeypatch, n_tried):
        found, refits = self.run(monkeypatch, n_tried, True)
        values = [MEASURE.mean(VALID, column(j, VALID)) for j in range(n_tried)]  # defaults are feature 0
        assert found.n_tried == n_tried
        assert found.params == {"j": int(np.argmax(values))}
        assert found.valid == pytest.approx(max(values))
        [(params, queries, rounds)] = refits
        assert (params, rounds) == (found.params, 7)
        np.testing.assert_array_equal(queries.y, np.concatenate([TRAIN.y, VALID.y]))
        np.testing.assert_array_equal(queries.sizes, np.concatenate([TRAIN.sizes, VALID.sizes]))
        np.testing.assert_array_equal(queries.X, np.concatenate([TRAIN.X, VALID.X]))

    def test_without_refit_the_candidate_is_returned(self, monkeypatch):
        found, refits = self.run(monkeypatch, 3, False)
        assert refits == []
        assert not found.is_refitted
        np.testing.assert_array_equal(found.scores(TEST), column(found.params["j"], TEST))

    def test_what_is_not_installed_is_named(self, monkeypatch):
        monkeypatch.setattr(peers, "find_peer", lambda name: None)
        assert set(peers.find_missing()) == {"lightgbm", "xgboost", "catboost"}
        with pytest.raises(ImportError, match=r"xgboost is skipped: not installed.*bench"):
            peers.tune_xgboost(TRAIN, VALID, 1.0, 1, 0)


@pytest.mark.parametrize("make", [make_lightgbm, make_xgboost, make_catboost])
class TestLibraries:
    def test_early_stopping_keeps_the_best_round_and_refit_takes_it(self, make):
        peer = make(1, 0)
        pytest.importorskip(peer.module)
        fitted = peer.fit(peer.defaults, TRAIN, VALID, lambda: 1.0)
        assert 1 <= fitted.rounds <= fitted.rounds_tried <= fitted.rounds + 101
        again = peer.refit(peer.defaults, TRAIN, fitted.rounds)
        np.testing.assert_allclose(again.scores(TEST), fitted.scores(TEST), rtol=1e-5, atol=1e-6)
        assert MEASURE.mean(TRAIN, fitted.scores(TRAIN)) > 0.5

    def test_a_fit_ends_when_no_time_is_left(self, make):
        peer = make(1, 0)
        pytest.importorskip(peer.module)
        seconds = iter([1.0, 1.0, 0.0])
        fitted = peer.fit(peer.defaults, TRAIN, VALID, lambda: next(seconds))
        assert fitted.rounds_tried == 3
        assert fitted.rounds <= 3

    def test_every_draw_can_be_fitted(self, make):
        peer = make(1, 0)
        pytest.importorskip(peer.module)
        rng = np.random.default_rng(0)
        for _ in range(8):
            fitted = peer.fit(peer.draw(rng), TRAIN, VALID, lambda: 0.0)
            assert np.isfinite(fitted.scores(TEST)).all()


class TestStudy:
    SETTINGS = auto.Settings(5.0, 1, 0)

    @pytest.fixture
    def methods(self, monkeypatch):
        """Return methods that rank by a feature and count their runs; the data are small."""
        folds = rw.split_folds(QUERIES, 5, random_state=0)
        monkeypatch.setattr(auto, "open_folds", lambda name, folder: folds)
        self.runs, self.compiled = [], []
        monkeypatch.setattr(auto, "compile_kernels", lambda method, settings: self.compiled.append(method))

        def method(j, task):
            self.runs.append(j)
            return auto_methods.Answer(column(j, task.test), math.nan, f"feature {j}")

        return {"auto": partial(method, 0), "lightgbm": partial(method, 1), "MART": partial(method, 2)}

    def run(self, methods, out, settings=SETTINGS, folds=range(1, 6)):
        return auto.run_methods("made", None, methods, folds, settings, out)

    def test_it_goes_on_where_it_was(self, methods, tmp_path):
        assert self.run(methods, tmp_path, folds=[2, 4]) == []
        assert len(self.runs) == 6
        self.run(methods, tmp_path)
        assert len(self.runs) == 15
        self.run(methods, tmp_path)
        assert len(self.runs) == 15

    def test_kernels_are_compiled_once_before_the_first_fold(self, methods, tmp_path):
        self.run(methods, tmp_path)
        assert self.compiled == [methods["auto"], methods["MART"]]  # other libraries have none

    def test_a_failure_is_reported_and_tried_again(self, methods, tmp_path, capsys):
        failed = self.run({**methods, "MART": lambda task: 1 / 0}, tmp_path, folds=[1])
        assert failed == ["made, fold 1, MART"]
        assert "ZeroDivisionError" in capsys.readouterr().out
        assert self.run(methods, tmp_path, folds=[1]) == []
        assert self.runs == [0, 1, 2]

    def test_other_settings_are_refused(self, methods, tmp_path):
        self.run(methods, tmp_path, folds=[1])
        with pytest.raises(rw.InputError, match=r"another folder"):
            self.run(methods, tmp_path, auto.Settings(6.0, 1, 0))
        self.run({"MART": methods["MART"]}, tmp_path, folds=[2])
        path = tmp_path / "made-1-MART.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "settings": {"seconds": 6.0}}))
        with pytest.raises(rw.InputError, match=r"as on the other folds"):
            auto.read_results("made", tmp_path)

    def test_other_queries_are_refused(self, methods, tmp_path):
        self.run(methods, tmp_path, folds=[1])
        path = tmp_path / "made-1-MART.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "qid": ["x"]}))
        with pytest.raises(rw.InputError, match=r"other test queries"):
            auto.read_results("made", tmp_path)

    def test_the_table_has_the_means_of_all_queries_and_the_tests_against_auto(self, methods, tmp_path):
        self.run(methods, tmp_path)
        lines = list(auto.format_table("made", auto.read_results("made", tmp_path)))
        tests = [test for *_, test in rw.split_folds(QUERIES, 5, random_state=0)]
        values = {
            name: np.concatenate([MEASURE.values(test, column(j, test)) for test in tests])
            for j, name in enumerate(methods)
        }
        rows = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in lines if line[:2] == "| "}
        for name, each in values.items():
            assert rows[name][1] == f"{each.mean():.4f}"
        assert rows["auto"][3:8] == [""] * 5
        difference = values["auto"].mean() - values["MART"].mean()
        assert float(rows["MART"][3].replace("−", "-")) == pytest.approx(difference, abs=5e-5)
        p = randomisation(values["auto"], values["MART"])
        assert rows["MART"][5] == ("<0.001" if p < 0.001 else f"{p:.3f}")
        found = next(each for each in compare(values, baseline="auto") if each.second == "MART")
        assert rows["MART"][7] == f"{found.losses}, {found.ties}, {found.wins}"

    def test_the_best_single_ranker_is_chosen_on_validation_queries(self):
        def result(value, valid):
            return auto.Result(np.full(4, value), 2.0, valid)

        results = {
            "auto": {1: result(0.9, math.nan), 2: result(0.9, math.nan)},
            "xgboost": {1: result(0.8, 1.0), 2: result(0.8, 1.0)},
            "MART": {1: result(0.1, 0.7), 2: result(0.2, 0.3)},
            "AdaRank": {1: result(0.3, 0.5), 2: result(0.4, 0.6)},
        }
        [row] = [line for line in auto.format_table("made", results) if line.startswith(f"| {auto.CHOSEN}")]
        assert row.split(" | ")[1] == "0.2500"  # of MART, then of AdaRank
        assert row.split(" | ")[-1] == "4 |"

    def test_a_method_without_all_folds_is_left_out_by_name(self, methods, tmp_path):
        self.run(methods, tmp_path)
        (tmp_path / "made-3-MART.json").unlink()
        lines = list(auto.format_table("made", auto.read_results("made", tmp_path)))
        assert not any(line.startswith("| MART") for line in lines)
        assert any("MART has results of 4 of 5 folds" in line for line in lines)

    def test_compiling_runs_a_method_on_little_data(self):
        seen = []

        def method(task):
            seen.append(task)
            return auto_methods.Answer(column(0, task.test), math.nan, "")

        auto.compile_kernels(method, self.SETTINGS)
        [task] = seen
        assert len(task.train) == len(task.valid) == len(task.test) == 10
        assert (task.seconds, task.n_threads, task.seed) == (10.0, 1, 0)

    def test_every_method_of_peers_and_rankers_is_there(self):
        methods = auto_methods.list_methods()
        assert {"auto", "lightgbm", "xgboost", "catboost", "LambdaMART", "Regression", "DirectRank"} <= set(methods)
        assert not {"AutoRanker", "Blend"} & set(methods)

    def test_rankers_see_no_missing_values_but_trees_do(self):
        task = auto_methods.Task(TRAIN, VALID, TEST, 60.0, 1, 0)
        assert np.isnan(TRAIN.X).any()
        for name in ("Regression", "MART"):
            answer = auto_methods.list_methods()[name](task)
            assert len(answer.scores) == TEST.n_docs
            assert answer.valid > 0.3
        filled = auto_methods.fill_missing(TRAIN, auto_methods.find_medians(TRAIN))
        np.testing.assert_array_equal(np.isnan(filled.X), False)
        kept = ~np.isnan(TRAIN.X)
        np.testing.assert_array_equal(filled.X[kept], TRAIN.X[kept])
        expected = np.nanmedian(TRAIN.X, axis=0)
        np.testing.assert_allclose(filled.X[~kept], np.broadcast_to(expected, TRAIN.X.shape)[~kept], rtol=1e-6)
