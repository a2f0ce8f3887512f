"""AutoRanker against tuned peers and single rankers: ``python -m benchmarks.auto --data DIR --seconds 120 --out DIR``.

Every fold of every data set is ranked by every method with the same data and the same time. A result is a file in the
folder ``--out``, so that a run goes on where it was interrupted, and may be split over machines by ``--only``,
``--folds`` and ``--methods``: copy their files into one folder. ``--table`` prints the tables of what is there.
"""

from __future__ import annotations

import argparse
import json
import math
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.auto_methods import AUTO, DATA_SETS, MADE, N_FOLDS, Method, Task, find_absent, list_methods, open_folds
from benchmarks.peers import MEASURE, TUNERS
from benchmarks.timing import THREADS
from rankwright.analysis.significance import Comparison, bootstrap_interval, compare
from rankwright.basics.array_types import Floats
from rankwright.basics.files import write_atomic
from rankwright.basics.number_texts import format_interval, format_p, format_signed

CHOSEN = "the single ranker that is best on validation queries, fold by fold"
WARM_SECONDS = 10.0  # of a method on little data; it may take longer where kernels are compiled


class Result(NamedTuple):
    """What a method reached on a fold: NDCG@10 of each test query, seconds, NDCG@10 on validation queries (or NaN)."""

    values: Floats
    seconds: float
    valid: float = math.nan


Results = dict[str, dict[int, Result]]  # by method and fold


class Settings(NamedTuple):
    """What all results of a method in a folder have in common."""

    seconds: float
    n_threads: int
    seed: int


def main() -> None:
    """Parse the command line, run what is not there yet, and print the tables."""
    args = _parse_arguments()
    methods, absent = list_methods(), find_absent()
    for name in [name for name in args.methods or methods if name in absent and not args.table]:
        print(absent[name], flush=True)
    chosen = {name: methods[name] for name in args.methods or methods if name not in absent}
    settings = Settings(args.seconds, args.threads, args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    if not args.table:
        for data in args.only:
            failed += run_methods(data, args.data, chosen, args.folds, settings, args.out)
    for data in args.only:
        print("\n".join(format_table(data, read_results(data, args.out))), flush=True)
    if failed:
        raise SystemExit(f"failed, see above: {'; '.join(failed)}")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto", description="AutoRanker, peers, single rankers.")
    parser.add_argument("--data", type=Path, help="the folder that holds OHSUMED and MQ2008")
    parser.add_argument("--seconds", type=float, default=120.0, help="the time of each method on each fold")
    parser.add_argument("--out", type=Path, required=True, help="the folder of results")
    parser.add_argument("--only", nargs="+", choices=DATA_SETS, default=list(DATA_SETS), help="data sets")
    parser.add_argument("--methods", nargs="+", choices=list(list_methods()), metavar="METHOD")
    parser.add_argument("--folds", nargs="+", type=int, choices=range(1, N_FOLDS + 1), default=range(1, N_FOLDS + 1))
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="run nothing: print tables of the results that are there")
    return parser.parse_args()


def run_methods(
    data: str,
    folder: Path | None,
    methods: Mapping[str, Method],
    folds: Iterable[int],
    settings: Settings,
    out: Path,
) -> list[str]:
    """Run every method on every fold whose result is not there, and return what failed, which is printed too."""
    opened = open_folds(data, folder)
    failed: list[str] = []
    warm: set[str] = set()
    for fold in folds:
        missing = [name for name in methods if not _is_done(_result_path(out, data, fold, name), settings)]
        if not missing:
            continue
        task = Task(*opened[fold - 1], *settings)
        for name in missing:
            try:
                if name not in TUNERS and name not in warm:
                    compile_kernels(methods[name], settings)
                    warm.add(name)
                result = run_method(methods[name], task)
            except Exception:  # one method that fails must not end a run of hours
                print(f"{data}, fold {fold}, {name} failed:\n{traceback.format_exc()}", flush=True)
                failed.append(f"{data}, fold {fold}, {name}")
                continue
            key = {"data": data, "fold": fold, "method": name, "settings": settings._asdict()}
            with write_atomic(_result_path(out, data, fold, name)) as file:
                json.dump({**key, **result}, file)
            mean = np.mean(result["values"])
            print(f"{data}, fold {fold}, {name}: {mean:.4f} in {result['seconds']:.0f} s", flush=True)
    return failed


def compile_kernels(method: Method, settings: Settings) -> None:
    """Run a method once on little data, so that the time of a fold is not spent on compiling."""
    queries = rw.make_queries(30, n_docs=8, n_features=6, random_state=0)
    train, valid, test = (queries.take(range(start, start + 10)) for start in (0, 10, 20))
    run_method(method, Task(train, valid, test, *settings._replace(seconds=WARM_SECONDS)))


