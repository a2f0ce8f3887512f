"""The limits that containers set through control groups (Linux, versions 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import ceil, inf
from pathlib import Path

ROOT = Path("/")


def list_group_folders(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Yield the folders of the process's control groups, its own first, then its parents, whose limits count too.

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
    """Return a group's limit in cores; version 2 keeps quota and period in one file, version 1 in two."""
    for quota, period in (("cpu.max", "cpu.max"), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with suppress(OSError, ValueError, IndexError, ZeroDivisionError):
            most = (group / quota).read_text(encoding="ascii").split()[0]
            if most not in ("max", "-1"):
                return int(most) / int((group / period).read_text(encoding="ascii").split()[-1])
    return inf
