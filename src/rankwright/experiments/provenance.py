"""The provenance of results: when, with what command, by which versions and on what machine trials were run."""

from __future__ import annotations

import datetime
import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rankwright.basics.version import __version__

_PACKAGES = ("numpy", "scipy", "numba", "lightgbm", "scikit-learn")


def describe_run(command: str = "") -> dict[str, str]:
    """Return the date, the command, the versions and the machine of a run, as texts by name.

    The name of the machine and of its user are left out: a report may be given to others.
    """
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    found = {"date": now, "command": command, "Rankwright": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    cores = f"{os.cpu_count()} cores"
    return found | {"machine": ", ".join([_name_processor(), cores, f"{platform.system()} {platform.machine()}"])}


def _name_processor() -> str:
    """Return the name of the processor, as Linux knows it, or else as Python does."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
