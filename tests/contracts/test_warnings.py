"""What every ranker says when it learned nothing, did not converge, or was given a parameter without effect."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.warned import allow_warnings

import rankwright as rw
from rankwright.cli import run
from rankwright.rankers import RANKERS

every_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)


def unlearnable() -> dict[str, tuple[rw.Queries, str]]:
    """Return data that no ranking can be learned from, and what the warning says of each."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(12), 5)
    make = rw.Queries.from_arrays
    return {
        "all-zero labels": (make(X, np.zeros(60), qid), "the grade 0; check the labels"),
        "equal labels": (make(X, np.full(60, 2), qid), "the grade 2; check the labels"),
        "constant features": (make(np.ones((60, 3)), y, qid), "no feature differs"),
        "one document per query": (make(X, y, np.arange(60)), "one document; check the query ids"),
    }


@every_ranker
@pytest.mark.parametrize("name", unlearnable())
def test_a_command_on_unlearnable_data_writes_a_model_and_warns_in_one_line(ranker, name, tmp_path, capsys):
    data, said = unlearnable()[name]
    rw.write_letor(data, tmp_path / "train.txt")
    command = ["fit", ranker.__name__, "--train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "m.json")]
    if ranker.__name__ == "NeuralRanker" or "hidden" in ranker().get_params():
        command += ["--set", "training.n_epochs=2"] if ranker().get_params().get("hidden") else []
    assert run(command) == 0
    assert np.isfinite(rw.load(tmp_path / "m.json").predict(data)).all()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"rankwright: warning: {ranker.__name__} learned no ranking: ")
    assert said in line


