"""Experiments: what the runner costs beside the training, and what a second worker brings."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import rankwright as rw
from benchmarks.report import Row, Table, publish, skipped
from benchmarks.starting import find_data
from benchmarks.timing import take_turns
from rankwright.basics import progress
from rankwright.experiments.data_sources import FoldFolder
from rankwright.papers.reproduction import make_reproductions
from rankwright.runtime.backends import Serial

_TURNS = 3


def longer(experiment: rw.Experiment) -> rw.Experiment:
    """The same folds with AdaRank on sixteen measures: four times the training, all of it in trials that last."""
    names = [f"ndcg@{k}" for k in range(1, 11)] + ["map", "mrr", "err@10", "p@5", "p@10", "rbp"]
    return replace(experiment, methods=tuple(rw.Method("adarank", name, name) for name in names), published=())


def bare(experiment: rw.Experiment) -> float:
    """The same work in a plain loop that keeps nothing: read, fit, choose, test; the seconds of the fits."""
    assert isinstance(experiment.data, FoldFolder)
    fitting = 0.0
    for i in range(experiment.data.n_folds):
        fold = experiment.data.read_fold(i)
        for method in experiment.methods:
            assert isinstance(method, rw.Method)
            best, ranker = -1.0, None
            for params in method.list_candidates():
                candidate = method.make_ranker(params, 0, experiment.measure)
                start = time.perf_counter()
                candidate.fit(fold.train, valid=fold.valid)
                fitting += time.perf_counter() - start
                value = rw.parse_measure(experiment.measure).mean(fold.valid, candidate.predict(fold.valid), Serial())
                if value > best:
                    best, ranker = value, candidate
            assert ranker is not None
            rw.evaluate(ranker, fold.test, list(experiment.measures), Serial())
    return fitting


def run(experiment: rw.Experiment, workers: Any) -> rw.Results:
    """Run it from the beginning."""
    with tempfile.TemporaryDirectory() as folder:
        return rw.run_experiment(experiment, folder, workers)


def answering(experiment: rw.Experiment, workers: int) -> float:
    """Run it, and tell the seconds from the first answer to the last: without the start of the workers."""
    times: list[float] = []
    with progress.listen(lambda what, done, total: times.append(time.perf_counter()) if what == "trials" else None):
        run(experiment, workers)
    return times[-1] - times[1]


def beside(job: Callable[[], float]) -> float:
    """The seconds a job takes beside the fits, whose seconds it returns."""
    start = time.perf_counter()
    fitting = job()
    return time.perf_counter() - start - fitting


def measure_protocol(title: str, experiment: rw.Experiment) -> Table:
    """Overhead and speed-up on one protocol."""
    trials = run(experiment, Serial()).tables["trials"]  # fills the caches
    found: dict[str, list[float]] = {"bare": [], "in place": [], "one": [], "two": []}
    jobs: dict[str, Callable[[], object]] = {
        "bare": lambda: found["bare"].append(beside(lambda: bare(experiment))),
        "in place": lambda: found["in place"].append(beside(lambda: _fitting(run(experiment, Serial())))),
        "one": lambda: found["one"].append(answering(experiment, 1)),
        "two": lambda: found["two"].append(answering(experiment, 2)),
    }
    seconds = {name: median(times) for name, times in take_turns(jobs, _TURNS).items()}
    loop, runner, one, two = (median(times) for times in found.values())
    training, n = float(trials["seconds"].sum()), len(trials["seconds"])
    share, whole, gain = (runner - loop) / training, seconds["one"] / seconds["two"], one / two
    rows = [
        Row("training, serial", f"{training:.1f} s in {n} trials"),
        Row("a plain loop that keeps nothing, beside training", f"{loop:.2f} s"),
        Row("the runner in place, beside training", f"{runner:.2f} s"),
        Row("its cost", f"{1e3 * (runner - loop) / n:.1f} ms a trial", f"{share:.1%}", "below 5%", share < 0.05),
        Row("one worker, whole", f"{seconds['one']:.1f} s"),
        Row("two workers, whole", f"{seconds['two']:.1f} s", f"{whole:.2f}x", "at least 1.7x", whole >= 1.7),
        Row("one worker, first answer to last", f"{one:.1f} s"),
        Row("two workers, first answer to last", f"{two:.1f} s", f"{gain:.2f}x", "at least 1.7x", gain >= 1.7),
    ]
    notes = [
        f"Medians of {_TURNS} turns. The loop reads, fits, chooses and evaluates.",
        "The runner also keeps models, artefacts and values, and commits every trial; its cost's ratio is to training.",
        "A worker imports the library before its first trial: about 2 s, most of it scikit-learn.",
    ]
    return Table(title, rows, notes)


def _fitting(results: rw.Results) -> float:
    return float(results.tables["trials"]["seconds"].sum())


def measure() -> Iterator[Table]:
    """All tables on experiments."""
    found = find_data()
    if found is None or not (found.parents[1] / "OHSUMED").is_dir():
        yield Table("Experiments", [skipped("the OHSUMED protocol", "no OHSUMED; RANKWRIGHT_DATA names the data sets")])
        return
    experiment = make_reproductions(["ohsumed"], Path(found.parents[1]))["ohsumed"]
    yield measure_protocol("Experiments: the OHSUMED protocol as shipped", experiment)
    yield measure_protocol("Experiments: OHSUMED, AdaRank on 16 measures", longer(experiment))


if __name__ == "__main__":
    publish([measure])
