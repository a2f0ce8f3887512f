"""Extreme numbers, given to every ranker: a finite model, or an error that says what was expected; never a raw warning."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import pytrec_eval
from sklearn.exceptions import ConvergenceWarning
from tests.warned import allow_warnings

import rankwright as rw
from rankwright.cli import run
from rankwright.rankers import RANKERS
from rankwright.rankers.fit_result import FitResult, check_finite
from rankwright.scorers import Linear

every_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
FEW = {"n_estimators": 2, "n_restarts": 1}
LIMIT = "expected a finite number of at least 0 and at most 1e+30"
NUMBERS = (0.0, 1e-308, 1e-12, 1e12, 1e30, 1e308)


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(12, n_docs=8, n_features=4, random_state=0)


def made(ranker, **params) -> rw.Ranker:
    usual = ranker().get_params()
    few = {name: value for name, value in FEW.items() if name in usual}
    if usual.get("hidden") or params.get("hidden"):
        few["training"] = {"n_epochs": 2}
    return ranker(**{**few, **params})


def survives(ranker, queries) -> str | None:
    """Fit, and return the error for bad input, if any; anything else that goes wrong fails the test."""
    with allow_warnings(ConvergenceWarning, rw.RankwrightWarning):
        try:
            scores = ranker.fit(queries).predict(queries)
        except rw.InputError as error:
            return str(error)
    assert np.isfinite(scores).all()
    return None


@every_ranker
def test_every_parameter_that_is_a_number(ranker, queries):
    for name, usual in ranker().get_params().items():
        if isinstance(usual, float) or name == "max_seconds":
            for value in NUMBERS:
                said = survives(made(ranker, **{name: value}), queries)
                assert said is None or ("\n" not in said and (name in said or "sigma" in said))
                if name in ("alpha", "C"):
                    assert said == (None if value < 1e300 else f"{name}=1e+308; {LIMIT}")


@pytest.mark.parametrize("ranker", [each for each in RANKERS if "training" in inspect.signature(each).parameters])
def test_rates_and_penalties_of_networks(ranker, queries):
    for value in NUMBERS[1:]:
        params = {"training": {"learning_rate": value, "n_epochs": 2}} | (
            {} if ranker is rw.NeuralRanker else {"hidden": (3,)}
        )
        params |= {"first_sigma": 1.0, "last_sigma": 1.0} if ranker is rw.SmoothRank else {}
        survives(made(ranker, **params), queries)
        survives(made(ranker, **params | {"alpha": value, "training": {"n_epochs": 2}}), queries)


@every_ranker
def test_grades_weights_features_and_measures(ranker, queries):
    grades = queries.y.copy()
    for grade in (50.0, 1e3, 1e6, 1e300):
        grades[::7] = grade
        for measure in ("ndcg@10", "map", "err(max=data)"):
            survives(made(ranker, measure=measure), queries.replace(y=grades))
    for weight in (1e-300, 1e30):
        survives(made(ranker), queries.replace(weight=np.full(len(queries), weight)))
    for factor in (1e-30, 1e30):
        survives(made(ranker), queries.replace(X=queries.X * np.float32(factor)))
    for measure in ("ndcg@1000000", "err(max=1000)", "rbp(p=0.999999)", "map(rel=1e300)"):
        survives(made(ranker, measure=measure), queries)


def test_what_is_refused_says_what_is_expected(queries):
    with pytest.raises(rw.InputError, match=r"max=100000; expected a whole number from 1 to 1000, or data"):
        rw.Regression(measure="err(max=100000)").fit(queries)
    with pytest.raises(rw.InputError, match=r"the highest grade is 1e\+06; expected at most 500.* Divide the grades"):
        rw.Regression(measure="map").fit(queries.replace(y=np.where(queries.y > 0, 1e6, 0.0)))
    with pytest.raises(rw.InputError, match=r"weight\[0\] is 1e\+300; expected at most 1e\+30"):
        rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid, weight=np.full(12, 1e300))


def test_the_command_line_refuses_in_one_line(queries, tmp_path, capsys):
    rw.write_letor(queries, tmp_path / "train.txt")
    for ranker, name in (("permurank", "C"), ("listnet", "alpha"), ("directrank", "alpha")):
        command = ["fit", ranker, "--train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "m.json")]
        assert run([*command, "--set", f"{name}=1e308"]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert f"{name}=1e+308; {LIMIT}" in line


@pytest.mark.parametrize("scorer", [Linear(np.array([1.0, np.inf])), Linear(np.zeros(2), np.nan)])
def test_a_model_that_is_not_finite_is_not_returned(scorer):
    queries = rw.Queries.from_arrays(np.zeros((2, 2)), [0, 1], [1, 1])
    with pytest.raises(rw.InputError, match="ListNet ended with a model that is not finite"):
        check_finite(FitResult(scorer, []), "ListNet", queries)


def test_scores_beyond_float32_are_ties_as_in_trec_eval():
    scores = np.array([1e300, 2e300, 1e39, 5.0, 1.0, -1e300, 0.0, 3e38])
    grades = {f"d{i}": int(i % 3 == 0) for i in range(8)}
    names = list(grades)
    queries = rw.Queries.from_arrays(np.zeros((8, 1)), list(grades.values()), ["q"] * 8, docid=names)
    found = rw.evaluate(scores, queries, ["map(dialect=trec_eval)", "ndcg(dialect=trec_eval)"]).means
    expected = pytrec_eval.RelevanceEvaluator({"q": grades}, {"map", "ndcg"}).evaluate(
        {"q": dict(zip(names, scores.tolist(), strict=True))}
    )["q"]
    assert list(found.values()) == pytest.approx([expected["map"], expected["ndcg"]], abs=1e-12)
