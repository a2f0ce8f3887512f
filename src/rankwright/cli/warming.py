"""Compiling kernels ahead: short fits of rankers on small data of every kind that users have."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rankwright.analysis.evaluation import evaluate
from rankwright.basics import progress
from rankwright.basics.errors import InputError, collect_warnings
from rankwright.data.conversion import convert
from rankwright.data.letor import write_letor
from rankwright.data.queries import Queries
from rankwright.data.reading import read
from rankwright.data.synthetic import make_queries
from rankwright.models.model_files import load, save
from rankwright.rankers import Ranker
from rankwright.runtime.compilation import list_compiled_kernels

MEASURES = ("ndcg@10", "map", "err@10", "ndcg")  # of each kind that has kernels of its own

_SHORT = {"n_estimators": 3, "max_iter": 5, "n_restarts": 2, "n_folds": 2}
_NETWORK = {"n_epochs": 20}
_SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "BayesRank": [{"hidden": None, "k": 3}],
    "DirectRank": [{"selection": "greedy", "alpha": 0.1}],
    "FRank": [{"max_bins": None}],
    "LambdaMART": [{"polish_rounds": 1}],
    "PermuRank": [{"ranking_score": "ranks"}],
    "RankBoost": [{"max_bins": None, "pair_weighting": "query"}],
    "RankNet": [{"loss": "fidelity"}],
    "RankSVM": [{"loss": "squared_hinge"}],
    "SmoothRank": [{"kernel_map": "nystroem"}, {"approximation": "ranks"}],
}
_OF_LONG_QUERIES: Mapping[str, Mapping[str, Any]] = {
    "DirectRank": {"n_restarts": 1, "max_iter": 1},
    "FRank": {"n_estimators": 2},
}
_LONG = 2_000  # documents of a query, whose sums are made by other kernels


class WarmedRanker(NamedTuple):
    """The names of the kernels that were compiled for a ranker, or why it was left out."""

    ranker: str
    kernels: list[str]
    left_out: str | None = None


def warm_rankers(rankers: Sequence[type[Ranker]], measures: Sequence[str]) -> Iterator[WarmedRanker]:
    """Fit each ranker shortly on small data, so that its kernels are compiled and kept; yield what was compiled."""
    with tempfile.TemporaryDirectory() as folder, collect_warnings(), list_compiled_kernels() as compiled:
        sets = list(_make_sets(Path(folder)))
        for ranker in rankers:
            left_out = None
            try:
                with progress.mute():
                    for unfitted, train, valid in _list_fits(ranker, measures, sets):
                        with suppress(InputError):  # a setting that this measure cannot have
                            _use(unfitted, train, valid, Path(folder))
            except ImportError as error:
                left_out = str(error)
            yield WarmedRanker(ranker.__name__, compiled.copy(), left_out)
            compiled.clear()


def _list_fits(
    ranker: type[Ranker], measures: Sequence[str], sets: Sequence[tuple[Queries, Queries]]
) -> Iterator[tuple[Ranker, Queries, Queries]]:
    """Yield unfitted rankers with their data; one only of a blend, which is of rankers that have their own fits."""
    fits = ((each, *data) for measure in measures for data in sets for each in _shorten(ranker, measure))
    yield from islice(fits, 1 if ranker.pools_valid else None)
    if ranker.__name__ in _OF_LONG_QUERIES:
        long = make_queries(2, n_docs=_LONG, n_features=2, random_state=0)
        yield ranker(measure="ndcg", **_OF_LONG_QUERIES[ranker.__name__]), long, long


def _make_sets(folder: Path) -> Iterator[tuple[Queries, Queries]]:
    """Yield training and validation queries: from text, and mapped from files."""
    parts = [make_queries(12, n_docs=8, n_features=4, random_state=seed) for seed in (0, 1)]
    for name, part in zip(("train", "valid"), parts, strict=True):
        write_letor(part, folder / f"{name}.txt")
        convert(folder / f"{name}.txt", out=folder / f"{name}.rwq")
    for suffix in ("txt", "rwq"):
        train, valid = (read(folder / f"{name}.{suffix}") for name in ("train", "valid"))
        yield train, valid


def _shorten(ranker: type[Ranker], measure: str) -> Iterator[Ranker]:
    """Yield unfitted rankers that train for a few rounds, with settings that lead to other kernels."""
    known = ranker().get_params(deep=False)
    params: dict[str, Any] = {name: value for name, value in _SHORT.items() if name in known}
    if known.get("hidden"):
        params["training"] = _NETWORK
    if "budget_ms" in known:
        params["max_seconds"] = 1.0
    for setting in ({}, *_SETTINGS.get(ranker.__name__, ())):
        yield ranker(**{"measure": measure, **params, **setting})


def _use(ranker: Ranker, train: Queries, valid: Queries, folder: Path) -> None:
    """Fit a ranker, evaluate and save it, and score documents in the forms that they come in."""
    for given in (None, valid):
        ranker.fit(train, valid=given)
    evaluate(ranker, valid, [ranker.measure])
    save(ranker, folder / "model.json")
    model = load(folder / "model.json")
    model.predict(valid)
    if model.scaling is None:
        for n in (1, 64, valid.n_docs):  # few documents are scored by other kernels
            model.predict(valid.X[:n])
