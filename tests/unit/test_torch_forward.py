"""What a torch loss is beside its formula: padding, prepared labels, networks, parts, time and memory, errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from tests.padded import padded

import rankwright as rw

torch = pytest.importorskip("torch")
losses = pytest.importorskip("rankwright.torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

OF_MEASURES = (losses.Lambdas, losses.SoftPositions, losses.SigmoidRanks, losses.NoisyRanks, losses.ExpectedMeasure)
OF_SUMS = (losses.NoisyRanks,)  # which take sums of discounted gains alone
PARAMETER_FREE = "Cosine Exponential Fidelity Hinge Likelihood Logistic SquaredHinge Squares TopOne"
ALL = [getattr(losses, name)() for name in PARAMETER_FREE.split()]
ALL += [loss("ndcg@4") for loss in OF_MEASURES]
ALL += [loss("rbp") for loss in OF_SUMS]
ALL += [loss("map") for loss in OF_MEASURES if loss not in OF_SUMS]
ALL += [loss("err") for loss in OF_MEASURES if loss not in (losses.SigmoidRanks, *OF_SUMS)]
ALL += [losses.ExpectedMeasure("ndcg@2"), losses.ExpectedMeasure("err@1")]


def name_of(loss):
    return f"{type(loss).__name__}-{getattr(loss, 'measure', '')}" if isinstance(loss, losses.Loss) else str(loss)


of_every_loss = pytest.mark.parametrize("loss", ALL, ids=name_of)
EXACT = [loss for loss in ALL if not loss.is_sampled]


@pytest.fixture(autouse=True)
def one_thread():
    """Lists are small here, and threads would wait for each other more than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def evaluated(loss, scores, labels, *more, reduction="sum"):
    """Value and gradient, by the same noise every time."""
    loss.reduction = reduction
    scores = torch.as_tensor(scores).clone().requires_grad_()
    value = loss(scores, labels, *more, generator=torch.Generator().manual_seed(3))
    value.backward()
    return value.detach(), scores.grad


