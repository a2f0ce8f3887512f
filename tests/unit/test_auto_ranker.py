"""AutoRanker: a race under a time limit that always ends with a model."""

from __future__ import annotations

import re
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from tests.remote_backend import Remote, SealedQueries
from tests.warned import allow_warnings

import rankwright as rw
from rankwright.basics import progress
from rankwright.optimisers.blend_weights import BlendWeights, OutOfFoldScores
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.blend import auto_ranker, cross_fitting, portfolio, racing, serving_budget
from rankwright.rankers.blend.candidates import Candidate
from rankwright.rankers.blend.portfolio import FAMILIES

QUERIES = rw.make_queries(40, n_docs=12, n_features=6, random_state=0)


@pytest.fixture
def race(monkeypatch):
    """Return a function that makes AutoRanker race the given candidates."""

    def set_candidates(*candidates):
        monkeypatch.setattr(auto_ranker, "list_auto_candidates", lambda *_: list(candidates))

    return set_candidates


def list_quick() -> list[Candidate]:
    trees = [rw.MART(num_leaves=leaves, n_estimators=6) for leaves in (3, 4, 6)]
    return [
        Candidate("regression", rw.Regression(), (0.1, 1.0)),
        *(Candidate("mart", each) for each in trees),
        Candidate("rankboost", rw.RankBoost(n_estimators=5)),
    ]


def test_the_leaderboard_has_every_candidate_and_the_weights_of_the_blend(race):
    race(*list_quick())
    ranker = rw.AutoRanker(n_folds=3, max_seconds=None).fit(QUERIES)
    rows = ranker.leaderboard_
    assert [row["member"] for row in rows].count("mart") == 3
    assert {row["member"] for row in rows} == {"regression", "mart", "rankboost"}
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)
    for member in ranker.members_:
        own = [row["weight"] for row in rows if row["member"] == member["member"]]
        assert sum(own) == pytest.approx(member["weight"])
    assert sorted((row["weight"] for row in rows), reverse=True) == [row["weight"] for row in rows]
    n_fits = sorted(row["n_fits"] for row in rows if row["member"] == "mart")
    assert n_fits[0] < 6  # the worst of three on the first fold
    assert n_fits[1:] == [6, 6]  # the others are fitted to all folds of both partitions
    for row in rows:
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["seconds"] >= 0
    [regression] = [row for row in rows if row["member"] == "regression"]
    assert regression["candidate"] == "Regression(alpha=0.1 to 1)"


def test_the_same_seed_gives_the_same_model(race):
    race(*list_quick())
    one, other = (rw.AutoRanker(n_folds=2, max_seconds=seconds).fit(QUERIES) for seconds in (None, 1e5))
    assert one.predict(QUERIES).tobytes() == other.predict(QUERIES).tobytes()
    assert one.estimate_ == other.estimate_
    different = rw.AutoRanker(n_folds=2, random_state=1).fit(QUERIES)
    assert different.predict(QUERIES).tobytes() != one.predict(QUERIES).tobytes()


def test_weights_are_searched_after_a_limit_ended_the_fits(race, monkeypatch):
    race(*list_quick())
    whole = rw.AutoRanker(n_folds=2, max_seconds=None).fit(QUERIES)
    search = racing.Race.search_with_folds

    def search_and_run_out_of_time(self):
        search(self)
        self.deadline.has_passed = self.was_cut = True

    monkeypatch.setattr(racing.Race, "search_with_folds", search_and_run_out_of_time)
    with pytest.warns(ConvergenceWarning, match="stopped after max_seconds=1000"):
        cut = rw.AutoRanker(n_folds=2, max_seconds=1000).fit(QUERIES)
    assert len(whole.history_) == 2
    assert cut.history_ == whole.history_
    assert cut.members_ == whole.members_


class CountedDeadline(Deadline):
    """A deadline that passes once so many fits were begun."""

    def __init__(self, n_fits):
        super().__init__(1000.0)
        self.n_left = n_fits

    def __call__(self):
        self.n_left -= 1
        self.has_passed |= self.n_left < 0
        return self.has_passed


