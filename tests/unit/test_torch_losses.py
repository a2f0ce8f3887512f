"""Torch losses: value and gradient are those of the objectives, whatever the lists, the masks, the weights."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from tests.drawn import BLOCKS, may_be
from tests.padded import KINDS, padded
from tests.reference import measures, plackett_luce

import rankwright as rw
from rankwright import objectives
from rankwright.objectives.listwise_objectives import draw_gumbel_noise
from rankwright.objectives.objective_names import OBJECTIVES, as_objective

torch = pytest.importorskip("torch")
losses = pytest.importorskip("rankwright.torch")
from rankwright.torch.expected_losses import estimate_from_samples  # noqa: E402

ADDITIVE = ("ndcg@3", "ndcg", "ndcg@20", "dcg", "p@3", "p", "recall@4", "rbp", "rbp@3", "wta", "ndcg@3(gain=linear)")
DIALECTS = ("ndcg@5(dialect=letor3)", "ndcg(dialect=letor3)", "ndcg@3(empty=skip)", "map(dialect=letor3)")
PRECISIONS = ("map", "ap@4", "ap@4(norm=min)", "map(rel=2)")
CASCADES = ("err", "err@3", "mrr", "rr@4")
MEASURES = (*ADDITIVE, *DIALECTS, *PRECISIONS, *CASCADES)
TOP_TWO = ("ndcg@1", "ndcg@2", "ap@2", "err@2", "rr@1", "rr@2", "p@2", "recall@2", "rbp@2", "wta", "ndcg@2(gain=pow2)")
SIGMAS = (1e-2, 1.0, 1e2)
PAIRS = (objectives.Hinge, objectives.SquaredHinge, objectives.Exponential, objectives.Logistic, objectives.Fidelity)

CASES = [objectives.TopOne(), objectives.Likelihood(), objectives.Squares(), objectives.Squares(0.1)]
CASES += [objectives.Cosine(), objectives.Cosine("ndcg")]
CASES += [pairs(per) for pairs in PAIRS for per in ("pair", "query")]
CASES += [objectives.SquaredHinge("pair", 0.3), objectives.SquaredHinge("query", 2.0)]
CASES += [objectives.Logistic("query", 0.8), objectives.Logistic("pair", 0.5), objectives.Fidelity("pair", 0.7)]
CASES += [objectives.Lambdas(name) for name in MEASURES]
CASES += [objectives.SoftPositions(name, 0.3) for name in MEASURES]
CASES += [objectives.SoftPositions(name, sigma) for name in ("ndcg@3", "map", "err") for sigma in SIGMAS]
CASES += [objectives.SigmoidRanks(name, 0.3) for name in MEASURES if name not in CASCADES]
CASES += [objectives.SigmoidRanks(name, sigma) for name in ("ndcg@3", "rbp", "map") for sigma in SIGMAS]
CASES += [objectives.NoisyRanks(name, 0.3) for name in (*ADDITIVE, *DIALECTS[:3])]
CASES += [objectives.NoisyRanks(name, sigma) for name in ("ndcg@3", "rbp") for sigma in SIGMAS]
CASES += [objectives.ExpectedMeasure(name) for name in TOP_TWO]
of_every_loss = pytest.mark.parametrize("objective", CASES, ids=str)
#: One of each class, with and without a cut-off.
FEW = [case for case in CASES if not hasattr(case, "measure")]
FEW += [kind(name) for name in ("ndcg@3", "map", "err") for kind in (objectives.Lambdas, objectives.SoftPositions)]
FEW += [objectives.SigmoidRanks("ndcg@3"), objectives.SigmoidRanks("map"), objectives.ExpectedMeasure("ndcg@2")]
FEW += [objectives.NoisyRanks("ndcg@3"), objectives.NoisyRanks("ndcg")]
of_a_few = pytest.mark.parametrize("objective", FEW, ids=str)


@pytest.fixture(autouse=True)
def one_thread():
    """Lists are small here, and threads would wait for each other more than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def evaluated(loss, lists, reduction="sum", dtype=torch.float64, mask=True, **more):
    """Value and gradient by autograd."""
    loss.reduction = reduction
    scores = torch.tensor(lists.scores, dtype=dtype, requires_grad=True)
    given = torch.tensor(lists.mask) if mask is True else mask
    value = loss(scores, torch.tensor(lists.y), given, torch.tensor(lists.weight), **more)
    value.sum().backward()
    return value.detach().numpy(), scores.grad.numpy()


