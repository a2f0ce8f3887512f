"""The C compiler itself."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wmissing-prototypes", "-O2")
_NUMBERS = itertools.count()


def compile_library(path, *flags: str) -> ctypes.CDLL:
    """Return the exported C file as a library, compiled without a warning."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    library = Path(f"{path}.{next(_NUMBERS)}.so")  # a process loads a path only once
    options = ["-x", "c", str(path), "-shared", "-fPIC", "-o", str(library), "-lm"]
    made = subprocess.run([compiler, *FLAGS, *flags, *options], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return ctypes.CDLL(str(library))


def score(path, X, names):
    model = Path(path).name.partition(".")[0]
    library = compile_library(path)
    n_features = ctypes.c_int.in_dll(library, f"{model}_n_features").value
    found = (ctypes.c_char_p * n_features).in_dll(library, f"{model}_feature_names")
    assert [name.decode() for name in found] == list(names)
    rows = np.ascontiguousarray(X, dtype=np.float32)
    scores = np.empty(len(rows))
    batch = getattr(library, f"{model}_score_batch")
    batch.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    batch(rows.ctypes.data, len(rows), scores.ctypes.data)
    return scores