@pytest.mark.parametrize("n_fits", range(6, 16))
def test_a_member_that_was_fitted_for_all_folds_stays_whenever_the_time_is_over(race, n_fits, monkeypatch):
    trees = [rw.MART(num_leaves=3, n_estimators=2), *(rw.MART(num_leaves=8, n_estimators=n) for n in (20, 30))]
    linear = [Candidate(name, rw.Regression(alpha=alpha)) for name, alpha in (("a", 0.1), ("b", 1.0), ("c", 10.0))]
    race(*(Candidate("mart", each) for each in trees), *linear)
    monkeypatch.setattr(Deadline, "shorten", lambda self, share: CountedDeadline(n_fits))
    with pytest.warns(ConvergenceWarning, match="stopped after max_seconds"):
        ranker = rw.AutoRanker(n_folds=3, max_seconds=1000, backend=rw.Serial()).fit(QUERIES)
    complete = {row["member"] for row in ranker.leaderboard_ if row["n_fits"] >= 3}
    if len(complete) >= 2:
        assert {row["member"] for row in ranker.members_} >= complete


class TestInterrupts:
    @pytest.mark.parametrize("backend", [rw.Serial(), rw.Threads(2)])
    @pytest.mark.parametrize("after", [1, 3, 8])
    def test_in_the_middle_of_a_race(self, race, backend, after):
        race(*list_quick())

        def interrupt(what, done, total):
            if what.startswith("fitting ") and done == after:
                raise KeyboardInterrupt

        with progress.listen(interrupt), pytest.warns(rw.InterruptedFitWarning, match="the best of what was fitted"):
            ranker = rw.AutoRanker(n_folds=3, max_seconds=1000.0, backend=backend).fit(QUERIES)
        assert len(ranker.fit_warnings_) == 1  # the limit is not said to have ended it
        assert np.isfinite(ranker.predict(QUERIES)).all()
        assert sum(row["n_fits"] for row in ranker.leaderboard_) == after
        assert sum(row["weight"] for row in ranker.members_) == pytest.approx(1.0)

    def test_before_anything_was_fitted(self, race):
        def interrupt(scores, queries):
            raise KeyboardInterrupt

        race(Candidate("own", rw.LinearRanker(objective=interrupt)), *list_quick())
        for backend in (rw.Serial(), rw.Threads(2)):
            ranker = rw.AutoRanker(max_seconds=None, backend=backend)
            with pytest.raises(KeyboardInterrupt):
                ranker.fit(QUERIES)
            assert not hasattr(ranker, "model_")


class TestFailures:
    def test_a_candidate_that_fails_is_left_out_and_named(self, race):
        def broken(scores, queries):
            raise ArithmeticError("no such loss")

        race(*list_quick(), Candidate("own", rw.LinearRanker(objective=broken)))
        with pytest.warns(rw.FailedCandidateWarning, match=r"left out LinearRanker\(.*ArithmeticError: no such loss"):
            ranker = rw.AutoRanker(n_folds=2, max_seconds=None).fit(QUERIES)
        assert "own" not in {row["member"] for row in ranker.leaderboard_}
        assert len(ranker.members_) == 3

    def test_a_candidate_that_failed_is_not_fitted_again(self, race):
        tried = []

        class Fragile(RegressorMixin, BaseEstimator):
            def fit(self, X, y):
                tried.append(len(X))
                if len(tried) == 2:
                    raise ArithmeticError("for one fold")
                self.is_fitted_ = True
                return self

            def predict(self, X):
                return X[:, 0]

        race(*list_quick(), Candidate("own", Fragile()))
        with pytest.warns(rw.FailedCandidateWarning, match="for one fold"):
            ranker = rw.AutoRanker(n_folds=3, max_seconds=None, backend=rw.Serial()).fit(QUERIES)
        assert len(tried) == 3  # for the folds of the first stage
        assert "own" not in {row["member"] for row in ranker.members_}

    def test_if_all_fail_there_is_an_error(self, race):
        race(Candidate("own", rw.Regression(measure="ndcg@5", alpha=-1.0)))
        with pytest.raises(
            rw.InputError, match=r"no candidate could be fitted: .*the member own: alpha=-1.0; expected"
        ):
            rw.AutoRanker(n_folds=2).fit(QUERIES)

    def test_a_measure_that_fails_ends_the_search_before_it_begins(self, race, monkeypatch):
        monkeypatch.setattr(auto_ranker.Race, "search_with_folds", lambda race: pytest.fail("a fit began"))
        rw.make_measure(lambda grades: float("nan"), name="never_a_number")
        with pytest.raises(rw.InputError, match="never_a_number"):
            rw.AutoRanker(measure="never_a_number").fit(QUERIES)


