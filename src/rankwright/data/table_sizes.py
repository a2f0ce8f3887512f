"""Sizes of tables of features: whether one fits into the memory, and whether text can be the source of it."""

from __future__ import annotations

from rankwright.runtime.process_limits import read_available_memory

LITTLE = 1 << 26  # bytes that any machine has: a table of less is made without further questions
_SMALL = 1 << 30  # bytes of a table that any text may make
_MAX_GROWTH = 1_000  # a table is at most so many times as large as the text it is read from
_WAYS = (
    "Convert the files with rankwright convert (rw.convert), whose output is not read into memory; or use fewer "
    "documents or features"
)


def explain_lack_of_memory(rows: int, width: int, free: int | None = None) -> str | None:
    """Return why a table is too large for the memory; None if it is not.

    Parameters
    ----------
    rows, width : int
        The number of documents and of features.
    free : int, optional
        The bytes of memory that are free; by default what the system says.
    """
    needed = 4 * rows * width
    if needed <= LITTLE:
        return None
    free = read_available_memory() if free is None else free
    if free is None or 2 * needed <= free:  # rows are regrouped into a second one
        return None
    found = f"{_describe(rows, width)}, and twice that while it is read; {free / 1e9:.1f} GB of memory are free"
    return f"{found}. {_WAYS}"


def explain_growth(rows: int, width: int, size: int) -> str | None:
    """Return why a table is too large for its ``size`` bytes of text; None if it is not."""
    if 4 * rows * width <= max(_SMALL, _MAX_GROWTH * size):
        return None
    return (
        f"{_describe(rows, width)} from {size / 1e6:.1f} MB of text. Renumber the features, or say "
        f"n_features={width} in Python"
    )


def _describe(rows: int, width: int) -> str:
    """Return the size of a table as text."""
    return f"a table of {rows} documents x {width} features: {4 * rows * width / 1e9:.1f} GB"
