"""Thresholds of features, bins, and sums over bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwright as rw
from rankwright.kernels.optimisers.feature_bins import accumulate_bins, find_thresholds, sum_bins
from rankwright.optimisers.weak.threshold_stumps import (
    BinnedShard,
    FeatureBins,
    Stump,
    find_best_stump,
    sum_above_thresholds,
)

LARGEST, TINY = float(np.finfo(np.float32).max), float(np.finfo(np.float32).smallest_subnormal)
ODD = [0.0, -0.0, 1.0, np.nextafter(np.float32(1), np.float32(2)), LARGEST, -LARGEST, TINY, -TINY, 2 * TINY, 1e30, 0.1]


@st.composite
def columns(draw, most=60):
    """A sorted column of float32: random, tied, one heavy value, odd numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, most))
    column = {
        "random": rng.normal(size=n) * draw(st.sampled_from([1e-40, 1e-3, 1.0, 1e30])),
        "tied": rng.integers(-3, 4, n),
        "heavy": np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
        "odd": rng.choice(ODD, n),
        "constant": np.full(n, 7.5),
    }[draw(st.sampled_from(["random", "tied", "heavy", "odd", "constant"]))]
    return np.sort(column.astype(np.float32))


def bins_of(X, most):
    X = np.asarray(X, dtype=np.float32)
    return FeatureBins.of(rw.Queries.from_arrays(X, np.zeros(len(X)), np.zeros(len(X), int)), most, rw.Serial())


class TestThresholds:
    @settings(max_examples=300)
    @given(column=columns(), most=st.sampled_from([2, 3, 5, 10, 255]))
    def test_they_lie_between_neighbours(self, column, most):
        thresholds, values = find_thresholds(column, most), np.unique(column)
        assert thresholds.dtype == np.float32
        assert len(thresholds) <= most - 1
        assert (np.diff(thresholds) > 0).all()
        for threshold in thresholds:
            low, high = values[values <= threshold].max(), values[values > threshold].min()  # both sides hold documents
            exact = (float(low) + float(high)) / 2
            assert low <= threshold < high
            assert threshold == low or threshold == pytest.approx(exact, rel=1e-6, abs=TINY)
        bins = np.searchsorted(thresholds, values)  # one each: no two thresholds between the same neighbours
        assert len(np.unique(bins)) == len(thresholds) + 1
        if len(values) <= most:
            assert len(thresholds) == len(values) - 1

    @given(column=columns(200), most=st.sampled_from([2, 3, 5, 10, 40]))
    def test_bins_of_several_values_are_not_too_full(self, column, most):
        thresholds, values = find_thresholds(column, most), np.unique(column)
        of_value = np.searchsorted(thresholds, values)
        held = np.bincount(np.searchsorted(thresholds, column))
        if len(values) > most:
            assert len(thresholds) >= (most - 1) // 2
        for b in np.unique(of_value):
            if (of_value == b).sum() > 1:
                assert held[b] <= 2.5 * len(column) / most + 1

    def test_equal_shares(self):
        column = np.arange(1000, dtype=np.float32)
        for most in (2, 10, 100, 255):
            counts = np.bincount(np.searchsorted(find_thresholds(column, most), column))
            assert len(counts) == most
            assert counts.max() - counts.min() <= 1

    def test_a_heavy_value_has_a_bin_of_its_own(self):
        """As zeros have in most features; the others share the rest, evenly."""
        column = np.concatenate([np.zeros(5000), np.arange(1, 5001)]).astype(np.float32)
        counts = np.bincount(np.searchsorted(find_thresholds(column, 101), column))
        assert len(counts) == 101
        assert counts[0] == 5000
        assert set(counts[1:]) == {50}

    def test_none_known(self):
        assert len(find_thresholds(np.empty(0, np.float32), 255)) == 0