@pytest.mark.parametrize("ranker", ["mart", "lambdamart", "boostedtrees", "directranktrees"])
def test_trees_on_few_documents_say_which_parameter_to_lower(ranker, tmp_path, capsys):
    rw.write_letor(rw.make_queries(3, n_docs=5, random_state=0), tmp_path / "train.txt")
    assert run(["fit", ranker, "--train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "m.json")]) == 0
    assert "lower min_child_samples" in capsys.readouterr().err
    assert rw.load(tmp_path / "m.json").history == []


def test_weights_of_zero_under_a_short_cut_off_are_optimal_and_warned_about():
    """Noisy features and long lists: no weights have a lower bound of NDCG@10 than 0, whatever C is."""
    queries = rw.make_queries(60, n_docs=100, n_features=6, noise=8.0, random_state=0)
    for C in (0.1, 1000.0):
        with pytest.warns(rw.DegenerateModelWarning, match=r"w = 0 minimises the bound of NDCG@10.* leave k out"):
            fitted = rw.SVMNDCG(k=10, C=C, tol=1e-6).fit(queries)
        assert not fitted.coef_.any()
        assert fitted.history_[-1]["gap"] <= 1e-6 * fitted.history_[-1]["objective"]
    assert rw.SVMNDCG().fit(queries).score(queries) > 0.1


DESCENDING = (rw.LinearRanker, rw.ListMLE, rw.ListNet, rw.RankCosine, rw.RankNet)
LIMITS = [
    (rw.RankSVM, {"max_iter": 1}, r"max_iter=1 with a duality gap of [\d.]+% of the objective"),
    (rw.SVMMap, {"max_iter": 1}, r"max_iter=1 with a duality gap of [\d.]+%"),
    (rw.SVMNDCG, {"max_iter": 1}, r"max_iter=1 with a duality gap of [\d.]+%"),
    (rw.PermuRank, {"max_iter": 1}, "max_iter=1 while its working sets still grew"),
    (rw.DirectRank, {"max_iter": 1}, "max_iter=1 rounds while the measure still gained"),
    (rw.DirectRank, {"max_seconds": 0.0}, "max_seconds=0"),
    (rw.CoordinateAscent, {"max_seconds": 0.0}, "max_seconds=0"),
    (rw.SmoothRank, {"max_iter": 1}, "stopped at max_iter=1"),
    (rw.SoftRank, {"max_iter": 1}, "stopped at max_iter=1"),
    *((each, {"max_iter": 1}, "stopped at max_iter=1 where the objective is about") for each in DESCENDING),
    (rw.LambdaRank, {"max_inner_iter": 1}, "stopped at max_inner_iter=1 where the objective is about"),
    (rw.LinearRanker, {"objective": "hinge", "tol": 0.0}, "no step lowers the objective any more"),
]


@pytest.mark.parametrize(("ranker", "params", "said"), LIMITS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_limit_that_ends_training_early_is_warned_about(ranker, params, said):
    queries = rw.make_queries(40, n_docs=15, n_features=10, random_state=0)
    with pytest.warns(ConvergenceWarning, match=rf"{ranker.__name__} did not converge: .*{said}") as found:
        fitted = ranker(**params).fit(queries)
    assert [each.message for each in fitted.fit_warnings_] == [str(each.message) for each in found]
    assert ranker().fit(queries).fit_warnings_ == []


OTHER_VALUES = {
    "C": 0.5,
    "alpha": 0.3,
    "shrinkage": 0.3,
    "max_bins": 4,
    "feature": 4,
    "first_sigma": 4.0,
    "approximation": "ranks",
    "gain": "linear",
    "hidden": (3,),
    "k": 3,
    "kernel_map": "nystroem",
    "lambdas": "lightgbm",
    "last_sigma": 0.25,
    "learning_rate": 0.5,
    "margin": 2.0,
    "decay": 1.0,
    "loss": ("squared_hinge", "fidelity"),
    "max_inner_iter": 1,
    "max_iter": 1,
    "max_seconds": 0.0,
    "min_child_samples": 2,
    "n_perturbations": 3,
    "num_leaves": 3,
    "n_restarts": 2,
    "n_estimators": 2,
    "n_folds": 3,
    "n_repeats": 2,
    "budget_ms": 1e-9,
    "n_samples": 2,
    "n_warmup_trees": 3,
    "nonnegative": (True, False),
    "objective": "squares",
    "optimiser": "lbfgs",
    "selection": "greedy",
    "lightgbm_params": {"lambda_l2": 10.0},
    "early_stopping_rounds": 1,
    "penalty": "l1",
    "pair_weighting": ("query", "pair"),
    "perfect_rankings": "measure",
    "ranking_score": "ranks",
    "interval_point": "middle",
    "polish_rounds": 1,
    "prior": ("zero", np.ones(10)),
    "scale": ("query", "standard", None),
    "sigma": 1.0,
    "sign": -1,
    "smoothing": 0.1,
    "start": ("adarank", "equal", "regression", np.ones(10)),
    "keep": "best",
    "target": "ndcg",
    "rankers": ([rw.Regression()],),
    "tol": 0.05,
    "training": {"n_epochs": 2},
    "training.activation": "sigmoid",
    "training.batch_size": 3,
    "training.optimiser": "adaptive",
    "training.early_stopping_rounds": 1,
    "training.learning_rate": 0.1,
    "weight_range": (0.1, 0.2),
    "weights": ("equal", "greedy", "regression"),
}
WITHOUT_EFFECT_BY_DESIGN = {"backend", "measure", "network", "random_state", "warm_start", "init_model"}
FEW_EPOCHS = {"n_epochs": 12, "learning_rate": 0.3}
CONFIGURATIONS = {
    **{ranker.__name__: (ranker, {}) for ranker in RANKERS},
    **{
        f"{ranker.__name__} network": (ranker, {"hidden": (4,), "training": FEW_EPOCHS})
        for ranker in (rw.ListNet, rw.LambdaRank, rw.NeuralRanker, rw.SoftRank, rw.BayesRank)
    },
    "SmoothRank network": (
        rw.SmoothRank,
        {"hidden": (4,), "training": {**FEW_EPOCHS, "n_epochs": 11}, "first_sigma": 1.0, "last_sigma": 0.5},
    ),
    "Blend": (rw.Blend, {"rankers": [rw.Regression(), rw.ListNet()]}),
    "GBRank": (rw.GBRank, {"num_leaves": 7}),  # with more it ranks perfectly, and there is nothing to polish
    "BayesRank": (rw.BayesRank, {"training": {"n_epochs": 5}}),
    "BayesRank linear": (rw.BayesRank, {"hidden": None, "training": {"n_epochs": 5}}),
    "DirectRank with a penalty": (rw.DirectRank, {"alpha": 0.01, "n_restarts": 1, "max_iter": 3}),
    "LinearRanker sampled": (rw.LinearRanker, {"objective": "expected", "max_iter": 5}),
    "SmoothRank on ranks": (rw.SmoothRank, {"approximation": "ranks"}),
    "SmoothRank without a penalty": (rw.SmoothRank, {"alpha": 0.0}),
}


def in_configuration(ranker, params, name, value):
    """Return an unfitted ranker with one parameter, or one part of ``training``, set to another value."""
    own, _, part = name.partition(".")
    given = {**params, name: value} if not part else {**params, own: {**(params.get(own) or {}), part: value}}
    made = ranker(**given)
    if "n_estimators" in made.get_params() and not given.get("hidden"):
        made.set_params(n_estimators=given.get("n_estimators", 8))
    return made


def parameters_of(ranker, params):
    """Return the names and other values of the parameters in a configuration."""
    made = ranker(**params).get_params(deep=False)
    names = [*made, *(name for name in OTHER_VALUES if name.startswith("training.") and params.get("training"))]
    for name in names:
        values = OTHER_VALUES.get(name, ()) if name not in WITHOUT_EFFECT_BY_DESIGN else ()
        fits = list(values if isinstance(values, tuple) and name != "weight_range" else (values,))
        if name == "hidden":
            fits = [(3,)] if "hidden" not in params or params["hidden"] else []
        if name == "training.optimiser":
            fits = ["adam" if ranker is rw.BayesRank else "adaptive"]
        if name == "training.early_stopping_rounds" and ranker in (rw.BayesRank, rw.SmoothRank):
            fits = []  # whose few epochs here are each better than the one before
        now = made.get(name)
        yield from (
            (name, value) for value in fits if not (value is now or (isinstance(value, (str, int)) and value == now))
        )


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_parameter_has_an_effect_or_a_warning_or_an_error(name):
    ranker, params = CONFIGURATIONS[name]
    queries = rw.make_queries(40, n_docs=15, n_features=10, random_state=0)
    queries = queries.with_X(queries.X * np.array([-1, 1, 1, 1, 1, -1, 1, 1, 1, 1], np.float32))  # so that signs matter
    train, valid = queries.take(range(25)), queries.take(range(25, 40))

    def fit(parameter, value):
        with allow_warnings(rw.IneffectiveParameterWarning, rw.DegenerateModelWarning, ConvergenceWarning) as found:
            fitted = in_configuration(ranker, params, parameter, value).fit(train, valid=valid)
        said = [str(each.message) for each in found if each.category is rw.IneffectiveParameterWarning]
        return (fitted.predict(queries).tobytes(), repr(fitted.history_)), said

    plain, said = fit("backend", None)
    assert said == []
    silent = []
    for parameter, value in parameters_of(ranker, params):
        try:
            changed, said = fit(parameter, value)
        except rw.InputError:
            continue
        warned = any(f": {parameter} has no effect here" in each for each in said)
        if (changed != plain) == warned:
            silent.append(f"{parameter}={value!r}: {said or 'no effect, and no warning'}")
    assert silent == []
