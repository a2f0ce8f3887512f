"""Reading the results and the models of an experiment from its store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.analysis.results import Results, Table, add_key_columns, concatenate_tables
from rankwright.basics.errors import InputError, suggest
from rankwright.basics.files import StrPath
from rankwright.experiments.storage.contents import StoreContents, StoredFold, StoredResult
from rankwright.experiments.storage.schema import FILE, MODEL, QUERY_COLUMNS, TRIAL_COLUMNS, decode_table
from rankwright.experiments.storage.store_reader import StoreReader
from rankwright.models.model import Model
from rankwright.models.model_json import parse_model

_INTERNAL = ("trial", "task_checksum", "digest")


def read_results(folder: StrPath) -> Results:
    """Return the results in an experiment's folder so far; other processes may be adding to them.

    Parameters
    ----------
    folder : str or path
        The folder.
    """
    with StoreReader.open(Path(folder) / FILE) as store:
        found = store.read_contents()
    spec = found.meta.get("experiment")
    if spec is None:
        problem = "its description is lost: run it again" if found.trials else "the experiment has not begun"
        raise InputError(f"{folder}: {problem}")
    methods = tuple(entry["name"] for entry in spec["methods"])
    number = {name: i for i, name in enumerate(methods)}
    runs = {(method, seed) for method, seeds in found.meta["seeds"].items() for seed in seeds}
    chosen = {trial: each for trial, each in sorted(found.chosen.items()) if (each.method, each.seed) in runs}
    for each in chosen.values():
        if each.fold not in found.folds:
            raise InputError(f"{folder}: the queries of fold {each.fold} are lost; run the experiment again")
    folds = dict(sorted(found.folds.items()))
    queries, start = _make_queries_table(folds)
    tables: dict[str, Table] = {
        "queries": queries,
        "trials": _make_trials_table(found, number, runs, chosen),
        "values": _make_values_table(chosen, number, start, tuple(spec["measures"])),
    }
    documents, first = _make_documents_table(folds, start)
    if documents is not None:
        tables["documents"] = documents
    tables |= _join_tables(chosen, number, first)
    tables["data"] = _make_data_table(folds)
    if found.meta.get("runs"):
        tables["runs"] = _make_runs_table(found.meta["runs"])
    if spec["published"]:
        tables["published"] = _make_published_table(spec["published"])
    planned = (found.meta["n_folds"], found.meta["n_trials"])
    fixed = tuple(entry["name"] for entry in spec["methods"] if "digest" in entry)
    return Results(spec["name"], spec["measure"], tuple(spec["measures"]), methods, tables, planned, fixed)


def read_trial_model(folder: StrPath, method: str, fold: int = 1, seed: int | None = None) -> Model:
    """Return the model that was chosen for a method on a fold, to predict with or to save.

    Parameters
    ----------
    folder : str or path
        The folder of the experiment.
    method : str
        The name of the method.
    fold : int
        The number of the fold, from 1.
    seed : int, optional
        The seed, where the method ran with several.
    """
    with StoreReader.open(Path(folder) / FILE) as store:
        chosen = store.read_chosen_trials()
        known = list(dict.fromkeys(name for name, _, _ in chosen))
        if method not in known:
            raise InputError(f"{folder}: no model of {method!r}; {suggest(method, known)}")
        seeds = sorted(each for name, number, each in chosen if (name, number) == (method, fold))
        if not seeds or seed not in (None, *seeds):
            which = "" if seed is None else f" with seed {seed}"
            raise InputError(f"{folder}: no model of {method!r} on fold {fold}{which}")
        text = store.read_model(chosen[method, fold, seeds[0] if seed is None else seed])
    return parse_model(text.encode(), f"{folder}: {method}, fold {fold}")


def _make_queries_table(folds: dict[int, StoredFold]) -> tuple[Table, dict[int, int]]:
    """Return a table of the test queries of all folds, and the row at which each fold begins."""
    rows = [(fold, *row) for fold, content in folds.items() for row in content.queries]
    table = _make_columns(("fold", *QUERY_COLUMNS), rows)
    numbers, starts = np.unique(table["fold"], return_index=True)
    return table, dict(zip(numbers.tolist(), starts.tolist(), strict=True))


def _make_trials_table(
    found: StoreContents, number: dict[str, int], runs: set[tuple[str, int]], chosen: Iterable[int]
) -> Table:
    """Return the table of trials: a row for each trial in the store, and whether it was chosen."""
    rows = [row for row in found.trials.values() if (row["method"], row["seed"]) in runs]
    rows.sort(key=lambda row: (number[row["method"]], row["fold"], row["seed"], row["candidate"]))
    names = [name for name in TRIAL_COLUMNS if name not in _INTERNAL]
    table = _make_columns(names, [[row[name] for name in names] for row in rows])
    table["method"] = np.array([number[row["method"]] for row in rows], dtype=int)
    table["chosen"] = np.isin([row["trial"] for row in rows], list(chosen))
    return table


def _make_values_table(
    chosen: dict[int, StoredResult], number: dict[str, int], start: dict[int, int], measures: Sequence[str]
) -> Table:
    """Return a table with a row for each query of each chosen trial, and a column for each measure."""
    parts: list[dict[str, np.ndarray]] = []
    for each in chosen.values():
        n = len(each.values[measures[0]])
        part = {"method": np.full(n, number[each.method]), "seed": np.full(n, each.seed)}
        parts.append(part | {"query": start[each.fold] + np.arange(n)} | {name: each.values[name] for name in measures})
    return concatenate_tables(parts, ("method", "seed", "query", *measures))


def _make_documents_table(folds: dict[int, StoredFold], start: dict[int, int]) -> tuple[Table | None, dict[int, int]]:
    """Return a table of all folds' test documents, if they were kept, and the row at which each fold begins."""
    parts, first, n = [], {}, 0
    for fold, content in folds.items():
        if content.documents is None:
            return None, {}
        table = decode_table(content.documents)
        parts.append({**table, "query": table["query"] + start[fold]})
        first[fold] = n
        n += len(table["query"])
    return (concatenate_tables(parts, ("query", "docid", "grade")) if parts else None), first


