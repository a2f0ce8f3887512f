"""Sums of stumps as scorers: exact scores, and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwright as rw
from rankwright.optimisers.weak.threshold_stumps import BinnedShard, FeatureBins, Stump, round_weight, sum_stumps
from rankwright.scorers import Stumps, read_scorer

LARGEST, TINY = float(np.finfo(np.float32).max), float(np.finfo(np.float32).smallest_subnormal)
ODD = [0.0, -0.0, 1.0, np.nextafter(np.float32(1), np.float32(2)), LARGEST, -LARGEST, TINY, -TINY, 2 * TINY, 1e30, 0.1]
GOOD = {"feature": [0, 2], "threshold": [0.5, -1.0], "weight": [1.0, 2.0], "missing": [0, 1]}


def slow_scores(stumps, X):
    """Stump by stump, document by document."""
    out = []
    for x in X:
        terms = []
        for k in range(len(stumps)):
            value = x[stumps.feature[k]]
            missing = stumps.missing is not None and bool(stumps.missing[k])
            terms.append(stumps.weight[k] if (missing if np.isnan(value) else value > stumps.threshold[k]) else 0.0)
        out.append(sum(terms))
    return out


def random_stumps(rng, n, d, missing=True, values=None):
    threshold = rng.normal(size=n) if values is None else rng.choice(values, n)
    weight = [round_weight(w) for w in rng.normal(size=n) * 10.0 ** rng.integers(-6, 3, n)]
    sides = rng.random(n) < 0.5 if missing else None
    return Stumps(rng.integers(0, d, n), threshold.astype(np.float32), np.array(weight), sides)


class TestScores:
    @settings(max_examples=100)
    @given(seed=st.integers(0, 2**32), n=st.sampled_from([0, 1, 5, 30, 200]))
    def test_they_are_the_exact_sums(self, seed, n):
        """In any order, to the bit: weights are multiples of 2^-32. With thresholds that documents hit."""
        rng = np.random.default_rng(seed)
        d, values = rng.integers(1, 4), np.round(rng.normal(size=80), 1).astype(np.float32)
        stumps = random_stumps(rng, n, d, values=values)
        X = rng.choice(values, (20, d))
        X[rng.random(X.shape) < 0.2] = np.nan
        assert stumps(X).tolist() == slow_scores(stumps, X)
        order = rng.permutation(n)
        mixed = Stumps(stumps.feature[order], stumps.threshold[order], stumps.weight[order], stumps.missing[order])
        assert mixed(X).tobytes() == stumps(X).tobytes()

    @pytest.mark.parametrize("n", [1, 4, 5, 48, 49, 500])
    @pytest.mark.parametrize("n_docs", [1, 255, 256, 257, 600])
    def test_few_and_many_thresholds_of_one_feature(self, n, n_docs):
        rng = np.random.default_rng(n)
        threshold = rng.permutation(n).astype(np.float32)
        stumps = Stumps(np.ones(n, int), threshold, rng.integers(-9, 9, n) / 4, rng.random(n) < 0.5)
        assert len(stumps.steps.thresholds) == n
        X = rng.integers(-2, n + 2, (n_docs, 2)).astype(np.float32) + rng.choice([0.0, 0.5], (n_docs, 2)).astype(
            np.float32
        )
        X[::7, 1] = np.nan
        assert stumps(X).tolist() == slow_scores(stumps, X)

    def test_any_weights(self):
        """Weights off the grid, as a file may have them: the sums up to rounding."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 20)).astype(np.float32)
        X[::5] = np.nan
        for n in (20, 200, 2000):
            stumps = Stumps(
                rng.integers(0, 20, n), rng.normal(size=n).astype(np.float32), rng.normal(size=n), rng.random(n) < 0.5
            )
            assert stumps(X) == pytest.approx(slow_scores(stumps, X), abs=1e-11)

    def test_odd_numbers(self):
        X = np.array([*ODD, np.nan], dtype=np.float32)[:, None]
        for cut in ODD:
            stumps = Stumps(np.array([0]), np.array([cut], np.float32), np.array([1.0]), np.array([False]))
            assert stumps(X).tolist() == [float(x > np.float32(cut)) for x in X[:, 0]]
        assert stumps(np.array([[np.inf], [-np.inf]], np.float32)).tolist() == [1.0, 0.0]

    def test_a_row_depends_on_itself_alone(self):
        rng = np.random.default_rng(0)
        stumps, X = random_stumps(rng, 300, 3), rng.normal(size=(700, 3)).astype(np.float32)
        whole = stumps(X)
        assert np.concatenate([stumps(X[i : i + 1]) for i in range(0, 700, 13)]).tolist() == whole[::13].tolist()
        assert stumps(np.asfortranarray(X)).tolist() == whole.tolist()

    def test_one_step_function_per_feature(self):
        stumps = sum_stumps(
            [Stump(2, 1.0, 0.5), Stump(0, 3.0, 1.0), Stump(2, -1.0, 2.0, True), Stump(2, 1.0, 0.25)], True
        )
        assert stumps.steps.features.tolist() == [0, 2]
        thresholds, values, missing = stumps.steps.get_function(1)
        assert (thresholds.tolist(), values.tolist(), missing) == ([-1.0, 1.0], [0.0, 2.0, 2.75], 2.0)
        assert (len(stumps), stumps.accepts(3), stumps.accepts(2)) == (4, True, False)

    def test_none(self):
        for missing in (True, False):
            empty = sum_stumps([], missing)
            assert empty(np.ones((2, 3), np.float32)).tolist() == [0.0, 0.0]
            assert empty.accepts(1)
            assert len(read_scorer({"kind": "stumps", **empty.to_json()})) == 0

    def test_added_in_training_as_in_prediction(self):
        """A stump of these bins goes by codes, one from elsewhere by values."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 5, (30, 2)).astype(np.float32)
        X[rng.random(X.shape) < 0.3] = np.nan
        queries = rw.Queries.from_arrays(X, np.zeros(30), np.zeros(30, int))
        bins, rows, scores = FeatureBins.of(queries, None, rw.Serial()), rng.permutation(30), rng.normal(size=30)
        part = BinnedShard(X, rows, None, bins.encode(X, rows))
        for cut in (1.5, 1.75, 99.0, -1.0):
            for side in (False, True):
                stump = Stump(1, cut, 0.75, side)
                assert (
                    part.add_stump(scores, stump, bins.find_cut(stump)).tolist() == (scores + stump(X)[rows]).tolist()
                )
                assert stump(X).tolist() == [0.75 * (side if np.isnan(x) else x > cut) for x in X[:, 1]]


class TestJson:
    @given(seed=st.integers(0, 2**32), n=st.integers(0, 60), missing=st.booleans())
    def test_there_and_back(self, seed, n, missing):
        rng = np.random.default_rng(seed)
        stumps = random_stumps(rng, n, 5, missing, values=[*ODD, *rng.normal(size=9)])
        again = read_scorer(json.loads(json.dumps({"kind": "stumps", **stumps.to_json()}, allow_nan=False)))
        X = rng.choice(ODD, (40, 5)).astype(np.float32)
        assert again(X).tobytes() == stumps(X).tobytes()
        assert again.allow_nan == stumps.allow_nan == missing
        assert (again.threshold.dtype, again.threshold.tobytes()) == (np.float32, stumps.threshold.tobytes())
        assert again.weight.tobytes() == stumps.weight.tobytes()

    @pytest.mark.parametrize(
        "change",
        [
            {"feature": [0, -1]},
            {"feature": [0, 1.0]},
            {"feature": [0, True]},
            {"feature": [0, "1"]},
            {"feature": [0, 3]},
            {"feature": [0, 10**30]},
            {"feature": [0]},
            {"feature": None},
            {"feature": 3},
            {"threshold": [0.5, None]},
            {"threshold": [0.5, float("nan")]},
            {"threshold": [0.5, float("inf")]},
            {"threshold": [0.5, 1e39]},
            {"threshold": [0.5, 10**400]},
            {"threshold": [0.5]},
            {"threshold": [[0.5], [1.0]]},
            {"weight": [1.0, "2"]},
            {"weight": [1.0, float("inf")]},
            {"weight": [1.0, 2.0, 3.0]},
            {"weight": {}},
            {"missing": [0, 2]},
            {"missing": [0, True]},
            {"missing": [0, None]},
            {"missing": [0]},
            {"missing": 0},
        ],
        ids=lambda change: str(change)[:30],
    )
    def test_damaged(self, change, tmp_path):
        ranker = rw.RankBoost(n_estimators=2).fit(rw.make_queries(5, n_features=3, random_state=0))
        rw.save(ranker, tmp_path / "m.json")
        content = json.loads((tmp_path / "m.json").read_text())
        for scorer, damaged in ((GOOD, False), ({**GOOD, **change}, True)):
            (tmp_path / "m.json").write_text(json.dumps({**content, "scorer": {"kind": "stumps", **scorer}}))
            if not damaged:
                assert len(rw.load(tmp_path / "m.json").scorer) == 2
                continue
            with pytest.raises(rw.InputError, match=r"m\.json: "):
                rw.load(tmp_path / "m.json")

    @pytest.mark.parametrize("name", ["feature", "threshold", "weight", "missing"])
    def test_something_is_lacking(self, name):
        with pytest.raises(KeyError, match=name):
            Stumps.from_json({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize("kind", [rw.RankBoost, rw.FRank])
@pytest.mark.parametrize("bins", [2, 4, 255, None])
def test_saved_models_score_alike(kind, bins, tmp_path):
    queries = rw.make_queries(30, n_docs=12, n_features=6, random_state=0)
    ranker = kind(n_estimators=40, max_bins=bins).fit(queries)
    rw.save(ranker, tmp_path / "m.json")
    assert rw.load(tmp_path / "m.json").predict(queries).tobytes() == ranker.predict(queries).tobytes()
    for f in range(6):
        assert len(np.unique(ranker.scorer_.threshold[ranker.scorer_.feature == f])) <= (bins or queries.n_docs) - 1


@pytest.mark.parametrize("kind", [rw.RankBoost, rw.FRank])
def test_thresholds_do_not_see_monotone_changes(kind):
    """The same rounds for any increasing function of a feature: only the order of its values counts."""
    queries = rw.make_queries(20, n_docs=12, n_features=4, random_state=0)
    bent = queries.with_X(np.sign(queries.X) * np.abs(queries.X) ** 3 * 1e3)
    found, expected = (kind(n_estimators=20, max_bins=None).fit(q).history_ for q in (bent, queries))
    for row, other in zip(found, expected, strict=True):
        assert {**row, "threshold": 0} == pytest.approx({**other, "threshold": 0}, rel=1e-12)