class TestLargeData:
    @pytest.fixture(autouse=True)
    def small_limits(self, monkeypatch):
        monkeypatch.setattr(auto_ranker, "_LARGE", 100)
        monkeypatch.setattr(auto_ranker, "_FEW", 20)
        monkeypatch.setattr(racing, "_SAMPLE", 200)

    def test_the_best_candidates_are_fitted_to_all_queries_but_a_tenth(self, race):
        race(*list_quick())
        ranker = rw.AutoRanker(max_seconds=None, backend=rw.Serial()).fit(QUERIES)
        assert {row["n_fits"] for row in ranker.leaderboard_} == {1}
        assert {row["member"] for row in ranker.leaderboard_} == {"regression", "mart", "rankboost"}

    def test_an_interrupt_of_the_first_fit_to_all_data_leaves_the_models_of_the_sample(self, race, monkeypatch):
        race(*list_quick())
        run, calls = racing.CrossFitter.run, []

        def run_once(self, *args, **options):
            calls.append(self)
            if len(calls) > 1:
                raise KeyboardInterrupt
            return run(self, *args, **options)

        monkeypatch.setattr(racing.CrossFitter, "run", run_once)
        with pytest.warns(rw.InterruptedFitWarning), pytest.warns(ConvergenceWarning, match="those of a sample of"):
            ranker = rw.AutoRanker(max_seconds=None, backend=rw.Serial()).fit(QUERIES)
        assert len(ranker.leaderboard_) == 5
        assert np.isfinite(ranker.predict(QUERIES)).all()

    def test_inside_the_handler_of_another_error(self, race):
        race(*list_quick())
        expected = rw.AutoRanker(max_seconds=None, backend=rw.Serial()).fit(QUERIES).predict(QUERIES)
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            ranker = rw.AutoRanker(max_seconds=None, backend=rw.Serial()).fit(QUERIES)
        assert ranker.predict(QUERIES).tobytes() == expected.tobytes()

    @pytest.mark.parametrize("n_learnable", [0, 1])
    def test_no_two_queries_to_learn_from(self, race, n_learnable):
        race(*list_quick())
        y = QUERIES.y.copy()
        y[QUERIES.indptr[n_learnable] :] = 0.0
        with allow_warnings(rw.DegenerateModelWarning):
            ranker = rw.AutoRanker(max_seconds=None, backend=rw.Serial()).fit(QUERIES.replace(y=y))
        assert np.isnan(ranker.estimate_.mean)
        assert all(np.isnan(row["mean"]) for row in ranker.leaderboard_)

    def test_a_number_of_folds_has_no_effect(self, race):
        race(*list_quick())
        with pytest.warns(rw.IneffectiveParameterWarning, match="n_folds=3 has no effect on more than 100 documents"):
            rw.AutoRanker(n_folds=3, max_seconds=None, backend=rw.Serial()).fit(QUERIES)

    def test_if_no_fit_to_all_data_succeeds_the_answer_is_that_of_the_sample(self, race, monkeypatch):
        race(*list_quick())
        fit, n_all = cross_fitting.fit_candidate, len(QUERIES) * 9 // 10

        def fit_samples_only(candidate, parts, *options):
            if len(parts[0]) >= n_all:
                raise MemoryError("too large")
            return fit(candidate, parts, *options)

        monkeypatch.setattr(cross_fitting, "fit_candidate", fit_samples_only)
        with allow_warnings(rw.FailedCandidateWarning, ConvergenceWarning) as found:
            ranker = rw.AutoRanker(max_seconds=None, backend=rw.Serial()).fit(QUERIES)
        messages = [str(each.message) for each in found]
        assert sum("MemoryError: too large" in each for each in messages) == 3
        [sampled] = [each for each in messages if "sample of" in each]
        assert re.search(r"no candidate was fitted to all data: the models are those of a sample of \d+ doc", sampled)
        assert np.isfinite(ranker.predict(QUERIES)).all()

    def test_skipped_and_shortened_fits_are_a_warning(self, race, monkeypatch):
        race(*list_quick())
        monkeypatch.setattr(racing, "_LONGEST", 1e-9)  # no time for any fit to all data
        with allow_warnings(ConvergenceWarning) as found:
            rw.AutoRanker(max_seconds=100.0, backend=rw.Serial()).fit(QUERIES)
        assert "stopped after max_seconds=100" in str(found[0].message)


