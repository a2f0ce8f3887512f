"""Several files that are written together, or not at all."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rankwright.basics.errors import InputError
from rankwright.basics.files import is_stream, make_temporary_name


def write_files_atomic(contents: Mapping[Path, bytes]) -> None:
    """Write several files so that all of them are replaced, or, if one cannot be written, none is changed."""
    former: dict[Path, Path | None] = {}  # the files that are replaced already, with the names of their old content
    with ExitStack() as stack:
        written = {}
        for path, content in contents.items():
            if is_stream(path):
                raise InputError(
                    f"{path}: a device or a pipe; expected the name of a file, as {len(contents)} are written"
                )
            own = Path(os.path.realpath(path))
            written[own] = make_temporary_name(own)
            stack.callback(_delete_quietly, written[own])
            with _name_file(own):
                written[own].write_bytes(content)
        try:
            for own, temporary in written.items():
                with _name_file(own):
                    old = _put_aside(own)
                    if old is not None:
                        stack.callback(_delete_quietly, old)
                        temporary.chmod(stat.S_IMODE(own.stat().st_mode))
                    temporary.replace(own)
                former[own] = old
        except BaseException:
            for own, old in former.items():
                with suppress(OSError):
                    own.unlink() if old is None else old.replace(own)
            raise


def _put_aside(path: Path) -> Path | None:
    """Give a file a second, temporary name, under which its content stays; return None if there is no file."""
    if not path.exists():
        return None
    second = make_temporary_name(path)
    try:
        second.hardlink_to(path)
    except OSError:  # a file system without links
        shutil.copy2(path, second)
    return second


def _delete_quietly(path: Path) -> None:
    """Delete a temporary file if it is still there; what went wrong before is what matters."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Name the file in an OSError of the block, which would name a temporary file or none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
