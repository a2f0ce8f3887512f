"""Cold start: the first fit of each ranker in a fresh process with an empty cache of kernels, and the second."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import rankwright
from benchmarks.report import Row, Table, publish
from rankwright.rankers import RANKERS, find_ranker

LIMIT = 10.0  # seconds of the first fit ever
CORES = 2
_SLOWEST = 3  # kernels that are named

_FIT = """
import json, os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[3])])
start = time.perf_counter()
from numba.core import event
import rankwright as rw

class Clock(event.Listener):
    def __init__(self):
        self.open, self.seconds, self.signatures = [], {}, {}

    def on_start(self, found):
        self.open.append((time.perf_counter(), 0.0))

    def on_end(self, found):
        name = found.data["dispatcher"].py_func.__qualname__
        begun, inner = self.open.pop()
        whole = time.perf_counter() - begun
        self.seconds[name] = self.seconds.get(name, 0.0) + whole - inner
        self.signatures[name] = self.signatures.get(name, 0) + 1
        if self.open:
            self.open[-1] = self.open[-1][0], self.open[-1][1] + whole

clock = Clock()
train, valid = (rw.make_queries(20, n_docs=20, n_features=10, random_state=seed) for seed in (0, 1))
ranker = getattr(rw, sys.argv[1])(backend=rw.Serial(), **json.loads(sys.argv[2]))
with event.install_listener("numba:compile", clock):
    began, used = time.perf_counter(), time.process_time()
    ranker.fit(train, valid=valid)
    fitted, used = time.perf_counter(), time.process_time() - used
    ranker.predict(valid)
now = time.perf_counter()
print(json.dumps({"fit": fitted - began, "cpu": used, "predict": now - fitted, "process": now - start,
                  "kernels": clock.seconds, "signatures": clock.signatures}))
"""


def fit_in_new_process(ranker: str, folder: Path) -> dict[str, Any]:
    """Fit a ranker in a fresh process on two cores, with the package and the cache of kernels in this folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    places = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache"), "XDG_CACHE_HOME": str(folder)}
    params = json.dumps({"max_seconds": LIMIT} if "budget_ms" in find_ranker(ranker).parameter_names() else {})
    command = [sys.executable, "-W", "ignore", "-c", _FIT, ranker, params, str(CORES)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment | places)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_ranker(ranker: str) -> Row:
    """Measure the first and the second process of a ranker."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = Path(rankwright.__file__).parent
        shutil.copytree(package, folder / "rankwright", ignore=shutil.ignore_patterns("__pycache__"))
        first, second = (fit_in_new_process(ranker, folder) for _ in range(2))
    kernels = first["kernels"]
    slowest = sorted(kernels, key=kernels.__getitem__, reverse=True)[:_SLOWEST]
    named = ", ".join(f"{each} {kernels[each]:.1f} s" for each in slowest)
    more = sum(first["signatures"].values()) - len(kernels)
    what = f"{sum(kernels.values()):.1f} s for {len(kernels)} kernels, {more} of them for further types; {named}"
    met = first["fit"] <= LIMIT and not second["kernels"]
    seconds = f"{first['fit']:.1f} s ({first['cpu']:.1f} s of CPU time), then {second['fit']:.2f} s"
    seconds += f" ({len(second['kernels'])} kernels compiled)"
    return Row(ranker, seconds, what, f"below {LIMIT:g} s, then none", met)


def measure(names: list[str]) -> list[Table]:
    """Return the table of cold starts."""
    return [Table("First fit ever, and the fit of a second process", [measure_ranker(name) for name in names])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_start", description=__doc__)
    parser.add_argument("rankers", nargs="*", help="names of rankers; all by default")
    names = [find_ranker(name).__name__ for name in parser.parse_args().rankers]
    publish([partial(measure, [name]) for name in names or [ranker.__name__ for ranker in RANKERS]])


if __name__ == "__main__":
    main()
