"""Checks of the scores that an engine returned against those of the model that it should have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.analysis.cause_search import FoundCause, find_cause, is_off
from rankwright.analysis.score_causes import CauseHypotheses
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath
from rankwright.basics.html_tables import NotebookText
from rankwright.data.engine_logs import Hits, read_scored_log
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.models.export.error_bounds import bound_errors
from rankwright.models.export.exporting import TARGETS, find_target
from rankwright.models.export.feature_names import read_names
from rankwright.models.export.parity import ParityFile, read_parity
from rankwright.models.imports import as_model
from rankwright.models.model import Model
from rankwright.models.model_json import compute_digest
from rankwright.scorers.score_parts import split_scorer

_SHOWN = 10  # rows that differ, in the text
_TRIED = 4_000  # rows that hypotheses are tried on
_FEW = 10  # scores, below which no cause may mean too little evidence


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCheck(NotebookText):
    """The comparison of an engine's scores with those of a model.

    Parameters
    ----------
    scores, expected, tolerances : array of shape (n_rows,)
        The engine's scores, the model's, and by how much they may differ.
    labels : list of str
        What each row is called: its query and document, or its number.
    digest : str
        The digest of the model.
    cause : FoundCause, optional
        The likely cause of the differences; None if there are no differences, or none was found.
    notes : list of str
        Sentences about how the rows were taken.
    """

    scores: Floats
    expected: Floats
    tolerances: Floats
    labels: list[str]
    digest: str
    cause: FoundCause | None = None
    notes: Sequence[str] = ()

    @property
    def rows(self) -> Ints:
        """The rows that differ, counted from 0, the largest difference first."""
        found = np.flatnonzero(is_off(self.scores - self.expected, self.tolerances))
        order: Ints = found[np.argsort(-np.abs((self.scores - self.expected)[found]), kind="stable")]
        return order

    @property
    def is_shifted(self) -> bool:
        """Whether a constant that is added to all scores is the only difference."""
        return self.cause is not None and self.cause.kind == "shift" and self.cause.n_explained == self.cause.n_tried

    @property
    def is_equal(self) -> bool:
        """Whether all scores are equal within the precision of the engine."""
        return not len(self.rows)

    def _suggest_cause(self) -> str:
        """Return what may be the cause of differences that no hypothesis explains."""
        n, n_off = len(self.scores), len(self.rows)
        if n < _FEW:
            return f"a log of {n} is too small to tell; log more documents"
        if n_off < n / 2:
            return "most scores are equal. Perhaps these documents, or their features, changed after they were scored"
        return (
            "missing values, thresholds, shift, scale and the order of features do not explain the differences. "
            f"Perhaps the engine has another version of the model (digest {self.digest}): pass others to try as "
            "candidates (--candidate)"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values: counts, the cause, and every row that differs."""
        return {
            "documents": len(self.scores),
            "different": len(self.rows),
            "largest_difference": float(np.abs(self.scores - self.expected).max(initial=0.0)),
            "cause": None if self.cause is None else self.cause._asdict(),
            "model_digest": self.digest,
            "notes": list(self.notes),
            "rows": [
                {"document": self.labels[row], "engine": self.scores[row], "model": self.expected[row]}
                for row in self.rows.tolist()
            ],
        }

    def __str__(self) -> str:
        n, rows = len(self.scores), self.rows
        off = float(np.abs(self.scores - self.expected).max(initial=0.0))
        lines = [*self.notes]
        if self.is_equal:
            most = float(self.tolerances.max(initial=0.0))
            lines.append(f"{n} scores are equal: the largest difference is {off:.3g}, and up to {most:.3g} is rounding")
            return "\n".join(lines)
        lines.append(f"{len(rows)} of {n} scores differ, by {off:.6g} at most")
        if self.cause is not None:
            explained = f"this explains {self.cause.n_explained} of {self.cause.n_tried} differences"
            lines += [f"likely cause: {self.cause.sentence}; {explained}", f"way out: {self.cause.way_out}"]
        else:
            lines.append(f"no cause was found: {self._suggest_cause()}")
        lines.append(f"{'engine':>15} {'model':>15} {'difference':>12}  document")
        for row in rows[:_SHOWN].tolist():
            engine, model = float(self.scores[row]), float(self.expected[row])
            lines.append(f"{engine:>15.8g} {model:>15.8g} {engine - model:>12.3g}  {self.labels[row]}")
        if len(rows) > _SHOWN:
            lines.append(f"and {len(rows) - _SHOWN} more")
        return "\n".join(lines)


