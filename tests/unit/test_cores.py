"""How many cores there are to use: affinity and the limits of containers."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path

import pytest

from rankwright.runtime import backends
from rankwright.runtime.process_limits import read_core_limit

V1 = "4:memory:/docker/x\n3:cpu,cpuacct:{}\n0::/\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(("files", "limit"), [
    ({}, inf),
    ({"proc/self/cgroup": "nonsense"}, inf),
    ({"proc/self/cgroup": "0::/\n"}, inf),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, inf),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "nonsense\n"}, inf),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "20000 100000\n"}, 1),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "300000 100000"}, 3),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000", "sys/fs/cgroup/a/cpu.max": "300000 100000"}, 3),
    ({"proc/self/cgroup": "0::/outside\n", "sys/fs/cgroup/cpu.max": "100000 100000"}, 1),
    ({"proc/self/cgroup": V1.format("/docker/x"), "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000"}, 3),
    ({"proc/self/cgroup": V1.format("/docker/x"), "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "50000",
      "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us": "50000"}, 1),
    ({"proc/self/cgroup": V1.format("/"), "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, inf),
    ({"proc/self/cgroup": V1.format("/"), "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "0"}, inf),
])  # fmt: skip
def test_the_limit_of_a_container(tmp_path, files, limit):
    assert read_core_limit(write(tmp_path, files)) == limit


def test_cores_are_those_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(backends, "_core_limit", lambda: inf)
    assert backends.count_cores() == 6
    monkeypatch.setattr(backends, "_core_limit", lambda: 2.0)
    assert backends.count_cores() == 2
    assert backends.resolve(None) == backends.Threads(2)
    monkeypatch.setattr(backends, "_core_limit", lambda: 0.0)
    assert backends.count_cores() == 1
    monkeypatch.setattr(backends, "_core_limit", lambda: 8.0)
    assert backends.count_cores() == 6
