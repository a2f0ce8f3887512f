"""How much memory is free for this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rankwright.runtime.control_groups import ROOT, group_folders


def available_memory(root: Path = ROOT) -> int | None:
    """Return how many bytes this process can still get; None where the system does not say.

    It is what the machine has free, or what is left to the process's container (its control group) if that is less.
    """
    rooms = (_machine_room(root), *map(_group_room, group_folders("memory", root)))
    found = [room for room in rooms if room is not None]
    return max(min(found), 0) if found else None


def _machine_room(root: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # not every system knows
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _group_room(folder: Path) -> int | None:
    """Return what a control group leaves to its processes; None without a limit."""
    for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        with suppress(OSError, ValueError):  # "max" is no number
            most, used = int((folder / limit).read_text()), int((folder / usage).read_text())
            return most - used + _reclaimable(folder)
    return None


def _reclaimable(folder: Path) -> int:
    """Copies of files in memory, which the system gives up when it needs room."""
    with suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    return 0
