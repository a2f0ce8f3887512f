"""Kernel maps: scorers of kernels with landmarks, and SmoothRank on mapped documents."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from tests.conftest import ROOT
from tests.reference.landmarks import score
from tests.warned import may_have_warned_in_trials, may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright import cli
from rankwright.data.row_hashes import sort_by_content
from rankwright.experiments import experiment_from_json
from rankwright.models.model import Model
from rankwright.rankers.smooth import kernel_map as maps
from rankwright.rankers.smooth.kernel_map import learn_map
from rankwright.runtime.backends import Serial, Threads
from rankwright.scorers import Kernel, KernelSum, Linear, read_scorer

NAMES = ("rbf", "laplacian", "poly", "sigmoid", "linear")
SMALL = [Nystroem(n_components=10), KernelPCA(10, kernel="rbf")]
FAST = {"first_sigma": 2.0, "last_sigma": 1.0, "max_iter": 5}


@pytest.fixture(scope="module")
def queries() -> rw.Queries:
    return rw.make_queries(24, n_docs=10, n_features=5, random_state=0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory, queries):
    path = tmp_path_factory.mktemp("kernel") / "m.json"
    rw.save(rw.SmoothRank(kernel_map="nystroem", **FAST).fit(queries), path)
    return path


def some(name: str, n_landmarks: int = 7, n_features: int = 3, seed: int = 0) -> KernelSum:
    rng = np.random.default_rng(seed)
    scaling = rng.normal(size=n_features), rng.uniform(0.5, 2, n_features)
    landmarks, dual = rng.normal(size=(n_landmarks, n_features)), rng.normal(size=n_landmarks)
    return KernelSum(Kernel(name, 0.3, -0.5, 4), *scaling, landmarks, dual, 0.25)


def bump(n_queries: int, seed: int) -> rw.Queries:
    """Relevant where the first feature is near to 0."""
    X = np.random.default_rng(seed).normal(size=(n_queries * 12, 3))
    return rw.Queries.from_arrays(X, np.abs(X[:, 0]) < 0.4, np.repeat(np.arange(n_queries), 12))


def xor(n_queries: int, seed: int) -> rw.Queries:
    """Relevant where the first two features have one sign."""
    X = np.random.default_rng(seed).normal(size=(n_queries * 12, 3))
    return rw.Queries.from_arrays(X, X[:, 0] * X[:, 1] > 0.3, np.repeat(np.arange(n_queries), 12))


class TestScorer:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("n_landmarks", [1, 4, 7])
    def test_equals_its_twin(self, name, n_landmarks):
        scorer = some(name, n_landmarks)
        X = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
        np.testing.assert_allclose(scorer(X), [score(scorer, row) for row in X.astype(float)], rtol=1e-12, atol=1e-13)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_row_has_its_bits_alone(self, name):
        scorer = some(name, 37)
        X = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
        alone = np.concatenate([scorer(X[i : i + 1]) for i in range(len(X))])
        assert alone.tobytes() == scorer(X).tobytes()

    @pytest.mark.parametrize("name", ["rbf", "laplacian", "sigmoid"])
    def test_far_documents_have_finite_scores(self, name):
        far = np.full((1, 3), 3e38, dtype=np.float32)
        assert np.isfinite(some(name)(np.concatenate([far, -far]))).all()

    @pytest.mark.parametrize("name", NAMES)
    def test_json_keeps_every_bit(self, name):
        scorer = some(name)
        again = read_scorer(json.loads(json.dumps({"kind": scorer.kind, **scorer.to_json()})))
        X = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
        assert again(X).tobytes() == scorer(X).tobytes()
        assert again.to_json() == scorer.to_json()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"kernel": "chi2"}, "kernel 'chi2'; expected one of rbf"),
            ({"kernel": ["rbf"]}, "expected one of rbf"),
            ({"gamma": float("nan")}, "expected a finite number"),
            ({"gamma": -1.0}, "expected a finite number from 0 up"),
            ({"gamma": "1"}, "expected a finite number"),
            ({"coef0": None}, "expected a finite number"),
            ({"degree": 2.0}, "whole number from 1 to 100"),
            ({"degree": 0}, "whole number from 1 to 100"),
            ({"degree": True}, "whole number from 1 to 100"),
            ({"degree": 10**30}, "whole number from 1 to 100"),
            ({"mean": [0.0, 0.0]}, "differ in length"),
            ({"factor": [1.0]}, "differ in length"),
            ({"factor": [1.0, float("inf"), 1.0]}, "expected a finite number"),
            ({"dual": [1.0]}, "differ in length"),
            ({"dual": [True] * 7}, "expected a finite number"),
            ({"dual": [1e308] * 7}, "no finite sum"),
            ({"dual": [], "landmarks": []}, "no landmarks"),
            ({"landmarks": [[0.0] * 3] * 6 + [[0.0] * 2]}, "differ in length"),
            ({"landmarks": [[0.0] * 3] * 6 + ["abc"]}, "in place of a list"),
            ({"landmarks": [[0.0] * 3] * 6 + [3]}, "damaged model"),
            ({"intercept": float("inf")}, "expected a finite number"),
        ],
    )
    def test_damaged(self, tmp_path, change, message):
        model = rw.load(_saved(some("rbf"), tmp_path / "m.json"))
        content = json.loads((tmp_path / "m.json").read_text())
        content["scorer"] |= change
        (tmp_path / "m.json").write_text(json.dumps(content))
        assert isinstance(model.scorer, KernelSum)
        with pytest.raises(rw.InputError, match=message):
            rw.load(tmp_path / "m.json")

    @pytest.mark.parametrize("part", ["kernel", "gamma", "mean", "landmarks", "dual", "intercept"])
    def test_lacking_a_part(self, tmp_path, part):
        path = _saved(some("rbf"), tmp_path / "m.json")
        content = json.loads(path.read_text())
        del content["scorer"][part]
        path.write_text(json.dumps(content))
        with pytest.raises(rw.InputError, match=f"the model lacks '{part}'"):
            rw.load(path)

    def test_the_documented_examples_load(self, tmp_path):
        model, *scorers = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "models.md").read_text(), re.DOTALL)
        content = json.loads(model)
        assert len(scorers) == 3
        for each in (content, *(content | {"scorer": json.loads(scorer)} for scorer in scorers)):
            (tmp_path / "m.json").write_text(json.dumps(each))
            assert np.isfinite(rw.load(tmp_path / "m.json").predict(np.ones((1, 2)))).all()

    def test_other_features(self, tmp_path):
        with pytest.raises(rw.InputError, match="2 features; the landmarks have 3"):
            some("rbf")(np.zeros((1, 2), np.float32))
        model = Model("SmoothRank", {}, "map", some("rbf"), 4)
        rw.save(model, tmp_path / "m.json")
        with pytest.raises(rw.InputError, match="does not fit 4 features"):
            rw.load(tmp_path / "m.json")


def _saved(scorer, path):
    rw.save(Model("SmoothRank", {}, "map", scorer, 3), path)
    return path


MAPS = [
    Nystroem(n_components=20, random_state=1),
    Nystroem(kernel="laplacian", gamma=0.1, n_components=20, random_state=1),
    Nystroem(kernel="polynomial", degree=2, coef0=0.5, n_components=10, random_state=1),
    Nystroem(kernel="sigmoid", gamma=0.01, n_components=4, random_state=1),
    Nystroem(kernel="linear", n_components=5, random_state=1),
    KernelPCA(kernel="rbf", n_components=20),
    KernelPCA(kernel="poly", degree=2, gamma=0.1, coef0=2.0, n_components=10),
    KernelPCA(kernel="linear", n_components=3),
]


class TestMap:
    @pytest.mark.parametrize("unfitted", MAPS, ids=str)
    @pytest.mark.parametrize("scale", ["standard", None])
    def test_is_the_one_of_scikit_learn(self, queries, unfitted, scale):
        """But for a shift and a factor, and for rounding.

        Rounding: scikit-learn takes |x - z|^2 apart, and both divide by the roots of eigenvalues, which may be a
        millionth of the largest root: 1e-16 becomes 1e-10 and more.
        """
        if scale is None:
            queries = queries.with_X(rw.scale_features(queries, "standard").X)  # or else nothing is alike
        found = learn_map(unfitted, queries, scale, Serial())
        X = (queries.X.astype(float) - found.at.mean) * found.at.factor
        theirs = clone(unfitted).fit(X)
        w = np.random.default_rng(0).normal(size=found.at.projection.shape[1])
        center = theirs.transform(found.at.landmarks)
        size = np.sqrt(center.var(axis=0).mean())
        expected = ((theirs.transform(X) - center.mean(axis=0)) / size) @ w + 0.5
        for scores in (found.scorer(Linear(w, 0.5))(queries.X), found(queries).X @ w + 0.5):
            np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())

    def test_scores_of_mapped_documents_are_those_of_documents(self, queries):
        found = learn_map("nystroem", queries, "standard", Serial())
        w = np.random.default_rng(0).normal(size=100)
        scores, mapped = found.scorer(Linear(w, 0.5))(queries.X), found(queries).X
        assert mapped.dtype == np.float64
        np.testing.assert_allclose(mapped @ w + 0.5, scores, rtol=0, atol=1e-9 * np.abs(scores).max())

    def test_equal_documents_stay_equal(self, queries):
        twice = rw.Queries.from_arrays(
            np.repeat(queries.X, 2, axis=0), np.zeros(2 * queries.n_docs), group=[2 * queries.n_docs]
        )
        mapped = learn_map("nystroem", queries, "standard", Serial())(twice).X
        assert mapped[::2].tobytes() == mapped[1::2].tobytes()

    def test_names_stand_for_at_most_100_components_of_the_rbf_kernel(self, queries):
        for name in ("nystroem", "kernel_pca"):
            found = learn_map(name, queries, "standard", Serial())
            assert found.at.kernel[:2] == ("rbf", 1 / 5)
            assert found(queries).n_features == 100
            assert found(queries).X.var(axis=0).mean() == pytest.approx(1, rel=0.5)
            few = queries.take([0])
            assert learn_map(name, few, "standard", Serial())(queries).n_features == few.n_docs

    def test_kernel_pca_takes_a_sample_by_its_seed(self, queries, monkeypatch):
        monkeypatch.setattr(maps, "MOST_DOCUMENTS", 50)
        first, again, other = (
            learn_map(KernelPCA(kernel="rbf", n_components=5, random_state=seed), queries, None, Serial()).at.landmarks
            for seed in (0, 0, 1)
        )
        assert first.shape == (50, 5)
        assert first.tobytes() == again.tobytes() != other.tobytes()
        assert {row.tobytes() for row in first} <= {row.tobytes() for row in queries.X.astype(float)}
        nystroem = learn_map(Nystroem(n_components=60), queries, None, Serial())
        assert nystroem.at.landmarks.shape == (60, 5)

    def test_an_instance_is_not_changed(self, queries):
        given = Nystroem(n_components=1000)
        before = dict(given.__dict__)
        seedless, seeded = (
            learn_map(each, queries, None, Serial()) for each in (given, Nystroem(n_components=1000, random_state=0))
        )
        assert given.__dict__ == before
        assert seedless.at.projection.tobytes() == seeded.at.projection.tobytes()
        assert seedless.at.projection.shape == (queries.n_docs, queries.n_docs)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("pca", "expected None, 'nystroem', 'kernel_pca', a Nystroem or a KernelPCA"),
            (Nystroem, "expected None"),
            (7, "kernel_map=7; expected None"),
            (Nystroem(kernel=lambda x, y: 1.0), "expected the name of one"),
            (KernelPCA(kernel="precomputed"), "kernel 'precomputed'; expected the name"),
            (Nystroem(kernel="chi2"), "kernel 'chi2'; expected one of rbf"),
            (Nystroem(kernel="none"), "kernel 'none'; expected one of rbf"),
            (Nystroem(kernel_params={"gamma": 1}), "kernel_params; expected gamma"),
            (Nystroem(gamma=-1), "gamma -1"),
            (Nystroem(gamma="x"), "expected a finite number"),
            (Nystroem(kernel="poly", degree=2.5), "whole number from 1 to 100"),
            (Nystroem(n_components=0), "'n_components' parameter of Nystroem must be"),
            (KernelPCA(kernel="sigmoid", gamma=5.0), "negative eigenvalues"),
            (Nystroem(random_state="x"), "random_state"),
        ],
    )
    def test_what_cannot_be(self, queries, given, message):
        with pytest.raises(rw.InputError, match=message) as found:
            rw.SmoothRank(kernel_map=given).fit(queries)
        assert "\n" not in str(found.value)

    def test_kernels_that_overflow(self, queries):
        wild = queries.with_X(queries.X / np.abs(queries.X).max(axis=0) * np.float32(1e30))
        with pytest.raises(rw.InputError, match="kernel_map"):
            rw.SmoothRank(kernel_map=Nystroem(kernel="poly", degree=9), scale=None).fit(wild)


class TestSmoothRank:
    @may_not_converge
    @pytest.mark.parametrize("make", [bump, xor])
    @pytest.mark.parametrize("kernel_map", [Nystroem(n_components=40), KernelPCA(30, kernel="rbf")], ids=str)
    def test_learns_what_no_linear_ranker_can(self, make, kernel_map):
        train, valid, test = make(40, 0), make(20, 1), make(40, 2)
        options = {"measure": "ndcg@5", "alpha": 0.01, "first_sigma": 2.0, "last_sigma": 0.5, "max_iter": 10}
        linear = rw.SmoothRank(**options).fit(train, valid=valid)
        mapped = rw.SmoothRank(kernel_map=kernel_map, **options).fit(train, valid=valid)
        assert mapped.score(test) > 0.9
        assert mapped.score(test) > linear.score(test) + 0.2

    @may_not_converge
    @pytest.mark.parametrize("scale", ["standard", "query", None])
    @pytest.mark.parametrize("kernel_map", SMALL, ids=str)
    def test_history_and_saved_model_tell_what_predict_does(self, queries, scale, kernel_map, tmp_path):
        scaled = queries.with_X(rw.scale_features(queries, "standard").X)
        train, valid = scaled.slice(0, 16), scaled.slice(16, 24)
        ranker = rw.SmoothRank(kernel_map=kernel_map, scale=scale, **FAST).fit(train, valid=valid)
        last = ranker.history_[-1]
        assert [row["sigma"] for row in ranker.history_] == [2.0, 1.0]
        assert last["train"] == pytest.approx(ranker.score(train), abs=1e-12)
        assert last["valid"] == pytest.approx(ranker.score(valid), abs=1e-12)
        rw.save(ranker, tmp_path / "m.json")
        model = rw.load(tmp_path / "m.json")
        scores = ranker.predict(valid)
        assert model.predict(valid).tobytes() == scores.tobytes()
        assert model.params["kernel_map"] == str(kernel_map)
        assert ranker.predict(valid.X, qid=valid.row_qid).tobytes() == scores.tobytes()

    @may_not_converge
    def test_standard_scaling_is_part_of_the_scorer(self, queries, monkeypatch):
        """In units of any size, so that the scales change no bits but those of rounding."""
        monkeypatch.setattr(rw.SmoothRank, "_sorts_rows", lambda self: False)  # another order draws other landmarks
        other = queries.with_X(queries.X * np.float32(2.0) ** np.array([-20, 0, 3, 10, 20], np.float32))
        here, there = (rw.SmoothRank(kernel_map="nystroem", **FAST).fit(each) for each in (queries, other))
        np.testing.assert_allclose(here.predict(queries), there.predict(other), rtol=1e-9, atol=1e-9)

    @may_not_converge
    def test_there_is_no_coef(self, queries):
        ranker = rw.SmoothRank(kernel_map="nystroem", **FAST).fit(queries)
        assert not hasattr(ranker, "coef_")
        with pytest.raises(AttributeError, match="a kernel model has no coef_"):
            ranker.coef_  # noqa: B018
        assert not hasattr(rw.SmoothRank(), "coef_")
        assert rw.SmoothRank(**FAST).fit(queries).coef_.shape == (5,)

    def test_weights_to_start_from_are_refused(self, queries):
        with pytest.raises(rw.InputError, match="start has weights of features, a kernel map has none"):
            rw.SmoothRank(kernel_map="nystroem", start=np.zeros(5)).fit(queries)

    @may_not_converge
    def test_paths_and_selection(self, queries):
        train, valid = queries.slice(0, 16), queries.slice(16, 24)
        ranker = rw.SmoothRank(kernel_map=Nystroem(n_components=15), **FAST)
        path = ranker.fit_path([0.1, 1e9], train, valid=valid)
        assert [each.alpha for each in path] == [0.1, 1e9]
        assert all(isinstance(each.scorer_, KernelSum) for each in path)
        one = clone(ranker).set_params(alpha=1e9).fit(train, valid=valid)
        assert one.predict(valid).tobytes() == path[1].predict(valid).tobytes()
        best = rw.select(ranker, {"alpha": [0.1, 1e9]}, train, valid)
        assert best.score(valid) == max(each.score(valid) for each in path)
        assert best.get_params()["kernel_map__n_components"] == 15

    def test_the_start_is_the_regression_of_mapped_documents(self, queries):
        """A penalty that lets nothing move leaves the start, which Regression finds among the mapped documents."""
        queries = sort_by_content(queries, Serial())
        space = learn_map("nystroem", queries, "standard", Serial())
        start = rw.SmoothRank(kernel_map="nystroem", alpha=1e12, **FAST).fit(queries).predict(queries)
        mapped = space(queries)
        regression = rw.Regression(alpha=1.0, scale=None).fit(mapped)
        expected = mapped.X @ regression.coef_
        np.testing.assert_allclose(start - start.mean(), expected - expected.mean(), rtol=0, atol=1e-6)

    @may_not_converge
    @pytest.mark.parametrize("kernel_map", SMALL, ids=str)
    def test_the_same_bits_again_and_on_every_backend(self, kernel_map, monkeypatch):
        monkeypatch.setattr(maps, "MOST_DOCUMENTS", 100)
        data = rw.make_queries(400, n_docs=30, n_features=4, random_state=1)
        options = {"kernel_map": kernel_map, "first_sigma": 1.0, "last_sigma": 1.0, "max_iter": 2}
        scores = [
            rw.SmoothRank(**options, backend=backend).fit(data).predict(data).tobytes()
            for backend in (Serial(), Serial(), Threads(2))
        ]
        assert len(set(scores)) == 1

    @may_not_converge
    @may_learn_nothing
    @pytest.mark.parametrize("kernel_map", ["nystroem", "kernel_pca", KernelPCA(kernel="rbf")], ids=str)
    @pytest.mark.parametrize("scale", ["standard", "query", None])
    def test_survives(self, kernel_map, scale):
        rng = np.random.default_rng(0)
        X, y, qid = rng.normal(size=(30, 3)), rng.integers(0, 3, 30), np.repeat(np.arange(6), 5)
        make = rw.Queries.from_arrays
        for data in (
            make(np.ones((30, 3)), y, qid),
            make(np.column_stack([X[:, :2], np.ones(30)]), y, qid),
            make(rng.integers(0, 2, (30, 3)), y, qid),
            make(X, y, np.arange(30)),
            make(X[:1], [1], [1]),
            make(X, np.zeros(30), qid),
            make(X * [1e-6, 1, 1e9], y, qid),
        ):
            fitted = rw.SmoothRank(kernel_map=kernel_map, scale=scale, **FAST).fit(data)
            assert np.isfinite(fitted.predict(data)).all()

    @may_not_converge
    def test_a_feature_that_was_constant_does_not_count(self, queries):
        X = queries.X.copy()
        X[:, 2] = 7.0
        ranker = rw.SmoothRank(kernel_map="nystroem", **FAST).fit(queries.with_X(X))
        other = X.copy()
        other[:, 2] = -1e6
        assert ranker.predict(other).tobytes() == ranker.predict(X).tobytes()


class TestAround:
    """What other parts make of such a model."""

    @may_not_converge
    def test_explain_says_that_it_cannot(self, saved, capsys):
        assert cli.run(["explain", "--model", str(saved)]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert "a scorer of kind 'kernel' has no function for each feature" in line

    @may_not_converge
    def test_diagnose_says_nothing_of_single_weights(self, saved, queries):
        found = rw.diagnose(rw.load(saved), queries)
        assert found.seen
        assert found.weight_gains is None
        assert str(found).startswith("SmoothRank")

    def test_the_command_line_takes_names(self, tmp_path, queries):
        rw.write_letor(queries, tmp_path / "train.txt")
        options = ["--set", "kernel_map=kernel_pca", "--set", "last_sigma=32", "--set", "max_iter=2"]
        files = ["--train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "m.json")]
        assert cli.run(["fit", "smoothrank", *files, *options]) == 0
        assert isinstance(rw.load(tmp_path / "m.json").scorer, KernelSum)

    @may_have_warned_in_trials
    def test_a_report_leaves_out_weights_and_steps(self, tmp_path, queries, monkeypatch):
        monkeypatch.setattr(maps, "_COMPONENTS", 10)
        rw.write_letor(queries, tmp_path / "all.txt")
        content = {
            "data": {"file": str(tmp_path / "all.txt"), "n_folds": 3, "seed": 1},
            "measure": "ndcg@5",
            "methods": [{"ranker": "smoothrank", "set": {"kernel_map": "nystroem"} | FAST}],
        }
        results = rw.run_experiment(experiment_from_json(content, tmp_path), tmp_path / "out", Serial())
        assert {"history", "bounds"} <= set(results.tables)
        assert not {"weights", "steps"} & set(results.tables)
        assert cli.run(["report", str(tmp_path / "out")]) == 0
        assert (tmp_path / "out" / "report.html").exists()
