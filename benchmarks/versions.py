"""``python -m benchmarks.versions OTHER``: this source tree against another, task by task, side by side.

OTHER is the ``src`` folder of another checkout (``git worktree add ../other v0.1; python -m benchmarks.versions
../other/src``). Each task runs in a fresh process for either tree, in turns; the first run of a task warms the kernels
and is not timed. A task that a tree does not know is reported as such.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.report import Row, Table, publish
from benchmarks.timing import THREADS
from rankwright.rankers import RANKERS

TURNS = 5
SLOWER = 1.10  # a ratio above this is worth a look; turns differ by about as much
_SHAPE: dict[str, Any] = {"n_docs": 40, "n_features": 46, "random_state": 0}
_FEWER = {"n_estimators", "n_rounds"}  # of trees and stumps: time is proportional to them

Task = Callable[[Path], Callable[[], object]]


def time_ranker(name: str) -> Task:
    """Return a task that fits a ranker at its defaults."""

    def prepare(folder: Path) -> Callable[[], object]:
        import rankwright as rw

        train = rw.make_queries(600, **_SHAPE)
        ranker = getattr(rw, name)
        params = dict.fromkeys(_FEWER & set(ranker().get_params()), 30)
        return lambda: ranker(**params).fit(train)

    return prepare


def time_prediction(name: str) -> Task:
    """Return a task that scores documents by a fitted ranker."""

    def prepare(folder: Path) -> Callable[[], object]:
        import rankwright as rw

        params = dict.fromkeys(_FEWER & set(getattr(rw, name)().get_params()), 30)
        fitted = getattr(rw, name)(**params).fit(rw.make_queries(100, **_SHAPE))
        test = rw.make_queries(5000, **_SHAPE)
        return lambda: fitted.predict(test)

    return prepare


def time_reading(suffix: str) -> Task:
    """Return a task that reads LETOR text."""

    def prepare(folder: Path) -> Callable[[], object]:
        import rankwright as rw

        path = folder / f"queries.txt{suffix}"
        if not path.exists():
            rw.write_letor(rw.make_queries(2000 if suffix else 4000, **_SHAPE), path)
        return lambda: rw.read_letor(path)

    return prepare


def time_measures(folder: Path) -> Callable[[], object]:
    """Evaluate scores by several measures."""
    import numpy as np

    import rankwright as rw

    queries = rw.make_queries(10_000, **_SHAPE)
    scores = np.random.default_rng(0).normal(size=queries.n_docs)
    return lambda: rw.evaluate(scores, queries, "ndcg@10,map,err@10,map(dialect=trec_eval)")


def time_line_search(measure: str, n_docs: int) -> Task:
    """Return a task of exact line searches on long lists."""

    def prepare(folder: Path) -> Callable[[], object]:
        import rankwright as rw

        queries = rw.make_queries(max(40_000 // n_docs, 1), n_docs=n_docs, n_features=4, random_state=0)
        return lambda: rw.DirectRank(measure=measure, n_restarts=1, max_iter=1).fit(queries)

    return prepare


def time_fusion(folder: Path) -> Callable[[], object]:
    """Tune the weights of three runs."""
    import numpy as np

    import rankwright as rw

    rng = np.random.default_rng(0)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(30)} for q in range(200)}
    runs = {
        name: {query: {f"d{d}": float(rng.normal()) for d in rng.permutation(60)[:40]} for query in qrels}
        for name in ("a", "b", "c")
    }
    return lambda: rw.tune_fusion(qrels, runs)


def time_experiment(folder: Path) -> Callable[[], object]:
    """Run a small experiment in place."""
    import rankwright as rw

    queries = rw.make_queries(200, n_docs=20, n_features=10, random_state=0)
    methods = [rw.Method("regression", grid={"alpha": [0.01, 0.1, 1.0, 10.0]}), rw.Method("singlefeature")]

    def run() -> object:
        with tempfile.TemporaryDirectory(dir=folder) as out:
            return rw.run_experiment(rw.Experiment(queries, methods), out, rw.Serial())

    return run


def time_start(folder: Path) -> Callable[[], object]:
    """Start a process, import, and evaluate ten queries."""
    code = "import rankwright as rw; q = rw.make_queries(10, random_state=0); rw.evaluate(q.X[:, 0], q, 'ndcg@10')"
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


_RANKERS = [ranker.__name__ for ranker in RANKERS if ranker.__name__ != "NeuralRanker"]  # which needs torch

TASKS: dict[str, Task] = {
    "read LETOR text": time_reading(""),
    "read LETOR text, gzip": time_reading(".gz"),
    "evaluate four measures, 400,000 documents": time_measures,
    "line searches on MAP, lists of 40": time_line_search("map", 40),
    "line searches on MAP, lists of 2,000": time_line_search("map", 2000),
    "line searches on NDCG@10, lists of 2,000": time_line_search("ndcg@10", 2000),
    "tune three runs": time_fusion,
    "experiment of 25 trials, in place": time_experiment,
    "start a process and evaluate": time_start,
    "predict, linear": time_prediction("Regression"),
    "predict, stumps": time_prediction("RankBoost"),
    "predict, trees": time_prediction("MART"),
    **{f"fit {name}": time_ranker(name) for name in _RANKERS},
}


def run_task(name: str, folder: Path, times: int) -> None:
    """Print the seconds of some runs of a task, after one that is not timed."""
    import warnings

    warnings.simplefilter("ignore")
    call = TASKS[name](folder)
    call()
    seconds = []
    for _ in range(times):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    print(json.dumps(seconds))


def time_in(tree: Path, name: str, folder: Path) -> float | str:
    """Return the median seconds of a task in a tree, or why there are none."""
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{Path(__file__).resolve().parents[1]}"}
    command = [sys.executable, "-m", "benchmarks.versions", "--task", name, "--folder", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {(done.stderr.strip().splitlines() or ['no output'])[-1][:80]}"
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return median(seconds)


def compare(name: str, own: Path, other: Path, folder: Path, turns: int) -> Row:
    """Return a row of the table: the medians of the turns, and how many times as long this tree takes."""
    times: dict[Path, list[float]] = {own: [], other: []}
    for turn in range(turns):
        for tree in (own, other) if turn % 2 else (other, own):
            found = time_in(tree, name, folder)
            if isinstance(found, str):
                return Row(name, f"skipped: {found}")
            times[tree].append(found)
    before, after = median(times[other]), median(times[own])
    figure = f"{1000 * before:,.1f} ms before, {1000 * after:,.1f} ms now"
    return Row(name, figure, f"{after / before:.2f}", f"at most {SLOWER:.2f}", after <= SLOWER * before)


def main() -> None:
    """Compare two trees, or run one task for that."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="the src folder of another checkout")
    parser.add_argument("--only", default="", help="tasks whose names contain this")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.task:
        run_task(chosen.task, chosen.folder, 3)
        return
    if chosen.other is None:
        parser.error("expected the src folder of another checkout")
    own, other = Path(__file__).resolve().parents[1] / "src", chosen.other.resolve()
    names = [name for name in TASKS if chosen.only in name]

    def tables() -> list[Table]:
        with tempfile.TemporaryDirectory() as folder:
            rows = [compare(name, own, other, Path(folder), chosen.turns) for name in names]
        notes = [
            f"Medians of {chosen.turns} turns of fresh processes, each the median of three runs; {THREADS} cores.",
            "The ratio is the time now over the time before: below 1 is faster.",
        ]
        return [Table("Before and after", rows, notes)]

    publish([tables])


if __name__ == "__main__":
    main()
