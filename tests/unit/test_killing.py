"""An experiment that is killed again and again ends with exactly the results of one that is not."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.experiments import contents

import rankwright as rw

SCRIPT = """
import sys
import rankwright as rw
if __name__ == "__main__":
    spec, out, workers = sys.argv[1:]
    rw.run_experiment(rw.read_experiment(spec), out, rw.Serial() if workers == "0" else int(workers))
"""
SPEC = """
measure = "ndcg@5"
measures = ["ndcg@1", "ndcg@5", "map"]
[data]
file = "all.txt"
n_folds = 5
[[methods]]
ranker = "regression"
search = { n_candidates = %d, alpha = { log_uniform = [1e-6, 1e3] } }
[[methods]]
ranker = "adarank"
grid = { n_estimators = [1, 5, 34] }
"""


def finished(folder: Path) -> int:
    """How many trials the store holds."""
    if not (folder / "results.sqlite").exists():
        return 0
    with closing(sqlite3.connect(folder / "results.sqlite", timeout=60)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM trials").fetchone()[0])
        except sqlite3.OperationalError:  # the tables are not there yet
            return 0


def kill_at_random(command: list[str], folder: Path, chance: random.Random) -> bool:
    """Start, wait for a few trials or for none, and kill at a random moment; whether it was killed in time."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    before, some = finished(folder), chance.choice([0, 1, 1, 2, 3])
    time.sleep(chance.uniform(0, 2.0))
    while process.poll() is None and finished(folder) < before + some:
        time.sleep(0.003)
    time.sleep(chance.uniform(0, 0.05))
    in_time = process.poll() is None
    process.kill()
    error = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    assert in_time or process.returncode == 0, error
    return in_time


@pytest.mark.parametrize(
    ("kills", "draws", "workers"),
    [(1, 4, 1), pytest.param(50, 300, 2, marks=pytest.mark.slow), pytest.param(50, 300, 0, marks=pytest.mark.slow)],
)
def test_killed_again_and_again(tmp_path, kills, draws, workers):
    chance = random.Random(kills + workers)
    rw.write_letor(rw.make_queries(80, n_docs=15, n_features=10, random_state=3), tmp_path / "all.txt")
    (tmp_path / "spec.toml").write_text(SPEC % draws)
    (tmp_path / "script.py").write_text(SCRIPT)
    out = tmp_path / "killed"
    command = [sys.executable, *(str(tmp_path / name) for name in ("script.py", "spec.toml", "killed")), str(workers)]
    assert sum(kill_at_random(command, out, chance) for _ in range(kills)) == kills, "it was done before the last kill"
    left = 5 * (draws + 3) - finished(out)
    assert left > 0
    subprocess.run(command, check=True)
    rw.run_experiment(rw.read_experiment(tmp_path / "spec.toml"), tmp_path / "whole", rw.Serial())
    assert contents(out) == contents(tmp_path / "whole")
    assert finished(out) == 5 * (draws + 3)
