"""Every kind of scorer and every export target: the target's scores are the model's, or the export is refused.

``tests/reference/oracle_TARGET.py`` computes the scores of an exported file: the library itself, or an interpreter of
the format written from what the engine does.
"""

from __future__ import annotations

import re
import sys
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pytest
from tests.exported import MODELS, make_model, make_rows, score_with_oracle

import rankwright as rw
from rankwright.models.export.error_bounds import bound_errors
from rankwright.models.export.exporting import TARGETS, find_target, make_request
from rankwright.models.export.parity import read_parity
from rankwright.models.export.parity_rows import leave_gaps
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.score_parts import split_scorer


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


def expect(kind: str, target: str, n_rows: int | None, offset: float, gaps: tuple):
    """The rows, the scores that a target must return for them, and the errors that it may have."""
    found = find_target(target)
    return expect_alike(kind, found.missing, found.precision, n_rows, offset, gaps)


@lru_cache(maxsize=6)
def expect_alike(kind: str, missing: str, precision: str, n_rows: int | None, offset: float, gaps: tuple):
    X = leave_gaps(make_rows(kind)[:n_rows], gaps)
    taken = np.nan_to_num(X, nan=0.0) if missing == "zero" else X
    model = make_model(kind)
    allowed = bound_errors(split_scorer(model.scorer, model.n_features), taken, precision, offset)
    return X, model.scorer(taken) + offset, allowed


def compare(kind: str, target: str, folder: Path, files=None) -> float:
    """The largest difference between the scores of exported files and the model's, as a share of what is allowed.

    Files that are given are compared on the rows of a parity file alone.
    """
    request, own = build(kind, target)
    files, n_rows = (own, None) if files is None else (files, 1_000)
    for addition, content in {"": files.model, **files.beside}.items():
        (folder / f"m.model{addition}").write_bytes(content)
    X, expected, allowed = expect(kind, target, n_rows, own.offset, tuple(own.gaps))
    scores = np.asarray(score_with_oracle(target, folder / "m.model", X, request.names), dtype=np.float64).ravel()
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


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", MODELS)
def test_notes_are_of_one_style(kind, target):
    """A note is one sentence without a period, which begins as an error does: in lower case, or with a name."""
    for note in [] if refusal(kind, target) else build(kind, target)[1].notes:
        assert not re.search(r"\.($| [A-Z])", note), note
        assert note[0].islower() or note[0].isdigit() or note.startswith(find_target(target).title), note


def test_every_target_has_its_name():
    assert [find_target(name).name for name in TARGETS] == list(TARGETS)


def change_trees(**columns):
    """A change of the parts of a request: new columns of every tree, as functions of it."""

    def change(request):
        trees = [Tree({**t.columns, **{name: f(t) for name, f in columns.items()}}) for t in request.parts.list_trees()]
        request.parts.forests, request.parts.stumps = [Forest.from_trees(trees, request.parts.n_features)], []

    return change


def lower(tree):
    nearest = tree.columns["threshold"].astype(np.float32)
    down = np.where(nearest > tree.columns["threshold"], np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return np.nextafter(down, np.float32(-np.inf)).astype(np.float64)


MISTAKES = {  # of an exporter, and a kind of model that shows each
    "< for <=": ("trees", change_trees(threshold=lower)),
    "thresholds rounded to the nearest float32": (
        "trees",
        change_trees(threshold=lambda t: t.columns["threshold"].astype(np.float32).astype(np.float64)),
    ),
    "a slack of 1e-6": ("trees", change_trees(threshold=lambda t: t.columns["threshold"] + 1e-6)),
    "missing to the other side": (
        "trees with missing",
        change_trees(decision_type=lambda t: 8 | np.where(t.missing_left, 0, 2)),
    ),
    "one leaf off by 0.1%": (
        "deep trees",
        change_trees(leaf_value=lambda t: np.where(np.arange(len(t.values)) == 1, 1.001, 1.0) * t.values),
    ),
}
TREE_TARGETS = [name for name in TARGETS if "trees" in find_target(name).takes]


@pytest.mark.parametrize(
    ("target", "mistake"),
    # a target that has no missing values cannot send them to the other side
    [(t, m) for t in TREE_TARGETS for m in MISTAKES if "missing" not in m or find_target(t).missing == "nan"],
)
def test_the_rows_of_a_parity_file_catch_a_wrong_exporter(target, mistake, tmp_path):
    kind, change = MISTAKES[mistake]
    request = make_request(make_model(kind), find_target(target), Path("m.model"), None, None)
    change(request)
    assert compare(kind, target, tmp_path, build(kind, target)[1]) <= 1.0
    assert compare(kind, target, tmp_path, find_target(target).build(request)) > 1.0


def wrong_down(thresholds):
    return thresholds.astype(np.float32)


def test_wrong_rounding_functions_are_caught(monkeypatch, tmp_path):
    """Every target that rounds thresholds by the shared functions is caught when these do not round as they should."""
    caught = {name: set() for name in ("round_down_to_float32", "raise_to_next_float32")}
    right = {target: build("trees", target)[1] for target in TREE_TARGETS}
    for name in caught:
        with monkeypatch.context() as patch:
            for module in [m for key, m in sys.modules.items() if key.startswith("rankwright.models.export.")]:
                if hasattr(module, name):
                    patch.setattr(module, name, wrong_down)
            wrong = {target: build("trees", target)[1] for target in TREE_TARGETS}
        for target in TREE_TARGETS:
            if wrong[target].model != right[target].model:
                assert compare("trees", target, tmp_path, wrong[target]) > 1.0, (target, name)
                caught[name].add(target)
    assert caught["raise_to_next_float32"] == {"elasticsearch", "opensearch", "xgboost", "vespa"}
    assert caught["round_down_to_float32"] >= {"solr", "ranklib", "c"}


@pytest.mark.parametrize("target", TREE_TARGETS)
def test_a_shifted_export_has_no_negative_score_and_agrees_with_its_parity_file(target, tmp_path):
    written = rw.export(make_model("stumps with missing"), target, tmp_path / "m.model", shift=True)
    parity = read_parity(written[-1])
    assert not parity.find_differences(
        np.asarray(score_with_oracle(target, written[0], parity.X, parity.names)).ravel()
    )
    lowest = np.asarray(score_with_oracle(target, written[0], make_rows("stumps with missing"), parity.names)).min()
    assert 0.0 <= lowest < parity.offset
