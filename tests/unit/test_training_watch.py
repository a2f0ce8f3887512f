"""Rounds of training are told to callbacks, log and display, and Ctrl-C keeps the model so far."""

from __future__ import annotations

import io
import logging
import pickle
import signal
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import rankwright as rw
from rankwright import cli
from rankwright.basics import progress
from rankwright.rankers import RANKERS
from rankwright.rankers.common_parameters import IterativeRanker
from rankwright.rankers.stumps.stump_boosting import StumpStages
from rankwright.rankers.training_display import TrainingDisplay, format_seconds
from rankwright.rankers.training_watch import TrainingRound, TrainingWatch
from rankwright.runtime.compilation import list_compiled_kernels, listen_to_compilation

TRAIN, VALID = (rw.make_queries(12, n_docs=8, n_features=4, random_state=seed) for seed in (0, 1))
SHORT = {"n_estimators": 4, "max_iter": 20, "n_restarts": 2}
WATCHED = [each for each in RANKERS if issubclass(each, IterativeRanker) and not each.pools_valid]
NETWORKS = [each for each in WATCHED if "hidden" in each().get_params(deep=False)]


@pytest.fixture(autouse=True)
def heard_ctrl_c():
    """Let Ctrl-C be heard where the tests run in the background, whose processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def short(ranker, **given):
    known = ranker().get_params(deep=False)
    params = {name: value for name, value in SHORT.items() if name in known}
    if known.get("hidden") or given.get("hidden"):
        params["training"] = {"n_epochs": 20}
    return ranker(**params | {"backend": rw.Serial()} | given)


def fit_quietly(ranker):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ranker.fit(TRAIN, valid=VALID)


def press_ctrl_c(found=None):
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("ranker", WATCHED, ids=lambda ranker: ranker.__name__)
def test_callbacks_hear_of_every_round_and_change_nothing(ranker):
    rounds, models = [], []

    def note(found):
        rounds.append(found)
        models.append(found.make_model())

    plain, watched = fit_quietly(short(ranker)), fit_quietly(short(ranker, callbacks=[note]))
    assert plain.history_ == watched.history_
    assert (plain.predict(VALID) == watched.predict(VALID)).all()
    assert plain.to_model().params == watched.to_model().params
    assert not {"callbacks", "verbose"} & set(watched.to_model().params)
    assert rounds
    assert all(each.number == each.record["round"] for each in rounds)
    records = [each.record for each in rounds]
    for row in watched.history_:
        assert any(all(row[name] == known[name] for name in ("round", "loss") if name in row) for known in records)
    # of several restarts, one is the model
    candidates = models if "n_restarts" in SHORT and hasattr(ranker(), "n_restarts") else models[-1:]
    assert any((model.predict(VALID) == watched.predict(VALID)).all() for model in candidates)
    with pytest.raises(rw.InputError, match="inside the callback"):
        rounds[0].make_model()


@pytest.mark.parametrize("ranker", WATCHED, ids=lambda ranker: ranker.__name__)
def test_true_from_a_callback_stops_training(ranker):
    seen = []

    def stop_second(found):
        seen.append(found.number)
        return len(seen) >= 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user asked for it
        stopped = short(ranker, callbacks=[stop_second]).fit(TRAIN, valid=VALID)
    if not hasattr(stopped, "n_restarts"):  # each restart has a start
        assert len(seen) <= 3
    assert len(seen) <= len(fit_quietly(short(ranker)).history_) + 2
    assert np.isfinite(stopped.predict(VALID)).all()


@pytest.mark.parametrize("hidden", [(3,)])
@pytest.mark.parametrize("ranker", NETWORKS[:2], ids=lambda ranker: ranker.__name__)
def test_networks_are_watched_too(ranker, hidden):
    pytest.importorskip("torch")
    scores = []
    plain = fit_quietly(short(ranker, hidden=hidden))
    stopped = short(ranker, hidden=hidden, callbacks=[lambda found: scores.append(found.make_model().predict(VALID))])
    assert (fit_quietly(stopped).predict(VALID) == plain.predict(VALID)).all()
    assert (scores[-1] == plain.predict(VALID)).all()


def test_a_stopped_fit_is_the_first_part_of_a_long_one():
    stopped = rw.RankBoost(n_estimators=9, callbacks=[lambda found: found.number == 4]).fit(TRAIN)
    assert stopped.to_model().scorer.to_json() == rw.RankBoost(n_estimators=4).fit(TRAIN).to_model().scorer.to_json()


def test_only_true_stops():
    answers = iter([None, 1, "stop", object(), np.True_])
    ranker = rw.RankBoost(n_estimators=9, callbacks=[lambda found: next(answers)]).fit(TRAIN)
    assert len(ranker.history_) == 5


def test_rounds_of_an_earlier_fit_are_not_told_again():
    numbers = []
    ranker = rw.RankBoost(n_estimators=3, warm_start=True, callbacks=[lambda found: numbers.append(found.number)])
    ranker.fit(TRAIN).set_params(n_estimators=5).fit(TRAIN)
    assert numbers == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_an_error_in_a_callback_leaves_the_ranker_unchanged(error):
    def fail(found):
        if found.number == 2:
            raise error

    ranker = rw.RankBoost(n_estimators=4).fit(TRAIN)
    before = dict(vars(ranker))
    ranker.callbacks = [fail]
    with pytest.raises(type(error)) as caught:
        ranker.fit(VALID)
    assert caught.value is error
    assert {**vars(ranker), "callbacks": None} == before


def test_restarts_in_several_threads_report_one_at_a_time():
    inside, most, seen = [0], [0], []

    def note(found):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        seen.append(found.record["restart"])
        inside[0] -= 1

    watched = short(rw.DirectRank, callbacks=[note], n_restarts=4, backend=rw.Threads(2)).fit(TRAIN)
    assert most == [1]
    assert set(seen) == {1, 2, 3, 4}
    assert watched.history_ == short(rw.DirectRank, n_restarts=4).fit(TRAIN).history_


def test_callbacks_are_cloned_but_neither_pickled_nor_saved(tmp_path):
    def note(found):
        """Do nothing; a function inside a function cannot be pickled."""

    ranker = rw.RankBoost(n_estimators=2, callbacks=[note], verbose=0).fit(TRAIN)
    assert clone(ranker).callbacks == [note]
    copy = pickle.loads(pickle.dumps(ranker))
    assert copy.callbacks is None
    assert (copy.predict(VALID) == ranker.predict(VALID)).all()
    rw.save(ranker, tmp_path / "model.json")
    assert "callbacks" not in (tmp_path / "model.json").read_text()


def test_a_path_is_fitted_without_callbacks_and_says_so():
    ranker = rw.ListNet(callbacks=[lambda found: True])
    with pytest.warns(rw.IneffectiveParameterWarning, match="no effect in fit_path"):
        fitted = ranker.fit_path([1.0, 10.0], TRAIN)
    plain = rw.ListNet().fit_path([1.0, 10.0], TRAIN)
    assert [each.history_ for each in fitted] == [each.history_ for each in plain]


def test_a_blend_says_that_it_has_no_rounds():
    members = [rw.Regression(), rw.RankBoost(n_estimators=2)]
    with pytest.warns(rw.IneffectiveParameterWarning, match="callbacks has no effect"):
        rw.Blend(rankers=members, n_folds=2, callbacks=[print]).fit(TRAIN)


@pytest.mark.parametrize("wrong", [print, [1], "log", {"a": print}])
def test_wrong_callbacks_are_refused(wrong):
    with pytest.raises(rw.InputError, match="expected a list of functions"):
        rw.ListNet(callbacks=wrong).fit(TRAIN)


def test_the_log_has_a_line_for_each_round(caplog):
    with caplog.at_level(logging.INFO, "rankwright.training"):
        ranker = rw.RankBoost(n_estimators=3).fit(TRAIN)
    rows = [each.getMessage() for each in caplog.records if "compiling" not in each.getMessage()]
    assert [row.partition(":")[0] for row in rows] == [f"RankBoost round {n}" for n in (1, 2, 3)]
    assert f"train={ranker.history_[0]['train']:.6g}" in rows[0]
    caplog.clear()
    rw.RankBoost(n_estimators=3).fit(TRAIN)
    assert not caplog.records


def test_verbose_prints_rounds(capsys):
    rw.RankBoost(n_estimators=5).fit(TRAIN)
    assert capsys.readouterr() == ("", "")
    rw.RankBoost(n_estimators=5, verbose=2).fit(TRAIN, valid=VALID)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "compiling" not in line]
    assert out == ""
    assert [line.split()[2] for line in lines] == ["1", "2", "3", "4", "5"]
    assert all("valid=" in line and "train=" in line for line in lines)
    rw.RankBoost(n_estimators=50, verbose=1).fit(TRAIN)
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert lines[0].startswith("RankBoost: round 1 ")
    assert lines[-1].startswith(("RankBoost: round 50 ", f"RankBoost: round {len(lines)} "))
    assert len(lines) < 50


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_with_the_time_left(monkeypatch):
    now, stream = [0.0], Terminal()
    monkeypatch.setattr("rankwright.rankers.training_display.monotonic", lambda: now[0])
    with TrainingDisplay("MART", 1, stream) as display:
        for t in range(4):
            now[0] += 10.0
            display.show_round(t + 1, {"round": t + 1, "train": 0.5, "alpha": 1.0})
            progress.report("rounds", t + 1, 4)
    *_, last = shown = stream.getvalue().split("\r")[1:]
    assert len(shown) == 4
    assert shown[1].rstrip() == "MART: round 2 train=0.5 (0:20, 1:00 left at most)"
    assert last.rstrip() == "MART: round 4 train=0.5 (0:40, 0:13 left at most)"
    assert last.endswith("\n")


def test_the_last_round_is_shown_even_if_it_follows_at_once(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("rankwright.rankers.training_display.monotonic", lambda: 5.0)
    with TrainingDisplay("MART", 1, stream) as display:
        for t in (1, 2, 3):
            display.show_round(t, {"round": t})
    assert [line.split()[2] for line in stream.getvalue().splitlines()] == ["1", "3"]


def test_times_are_written_as_clocks_write_them():
    assert [format_seconds(each) for each in (0.4, 59.9, 60, 3599, 3600, 90061)] == [
        "0:00",
        "0:59",
        "1:00",
        "59:59",
        "1:00:00",
        "25:01:01",
    ]


def test_trackers_get_the_numbers_of_a_round():
    record = {"round": 3, "loss": 1, "valid": 0.5, "kept": True, "name": "a", "feature": np.int64(2)}
    found = TrainingRound("MART", 3, record, 0.0, None, None)
    assert found.numbers == {"loss": 1.0, "valid": 0.5, "feature": 2.0}


@pytest.mark.parametrize(
    "ranker", [rw.RankBoost, rw.ListNet, rw.DirectRank, rw.SVMMap, rw.RankSVM, rw.SmoothRank, rw.MART]
)
def test_ctrl_c_keeps_the_model_so_far(ranker, caplog):
    pressed = []

    def press_once(found):
        if not pressed:
            pressed.append(press_ctrl_c())

    with pytest.warns(rw.InterruptedFitWarning, match=f"{ranker.__name__} was interrupted") as issued:
        fitted = short(ranker, callbacks=[press_once]).fit(TRAIN, valid=VALID)
    assert [each.category for each in issued] == [rw.InterruptedFitWarning]
    assert [each.category for each in fitted.fit_warnings_] == [rw.InterruptedFitWarning]
    assert np.isfinite(fitted.predict(VALID)).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "once more ends it without a model" in caplog.text


def test_ctrl_c_before_the_first_round_is_raised(monkeypatch):
    monkeypatch.setattr(rw.RankBoost, "_check_additive", press_ctrl_c)
    ranker = rw.RankBoost()
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(TRAIN)
    assert not hasattr(ranker, "model_")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_is_raised(caplog):
    def press_twice(found):
        press_ctrl_c()
        press_ctrl_c()

    ranker = rw.RankBoost(callbacks=[press_twice])
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(TRAIN)
    assert not hasattr(ranker, "model_")


def test_ctrl_c_ends_a_search_over_many_fits():
    grid = {"n_estimators": [2, 3]}
    with pytest.raises(KeyboardInterrupt):
        rw.select(rw.RankBoost(callbacks=[press_ctrl_c]), grid, TRAIN, VALID)


def test_the_users_own_handler_of_ctrl_c_stays():
    received = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        ranker = rw.RankBoost(n_estimators=3, callbacks=[press_ctrl_c]).fit(TRAIN)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (len(received), len(ranker.history_)) == (3, 3)


def test_compilation_is_told_once(capsys):
    import numba

    compiled = numba.njit(lambda x: x + 1)
    told = []
    with listen_to_compilation(lambda: told.append(1)), list_compiled_kernels() as names:
        compiled(1)
        compiled(1.0)
        compiled(2)
    assert told == [1]
    assert len(names) == 2
    watch = TrainingWatch("MART", (), 1, None)
    with watch:
        compiled(1j)
    assert "MART: compiling kernels, once" in capsys.readouterr().err


@pytest.fixture
def files(tmp_path):
    rw.write_letor(TRAIN, tmp_path / "train.txt")
    return ["fit", "rankboost", "--train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "model.json")]


def test_the_command_line_writes_the_model_at_ctrl_c(files, tmp_path, monkeypatch, capsys):
    add = StumpStages.add
    monkeypatch.setattr(
        StumpStages, "add", lambda *given: (press_ctrl_c() if len(given[0].stumps) == 3 else 0, add(*given))[1]
    )
    assert cli.run(files) == 0
    out, err = capsys.readouterr()
    assert "training ends after the round at hand" in err
    assert "warning: RankBoost was interrupted: the model is the best of the rounds so far" in err
    assert "4 rounds" in out
    assert len(rw.load(tmp_path / "model.json").history) == 4


def test_the_command_line_writes_nothing_at_ctrl_c_before_the_first_round(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rw.RankBoost, "_check_additive", press_ctrl_c)
    assert cli.run(files) == 130
    assert capsys.readouterr() == ("", "rankwright: interrupted: nothing was written\n")
    assert not (tmp_path / "model.json").exists()


def test_the_command_line_logs_no_rounds(files, capsys):
    assert cli.run(files) == 0
    assert "round 1" not in capsys.readouterr().err


def test_the_progress_bar_shows_the_measure(files, monkeypatch, capsys):
    notes = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rankwright.cli.app.ProgressBar.show_note", lambda bar, note: notes.append(note))
    assert cli.run(files) == 0
    assert any(note.startswith("loss=") and "train=" in note for note in notes)
