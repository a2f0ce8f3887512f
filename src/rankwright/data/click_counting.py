"""Counting of click logs: records of sessions become cells, and what is wrong with them is counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError, suggest
from rankwright.data.click_cells import ClickCells, add_up_cells, join_cells
from rankwright.data.click_findings import ClickFinding
from rankwright.data.id_numbers import mix_bits

_MANY_CELLS = 1 << 20
_ONE_ROW = "Log each document that is shown in a row with its position and whether it was clicked"
_DOC, _POSITION = np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickRules:
    """The rules for faults of a click log.

    Parameters
    ----------
    duplicates : "merge", "keep" or "error"
        Rows of one document in one result list: counted once, counted as they are, or refused.
    clashes : "keep", "drop" or "error"
        Result lists with two documents at one position: counted as they are, left out, or refused.
    missing : "drop" or "error"
        Rows without a query, document, position, click or session: left out, or refused.
    max_clicks : int
        Sessions with more clicks are taken for robots and left out.
    min_impressions : int
        Queries with fewer impressions are named.
    """

    duplicates: str = "merge"
    clashes: str = "keep"
    missing: str = "drop"
    max_clicks: int = 1000
    min_impressions: int = 10

    def __post_init__(self) -> None:
        known = {"duplicates": ("merge", "keep", "error"), "clashes": ("keep", "drop", "error")}
        for name, values in {**known, "missing": ("drop", "error")}.items():
            if getattr(self, name) not in values:
                raise InputError(f"{name}={getattr(self, name)!r}; {suggest(str(getattr(self, name)), values)}")
        for name in ("max_clicks", "min_impressions"):
            if not isinstance(getattr(self, name), Integral) or getattr(self, name) < 0:
                raise InputError(f"{name}={getattr(self, name)!r}; expected a whole number of at least 0")


class ClickCounter:
    """The cells and the faults of a click log that is read part by part.

    Parameters
    ----------
    rules : ClickRules
        What is done about faults.
    """

    def __init__(self, rules: ClickRules) -> None:
        self.rules = rules
        self.n_rows = self.n_duplicates = self.n_clashes = self.n_bots = self.n_bot_rows = 0
        self.n_repeated_clicks = self.n_lost_clicks = self.n_records = self.n_without_ranker = 0
        self.n_missing: dict[str, int] = {}
        self._cells: list[ClickCells] = []
        self._n_lists: Ints = np.zeros(0, np.int64)

    def add_cells(self, cells: ClickCells) -> None:
        """Add cells; now and then those of equal keys are added up, so that memory is bounded by their number."""
        self._cells.append(add_up_cells(cells))
        if len(self._cells) > 1 and sum(len(part.query) for part in self._cells[1:]) > max(
            _MANY_CELLS, len(self._cells[0].query)
        ):
            self._cells = [join_cells(self._cells)]

    def join(self) -> ClickCells:
        """Return all cells; raise InputError if there is none, or if clicks say nothing."""
        if not self._cells or not sum(len(part.query) for part in self._cells):
            raise InputError("no impression is left; expected rows with a query, a document and a position")
        cells = join_cells(self._cells)
        self._cells = [cells]
        n_shown, n_clicked = int(cells.n_shown.sum()), int(cells.n_clicked.sum())
        if n_clicked == 0:
            lost = (
                f" {self.n_lost_clicks:,} clicks are on rows without a place. {_ONE_ROW}." if self.n_lost_clicks else ""
            )
            raise InputError(
                f"none of {n_shown:,} impressions is clicked; name the column of clicks with clicked=.{lost}"
            )
        if n_clicked == n_shown:
            raise InputError(
                f"all {n_shown:,} impressions are clicked; expected a row for each document that was shown, clicked or "
                f"not: a log of clicks alone does not say what was passed over{self._explain_empty_clicks()}"
            )
        return cells

    def _explain_empty_clicks(self) -> str:
        """Return what to do if rows were left out because they do not say whether they were clicked."""
        count = self.n_missing.get("click", 0)
        return f". {count:,} rows have no value of click: write 0 where that means not clicked" if count else ""

    def count_lists(self, cells: ClickCells, n_queries: int, *, has_sessions: bool) -> Ints:
        """Return the result lists of each query; without sessions the impressions at its most frequent position."""
        if has_sessions:
            return np.pad(self._n_lists, (0, max(0, n_queries - len(self._n_lists))))[:n_queries]
        width = int(cells.position.max()) + 1
        keys, at = np.unique(cells.query * width + cells.position, return_inverse=True)
        lists = np.zeros(n_queries, np.int64)
        np.maximum.at(lists, keys // width, np.bincount(at, cells.n_shown).astype(np.int64))
        return lists

    def count_parts(self, parts: Iterable[NDArray[Any]], bots: NDArray[np.uint64] | None = None) -> None:
        """Count the records of all parts; each part has all records of its sessions, or lists if ``bots`` are known."""
        for records in parts:
            self._count_part(records, bots)

    def _count_part(self, records: NDArray[Any], bots: NDArray[np.uint64] | None) -> None:
        """Count the records of one part."""
        records = self._drop_bots(records, bots)
        records = self._match_clicks(records)
        records = self._merge_duplicates(records)
        records = self._check_positions(records)
        if not len(records):
            return
        self.n_records += len(records)
        first = np.unique(records["list"], return_index=True)[1]
        counts = np.bincount(records["query"][first])
        if len(counts) > len(self._n_lists):
            self._n_lists = np.pad(self._n_lists, (0, len(counts) - len(self._n_lists)))
        self._n_lists[: len(counts)] += counts
        columns = {name: records[name].astype(np.int64) for name in ("query", "doc", "position", "ranker", "group")}
        n_shown, n_clicked = np.ones(len(records), np.int64), records["clicked"].astype(np.int64)
        self.add_cells(ClickCells(**columns, n_shown=n_shown, n_clicked=n_clicked))

    def _drop_bots(self, records: NDArray[Any], bots: NDArray[np.uint64] | None) -> NDArray[Any]:
        """Return the records of sessions without too many clicks."""
        clicks = records["session"][records["clicked"] > 0]
        if bots is None:
            sessions, n_clicks = np.unique(clicks, return_counts=True)
            bots = sessions[n_clicks > self.rules.max_clicks]
            self.n_bots += len(bots)
        if not len(bots):
            return records
        is_bot = np.isin(records["session"], bots)
        self.n_bot_rows += int(is_bot.sum())
        return records[~is_bot]

    def _match_clicks(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return the impressions, clicked where a click of another record is on them; count clicks on none of them."""
        is_click = records["query"] < 0
        if not is_click.any():
            return records
        shown = records[~is_click]
        clicks = np.unique(_hash_documents(records[is_click]))
        if not len(shown):
            self.n_lost_clicks += len(clicks)
            return shown
        documents = _hash_documents(shown)
        shown["clicked"] |= np.isin(documents, clicks)
        self.n_lost_clicks += int((~np.isin(clicks, documents)).sum())
        return shown

    def _merge_duplicates(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return the records, a document once in each list if that is asked for."""
        keys = _hash_documents(records)
        n_duplicates = len(keys) - len(np.unique(keys))
        self.n_duplicates += n_duplicates
        if not n_duplicates or self.rules.duplicates != "merge":
            return records
        order = np.lexsort((records["position"], keys))
        starts = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
        merged = records[order[starts]]
        merged["clicked"] = np.maximum.reduceat(records["clicked"][order], starts)
        return merged

    def _check_positions(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return the records without lists that have two documents at one position, if that is asked for."""
        keys = mix_bits(records["list"] ^ (records["position"].astype(np.uint64) * _POSITION))
        unique, first, counts = np.unique(keys, return_index=True, return_counts=True)
        if len(unique) == len(keys):
            return records
        lists = np.unique(records["list"][first[counts > 1]])
        self.n_clashes += len(lists)
        return records[~np.isin(records["list"], lists)] if self.rules.clashes == "drop" else records

    def list_findings(self, cells: ClickCells, n_lists: Ints, *, has_sessions: bool) -> list[ClickFinding]:
        """Return what is wrong with the log; raise InputError for what the rules refuse."""
        rules, found = self.rules, []
        for column, count in self.n_missing.items():
            text = f"{count:,} of {self.n_rows:,} rows have no {column} and are left out"
            if rules.missing == "error":
                raise InputError(f"{count:,} of {self.n_rows:,} rows have no {column}; drop them with missing='drop'")
            found.append(ClickFinding("missing values", count, text, "Refuse such logs with missing='error'"))
        if self.n_lost_clicks:
            text = (
                f"{self.n_lost_clicks:,} clicks are on documents that the log does not show, or on rows without a "
                "query, document or position, and are left out"
            )
            found.append(ClickFinding("clicks without impressions", self.n_lost_clicks, text, _ONE_ROW))
        if self.n_without_ranker:
            text = f"{self.n_without_ranker:,} of {self.n_rows:,} rows have no ranker, and count as those of one ranker"
            way_out = "Write the name of the ranker in each row, or leave ranker= out"
            found.append(ClickFinding("missing rankers", self.n_without_ranker, text, way_out))
        if self.n_duplicates:
            text = f"{self.n_duplicates:,} rows repeat a document of the same query and session"
            if rules.duplicates == "error":
                raise InputError(f"{text}; count them once with duplicates='merge', or as they are with 'keep'")
            done = "are counted once" if rules.duplicates == "merge" else "are counted as they are"
            way_out = "If they are other result lists, name the column of their time with time="
            found.append(ClickFinding("duplicates", self.n_duplicates, f"{text} and {done}", way_out))
        if self.n_clashes:
            text = f"{self.n_clashes:,} result lists have two documents at one position"
            if rules.clashes == "error":
                raise InputError(f"{text}; leave them out with clashes='drop', or keep them with clashes='keep'")
            done = "are left out" if rules.clashes == "drop" else "are counted as they are"
            way_out = "Leave them out with clashes='drop', or tell lists apart with time="
            found.append(ClickFinding("two at one position", self.n_clashes, f"{text} and {done}", way_out))
        if self.n_bots:
            text = f"{self.n_bots:,} sessions with more than {rules.max_clicks:,} clicks are left out"
            way_out = f"They have {self.n_bot_rows:,} rows; choose another limit with max_clicks="
            found.append(ClickFinding("bots", self.n_bots, text, way_out))
        if self.n_repeated_clicks:
            text = f"{self.n_repeated_clicks:,} rows have more than one click, which count as one"
            way_out = "Write 1 for an impression that was clicked"
            found.append(ClickFinding("several clicks", self.n_repeated_clicks, text, way_out))
        if has_sessions and self.n_records == n_lists.sum() and cells.position.max() > 1:
            text = "every result list has one document, although positions go down to " + str(cells.position.max())
            way_out = "Rows of one list need the same session= and time=; leave out a time that differs between them"
            found.append(ClickFinding("single documents", int(n_lists.sum()), text, way_out))
        shown = np.bincount(cells.query, cells.n_shown)
        n_few = int(((shown > 0) & (shown < rules.min_impressions)).sum())
        if n_few:
            n_queries = int((shown > 0).sum())
            text = f"{n_few:,} of {n_queries:,} queries have fewer than {rules.min_impressions} impressions"
            way_out = "Their grades are near the average; leave out documents with to_queries(min_shown=...)"
            found.append(ClickFinding("few impressions", n_few, text, way_out))
        return found


def _hash_documents(records: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of the list and the document of each record."""
    return mix_bits(records["list"] ^ (records["doc"].astype(np.uint64) * _DOC))
