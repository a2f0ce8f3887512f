"""The limits of this process: memory that it can still get, and limits that containers set through control groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil, inf
from pathlib import Path

ROOT = Path("/")


def list_group_folders(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Yield the folders of this process's control groups: its own first, then the parents, whose limits count too.

    Inside a container the mounted folder is often that of the group itself, whatever its path outside.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # another system
        return
    for line in lines:
        names, _, path = line.partition(":")[2].partition(":")
        if names and controller not in names.split(","):
            continue
        for mounted in ("", "unified") if not names else dict.fromkeys((names, controller)):
            top = root / "sys/fs/cgroup" / mounted
            own = top / path.lstrip("/")
            yield from (own, *own.parents[: len(own.parts) - len(top.parts)])


def read_core_limit(root: Path = ROOT) -> float:
    """Return how many cores the control groups allow this process, rounded up; infinity without a limit."""
    limit = min(map(_read_core_quota, list_group_folders("cpu", root)), default=inf)
    return limit if limit == inf else float(ceil(limit))


def _read_core_quota(group: Path) -> float:
    """Return a control group's limit in cores; version 2 keeps quota and period in one file, version 1 in two."""
    for quota, period in (("cpu.max", "cpu.max"), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with suppress(OSError, ValueError, IndexError, ZeroDivisionError):
            most = (group / quota).read_text(encoding="ascii").split()[0]
            if most not in ("max", "-1"):
                return int(most) / int((group / period).read_text(encoding="ascii").split()[-1])
    return inf


def read_available_memory(root: Path = ROOT) -> int | None:
    """Return how many bytes of memory this process can still get; None where the system does not say.

    This is what is free on the machine, in the process's container (its control group) or under its own limits
    (``ulimit -d`` and ``ulimit -v``), whichever is least. Files that are mapped into memory do not count as used.
    """
    sizes = (
        _read_machine_memory(root),
        *map(_read_group_memory, list_group_folders("memory", root)),
        *_read_process_memory(root),
    )
    found = [size for size in sizes if size is not None]
    return max(min(found), 0) if found else None


def _read_process_memory(root: Path) -> Iterator[int]:
    """Yield the bytes that each limit of this process leaves: on its data (RLIMIT_DATA), on all its addresses."""
    try:
        import resource
    except ImportError:  # another system
        return
    for limit, used in ((resource.RLIMIT_DATA, "VmData:"), (resource.RLIMIT_AS, "VmSize:")):
        most = resource.getrlimit(limit)[0]
        if most == resource.RLIM_INFINITY:
            continue
        with suppress(OSError, ValueError, IndexError):
            for line in (root / "proc/self/status").read_text().splitlines():
                if line.startswith(used):
                    yield most - int(line.split()[1]) * 1024


def _read_machine_memory(root: Path) -> int | None:
    """Return the bytes of memory that are available on the machine, or else all it has; None if unknown."""
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # not every system has these
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _read_group_memory(folder: Path) -> int | None:
    """Return the bytes of memory that a control group has left for its processes; None without a limit."""
    for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        with suppress(OSError, ValueError):  # "max" is no number
            most, used = int((folder / limit).read_text()), int((folder / usage).read_text())
            return most - used + _read_reclaimable(folder)
    return None


def _read_reclaimable(folder: Path) -> int:
    """Return the bytes of a control group's cached files, which the system frees when memory is needed."""
    with suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    return 0
