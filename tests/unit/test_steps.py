"""Steps without a line search: Adam as torch has it, and the rate that adapts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwright.optimisers.step_rules import Adam, AdaptiveRate, LossPoint

torch = pytest.importorskip("torch")


class TestAdam:
    @pytest.mark.parametrize("rate", [0.1, 1e-3])
    @pytest.mark.parametrize("size", [1.0, 1e-9, 1e6])
    def test_fifty_steps_are_those_of_torch(self, rate, size):
        """Of gradients of any size, also where epsilon counts; in NumPy and torch alike."""
        rng = np.random.default_rng(0)
        start, gradients = rng.normal(size=7), size * rng.normal(size=(50, 7))
        gradients[10:20, 2] = 0.0
        theirs = torch.tensor(start, requires_grad=True)
        optimiser = torch.optim.Adam([theirs], lr=rate)
        ours, in_torch = start.copy(), torch.tensor(start)
        adam, adam_in_torch = Adam(rate, ours), Adam(rate, in_torch)
        for gradient in gradients:
            theirs.grad = torch.tensor(gradient)
            optimiser.step()
            adam.step(ours, gradient)
            adam_in_torch.step(in_torch, torch.tensor(gradient))
            assert ours == pytest.approx(theirs.detach().numpy(), rel=1e-13, abs=1e-14)
            assert in_torch.numpy() == pytest.approx(ours, rel=1e-14, abs=1e-15)

    def test_the_state_is_changed_in_place(self):
        """And all of it: two that have the same state go on alike."""
        w = np.ones(3)
        adam = Adam(0.1, w)
        held = adam.state
        adam.step(w, np.array([1.0, -2.0, 0.5]))
        assert all(now is before for now, before in zip(adam.state, held, strict=True))
        other, w2 = Adam(0.1, w), w.copy()
        for own, its in zip(other.state, adam.state, strict=True):
            own[...] = its
        for one, at in ((adam, w), (other, w2)):
            one.step(at, np.array([-1.0, 0.0, 3.0]))
        assert w.tolist() == w2.tolist()

    def test_gradients_are_left_alone(self):
        gradient, w = np.array([1.0, -2.0]), np.zeros(2)
        Adam(0.1, w).step(w, gradient)
        assert gradient.tolist() == [1.0, -2.0]

    def test_in_single_precision_it_stays_there(self):
        w = torch.zeros(2)
        adam = Adam(0.1, w)
        adam.step(w, torch.ones(2))
        assert {array.dtype for array in (w, *adam.state)} == {torch.float32}


def bowl(w):
    """A quadratic that is steep one way and flat another."""
    scale = np.array([1.0, 30.0])
    return LossPoint(w, 0.0, float((scale * w * w).sum()), 2.0 * scale * w)


class TestAdaptiveRate:
    @given(st.floats(1e-4, 1e2), st.integers(0, 2**32))
    @settings(max_examples=30)
    def test_the_value_never_rises_and_the_rate_changes_as_it_says(self, rate, seed):
        place, steps = bowl(np.random.default_rng(seed).normal(size=2)), AdaptiveRate(rate)
        for _ in range(200):
            tried = bowl(place.w - steps.rate * place.gradient)
            before, after = steps.rate, steps.step(place, bowl)
            if tried.value <= place.value:
                assert after.w.tolist() == tried.w.tolist()
                assert steps.rate == pytest.approx(1.2 * before)
            else:
                assert after is place
                assert steps.rate == pytest.approx(0.5 * before)
            assert after.value <= place.value
            place = after
        assert place.value < 1e-6  # whatever the first rate was

    @pytest.mark.parametrize("beyond", [np.nan, np.inf])
    def test_a_step_to_where_nothing_is_known_is_taken_back(self, beyond):
        here, steps = LossPoint(np.ones(2), 0.0, 3.0, np.ones(2)), AdaptiveRate(0.8)
        assert steps.step(here, lambda w: LossPoint(w, beyond, beyond, w)) is here
        assert steps.rate == 0.4

    def test_places_in_torch(self):
        here, steps = LossPoint(torch.ones(2), 1.0, 1.0, torch.ones(2)), AdaptiveRate(0.25)
        there = steps.step(here, lambda w: LossPoint(w, 0.5, 0.5, w))
        assert there.w.tolist() == [0.75, 0.75]
        assert here.w.tolist() == [1.0, 1.0]
