"""Kernels on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
import sys
import numpy as np
from rankwright.kernels.jit import kernel

@kernel
def total(x):
    return x.sum()

if __name__ == "__main__":
    print(total(np.arange(4, dtype=sys.argv[1])), sum(total.stats.cache_misses.values()))
"""


def test_two_processes_that_compile_at_once_do_not_overwrite_each_other(tmp_path):
    script, folder = tmp_path / "script.py", tmp_path / "kernels"
    script.write_text(MODULE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}

    def run(kind: str) -> str:
        command = [sys.executable, str(script), kind]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def index() -> Path:
        return next(folder.rglob("*.nbi"))

    assert run("float64") == "6.0 1\n"
    first = index().read_bytes()
    index().unlink()  # what the second process sees if it looks before the first has written
    assert run("float32") == "6.0 1\n"
    index().write_bytes(first)  # the first process wrote last
    assert run("float64") == "6.0 0\n"
