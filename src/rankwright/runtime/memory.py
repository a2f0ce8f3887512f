"""The memory that this process can still get."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rankwright.runtime.control_groups import ROOT, list_group_folders


def available_memory(root: Path = ROOT) -> int | None:
    """Return how many bytes this process can still get; None where the system does not say.

    This is what is free on the machine or in the process's container (its control group), whichever is less.
    """
    sizes = (_read_machine_memory(root), *map(_read_group_memory, list_group_folders("memory", root)))
    found = [size for size in sizes if size is not None]
    return max(min(found), 0) if found else None


def _read_machine_memory(root: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # not every system has these
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _read_group_memory(folder: Path) -> int | None:
    """Return the bytes that a control group has left for its processes; None without a limit."""
    for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        with suppress(OSError, ValueError):  # "max" is no number
            most, used = int((folder / limit).read_text()), int((folder / usage).read_text())
            return most - used + _read_reclaimable(folder)
    return None


def _read_reclaimable(folder: Path) -> int:
    """Return the bytes of cached files, which the system frees when memory is needed."""
    with suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    return 0
