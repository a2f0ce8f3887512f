"""Experiments: what the runner costs beside the training, and what a second worker brings."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import rankwright as rw
from benchmarks.report import Row, Table, publish, skipped
from benchmarks.starting import find_data
from benchmarks.timing import take_turns
from rankwright.backends import Serial
from rankwright.experiments.sources import FoldFolder
from rankwright.reproduction import reproduction

_TURNS = 3


def longer(experiment: rw.Experiment) -> rw.Experiment:
    """The same folds with AdaRank on sixteen measures: four times the training, all of it in trials that last."""
    names = [f"ndcg@{k}" for k in range(1, 11)] + ["map", "mrr", "err@10", "p@5", "p@10", "rbp"]
    return replace(experiment, methods=tuple(rw.Method("adarank", name, name) for name in names), published=())


def bare(experiment: rw.Experiment) -> None:
    """The same work in a plain loop that keeps nothing: read, fit, choose, test."""
    assert isinstance(experiment.data, FoldFolder)
    for i in range(experiment.data.n_folds):
        fold = experiment.data.fold(i)
        for method in experiment.methods:
            best, ranker = -1.0, None
            for params in method.candidates():
                candidate = method.build(params, 0, experiment.measure).fit(fold.train, valid=fold.valid)
                value = rw.parse(experiment.measure).mean(fold.valid, candidate.predict(fold.valid), Serial())
                if value > best:
                    best, ranker = value, candidate
            assert ranker is not None
            rw.evaluate(ranker, fold.test, list(experiment.measures), Serial())


def run(experiment: rw.Experiment, workers: Any) -> rw.Results:
    """Run it from the beginning."""
    with tempfile.TemporaryDirectory() as folder:
        return rw.run_experiment(experiment, folder, workers)


def _warm(seconds: float) -> None:

    time.sleep(seconds)


def measure_protocol(title: str, experiment: rw.Experiment) -> Table:
    """Overhead and speed-up on one protocol."""
    trials = run(experiment, Serial()).tables["trials"]  # fills the caches
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as one, ProcessPoolExecutor(2, spawn) as two:
        wait([pool.submit(_warm, 2.0) for pool, n in ((one, 1), (two, 2)) for _ in range(n)])
        jobs: dict[str, Callable[[], object]] = {
            "bare": lambda: bare(experiment),
            "in place": lambda: run(experiment, Serial()),
            "one": lambda: run(experiment, 1),
            "two": lambda: run(experiment, 2),
            "one warm": lambda: run(experiment, one),
            "two warm": lambda: run(experiment, two),
        }
        seconds = {name: median(times) for name, times in take_turns(jobs, _TURNS).items()}
    training = float(trials["seconds"].sum())
    n, cost = len(trials["seconds"]), seconds["in place"] - seconds["bare"]
    share = cost / training
    warm, whole = (seconds[f"one{kind}"] / seconds[f"two{kind}"] for kind in (" warm", ""))
    rows = [
        Row("training, serial", f"{training:.1f} s in {n} trials"),
        Row("a plain loop that keeps nothing", f"{seconds['bare']:.1f} s"),
        Row("the runner, in place", f"{seconds['in place']:.1f} s"),
        Row("the runner's cost", f"{1e3 * cost / n:.1f} ms a trial", f"{share:.1%}", "below 5%", share < 0.05),
        Row("one worker, from the start", f"{seconds['one']:.1f} s"),
        Row("two workers, from the start", f"{seconds['two']:.1f} s", f"{whole:.2f}x", "at least 1.7x", whole >= 1.7),
        Row("one worker that has started", f"{seconds['one warm']:.1f} s"),
        Row("two workers that have", f"{seconds['two warm']:.1f} s", f"{warm:.2f}x", "at least 1.7x", warm >= 1.7),
    ]
    notes = [
        f"Medians of {_TURNS} turns. The cost is the time in place less the plain loop's; its ratio is to training.",
        "A worker imports the library before its first trial (about 2 s, most of it scikit-learn).",
    ]
    return Table(title, rows, notes)


def measure() -> Iterator[Table]:
    """All tables on experiments."""
    found = find_data()
    if found is None or not (found.parents[1] / "OHSUMED").is_dir():
        yield Table("Experiments", [skipped("the OHSUMED protocol", "no OHSUMED; RANKWRIGHT_DATA names the data sets")])
        return
    experiment = reproduction("ohsumed", Path(found.parents[1]))
    yield measure_protocol("Experiments: the OHSUMED protocol as shipped", experiment)
    yield measure_protocol("Experiments: OHSUMED, AdaRank on 16 measures", longer(experiment))


if __name__ == "__main__":
    publish([measure])
