"""The fuzzer: some seeded cases of every kind of file, what it once found, and that it sees faults."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from fuzz import running
from fuzz.cases import UNDECIDED, Kind, check
from fuzz.kinds import KINDS

import rankwright as rw
from rankwright.data import json_lines, letor_files, trec

CASES = {"letor": 400, "scores": 200, "qrels": 250, "run": 250, "model": 500, "spec": 300}
CASES |= {"judgments": 300, "log": 300, "csv": 150, "jsonl": 150, "parquet": 150}
CASES |= {"checkpoint": 60, "data": 60, "store": 20}
FOUND = sorted((Path(__file__).parent.parent / "fuzz_findings").glob("*/*"))


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    """Cases change the size of the blocks that are read; other tests need the usual ones again."""
    monkeypatch.setattr(letor_files, "BLOCK", letor_files.BLOCK)
    monkeypatch.setattr(trec, "_BLOCK", trec._BLOCK)
    monkeypatch.setattr(json_lines, "_BLOCK", json_lines._BLOCK)


def test_there_are_two_thousand_cases():
    assert CASES.keys() == KINDS.keys()
    assert sum(CASES.values()) >= 2_000


@pytest.mark.parametrize("name", KINDS)
def test_both_readers_agree(tmp_path, name):
    kind = KINDS[name](tmp_path)
    outcomes = set()
    for number in range(CASES[name]):
        data = running.make_case(kind, 1, number)
        verdict = check(kind, data)
        assert verdict.outcome != "finding", (number, verdict.detail, data)
        outcomes.add(verdict.outcome)
    assert outcomes == {"accepted", "refused"}


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once_is_right_now(tmp_path, path):
    verdict = check(KINDS[path.parent.name](tmp_path), path.read_bytes())
    assert verdict.outcome != "finding", verdict.detail


class Faulty(Kind):
    """A reader of numbers that is wrong in every way, by the first digit."""

    name = "faulty"
    warm_up = 0

    def make(self, rng):
        return b"%d" % rng.randrange(10)

    def reference(self, data):
        return {b"1": None, b"7": UNDECIDED, b"8": None}.get(data, data)

    def read(self, data):
        if data == b"2":
            raise rw.InputError("no")
        if data == b"3":
            raise KeyError("x")
        if data == b"4":
            time.sleep(60)
        if data == b"5":
            os.kill(os.getpid(), signal.SIGSEGV)
        if data == b"8":
            raise rw.InputError("x" * 2000)
        return b"6?" if data == b"6" else data

    def difference(self, expected, found):
        return "" if expected == found else "a number"


@pytest.mark.parametrize(
    ("data", "outcome", "detail"),
    [
        (b"0", "accepted", ""),
        (b"1", "finding", "accepts what the reference refuses"),
        (b"2", "finding", "refuses what the reference accepts"),
        (b"3", "finding", "raises KeyError"),
        (b"6", "finding", "reads something else: a number"),
        (b"7", "accepted", ""),
        (b"8", "finding", "message of more than 1000 characters"),
    ],
)
def test_faults_are_seen(tmp_path, data, outcome, detail):
    verdict = check(Faulty(tmp_path), data)
    assert verdict.outcome == outcome
    assert detail in verdict.detail
    assert verdict.decided == (data != b"7")


def test_cases_do_not_depend_on_what_ran_before(tmp_path):
    kind = KINDS["letor"](tmp_path)
    assert running.make_case(kind, 3, 17) == running.make_case(KINDS["letor"](tmp_path), 3, 17)
    assert len({running.make_case(kind, 3, number) for number in range(50)}) > 40


def test_a_run_goes_on_where_it_was(tmp_path):
    state, findings = tmp_path / "state", tmp_path / "findings"
    first = running.run("scores", 30, 5, state, findings)
    assert (first.done, first.accepted + first.refused, first.findings) == (30, 30, {})
    file = state / "scores.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "accepted": 1000}))
    second = running.run("scores", 40, 5, state, findings)
    assert second.done == 40
    assert second.accepted >= 1000
    assert second.accepted + second.refused - 1000 <= 40
    assert running.Progress.load(file, 6).done == 0  # another seed begins anew


@pytest.mark.slow  # every crash starts a process anew
def test_hangs_and_crashes_are_found_and_left_out(tmp_path, monkeypatch):
    """The worker is another process, which learns of the faulty kind from a file of its own."""
    (tmp_path / "sitecustomize.py").write_text(
        "import fuzz.kinds\nfrom tests.unit.test_fuzz import Faulty\nfuzz.kinds.KINDS['faulty'] = Faulty\n"
    )
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setattr(running, "SECONDS", 1.5)
    monkeypatch.setitem(KINDS, "faulty", Faulty)
    progress = running.run("faulty", 5, 403, tmp_path / "state", tmp_path / "findings")  # cases 6, 5, 3, 4 and 0
    assert progress.done == 5
    assert progress.accepted == 1
    assert progress.skipped == [1, 3]
    assert sorted(progress.findings) == [
        "crashes: SIGSEGV",
        "hangs for more than 1.5 seconds",
        "raises KeyError at unknown place",
        "reads something else: a number",
    ]
    assert {path.read_bytes() for path in (tmp_path / "findings" / "faulty").iterdir()} == {b"3", b"4", b"5", b"6"}
