"""How much memory is free."""

from __future__ import annotations

import resource

import pytest

from rankwright.runtime.process_limits import read_available_memory


def test_something_is_free_here():
    assert read_available_memory() > 10e6


@pytest.fixture
def groups(tmp_path):
    """A made-up system: 8 GB are free, and the process is in the control group /a/b."""
    for name, text in {
        "proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable:    8000000 kB\n",
        "proc/self/cgroup": "1:name=systemd:/x\n0::/a/b\n",
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/b/memory.current": "500\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_group_without_a_limit_leaves_what_the_machine_has(groups):
    assert read_available_memory(groups) == 8_000_000 * 1024


def test_the_tightest_group_counts_and_cached_files_are_free(groups):
    above = groups / "sys/fs/cgroup/a"
    (above / "memory.max").write_text("3000\n")
    (above / "memory.current").write_text("1000\n")
    assert read_available_memory(groups) == 2000
    (above / "memory.stat").write_text("anon 7\ninactive_file 300\n")
    assert read_available_memory(groups) == 2300
    (above / "memory.current").write_text("4000\n")
    assert read_available_memory(groups) == 0


def test_groups_of_version_1(groups):
    (groups / "proc/self/cgroup").write_text("5:memory:/docker/x\n")
    folder = groups / "sys/fs/cgroup/memory"  # inside a container the path is not the one outside
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("5000\n")
    (folder / "memory.usage_in_bytes").write_text("1000\n")
    assert read_available_memory(groups) == 4000


def test_other_systems_say_nothing(groups):
    (groups / "proc/self/cgroup").unlink()
    (groups / "proc/meminfo").write_text("nothing of the kind\n")
    assert read_available_memory(groups) is None or read_available_memory(groups) > 10e6


@pytest.mark.parametrize("limit", ["RLIMIT_DATA", "RLIMIT_AS"])
def test_the_limits_of_the_process_count(limit, groups, monkeypatch):
    (groups / "proc/self/status").write_text("VmSize:\t    3000 kB\nVmData:\t    2000 kB\n")
    used = {"RLIMIT_DATA": 2000 * 1024, "RLIMIT_AS": 3000 * 1024}[limit]

    def getrlimit(which):
        return (used + 700 if which == getattr(resource, limit) else resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    monkeypatch.setattr(resource, "getrlimit", getrlimit)
    assert read_available_memory(groups) == 700