def agree(found, loss, slopes, exact=1e-9):
    assert found[0] == pytest.approx(loss, rel=exact, abs=exact)
    assert found[1] == pytest.approx(slopes, rel=exact, abs=exact * (1e-3 + np.abs(slopes).max()))


class TestTwins:
    @of_every_loss
    def test_value_and_gradient_are_those_of_the_objective(self, objective):
        for kind in KINDS:
            lists = padded(kind)
            expected = objective.prepare(lists.queries)(lists.scores[lists.mask])
            if np.isfinite(expected.loss) and np.isfinite(expected.gradient).all():
                agree(evaluated(losses.make_loss(objective), lists), expected.loss, lists.spread(expected.gradient))

    @of_a_few
    def test_many_shapes(self, objective):
        for seed in range(6):
            lists = padded("scattered", seed, n_lists=7 + seed, longest=3 + 3 * seed)
            expected = objective.prepare(lists.queries)(lists.scores[lists.mask])
            agree(evaluated(losses.make_loss(objective), lists), expected.loss, lists.spread(expected.gradient))

    @of_a_few
    def test_every_list_by_itself(self, objective):
        """Nothing is reduced, and every list is weighed by what comes back."""
        lists, loss = padded("sparse"), losses.make_loss(objective)
        values, gradient = evaluated(loss, lists, "none")
        assert values.shape == lists.weight.shape
        of_query = iter(range(len(lists.queries)))
        for at, value in enumerate(values):
            if not lists.mask[at].any():
                assert (value, np.abs(gradient[at]).max()) == (0.0, 0.0)
                continue
            q = next(of_query)
            if lists.weight[at] > 0:
                alone = objective.prepare(lists.queries.slice(q, q + 1))(lists.scores[at][lists.mask[at]])
                assert value == pytest.approx(alone.loss, rel=1e-9, abs=1e-12)
        total, _ = evaluated(loss, lists, "sum")
        mean, mean_gradient = evaluated(loss, lists, "mean")
        assert total == pytest.approx(values.sum(), rel=1e-12)
        assert mean == pytest.approx(values.sum() / len(values), rel=1e-12)
        assert mean_gradient == pytest.approx(gradient / len(values), rel=1e-12)
        scores, back = torch.tensor(lists.scores, requires_grad=True), torch.arange(1.0, 1 + len(values)).double()
        loss.reduction = "none"
        loss(scores, torch.tensor(lists.y), torch.tensor(lists.mask), torch.tensor(lists.weight)).backward(back)
        assert scores.grad.numpy() == pytest.approx(back.numpy()[:, None] * gradient, rel=1e-12)

    @of_a_few
    def test_every_way_to_say_what_is_padding(self, objective):
        """Bools, labels below 0, and for the first ones their number, of any kind of array."""
        loss = losses.make_loss(objective)
        scattered, prefix = padded("scattered", 1), padded("prefix", 1)
        for lists, masks in ((scattered, [None]), (prefix, [None, torch.tensor(prefix.mask.sum(axis=1))])):
            expected = evaluated(loss, lists)
            for mask in masks:
                agree(evaluated(loss, lists, mask=mask), *expected, 1e-13)
            in_numpy = loss(torch.tensor(lists.scores), lists.y.tolist(), lists.mask, lists.weight)
            assert in_numpy.item() == pytest.approx(expected[0].item(), rel=1e-13)
        unlabelled = prefix._replace(y=np.where(prefix.mask, prefix.y, 7))  # labels of padding do not matter
        agree(evaluated(loss, unlabelled), *evaluated(loss, prefix), 1e-13)

    @of_a_few
    def test_in_single_precision(self, objective):
        """To a few units of its last place, in the largest of the gradient."""
        for kind in ("prefix", "scattered", "tied"):
            lists = padded(kind)
            lists = lists._replace(scores=lists.scores.astype(np.float32).astype(float))
            value, gradient = evaluated(losses.make_loss(objective), lists, dtype=torch.float32)
            expected, slopes = evaluated(losses.make_loss(objective), lists)
            assert (value.dtype, gradient.dtype) == (np.float32, np.float32)
            assert value == pytest.approx(expected, rel=1e-5, abs=1e-5)
            assert gradient == pytest.approx(slopes, rel=1e-4, abs=2e-5 * np.abs(slopes).max())

    @of_a_few
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_in_half_precision_scores_are_rounded_and_nothing_else(self, objective, dtype):
        lists, loss = padded("scattered"), losses.make_loss(objective)
        scores = torch.tensor(lists.scores).to(dtype)
        rounded = lists._replace(scores=scores.double().numpy())
        expected, slopes = evaluated(loss, rounded)
        scores.requires_grad_()
        value = loss(scores, torch.tensor(lists.y), torch.tensor(lists.mask), torch.tensor(lists.weight))
        value.backward()
        assert (value.dtype, scores.grad.dtype) == (torch.float32, dtype)
        assert value.item() == pytest.approx(expected, rel=1e-5)
        near = 8 * torch.finfo(dtype).eps
        assert scores.grad.double().numpy() == pytest.approx(slopes, rel=near, abs=near * np.abs(slopes).max())


