"""The report: Markdown tables of figures, ratios and targets, under a header that names the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = (
    "rankwright",
    "numpy",
    "numba",
    "torch",
    "scikit-learn",
    "lightgbm",
    "xgboost-cpu",
    "xgboost",
    "catboost",
    "onnxruntime",
    "tl2cgen",
    "fastrank",
    "ranx",
    "pytrec-eval-terrier",
    "pyarrow",
    "polars",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; a row without a target is for information."""

    tool: str
    figure: str
    ratio: str = ""
    target: str = ""
    met: bool | None = None

    def markdown(self) -> str:
        """The row as Markdown."""
        met = {True: "yes", False: "**no**", None: ""}[self.met]
        return "| " + " | ".join((self.tool, self.figure, self.ratio, self.target, met)) + " |"


def faster(tool: str, figure: str, ratio: float, target: float | None = None) -> Row:
    """A peer that we are ``ratio`` times as fast as, and should be ``target`` times as fast as."""
    if target is None:
        return Row(tool, figure, f"{ratio:.1f}x")
    return Row(tool, figure, f"{ratio:.1f}x", f"at least {target:g}x", ratio >= target)


def below(tool: str, figure: str, value: float, target: float, unit: str, ratio: str = "") -> Row:
    """Something of ours that should stay below a target."""
    return Row(tool, figure, ratio, f"below {target:g} {unit}", value < target)


def skipped(tool: str, why: str = "not installed") -> Row:
    """A comparison that cannot be made here."""
    return Row(tool, f"skipped: {why}")


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table with notes on what was measured."""

    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """The table as Markdown."""
        head = "| what | figure | ratio | target | met |\n| --- | --- | --- | --- | --- |"
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n".join([f"## {self.title}", "", head, *(row.markdown() for row in self.rows), "", notes]).rstrip()


Section = Callable[[], Iterable[Table]]


def publish(sections: Iterable[Section]) -> str:
    """Measure, print every table as soon as it is there, and return the whole report."""
    pieces: list[str] = []
    for piece in _pieces(sections):
        print(piece, flush=True)
        pieces.append(piece)
    return "\n".join(pieces)


def _pieces(sections: Iterable[Section]) -> Iterator[str]:
    yield header()
    for section in sections:
        for table in section():
            yield table.markdown() + "\n"


def header() -> str:
    """The machine, the date and the versions."""
    versions = ", ".join(f"{name} {number}" for name in _PACKAGES if (number := _version(name)))
    return "\n".join(
        [
            "# Benchmarks",
            "",
            f"- Machine: {_cpu()}, {os.cpu_count()} cores, {_memory()}; {platform.system()}",
            f"- Load when started: {os.getloadavg()[0]:.2f}; other work on the machine slows threaded tools most",
            f"- Date: {date.today().isoformat()}",
            f"- Python {platform.python_version()}; {versions}",
            "- Ratios such as 2.6x: how many times as fast Rankwright is, from medians of repetitions that take turns "
            "in one run; other ratios are explained at their table",
            "",
        ]
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    return proc_field("/proc/cpuinfo", "model name") or platform.processor() or "unknown processor"


def _memory() -> str:
    total = proc_field("/proc/meminfo", "MemTotal")
    return f"{int(total.split()[0]) / 2**20:.0f} GiB" if total else "unknown memory"


def proc_field(path: str, name: str) -> str | None:
    """The first value of ``name: value`` in a file of /proc; None where there is no such file or field."""
    file = Path(path)
    if not file.exists():
        return None
    for line in file.read_text(encoding="utf-8").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return None
