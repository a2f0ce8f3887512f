"""Findings in click logs: what is wrong, what was done about it, and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwright.basics.errors import ClickLogWarning, make_printable, warn


@dataclass(frozen=True, slots=True)
class ClickFinding:
    """A fault of a click log.

    Parameters
    ----------
    kind : str
        The kind, such as "duplicates".
    count : int
        How many rows, sessions or queries it concerns.
    text : str
        What was found, and what was done.
    way_out : str
        The option that does something else, or what to change in the log.
    """

    kind: str
    count: int
    text: str
    way_out: str

    def __str__(self) -> str:
        return make_printable(f"{self.kind}: {self.text}. {self.way_out}")

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a dictionary that can be written as JSON."""
        return {"kind": self.kind, "count": self.count, "text": self.text, "way_out": self.way_out}

    def warn(self) -> None:
        """Issue the finding as a warning."""
        warn(str(self), ClickLogWarning)
