"""Training in epochs: parameters, the epoch that is kept, errors, and what works without torch."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from tests.warned import may_be_ineffective

import rankwright as rw
from rankwright.rankers.networks.training_options import TrainingOptions, check_hidden


@pytest.fixture(scope="module")
def train():
    return rw.make_queries(30, n_docs=12, n_features=5, random_state=0)


@pytest.fixture(scope="module")
def valid():
    return rw.make_queries(20, n_docs=12, n_features=5, random_state=1)


class TestParameters:
    def test_a_mapping_says_what_differs_from_the_usual(self):
        usual = TrainingOptions(learning_rate=3.0, activation="tanh")
        assert TrainingOptions.of(None) == TrainingOptions()
        assert TrainingOptions.of(None, usual) == usual
        assert TrainingOptions.of({"n_epochs": 7}, usual) == TrainingOptions(
            learning_rate=3.0, activation="tanh", n_epochs=7
        )
        assert TrainingOptions.of(TrainingOptions(n_epochs=7), usual) == TrainingOptions(
            n_epochs=7
        )  # one that is whole
        assert rw.TrainingOptions is TrainingOptions

    def test_numbers_of_numpy_are_numbers(self):
        found = TrainingOptions.of(
            {"learning_rate": np.float32(0.5), "n_epochs": np.int64(3), "early_stopping_rounds": np.int32(2)}
        )
        assert found == TrainingOptions(learning_rate=0.5, n_epochs=3, early_stopping_rounds=2)
        assert {type(found.learning_rate), type(found.n_epochs), type(found.early_stopping_rounds)} == {float, int}

    @pytest.mark.parametrize(
        ("training", "message"),
        [
            ({"learning_rates": 1.0}, "training has no parameter 'learning_rates'; did you mean learning_rate?"),
            ({"epochs": 1}, "training has no parameter 'epochs'; it is called n_epochs here"),
            ({"xyz": 1}, "training has no parameter 'xyz'; there are optimiser, learning_rate, n_epochs"),
            ({3: 3}, "training has no parameter 3"),
            (5, "training=5; expected TrainingOptions or a mapping"),
            ("adam", "training='adam'; expected TrainingOptions or a mapping"),
            ({"learning_rate": 0}, "training.learning_rate=0; expected a number above 0"),
            ({"learning_rate": -1.0}, "training.learning_rate=-1.0"),
            ({"learning_rate": float("nan")}, "training.learning_rate=nan"),
            ({"learning_rate": "fast"}, "training.learning_rate='fast'"),
            ({"n_epochs": 0}, "training.n_epochs=0; expected a whole number of at least 1"),
            ({"n_epochs": 2.0}, "training.n_epochs=2.0"),
            ({"batch_size": 0}, "training.batch_size=0"),
            ({"early_stopping_rounds": 0}, "training.early_stopping_rounds=0"),
            ({"optimiser": "sgd"}, "training.optimiser='sgd'; expected 'adam' or 'adaptive'"),
            ({"activation": "swish"}, "training.activation='swish'; expected 'relu' or 'tanh'"),
            ({"device": 1}, "training.device=1"),
            ({"device": "nonsense"}, "device='nonsense'; expected 'cpu' or 'cuda'"),
            ({"device": "meta"}, "device='meta'; expected 'cpu' or 'cuda'"),
            ({"device": "cuda:99"}, "device='cuda:99'; torch sees .* GPU"),
            ({"checkpoint": 3}, "training.checkpoint=3; expected a path"),
            ({"checkpoint": "/no/such/folder/c"}, "there is no folder /no/such/folder"),
        ],
    )
    def test_errors(self, train, training, message):
        with pytest.raises(rw.InputError, match=message):
            rw.ListNet(hidden=(4,), training=training).fit(train)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_a_gpu_that_is_not_there(self, train):
        for ranker in (rw.BayesRank, rw.NeuralRanker):
            with pytest.raises(rw.InputError, match="device='cuda'; torch sees no GPU here"):
                ranker(training={"device": "cuda"}).fit(train)

    @pytest.mark.parametrize("hidden", ["44", {4: 4}, (0,), (-1,), (4.0,), [True], ((4,),), np.array(4.5), 2.5])
    def test_hidden_layers_that_are_none(self, train, hidden):
        with pytest.raises(rw.InputError, match="hidden="):
            rw.ListNet(hidden=hidden).fit(train)

    def test_hidden_layers(self):
        for hidden in ((8, 4), [8, 4], np.array([8, 4])):
            assert check_hidden(hidden) == (8, 4)
        assert check_hidden(None) == check_hidden(()) == ()

    @may_be_ineffective
    def test_a_typo_is_found_without_hidden_layers_too(self, train):
        for ranker in (rw.ListNet, rw.SmoothRank, lambda **options: rw.BayesRank(hidden=None, **options)):
            with pytest.raises(rw.InputError, match="did you mean learning_rate"):
                ranker(training={"learning_rat": 1.0}).fit(train)


NETWORKS = {
    "ListNet": lambda **training: rw.ListNet(hidden=(4,), training=training),
    "LambdaRank": lambda **training: rw.LambdaRank(hidden=(4,), training=training),
    "BayesRank": lambda **training: rw.BayesRank(hidden=(4,), training=training),
    "BayesRank with Adam": lambda **training: rw.BayesRank(hidden=(4,), training={**training, "optimiser": "adam"}),
    "linear BayesRank": lambda **training: rw.BayesRank(hidden=None, training=training),
    "sampled BayesRank": lambda **training: rw.BayesRank(
        hidden=(4,), k=5, n_samples=2, training={**training, "learning_rate": 3.0}
    ),
    "NeuralRanker": lambda **training: rw.NeuralRanker(hidden=(4,), training=training),
}


class TestTheEpochThatIsKept:
    @pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
    def test_it_is_the_best_one_on_validation_queries(self, train, valid, make):
        ranker = make(n_epochs=15, learning_rate=0.05).fit(train, valid=valid)
        rows = ranker.history_
        assert [row["round"] for row in rows] == list(range(15))
        [at] = [t for t, row in enumerate(rows) if row.get("kept")]
        values = [row["valid"] for row in rows]
        assert at == values.index(max(values))  # the first of equals
        assert ranker.score(valid) == pytest.approx(max(values), abs=1e-12)
        assert len(set(values)) > 1
        shorter = make(n_epochs=at + 1, learning_rate=0.05).fit(train, valid=valid)
        assert shorter.predict(valid).tobytes() == ranker.predict(valid).tobytes()

    def test_without_any_it_is_the_last_one(self, train):
        ranker = NETWORKS["ListNet"](n_epochs=15, learning_rate=0.3).fit(train)
        assert [row["round"] for row in ranker.history_ if row.get("kept")] == [14]
        assert ranker.score(train) == pytest.approx(ranker.history_[-1]["train"], abs=1e-12)

    def test_early_stopping_without_validation_queries_is_an_error(self, train):
        for ranker in (
            NETWORKS["NeuralRanker"](n_epochs=4, early_stopping_rounds=2),
            rw.BayesRank(hidden=None, training={"early_stopping_rounds": 2}),
        ):
            with pytest.raises(
                rw.InputError, match=r"training\.early_stopping_rounds=2 without validation queries.* pass valid="
            ):
                ranker.fit(train)

    def test_early_stopping_ends_training(self, train, valid):
        whole = NETWORKS["NeuralRanker"](n_epochs=40, learning_rate=0.05).fit(train, valid=valid).history_
        values, lengths = [row["valid"] for row in whole], []
        for early_stopping_rounds in (1, 3, 6):
            rows = (
                NETWORKS["NeuralRanker"](n_epochs=40, learning_rate=0.05, early_stopping_rounds=early_stopping_rounds)
                .fit(train, valid=valid)
                .history_
            )
            best = values.index(max(values[: len(rows)]))
            assert [row["valid"] for row in rows] == values[: len(rows)]
            assert len(rows) == min(40, best + 1 + early_stopping_rounds)
            lengths.append(len(rows))
        assert lengths == sorted(lengths)
        assert lengths[0] < 40

    def test_documents_that_tie_are_judged_as_such(self):
        """Torch's products differ in the last bit between equal rows, which must not break ties."""
        for seed in range(8):
            rng = np.random.default_rng(seed)
            X, y = rng.integers(0, 2, (27, 2)).astype(float), rng.integers(0, 3, 27)
            data = rw.Queries.from_arrays(X, y, np.repeat([0, 1, 2], 9))
            ranker = rw.ListNet(hidden=(10,), training={"n_epochs": 3}).fit(data, valid=data)
            assert ranker.score(data) == pytest.approx(max(row["valid"] for row in ranker.history_), abs=1e-12)

    def test_smoothrank_has_a_chapter_for_each_sigma(self, train, valid):
        options = {"hidden": (4,), "first_sigma": 4.0, "last_sigma": 0.5, "training": {"n_epochs": 11}}
        ranker = rw.SmoothRank(**options).fit(train, valid=valid)
        rows = ranker.history_
        assert len(rows) == 11
        sigmas = [row["sigma"] for row in rows]
        assert list(dict.fromkeys(sigmas)) == [None, 4.0, 2.0, 1.0, 0.5]
        assert all(2 <= sigmas.count(sigma) <= 3 for sigma in set(sigmas))
        assert ["kept" in row for row in rows] == [False] * (len(rows) - 1) + [True]
        assert ranker.score(valid) == pytest.approx(rows[-1]["valid"], abs=1e-12)  # the last one is the model
        best = rw.SmoothRank(keep="best", **options).fit(train, valid=valid)
        assert best.score(valid) == pytest.approx(max(row["valid"] for row in rows), abs=1e-12)
        with pytest.raises(rw.InputError, match="n_epochs=4; expected at least 5"):
            rw.SmoothRank(**{**options, "training": {"n_epochs": 4}}).fit(train)
        with pytest.raises(rw.InputError, match="hidden layers and a kernel map"):
            rw.SmoothRank(kernel_map="nystroem", **options).fit(train)

    def test_smoothrank_holds_weights_to_those_of_the_regression(self, train):
        sigmas = {"first_sigma": 4.0, "last_sigma": 0.5}
        for prior, near in (("start", True), ("zero", False)):
            ranker = rw.SmoothRank(hidden=(4,), alpha=3.0, prior=prior, **sigmas, training={"n_epochs": 10}).fit(train)
            penalties = [(row["sigma"], row["objective"] - row["loss"]) for row in ranker.history_]
            assert {penalty for sigma, penalty in penalties if sigma is None} == {0.0}  # the regression is free
            first = next(penalty for sigma, penalty in penalties if sigma is not None)
            assert (first < 1.0) == near

    def test_alpha_holds_weights(self, train):
        for name, ranker in (("ListNet", rw.ListNet), ("NeuralRanker", rw.NeuralRanker), ("BayesRank", rw.BayesRank)):
            fits = [
                ranker(hidden=(4,), alpha=alpha, training={"n_epochs": 30, "learning_rate": 0.05}).fit(train)
                for alpha in (0.0, 1.0)
            ]
            last = [fit.history_[-1] for fit in fits]
            assert last[0]["objective"] == last[0]["loss"], name
            assert last[1]["objective"] > last[1]["loss"] > last[0]["loss"], name

    def test_a_path_is_fits_one_by_one(self, train):
        path = NETWORKS["ListNet"](n_epochs=4).fit_path([1.0, 0.01, 100.0], train)
        for ranker in path:
            alone = rw.ListNet(hidden=(4,), alpha=ranker.alpha, training={"n_epochs": 4}).fit(train)
            assert ranker.predict(train).tobytes() == alone.predict(train).tobytes()
        assert len({ranker.predict(train).tobytes() for ranker in path}) == 3


