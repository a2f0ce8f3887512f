"""Every kind of scorer and every export target: the target's scores are the model's, or the export is refused.

``tests/reference/oracle_TARGET.py`` computes the scores of an exported file: the library itself, or an interpreter of
the format written from what the engine does.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.exported import MODELS, make_model, make_rows, score_with_oracle

import rankwright as rw
from rankwright.models.export.error_bounds import bound_errors
from rankwright.models.export.exporting import TARGETS, find_target, make_request
from rankwright.models.export.parity_rows import leave_gaps


def build(kind: str, target: str):
    """The request, and the files that the target makes of it."""
    request = make_request(make_model(kind), find_target(target), Path("m.model"), None, None)
    return request, find_target(target).build(request)


@cache
def refusal(kind: str, target: str) -> str | None:
    try:
        build(kind, target)
    except rw.InputError as error:
        return str(error)
    return None


def compare(kind: str, target: str, folder: Path, n_rows: int | None = None) -> float:
    """The largest difference between the scores of an exported file and the model's, as a share of what is allowed."""
    request, files = build(kind, target)
    for addition, content in {"": files.model, **files.beside}.items():
        (folder / f"m.model{addition}").write_bytes(content)
    X = leave_gaps(make_rows(kind)[:n_rows], files.gaps)
    scores = np.asarray(score_with_oracle(target, folder / "m.model", X, request.names), dtype=np.float64).ravel()
    taken = np.nan_to_num(X, nan=0.0) if find_target(target).missing == "zero" else X
    expected = make_model(kind).scorer(taken) + files.offset
    allowed = bound_errors(request.parts, taken, find_target(target).precision, files.offset)
    assert scores.shape == expected.shape
    shares = np.abs(scores - expected) / allowed
    return float(np.where(np.isnan(shares), np.inf, shares).max())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", MODELS)
def test_scores_are_equal_or_the_export_is_refused(kind, target, tmp_path):
    reason = refusal(kind, target)
    if reason is None:
        assert len(make_rows(kind)) >= 100_000
        assert compare(kind, target, tmp_path) <= 1.0
        return
    assert reason.startswith(find_target(target).title)
    named = re.search(r"the nearest target that can is (\w+)$", reason)
    able = [other for other in TARGETS if refusal(kind, other) is None]
    assert named[1] in able if named else reason.endswith("no target can") and not able, reason


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_says_why_it_refuses(target):
    found = find_target(target)
    for kind in {"linear", "stumps", "trees", "categories", "network", "kernel sum"} - found.takes:
        assert kind in found.reasons, f"{target} needs a reason for {kind}"


def test_every_target_has_its_name():
    assert [find_target(name).name for name in TARGETS] == list(TARGETS)
