"""The simulation of smoothing: its numbers against formulas and rankers, its files, its mistakes."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import rankwright as rw
from rankwright import InputError, cli
from rankwright.data.folds import split_folds
from rankwright.measures import parse_measure
from rankwright.optimisers.landscape import MeasureProfile
from rankwright.papers.simulation import FoldData, simulate, smoothing
from rankwright.papers.simulation.smoothing import smoothing_data as lines
from rankwright.papers.simulation.smoothing import smoothing_tables as tables
from rankwright.papers.simulation.smoothing.smoothing_data import (
    CHOSEN,
    DIRECTIONS,
    SIGMAS,
    TRUE,
    Annealing,
    LineView,
    SmoothedLine,
    anneal_fold,
    draw_line,
    fold_mean,
    reach,
)
from rankwright.papers.simulation.smoothing.smoothing_facts import (
    compute_annealing_facts,
    compute_line_facts,
    count_local_maxima,
    find,
)
from rankwright.papers.simulation.smoothing.smoothing_page import make_claims_grid, make_page
from rankwright.papers.simulation.smoothing.smoothing_tables import format_text, make_tables

FILES = ["annealing.csv", "figure1.csv", "figure2.csv", "folds.csv", "lines.csv"]
ALPHAS = (0.1, 10.0, 1e9)
SEED = 5
STEPS = 80
MEASURE = parse_measure("ndcg@50")


@pytest.fixture(scope="module", autouse=True)
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "STEPS", STEPS)
        patch.setattr(lines, "ALPHAS", ALPHAS)
        patch.setattr(tables, "ALPHAS", ALPHAS)
        yield


@pytest.fixture(scope="module")
def folds():
    return split_folds(rw.make_queries(30, n_docs=15, n_features=8, noise=2.0, random_state=1), 3, 1)


@pytest.fixture(scope="module")
def found(folds):
    return find(MEASURE, SEED, FoldData("made up", folds))


def read(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def soft_ndcg(queries, scores, sigma):
    """The mean of eq. (8), as it is printed; no query has more than 50 documents."""
    values = []
    for start, stop in zip(queries.indptr[:-1], queries.indptr[1:], strict=True):
        f, gain = scores[start:stop], 2.0 ** queries.y[start:stop] - 1
        discount = 1 / np.log2(1 + np.arange(1, len(f) + 1))
        e = np.exp(-((f[:, None] - np.sort(f)[::-1]) ** 2) / sigma)
        ideal = (np.sort(gain)[::-1] * discount).sum()
        values.append((gain @ (e / e.sum(axis=0)) * discount).sum() / ideal if ideal else 0.0)
    return np.mean(values)


class TestLines:
    @pytest.mark.parametrize(
        "view", [LineView("mean", 1, "wide"), LineView("mean", 3, "close"), LineView("one query", 1, "close")]
    )
    def test_values_are_those_of_the_formula(self, folds, found, view):
        train = folds[0].train
        mean, deviation = train.X.mean(axis=0, dtype=float), train.X.std(axis=0, dtype=float)
        varies = deviation > 0
        scaled = np.divide(train.X - mean, deviation, out=np.zeros(train.X.shape), where=varies)
        w_rand = np.random.default_rng(SEED).standard_normal((DIRECTIONS, len(mean)))[view.direction - 1]
        queries, line = train, found.lines[view]
        if view.queries == "one query":
            relevant = [int((train.y[a:b] > 0).sum()) for a, b in zip(train.indptr, train.indptr[1:])]
            at = relevant.index(max(relevant))
            scaled = scaled[train.indptr[at] : train.indptr[at + 1]]
            queries = train.take([at])
        for i in range(0, STEPS + 1, 16):
            scores = scaled @ (found.folds[0].coef * deviation + line.t[i] * w_rand)
            for sigma in SIGMAS:
                assert line.values[sigma][i] == pytest.approx(soft_ndcg(queries, scores, sigma), abs=1e-5)
            assert line.values[TRUE][i] == pytest.approx(MEASURE.mean(queries, scores), abs=1e-9)

    def test_lines_meet_the_annealing_at_its_end(self, found):
        fold = found.folds[0]
        last = fold.by_alpha[fold.chosen]
        for view, line in found.lines.items():
            assert line.t[STEPS // 2] == 0.0
            if view.queries == "mean":
                assert line.values[2.0**-6][STEPS // 2] == pytest.approx(last.smooth[-1], abs=1e-9)
                assert line.values[TRUE][STEPS // 2] == pytest.approx(last.train[-1], abs=1e-9)

    def test_less_smoothing_is_nearer_to_the_measure_and_less_smooth(self, found):
        for view, own in found.line_facts.items():
            if view.queries == "mean":
                assert own[64.0].distance > own[1.0].distance > own[2.0**-6].distance > own[2.0**-10].distance > 0
                assert 10 * own[64.0].maxima < own[TRUE].maxima
                assert own[TRUE].distance == 0.0
                assert own[TRUE].maxima <= len(found.lines[view].profile.times)

    def test_queries_count_by_their_weight(self, folds, found):
        train = folds[0].train
        weight = np.arange(1.0, len(train) + 1)
        weighted = train.replace(weight=weight)
        way = np.ones(train.n_features)
        got = draw_line(weighted, MEASURE, found.folds[0].coef, way, 1.0)
        parts = [draw_line(train.take([i]), MEASURE, found.folds[0].coef, way, 1.0) for i in range(len(train))]
        for sigma in (1.0, TRUE):
            mean = np.average([part.values[sigma] for part in parts], axis=0, weights=weight)
            np.testing.assert_allclose(got.values[sigma], mean, atol=1e-9)

    def test_ends_follow_the_weights(self):
        assert reach(np.array([0.3, -0.3])) == (6.0, 0.6)
        assert reach(np.array([0.0, 0.012 * np.sqrt(2)])) == (0.2, 0.02)
        assert reach(np.zeros(3)) == (20.0, 2.0)


class TestFacts:
    @pytest.mark.parametrize("seed", range(10))
    def test_local_maxima_against_looking_at_each_plateau(self, seed):
        values = np.random.default_rng(seed).integers(0, 4, 40).astype(float)
        count, i = 0, 0
        while i < len(values):
            j = i
            while j + 1 < len(values) and values[j + 1] == values[i]:
                j += 1
            inside = i > 0 and j < len(values) - 1
            count += inside and bool(values[i - 1] < values[i] > values[j + 1])
            i = j + 1
        assert count_local_maxima(values) == count

    def test_a_line(self):
        true = np.array([0.0, 1.0, 0.0, 0.0, 0.5])
        profile = MeasureProfile(np.array([0.5, 1.5, 2.5, 3.5]), np.array([0.0, 1.0, 0.0, 0.7, 0.5]))
        facts = compute_line_facts(
            SmoothedLine(np.arange(5.0), {1.0: np.array([0.0, 0.1, 0.2, 0.4, 0.3]), TRUE: true}, profile)
        )
        assert facts[1.0] == (1, pytest.approx((0.9 + 0.2 + 0.4 + 0.2) / 5), 3.0, 0.0)
        assert facts[TRUE] == (2, 0.0, 1.0, 1.0)  # the profile has a maximum between two points

    def test_an_annealing(self):
        sigma = np.array([np.inf, 4.0, 2.0, 1.0, 0.5])
        own = Annealing(
            sigma,
            np.array([0.2, 0.3, 0.1, 0.4, 0.5]),
            np.array([0.9, 0.5, 0.5995, 0.6, 0.4]),
            np.array([np.nan, 0.1, 0.2, 0.3, 0.4]),
        )
        facts = compute_annealing_facts(own)
        assert (facts.train_start, facts.train_first, facts.train_last) == (0.2, 0.3, 0.5)
        assert (facts.rises, facts.halvings, facts.train_near) == (2, 3, 0.5)
        assert (facts.test_start, facts.test_first, facts.test_last) == (0.9, 0.5, 0.4)
        assert (facts.test_best, facts.best_sigma, facts.test_near) == (0.6, 1.0, 2.0)
        assert (facts.smooth_first, facts.smooth_last) == (0.1, 0.4)


class TestAnnealing:
    def test_is_what_smoothrank_does(self, folds, found):
        """The regression and the largest alpha, which a path begins with, are those of a fit with validation."""
        train, valid, test = folds[0]
        own = found.folds[0].by_alpha[max(ALPHAS)]
        ranker = rw.SmoothRank(measure=MEASURE, k=None, alpha=max(ALPHAS)).fit(train, valid=valid)
        assert own.sigma[1:].tolist() == [row["sigma"] for row in ranker.history_]
        np.testing.assert_allclose(own.train[1:], [row["train"] for row in ranker.history_], rtol=1e-12)
        np.testing.assert_allclose(own.smooth[1:], [1 - row["loss"] / len(train) for row in ranker.history_], rtol=1e-9)
        assert own.test[-1] == pytest.approx(MEASURE.mean(test, ranker.predict(test)), abs=1e-12)

    def test_values_at_a_sigma_are_those_of_a_fit_that_ends_there(self, folds, found):
        train, valid, test = folds[0]
        start = rw.select(rw.Regression(measure=MEASURE), rw.Regression.default_grid, train, valid)
        for last in (64.0, 1.0):
            ranker = rw.SmoothRank(measure=MEASURE, k=None, start=start.coef_, last_sigma=last)
            for alpha, fitted in zip(ALPHAS, ranker.fit_path(ALPHAS, train), strict=True):
                own = found.folds[0].by_alpha[alpha]
                at = own.sigma.tolist().index(last)
                assert own.train[at] == pytest.approx(MEASURE.mean(train, fitted.predict(train)), abs=1e-12)
                assert own.test[at] == pytest.approx(MEASURE.mean(test, fitted.predict(test)), abs=1e-12)
                assert own.smooth[at] == pytest.approx(soft_ndcg(train, fitted.predict(train), last), abs=1e-5)

    def test_a_large_alpha_stays_at_the_regression(self, found):
        for fold in found.folds:
            for own in fold.by_alpha.values():
                assert (own.sigma[0], np.isnan(own.smooth[0])) == (np.inf, True)
            held = fold.by_alpha[1e9]
            np.testing.assert_allclose(held.train, held.train[0], rtol=1e-12)
            np.testing.assert_allclose(held.test, held.test[0], rtol=1e-12)

    def test_a_small_alpha_is_smoothly_better(self, found):
        """At the first sigma, where nothing but the penalty is in the way."""
        for fold in found.folds:
            assert fold.by_alpha[0.1].smooth[1] > fold.by_alpha[10.0].smooth[1] >= fold.by_alpha[1e9].smooth[1] - 1e-9

    def test_test_queries_choose_nothing(self, folds, found):
        fold = folds[0]
        rng = np.random.default_rng(0)
        other = fold._replace(test=fold.test.replace(y=rng.permutation(fold.test.y)))
        got, own = anneal_fold(other, MEASURE), found.folds[0]
        assert got.chosen == own.chosen
        np.testing.assert_array_equal(got.coef, own.coef)
        np.testing.assert_array_equal(got.by_alpha[0.1].train, own.by_alpha[0.1].train)
        assert (got.by_alpha[0.1].test != own.by_alpha[0.1].test).any()

    def test_the_chosen_alpha_is_best_on_validation(self, folds, found):
        for fold, own in zip(folds, found.folds, strict=True):
            start = rw.select(rw.Regression(measure=MEASURE), rw.Regression.default_grid, fold.train, fold.valid)
            ranker = rw.SmoothRank(measure=MEASURE, k=None, start=start.coef_)
            best = rw.select(ranker, {"alpha": ALPHAS}, fold.train, fold.valid)
            assert own.chosen == best.alpha
            np.testing.assert_array_equal(own.coef, best.coef_)

    def test_fold_means(self, found):
        chosen = [fold.by_alpha[fold.chosen] for fold in found.folds]
        for field in ("train", "test"):
            mean = sum(getattr(own, field) for own in chosen) / len(chosen)
            np.testing.assert_allclose(getattr(found.annealings[CHOSEN], field), mean, rtol=1e-12)
        assert list(found.annealings) == [CHOSEN, "alpha 0.1", "alpha 10", "alpha 1e+09"]
        np.testing.assert_array_equal(fold_mean(chosen).sigma, chosen[0].sigma)


class TestTables:
    def test_tables_are_what_was_found(self, found):
        made = make_tables(found)
        assert sorted(f"{name}.csv" for name in made) == FILES
        figure = made["figure1"]
        rows = (figure["queries"] == "mean") & (figure["direction"] == 2) & (figure["range"] == "close")
        for sigma in (*SIGMAS, TRUE):
            own = found.lines[LineView("mean", 2, "close")].values[sigma]
            np.testing.assert_array_equal(figure[f"sigma {tables.format_power(sigma)}"][rows], own)
        by_fold = made["folds"]
        rows = (by_fold["fold"] == 2) & (by_fold["alpha"] == 10.0)
        np.testing.assert_array_equal(by_fold["test"][rows], found.folds[1].by_alpha[10.0].test)
        assert by_fold["chosen"][rows].all() == (found.folds[1].chosen == 10.0)
        rows = made["figure2"]["alpha"] == CHOSEN
        np.testing.assert_array_equal(made["figure2"]["train"][rows], found.annealings[CHOSEN].train)

    def test_text_and_page_have_the_facts(self, found):
        own, text = found.annealing_facts[CHOSEN], format_text(found)
        for value in (own.train_start, own.train_last, own.test_best, own.test_last):
            assert f"{value:.4f}" in text
        maxima = [found.line_facts[LineView("mean", i, "wide")][TRUE].maxima for i in (1, 2, 3)]
        assert f"{min(maxima):,} to {max(maxima):,}" in text
        page = make_page(found)
        assert [section.title for section in page.sections][1:] == ["Figure 1: smoothing", "Figure 2: annealing"]
        claims = {row.cells[0]: row.cells[1] for row in make_claims_grid(found).rows}
        assert f"{own.train_first:.4f} to {own.train_last:.4f}" in claims["train rises as sigma falls"]
        assert tables.format_sigma(own.test_near) in claims["test saturates"]

    def test_ties_are_told(self, folds):
        fold = folds[0]
        flat = fold._replace(train=fold.train.with_X(np.round(fold.train.X / 1e3)))
        tied = find(MEASURE, SEED, FoldData("tied", [flat]))
        assert tied.n_tied > 0
        assert f"Scores tie in {tied.n_tied} of {tied.n_train} queries" in format_text(tied)


class TestCommand:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch):
        monkeypatch.setattr(smoothing, "N_QUERIES", 15)
        monkeypatch.setattr(lines, "ALPHAS", (10.0,))
        monkeypatch.setattr(tables, "ALPHAS", (10.0,))
        monkeypatch.setattr(lines, "STEPS", 20)

    def run(self, capsys, *arguments):
        status = cli.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    def test_writes_the_figures_and_the_page(self, capsys, tmp_path):
        out = tmp_path / "new" / "out"
        status, printed, err = self.run(capsys, "simulate", "smoothing", "--out", out, "--measure", "map", "--seed", 2)
        assert (status, err) == (0, "")
        assert f"page: {out / 'smoothing.html'}" in printed
        assert "15 made-up queries" in printed
        assert sorted(path.name for path in out.iterdir()) == [*FILES, "smoothing.html"]
        written = read(out / "figure2.csv")
        assert list(written) == ["alpha", "sigma", "train", "test", "smooth"]
        assert written["sigma"][:2] == ["inf", "64.0"]
        assert written["smooth"][0] == ""
        assert len(read(out / "figure1.csv")["t"]) == 2 * (DIRECTIONS + 1) * 21
        assert "Claims and findings" in (out / "smoothing.html").read_text()

    def test_the_same_bytes_again(self, tmp_path):
        for name in ("a", "b"):
            simulate("smoothing", tmp_path / name, seed=1)
        for name in [*FILES, "smoothing.html"]:
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()

    def test_folds_of_a_folder(self, capsys, tmp_path, folds):
        data = tmp_path / "letor"
        data.mkdir()
        for i, fold in enumerate(folds):
            rw.write_letor(fold.test, data / f"S{i + 1}.txt")
        status, printed, err = self.run(capsys, "simulate", "smoothing", "--out", tmp_path / "out", "--data", data)
        assert (status, err) == (0, "")
        assert "letor, means of 3 folds" in printed
        assert set(read(tmp_path / "out" / "folds.csv")["fold"]) == {"1", "2", "3"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["smoothing", "--data", "{t}/none"], "not a folder; expected folders Fold1, Fold2"),
            (["smoothing", "--data", "{t}"], "no folds; expected folders Fold1, Fold2"),
            (["bounds", "--data", "{t}"], "bounds is about data of its own, and takes no folds; smoothing does"),
            (["smoothing", "--measure", "ndgc"], "unknown measure 'ndgc'; did you mean ndcg?"),
            (["smoothing", "--seed", "-1"], "expected a whole number of at least 0"),
            (["smothing"], "unknown simulation 'smothing'; did you mean smoothing?"),
        ],
    )
    def test_mistakes_leave_nothing(self, capsys, tmp_path, arguments, message):
        given = [argument.replace("{t}", str(tmp_path)) for argument in arguments]
        status, _, err = self.run(capsys, "simulate", *given, "--out", tmp_path / "out")
        assert status == 2
        assert message in err
        assert err.count("\n") == 1
        assert not list((tmp_path / "out").glob("*"))

    def test_a_measure_of_ones_own_cannot_be_made_smooth(self, tmp_path):
        own = rw.make_measure(lambda grades: float(grades[0]), name="first")
        with pytest.raises(InputError, match="first"):
            simulate("smoothing", tmp_path / "out", measure=own)
        assert not list((tmp_path / "out").glob("*"))