def check_scores(
    fitted: Any,
    hits: Hits,
    *,
    engine: str | None = None,
    names: Mapping[str, str] | StrPath | None = None,
    parity: StrPath | ParityFile | None = None,
    candidates: Mapping[str, Any] | None = None,
    **options: Any,
) -> ScoreCheck:
    """Compare the scores that a search engine returned with a model's scores of the features that it logged.

    Parameters
    ----------
    fitted : Ranker, Model, or a model of another library
        The model that the engine should have.
    hits : path, sequence of paths, or mapping of query id to response
        Search responses with logged features and scores, as ``read_log`` takes them. The score of a hit must be the
        model's alone: search with the model as the query, or rescore with a query weight of 0.
    engine : "elasticsearch", "opensearch", "solr" or "vespa", optional
        Whose format the responses have; recognised by the first one if not given.
    names : mapping, str or Path, optional
        The names of features in the engine, by their names in the model, or the CSV file that ``export`` took.
    parity : str, Path or ParityFile, optional
        The parity file of the export, in place of names: it knows the names of features in the engine, and the
        constant by which its scores differ from the model's.
    candidates : mapping of str to fitted model, optional
        Other models that the engine may have, by name.
    **options
        ``score``, the field of a hit with its score, and ``qid``, ``docid``, ``log`` and ``separators`` of
        ``read_log``.

    Returns
    -------
    ScoreCheck
        The rows that differ, and the likely cause.

    Examples
    --------
    >>> from rankwright.scorers import Linear
    >>> model = Model("Regression", {}, "ndcg@10", Linear(np.array([2.0]), 1.0), 1, ("title",))
    >>> hits = [{"_id": str(i), "_score": 2.0 * i, "fields": {"_ltrlog": [{"main": [{"name": "title", "value": i}]}]}}
    ...         for i in range(5)]
    >>> check_scores(model, {"rambo": {"hits": {"hits": hits}}}).cause.sentence
    "a constant, -1, is added to all scores: the model's intercept is left out"
    """
    model = as_model(fitted)
    known = list(name_features(model.features, model.n_features))
    exported = None if parity is None else _open_parity(parity, model)
    if exported is not None and names is not None:
        raise InputError("names with a parity file; expected one of them: the file has the names")
    given = names if names is None or isinstance(names, Mapping) else read_names(names, known)
    mapped = [(given or {}).get(name, name) for name in known] if exported is None else list(exported.names)
    features = None if model.features is None and names is None and exported is None else mapped
    queries, scores = read_scored_log(hits, engine=engine, features=features, **options)
    if queries.n_features != model.n_features:
        raise InputError(
            f"the log has {queries.n_features} features; the model was trained on {model.n_features}, without names. "
            "Name them with names= (--names)"
        )
    assert queries.docid is not None  # a hit has one
    labels = [f"{doc} of {qid}" for qid, doc in zip(queries.row_qid.tolist(), queries.docid.tolist(), strict=True)]
    return _check_rows(model, queries, scores, labels, candidates, exported)


def check_parity(
    fitted: Any, parity: StrPath | ParityFile, scores: Floats, *, candidates: Mapping[str, Any] | None = None
) -> ScoreCheck:
    """Compare the scores that a target returned for the rows of a parity file with those that it must return.

    Parameters
    ----------
    fitted : Ranker, Model, or a model of another library
        The model that was exported.
    parity : str, Path or ParityFile
        The parity file.
    scores : array of shape (n_rows,)
        The scores that the target returned, in the order of the rows.
    candidates : mapping of str to fitted model, optional
        Other models that the target may have, by name.
    """
    model = as_model(fitted)
    found = _open_parity(parity, model)
    try:
        scores = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"scores={quote(scores)}; expected a number for each row") from None
    scores = scores[:, 0] if scores.shape[1:] == (1,) else scores  # as onnxruntime returns them
    if scores.shape != found.scores.shape:
        found_scores = f"{len(scores)} scores" if scores.ndim == 1 else f"scores of shape {scores.shape}"
        raise InputError(f"{found_scores}; the parity file has {len(found.scores)} rows, and a score for each")
    labels = [f"row {row}" for row in range(1, len(scores) + 1)]
    rows = Queries.from_arrays(found.X, None, group=[len(scores)]).replace(features=found.names)
    return _check_rows(model, rows, scores, labels, candidates, found, found.tolerances)


def _open_parity(parity: StrPath | ParityFile, model: Model) -> ParityFile:
    """Return a parity file; raise InputError if it is not of this model."""
    found = parity if isinstance(parity, ParityFile) else read_parity(parity)
    if found.digest != compute_digest(model):
        raise InputError(
            f"the parity file is of another model: its digest is {found.digest}, and the model's is "
            f"{compute_digest(model)}; expected the file that was written beside this model's export"
        )
    return found


def _check_rows(
    model: Model,
    queries: Queries,
    scores: Floats,
    labels: list[str],
    candidates: Mapping[str, Any] | None,
    parity: ParityFile | None,
    tolerances: Floats | None = None,
) -> ScoreCheck:
    """Compare scores of rows; tolerances are those of float32 if none are given."""
    notes = []
    names = name_features(queries.features, queries.n_features)
    own = queries.replace(features=None)
    has_zeros = parity is not None and parity.target in TARGETS and find_target(parity.target).missing == "zero"
    if np.isnan(own.X).any() and (has_zeros or not model.scorer.allow_nan):
        reason = "the target has no others" if has_zeros else f"the {model.ranker} model has no other rule for them"
        notes.append(f"missing values are taken as 0: {reason}")
        own = own.with_X(np.nan_to_num(own.X))
    X = own.X if model.scaling is None else model.scaling(own).X
    parts = split_scorer(model.scorer, model.n_features)
    offset = 0.0 if parity is None else parity.offset
    expected = model.scorer(X) + offset
    allowed = bound_errors(parts, X, "float32", offset) if tolerances is None else tolerances
    rows, cause = np.flatnonzero(is_off(scores - expected, allowed)), None
    if len(rows):
        kept = _sample_rows(rows, len(scores))
        tried = np.flatnonzero(np.isin(kept, rows))
        hypotheses = CauseHypotheses(model, parts, X[kept], names, scores[kept] - offset, tried)
        others = {name: as_model(other) for name, other in (candidates or {}).items()}
        cause = find_cause(hypotheses, expected[kept] - offset, allowed[kept], others, own.row_qid[kept])
    return ScoreCheck(scores, expected, allowed, labels, compute_digest(model), cause, notes)


def _sample_rows(rows: Ints, n: int) -> Ints:
    """Return at most ``_TRIED`` of n rows, in their order: those that differ, and as many others, evenly spaced."""
    others = np.setdiff1d(np.arange(n), rows)
    parts = [part[np.linspace(0, len(part) - 1, min(len(part), _TRIED // 2)).astype(int)] for part in (rows, others)]
    return np.sort(np.concatenate(parts))
