"""Queries saved as data sets on disk that are named after their content."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rankwright.basics.errors import InputError
from rankwright.data.mapped import MappedSource, verify_checksums
from rankwright.data.mapped_header import SUFFIX, read_header
from rankwright.data.mapped_writer import write_queries
from rankwright.data.queries import Queries


def save_queries(queries: Queries, folder: Path) -> Path:
    """Save a data set in a folder, on disk under the digest of its content, and return its path.

    One that exists is written again only if it is damaged.
    """
    with tempfile.TemporaryDirectory(prefix=".", dir=folder) as temporary:
        written = Path(temporary) / f"queries{SUFFIX}"
        write_queries(queries, written)
        path = folder / f"{read_header(written).digest}{SUFFIX}"
        try:
            load_queries(path)
        except (OSError, InputError):
            if os.path.lexists(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            written.rename(path)
    return path


def load_queries(path: Path) -> Queries:
    """Open a data set that :func:`save_queries` saved; raise InputError if it is damaged or has another name."""
    verify_checksums(path)
    if read_header(path).digest != path.stem:
        raise InputError(
            f"{path}: damaged: its content does not fit its name; expected queries that an experiment saved"
        )
    return MappedSource([path]).read()
