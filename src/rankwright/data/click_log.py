"""Click logs: impressions and clicks, counted by query, document and position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.html_tables import format_html_table
from rankwright.basics.optional_imports import require
from rankwright.data.click_cells import ClickCells, add_up_cells, sum_by
from rankwright.data.click_findings import ClickFinding
from rankwright.data.examination import Examination

if TYPE_CHECKING:
    from rankwright.data.click_grades import ClickGrades
    from rankwright.data.queries import Queries

_SHOWN = 10  # positions in the text


@dataclass(frozen=True, slots=True, eq=False)
class ClickTruth:
    """The true values behind simulated clicks.

    Parameters
    ----------
    model : str
        The click model.
    examination : Examination
        The probability that each position is looked at, relative to position 1.
    relevance : array of shape (n_pairs,)
        The probability of a click on each document of the log, once it is looked at.
    """

    model: str
    examination: Examination
    relevance: Floats


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClickLog:
    """The impressions and clicks of a log, counted by query, document, position and ranker; it has no sessions.

    Make one with :func:`rankwright.read_clicks` or :func:`rankwright.simulate_clicks`. A *pair* is a document that was
    shown for a query; a *cell* is a pair at a position, of a ranker. Queries, documents and cells are in the order of
    their ids and numbers, whatever the order of the rows was.

    Parameters
    ----------
    qid : array of shape (n_queries,)
        The query ids.
    indptr : array of shape (n_queries + 1,)
        Query ``i`` owns the pairs ``indptr[i]`` to ``indptr[i + 1]``.
    docid : array of shape (n_pairs,)
        The document id of each pair.
    cell_indptr : array of shape (n_pairs + 1,)
        Pair ``i`` owns the cells ``cell_indptr[i]`` to ``cell_indptr[i + 1]``.
    position, n_shown, n_clicked : array of shape (n_cells,)
        The position of each cell, from 1, its impressions and its clicks.
    n_lists : array of shape (n_queries,)
        The result lists that were shown for each query.
    ranker : array of shape (n_cells,), optional
        The number of the ranker that made the lists, a place in ``rankers``.
    rankers : tuple of str
        The names of the rankers, in order; empty if the log does not say.
    group : array of shape (n_cells,), optional
        The number of the group of positions whose documents were in random order, a place in ``groups``; -1 if none.
    groups : tuple of str
        The names of these groups, in order.
    findings : tuple of ClickFinding
        What is wrong with the log, what was done about it, and how many rows that concerns.
    truth : ClickTruth, optional
        The true values, if the clicks are simulated.
    """

    qid: NDArray[Any]
    indptr: Ints
    docid: NDArray[Any]
    cell_indptr: Ints
    position: Ints
    n_shown: Ints
    n_clicked: Ints
    n_lists: Ints
    ranker: Ints | None = None
    rankers: tuple[str, ...] = ()
    group: Ints | None = None
    groups: tuple[str, ...] = ()
    findings: tuple[ClickFinding, ...] = ()
    truth: ClickTruth | None = None

    def __len__(self) -> int:
        return len(self.qid)

    @property
    def n_pairs(self) -> int:
        """The number of documents by query."""
        return len(self.docid)

    @property
    def n_positions(self) -> int:
        """The largest position that was shown."""
        return int(self.position.max())

    @property
    def pair_query(self) -> Ints:
        """The number of the query of each pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def cell_pair(self) -> Ints:
        """The number of the pair of each cell."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.cell_indptr))

    def count_positions(self) -> tuple[Floats, Floats]:
        """Return the impressions and the clicks at positions 1, 2, ..."""
        size = self.n_positions
        shown = sum_by(self.position - 1, self.n_shown, size)
        return shown, sum_by(self.position - 1, self.n_clicked, size)

    def __repr__(self) -> str:
        numbers = [("query", "queries", len(self)), ("document", "documents", self.n_pairs)]
        numbers += [
            ("impression", "impressions", int(self.n_shown.sum())),
            ("click", "clicks", int(self.n_clicked.sum())),
        ]
        found = [("finding", "findings", len(self.findings))] if self.findings else []
        counts, more = ([f"{n:,} {one if n == 1 else many}" for one, many, n in each] for each in (numbers, found))
        return f"ClickLog({'; '.join([', '.join(counts), *more])})"

    def __str__(self) -> str:
        lines = [repr(self), "", f"{'position':>8}  {'shown':>12}  {'clicked':>10}  {'click rate':>10}"]
        shown, clicked = self.count_positions()
        for i in range(min(len(shown), _SHOWN)):
            rate = f"{clicked[i] / shown[i]:.4f}" if shown[i] else "-"
            lines.append(f"{i + 1:>8}  {shown[i]:>12,.0f}  {clicked[i]:>10,.0f}  {rate:>10}")
        if len(shown) > _SHOWN:
            lines.append(f"... {len(shown)} positions")
        return "\n".join([*lines, *([""] if self.findings else []), *map(str, self.findings)])

    def _repr_html_(self) -> str:
        shown, clicked = self.count_positions()
        with np.errstate(invalid="ignore"):
            rates = clicked / shown
        rows = [[i + 1, int(shown[i]), int(clicked[i]), float(rates[i])] for i in range(min(len(shown), _SHOWN))]
        header = ("position", "shown", "clicked", "click rate")
        table = format_html_table(repr(self), header, rows)
        if not self.findings:
            return table
        found: list[list[Any]] = [[each.kind, each.count, each.text, each.way_out] for each in self.findings]
        return table + "\n" + format_html_table("Findings", ("kind", "count", "what", "way out"), found)

    def to_pandas(self) -> Any:
        """Return a data frame with a row per cell: qid, docid, position, n_shown, n_clicked, ranker, shuffled."""
        query = self.qid[self.pair_query[self.cell_pair]]
        columns: dict[str, Any] = {"qid": query, "docid": self.docid[self.cell_pair]}
        columns |= {name: getattr(self, name) for name in ("position", "n_shown", "n_clicked")}
        if self.ranker is not None:
            columns["ranker"] = np.array(self.rankers, dtype=object)[self.ranker]
        if self.group is not None:
            columns["shuffled"] = np.array([*self.groups, None], dtype=object)[self.group]
        return require("pandas").DataFrame(columns)

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the findings as a dictionary that can be written as JSON."""
        shown, clicked = self.count_positions()
        return {
            "n_queries": len(self),
            "n_documents": self.n_pairs,
            "n_lists": int(self.n_lists.sum()),
            "n_shown": int(self.n_shown.sum()),
            "n_clicked": int(self.n_clicked.sum()),
            "rankers": list(self.rankers),
            "shown_by_position": shown.astype(int).tolist(),
            "clicked_by_position": clicked.astype(int).tolist(),
            "findings": [each.to_json() for each in self.findings],
        }

    def grade(self, kind: str = "coec", **options: Any) -> ClickGrades:
        """Compare the clicks of each document with those expected of it: see :func:`rankwright.grade_clicks`."""
        from rankwright.data.click_grades import grade_clicks  # it imports this module

        return grade_clicks(self, kind, **options)

    def to_queries(self, features: Any = None, **options: Any) -> Queries:
        """Return the documents with grades made of the clicks: see :func:`rankwright.make_click_queries`."""
        from rankwright.data.click_queries import make_click_queries  # it imports this module

        return make_click_queries(self, features, **options)


