"""Starting: what importing costs, and how soon the command line answers in a fresh process."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.report import Row, Table, below, publish, skipped
from benchmarks.timing import take_turns

_COUNT = """
import json, pkgutil, sys
from importlib import import_module
import rankwright.kernels
from rankwright.cli import run
status = run(sys.argv[1:])
names = [f"rankwright.kernels.{module.name}" for module in pkgutil.iter_modules(rankwright.kernels.__path__)]
found = {id(k): k for name in names for k in vars(import_module(name)).values() if hasattr(k, "stats")}
stats = [kernel.stats for kernel in found.values()]
misses, hits = (sum(sum(getattr(s, field).values()) for s in stats) for field in ("cache_misses", "cache_hits"))
print(json.dumps([status, misses, hits]))
"""

Command = list[str]


def python(code: str) -> Command:
    """A fresh interpreter that runs this code."""
    return [sys.executable, "-c", code]


def command_line(*arguments: str) -> Command:
    """The installed command, or the module where there is none beside this Python."""
    script = Path(sys.executable).with_name("rankwright")
    return [
        str(script) if script.exists() else sys.executable,
        *([] if script.exists() else ["-m", "rankwright"]),
        *arguments,
    ]


def run(command: Command, environment: dict[str, str] | None = None) -> str:
    """Run to the end and return what it printed."""
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def time_commands(commands: dict[str, Command]) -> dict[str, list[float]]:
    """Run each once to fill the caches, then in turns; bytecode is cached, whatever this shell says."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = bytecode
        for command in commands.values():
            run(command, environment)
        return take_turns({name: partial(run, command, environment) for name, command in commands.items()})


def _show(seconds: list[float]) -> str:
    return f"{median(seconds):.3f} s (best {min(seconds):.3f} s)"


def measure_imports() -> Table:
    """Imports, against scikit-learn's base classes, which every estimator needs."""
    codes = ("pass", "import sklearn.base", "import rankwright", "import rankwright; rankwright.AdaRank")
    seconds = time_commands({**{code: python(code) for code in codes}, "rankwright --help": command_line("--help")})
    base = median(seconds["import sklearn.base"])
    rows = [Row(f"`python -c '{code}'`", _show(seconds[code])) for code in codes[:2]]
    more = [median(seconds[code]) - base for code in codes[2:]]
    limits = (("at most sklearn.base + 0.4 s", more[0] <= 0.4), ("", None))
    for code, difference, (target, met) in zip(codes[2:], more, limits, strict=True):
        rows.append(Row(f"`python -c '{code}'`", _show(seconds[code]), f"{difference:+.3f} s", target, met))
    help_seconds = seconds["rankwright --help"]
    rows.append(below("`rankwright --help`", _show(help_seconds), median(help_seconds), 0.5, "s"))
    notes = [
        "Medians of fresh processes that take turns, after one run of each; differences are to sklearn.base.",
        "Names are imported when they are used, so `import rankwright` alone loads almost nothing.",
    ]
    return Table("Starting", rows, notes)


def data_root() -> Path:
    """Where the data sets are, if they are here."""
    return Path(os.environ.get("RANKWRIGHT_DATA") or Path(__file__).parents[2] / "shared" / "data")


def find_data() -> Path | None:
    """A part of MQ2008, where the data sets are."""
    path = data_root() / "MQ2008" / "S5.txt.gz"
    return path if path.exists() else None


def measure_evaluation(data: Path | None) -> Table:
    """The command line's evaluate on a real test set."""
    title = "Evaluating in a fresh process"
    if data is None:
        return Table(
            title, [skipped("`rankwright evaluate`", "no MQ2008; RANKWRIGHT_DATA names the folder of data sets")]
        )
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder, "test.txt"), Path(folder, "model.json")
        with gzip.open(data, "rb") as source, text.open("wb") as target:
            shutil.copyfileobj(source, target)
        run(command_line("fit", "adarank", "--train", str(text), "--set", "n_estimators=5", "--model", str(model)))
        arguments = ("evaluate", "--data", str(text), "--model", str(model))
        seconds = time_commands({"evaluate": command_line(*arguments)})["evaluate"]
        status, misses, hits = json.loads(run([*python(_COUNT), *arguments]).splitlines()[-1])
        n_lines = sum(1 for _ in text.open("rb"))
    if status != 0:
        raise AssertionError(f"rankwright evaluate ended with status {status}")
    rows = [
        below("`rankwright evaluate`", _show(seconds), median(seconds), 2.5, "s"),
        Row("kernels compiled in that process", f"{misses} ({hits} from the cache)", "", "0", misses == 0),
    ]
    return Table(
        title, rows, [f"MQ2008, part 5: {n_lines:,} documents, as plain text; a first process has filled the cache."]
    )


def measure() -> Iterator[Table]:
    """All tables on starting."""
    yield measure_imports()
    yield measure_evaluation(find_data())


if __name__ == "__main__":
    publish([measure])
