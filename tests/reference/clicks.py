"""Slow twins of what is made of click logs, from the definitions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.optimize import minimize


def coec(cells: list[tuple[str, str, int, int, int]], prior: float, theta: Any = None) -> dict[tuple[str, str], float]:
    """Clicks over expected clicks of cells (query, document, position, shown, clicked)."""
    value = {}
    total = sum(cell[4] for cell in cells)
    looked = sum(cell[3] * theta[cell[2] - 1] for cell in cells) if theta is not None else 0.0
    for query, doc in {cell[:2] for cell in cells}:
        clicks = expected = 0.0
        for cell in cells:
            if cell[:2] != (query, doc):
                continue
            clicks += cell[4]
            if theta is not None:
                expected += cell[3] * theta[cell[2] - 1] * total / looked
                continue
            same = [other for other in cells if other[2] == cell[2]]
            expected += cell[3] * sum(other[4] for other in same) / sum(other[3] for other in same)
        value[query, doc] = (clicks + prior) / (expected + prior)
    return value


def conditional_likelihood(cells: list[tuple[int, int, int, int]], log_theta: np.ndarray) -> float:
    """The log probability of the positions of clicks given their number, of cells (stratum, position, shown, clicked)."""
    value = 0.0
    for stratum in {cell[0] for cell in cells}:
        own = [cell for cell in cells if cell[0] == stratum]
        weight = sum(shown * np.exp(log_theta[position - 1]) for _, position, shown, _ in own)
        for _, position, shown, clicked in own:
            value += clicked * np.log(shown * np.exp(log_theta[position - 1]) / weight)
    return value


def maximise_conditional_likelihood(cells: list[tuple[int, int, int, int]], n: int) -> np.ndarray:
    """The examination of positions 1 to n, relative to position 1."""

    def loss(x: np.ndarray) -> Any:
        return -conditional_likelihood(cells, np.concatenate([[0.0], x]))

    found = minimize(loss, np.zeros(n - 1), method="BFGS", options={"gtol": 1e-7}).x
    return np.asarray(np.exp(np.concatenate([[0.0], found])))


def all_pairs(cells: list[tuple[int, int, int, int]], n: int) -> np.ndarray:
    """All-pairs intervention harvesting (Agarwal et al., 2019), of cells (document, position, shown, clicked).

    Each document that was shown at two positions counts once for them, with its click rates there.
    """
    by_doc: dict[int, dict[int, tuple[int, int]]] = {}
    for doc, position, shown, clicked in cells:
        old = by_doc.setdefault(doc, {}).get(position, (0, 0))
        by_doc[doc][position] = (old[0] + shown, old[1] + clicked)
    clicks, skips = np.zeros((n, n)), np.zeros((n, n))
    for counts in by_doc.values():
        for one, other in itertools.permutations(counts, 2):
            rate = counts[one][1] / counts[one][0]
            clicks[one - 1, other - 1] += rate
            skips[one - 1, other - 1] += 1.0 - rate
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if clicks[i, j] + skips[i, j] > 0]

    def loss(x: np.ndarray) -> Any:
        theta, relevance = 1 / (1 + np.exp(-x[:n])), 1 / (1 + np.exp(-x[n:]))
        value = 0.0
        for r, (i, j) in zip(relevance, pairs, strict=True):
            for a, b in ((i, j), (j, i)):
                chance = min(theta[a] * r, 1 - 1e-12)
                value -= clicks[a, b] * np.log(chance) + skips[a, b] * np.log1p(-chance)
        return value

    found = minimize(loss, np.zeros(n + len(pairs)), method="L-BFGS-B", options={"maxiter": 2_000}).x[:n]
    theta = 1 / (1 + np.exp(-found))
    return np.asarray(theta / theta[0])


def regression_em(cells: list[tuple[int, int, int, int]], n: int, n_docs: int, n_iter: int = 1_000) -> np.ndarray:
    """Regression-EM (Wang et al., 2018) with a relevance for each document, of cells (document, position, shown, clicked)."""
    doc, position, shown, clicked = np.array(cells).T
    place = position - 1
    theta, relevance = np.full(n, 0.5), np.full(n_docs, 0.5)
    for _ in range(n_iter):
        both = theta[place] * relevance[doc]
        examined = theta[place] * (1 - relevance[doc]) / (1 - both)  # given that there was no click
        relevant = relevance[doc] * (1 - theta[place]) / (1 - both)
        skipped = shown - clicked
        theta = np.bincount(place, clicked + skipped * examined, n) / np.bincount(place, shown, n)
        relevance = np.bincount(doc, clicked + skipped * relevant, n_docs) / np.bincount(doc, shown, n_docs).clip(1)
    return np.asarray(theta / theta[0])


def count_log(
    rows: list[dict[str, Any]], duplicates: str, clashes: str, max_clicks: int
) -> tuple[dict[Any, Any], dict[Any, Any], dict[str, int]]:
    """Impressions and clicks by (query, document, position), lists by query, and how many faults of each kind.

    Rows have session, query, docid, position and clicked, none of them missing.
    """
    faults = {"duplicates": 0, "two at one position": 0, "bots": 0}
    clicks: dict[Any, Any] = {}
    for row in rows:
        clicks[row["session"]] = clicks.get(row["session"], 0) + (row["clicked"] > 0)
    bots = {session for session, number in clicks.items() if number > max_clicks}
    faults["bots"] = len(bots)
    lists: dict[Any, Any] = {}
    for row in rows:
        if row["session"] not in bots:
            lists.setdefault((row["session"], row["query"]), []).append(row)
    cells: dict[Any, Any] = {}
    n_lists: dict[Any, Any] = {}
    for (_, query), shown in lists.items():
        by_doc: dict[Any, Any] = {}
        for row in shown:
            by_doc.setdefault(row["docid"], []).append(row)
        faults["duplicates"] += len(shown) - len(by_doc)
        if duplicates == "merge":
            shown = [
                {"docid": doc, "position": min(r["position"] for r in same), "clicked": max(r["clicked"] for r in same)}
                for doc, same in by_doc.items()
            ]
        if len({row["position"] for row in shown}) < len(shown):
            faults["two at one position"] += 1
            if clashes == "drop":
                continue
        n_lists[query] = n_lists.get(query, 0) + 1
        for row in shown:
            old = cells.get((query, row["docid"], row["position"]), (0, 0))
            cells[query, row["docid"], row["position"]] = (old[0] + 1, old[1] + (row["clicked"] > 0))
    return cells, n_lists, {kind: number for kind, number in faults.items() if number}
