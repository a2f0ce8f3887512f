"""Networks as arrays: what they compute, and how they are saved."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import rankwright as rw
from rankwright.models.model_json import format_model
from rankwright.scorers import Network, read_scorer
from rankwright.scorers.network import ACTIVATIONS

SHAPES = [(1, 1), (5, 1), (1, 3, 1), (4, 7, 1), (3, 8, 1), (9, 33, 5, 1), (6, 1, 4, 1), (5, 4, 17, 3, 1)]
BENDS = {
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "gelu": lambda x: x * np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2.0)))(x),
}


def random_network(widths: tuple[int, ...], activation: str = "relu", seed: int = 0, size: float = 1.0) -> Network:
    rng = np.random.default_rng(seed)
    weights = [size * rng.normal(size=shape) for shape in pairwise(widths)]
    biases = [size * rng.normal(size=width) for width in widths[1:]]
    return Network(rng.normal(size=widths[0]), rng.random(widths[0]) + 0.5, weights, biases, activation)


def documents(n: int, d: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def plain(network: Network, X: np.ndarray) -> np.ndarray:
    """The same in double precision by matrix products."""
    x = (X.astype(np.float64) - network.mean) * network.factor
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        x = x @ weight.astype(np.float64) + bias
        x = x if layer == len(network) - 1 else BENDS[network.activation](x)
    return x[:, 0]


class TestScores:
    def test_all_activations_are_tried(self):
        assert set(BENDS) == set(ACTIVATIONS)

    @pytest.mark.parametrize("activation", BENDS)
    @pytest.mark.parametrize("widths", SHAPES, ids=str)
    def test_they_are_those_of_matrix_products(self, widths, activation):
        network, X = random_network(widths, activation), documents(37, widths[0])
        assert len(network) == len(widths) - 1
        scores = network(X)
        assert scores.dtype == np.float64
        assert scores == pytest.approx(plain(network, X), rel=1e-12, abs=1e-12)

    @pytest.mark.parametrize("activation", BENDS)
    def test_a_row_alone_decides_whatever_is_beside_it(self, activation):
        network, X = random_network((5, 13, 6, 1), activation), documents(100, 5)
        scores = network(X)
        for size in (1, 2, 3, 7, 8, 9, 50):
            chunks = [network(X[start : start + size]) for start in range(0, 100, size)]
            assert np.concatenate(chunks).tobytes() == scores.tobytes()
        order = np.random.default_rng(0).permutation(100)
        assert network(X[order]).tobytes() == scores[order].tobytes()
        assert network(np.asfortranarray(X)).tobytes() == scores.tobytes()
        assert network(np.repeat(X, 2, axis=0)[::2]).tobytes() == scores.tobytes()

    def test_equal_rows_have_equal_scores(self):
        for n in (2, 9, 27, 101):
            assert len(np.unique(random_network((2, 10, 1))(np.repeat(documents(1, 2), n, axis=0)))) == 1

    @pytest.mark.parametrize("activation", BENDS)
    def test_extremes_of_single_precision(self, activation):
        """Bends of any number are finite, and right at their ends."""
        network = Network(np.zeros(1), np.ones(1), [[[1.0]], [[1.0]]], [[0.0], [0.0]], activation)
        most, least = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal
        X = np.array([[most], [-most], [least], [-least], [0.0], [-0.0], [750.0], [-750.0]], dtype=np.float32)
        scores = network(X)
        assert np.isfinite(scores).all()
        high, low = {"tanh": (1.0, -1.0), "sigmoid": (1.0, 0.0)}.get(activation, (float(most), 0.0))
        assert scores[:2].tolist() == [high, low]
        assert scores[2:6] == pytest.approx([0.5 if activation == "sigmoid" else 0.0] * 4, abs=1e-44)
        assert scores[6:] == pytest.approx([min(high, 750.0), low], abs=1e-300)

    def test_large_weights_do_not_overflow(self):
        network = random_network((3, 4, 4, 1), size=1e37)
        X = np.float32(1e37) * documents(9, 3)
        assert np.isfinite(network(X)).all()
        assert network(X) == pytest.approx(plain(network, X), rel=1e-10)

    def test_no_documents(self):
        assert random_network((3, 4, 1))(np.empty((0, 3), np.float32)).shape == (0,)

    def test_other_numbers_of_features_are_refused(self):
        network = random_network((3, 4, 1))
        assert network.accepts(3)
        assert not network.accepts(4)
        with pytest.raises(rw.InputError, match="2 features; the network has 3 inputs"):
            network(documents(5, 2))


class TestSaving:
    @pytest.mark.parametrize("widths", SHAPES, ids=str)
    def test_a_round_trip_keeps_every_bit(self, widths):
        usual, odd = random_network(widths, "tanh"), [1.0 / 3.0, -0.0, 1e-45, -3.4e38, 16777217.0]
        weights = [weight.copy() for weight in usual.weights]
        weights[0].flat[: len(odd)] = odd[: weights[0].size]
        network = Network(usual.mean / 3.0, usual.factor, weights, [-0.0 * bias for bias in usual.biases], "tanh")
        text = json.dumps({"kind": network.kind, **network.to_json()})
        again = read_scorer(json.loads(text))
        assert isinstance(again, Network)
        assert again.activation == "tanh"
        for one, other in ((network.mean, again.mean), (network.factor, again.factor)):
            assert one.tobytes() == other.tobytes()
        for one, other in zip([*network.weights, *network.biases], [*again.weights, *again.biases], strict=True):
            assert (one.tobytes(), one.shape, one.dtype) == (other.tobytes(), other.shape, other.dtype)
        X = documents(20, widths[0])
        assert again(X).tobytes() == network(X).tobytes()
        assert json.dumps({"kind": again.kind, **again.to_json()}) == text

    def test_numbers_are_as_short_as_single_precision_allows(self):
        network = Network(np.zeros(1), np.ones(1), [np.array([[0.1]])], [np.array([1e-30])])
        layer = {"weights": [[0.1]], "bias": [1e-30]}
        assert network.to_json() == {"activation": "relu", "mean": [0.0], "factor": [1.0], "layers": [layer]}

    def test_a_fitted_one(self, tmp_path):
        queries = rw.make_queries(20, n_features=4, random_state=0)
        fitted = rw.ListNet(hidden=(3, 2), training={"n_epochs": 2, "activation": "gelu"}).fit(queries)
        rw.save(fitted, tmp_path / "m.json")
        scorer = json.loads((tmp_path / "m.json").read_text())["scorer"]
        assert set(scorer) == {"kind", "activation", "mean", "factor", "layers"}
        assert (scorer["kind"], scorer["activation"]) == ("network", "gelu")
        shapes = [np.shape(layer["weights"]) for layer in scorer["layers"]]
        assert shapes == [(4, 3), (3, 2), (2, 1)]
        assert rw.load(tmp_path / "m.json").predict(queries).tobytes() == fitted.predict(queries).tobytes()

    def test_weights_that_are_not_finite_are_not_written(self, tmp_path):
        fitted = rw.ListNet(hidden=(2,), training={"n_epochs": 1}).fit(rw.make_queries(5, n_features=2, random_state=0))
        for mean, weight in ((np.nan, 1.0), (0.0, np.inf)):
            scorer = Network(np.full(2, mean), np.ones(2), [np.full((2, 1), weight)], [np.zeros(1)])
            with pytest.raises(rw.InputError, match="not finite"):
                rw.save(dataclasses.replace(fitted.to_model(), scorer=scorer), tmp_path / "m.json")
        assert list(tmp_path.iterdir()) == []


GOOD = {
    "kind": "network",
    "activation": "relu",
    "mean": [0.0, 1.0],
    "factor": [1.0, 2.0],
    "layers": [
        {"weights": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "bias": [0.0, 0.0, 1.0]},
        {"weights": [[1.0], [1.0], [-1.0]], "bias": [0.5]},
    ],
}
FIRST, LAST = GOOD["layers"]


def layers(*changed: dict) -> dict:
    return {"layers": list(changed)}


@pytest.fixture(scope="module")
def model_text():
    queries = rw.make_queries(5, n_features=2, random_state=0)
    return json.loads(format_model(rw.Regression().fit(queries).to_model()))


def test_what_is_damaged_below_is_whole(model_text, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({**model_text, "scorer": GOOD}))
    assert rw.load(tmp_path / "m.json").predict(np.array([[1.0, 1.0]])).tolist() == [1.0 + 2.0 - 4.0 + 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation": "swish"}, "activation 'swish'; expected one of relu, tanh"),
        ({"activation": 3}, "activation 3"),
        ({"activation": None}, "activation None"),
        ({"activation": ["relu"]}, r"activation \['relu'\]"),
        ({"activation": "x" * 1000}, r"activation 'x{36}\.\.\."),
        ({"mean": [0.0]}, "do not fit"),
        ({"mean": [0.0] * 3, "factor": [1.0] * 3}, "do not fit"),
        ({"factor": [1.0]}, "damaged model"),
        ({"mean": [0.0, None]}, "in place of a weight"),
        ({"factor": [0.0, float("inf")]}, "found Infinity"),
        ({"mean": 0.0}, "damaged model"),
        ({"mean": "ab"}, "in place of a list"),
        ({"mean": [0.0, 10**400]}, "damaged model"),
        ({"mean": [], "factor": []}, "do not fit"),
        (layers(), "without layers"),
        ({"layers": None}, "damaged model"),
        ({"layers": "ab"}, "damaged model"),
        ({"layers": {"weights": [], "bias": []}}, "damaged model"),
        (layers(FIRST), "other than one output"),
        (layers(LAST), "do not fit each other"),
        (layers(LAST, FIRST), "do not fit each other"),
        (layers(FIRST, FIRST), "do not fit each other"),
        (layers(FIRST, {**LAST, "bias": [0.5, 0.5]}), "do not fit each other"),
        (layers(FIRST, {**LAST, "bias": []}), "do not fit each other"),
        (layers(FIRST, {**LAST, "weights": []}), "do not fit each other"),
        (layers(FIRST, {"weights": [[], [], []], "bias": []}), "other than one output"),
        (layers({"weights": [[], []], "bias": []}, {"weights": [], "bias": [1.0]}), "do not fit each other"),
        (layers(FIRST, {**LAST, "weights": [[1.0], [1.0], [1.0, 2.0]]}), "do not fit each other"),
        (layers(FIRST, {**LAST, "weights": [1.0, 1.0, 1.0]}), "damaged model"),
        (layers(FIRST, {**LAST, "weights": [[[1.0]], [[1.0]], [[1.0]]]}), "in place of a weight"),
        (layers(FIRST, {**LAST, "weights": [[1.0], [1.0], [float("nan")]]}), "found NaN"),
        (layers(FIRST, {**LAST, "weights": [[1.0], [1.0], [True]]}), "in place of a weight"),
        (layers(FIRST, {**LAST, "weights": [[1.0], [1.0], ["1"]]}), "in place of a weight"),
        (layers(FIRST, {**LAST, "bias": [float("-inf")]}), "found -Infinity"),
        (layers(FIRST, {**LAST, "bias": [1e39]}), "too large for single precision"),
        (layers(FIRST, {**LAST, "bias": [10**400]}), "damaged model"),
        (layers(FIRST, {"weights": LAST["weights"]}), "lacks 'bias'"),
        (layers(FIRST, {"bias": LAST["bias"]}), "lacks 'weights'"),
        (layers(FIRST, 3), "damaged model"),
    ],
)
def test_damaged(model_text, tmp_path, change, message):
    (tmp_path / "m.json").write_text(json.dumps({**model_text, "scorer": {**GOOD, **change}}))
    with pytest.raises(rw.InputError, match=message):
        rw.load(tmp_path / "m.json")


@pytest.mark.parametrize("part", ["activation", "mean", "factor", "layers"])
def test_lacking_a_part(model_text, tmp_path, part):
    scorer = {name: value for name, value in GOOD.items() if name != part}
    (tmp_path / "m.json").write_text(json.dumps({**model_text, "scorer": scorer}))
    with pytest.raises(rw.InputError, match=f"the model lacks '{part}'"):
        rw.load(tmp_path / "m.json")


def test_it_does_not_fit_the_number_of_features(model_text, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({**model_text, "scorer": GOOD, "n_features": 3}))
    with pytest.raises(rw.InputError, match="does not fit 3 features"):
        rw.load(tmp_path / "m.json")


PREDICT = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("there is no torch")

sys.meta_path.insert(0, NoTorch())
import numpy as np
import rankwright as rw
model = rw.load(sys.argv[1])
X = np.arange(8, dtype=np.float32).reshape(4, 2)
sys.stdout.write(model.predict(X).tobytes().hex())
"""


def test_it_loads_and_predicts_without_torch(model_text, tmp_path):
    """And nothing of the file is taken for code, whatever it says."""
    evil = "__import__('os').system('touch pwned')"
    content = {**model_text, "scorer": {**GOOD, "activation": "silu"}, "params": {"network": evil}, "ranker": evil}
    (tmp_path / "m.json").write_text(json.dumps(content))
    found = subprocess.run(
        [sys.executable, "-c", PREDICT, str(tmp_path / "m.json")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    own = rw.load(tmp_path / "m.json").predict(np.arange(8, dtype=np.float32).reshape(4, 2))
    assert found.stdout == own.tobytes().hex()
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