def _make_data_table(folds: dict[int, StoredFold]) -> Table:
    """Return the table of facts on the parts of all folds, with the digest of each fold's data."""
    tables = [decode_table(content.data) for content in folds.values()]
    keys = [
        {"fold": np.full(len(table["part"]), fold), "digest": np.full(len(table["part"]), content.digest)}
        for table, (fold, content) in zip(tables, folds.items(), strict=True)
    ]
    return concatenate_tables([{**key, **table} for key, table in zip(keys, tables, strict=True)])


def _make_runs_table(runs: list[dict[str, str]]) -> Table:
    """Return the table of the runs of an experiment: date, command, versions and machine of each, empty if unknown."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: np.array([run.get(name, "") for run in runs], dtype=object) for name in names}


def _join_tables(chosen: dict[int, StoredResult], number: dict[str, int], first: dict[int, int]) -> dict[str, Table]:
    """Return the tables of the chosen trials by name; tables of one name are joined into one."""
    parts: dict[str, list[Table]] = {}
    for name in sorted({name for each in chosen.values() for name in each.artefacts if name != MODEL}):
        for each in chosen.values():
            text = each.artefacts.get(name, (0, None))[1]
            if text is None:
                continue
            table = decode_table(text)
            if "document" in table:
                if each.fold not in first:
                    continue
                table["document"] = table["document"] + first[each.fold]
            parts.setdefault(name, []).append(add_key_columns(table, number[each.method], each.fold, each.seed))
    return {name: concatenate_tables(tables) for name, tables in parts.items()}


def _make_published_table(entries: list[dict[str, Any]]) -> Table:
    """Return the table of published figures."""
    names = ("method", "measure", "value", "lowest", "source", "note")
    rows = [(*(entry.get(name) for name in names), json.dumps(entry.get("by_fold", []))) for entry in entries]
    return _make_columns((*names, "by_fold"), rows)


def _make_columns(names: Sequence[str], rows: list[Any]) -> dict[str, np.ndarray]:
    """Return rows of the database as a column for each name, with NaN for NULL."""
    table = {}
    for i, name in enumerate(names):
        values = [row[i] for row in rows]
        text = any(isinstance(value, str) for value in values)
        table[name] = np.array([np.nan if v is None else v for v in values], dtype=object if text else None)
    return table
