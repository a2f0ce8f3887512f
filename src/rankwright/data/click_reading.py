"""Reading of click logs: tables of impressions, data frames, and events of User Behavior Insights."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.data.click_counting import ClickRules
from rankwright.data.click_log import ClickLog
from rankwright.data.click_tables import ClickTables
from rankwright.data.file_formats import LETOR, TABLE_FILES, recognise_format
from rankwright.data.frames import FrameTable
from rankwright.data.reading import find_files
from rankwright.data.table_files import TableFile
from rankwright.data.ubi_events import count_ubi_events

CLICK_ACTIONS = ("click", "item_click", "product_click")


def read_clicks(
    source: Any,
    *,
    query: str | None = None,
    docid: str | None = None,
    position: str | None = None,
    clicked: str | None = None,
    session: str | None = None,
    time: str | None = None,
    ranker: str | None = None,
    shuffled: str | None = None,
    first_position: int = 1,
    duplicates: str = "merge",
    clashes: str = "keep",
    missing: str = "drop",
    max_clicks: int = 1000,
    min_impressions: int = 10,
    ubi_queries: StrPath | Sequence[StrPath] | None = None,
    click_actions: Sequence[str] = CLICK_ACTIONS,
    impression_actions: Sequence[str] = (),
) -> ClickLog:
    """Read a log of impressions and clicks, and count them by query, document and position.

    The log is read in blocks and counted at once: memory is bounded by the number of different documents by query and
    position. With ``session`` rows go through temporary files if there are many, so that duplicates, bots and result
    lists are found wherever their rows are.

    Parameters
    ----------
    source : path, sequence of paths, or data frame
        A table with a row for each document that was shown: CSV, Parquet, Arrow or JSON lines; a name may be a
        pattern such as ``logs/*.parquet``, or a folder. Or, with ``ubi_queries``, the events of OpenSearch User
        Behavior Insights as JSON lines.
    query, docid, position, clicked : str, optional
        The columns of the query, the document, the position in the list, and whether the document was clicked; by
        default they are found by usual names.
    session : str, optional
        The column of the session. A result list is what one session saw for one query. Duplicates, bots and numbers of
        lists can be found with it only.
    time : str, optional
        The column of when the list was shown, the same in all its rows: a session may see a query's results twice.
    ranker : str, optional
        The column of the ranker, such as the arm of a test, that made the list.
    shuffled : str, optional
        The column of groups of positions that were put in random order: rows with the same value, such as ``"1,3"``,
        exchanged positions at random; it is empty where a position was not random.
    first_position : int
        The number of the first position, 0 or 1.
    duplicates, clashes, missing : str
        What is done about rows of one document in one list (``"merge"``, ``"keep"`` or ``"error"``), lists with two
        documents at one position (``"keep"``, ``"drop"`` or ``"error"``), and rows without a value (``"drop"`` or
        ``"error"``).
    max_clicks : int
        Sessions with more clicks are taken for robots and left out.
    min_impressions : int
        Queries with fewer impressions are named in a warning.
    ubi_queries : path or sequence of paths, optional
        The queries of User Behavior Insights as JSON lines: their results are the impressions.
    click_actions, impression_actions : sequence of str
        The names of events that are clicks, and of those that are impressions; without the latter the results of
        each query are its impressions.

    Returns
    -------
    ClickLog
        The counts; ``findings`` says what was wrong, each also in a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"query": ["tea"] * 4, "docid": ["a", "b"] * 2, "position": [1, 2] * 2})
    >>> read_clicks(frame.assign(clicked=[True, False, False, False]), min_impressions=0)
    ClickLog(1 query, 2 documents, 4 impressions, 1 click)
    """
    rules = ClickRules(
        duplicates=duplicates,
        clashes=clashes,
        missing=missing,
        max_clicks=max_clicks,
        min_impressions=min_impressions,
    )
    if first_position not in (0, 1):
        raise InputError(f"first_position={first_position!r}; expected 0 or 1")
    given = {"query": query, "docid": docid, "position": position, "clicked": clicked}
    given |= {"session": session, "time": time, "ranker": ranker, "shuffled": shuffled}
    if ubi_queries is not None:
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise InputError(f"{named[0]}= names a column of a table; events of User Behavior Insights have none")
        log = count_ubi_events(
            _list_paths(source), _list_paths(ubi_queries), rules, click_actions, impression_actions, first_position
        )
    else:
        if tuple(click_actions) != CLICK_ACTIONS or tuple(impression_actions):
            raise InputError("names of events have no effect without ubi_queries= (--ubi-queries)")
        log = ClickTables(_open_tables(source), given, rules, first_position).read()
    for finding in log.findings:
        finding.warn()
    return log


def _list_paths(source: Any) -> list[Any]:
    """Return the files that paths mean; raise InputError for what is no path."""
    paths = [source] if isinstance(source, str | PathLike) else source
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str | PathLike) for path in paths):
        raise InputError(f"found a {type(source).__name__}; expected names of files")
    files = [file for path in paths for file in find_files(path)]
    if not files:
        raise InputError("no file to read; expected at least one")
    return files


def _open_tables(source: Any) -> list[TableFile]:
    """Return the tables of files or of a data frame."""
    if not isinstance(source, str | PathLike | list | tuple):
        return [FrameTable(source)]
    tables = []
    for file in _list_paths(source):
        file.stat()  # or FileNotFoundError: a file that is not there has no format
        name = recognise_format(file)
        if name == LETOR:
            raise InputError(f"{file}: {LETOR}; expected a table of impressions: CSV, Parquet, Arrow or JSON lines")
        tables.append(TABLE_FILES[name](file))
    return tables