def same(found, expected, **near):
    near = near or dict(rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(found, expected, **near)


class TestPadding:
    @of_every_loss
    @pytest.mark.parametrize("kind", ["prefix", "scattered", "sparse"])
    def test_what_stands_there_does_not_matter(self, loss, kind):
        lists = padded(kind)
        mask, y, weight = torch.tensor(lists.mask), torch.tensor(lists.y), torch.tensor(lists.weight)
        expected = evaluated(loss, lists.scores, y, mask, weight)
        assert (expected[1][~mask] == 0).all()
        assert expected[1][mask].isfinite().all()
        for anything in (np.nan, np.inf, -np.inf, 1e300):
            scores = np.where(lists.mask, lists.scores, anything)
            labels = np.where(lists.mask, lists.y, np.nan)
            same(evaluated(loss, scores, labels, mask, weight), expected)

    @pytest.mark.parametrize("loss", EXACT, ids=name_of)
    def test_more_of_it_changes_nothing(self, loss):
        """Longer lists, and lists without documents."""
        lists = padded("prefix")
        value, slopes = evaluated(loss, lists.scores, lists.y)
        longer = np.pad(lists.scores, ((2, 1), (3, 5)), constant_values=np.nan)
        found, more = evaluated(loss, longer, np.pad(lists.y, ((2, 1), (3, 5)), constant_values=-1))
        same(found, value)
        same(more[2:-1, 3:-5], slopes)
        assert more.abs().sum().item() == pytest.approx(slopes.abs().sum().item())
        mean, _ = evaluated(loss, longer, np.pad(lists.y, ((2, 1), (3, 5)), constant_values=-1), reduction="mean")
        assert mean.item() == pytest.approx(value.item() / len(longer))  # lists without documents are lists

    def test_soft_positions_where_sigma_is_nothing_beside_the_scores(self):
        y = torch.tensor([[2, 0, 1, 0, 0], [2, 0, -1, -1, -1]])
        for height, sigma, dtype in (
            (1e8, 1e-2, torch.float32),
            (1.0, 1e-34, torch.float64),
            (-1e8, 1e-2, torch.float32),
        ):
            loss = losses.SoftPositions("ndcg", sigma, reduction="none")
            found = loss(torch.full((2, 5), height, dtype=dtype), y)[1].item()
            assert found == pytest.approx(1 - (3 + 0) / 2 * (1 + 1 / np.log2(3)) / 3, rel=1e-5)


class TestPrepared:
    @of_every_loss
    @pytest.mark.parametrize("kind", ["full", "prefix", "sparse"])
    def test_once_for_many_uses(self, loss, kind):
        lists = padded(kind)
        prepared = loss.prepare(lists.y, lists.mask, lists.weight)
        for dtype in (torch.float64, torch.float32):
            for factor in (1.0, -2.0):
                scores = torch.tensor(factor * lists.scores, dtype=dtype)
                expected = evaluated(loss, scores, lists.y, lists.mask, lists.weight)
                same(evaluated(loss, scores, prepared), expected)
                same(evaluated(loss, scores, prepared.to("cpu", dtype)), expected)

    def test_for_another_loss_or_with_other_masks(self):
        lists, loss = padded("prefix"), losses.TopOne()
        scores, prepared = torch.tensor(lists.scores), loss.prepare(lists.y)
        with pytest.raises(rw.InputError, match=r"labels that TopOne\(\) prepared; expected those of Hinge\(pair\)"):
            losses.Hinge()(scores, prepared)
        for more in ({"mask": lists.mask}, {"weight": lists.weight}):
            with pytest.raises(rw.InputError, match="part of prepared labels"):
                loss(scores, prepared, **more)
        with pytest.raises(rw.InputError, match=r"scores have shape \(8, 5\); the labels have \(8, 12\)"):
            loss(scores[:, :5], prepared)
        with pytest.raises(
            rw.InputError, match=r"labels that Lambdas\(map\) prepared; expected those of Lambdas\(ndcg\)"
        ):
            losses.Lambdas("ndcg")(scores, losses.Lambdas("map").prepare(lists.y))
        rough = losses.SigmoidRanks("map", 9.0).prepare(lists.y)  # sigma is of the scores alone
        fine = losses.SigmoidRanks("map", 0.1)
        same(evaluated(fine, scores, rough), evaluated(fine, scores, lists.y))

    @of_every_loss
    def test_losses_can_be_copied_and_sent(self, loss):
        lists = padded("prefix")
        expected = evaluated(loss, lists.scores, lists.y)
        for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
            same(evaluated(other, lists.scores, lists.y), expected)
        assert not list(loss.parameters())


class TestGradients:
    @pytest.mark.parametrize("loss", [loss for loss in EXACT if not isinstance(loss, losses.Lambdas)], ids=name_of)
    @pytest.mark.parametrize("reduction", ["mean", "sum"])
    def test_through_a_network_they_are_finite_differences(self, loss, reduction):
        torch.manual_seed(4)
        network = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
        lists, loss.reduction = padded("scattered"), reduction
        x, prepared = torch.randn(*lists.y.shape, 5).double(), loss.prepare(lists.y, lists.mask, lists.weight)

        def value():
            return loss(network(x).squeeze(2), prepared)

        value().backward()
        for weights in network.parameters():
            way, step = torch.randn_like(weights), 1e-5
            found = []
            for sign in (1, -1):
                weights.data += sign * step * way
                found.append(value().item())
                weights.data -= sign * step * way
            slope = (weights.grad * way).sum().item()
            assert slope == pytest.approx((found[0] - found[1]) / (2 * step), rel=1e-4, abs=1e-6)

    def test_there_is_no_second_derivative(self):
        """And it is not silently 0."""
        s = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
        value = losses.TopOne()(s, [[1, 0, 2], [0, 1, 0]])
        (slopes,) = torch.autograd.grad(value, s, create_graph=True)
        with pytest.raises(NotImplementedError, match="first derivatives only"):
            (value + slopes.pow(2).sum()).backward()

    def test_without_gradients_there_are_values(self):
        with torch.no_grad():
            value = losses.TopOne()(torch.zeros(1, 2), [[1, 1]])
        assert (value.item(), value.requires_grad) == (pytest.approx(np.log(2)), False)

    @of_every_loss
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_autocast_leaves_them_alone(self, loss, dtype):
        lists = padded("prefix")
        scores, y = torch.tensor(lists.scores, dtype=torch.float32), torch.tensor(lists.y)
        expected = evaluated(loss, scores, y)
        with torch.autocast("cpu", dtype=dtype):
            found = evaluated(loss, scores, y)
        same(found, expected, rtol=1e-6, atol=1e-7)

    def test_in_half_precision_they_are_rounded_last(self):
        """Factors that come back, of means and of loss scaling, keep them in range."""
        scores = torch.tensor([[40000.0], [0.0], [0.0], [0.0]], dtype=torch.float16, requires_grad=True)
        losses.Squares()(scores, torch.zeros(4, 1)).backward()
        assert scores.grad[0].item() == 20000.0
        scores = torch.tensor([[20.0, 0.0]], dtype=torch.float16, requires_grad=True)
        (2.0**16 * losses.Logistic()(scores, [[1, 0]])).backward()
        assert scores.grad[0, 0].item() == pytest.approx(-(2.0**16) / (1 + np.exp(20.0)), rel=1e-3)


class Watch(TorchDispatchMode):
    """Counts operations, and the numbers of the largest tensor that one makes."""

    def __init__(self):
        super().__init__()
        self.operations, self.largest = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.operations += 1
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


def watched(loss, n_lists, length, kind="prefix"):
    lists = padded(kind, n_lists=n_lists, longest=length)
    scores, prepared = torch.tensor(lists.scores, requires_grad=True), loss.prepare(lists.y, lists.mask)
    with Watch() as watch:
        loss(scores, prepared).backward()
    return watch


class TestWork:
    @of_every_loss
    @pytest.mark.parametrize("room", [1, 300])
    def test_in_parts_it_is_the_same(self, loss, room, monkeypatch):
        lists = padded("scattered", n_lists=11)
        expected = evaluated(loss, lists.scores, lists.y, lists.mask, lists.weight)
        monkeypatch.setattr("rankwright.torch.base._MAX_TABLE", room)
        same(evaluated(loss, lists.scores, lists.y, lists.mask, lists.weight), expected, rtol=1e-10, atol=1e-11)

    @of_every_loss
    def test_there_is_no_loop_over_lists(self, loss):
        few, many = watched(loss, 8, 12), watched(loss, 400, 12)
        assert 0 < many.operations <= few.operations

    @of_every_loss
    def test_parts_are_as_large_as_there_is_room(self, loss, monkeypatch):
        """A part is no larger than what a loss says of its table, or a few tables of that size."""
        monkeypatch.setattr("rankwright.torch.base._MAX_TABLE", 20_000)
        many = watched(loss, 400, 12)
        assert many.operations > watched(loss, 8, 12).operations or many.largest <= 20_000
        assert many.largest <= 4 * 20_000

    @pytest.mark.parametrize("measure", ["ndcg@5", "ap@5", "err@5", "ndcg@2"])
    @pytest.mark.parametrize("kind", [losses.Lambdas, losses.SoftPositions, losses.ExpectedMeasure])
    def test_memory_of_a_measure_with_a_cut_off_is_linear(self, kind, measure):
        """Four times the documents, four times the largest tensor."""
        short, long = (watched(kind(measure), 8, length).largest for length in (250, 1000))
        assert long <= 4.2 * short


class TestErrors:
    Y = ((1, 0, 2), (0, 1, 0))

    @pytest.mark.parametrize(
        ("scores", "labels", "more", "message"),
        [
            ((3,), Y, {}, r"scores have shape \(3,\); expected \(lists, length\)"),
            ((2, 3, 1), Y, {}, r"scores have shape \(2, 3, 1\)"),
            ((2, 4), Y, {}, r"scores have shape \(2, 4\); the labels have \(2, 3\)"),
            ((2, 3), Y[0], {}, r"labels have shape \(3,\)"),
            ((2, 3), ((1, 0, np.inf), Y[1]), {}, "negative or not finite"),
            ((2, 3), ((1, 0, np.nan), Y[1]), {}, "negative or not finite"),
            ((2, 3), ((1, 0, -1), Y[1]), {"mask": np.ones((2, 3), bool)}, "negative or not finite; expected grades"),
            ((2, 3), ((-1, -1, -1), (-1, -1, -1)), {}, "no documents; expected at least one"),
            ((2, 3), Y, {"mask": np.zeros((2, 3), bool)}, "no documents; expected at least one"),
            ((2, 3), Y, {"mask": np.ones((2, 2), bool)}, r"mask has shape \(2, 2\)"),
            ((2, 3), Y, {"mask": np.ones((2, 3))}, "dtype float64; expected bools"),
            ((2, 3), Y, {"mask": np.array([4, 2])}, r"lengths of lists \[4, 2\]; expected 2 from 0 to 3"),
            ((2, 3), Y, {"mask": np.array([-1, 2])}, "lengths of lists"),
            ((2, 3), Y, {"mask": np.array([1, 2, 3])}, "lengths of lists"),
            ((2, 3), Y, {"weight": np.ones(3)}, r"weights of shape \(3,\); expected 2 finite numbers"),
            ((2, 3), Y, {"weight": np.ones((2, 1))}, "weights of shape"),
            ((2, 3), Y, {"weight": np.array([1.0, -1.0])}, "from 0 up"),
            ((2, 3), Y, {"weight": np.array([1.0, np.nan])}, "finite numbers"),
        ],
    )
    def test_of_arrays(self, scores, labels, more, message):
        for loss in (losses.TopOne(), losses.Lambdas("ndcg")):
            with pytest.raises(rw.InputError, match=message):
                loss(torch.zeros(scores), labels, **more)

    @pytest.mark.parametrize(
        ("loss", "message"),
        [
            (lambda: losses.Logistic("pair", 2.0), "target=2.0; expected a probability"),
            (lambda: losses.Fidelity("pair", -0.5), "target=-0.5; expected a probability"),
            (lambda: losses.Hinge("pairs"), "pair_weighting='pairs'"),
            (lambda: losses.Cosine("gain"), "target='gain'"),
            (lambda: losses.SoftPositions("ndcg", -1.0), "sigma=-1.0"),
            (lambda: losses.SigmoidRanks("ndcg", 0.0), "sigma=0.0"),
            (lambda: losses.SigmoidRanks("err"), "err has no approximation by soft ranks"),
            (lambda: losses.NoisyRanks("ndcg", 0.0), "sigma=0.0"),
            (lambda: losses.NoisyRanks("map"), "map is no sum over documents of a gain times a discount"),
            (lambda: losses.ExpectedMeasure("ndcg", 0), "n_samples=0"),
            (lambda: losses.TopOne(reduction="average"), "reduction='average'; expected one of mean, sum, none"),
        ],
    )
    def test_of_parameters(self, loss, message):
        with pytest.raises(rw.InputError, match=message):
            loss()(torch.zeros(2, 3), self.Y)

    @pytest.mark.parametrize("kind", OF_MEASURES)
    def test_of_a_users_measure(self, kind):
        own = rw.make_measure(lambda ranked: float(ranked[0] > 0), name="own")
        with pytest.raises(rw.InputError, match="own is a function of ranked grades"):
            kind(own)(torch.zeros(2, 3), self.Y)

    @pytest.mark.parametrize("kind", [losses.SoftPositions, losses.SigmoidRanks, losses.NoisyRanks])
    def test_of_a_sigma_set_later(self, kind):
        loss = kind("ndcg")
        loss.sigma = -3.0
        with pytest.raises(rw.InputError, match=r"sigma=-3\.0"):
            loss(torch.zeros(2, 3), self.Y)


def test_the_rows_of_one_long_list_are_computed_in_parts(monkeypatch):
    """Where even the table of one list is too large."""
    lists, loss = padded("prefix", longest=20), losses.NoisyRanks("ndcg", 0.5)
    expected = evaluated(loss, lists.scores, lists.y)
    for room in (1, 8 * 20 * 21 * 4):
        monkeypatch.setattr("rankwright.torch.noisy_losses._MAX_TABLE", room)
        same(evaluated(loss, lists.scores, lists.y), expected)