def by_noise(objective, lists, noise):
    """Torch's estimate from given noise, a row of it for each sample."""
    prepared = losses.make_loss(objective).prepare(lists.y, lists.mask, lists.weight)
    there = lists.mask.any(axis=1)
    at_lists = torch.tensor(np.stack([lists.spread(row) for row in noise], axis=1)[there])
    scores, batch = torch.tensor(lists.scores[there]), prepared.batch
    if prepared.at is not None:
        scores = scores.gather(1, prepared.at)
        at_lists = at_lists.gather(2, prepared.at[:, None, :].expand(-1, len(noise), -1))
    value, slopes = estimate_from_samples(scores, batch, at_lists)
    loss = (batch.queries["lost"] - batch.queries["worth"] * value).sum().item()
    slopes = (-batch.queries["worth"][:, None] * slopes).numpy()
    slopes = np.where(batch.mask.numpy(), slopes, 0.0)
    if prepared.at is None:
        return loss, slopes
    found, part = np.zeros(lists.mask.shape), np.zeros((there.sum(), lists.mask.shape[1]))
    np.put_along_axis(part, prepared.at.numpy(), slopes, axis=1)
    found[there] = part
    return loss, found


class TestSampled:
    @pytest.mark.parametrize("name", [*MEASURES, "ndcg@3(gain=pow2)"])
    def test_with_the_same_noise_they_are_the_objectives(self, name):
        for kind, n_samples in zip(KINDS, cycle([1, 2, 5])):
            lists, objective = padded(kind), objectives.ExpectedMeasure(name, n_samples)
            bound = objective.prepare(lists.queries)
            if not bound.is_sampled:
                continue
            noise = draw_gumbel_noise(np.random.default_rng(1), n_samples, lists.queries.n_docs)
            expected = bound.estimate(lists.scores[lists.mask], noise)
            agree(by_noise(objective, lists, noise), expected.loss, lists.spread(expected.gradient))

    @pytest.mark.parametrize("name", ["ndcg@3", "map", "err", "rbp"])
    @pytest.mark.parametrize("n_samples", [1, 4])
    def test_by_noise_of_its_own_there_is_no_bias(self, name, n_samples):
        """Many copies of a list, one with padding; by a generator, and by none."""
        y, s, many = [0, 2, 1, 0, 1, -1], np.array([0.5, -0.3, 1.0, 0.0, 0.2, np.nan]), 150
        function = {"ndcg@3": lambda g: measures.ndcg(g, 3), "map": measures.average_precision}.get(name)
        function = function or {"err": measures.err, "rbp": measures.rbp}[name]
        loss, blocks = losses.ExpectedMeasure(name, n_samples), np.empty((BLOCKS, 6))
        assert loss.is_sampled
        prepared = loss.prepare(np.tile(y, (many, 1)))
        generator = torch.Generator().manual_seed(5)
        for block in blocks:
            scores = torch.tensor(np.tile(s, (many, 1)), dtype=torch.float32, requires_grad=True)
            value = loss(scores, prepared, generator=generator)
            value.backward()
            block[0], block[1:] = value.item(), scores.grad.sum(dim=0).numpy()[:5]
        queries = rw.Queries.from_arrays(np.zeros((5, 1)), y[:5], [0] * 5)
        expected = np.hstack(plackett_luce.loss(function, queries, s[:5]))
        assert may_be(blocks, expected)
        assert not may_be(blocks, expected + 0.05 * np.array([0, 1, -1, 0, 0, 0]))  # it can fail

    def test_a_generator_says_what_is_drawn(self):
        lists, loss = padded("prefix"), losses.ExpectedMeasure("map")
        drawn = [evaluated(loss, lists, generator=torch.Generator().manual_seed(seed))[0].item() for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]

    @pytest.mark.parametrize("far", [1e4, 1e30])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("name", ["ndcg@2", "ndcg@3", "ndcg", "map", "err", "p@3"])
    def test_far_scores(self, name, dtype, far):
        """One order, or all of the first three with equal chances; wherever the highest is."""
        y, loss = torch.tensor([[1, 0, 2, 0, 1]]), losses.ExpectedMeasure(name, 64)
        for steps, near in (([0, 3, 1, -2, -1], None), ([0, 0, 0, -1, -2], [0, 0, 0, -40, -80]), ([1] * 5, [0] * 5)):
            found = []
            for at in (far * np.array(steps), near):
                if at is not None:
                    scores = torch.tensor(np.array([at]), dtype=dtype, requires_grad=True)
                    value = loss(scores, y, generator=torch.Generator().manual_seed(1))
                    value.backward()
                    found.append((value.detach().numpy(), scores.grad.numpy()))
            if near is None:
                queries = rw.Queries.from_arrays(np.zeros((5, 1)), y[0].numpy(), [0] * 5)
                found.append((1 - rw.parse_measure(name).mean(queries, np.array(steps, float)), np.zeros((1, 5))))
            assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
            assert found[0][1] == pytest.approx(found[1][1], abs=1e-5)