@pytest.fixture
def three_threads():
    """Torch's, whatever other tests have left."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


class TestErrors:
    @pytest.mark.parametrize("make", [NETWORKS["ListNet"], NETWORKS["BayesRank with Adam"]])
    def test_divergence_is_told(self, train, make):
        with pytest.raises(
            rw.InputError, match=r"training diverged in epoch \d+: the loss is (nan|inf); try a lower learning_rate"
        ):
            make(learning_rate=1e20, n_epochs=5).fit(train)

    def test_batch_descent_comes_back(self, train):
        ranker = NETWORKS["BayesRank"](learning_rate=1e30, n_epochs=200).fit(train)
        assert ranker.history_[-1]["loss"] < ranker.history_[0]["loss"]
        assert np.isfinite(ranker.predict(train)).all()

    def test_a_failed_fit_leaves_the_model(self, train):
        ranker = NETWORKS["ListNet"](n_epochs=2).fit(train)
        scores = ranker.predict(train)
        ranker.set_params(training={"learning_rate": 1e20})
        with pytest.raises(rw.InputError, match="diverged"):
            ranker.fit(train)
        assert ranker.predict(train).tobytes() == scores.tobytes()

    def test_a_network_has_no_weights_of_features(self, train):
        ranker = NETWORKS["ListNet"](n_epochs=1).fit(train)
        with pytest.raises(AttributeError, match="a network model has no coef_"):
            ranker.coef_  # noqa: B018
        assert rw.ListNet().fit(train).coef_.shape == (5,)
        assert rw.BayesRank(hidden=None, training={"n_epochs": 1}).fit(train).coef_.shape == (5,)

    @pytest.mark.usefixtures("three_threads")
    def test_torch_has_its_threads_back_in_every_thread(self):
        data = rw.make_queries(150, n_docs=40, n_features=5, random_state=0)  # several parts
        found, ready = [], threading.Barrier(3)

        def look(n_epochs):
            found.append(torch.get_num_threads())
            ready.wait()
            rw.ListNet(hidden=(4,), training={"n_epochs": n_epochs, "batch_size": 150}, backend=rw.Threads(2)).fit(data)
            found.append(torch.get_num_threads())

        threads = [threading.Thread(target=look, args=(n,)) for n in (1, 20)]
        for thread in threads:
            thread.start()
        look(1)
        for thread in threads:
            thread.join()
        rw.ListNet(hidden=(4,), training={"n_epochs": 1}, backend=rw.Threads(2)).fit_path([1.0, 2.0], data)
        new = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        new.start()
        new.join()
        assert [*found, torch.get_num_threads()] == [3] * 8


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("there is no torch")

sys.meta_path.insert(0, NoTorch())
import rankwright as rw
queries = rw.make_queries(10, random_state=0)
assert rw.ListNet().fit(queries).score(queries) > 0.3
assert rw.BayesRank(hidden=None, training={"n_epochs": 2}).fit(queries).score(queries) > 0.3
assert rw.BayesRank(hidden=None, k=None, training={"n_epochs": 2}).fit(queries).score(queries) > 0.3
rw.TrainingOptions(learning_rate=0.1)
for make in (rw.BayesRank, rw.NeuralRanker, lambda: rw.ListNet(hidden=(4,)), lambda: rw.SmoothRank(hidden=(4,))):
    try:
        make().fit(queries)
    except ImportError as error:
        print(error)
try:
    import rankwright.torch
except ImportError as error:
    print(error)
"""


def test_without_torch_only_networks_are_missing():
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    remedy = "this needs torch; install it with: pip install 'rankwright[torch]'"
    lines = found.stdout.splitlines()
    assert lines == [f"{remedy}, or train a linear scorer: BayesRank(hidden=None)", *[remedy] * 4]


def test_importing_rankwright_does_not_import_torch():
    code = "import sys, rankwright as rw; rw.BayesRank, rw.NeuralRanker, rw.ListNet().fit(rw.make_queries(5)); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
