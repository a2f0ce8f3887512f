"""Reading the results of an experiment from its store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.errors import InputError, suggest
from rankwright.experiments.store import Store, decode
from rankwright.files import StrPath
from rankwright.models import Model, from_text
from rankwright.results import Results, Table, joined, keyed

_TRIALS = (
    *("trial", "method", "fold", "seed", "candidate", "params", "status", "valid", "seconds", "predict_seconds"),
    *("memory_start", "memory_peak", "error"),
)


def read_results(folder: StrPath) -> Results:
    """The results in an experiment's folder, as far as it has come; other processes may be adding to them."""
    with Store.reading(Path(folder)) as store:
        said = store.meta("experiment")
        if said is None:
            raise InputError(f"{folder}: the experiment has not begun")
        methods = tuple(entry["name"] for entry in said["methods"])
        number = {name: i for i, name in enumerate(methods)}
        runs = {(method, seed) for method, seeds in store.meta("seeds").items() for seed in seeds}
        chosen = {
            trial: (number[method], fold, seed)
            for method, fold, seed, trial in store.rows("SELECT method, fold, seed, trial FROM chosen ORDER BY trial")
            if (method, seed) in runs
        }
        queries, start = _queries(store)
        tables: dict[str, Table] = {
            "queries": queries,
            "trials": _trials(store, number, runs, chosen),
            "values": _values(store, chosen, start, tuple(said["measures"])),
        }
        documents, first = _documents(store, start)
        if documents is not None:
            tables["documents"] = documents
        tables |= _artefacts(store, chosen, first)
        if said["published"]:
            tables["published"] = _published(said["published"])
        planned = (store.meta("n_folds"), store.meta("n_trials"))
    return Results(said["name"], said["measure"], tuple(said["measures"]), methods, tables, planned)


def read_model(folder: StrPath, method: str, fold: int = 1, seed: int | None = None) -> Model:
    """The model that was chosen for a method on a fold, to predict with or to save."""
    with Store.reading(Path(folder)) as store:
        known = [row[0] for row in store.rows("SELECT DISTINCT method FROM chosen ORDER BY trial")]
        if method not in known:
            raise InputError(f"{folder}: no model of {method!r}; {suggest(method, known)}")
        rows = store.rows("SELECT seed, model FROM chosen WHERE method = ? AND fold = ? ORDER BY seed", (method, fold))
    for found, text in rows:
        if seed is None or seed == found:
            return from_text(text.encode(), f"{folder}: {method}, fold {fold}")
    raise InputError(f"{folder}: no model of {method!r} on fold {fold}{'' if seed is None else f' with seed {seed}'}")


def _queries(store: Store) -> tuple[Table, dict[int, int]]:
    """The test queries of all folds, and where each fold begins."""
    rows = store.rows("SELECT fold, qid, n_docs, n_pairs, weight FROM queries ORDER BY fold, query")
    table = _columns(("fold", "qid", "n_docs", "n_pairs", "weight"), rows)
    folds, starts = np.unique(table["fold"], return_index=True)
    return table, dict(zip(folds.tolist(), starts.tolist(), strict=True))


def _trials(store: Store, number: dict[str, int], runs: set[tuple[str, int]], chosen: dict[int, Any]) -> Table:
    rows = store.rows(f"SELECT {', '.join(_TRIALS)} FROM trials ORDER BY fold, method, seed, candidate")
    table = _columns(_TRIALS, [row for row in rows if (row[1], row[3]) in runs])
    ids = table.pop("trial")
    table["method"] = np.array([number[name] for name in table["method"]], dtype=int)
    table["chosen"] = np.isin(ids, list(chosen))
    order = np.lexsort((table["candidate"], table["seed"], table["fold"], table["method"]))
    return {name: column[order] for name, column in table.items()}


def _values(store: Store, chosen: dict[int, Any], start: dict[int, int], measures: Sequence[str]) -> Table:
    """A row for each query of each chosen trial, a column for each measure."""
    found: dict[int, dict[str, list[Any]]] = {trial: {} for trial in chosen}
    for trial, measure, value in store.rows(
        "SELECT trial, measure, value FROM per_query ORDER BY trial, measure, query"
    ):
        if trial in found:
            found[trial].setdefault(measure, []).append(np.nan if value is None else value)
    parts: list[dict[str, np.ndarray]] = []
    for trial, (method, fold, seed) in chosen.items():
        n = len(found[trial][measures[0]])
        part = {"method": np.full(n, method), "seed": np.full(n, seed), "query": start[fold] + np.arange(n)}
        parts.append(part | {name: np.array(found[trial][name], dtype=float) for name in measures})
    return joined(parts, ("method", "seed", "query", *measures))


def _documents(store: Store, start: dict[int, int]) -> tuple[Table | None, dict[int, int]]:
    """The test documents of all folds, if they were kept, and where each fold begins."""
    parts, first, n = [], {}, 0
    for fold, content in store.rows("SELECT fold, documents FROM folds ORDER BY fold"):
        if content is None:
            return None, {}
        table = decode(content)
        parts.append({**table, "query": table["query"] + start[fold]})
        first[fold] = n
        n += len(table["query"])
    return (joined(parts, ("query", "docid", "grade")) if parts else None), first


def _artefacts(store: Store, chosen: dict[int, Any], first: dict[int, int]) -> dict[str, Table]:
    """The artefacts of the chosen trials, joined by name."""
    parts: dict[str, list[Table]] = {}
    for trial, name, content in store.rows("SELECT trial, name, content FROM artefacts ORDER BY name, trial"):
        if trial not in chosen:
            continue
        method, fold, seed = chosen[trial]
        table = decode(content)
        if "document" in table:
            if fold not in first:
                continue
            table["document"] = table["document"] + first[fold]
        parts.setdefault(name, []).append(keyed(table, method, fold, seed))
    return {name: joined(tables) for name, tables in parts.items()}


def _published(entries: list[dict[str, Any]]) -> Table:
    names = ("method", "measure", "value", "lowest", "source", "note")
    rows = [(*(entry.get(name) for name in names), json.dumps(entry.get("by_fold", []))) for entry in entries]
    return _columns((*names, "by_fold"), rows)


def _columns(names: Sequence[str], rows: list[Any]) -> dict[str, np.ndarray]:
    """Columns from rows; NULL becomes NaN."""
    table = {}
    for i, name in enumerate(names):
        values = [row[i] for row in rows]
        text = any(isinstance(value, str) for value in values)
        table[name] = np.array([np.nan if v is None else v for v in values], dtype=object if text else None)
    return table
