"""Torch modules as scorers: plain networks become arrays, others stay what they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import rankwright as rw
from rankwright.optimisers.torch_modules import ACTIVATIONS, build_network, read_layers
from rankwright.scorers import Network


class TestNetworks:
    def test_first_weights(self):
        state = torch.get_rng_state()
        wide = build_network(400, (300, 200), "relu", 3)
        assert [type(layer) for layer in wide] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
        assert [tuple(layer.weight.shape) for layer in wide[::2]] == [(300, 400), (200, 300), (1, 200)]
        assert all(not layer.bias.any() for layer in wide[::2])
        deviations = [float(layer.weight.detach().std()) for layer in wide[::2]]
        assert deviations == pytest.approx([(1 / 400) ** 0.5, (2 / 300) ** 0.5, (2 / 200) ** 0.5], rel=0.15)
        assert torch.equal(torch.get_rng_state(), state)
        again, other = build_network(400, (300, 200), "relu", 3), build_network(400, (300, 200), "relu", 4)
        assert torch.equal(wide[0].weight, again[0].weight)
        assert not torch.equal(wide[0].weight, other[0].weight)

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("hidden", [(), (3,), (8, 5)])
    def test_plain_ones_are_arrays(self, hidden, activation):
        module = build_network(6, hidden, activation, 0)
        with torch.no_grad():
            for layer in module[::2]:
                layer.bias.normal_(generator=torch.Generator().manual_seed(0))
        layers = read_layers(module)
        assert layers is not None
        assert layers[2] == (activation if hidden else "relu")
        X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
        scores = module(torch.as_tensor(X)).detach().numpy()[:, 0]
        assert Network(np.zeros(6), np.ones(6), *layers)(X) == pytest.approx(scores, rel=1e-5, abs=1e-5)
        before = [part.copy() for part in (*layers[0], *layers[1])]
        with torch.no_grad():
            module[0].weight.zero_()
            module[0].bias.zero_()
        assert all((a == b).all() for a, b in zip(before, (*layers[0], *layers[1]), strict=True))  # copies

    def test_without_biases_and_alone(self):
        layers = read_layers(nn.Sequential(nn.Linear(2, 3, bias=False), nn.SiLU(), nn.Linear(3, 1)))
        assert layers is not None
        assert layers[1][0].tolist() == [0.0, 0.0, 0.0]
        assert read_layers(nn.Linear(4, 1)) is not None

    def test_others_are_not_plain(self):
        class Doubled(nn.Sequential):
            def forward(self, x):
                return 2.0 * super().forward(x)

        class Odd(nn.Linear):
            pass

        a, b = nn.Linear(2, 3), nn.Linear(3, 1)
        hooked = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        hooked[0].register_forward_hook(lambda module, inputs, output: 2.0 * output)
        others = [
            nn.Sequential(),
            nn.Sequential(a, nn.ReLU()),
            nn.Sequential(nn.ReLU(), a, nn.ReLU()),
            nn.Sequential(a, b),
            nn.Sequential(a, nn.ReLU(), nn.Linear(3, 3), nn.Tanh(), b),
            nn.Sequential(a, nn.GELU(approximate="tanh"), b),
            nn.Sequential(a, nn.LeakyReLU(), b),
            nn.Sequential(a, nn.LayerNorm(3), b),
            nn.Sequential(a, nn.ReLU(), nn.Linear(3, 2)),
            nn.Sequential(nn.Sequential(a, nn.ReLU()), nn.Tanh(), b),
            nn.Sequential(Odd(2, 3), nn.ReLU(), b),
            Doubled(a, nn.ReLU(), b),
            hooked,
            nn.ReLU(),
        ]
        assert [read_layers(module) for module in others] == [None] * len(others)


class Normed(nn.Module):
    """Not a plain network."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(n_features, 6), nn.LayerNorm(6), nn.Linear(6, 1)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


