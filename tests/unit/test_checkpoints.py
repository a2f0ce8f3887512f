"""Training that was interrupted goes on as if nothing had been; other people's checkpoints, and damaged ones, are refused."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest
from tests.warned import may_be_ineffective
from torch import nn

import rankwright as rw
from rankwright.basics.array_files import digest_arrays, read_arrays, write_arrays
from rankwright.optimisers.epochs import EpochLoop


@pytest.fixture(scope="module")
def train():
    return rw.make_queries(20, n_docs=8, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def valid():
    return rw.make_queries(12, n_docs=8, n_features=4, random_state=1)


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupt training before the epoch of this number (from 1), or not at all."""
    walk_on, at = EpochLoop.__next__, {"epoch": None}

    def interrupted(walk):
        if at["epoch"] is not None and walk.number + 1 == at["epoch"]:
            raise Interrupted
        return walk_on(walk)

    monkeypatch.setattr(EpochLoop, "__next__", interrupted)
    return lambda epoch: at.update(epoch=epoch)


def squares(scores, queries):
    rest = scores - queries.y
    return float((rest**2).sum()), 2.0 * rest


def listnet(training, **options):
    return rw.ListNet(hidden=(3,), training={"batch_size": 6, **training}, **options)


def bayesrank(**options):
    return lambda training: rw.BayesRank(**{**options, "training": {**options.get("training", {}), **training}})


ADAM = {"optimiser": "adam", "learning_rate": 0.05}
RUNS = {
    "Adam, exact": listnet,
    "Adam, sampled": bayesrank(hidden=(3,), k=4, training=ADAM),
    "adaptive, exact": bayesrank(hidden=(3,)),
    "adaptive, sampled": bayesrank(hidden=(3,), k=4),
    "linear, Adam": bayesrank(hidden=None, training=ADAM),
    "linear, adaptive": bayesrank(hidden=None),
    "linear, Adam, sampled": bayesrank(hidden=None, k=4, training=ADAM),
    "linear, adaptive, sampled": bayesrank(hidden=None, k=4),
    "penalty": lambda training: rw.LambdaRank(hidden=(3,), alpha=2.0, training=training),
    "a function": lambda training: rw.NeuralRanker(objective=squares, hidden=(3,), training=training),
    "dropout": lambda training: rw.NeuralRanker(network=dropping, training=training),
}


def dropping(n_features):
    return nn.Sequential(nn.Linear(n_features, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 1))


def smoothrank(training, **options):
    sigmas = {"first_sigma": 2.0, "last_sigma": 0.5}
    return rw.SmoothRank(hidden=(3,), alpha=3.0, **sigmas, training=training, **options)


class TestGoingOn:
    @pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
    def test_it_ends_as_if_it_had_not_been_interrupted(self, train, valid, make, interrupt, tmp_path):
        whole = make({"n_epochs": 6}).fit(train, valid=valid)
        training = {"n_epochs": 6, "checkpoint": tmp_path / "c.npz"}
        for epoch in (3, 4, 6):
            interrupt(epoch)
            with pytest.raises(Interrupted):
                make(training).fit(train, valid=valid)
        interrupt(None)
        resumed = make(training).fit(train, valid=valid)
        assert resumed.predict(train).tobytes() == whole.predict(train).tobytes()
        assert resumed.history_ == whole.history_
        again = make(training).fit(train, valid=valid)  # all epochs are done
        assert again.predict(train).tobytes() == whole.predict(train).tobytes()
        assert [path.name for path in tmp_path.iterdir()] == ["c.npz"]

    @pytest.mark.parametrize("keep", ["last", "best"])
    @pytest.mark.parametrize("prior", ["start", "zero"])
    def test_phases(self, train, valid, prior, keep, interrupt, tmp_path):
        """SmoothRank: in the regression, at the first epoch of a sigma, and in the midst of one."""
        options, training = {"prior": prior, "keep": keep}, {"n_epochs": 12}
        whole = smoothrank(training, **options).fit(train, valid=valid)
        for epoch in (2, 4, 6, 7, 12):
            path = tmp_path / f"{epoch}.npz"
            interrupt(epoch)
            with pytest.raises(Interrupted):
                smoothrank({**training, "checkpoint": path}, **options).fit(train, valid=valid)
            interrupt(None)
            resumed = smoothrank({**training, "checkpoint": path}, **options).fit(train, valid=valid)
            assert resumed.predict(train).tobytes() == whole.predict(train).tobytes()
            assert resumed.history_ == whole.history_

    def test_on_other_threads(self, train, interrupt, tmp_path):
        training = {"n_epochs": 4, "checkpoint": tmp_path / "c.npz"}
        interrupt(3)
        with pytest.raises(Interrupted):
            listnet(training, backend=rw.Serial()).fit(train)
        interrupt(None)
        resumed = listnet(training, backend=rw.Threads(2)).fit(train)
        assert resumed.predict(train).tobytes() == listnet({"n_epochs": 4}).fit(train).predict(train).tobytes()

    def test_more_epochs_than_before(self, train, valid, tmp_path):
        few, more = ({"n_epochs": n, "checkpoint": str(tmp_path / "c.npz")} for n in (3, 7))
        first = listnet(few).fit(train, valid=valid)
        going_on = listnet(more).fit(train, valid=valid)
        whole = listnet({"n_epochs": 7}).fit(train, valid=valid)
        assert len(first.history_) == 3
        assert going_on.history_ == whole.history_
        assert going_on.predict(train).tobytes() == whole.predict(train).tobytes()

    def test_patience_counts_over_the_interruption(self, train, valid, interrupt, tmp_path):
        training = {"n_epochs": 60, "learning_rate": 0.02, "early_stopping_rounds": 5}
        whole = listnet(training).fit(train, valid=valid).history_
        assert 4 < len(whole) < 60
        interrupt(len(whole) - 1)
        with pytest.raises(Interrupted):
            listnet({**training, "checkpoint": tmp_path / "c.npz"}).fit(train, valid=valid)
        interrupt(None)
        assert listnet({**training, "checkpoint": tmp_path / "c.npz"}).fit(train, valid=valid).history_ == whole

    def test_a_failure_while_writing_leaves_the_last_one(self, train, monkeypatch, tmp_path):
        training = {"n_epochs": 4, "checkpoint": tmp_path / "c.npz"}
        save, calls = np.savez, []

        def failing(file, **arrays):
            calls.append(file)
            if len(calls) == 3:
                file.write(b"half")
                raise OSError("disk full")
            save(file, **arrays)

        monkeypatch.setattr(np, "savez", failing)
        with pytest.raises(OSError, match="disk full"):
            listnet(training).fit(train)
        assert len(calls) == 3
        assert [path.name for path in tmp_path.iterdir()] == ["c.npz"]
        resumed = listnet(training).fit(train)
        assert len(calls) == 5  # two were left
        assert resumed.predict(train).tobytes() == listnet({"n_epochs": 4}).fit(train).predict(train).tobytes()


