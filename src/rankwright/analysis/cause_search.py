"""The search for the cause of differences between an engine's scores and a model's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.score_causes import Cause, CauseHypotheses
from rankwright.basics.array_types import Floats, Ints
from rankwright.models.model import Model

_LEAST_SHARE = 0.5  # of the rows that differ, which a cause must explain to be named
_ROOM = 4.0  # by which tolerances are multiplied: rows of a hypothesis are other rows than those of the model
_WAYS_OUT = {
    "shift": "nothing, for a ranking: a constant does not change it (--allow-shift on the command line accepts it)",
    "scale": "rescore with a query weight of 0 and a rescore weight of 1; alone, a factor above 0 changes no ranking",
}


class FoundCause(NamedTuple):
    """The likely cause of differences: a sentence, how many it explains of those it was tried on, and what to do."""

    kind: str
    sentence: str
    n_explained: int
    n_tried: int
    way_out: str


def is_off(differences: Floats, tolerances: Floats) -> Any:
    """Return which differences are above the tolerances, or NaN."""
    return ~(np.abs(differences) <= tolerances)


def find_cause(
    search: CauseHypotheses, expected: Floats, tolerances: Floats, candidates: Mapping[str, Model], row_qid: Any
) -> FoundCause | None:
    """Return the cause that explains all scores, the simplest first; else the one that explains most differences.

    Each hypothesis is tried as it is, then with a constant added to its scores, then with a factor as well.
    """
    tolerances, n = _ROOM * tolerances, len(search.rows)
    if not is_off(search.scores - expected, tolerances).any():
        way_out = "nothing, where scores tie no documents; a format of double precision, such as onnx or c, rounds less"
        return FoundCause("rounding", "the engine rounds a little more than its precision allows for", n, n, way_out)
    causes = [Cause("none", "", expected, ""), *search.list_causes(candidates)]
    best: FoundCause | None = None
    changes: list[Callable[..., tuple[Floats, str, str]]] = [_keep_scores, _add_constant, _scale_scores]
    for change in changes:
        for cause in causes:
            predicted, kind, sentence = change(cause.scores, search.scores, tolerances, search.parts.intercept)
            is_explained = ~is_off(search.scores - predicted, tolerances)
            n_explained = int(is_explained[search.rows].sum())
            said = ", and ".join(text for text in (cause.sentence, sentence) if text)
            found = FoundCause(kind, said, n_explained, n, _WAYS_OUT.get(kind, ""))
            if cause.kind != "none":
                found = FoundCause(cause.kind, said, n_explained, n, cause.way_out)
            if is_explained.all():
                return found
            if change is _keep_scores and n_explained > (0 if best is None else best.n_explained):
                best = found
    if _is_window(search.rows, row_qid):
        sentence = "the last documents of each query have other scores, as those outside of a rescoring window do"
        way_out = "make the window (window_size, reRankDocs) at least as large as the number of hits"
        return FoundCause("window", sentence, n, n, way_out)
    return best if best is not None and best.n_explained >= _LEAST_SHARE * n else None


def _keep_scores(scores: Floats, wanted: Floats, tolerances: Floats, intercept: float) -> tuple[Floats, str, str]:
    """Return scores as they are, without a kind of change and a sentence about it."""
    return scores, "", ""


def _add_constant(scores: Floats, wanted: Floats, tolerances: Floats, intercept: float) -> tuple[Floats, str, str]:
    """Return scores plus the constant that fits best, the kind of this change, and a sentence about it."""
    if len(scores) < 2:  # a constant explains any single score
        return scores, "shift", ""
    shift = float(np.median(wanted - scores))
    is_intercept = intercept != 0.0 and abs(shift + intercept) <= float(np.max(tolerances))
    why = ": the model's intercept is left out" if is_intercept else ""
    return scores + shift, "shift", f"a constant, {shift:.7g}, is added to all scores{why}"


def _scale_scores(scores: Floats, wanted: Floats, tolerances: Floats, intercept: float) -> tuple[Floats, str, str]:
    """Return scores times a factor, or a factor and plus a constant, with the kind of change and a sentence."""
    if len(np.unique(scores)) < 4:  # two values always fit, and three nearly do
        return scores, "scale", ""
    top = int(np.argmax(np.abs(scores)))
    low, high = int(np.argmin(scores)), int(np.argmax(scores))
    factor = float(wanted[top] / scores[top])
    slope = float((wanted[high] - wanted[low]) / (scores[high] - scores[low]))
    shift = float(wanted[high] - slope * scores[high])
    for own, constant, sentence in (
        (factor, 0.0, f"all scores are multiplied by {factor:.7g}"),
        (slope, shift, f"all scores are multiplied by {slope:.7g}, and {shift:.7g} is added"),
    ):
        predicted = own * scores + constant
        if not is_off(wanted - predicted, tolerances * max(abs(own), 1.0)).any():
            return wanted, "scale", sentence  # within tolerances of the larger scores
    return scores, "scale", ""


def _is_window(rows: Ints, row_qid: Any) -> bool:
    """Return whether in each query the rows that differ are its last ones, after some that do not."""
    off = np.zeros(len(row_qid), dtype=bool)
    off[rows] = True
    for qid in np.unique(row_qid[off]):
        own = off[row_qid == qid]
        if own[0] or not own[int(np.argmax(own)) :].all():
            return False
    return True
