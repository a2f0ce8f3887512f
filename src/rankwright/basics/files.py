"""Files: compressed input recognised by content, and outputs written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.errors import InputError

StrPath = str | os.PathLike[str]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DECIMAL_CHARACTERS = b"0123456789+-.eE"


def is_plain(path: StrPath) -> bool:
    """Return whether a path is a regular file that is not compressed with gzip or xz."""
    if _is_device(Path(path)):
        return False
    with Path(path).open("rb") as file:
        return not file.read(6).startswith((_GZIP, _XZ))


@contextmanager
def open_binary(path: StrPath) -> Iterator[BinaryIO]:
    """Open a file or a pipe for reading bytes, decompressed if its content is gzip or xz.

    A compressed file that is damaged or cut off raises an ``InputError`` from the block that reads it.
    """
    with Path(path).open("rb") as file:
        head = file.peek(6)
        try:
            if head.startswith(_GZIP):
                with gzip.open(file, "rb") as unzipped:
                    yield cast(BinaryIO, unzipped)
            elif head.startswith(_XZ):
                with lzma.open(file, "rb") as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield file
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise InputError(f"{path}: the compressed file is damaged or cut off: {error}") from None


def skip_byte_order_mark(text: bytes) -> bytes:
    """Return the bytes of a file without the byte order mark that some editors put before UTF-8."""
    return text.removeprefix(BYTE_ORDER_MARK)


def parse_decimals(words: Sequence[str]) -> NDArray[np.float64]:
    """Return the values of decimal numbers; raise ValueError if a word is not a decimal number.

    A number is ``[+-]digits[.digits][e[+-]digits]`` in ASCII, and one of the digits before and after the point may be
    absent. Python's ``float`` also takes underscores, digits of other scripts, "nan" and "inf".

    >>> parse_decimals(["1", "-.5e1"]).tolist()
    [1.0, -5.0]
    """
    other = "".join(words).encode("utf-8", errors="surrogatepass").translate(None, _DECIMAL_CHARACTERS)
    if other:
        raise ValueError(f"{other[:8]!r} in a number")
    return np.fromiter(map(float, words), np.float64, len(words))


@contextmanager
def write_atomic(path: StrPath) -> Iterator[TextIO]:
    """Open a text file for writing under a temporary name, and rename it when the block ends without an error.

    ``.gz`` and ``.xz`` names are compressed. If the block raises, the target is left as it was. A link's target is
    replaced, not the link; devices and pipes (``/dev/stdout``) are written to directly.
    """
    path = Path(path)
    if is_stream(path):
        with path.open("a", encoding="utf-8") as stream:
            yield stream
        return
    with _replace_when_done(path) as temporary, _open_text(temporary, path) as file:
        yield file


@contextmanager
def write_atomic_binary(path: StrPath) -> Iterator[BinaryIO]:
    """Open a binary file for writing under a temporary name, and rename it when the block ends without an error."""
    path = Path(path)
    if is_stream(path):
        with path.open("ab") as stream:
            yield stream
        return
    with _replace_when_done(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def _replace_when_done(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside a file, and rename it to the file when the block ends without an error."""
    path = Path(os.path.realpath(path))
    temporary = make_temporary_name(path)
    try:
        yield temporary
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:  # the system does not say which file
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        with suppress(OSError):  # what went wrong before is what matters
            temporary.unlink(missing_ok=True)


@contextmanager
def write_folder_atomic(path: StrPath) -> Iterator[Path]:
    """Yield a temporary folder beside a path, and rename it to the path when the block ends without an error.

    A folder that is there already is replaced as a whole, and only then. If the block raises, nothing is left behind.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.mkdir()
        yield temporary
        _sync_folder(temporary)
        _put_folder(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise _name_target(error, path) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_folder(new: Path, path: Path) -> None:
    """Rename a folder to a path; a folder that is there is put aside first, and deleted afterwards."""
    if not path.is_dir():
        new.rename(path)
        return
    former = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.rename(former)
        new.rename(path)
    except BaseException:
        if former.exists() and not path.exists():
            former.rename(path)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _name_target(error: OSError, path: Path) -> OSError:
    """Return the error with the name of the target, where the system gives no name or a temporary one."""
    temporary = error.filename is None or f"{os.sep}.{path.name}." in f"{error.filename}"
    return OSError(error.errno, error.strerror, str(path)) if error.errno and temporary else error


def is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe, or a standard stream by name, which may be redirected to a file."""
    named = str(path) in ("/dev/stdout", "/dev/stderr") or str(path.parent) in ("/dev/fd", "/proc/self/fd")
    return named or _is_device(path)


