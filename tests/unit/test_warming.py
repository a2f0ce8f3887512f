"""The command ``warm`` compiles what later processes need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.cli.warming import warm_rankers
from rankwright.rankers import find_ranker

FIT = """
import rankwright as rw
from rankwright.runtime.compilation import list_compiled_kernels

with list_compiled_kernels() as names:
    train, valid = (rw.make_queries(20, random_state=seed) for seed in (0, 1))
    ranker = rw.{ranker}(measure="ndcg@5").fit(train, valid=valid)
    rw.evaluate(ranker, valid, ["ndcg@5"])
    rw.Regression().fit(train.X, train.y, qid=train.row_qid).predict(valid.X[:3])
print(*names)
"""


def run(capsys, *arguments):
    status = cli.run([*arguments])
    return status, *capsys.readouterr()


def compile_in_new_process(ranker: str, settings: dict[str, str]) -> list[str]:
    """Return the kernels that a process compiles in fits of this ranker."""
    command = [sys.executable, "-c", FIT.format(ranker=ranker)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **settings})
    return done.stdout.split()


def test_it_says_what_it_compiled_and_where(capsys):
    cli.run(["warm", "regression", "mart"])  # whatever is compiled already
    capsys.readouterr()
    status, out, err = run(capsys, "warm", "regression", "mart")
    assert (status, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith("2 rankers: 0 kernels compiled, all others were there; ")
    assert second.startswith("cache: ")
    assert "rankwright-" in second
    status, out, _ = run(capsys, "warm", "mart", "--measure", "map", "--json")
    found = json.loads(out)
    assert found["rankers"] == [{"ranker": "MART", "kernels": [], "left_out": None}]
    assert found["folders"]


@pytest.mark.parametrize(
    ("arguments", "message"), [(["nonsense"], "unknown ranker"), (["mart", "--measure", "x"], "unknown measure")]
)
def test_wrong_names_are_refused(capsys, arguments, message):
    status, _, err = run(capsys, "warm", *arguments)
    assert status == 2
    assert message in err


def test_a_ranker_without_its_library_is_left_out(capsys, monkeypatch):
    def fail(*given, **options):
        raise ImportError("torch is not installed; pip install torch")

    monkeypatch.setattr(find_ranker("regression"), "fit", fail)
    status, out, err = run(capsys, "warm", "regression")
    assert status == 0
    assert "Regression was left out: torch is not installed" in err
    assert "1 rankers: " in out  # kernels that read the data may have been compiled


def test_a_second_process_compiles_nothing(capsys):
    assert cli.run(["warm", "rankboost", "regression"]) == 0
    assert compile_in_new_process("RankBoost", {}) == []


@pytest.mark.slow
def test_an_empty_cache_is_filled_once(tmp_path):
    package = Path(rw.__file__).parent
    shutil.copytree(package, tmp_path / "rankwright", ignore=shutil.ignore_patterns("__pycache__"))
    places = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rankwright", "warm", "adarank", "regression", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **places})
    found = json.loads(done.stdout)
    assert all(each["kernels"] for each in found["rankers"])
    assert found["folders"][0].startswith(str(tmp_path))
    assert compile_in_new_process("AdaRank", places) == []


def test_rankers_are_warmed_in_their_order():
    rankers = [rw.DORM, rw.PermuRank, rw.Regression]
    found = list(warm_rankers(rankers, ["map"]))
    assert [(each.ranker, each.left_out) for each in found] == [(ranker.__name__, None) for ranker in rankers]
