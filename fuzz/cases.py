"""What a kind of file is to the fuzzer, and the verdict on one case."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from rankwright.basics.errors import InputError

_LONGEST = 1_000  # characters of a message that is to be one line
_PACKAGE = "rankwright"


class Undecided:
    """What a reference returns for a file whose content it knows nothing about: it may be read or refused."""


UNDECIDED = Undecided()


@dataclass(frozen=True, slots=True)
class OrRefused:
    """What a reference returns for a damaged file with checksums: it may be refused, or read as it was written."""

    content: Any


class Kind(ABC):
    """A kind of file: how one is made at random, and how it is read."""

    name: ClassVar[str]
    warm_up: ClassVar[int] = 200  # cases until everything is compiled that will be

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # for files of a case; in memory, where there is such a folder

    @abstractmethod
    def make(self, rng: Random) -> bytes:
        """Make the content of a file, good or bad."""

    @abstractmethod
    def reference(self, data: bytes) -> Any:
        """Read the content slowly: None if it must be refused, ``UNDECIDED`` if it may be."""

    @abstractmethod
    def read(self, data: bytes) -> Any:
        """Read the content with the library."""

    @abstractmethod
    def difference(self, expected: Any, found: Any) -> str:
        """Say how what was read differs from what the reference read; nothing if it does not."""

    def write(self, data: bytes, name: str = "file") -> Path:
        """Write the content to a file."""
        path = self.folder / name
        path.write_bytes(data)
        return path


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a case.

    Parameters
    ----------
    outcome : str
        "accepted", "refused", or "finding" where the library is wrong.
    detail : str
        Of a finding: what is wrong, the same text for the same fault.
    decided : bool
        Whether the reference said what to expect.
    """

    outcome: str
    detail: str = ""
    decided: bool = True


def check(kind: Kind, data: bytes) -> Verdict:
    """Read a file with both readers and compare."""
    expected = kind.reference(data)
    decided = not isinstance(expected, Undecided)
    may_refuse = not decided or expected is None or isinstance(expected, OrRefused)
    try:
        found = kind.read(data)
    except InputError as error:
        return _check_refusal(error, may_refuse, decided)
    except Exception as error:
        return Verdict("finding", f"raises {_describe(error)}", decided)
    if not decided:
        return Verdict("accepted", decided=False)
    if expected is None:
        return Verdict("finding", "accepts what the reference refuses")
    difference = kind.difference(expected.content if isinstance(expected, OrRefused) else expected, found)
    return Verdict("finding", f"reads something else: {difference}") if difference else Verdict("accepted")


def _check_refusal(error: InputError, may_refuse: bool, decided: bool) -> Verdict:
    if not may_refuse:
        return Verdict("finding", f"refuses what the reference accepts: {_where(error)}")
    if len(str(error)) > _LONGEST:
        return Verdict("finding", f"refuses with a message of more than {_LONGEST} characters: {_where(error)}")
    return Verdict("refused", decided=decided)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__} at {_where(error)}"


def _where(error: Exception) -> str:
    """The last line of the library that the error went through: it tells one fault from another."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if f"/{_PACKAGE}/" in frame.filename]
    if not frames:
        return "unknown place"
    return f"{frames[-1].filename.rpartition(f'/{_PACKAGE}/')[2]}, {frames[-1].name}"