def _is_device(path: Path) -> bool:
    """Return whether a path exists and is neither a regular file nor a folder: a device, a pipe or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_writable(path: StrPath) -> None:
    """Raise the OSError that writing a file would raise, so that it is known before long work, not after it.

    A pipe or a device is not opened: the reader of a pipe would see its end.
    """
    path = Path(path)
    if not is_stream(path):
        with suppress(_Checked), write_atomic(path):
            raise _Checked
    elif not os.access(path, os.W_OK):
        code = errno.EACCES if path.exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), str(path))


class _Checked(Exception):
    """The exception by which ``check_writable`` ends its trial: the file could be opened, and is left as it was."""


def check_outputs(outputs: Mapping[str, StrPath | None], inputs: Iterable[StrPath | None]) -> None:
    """Raise an error if an output file cannot be written, or would replace an input or another output.

    Parameters
    ----------
    outputs : mapping of str to path
        The files to write, each by the option or the name that an error calls it by; None is left out.
    inputs : iterable of path
        The files that are read; None is left out.
    """
    wanted = {name: Path(path) for name, path in outputs.items() if path is not None}
    check_apart({name: [path] for name, path in wanted.items()}, inputs)
    for path in wanted.values():
        check_writable(path)


def check_folder_output(name: str, path: StrPath, inputs: Iterable[StrPath | None]) -> None:
    """Raise an error if a folder cannot be written, or if replacing it would destroy an input.

    Parameters
    ----------
    name : str
        The option that an error calls the folder by.
    path : path
        The folder to write, as ``write_folder_atomic`` does.
    inputs : iterable of path
        The files and folders that are read; None is left out.
    """
    target = Path(os.path.realpath(path))
    for each in inputs:
        read = None if each is None else Path(os.path.realpath(each))
        if read is not None and (read == target or target in read.parents):
            raise InputError(f"{name} {path}: one of the files that are read; choose another")
        if read is not None and read in target.parents and read.is_dir():
            raise InputError(f"{name} {path}: inside {each}, which is read; choose another")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: cannot be written: there is no folder {target.parent}")
    with suppress(_Checked), write_folder_atomic(path):
        raise _Checked


def check_apart(outputs: Mapping[str, Iterable[Path]], inputs: Iterable[StrPath | None]) -> None:
    """Raise InputError if a file to write is also read or written twice, even under another name or link.

    ``outputs`` has for each option the files that it makes a command write.
    """
    read = [Path(path) for path in inputs if path is not None]
    written: list[tuple[str, Path]] = []
    for name, paths in outputs.items():
        for path in paths:
            if any(_is_same(path, other) for other in read):
                raise InputError(f"{name} {path}: one of the files that are read; choose another")
            for other_name, other in written:
                if _is_same(path, other):
                    raise InputError(f"{name} {path}: {other_name} is written there too; choose another")
            written.append((name, path))


def _is_same(first: Path, second: Path) -> bool:
    """Return whether two paths lead to the same file or pipe; terminals and ``/dev/null`` never count as the same."""
    try:
        one, other = first.stat(), second.stat()
    except (OSError, ValueError):  # the latter for names that no file can have
        return _resolve(first) == _resolve(second)
    return os.path.samestat(one, other) and not stat.S_ISCHR(one.st_mode)


def _resolve(path: Path) -> str:
    """Return a path without links; as it is where no file can have that name."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return str(path)


def make_temporary_name(path: Path) -> Path:
    """Return a temporary name beside a file to write; raise an OSError if the file cannot be written there."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; expected a file name to write to")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: cannot be written: there is no folder {path.parent}")
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _open_text(temporary: Path, path: Path) -> TextIO:
    """Open a temporary text file for writing, compressed if the final path ends with .gz or .xz."""
    try:
        if path.suffix == ".gz":
            return cast(TextIO, gzip.open(temporary, "wt", encoding="utf-8", newline="\n"))
        if path.suffix == ".xz":
            return cast(TextIO, lzma.open(temporary, "wt", encoding="utf-8", newline="\n"))
        return temporary.open("w", encoding="utf-8", newline="\n")
    except OSError as error:  # the user knows the target, not the temporary name
        raise type(error)(error.errno, error.strerror, str(path)) from None
