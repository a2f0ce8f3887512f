"""The loop of boosting, and going on from where it stopped."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.optimisers.boosting_loop import boost
from rankwright.optimisers.rounds import Deadline, RoundRecorder

RANKERS = (rw.RankBoost, rw.FRank, rw.AdaRank)
# What the search costs depends on what it has seen, and which round is kept on those that follow; the rounds do not.
WORK = ("scanned", "tried", "kept")


NUMBERS = (None, "x", [], float("nan"), float("inf"), 10**400)
FEATURES = (12, 10**30, -1, 1.5, True)
DAMAGE = (
    *((name, value) for name in ("feature", "threshold", "alpha") for value in NUMBERS),
    *(("feature", value) for value in FEATURES),
    ("threshold", 1e39),
    ("alpha", 1e300),
    *(("missing", value) for value in (None, "yes", 2)),
)


class Numbers:
    """A model whose weak rankers are numbers, and whose measure is their sum."""

    def __init__(self, numbers, valid=None):
        self.left, self.total, self.valid, self.chosen = list(numbers), 0.0, valid, 0

    def choose(self):
        self.chosen += 1
        return self.left.pop(0) if self.left else None

    def add(self, weak):
        self.total += weak
        record = {"weak": weak, "train": self.total}
        return record if self.valid is None else {**record, "valid": self.valid(self.total)}


def run(stages, n_estimators, done=(), patience=None, keep="valid"):
    recorder = RoundRecorder(keep, early_stopping_rounds=patience)
    boost(stages, n_estimators, recorder, done)
    return recorder


class TestTheLoop:
    def test_the_best_round_is_the_first_of_equals(self):
        found = run(Numbers([1, 2, 0, -1, 1, -5]), 6, keep="best")
        assert found.n_kept == 2
        assert [row["train"] for row in found.history] == [1, 3, 3, 2, 3, -2]
        assert [row["round"] for row in found.history] == [1, 2, 3, 4, 5, 6]

    def test_validation_decides(self):
        assert run(Numbers([1, 2, 0, -1], valid=lambda total: -total), 4).n_kept == 1
        assert run(Numbers([1, 2, 0, -1], valid=lambda total: -total), 4, keep="last").n_kept == 4
        assert run(Numbers([1, 2, 0, -1]), 4).n_kept == 4  # without validation queries the last round is kept
        assert run(Numbers([-1, -2]), 2, keep="best").n_kept == 1  # worse than nothing is still a model

    def test_it_stops_when_nothing_is_left(self):
        found = run(Numbers([]), 5)
        assert (found.n_kept, found.finish()) == (0, [])
        stages = Numbers([1, 2])
        assert len(run(stages, 5).history) == 2
        assert stages.chosen == 3

    def test_what_is_done_is_added_without_a_search(self):
        stages = Numbers([3, 4])
        found = run(stages, 3, done=[1, 2])
        assert [row["weak"] for row in found.history] == [1, 2, 3]
        assert stages.chosen == 1
        assert [row["weak"] for row in run(Numbers([9]), 1, done=[1, 2]).history] == [1]

    @pytest.mark.parametrize(("patience", "length"), [(1, 4), (2, 5), (5, 8), (7, 10), (8, 10), (None, 10)])
    def test_patience_counts_rounds_that_were_not_the_best(self, patience, length):
        found = run(Numbers([1] * 10, valid=lambda total: -abs(total - 3)), 10, patience=patience)
        assert (found.n_kept, len(found.history)) == (3, length)

    def test_early_stopping_begins_anew_with_every_best_round(self):
        values = dict(enumerate([0.5, 0.4, 0.6, 0.6, 0.5, 0.7, 0.1, 0.2, 0.9], 1))
        found = run(Numbers([1] * 9, valid=values.get), 9, patience=3)
        assert (found.n_kept, len(found.history)) == (9, 9)
        found = run(Numbers([1] * 9, valid=values.get), 9, patience=2)  # equals are not better
        assert (found.n_kept, len(found.history)) == (3, 5)

    def test_early_stopping_counts_new_rounds_alone(self):
        stages = Numbers([5], valid=lambda total: -total)
        found = run(stages, 9, done=[1, 2, 3], patience=2)
        assert (found.n_kept, len(found.history)) == (1, 4)

    def test_it_ends_after_the_round_in_which_the_time_is_over(self):
        recorder = RoundRecorder(deadline=Deadline(0.0))
        boost(Numbers([1] * 9), 9, recorder)
        assert recorder.n_kept == len(recorder.history) == 1
        assert recorder.deadline.explain() == "stopped after max_seconds=0; raise max_seconds"
        recorder = RoundRecorder(deadline=Deadline(0.0))
        boost(Numbers([1]), 1, recorder)  # nothing was left to do
        assert recorder.deadline.explain() is None


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(25, n_docs=12, n_features=12, random_state=0)


@pytest.fixture(scope="module")
def valid():
    return rw.make_queries(15, n_docs=12, n_features=12, random_state=1)


def rounds(ranker):
    """The history without what tells of work."""
    return [{name: value for name, value in row.items() if name not in WORK} for row in ranker.history_]


def assert_same(found, expected, queries):
    assert rounds(found) == rounds(expected)
    assert found.scorer_.to_json() == expected.scorer_.to_json()
    assert found.predict(queries).tobytes() == expected.predict(queries).tobytes()


@pytest.mark.parametrize("kind", RANKERS)
class TestGoingOn:
    @pytest.mark.parametrize("with_valid", [False, True])
    def test_two_fits_are_one_long_fit(self, kind, queries, valid, with_valid):
        given = {"valid": valid} if with_valid else {}
        long = kind(n_estimators=24).fit(queries, **given)
        assert len(long.history_) == 24
        ranker = kind(n_estimators=9, warm_start=True).fit(queries, **given)
        assert len(ranker.history_) == 9
        for n_estimators in (16, 24):
            ranker.set_params(n_estimators=n_estimators).fit(queries, **given)
        assert_same(ranker, long, queries)

    def test_the_first_fit_starts_from_nothing(self, kind, queries):
        assert_same(kind(n_estimators=5, warm_start=True).fit(queries), kind(n_estimators=5).fit(queries), queries)

    def test_without_warm_start_nothing_is_kept(self, kind, queries, valid):
        ranker = kind(n_estimators=5).fit(valid)
        assert_same(ranker.fit(queries), kind(n_estimators=5).fit(queries), queries)

    def test_from_a_saved_model(self, kind, queries, valid, tmp_path):
        long = kind(n_estimators=12, scale="query", measure="map").fit(queries, valid=valid)
        rw.save(kind(n_estimators=5, scale="query", measure="map").fit(queries, valid=valid), tmp_path / "m.json")
        for path in (tmp_path / "m.json", str(tmp_path / "m.json")):
            ranker = kind(n_estimators=12, scale="query", measure="map", init_model=path)
            assert_same(ranker.fit(queries, valid=valid), long, queries)
            assert_same(clone(ranker).fit(queries, valid=valid), long, queries)
        rw.save(ranker, tmp_path / "again.json")
        assert rw.load(tmp_path / "again.json").params["init_model"] == str(tmp_path / "m.json")

    def test_fewer_rounds_than_are_done(self, kind, queries, tmp_path):
        rw.save(kind(n_estimators=15).fit(queries), tmp_path / "m.json")
        ranker = kind(n_estimators=4, init_model=tmp_path / "m.json").fit(queries)
        assert_same(ranker, kind(n_estimators=4).fit(queries), queries)
        assert_same(ranker.set_params(warm_start=True).fit(queries), ranker, queries)

    def test_validation_queries_that_come_later(self, kind, queries, valid):
        """All rounds are judged anew, so what was kept before does not matter."""
        ranker = kind(n_estimators=8, warm_start=True).fit(queries)
        assert_same(
            ranker.set_params(n_estimators=14).fit(queries, valid=valid),
            kind(n_estimators=14).fit(queries, valid=valid),
            queries,
        )

    def test_training_that_had_ended(self, kind):
        """Two queries that want opposite things, one of them more: soon no step is worth it."""
        queries = rw.Queries.from_arrays([[0.0], [1.0], [0.0], [1.0]], [0, 1, 1, 0], group=[2, 2], weight=[2.0, 1.0])
        ranker = kind(n_estimators=200, warm_start=True).fit(queries)
        before = rounds(ranker)
        assert 0 < len(before) < 200
        assert rounds(ranker.set_params(n_estimators=300).fit(queries)) == before

    def test_a_failed_fit_leaves_what_was_fitted(self, kind, queries):
        ranker = kind(n_estimators=4, warm_start=True).fit(queries)
        other = rw.make_queries(5, n_features=3, random_state=0)
        with pytest.raises(rw.InputError, match="documents have 3 features; the model of init_model was trained on 12"):
            ranker.fit(other)
        assert_same(ranker.set_params(n_estimators=8).fit(queries), kind(n_estimators=8).fit(queries), queries)


@pytest.mark.parametrize("kind", [rw.RankBoost, rw.FRank])
def test_thresholds_from_other_bins(kind, queries):
    """Stumps whose thresholds are none of these bins are added by their values."""
    ranker = kind(n_estimators=6, warm_start=True, max_bins=None).fit(queries)
    expected = rounds(ranker)
    coarse = kind(n_estimators=10, warm_start=True, max_bins=3)
    coarse.model_ = ranker.model_
    found = rounds(coarse.fit(queries))
    for row, other in zip(found, expected, strict=False):
        assert row == pytest.approx(other, rel=1e-12)
    assert len(found) == 10
    scores = sum(row["alpha"] * (queries.X[:, row["feature"]] > row["threshold"]) for row in found)
    assert found[-1]["train"] == pytest.approx(rw.parse_measure("ndcg@10").mean(queries, scores), abs=1e-12)


@pytest.mark.parametrize("kind", [rw.RankBoost, rw.FRank])
def test_other_documents(kind, queries, valid):
    """Rounds of other data are added as they are; the losses are those of the new documents."""
    ranker = kind(n_estimators=6, warm_start=True).fit(queries)
    before = [(row["feature"], row["threshold"], row["alpha"]) for row in ranker.history_]
    after = ranker.set_params(n_estimators=9).fit(valid).history_
    assert [(row["feature"], row["threshold"], row["alpha"]) for row in after[:6]] == before
    scores = sum(row["alpha"] * (valid.X[:, row["feature"]] > row["threshold"]) for row in after)
    assert after[-1]["train"] == pytest.approx(rw.parse_measure("ndcg@10").mean(valid, scores), abs=1e-12)


@may_learn_nothing
@pytest.mark.parametrize("kind", RANKERS)
def test_on_documents_without_pairs(kind, queries):
    ranker = kind(n_estimators=3, warm_start=True).fit(queries)
    equal = rw.Queries(queries.X, np.ones(queries.n_docs), queries.indptr, queries.qid)
    assert len(ranker.set_params(n_estimators=5).fit(equal).history_) >= 3


class TestWhatCannotBeGoneOnFrom:
    def test_steps_that_add_up_to_too_much(self, queries, tmp_path):
        path = tmp_path / "m.json"
        rw.save(rw.RankBoost(n_estimators=3).fit(queries), path)
        content = json.loads(path.read_text())
        feature = content["history"][0]["feature"]
        sides = [{**content["history"][0], "feature": feature, "alpha": 20.0 if k % 2 else -20.0} for k in range(200)]
        for k, record in enumerate(sides):
            record["threshold"] = float(np.quantile(queries.X[:, feature], 0.9 if k % 2 else 0.1))
        content["history"] = sides
        path.write_text(json.dumps(content))
        with pytest.raises(rw.InputError, match="init_model: the steps in the history of the model are too large"):
            rw.RankBoost(n_estimators=201, init_model=path).fit(queries)

    @pytest.mark.parametrize("kind", RANKERS)
    def test_other_models(self, kind, queries, tmp_path):
        path, other = tmp_path / "m.json", rw.AdaRank if kind is not rw.AdaRank else rw.FRank
        rw.save(other(n_estimators=3).fit(queries), path)
        with pytest.raises(
            rw.InputError, match=f"init_model: a model of {other.__name__}; expected one of {kind.__name__}"
        ):
            kind(init_model=path).fit(queries)
        rw.save(kind(n_estimators=3).fit(rw.make_queries(5, n_features=3, random_state=0)), path)
        with pytest.raises(rw.InputError, match="documents have 12 features; the model of init_model was trained on 3"):
            kind(init_model=path).fit(queries)
        with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
            kind(init_model=tmp_path / "nothing.json").fit(queries)
        path.write_text("{")
        with pytest.raises(rw.InputError, match=r"m\.json:1: not a whole JSON file"):
            kind(init_model=path).fit(queries)
        for bad in (1, [path]):
            with pytest.raises(rw.InputError, match="init_model="):
                kind(init_model=bad).fit(queries)

    @pytest.mark.parametrize("kind", RANKERS)
    def test_features_in_another_order(self, kind, queries, tmp_path):
        names = [f"f{i}" for i in range(queries.n_features)]
        named, other = (
            rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid, features=each)
            for each in (names, names[::-1])
        )
        ranker = kind(n_estimators=3, warm_start=True).fit(named)
        with pytest.raises(
            rw.InputError, match="feature 1 is called 'f11'; the model of init_model was trained on 'f0'"
        ):
            ranker.fit(other)

    @pytest.mark.parametrize("kind", RANKERS)
    def test_another_scaling(self, kind, queries, tmp_path):
        scales = (None, "query", "standard") if kind is rw.AdaRank else (None, "query")
        for scale in scales:
            rw.save(kind(n_estimators=2, scale=scale).fit(queries), tmp_path / "m.json")
            for other in scales:
                ranker = kind(n_estimators=3, scale=other, init_model=tmp_path / "m.json")
                if other == scale:
                    assert len(ranker.fit(queries).history_) == 3
                else:
                    with pytest.raises(rw.InputError, match=r"init_model: .* scale"):
                        ranker.fit(queries)

    @pytest.mark.parametrize(("name", "value"), DAMAGE, ids=lambda value: str(value)[:12])
    @pytest.mark.parametrize("kind", [rw.RankBoost, rw.FRank])
    def test_damaged_histories_of_stumps(self, kind, queries, tmp_path, name, value):
        self.check_damage(kind, queries, tmp_path, name, value)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("phi", value) for value in (*NUMBERS, 1.5, -2.0)),
            *(("feature", value) for value in (*NUMBERS, *FEATURES)),
            *(("sign", value) for value in (0, None, "1", -1)),  # -1: negated features are not asked for
        ],
        ids=lambda value: str(value)[:12],
    )
    def test_damaged_histories_of_adarank(self, queries, tmp_path, name, value):
        self.check_damage(rw.AdaRank, queries, tmp_path, name, value)

    def test_no_sign_of_a_feature(self, queries, tmp_path):
        self.check_damage(partial(rw.AdaRank, nonnegative=False), queries, tmp_path, "sign", 0)

    def test_a_missing_side_in_frank(self, queries, tmp_path):
        """FRank takes no missing values."""
        self.check_damage(rw.FRank, queries, tmp_path, "missing", True)

    @pytest.mark.parametrize("kind", RANKERS)
    def test_a_history_that_lacks_something(self, kind, queries, tmp_path):
        for name in ("feature", "phi" if kind is rw.AdaRank else "alpha"):
            self.check_damage(kind, queries, tmp_path, name, ...)

    def check_damage(self, kind, queries, tmp_path, name, value):
        """One field of the second round is another value, or is not there."""
        path = tmp_path / "m.json"
        rw.save(kind(n_estimators=3).fit(queries), path)
        content = json.loads(path.read_text())
        assert name in content["history"][1]
        if value is ...:
            del content["history"][1][name]
        else:
            content["history"][1][name] = value
        path.write_text(json.dumps(content))
        with pytest.raises(rw.InputError, match=r"init_model: |which JSON does not have"):
            kind(n_estimators=4, init_model=path).fit(queries)


@pytest.mark.parametrize("kind", RANKERS)
def test_the_same_bits_on_every_backend(kind, monkeypatch):
    monkeypatch.setattr("rankwright.runtime.backends._DOCS_PER_SHARD", 60)
    queries = rw.make_queries(60, n_docs=12, n_features=9, random_state=0)
    found = [kind(n_estimators=12, backend=b).fit(queries) for b in (rw.Serial(), rw.Threads(2), rw.Threads(3))]
    assert found[0].history_ == found[1].history_ == found[2].history_
    assert len({ranker.predict(queries).tobytes() for ranker in found}) == 1
    assert np.ptp(found[0].predict(queries)) > 0