OTHERS = {
    "alpha": (listnet, lambda training: listnet(training, alpha=2.0)),
    "seed": (listnet, lambda training: listnet(training, random_state=1)),
    "scale": (listnet, lambda training: listnet(training, scale=None)),
    "measure": (listnet, lambda training: listnet(training, measure="map")),
    "learning_rate": (listnet, lambda training: listnet({"learning_rate": 0.5, **training})),
    "batch_size": (listnet, lambda training: listnet({**training, "batch_size": 5})),
    "activation": (listnet, lambda training: listnet({"activation": "tanh", **training})),
    "optimiser": (listnet, lambda training: listnet({"optimiser": "adaptive", **training})),
    "network": (listnet, lambda training: rw.ListNet(hidden=(4,), training={"batch_size": 6, **training})),
    "objective": (bayesrank(hidden=None, k=2), bayesrank(hidden=None, k=1)),
    "n_samples": (bayesrank(hidden=None, k=5, n_samples=2), bayesrank(hidden=None, k=5, n_samples=3)),
    "gain": (bayesrank(hidden=(3,)), bayesrank(hidden=(3,), gain="pow2")),
    "ranker": (listnet, lambda training: rw.ListMLE(hidden=(3,), training={"batch_size": 6, **training})),
    "prior": (lambda t: smoothrank(t, prior="zero"), lambda t: smoothrank(t, prior="start")),
    "module": tuple(
        (lambda training, bend=bend: rw.NeuralRanker(network=lambda d: nn.Sequential(nn.Linear(d, 3), bend, nn.Linear(3, 1)), training=training))
        for bend in (nn.ReLU(), nn.Tanh())
    ),
    "width": tuple(
        (lambda training, width=width: rw.NeuralRanker(network=lambda d: nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, 1)), training=training))
        for width in (3, 30)
    ),
}  # fmt: skip


class TestRefusal:
    @may_be_ineffective
    @pytest.mark.parametrize("name", OTHERS)
    def test_of_another_run(self, train, name, tmp_path):
        (one, other), training = OTHERS[name], {"n_epochs": 5, "checkpoint": tmp_path / "c.npz"}
        one(training).fit(train)
        before = (tmp_path / "c.npz").read_bytes()
        with pytest.raises(
            rw.InputError, match=r"c\.npz: a checkpoint of another run \(other .*\); remove it, or name"
        ):
            other(training).fit(train)
        assert (tmp_path / "c.npz").read_bytes() == before
        one(training).fit(train)

    def test_of_other_data(self, train, valid, tmp_path):
        training = {"n_epochs": 2, "checkpoint": tmp_path / "c.npz"}
        listnet(training).fit(train, valid=valid)
        y = train.y.copy()
        y[0] += 1
        changed = rw.Queries(train.X, y, train.indptr, train.qid)
        weighted = rw.Queries(train.X, train.y, train.indptr, train.qid, weight=np.arange(20) + 1.0)
        one = np.concatenate([train.indptr[:1], train.indptr[2:]])
        merged = rw.Queries(train.X, train.y, one, train.qid[1:])
        cases = [(changed, valid), (weighted, valid), (merged, valid), (train, None), (train, train), (valid, train)]
        for other, its_valid in cases:
            with pytest.raises(rw.InputError, match=r"another run .*data"):
                listnet(training).fit(other, valid=its_valid)

    def test_several_strengths_have_no_common_one(self, train, tmp_path):
        training = {"n_epochs": 5, "checkpoint": tmp_path / "c.npz"}
        for make in (listnet, smoothrank):
            with pytest.raises(rw.InputError, match=r"training\.checkpoint with 2 fits"):
                make(training).fit_path([1.0, 0.1], train)
        assert list(tmp_path.iterdir()) == []


