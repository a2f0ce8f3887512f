"""The result of a diagnosis, as numbers, a data frame and text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from rankwright.analysis.diagnosis.loss_bounds import UpperBoundValues, mean
from rankwright.analysis.diagnosis.single_weights import SingleWeightGains
from rankwright.analysis.diagnosis.training_facts import Certificate
from rankwright.analysis.diagnosis.verdicts import Verdict
from rankwright.basics.array_types import Floats
from rankwright.basics.optional_imports import require
from rankwright.measures import weighted_mean


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """A diagnosis: the measure of a ranking, the bounds on its loss, and what its training left to gain.

    Parameters
    ----------
    ranker : str
        The ranker that was diagnosed.
    measure, trained_measure : str
        The measure of interest, and the same with ties broken pessimistically, as bounds take it.
    qid, weight : arrays of shape (n_queries,)
        The queries and their weights.
    values : array of shape (n_queries,)
        The measure; NaN where it skips a query.
    E : array of shape (n_queries,)
        The measure divided by its highest value on the query, ties broken pessimistically. Queries on which every
        ranking is as good as any other have E = 1.
    live : array of shape (n_queries,)
        Which queries have rankings that are better than others.
    bounds : tuple of UpperBoundValues
        Every bound on 1 - E, and the one that the ranker minimises, which may be of another measure.
    left_out : mapping
        Bounds that could not be evaluated, and why.
    certificate : Certificate, optional
        How far from the least objective training ended at most, where the method can tell.
    weight_gains : SingleWeightGains, optional
        The gain from changing one weight alone; None if the scorer is not linear, or the search would take too long.
    seen : bool, optional
        Whether these seem to be the training queries: whether the ranker's measure is what training recorded.
    verdict : Verdict
        What should be changed first.
    """

    ranker: str
    measure: str
    trained_measure: str
    qid: NDArray[Any]
    weight: Floats
    values: Floats
    E: Floats
    live: NDArray[Any]
    bounds: tuple[UpperBoundValues, ...]
    left_out: Mapping[str, str]
    certificate: Certificate | None
    weight_gains: SingleWeightGains | None
    seen: bool | None
    verdict: Verdict

    @property
    def mean(self) -> float:
        """The mean measure."""
        return weighted_mean(self.values, self.weight)

    @property
    def loss(self) -> Floats:
        """The basic loss of each query, 1 - E."""
        return 1.0 - self.E

    @property
    def mean_loss(self) -> float:
        """The mean of the basic loss over all queries, as weighted."""
        return mean(self.loss, self.weight)

    @property
    def total_loss(self) -> float:
        """The weighted sum of the basic loss."""
        return float(self.loss @ self.weight)

    @property
    def own(self) -> UpperBoundValues | None:
        """The bound that the ranker minimises, if it minimises one."""
        return next((bound for bound in self.bounds if bound.own), None)

    def __getitem__(self, name: str) -> UpperBoundValues:
        for bound in self.bounds:
            if bound.name == name:
                return bound
        raise KeyError(f"no bound is called {name!r}; there are {', '.join(bound.name for bound in self.bounds)}")

    def __repr__(self) -> str:
        what = f"{self.ranker}: {self.measure}={self.mean:.4f}, loss={self.mean_loss:.4f}"
        return f"Diagnosis({what}; {len(self.qid)} queries; {self.verdict.problem})"

    def __str__(self) -> str:
        from rankwright.analysis.diagnosis.diagnosis_text import format_text

        return format_text(self)

    def to_pandas(self) -> Any:
        """Return a data frame with a row per query: measure, E, loss, and value, gap and exactness of every bound."""
        columns: dict[str, Any] = {"weight": self.weight, self.measure: self.values, "E": self.E, "loss": self.loss}
        for bound in self.bounds:
            name = bound.name if bound.measure == self.trained_measure else f"{bound.name} on {bound.measure}"
            columns |= {name: bound.values, f"{name}: gap": bound.gap, f"{name}: exact": bound.exact}
            if bound.least is not None:
                columns[f"{name}: best scale"] = bound.least.values
        frame = require("pandas").DataFrame(columns, index=self.qid)
        frame.index.name = "qid"
        return frame