def run_method(method: Method, task: Task) -> dict[str, Any]:
    """Return what one method does on one fold: NDCG@10 by test query, seconds, and what it chose."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single fits, such as those that the time ends
        answer = method(task)
    seconds = perf_counter() - start
    values = rw.evaluate(answer.scores, task.test, MEASURE).values[0]
    valid = None if math.isnan(answer.valid) else answer.valid
    qid = [str(each) for each in task.test.qid]
    return {"qid": qid, "values": values.tolist(), "valid": valid, "seconds": seconds, "chosen": answer.chosen}


def _result_path(out: Path, data: str, fold: int, method: str) -> Path:
    return out / f"{data}-{fold}-{method}.json"


def _is_done(path: Path, settings: Settings) -> bool:
    """Return whether a result is there; raise InputError if it was made with other settings."""
    if not path.exists():
        return False
    found = json.loads(path.read_text(encoding="utf-8"))["settings"]
    if found != settings._asdict():
        raise rw.InputError(f"{path}: {found}; expected {settings._asdict()}: use another folder for other settings")
    return True


def read_results(data: str, out: Path) -> Results:
    """Return the results of a data set in a folder: of the same settings by method, and the same queries by fold."""
    results: Results = {}
    queries: dict[int, list[str]] = {}
    settings: dict[str, Any] = {}
    for path in sorted(out.glob(f"{data}-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        expected = settings.setdefault(found["method"], found["settings"])
        if expected != found["settings"]:
            raise rw.InputError(f"{path}: {found['settings']}; expected {expected}, as on the other folds")
        if queries.setdefault(found["fold"], found["qid"]) != found["qid"]:
            raise rw.InputError(f"{path}: other test queries than those of other methods on fold {found['fold']}")
        valid = math.nan if found["valid"] is None else found["valid"]
        result = Result(np.array(found["values"]), found["seconds"], valid)
        results.setdefault(found["method"], {})[found["fold"]] = result
    return results


def format_table(data: str, results: Results) -> Iterator[str]:
    """Yield the lines of a Markdown table: means with intervals, and differences from auto with tests."""
    folds = sorted({fold for by_fold in results.values() for fold in by_fold})
    whole = {name: by_fold for name, by_fold in results.items() if sorted(by_fold) == folds}
    singles = [by_fold for name, by_fold in whole.items() if name != AUTO and name not in TUNERS]
    if len(singles) > 1:
        whole[CHOSEN] = {fold: max((each[fold] for each in singles), key=lambda one: one.valid) for fold in folds}
    values = {name: np.concatenate([by_fold[fold].values for fold in folds]) for name, by_fold in whole.items()}
    seconds = {name: float(np.mean([by_fold[fold].seconds for fold in folds])) for name, by_fold in whole.items()}
    if CHOSEN in whole:  # all are fitted before one is chosen
        seconds[CHOSEN] = sum(seconds[name] for name in whole if name not in (AUTO, CHOSEN, *TUNERS))
    compared: dict[str, Comparison] = {}
    if AUTO in values and len(values) > 1:
        compared = {each.second: each for each in compare(values, baseline=AUTO)}
    n_queries = len(next(iter(values.values()))) if values else 0
    yield f"\n### {data}: {MEASURE}, {len(folds)} folds, {n_queries} test queries\n"
    yield "| method | mean | 95% interval | auto is better by | 95% interval | p | p (Holm) | queries | seconds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in sorted(values, key=lambda name: -float(values[name].mean())):
        yield _format_row(name, values[name], seconds[name], compared.get(name))
    for name in sorted(results.keys() - whole.keys()):
        yield f"\n{name} has results of {len(results[name])} of {len(folds)} folds, and is left out."
    yield "\nMeans are over all test queries; seconds are of a fold, and include the scoring of its test queries."
    if data == MADE:
        yield "Synthetic queries are made so that a blend of families helps (docs/data.md): real data need not be so."
    if compared:
        yield "p: paired randomisation tests over queries, against auto; Holm: adjusted for all rows of the table."
        yield "queries: on how many auto is better, equal and worse."


def _format_row(name: str, values: Floats, seconds: float, compared: Comparison | None) -> str:
    interval = bootstrap_interval(values)
    cells = [name, f"{values.mean():.4f}", format_interval(interval.low, interval.high, 4)]
    if compared is None:
        cells += [""] * 5
    else:
        auto = compared.swap_methods()
        cells += [format_signed(auto.difference, 4), format_interval(auto.low, auto.high, 4)]
        cells += [format_p(auto.p.randomisation), format_p(auto.adjusted.randomisation)]
        cells += [f"{auto.wins}, {auto.ties}, {auto.losses}"]
    return f"| {' | '.join([*cells, f'{seconds:.0f}'])} |"


if __name__ == "__main__":
    main()
