"""Compiled kernels on disk: a file for each kernel and the types of its arguments, and never a reason to stop.

Numba's own cache sees a change in the file of a kernel but not in the files of the kernels that it calls, needs a
folder that it can write to, and raises at a damaged file. Here the folder is named by a digest of all kernels, files
have a checksum, and whatever is wrong with a file or a folder, the kernel is compiled and a warning says so, once.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import multiprocessing
import os
import pickle
import re
import secrets
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import compiler, config, serialize
from numba.core.caching import NullCache

from rankwright.basics.errors import KernelCacheWarning

_HERE = Path(__file__).resolve().parent
_rebuild: Any = compiler.CompileResult._rebuild  # Numba ships no types
_dumps: Any = serialize.dumps
_config: Any = config
_KEPT_FOLDERS = 4  # of other versions, beside the one in use
_CHECKSUM = 16  # bytes
_HOUR, _DAY = 3600.0, 86400.0


def _list_sources() -> list[tuple[str, int, int]]:
    """Return the name, modification time and size of each source file of the kernels."""
    with suppress(OSError):
        found = [(path.relative_to(_HERE).as_posix(), path.stat()) for path in _HERE.rglob("*.py")]
        return sorted((name, status.st_mtime_ns, status.st_size) for name, status in found)
    return []  # in an archive, say


_STATE = _list_sources()  # before any kernel is imported: the compiled code belongs to these files


class KernelCache(NullCache):
    """The cache on disk of one kernel's compiled code, in the form that Numba expects of a cache.

    Parameters
    ----------
    fn : function
        The kernel.
    options : mapping
        The options of the compiler.
    """

    def __init__(self, fn: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._fn = fn
        self._options = repr(
            {name: sorted(value) if isinstance(value, set) else value for name, value in options.items()}
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for these types of arguments, or None if no folder has it."""
        target_context.refresh()
        name = self._file_name(sig, target_context.codegen())
        if name is None:
            return None
        for folder in list_trusted_folders():
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            try:
                code = self._rebuild(target_context, *pickle.loads(_strip_checksum(name, content)))
            except Exception as error:
                _warn_once(f"{folder / name}: a damaged file of compiled code ({error}); the kernel is compiled again")
                continue
            _note_use(folder)
            return code
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep compiled code in the first folder that takes it."""
        name = self._file_name(sig, cres.codegen)
        if not _STATE:
            _warn_unkept([])
        if name is None or cres.library.has_dynamic_globals or any(not part.can_cache for part in cres.lifted):
            return
        if _list_sources() != _STATE:  # an upgrade while this process runs: its code is not that of the files any more
            return
        content = _dumps(self._reduce(cres))
        content = _checksum(name, content) + content
        reasons = []
        for folder in _folders():
            try:
                _write(folder, name, content)
            except OSError as error:
                reasons.append(f"{error.filename or folder}: {error.strerror or error}")
                continue
            _prune(folder)
            return
        _warn_unkept(reasons)

    def _reduce(self, cres: Any) -> tuple[Any, ...]:
        """Return what is kept of compiled code."""
        kept: tuple[Any, ...] = cres._reduce()
        return kept

    def _rebuild(self, target_context: Any, *kept: Any) -> Any:
        """Return compiled code from what was kept of it."""
        return _rebuild(target_context, *kept)

    def _file_name(self, sig: Any, codegen: Any) -> str | None:
        """Return the name of the file for these types, or None for a kernel whose source cannot be read."""
        source = _source_digest(inspect.getfile(self._fn))
        if source is None or self._fn.__closure__ is not None:
            return None
        code = self._fn.__code__
        key = (str(sig), codegen.magic_tuple(), self._options, source, code.co_firstlineno)
        digest = hashlib.blake2b(repr(key).encode(), digest_size=12).hexdigest()
        where = self._fn.__module__.rpartition(".")[2]
        return f"{where}.{self._fn.__qualname__}-{digest}.nbc".replace("<", "").replace(">", "")


def warn_if_not_kept() -> None:
    """Warn if no folder can keep compiled kernels, on behalf of worker processes, which do not warn themselves."""
    reasons = []
    for folder in _folders():
        try:
            _make_folder(folder)
        except OSError as error:
            if _is_trusted(folder):  # kernels that were compiled before it became read-only
                return
            reasons.append(f"{error.filename or folder}: {error.strerror or error}")
        else:
            if os.access(folder, os.W_OK):
                return
            reasons.append(f"{folder}: cannot be written")
    _warn_unkept(reasons)


@lru_cache(maxsize=1)
def _folders() -> tuple[Path, ...]:
    """Return the cache folders for compiled kernels, best first, named by a digest of sources and compiler."""
    digest = hashlib.blake2b(digest_size=12)
    try:
        for name, _, _ in _STATE:
            digest.update(name.encode() + b"\0" + (_HERE / name).read_bytes() + b"\0")
    except OSError:
        return ()
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.implementation.cache_tag, sys.platform)
    digest.update(repr(versions).encode())
    places = [Path(_config.CACHE_DIR).resolve()] if _config.CACHE_DIR else []
    places += [_HERE / "__pycache__"] if _STATE else []
    with suppress(RuntimeError):  # no home
        places.append(_find_user_folder())
    return tuple(place / f"rankwright-{digest.hexdigest()}" for place in places)


def _find_user_folder() -> Path:
    """Return Rankwright's folder among the caches of this user, as the operating system places them."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "rankwright"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankwright"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwright"