def dropping(n_features):
    return nn.Sequential(nn.Linear(n_features, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(40, n_docs=12, n_features=5, random_state=0)


def fitted(queries, network, **options):
    training = {"n_epochs": 10, "learning_rate": 0.03, **options.pop("training", {})}
    return rw.NeuralRanker(network=network, training=training, **options).fit(
        queries.take(range(25)), valid=queries.take(range(25, 40))
    )


class TestUsersModules:
    def test_one_that_is_not_plain_trains_and_predicts(self, queries):
        ranker, valid = fitted(queries, Normed), queries.take(range(25, 40))
        assert ranker.scorer_.kind == "torch"
        assert ranker.history_[-1]["loss"] < 0.9 * ranker.history_[0]["loss"]
        [best] = [row for row in ranker.history_ if row.get("kept")]
        assert best["valid"] == max(row["valid"] for row in ranker.history_)
        assert ranker.score(valid) == pytest.approx(best["valid"], abs=1e-9)
        scores = ranker.predict(queries)
        assert scores.dtype == np.float64
        with torch.no_grad():
            X = torch.as_tensor((queries.X - ranker.scorer_.standard.mean) * ranker.scorer_.standard.factor).float()
            assert scores == pytest.approx(ranker.scorer_.module(X).numpy()[:, 0], abs=1e-5)

    def test_it_is_not_saved(self, queries, tmp_path):
        ranker = fitted(queries, Normed)
        with pytest.raises(rw.InputError, match=r"m\.json: not written: only plain feed-forward networks .*state_dict"):
            rw.save(ranker, tmp_path / "m.json")
        assert list(tmp_path.iterdir()) == []

    def test_a_plain_one_is(self, queries, tmp_path):
        own = nn.Sequential(nn.Linear(5, 7, bias=False), nn.Tanh(), nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 1))
        before = own[0].weight.detach().clone()
        ranker = fitted(queries, own)
        assert isinstance(ranker.scorer_, Network)
        assert not np.array_equal(before.numpy(), ranker.scorer_.weights[0].T)
        assert torch.equal(own[0].weight, before)  # the user's own module is not changed
        rw.save(ranker, tmp_path / "m.json")
        assert rw.load(tmp_path / "m.json").predict(queries).tobytes() == ranker.predict(queries).tobytes()

    def test_weights_that_are_frozen_stay(self, queries):
        own = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
        own[0].requires_grad_(False)
        ranker = fitted(queries, own)
        assert np.array_equal(ranker.scorer_.weights[0].T, own[0].weight.numpy())
        assert not np.array_equal(ranker.scorer_.weights[1].T, own[2].weight.detach().numpy())

    @pytest.mark.parametrize("network", [Normed, dropping])
    def test_a_seed_decides(self, queries, network):
        state = torch.get_rng_state()
        fits = [
            fitted(queries, network, random_state=seed, backend=backend).predict(queries).tobytes()
            for seed, backend in ((0, rw.Serial()), (0, rw.Threads(2)), (1, None))
        ]
        assert fits[0] == fits[1] != fits[2]
        assert torch.equal(torch.get_rng_state(), state)

    def test_dropout_is_off_in_prediction(self, queries):
        ranker = fitted(queries, dropping)
        assert ranker.predict(queries).tobytes() == ranker.predict(queries).tobytes()

    def test_scores_may_be_flat(self, queries):
        shaped = fitted(queries, lambda d: nn.Sequential(nn.Linear(d, 1), nn.Flatten(0)), random_state=2)
        plain = fitted(queries, lambda d: nn.Linear(d, 1), random_state=2)
        assert (shaped.scorer_.kind, plain.scorer_.kind) == ("torch", "network")
        assert shaped.predict(queries) == pytest.approx(plain.predict(queries), abs=1e-5)

    @pytest.mark.parametrize(
        ("network", "message"),
        [
            ("tanh", "network='tanh'; expected a torch module"),
            (lambda d: None, "network made a NoneType; expected a torch module"),
            (nn.Linear(5, 2), r"returned \(3, 2\) for 3 documents; expected a score for each"),
            (nn.Linear(7, 1), "does not take 5 features"),
            (nn.Identity(), "returned|no parameters to train"),
            (lambda d: nn.Sequential(nn.Linear(d, 1)).requires_grad_(False), "no parameters to train"),
            (lambda d: nn.Sequential(nn.Linear(d, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)), "BatchNorm1d.*LayerNorm"),
        ],
    )
    def test_errors(self, queries, network, message):
        with pytest.raises(rw.InputError, match=message):
            fitted(queries, network)

    def test_there_must_be_a_network(self, queries):
        for hidden in ((), None):
            with pytest.raises(rw.InputError, match="expected hidden layers"):
                rw.NeuralRanker(hidden=hidden).fit(queries)
        assert fitted(queries, Normed, hidden=None).scorer_.kind == "torch"
