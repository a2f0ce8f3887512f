"""Training networks: batches, gradients, threads, seeds, the bridge to objectives without a torch form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import rankwright as rw
from rankwright import objectives as on
from rankwright.optimisers import torch_trainer as neural
from rankwright.optimisers.step_rules import Adam
from rankwright.optimisers.torch_modules import build_network
from rankwright.optimisers.torch_trainer import TorchTrainer, make_batches
from rankwright.torch import make_loss
from rankwright.torch.batches import DeviceLabels, LossLabels, QueryRows


@pytest.fixture(scope="module")
def queries():
    made = rw.make_queries(23, n_docs=9, n_features=4, random_state=0)
    weighted = rw.Queries(made.X, made.y, made.indptr, made.qid, weight=np.random.default_rng(0).random(23) + 0.5)
    return rw.scale_features(weighted, "standard")


def trainer_of(queries, objective, alpha=0.0, hidden=(3,), **options):
    options = {"batch_size": 8, "device": "cpu", "backend": rw.Serial(), **options}
    return TorchTrainer(build_network(queries.n_features, hidden, "tanh", 1), queries, objective, alpha, **options)


class TestBatches:
    @pytest.mark.parametrize("batch_size", [1, 2, 7, 16, 1000])
    @pytest.mark.parametrize("n", [1, 2, 16, 101])
    def test_every_query_is_in_one_of_them(self, n, batch_size):
        sizes = np.random.default_rng(n).integers(1, 200, n)
        found = make_batches(sizes, batch_size, np.random.default_rng(0))
        assert sorted(np.concatenate(found)) == list(range(n))
        lengths = {len(batch) for batch in found}
        assert len(found) == -(-n // batch_size)
        assert max(lengths) <= batch_size
        assert max(lengths) - min(lengths) <= 1

    def test_little_is_padded(self):
        sizes = np.random.default_rng(0).lognormal(4.0, 1.0, 1000).astype(int) + 1
        for seed in range(5):
            found = make_batches(sizes, 16, np.random.default_rng(seed))
            padded = sum(len(batch) * sizes[batch].max() for batch in found)
            assert padded < 1.3 * sizes.sum()
        mixed = np.array_split(np.random.default_rng(0).permutation(1000), 63)
        assert sum(len(batch) * sizes[batch].max() for batch in mixed) > 3 * sizes.sum()  # what it saves

    def test_they_differ_from_epoch_to_epoch(self):
        sizes = np.random.default_rng(0).integers(10, 60, 64)
        made = [make_batches(sizes, 8, np.random.default_rng(seed)) for seed in (0, 1, 0)]
        contents = [{frozenset(batch.tolist()) for batch in each} for each in made]
        assert contents[0] != contents[1]
        assert [batch.tolist() for batch in made[0]] == [batch.tolist() for batch in made[2]]
        longest = [sizes[batch].max() for batch in made[0]]
        assert longest != sorted(longest)  # nor are short queries always first
        assert longest != sorted(longest, reverse=True)

    def test_queries_of_many_documents_are_few_to_a_batch(self):
        most = neural._MOST_DOCS
        for sizes in (np.full(40, 50_000), np.array([most + 5, 3, most, 7]), np.array([3 * most])):
            found = make_batches(sizes, 16, np.random.default_rng(0))
            assert sorted(np.concatenate(found)) == list(range(len(sizes)))
            for batch in found:
                assert len(batch) == 1 or (len(batch) - 1) * sizes[batch].max() <= most


class TestPadding:
    def test_rows(self):
        rows = QueryRows(np.array([0, 3, 4, 9]), "cpu")
        assert rows.max_length(np.array([1, 0])) == 3
        found, mask = rows.pad(torch.tensor([2, 1, 0]), 6)
        assert mask.sum(dim=1).tolist() == [5, 1, 3]
        assert [found[i][mask[i]].tolist() for i in range(3)] == [[4, 5, 6, 7, 8], [3], [0, 1, 2]]
        assert int(found.max()) < 9  # padding is some document, so that its features exist

    def test_labels(self):
        labels = LossLabels(
            {"gain": np.array([1.0, 2.0, 3.0, 4.0]), "place": np.array([1, 0, 0, 1])},
            {"worth": np.array([5.0, 6.0])},
            np.array([2, 1]),
            {"discount": np.array([1.0, 0.5]), "u": 0.0},
        )
        lists, rows = DeviceLabels(labels, "cpu", torch.float32), QueryRows(np.array([0, 1, 4]), "cpu")
        at = torch.tensor([1, 0])
        assert lists.max_width(np.array([0])) == 2
        batch = lists.gather(at, *rows.pad(at, 4), 2)
        assert batch.documents["gain"].tolist() == [[2.0, 3.0, 4.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
        assert batch.documents["place"].tolist() == [[0, 0, 1, 3], [1, 1, 2, 3]]  # padding is its own place
        assert batch.queries["worth"].tolist() == [6.0, 5.0]
        assert batch.queries["worth"].dtype == torch.float32
        assert batch.slice(1, 2).mask.tolist() == [[True, False, False, False]]


OBJECTIVES = [
    on.TopOne(),
    on.Logistic("query"),
    on.Squares(),
    on.SoftPositions("ndcg@5", 1.0),
    on.ExpectedMeasure("ndcg@2"),
    on.objective_names.UserObjective(lambda s, queries: (float((s**3).sum()), 3.0 * s**2)),
]


class TestGradient:
    @pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
    @pytest.mark.parametrize("alpha", [0.0, 3.0])
    def test_it_is_the_slope_of_the_mean_with_the_penalty(self, queries, objective, alpha):
        trainer, bound = trainer_of(queries, objective, alpha), objective.prepare(queries)
        w0 = trainer.array(trainer.w).astype(np.float64)
        is_weight, shapes = np.zeros(len(w0), bool), []
        for place, p in zip(trainer.places, trainer.parameters, strict=True):
            is_weight[place] = p.ndim > 1
            shapes.append((place, tuple(p.shape)))
        center = np.random.default_rng(0).normal(size=len(w0))
        trainer.set_center(center)

        def value(w):
            a, b, c, d = (w[place].reshape(shape) for place, shape in shapes)
            scores = (np.tanh(queries.X.astype(np.float64) @ a.T + b) @ c.T + d)[:, 0]
            loss = bound(scores).loss
            return loss, loss + alpha * (((w - center)[is_weight]) ** 2).sum()

        here = trainer.evaluate(trainer.vector(w0), (0,))
        assert here.loss == pytest.approx(value(w0)[0], rel=1e-5)
        assert here.value == pytest.approx(value(w0)[1], rel=1e-5)
        used = np.concatenate([np.arange(place.start, place.stop) for place in trainer.places])
        steps = 1e-5 * np.eye(len(w0))[used]
        slopes = [(value(w0 + step)[1] - value(w0 - step)[1]) / 2e-5 / len(queries) for step in steps]
        gradient = trainer.array(here.gradient)
        assert gradient[used] == pytest.approx(slopes, rel=1e-3, abs=1e-4 * np.abs(slopes).max())
        assert not np.delete(gradient, used).any()

    def test_an_epoch_of_one_batch_is_a_step_on_it(self, queries):
        one, other = (trainer_of(queries, on.Squares(), 2.0, batch_size=100) for _ in range(2))
        adam, torchs = Adam(0.01, one.w), torch.optim.Adam(other.parameters, lr=0.01)
        for epoch in range(5):
            loss = one.epoch(adam, (0, epoch))
            here = other.evaluate(other.w.clone(), (0,))
            assert loss == pytest.approx(here.loss, rel=1e-5)
            for place, p in zip(other.places, other.parameters, strict=True):
                p.grad = here.gradient[place].view(p.shape)
            torchs.step()
            assert one.array(one.w) == pytest.approx(other.array(other.w), abs=1e-5)

    def test_batches_are_means_of_their_queries(self, queries, monkeypatch):
        """Every batch counts the same, however many queries it has."""
        trainer, shares = trainer_of(queries, on.TopOne()), []
        look = trainer.differentiate

        def spy(batch, seed, share):
            shares.append((len(batch), share))
            return look(batch, seed, share)

        monkeypatch.setattr(trainer, "differentiate", spy)
        trainer.epoch(Adam(0.01, trainer.w), (0, 0))
        assert sum(n for n, _ in shares) == 23
        assert all(share == 1.0 / n for n, share in shares)


class TestParts:
    @pytest.mark.parametrize("objective", [*OBJECTIVES, on.Lambdas("ndcg@5")], ids=lambda each: type(each).__name__)
    def test_they_change_rounding_only_and_threads_not_even_that(self, queries, objective, monkeypatch):
        def found(part_docs, backend):
            monkeypatch.setattr(neural, "_PART_DOCS", part_docs)
            trainer = trainer_of(queries, objective, 0.5, backend=backend)
            here = trainer.evaluate(trainer.w.clone(), (0,))
            return here.loss, trainer.array(here.gradient)

        whole, *parted = (
            found(*way) for way in ((10**6, rw.Serial()), (20, rw.Serial()), (20, rw.Threads(2)), (20, rw.Threads(3)))
        )
        assert parted[0][0] == pytest.approx(whole[0], rel=1e-5)
        assert parted[0][1] == pytest.approx(whole[1], rel=1e-3, abs=1e-5 * float(np.abs(whole[1]).max()))
        assert parted[0][1].tobytes() != whole[1].tobytes()  # it was another way of adding up
        for loss, gradient in parted[1:]:
            assert loss == parted[0][0]
            assert gradient.tobytes() == parted[0][1].tobytes()

    @pytest.mark.parametrize("objective", [on.ExpectedMeasure("map", 4), on.TopOne()], ids=["sampled", "exact"])
    def test_seeds_and_threads(self, queries, objective, monkeypatch):
        monkeypatch.setattr(neural, "_PART_DOCS", 20)

        def weights(seed, backend=rw.Serial()):  # noqa: B008
            trainer = trainer_of(queries, objective, backend=backend)
            adam = Adam(0.01, trainer.w)
            losses = [trainer.epoch(adam, (seed, epoch)) for epoch in range(3)]
            return losses, trainer.array(trainer.w).tobytes()

        assert weights(0) == weights(0) == weights(0, rw.Threads(2)) == weights(0, rw.Threads(4))
        assert weights(0)[1] != weights(1)[1]

    def test_torch_is_left_as_it_was(self, queries):
        torch.manual_seed(5)
        state, threads = torch.get_rng_state(), torch.get_num_threads()
        torch.set_num_threads(threads + 1)
        for options in (
            {"objective": "expected"},
            {"network": lambda d: nn.Sequential(nn.Linear(d, 2), nn.ReLU(), nn.Linear(2, 1))},
        ):
            rw.NeuralRanker(training={"n_epochs": 2}, **options).fit(queries)
        with pytest.raises(RuntimeError, match="boom"):
            rw.NeuralRanker(objective=boom, training={"n_epochs": 2}).fit(queries)
        assert torch.equal(torch.get_rng_state(), state)
        found = torch.get_num_threads()
        torch.set_num_threads(threads)
        assert found == threads + 1


def boom(scores, queries):
    raise RuntimeError("boom")


def top_one(scores, queries):
    return on.TopOne().prepare(queries)(scores)[:2]


def reciprocal(grades):
    """The reciprocal rank of the first document with a grade of 1 or more."""
    return float((1.0 / (1 + np.arange(len(grades))))[np.asarray(grades) >= 1][:1].sum())


class TestBridge:
    @pytest.mark.parametrize("objective", [*OBJECTIVES[:-1], on.Lambdas("map")], ids=lambda each: type(each).__name__)
    def test_the_torch_form_of_an_objective_leads_the_same_way(self, queries, objective):
        """It is what a GPU takes; a CPU takes the kernels."""
        trainer, loss = trainer_of(queries, objective, hidden=(8,)), make_loss(objective)
        some = np.array([4, 1, 22, 7, 0])
        trainer.criterion = neural._KernelCriterion(objective, queries)
        value, gradient = trainer.differentiate(some, (0,), 0.5)
        trainer.criterion = neural._NativeCriterion(
            loss, DeviceLabels(loss.compute_labels(queries), trainer.device, torch.float32)
        )
        its_value, its_gradient = trainer.differentiate(some, (0,), 0.5)
        assert float(its_value) == pytest.approx(float(value), rel=1e-5)
        assert its_gradient.numpy() == pytest.approx(gradient.numpy(), abs=1e-5 * float(gradient.abs().max()))

    @pytest.mark.parametrize(
        ("own", "theirs"),
        [("top_one", top_one), (on.Lambdas("mrr"), on.Lambdas(rw.make_measure(reciprocal, name="own")))],
        ids=["function", "measure"],
    )
    def test_a_users_own_trains_as_ours_does(self, queries, own, theirs):
        fits = [
            rw.NeuralRanker(objective=each, hidden=(5,), training={"n_epochs": 4, "batch_size": 5}).fit(queries)
            for each in (own, theirs)
        ]
        scores = [fit.predict(queries) - fit.predict(queries).mean() for fit in fits]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)
        assert fits[0].history_[-1]["loss"] == pytest.approx(fits[1].history_[-1]["loss"], rel=1e-5)

    def test_a_function_sees_whole_queries_once_an_epoch(self, queries):
        seen = []

        def watching(scores, part):
            seen.append((part.qid.tolist(), part.y.tolist(), len(scores)))
            return 0.0, np.zeros(len(scores))

        rw.NeuralRanker(objective=watching, hidden=(2,), training={"n_epochs": 1, "batch_size": 5}).fit(queries)
        grades = {query: queries.y[rows].tolist() for query, rows in zip(queries.qid.tolist(), queries, strict=True)}
        assert sorted(query for ids, _, _ in seen for query in ids) == sorted(grades)
        for ids, y, n in seen:
            assert sorted(y) == sorted(grade for query in ids for grade in grades[query])
            assert n == len(y)

    def test_samples_of_a_users_measure_are_seeded(self, queries):
        objective = on.ExpectedMeasure(rw.make_measure(reciprocal, name="own"), 2)
        few = queries.take(range(6))
        fits = [
            rw.NeuralRanker(objective=objective, hidden=(2,), training={"n_epochs": 2}, random_state=seed).fit(few)
            for seed in (0, 0, 1)
        ]
        bits = [fit.predict(few).tobytes() for fit in fits]
        assert bits[0] == bits[1] != bits[2]
        assert fits[0].history_[0]["loss"] != fits[0].history_[1]["loss"]
