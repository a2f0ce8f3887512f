"""The result of tuning the weights of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.significance import compare
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.basics.html_tables import NotebookText
from rankwright.data.run_fusion import RRF_K, Source, fuse, name_runs, open_runs, write_fused
from rankwright.data.trec import Table
from rankwright.measures import weighted_mean

RRF, EQUAL, TUNED = f"RRF (k = {RRF_K})", "equal weights", "tuned weights"
ROWS = (RRF, EQUAL, TUNED)


@dataclass(frozen=True, slots=True)
class FusionGain:
    """The gain of tuned weights over another ranking of the same queries, paired by query.

    Parameters
    ----------
    over : str
        The name of a run, of RRF or of equal weights.
    value : float
        The mean measure of that ranking.
    difference : float
        The mean measure of the tuned weights, less ``value``.
    low, high : float
        The 95% bootstrap interval of the difference.
    p : float
        The p-value of Fisher's randomisation test, two-sided, with Holm's adjustment over all gains of a result.
    wins, ties, losses : int
        The number of queries where the tuned weights are better, equal, worse.
    """

    over: str
    value: float
    difference: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class FusionCounts:
    """The numbers of queries and documents that the weights were fitted to, and of those left out.

    Parameters
    ----------
    queries : int
        Judged queries that a run answers.
    unanswered : int
        Judged queries that no run answers, left out.
    unjudged : int
        Queries of the runs without a judgment, left out.
    silent : dict of str to int
        For each run, the number of queries that it does not answer and another run does; its value there is 0.
    documents : int
        Documents that a run found.
    documents_unjudged : int
        Found documents without a judgment, which have grade 0.
    relevant : int
        Judged documents with a grade above 0.
    relevant_missed : int
        Relevant documents that no run found: no weights can rank them.
    """

    queries: int
    unanswered: int
    unjudged: int
    silent: dict[str, int]
    documents: int
    documents_unjudged: int
    relevant: int
    relevant_missed: int


@dataclass(frozen=True, slots=True, eq=False)
class FusionResult(NotebookText):
    """The result of ``tune_fusion``: the best weights of runs, their gains over other rankings, and counts.

    Parameters
    ----------
    measure : str
        The full name of the measure that was maximised.
    normalise : str
        How scores were normalised.
    weights : dict of str to float
        The weight of each run, fitted to all queries; their magnitudes add up to 1.
    fold_weights : list of dict
        The weights fitted without each fold; empty without cross-validation.
    train : float
        The mean measure of ``weights`` on the queries that they were fitted to.
    per_query : dict of str to array
        The measure of each query of ``qid`` by ranking: each run, RRF, equal weights, and the tuned weights (for each
        query those fitted without it, if there are folds).
    qid : array of str
        The ids of the queries.
    gains : list of FusionGain
        The gains over each run, over RRF and over equal weights: on held-out queries, if there are folds.
    judged_at : int
        The k of ``judged``.
    judged : dict of str to float
        The mean share of judged documents among the first k of each ranking.
    counts : FusionCounts
        The numbers of queries and documents.
    digits : int
        How many decimals of the weights are needed to reach ``train``; at least 4.
    runs : dict
        The runs, by name.
    """

    measure: str
    normalise: str
    weights: dict[str, float]
    fold_weights: list[dict[str, float]]
    train: float
    per_query: dict[str, Floats] = field(repr=False)
    qid: NDArray[Any] = field(repr=False)
    gains: list[FusionGain]
    judged_at: int
    judged: dict[str, float]
    counts: FusionCounts
    digits: int
    runs: dict[str, Table] = field(repr=False)

    @property
    def held_out(self) -> float:
        """The mean measure on queries that the weights were not fitted to; NaN without folds."""
        return self.tuned if self.fold_weights else float("nan")

    @property
    def tuned(self) -> float:
        """The mean measure of the tuned weights on held-out queries, or without folds on all queries."""
        return _compute_mean(self.per_query[TUNED])

    def fuse(
        self, runs: Mapping[str, Source] | Sequence[Source] | None = None, depth: int | None = None
    ) -> dict[str, dict[str, float]]:
        """Return the fused scores of runs by query and document, best first; no judgments are needed.

        Parameters
        ----------
        runs : mapping of name to run, or sequence of runs, optional
            By default the runs that the weights were fitted to, with all their queries, judged or not. The runs of a
            sequence are matched by name with ``weights``, or else by their order.
        depth : int, optional
            The number of documents of each query to keep; by default all.
        """
        return dict(fuse(self._read_runs(runs), self._vector, self.normalise, _check_depth(depth)))

    def write_run(
        self,
        path: StrPath,
        runs: Mapping[str, Source] | Sequence[Source] | None = None,
        *,
        depth: int | None = 1000,
        tag: str = "rankwright",
    ) -> None:
        """Fuse runs with these weights as ``fuse`` does, and write a TREC run."""
        write_fused(fuse(self._read_runs(runs), self._vector, self.normalise, _check_depth(depth)), path, tag)

    @property
    def _vector(self) -> Floats:
        return np.array(list(self.weights.values()))

    def _read_runs(self, runs: Mapping[str, Source] | Sequence[Source] | None) -> list[Table]:
        """Return runs in the order of the weights."""
        if runs is None:
            return list(self.runs.values())
        named = name_runs(runs)
        known = named.keys() == self.weights.keys()
        if not isinstance(runs, Mapping) and not known and len(named) == len(self.weights):
            return list(open_runs(named).values())
        if not known:
            raise InputError(f"runs {', '.join(named) or 'none'}; expected {', '.join(self.weights)}")
        tables = open_runs(named)
        return [tables[name] for name in self.weights]

    def to_json(self) -> dict[str, Any]:
        """Return everything except the runs and the values by query, as JSON can hold it."""
        return {
            "measure": self.measure,
            "normalise": self.normalise,
            "weights": self.weights,
            "fold_weights": self.fold_weights,
            "train": self.train,
            "held_out": self.held_out if self.fold_weights else None,
            "gains": [{name: _nan_to_none(value) for name, value in asdict(gain).items()} for gain in self.gains],
            "judged_at": self.judged_at,
            "judged": self.judged,
            "counts": asdict(self.counts),
        }

    def __str__(self) -> str:
        """Return the weights, their gains as a table, and counts of judgments."""
        from rankwright.tuning.tuning_text import format_text

        return format_text(self)


def compute_gains(per_query: Mapping[str, Floats]) -> list[FusionGain]:
    """Return the gains of the tuned weights over each other ranking, from the measure of every query."""
    gains = []
    for found in compare(per_query, baseline=TUNED):
        other, gain = found.second, found.swap_methods()
        p = gain.adjusted.randomisation
        value, counts = _compute_mean(per_query[other]), (gain.wins, gain.ties, gain.losses)
        difference, low, high = (each + 0.0 for each in (gain.difference, gain.low, gain.high))  # no minus zero
        gains.append(FusionGain(other, value, difference, low, high, p, *counts))
    return gains


def _compute_mean(values: Floats) -> float:
    return weighted_mean(values, np.ones(len(values)))


def _nan_to_none(value: Any) -> Any:
    return None if value != value else value  # only NaN differs from itself


def _check_depth(depth: int | None) -> int | None:
    """Return the number of documents to keep per query; raise InputError if it is below 1."""
    if depth is not None and depth < 1:
        raise InputError(f"depth={depth}; expected at least 1")
    return depth