def make_click_log(
    cells: ClickCells,
    qid: NDArray[Any],
    docid: NDArray[Any],
    n_lists: Ints,
    *,
    rankers: Sequence[str] = (),
    groups: Sequence[str] = (),
    findings: Sequence[ClickFinding] = (),
) -> ClickLog:
    """Return the log of cells, in the order of ids.

    Parameters
    ----------
    cells : ClickCells
        The cells; ranker ``i`` is ``rankers[i]``, group ``i`` above 0 is ``groups[i - 1]``.
    qid, docid : array
        The id of each number of a query or a document in the cells; ids that no cell has are left out.
    n_lists : array of shape (len(qid),)
        The result lists of each query.
    rankers, groups : sequence of str
        The names of the rankers and groups.
    findings : sequence of ClickFinding
        The findings.
    """
    used, query = np.unique(cells.query, return_inverse=True)
    query_order = np.argsort(qid[used], kind="stable")
    queries = used[query_order]
    docs, doc = np.unique(cells.doc, return_inverse=True)
    doc_order = np.argsort(docid[docs], kind="stable")
    ranker_order = sorted(range(len(rankers)), key=rankers.__getitem__)
    group_order = [0, *sorted(range(1, len(groups) + 1), key=lambda i: groups[i - 1])]
    cells = cells._replace(query=_invert(query_order)[query], doc=_invert(doc_order)[doc])
    if rankers:
        cells = cells._replace(ranker=_invert(np.array(ranker_order))[cells.ranker])
    cells = add_up_cells(cells._replace(group=_invert(np.array(group_order))[cells.group]))
    is_new = np.ones(len(cells.query), bool)
    is_new[1:] = (cells.query[1:] != cells.query[:-1]) | (cells.doc[1:] != cells.doc[:-1])
    first = np.flatnonzero(is_new)
    sizes = np.bincount(cells.query[first], minlength=len(queries))
    return ClickLog(
        qid=qid[queries],
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        docid=docid[docs[doc_order]][cells.doc[first]],
        cell_indptr=np.append(first, len(cells.query)),
        position=cells.position,
        n_shown=cells.n_shown,
        n_clicked=cells.n_clicked,
        n_lists=n_lists[queries],
        ranker=cells.ranker if rankers else None,
        rankers=tuple(rankers[i] for i in ranker_order),
        group=cells.group - 1 if groups else None,
        groups=tuple(groups[i - 1] for i in group_order[1:]),
        findings=tuple(findings),
    )


def _invert(order: Ints) -> Ints:
    """Return the inverse of a permutation."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