@lru_cache(maxsize=64)
def _source_digest(path: str) -> str | None:
    """Return a digest of a source file outside of this package, "" for one inside, or None if it cannot be read."""
    if Path(path).resolve().is_relative_to(_HERE):
        return "" if _STATE else None
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=12).hexdigest()
    except OSError:
        return None


def list_trusted_folders() -> tuple[Path, ...]:
    """Return the cache folders that no other user can write to, because loading compiled code runs it.

    Another process may have made one since the last call, so nothing is remembered.
    """
    return tuple(folder for folder in _folders() if _is_trusted(folder))


def _is_trusted(folder: Path) -> bool:
    """Return whether a folder exists and only this user, root or this package's owner can write to it."""
    try:
        found = folder.stat()
        if not stat.S_ISDIR(found.st_mode):
            return False
        if not hasattr(os, "geteuid"):
            return True
        return found.st_uid in (os.geteuid(), 0, _HERE.stat().st_uid) and not found.st_mode & (
            stat.S_IWGRP | stat.S_IWOTH
        )
    except OSError:
        return False


def _make_folder(folder: Path) -> None:
    """Make a cache folder if it does not exist; raise an OSError if other users can write to it."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o755, exist_ok=True)
    if not _is_trusted(folder):
        raise PermissionError(errno.EACCES, "other users can write to it", str(folder))


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write a cache file under a temporary name, then rename it, so that other processes never see half of it."""
    _make_folder(folder)
    temporary = folder / f"{name}.{secrets.token_hex(4)}.tmp"
    try:
        temporary.write_bytes(content)
        temporary.replace(folder / name)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


@lru_cache(maxsize=4)
def _prune(folder: Path) -> None:
    """Remove old cache folders of other versions, and temporary files older than an hour; once per process."""
    with suppress(OSError):
        others = [path for path in folder.parent.glob("rankwright-*") if path != folder and _is_cache_folder(path)]
        for path in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT_FOLDERS:]:
            shutil.rmtree(path, ignore_errors=True)
        for path in folder.glob("*.tmp"):
            if time.time() - path.stat().st_mtime > _HOUR:
                path.unlink(missing_ok=True)


def _is_cache_folder(path: Path) -> bool:
    """Return whether a folder has the name of a cache folder and holds nothing but compiled kernels."""
    if re.fullmatch(r"rankwright-[0-9a-f]{24}", path.name) is None or not path.is_dir():
        return False
    return all(file.suffix in (".nbc", ".tmp") for file in path.iterdir())


@lru_cache(maxsize=4)
def _note_use(folder: Path) -> None:
    """Update the modification time of a cache folder in use, so that it is not pruned; once per process."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def _strip_checksum(name: str, content: bytes) -> bytes:
    """Return the content of a cache file without its checksum; raise a ValueError if the checksum is wrong."""
    if _checksum(name, content[_CHECKSUM:]) != content[:_CHECKSUM]:
        raise ValueError("wrong checksum")
    return content[_CHECKSUM:]


def _checksum(name: str, content: bytes) -> bytes:
    """Return the checksum of a cache file, which depends on its name and its content."""
    return hashlib.blake2b(content, digest_size=_CHECKSUM, key=name.encode()[-64:]).digest()


def _warn_unkept(reasons: list[str]) -> None:
    """Warn that no folder can keep compiled kernels, for these reasons, and say what the user can do."""
    found = "; ".join(reasons) or "the kernels' sources cannot be read"
    _warn_once(
        f"compiled kernels cannot be kept ({found}), so every process compiles them again, which takes up to a minute;"
        " set NUMBA_CACHE_DIR to a folder that you can write to"
    )


_warned = False


def _warn_once(message: str) -> None:
    """Issue a warning at the user's line that called this library, once, and never from a worker process."""
    global _warned
    if _warned or multiprocessing.parent_process() is not None:
        return
    _warned = True
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("rankwright", "numba"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, KernelCacheWarning, stacklevel=level)