class TestBins:
    @given(seed=st.integers(0, 2**32), most=st.sampled_from([2, 4, 255, None]))
    def test_codes_count_the_thresholds_below(self, seed, most):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 150), rng.integers(1, 20)
        X = np.where(rng.random(d) < 0.5, rng.integers(0, 5, (n, d)), rng.normal(size=(n, d))).astype(np.float32)
        X[rng.random((n, d)) < 0.2] = np.nan
        X[:, 0] = rng.choice([np.nan, 3.0])
        bins, rows = bins_of(X, most), rng.permutation(n)
        codes = bins.encode(X, rows)
        assert bins.sizes[0] == 2  # constant, or missing everywhere: nothing to cut
        some = np.isnan(X).any(axis=0) & ~np.isnan(X).all(axis=0)
        for f in range(d):
            own = bins.thresholds[bins.starts[f] : bins.starts[f + 1]]
            assert np.isnan(own[-2:]).all()
            x, cut = X[rows, f], own[:-2]
            below = (x[:, None] > cut).sum(axis=1)
            assert codes[f].tolist() == np.where(np.isnan(x), len(own) - 1, below).tolist()
            assert len(cut) + 1 <= (most or n)
            if most in (255, None):
                distinct = len(np.unique(x[~np.isnan(x)]))
                assert len(cut) + 1 == max(distinct, 1) + some[f]
            if some[f]:  # known or not
                assert cut[0] < np.nanmin(x)
                assert not (X[:, f] == cut[0]).any()

    def test_the_lowest_float_has_nothing_below(self):
        low = np.finfo(np.float32).min
        assert bins_of(np.array([[low], [np.nan], [0.0]], np.float32), None).sizes.tolist() == [3]

    def test_slots(self):
        X = np.array([[0, 5, 1], [1, 5, 2], [2, 5, 2], [2, np.nan, 1]])
        bins = bins_of(X, None)
        assert bins.sizes.tolist() == [4, 3, 3]
        assert (bins.n_features, bins.n_slots) == (3, 10)
        assert bins.find_features(np.arange(10)).tolist() == [0] * 4 + [1] * 3 + [2] * 3
        assert bins.list_slots(np.array([2, 0])).tolist() == [7, 8, 9, 0, 1, 2, 3]
        assert bins.count_slots(np.array([2, 0])) == 7
        below = np.nextafter(np.float32(5), np.float32(0))  # of a feature that some lack: known or not
        expected = [0.5, 1.5, *[np.nan] * 2, below, *[np.nan] * 2, 1.5, *[np.nan] * 2]
        assert bins.thresholds.tolist() == pytest.approx(expected, nan_ok=True, rel=0, abs=0)
        assert bins.make_stump(4, 0.5, True) == Stump(1, float(below), 0.5, True)
        assert bins.find_cut(Stump(0, 1.5, 1.0)).above == 1
        assert bins.find_cut(Stump(0, 1.25, 1.0)) is None
        assert bins.find_cut(Stump(0, 99.0, 1.0)) is None
        assert bins.find_cut(Stump(1, 5.0, 1.0)) is None

    def test_groups_hold_all_features_in_order(self, monkeypatch):
        monkeypatch.setattr("rankwright.optimisers.weak.threshold_stumps._SLOTS_AT_A_TIME", 10)
        bins = bins_of(np.random.default_rng(0).normal(size=(7, 5)), None)
        groups = bins.group_features(np.arange(5))
        assert len(groups) > 1
        assert np.concatenate(groups).tolist() == list(range(5))

    @pytest.mark.parametrize(
        ("distinct", "dtype"), [(254, "uint8"), (255, "uint16"), (65534, "uint16"), (65535, "uint32")]
    )
    def test_the_smallest_type_for_codes(self, distinct, dtype):
        """Slots are numbered from 0: an empty bin below all, one for each value, and one for missing ones."""
        X = np.append(np.arange(distinct, dtype=np.float32), np.float32(np.nan))[:, None]
        bins = bins_of(X, None)
        codes = bins.encode(X, np.arange(len(X)))
        assert codes.dtype == dtype
        assert codes[0].tolist() == list(range(1, distinct + 2))

    def test_more_than_255_values(self):
        X = np.random.default_rng(0).normal(size=(5000, 1)).astype(np.float32)
        bins = bins_of(X, 255)
        codes = bins.encode(X, np.arange(5000))
        assert (bins.n_slots, codes.dtype, codes.max()) == (256, np.uint8, 254)
        assert np.bincount(codes[0]).max() <= 21  # 5000 / 255 is 19.6

    @settings(max_examples=80)
    @given(seed=st.integers(0, 2**32))
    def test_sums_over_bins(self, seed):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 40), rng.integers(1, 6)
        X = rng.integers(0, 4, (n, d)).astype(np.float32)
        X[rng.random((n, d)) < 0.2] = np.nan
        bins, values = bins_of(X, None), rng.normal(size=n)
        codes, features = bins.encode(X, np.arange(n)), rng.permutation(d)[: rng.integers(1, d + 1)]
        out = np.ones(bins.count_slots(features))
        sum_bins(codes, bins.starts, features, values, out)
        expected = [values[codes[f] == k].sum() for f in features for k in range(bins.sizes[f])]
        assert out - 1 == pytest.approx(expected, abs=1e-12)
        above, missing = sum_above_thresholds(np.array(expected), bins, features)
        for slot, total, without in zip(bins.list_slots(features), above, missing, strict=True):
            f = int(bins.find_features(slot))
            assert without == pytest.approx(values[np.isnan(X[:, f])].sum(), abs=1e-12)
            if not np.isnan(bins.thresholds[slot]):
                assert total == pytest.approx(values[X[:, f] > bins.thresholds[slot]].sum(), abs=1e-12)
        accumulate_bins(out, bins.starts, features)
        ends = np.cumsum(bins.sizes[features])
        assert out[ends - 1] - bins.sizes[features] == pytest.approx(values.sum(), abs=1e-11)

    def test_codes_of_every_type_sum_alike(self):
        rng = np.random.default_rng(0)
        codes, starts, values = rng.integers(0, 9, (2, 50)), np.array([0, 9, 18]), rng.normal(size=50)
        sums = np.zeros((3, 18))
        for out, kind in zip(sums, (np.uint8, np.uint16, np.uint32), strict=True):
            sum_bins(codes.astype(kind), starts, np.arange(2), values, out)
        assert sums[0].tolist() == sums[1].tolist() == sums[2].tolist()


class TestBestStump:
    @given(seed=st.integers(0, 2**32))
    def test_the_largest_r_of_all(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, (12, 3)).astype(np.float32)
        X[rng.random((12, 3)) < 0.3] = np.nan
        bins, worth = bins_of(X, None), rng.integers(-3, 4, 12).astype(float)
        part = BinnedShard(X, np.arange(12), None, bins.encode(X, np.arange(12)))
        found = find_best_stump(part.sum_by_slot(worth, bins, np.arange(3)), bins)
        tried = [
            (
                slot,
                side,
                sum(w for x, w in zip(X[:, bins.find_features(slot)], worth) if (side if np.isnan(x) else x > cut)),
            )
            for slot, cut in enumerate(bins.thresholds)
            if not np.isnan(cut)
            for side in (False, True)
        ]
        most = max((abs(r) for _, _, r in tried), default=0.0)
        assert abs(found.r) == pytest.approx(most)
        if most > 0:
            assert found == next(each for each in tried if abs(each[2]) == most)  # the first of equals