class FakeProblem:
    """The part of a BlendProblem that the budget needs; its merged scorer is the number of members of some weight."""

    def __init__(self, scores, names):
        self.scores = scores
        self.members = [SimpleNamespace(name=str(name)) for name in names]
        self.held_out = SimpleNamespace(plan=SimpleNamespace(queries=QUERIES))

    def merge(self, coef):
        return int((coef > 0).sum())

    def take_members(self, members):
        return FakeProblem(self.scores.take_members(members), [self.members[at].name for at in members])


class TestBudget:
    def test_members_are_left_out_until_the_blend_is_fast_enough(self, race, monkeypatch):
        race(*list_quick())
        costs = {"linear": 1.0, "trees": 10.0, "stumps": 4.0}

        def measure(scorer, X):
            assert X.shape == (100, 6)
            parts = getattr(scorer, "scorers", [scorer])
            return sum(costs.get(part.kind, 10.0) for part in parts)

        monkeypatch.setattr(serving_budget, "time_scoring", measure)
        plain = rw.AutoRanker(n_folds=2, max_seconds=None).fit(QUERIES)
        free = rw.AutoRanker(n_folds=2, max_seconds=None, budget_ms=100.0).fit(QUERIES)
        assert free.predict(QUERIES).tobytes() == plain.predict(QUERIES).tobytes()
        linear = rw.AutoRanker(n_folds=2, max_seconds=None, budget_ms=2.0).fit(QUERIES)
        assert measure(linear.scorer_, QUERIES.X[:100]) <= 2.0
        assert [row["member"] for row in linear.members_ if row["weight"] > 0] == ["regression"]
        assert sum(row["weight"] for row in linear.leaderboard_) == pytest.approx(1.0)
        with pytest.raises(rw.InputError, match=r"budget_ms=0.5: .*takes \d+ ms for 100 documents; raise budget_ms"):
            rw.AutoRanker(n_folds=2, max_seconds=None, budget_ms=0.5).fit(QUERIES)

    def test_members_without_weight_are_left_out_together(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = QUERIES.y[:, None] + rng.normal(size=(QUERIES.n_docs, 4)) * [0.5, 4.0, 4.0, 0.6]
        measure = rw.NDCG(5).for_training().prepare(QUERIES)
        weight, fold = np.ones(len(QUERIES)), np.arange(len(QUERIES)) % 3
        scores = OutOfFoldScores(X, QUERIES.y, measure, weight, fold, rw.Serial())
        asked = []

        def rule(part):
            asked.append(part.n_members)
            coef = np.full(part.n_members, 1.0 / part.n_members)
            if part.n_members == 4:
                coef = np.array([0.5, 0.0, 0.0, 0.5])
            return BlendWeights(coef, {})

        problem = FakeProblem(scores, range(4))
        monkeypatch.setattr(serving_budget, "time_scoring", lambda scorer, X: 1.5 if scorer == 2 else 1.0)
        monkeypatch.setattr(serving_budget, "_repeat_documents", lambda X: X)
        found, members, _ = serving_budget.choose_within_budget(
            problem, dict.fromkeys(map(str, range(4)), ()), rule, 1.0
        )
        assert asked == [4, 1]  # not 4, 3, 2, 1
        assert [member.name for member in found.members] == list(members) == ["0"]

    def test_one_that_no_model_meets_is_refused_before_the_search(self, race):
        race(Candidate("own", rw.LinearRanker(objective=lambda scores, queries: pytest.fail("a fit began"))))
        with pytest.raises(rw.InputError, match=r"budget_ms=1e-07: a linear function alone takes"):
            rw.AutoRanker(budget_ms=1e-7).fit(QUERIES)

    def test_wrong_budgets(self):
        for budget, said in (
            (0, "expected a number above 0"),
            (-1, "expected a finite"),
            ("fast", "expected a finite"),
        ):
            with pytest.raises(rw.InputError, match=f"budget_ms={budget!r}.*{said}"):
                rw.AutoRanker(budget_ms=budget).fit(QUERIES)

    def test_the_time_of_a_scorer(self):
        scorer = rw.Regression().fit(QUERIES).scorer_
        assert 0.0 < serving_budget.time_scoring(scorer, QUERIES.X[:100]) < 50.0


@pytest.mark.parametrize("max_seconds", [2.0])
@pytest.mark.usefixtures("whole_portfolio")
def test_the_time_limit_holds(max_seconds):
    queries = rw.make_queries(150, n_docs=60, n_features=25, random_state=0)
    for _ in range(2):  # the first may compile kernels
        start = monotonic()
        with allow_warnings(ConvergenceWarning) as found:
            ranker = rw.AutoRanker(max_seconds=max_seconds).fit(queries)
    assert monotonic() - start < max_seconds + 5.0
    assert ranker.score(queries) > 0.4
    assert found
    assert "max_seconds=2" in str(found[0].message)


@pytest.mark.slow
@pytest.mark.usefixtures("whole_portfolio")
def test_the_time_limit_holds_on_larger_data():
    queries = rw.make_queries(2000, n_docs=60, n_features=50, random_state=0)
    start = monotonic()
    with allow_warnings(ConvergenceWarning):
        rw.AutoRanker(max_seconds=40.0).fit(queries)
    assert monotonic() - start < 45.0


def test_the_portfolio_takes_what_the_data_have():
    measure = rw.parse_measure("ndcg@10")
    for listed in (portfolio.list_default_candidates, portfolio.list_auto_candidates):
        plain = listed(QUERIES, measure)
        assert len({each.name for each in plain}) >= 8
        X = QUERIES.X.copy()
        X[0, 0] = np.nan
        assert all(each.estimator.allow_nan for each in listed(QUERIES.with_X(X), measure))
        weighted = QUERIES.replace(doc_weight=np.ones(QUERIES.n_docs))
        assert all(each.estimator.takes_doc_weight(measure) for each in listed(weighted, measure))
        for candidate in plain:
            candidate.estimator.check_parameters()
            assert str(candidate.estimator.measure) == "ndcg@10"


def test_swaps_of_many_documents_are_left_out_under_a_measure_in_python():
    measure = rw.make_measure(lambda grades: float((grades[:3] > 0).mean()), name="portfolio_first_three")
    many = rw.make_queries(30, n_docs=100, n_features=3, random_state=0)
    left_out = {each.name for each in portfolio.list_auto_candidates(many, rw.parse_measure("map"))}
    left_out -= {each.name for each in portfolio.list_auto_candidates(many, measure)}
    assert left_out == {"lambdamart", "directranktrees"}
    few = {each.name for each in portfolio.list_auto_candidates(QUERIES, measure)}
    assert left_out <= few


def test_a_regression_on_thousands_of_features_is_left_out():
    wide = rw.make_queries(4, n_docs=5, n_features=1_001, random_state=0)
    names = {candidate.name for candidate in portfolio.list_auto_candidates(wide, rw.NDCG(10))}
    assert "regression" not in names
    assert "ranksvm" in names


def test_families_choose_what_the_model_consists_of():
    measure = rw.parse_measure("ndcg@10")
    names = {each: {one.name for one in portfolio.list_auto_candidates(QUERIES, measure, [each])} for each in FAMILIES}
    assert names["stumps"] == {"rankboost", "frank"}
    assert {"regression", "adarank", "softrank", "directrank"} < names["linear"]
    assert {"lambdamart", "mart", "gbrank", "listnet-trees", "directranktrees"} == names["trees"]
    assert set.union(*names.values()) == {one.name for one in portfolio.list_auto_candidates(QUERIES, measure)}
    ranker = rw.AutoRanker(families=["linear"], max_seconds=2).fit(QUERIES)
    assert ranker.scorer_.kind == "linear"


@pytest.mark.parametrize("target", ["elasticsearch", "solr", "ranklib"])
def test_trees_and_stumps_alone_are_exported_to_search_engines(target, tmp_path, race):
    candidates = [
        Candidate("mart", rw.MART(num_leaves=4, n_estimators=6)),
        Candidate("frank", rw.FRank(n_estimators=4)),
    ]
    assert {portfolio.find_family(each.estimator) for each in candidates} == {"trees", "stumps"}
    race(*candidates)
    ranker = rw.AutoRanker(n_folds=2, max_seconds=None).fit(QUERIES)
    rw.export(ranker, to=target, path=tmp_path / "model", data=QUERIES)


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ("trees", "families='trees'; expected a list of some of linear, stumps, trees"),
        ([], r"families=\[\]; expected a list"),
        (["forest"], "families='forest'; expected 'linear' or 'stumps' or 'trees'"),
    ],
)
def test_families_are_checked(families, message):
    with pytest.raises(rw.InputError, match=message):
        rw.AutoRanker(families=families).fit(QUERIES)


