"""How much memory is free for this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SYSTEM = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return how many bytes this process can still get; None where the system does not say.

    It is what the machine has free, or what is left to the process's container (its control group) if that is less.
    """
    found = [room for room in (_machine_room(), *_group_rooms()) if room is not None]
    return max(min(found), 0) if found else None


def _machine_room() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # not every system knows
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _group_rooms() -> Iterator[int | None]:
    """What the control groups of this process leave to it, its own and those above it."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            root = _SYSTEM / controllers
            limit, usage = ("memory.max", "memory.current") if not controllers else _NAMES_OF_VERSION_1
            inside = root / name.lstrip("/")
            for folder in (inside, *inside.parents):
                if folder.is_relative_to(root):
                    yield _room(folder, limit, usage)


_NAMES_OF_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")


def _room(folder: Path, limit: str, usage: str) -> int | None:
    try:
        most, used = int((folder / limit).read_text()), int((folder / usage).read_text())  # "max" is no number
    except (OSError, ValueError):
        return None
    return most - used + _reclaimable(folder)


def _reclaimable(folder: Path) -> int:
    """Copies of files in memory, which the system gives up when it needs room."""
    with suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    return 0