def damaged(tmp_path, train, message="(damaged.*|not a whole )checkpoint of training"):
    with pytest.raises(rw.InputError, match=rf"c\.npz: {message}"):
        listnet({"n_epochs": 4, "checkpoint": tmp_path / "c.npz"}).fit(train)


@pytest.fixture
def saved(train, tmp_path):
    listnet({"n_epochs": 2, "checkpoint": tmp_path / "c.npz"}).fit(train)
    return {name: array for name, array in read_arrays(tmp_path / "c.npz", "").items() if name != "checksum"}


def save(path, arrays):
    """Write a checkpoint whose checksum is right, whatever it holds."""
    write_arrays(path, {**arrays, "checksum": np.array(digest_arrays(arrays))})


class Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


class TestDamage:
    def test_bytes(self, saved, train, tmp_path):
        path = tmp_path / "c.npz"
        whole = path.read_bytes()
        for content in (b"", b"hello", b"{}", whole[: len(whole) // 2], whole[:-10], b"\x93NUMPY", pickle.dumps([1])):
            path.write_bytes(content)
            damaged(tmp_path, train)
        path.unlink()
        path.mkdir()
        with pytest.raises(IsADirectoryError, match="is a folder; expected a file name"):
            listnet({"n_epochs": 3, "checkpoint": path}).fit(train)

    def test_any_byte(self, saved, train, tmp_path):
        """It is refused, or nothing that matters was changed; no other error."""
        path, rng = tmp_path / "c.npz", np.random.default_rng(0)
        whole, expected = path.read_bytes(), listnet({"n_epochs": 3}).fit(train).predict(train).tobytes()
        refused = 0
        for at in rng.integers(0, len(whole), 60):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
            try:
                found = listnet({"n_epochs": 3, "checkpoint": path}).fit(train).predict(train).tobytes()
                assert found == expected
            except rw.InputError:
                refused += 1
        assert refused > 30

    @pytest.mark.parametrize("name", ["notes", "w", "number", "adam0", "adam2", "kept", "center"])
    def test_parts_that_are_missing_or_of_another_shape(self, saved, train, name, tmp_path):
        save(tmp_path / "c.npz", {key: value for key, value in saved.items() if key != name})
        damaged(tmp_path, train)
        for other in (np.zeros(2), np.zeros((3, 3)), np.array("text"), np.array(["text"] * 3)):
            save(tmp_path / "c.npz", {**saved, name: other})
            damaged(tmp_path, train)

    @pytest.mark.parametrize(
        "notes",
        ["", "3", "[]", "{}", "[" * 100_000, '{"run": 3}', {"run": [1]}, {"phase": None}, {"phase": -1}, {"phase": 7}, {"n_done": "x"}, {"value": "x"}, {"n_kept": 99}, {"history": 3}, {"history": [1, 2]}, {"n_waited": [1]}],
        ids=str,
    )  # fmt: skip
    def test_notes(self, saved, train, notes, tmp_path):
        text = notes if isinstance(notes, str) else json.dumps({**json.loads(str(saved["notes"])), **notes})
        save(tmp_path / "c.npz", {**saved, "notes": np.array(text)})
        damaged(tmp_path, train)

    def test_nothing_is_run(self, saved, train, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for arrays in ({**saved, "w": np.array([Evil()])}, {**saved, "notes": np.array(Evil(), dtype=object)}):
            np.savez(tmp_path / "c.npz", **arrays)
            damaged(tmp_path, train)
        (tmp_path / "c.npz").write_bytes(pickle.dumps(Evil()))
        damaged(tmp_path, train)
        assert [path.name for path in tmp_path.iterdir()] == ["c.npz"]


def test_estimates_have_new_samples_in_every_epoch(train, tmp_path):
    training = {"n_epochs": 6, "checkpoint": tmp_path / "c.npz", "learning_rate": 1e-9, "optimiser": "adam"}
    losses = [row["loss"] for row in rw.BayesRank(hidden=(3,), k=None, training=training).fit(train).history_]
    assert len(set(losses)) == 6
    assert np.std(losses) < 0.1 * np.mean(losses)