def test_families_that_do_not_take_the_data_are_an_error_that_names_the_way_out():
    X = QUERIES.X.copy()
    X[0, 0] = np.nan
    with pytest.raises(rw.InputError, match=r"families=\['linear'\]: none of their rankers .* add 'trees'"):
        rw.AutoRanker(families=["linear"]).fit(QUERIES.with_X(X))


@pytest.mark.parametrize("n_docs", [100, 30_000, 200_001])
def test_the_same_members_are_tried_where_features_are_on_a_cluster(n_docs, monkeypatch):
    def list_candidates(queries):
        with monkeypatch.context() as patch:
            patch.setattr(rw.Queries, "n_docs", property(lambda _: n_docs))
            return portfolio.list_auto_candidates(queries, rw.NDCG(10))

    here, there = list_candidates(QUERIES), list_candidates(SealedQueries(QUERIES, Remote()))
    assert [each.name for each in there] == [each.name for each in here]
    assert any(each.estimator.get_params().get("lightgbm_params") for each in there)
    assert all(each.estimator._explain_not_distributed() is None for each in there)


def test_few_queries_of_many_documents_are_cross_fitted(monkeypatch, race):
    race(*list_quick())
    monkeypatch.setattr(auto_ranker, "_LARGE", 100)
    ranker = rw.AutoRanker(n_folds=2, max_seconds=None).fit(QUERIES)
    assert {row["n_fits"] for row in ranker.leaderboard_} <= {1, 4}
    monkeypatch.setattr(auto_ranker, "_FEW", 20)
    ranker = rw.AutoRanker(max_seconds=None).fit(QUERIES)
    assert {row["n_fits"] for row in ranker.leaderboard_} == {1}
