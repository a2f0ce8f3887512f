"""Parity files: rows of features chosen to expose differences, with the scores that a target must return for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, open_binary
from rankwright.data.categories import Categories
from rankwright.data.queries import Queries
from rankwright.models.export.error_bounds import bound_errors
from rankwright.models.export.parity_rows import choose_rows, leave_gaps
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.models.model import Model
from rankwright.models.model_json import compute_digest

FORMAT, VERSION = "rankwright parity", 1
_MAX_ROWS, _MIN_ROWS, _MAX_VALUES = 1_000, 20, 50_000
_MAX_TOLERANCE = 1e30
_MISSING = {
    "nan": "null is a missing value: a feature that did not match",
    "zero": "null is a feature that did not match; this target takes it as 0",
}


@dataclass(frozen=True, slots=True, eq=False)
class ParityFile:
    """The rows of features of a parity file, with the scores that a target must return for them.

    Parameters
    ----------
    target : str
        The target.
    model_name : str
        The name of the model in the target.
    digest : str
        The digest of the model (``compute_digest``).
    names : tuple of str
        The names of the features in the target.
    offset : float
        The target's scores minus those of the model: a shift, or an intercept that was left out.
    X : array of shape (n_rows, n_features) of float32
        The rows; NaN is missing.
    scores : array of shape (n_rows,)
        The scores that the target must return.
    tolerances : array of shape (n_rows,)
        How far each may be off, by the precision of the target.
    """

    target: str
    model_name: str
    digest: str
    names: tuple[str, ...]
    offset: float
    X: Floats
    scores: Floats
    tolerances: Floats

    def find_differences(self, scores: Floats) -> list[int]:
        """Return the numbers, from 0, of the rows whose scores are off by more than the tolerance, or not finite."""
        if len(scores) != len(self.scores):
            raise InputError(f"{len(scores)} scores; the parity file has {len(self.scores)} rows")
        # written so that NaN counts as a difference
        found: list[int] = np.flatnonzero(~(np.abs(scores - self.scores) <= self.tolerances)).tolist()
        return found


def write_parity(
    model: Model, target: Target, request: ExportRequest, files: ExportedFiles, shift: float, data: Queries | None
) -> bytes:
    """Return the content of the parity file of an exported model."""
    n = int(np.clip(_MAX_VALUES // model.n_features, _MIN_ROWS, _MAX_ROWS))
    real = None if data is None else model.adapt(data).X
    has_missing = model.scorer.allow_nan
    X = choose_rows(request.parts, n, data=real, categories=request.categories, has_missing=has_missing)
    X = leave_gaps(X, files.gaps)
    taken = np.nan_to_num(X) if target.missing == "zero" else X
    scores = model.scorer(taken) + (shift + files.offset)
    tolerances = bound_errors(request.parts, taken, target.precision, files.offset)
    # a larger bound means terms beyond the range of float32, which cancel in double precision only
    is_known = (np.abs(scores) < np.finfo(np.float32).max) & (tolerances < _MAX_TOLERANCE)
    rows = [[None if value != value else value for value in row] for row in X[is_known].tolist()]
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "target": target.name,
        "model": request.model_name,
        "digest": compute_digest(model),
        "precision": target.precision,
        "missing": _MISSING[target.missing] if has_missing else "no value is missing: the model takes complete rows",
        "offset": shift + files.offset,
        "request": files.scoring_request,
        "features": request.names,
        "categories": _select_categories(request.categories),
        "scores": scores[is_known].tolist(),
        "tolerances": tolerances[is_known].tolist(),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items()]
    lines.append('"rows": [\n' + ",\n".join(json.dumps(row, allow_nan=False) for row in rows) + "\n]")
    return ("{" + ",\n".join(lines) + "}\n").encode()


def _select_categories(categories: Categories | None) -> Any:
    """Return the values of categories, whose numbers the rows have; None if there are none."""
    return None if categories is None or all(values is None for values in categories) else categories


def read_parity(path: StrPath) -> ParityFile:
    """Read a parity file; raise InputError if it is none, or damaged."""
    with open_binary(path) as file:
        data = file.read()
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not JSON; expected the parity file of an export, F.parity.json") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{path}: not a parity file; expected a JSON object with "format": "{FORMAT}"')
    if content.get("version") != VERSION:
        raise InputError(f"{path}: version {quote(content.get('version'))}; this release reads version {VERSION}")
    try:
        names = tuple(str(name) for name in content["features"])
        rows = [[np.nan if value is None else float(value) for value in row] for row in content["rows"]]
        X = np.array(rows, dtype=np.float32).reshape(len(rows), -1)
        scores, tolerances = (np.array(content[name], dtype=np.float64) for name in ("scores", "tolerances"))
        texts = [str(content[name]) for name in ("target", "model", "digest")]
        offset = float(content["offset"])
    except KeyError as error:
        raise InputError(f"{path}: the parity file lacks {error}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged parity file: {error}") from None
    if not (len(X) == len(scores) == len(tolerances)) or X.shape[1] != len(names):
        raise InputError(f"{path}: damaged parity file: rows, scores and features that differ in number")
    return ParityFile(texts[0], texts[1], texts[2], names, offset, X, scores, tolerances)