class TestLossOf:
    def test_every_loss_has_its_objective(self):
        found = {type(losses.make_loss(case)).__name__ for case in [*CASES, objectives.ExpectedMeasure("map")]}
        assert found == {type(as_objective(name, rw.NDCG(5))).__name__ for name in OBJECTIVES}
        assert found == set(losses.__all__) - {"Loss", "PreparedLabels", "make_loss"}

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_every_name(self, name):
        objective = as_objective(name, rw.NDCG(5))
        loss = losses.make_loss(objective)
        assert type(loss).__name__ == type(objective).__name__
        assert loss.objective == objective

    def test_parameters_come_along(self):
        assert losses.make_loss(objectives.SigmoidRanks("map", 0.25)).sigma == 0.25
        assert losses.make_loss(objectives.NoisyRanks("ndcg", 0.25)).sigma == 0.25
        assert losses.make_loss(objectives.ExpectedMeasure("map", 3)).n_samples == 3
        assert losses.make_loss(objectives.Fidelity("pair", 0.7)).objective == objectives.Fidelity("pair", 0.7)

    def test_what_has_none(self):
        own = rw.make_measure(lambda ranked: float(ranked[0] > 0), name="own")
        assert losses.make_loss(as_objective(lambda scores, queries: (0.0, scores), rw.NDCG())) is None
        kinds = (objectives.Lambdas, objectives.SoftPositions, objectives.SigmoidRanks, objectives.NoisyRanks)
        for kind in (*kinds, objectives.ExpectedMeasure):
            assert losses.make_loss(kind(own)) is None
