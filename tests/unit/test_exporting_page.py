"""The tables of docs/exporting.md say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.exported import MODELS, N_FEATURES, make_model

from rankwright.analysis import cause_search, score_causes
from rankwright.models.export.exporting import TARGETS, find_target
from rankwright.scorers.score_parts import split_scorer

PAGE = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")
ROWS = {  # of the table, with the kinds of models that they are about
    "linear, single feature": ["linear", "feature"],
    "stumps": ["stumps", "stumps with missing"],
    "trees": [
        *("trees", "trees with missing", "deep trees", "one leaf", "trees with extreme thresholds"),
        *("imported LightGBM", "imported XGBoost", "imported XGBoost with missing"),
    ],
    "trees with categories": ["trees with categories"],
    "network of relu, tanh or sigmoid": ["network of relu", "network of tanh", "network of sigmoid"],
    "network of silu or gelu": ["network of silu", "network of gelu"],
    "kernel sum": [kind for kind in MODELS if kind.endswith("kernel sum") and "sum of" not in kind],
    "sum of linear models": ["sum of linear"],
    "sum of trees and stumps": ["sum of trees", "merged forests and stumps"],
    "sum of different kinds": [
        *("sum of linear and trees", "sum of network and kernel sum"),
        *("merged linear, stumps and trees", "merged trees and network"),
    ],
}


def read_table(first: str) -> dict[str, list[str]]:
    """The cells of the table whose head begins with this word, by the first cell of each row."""
    lines = PAGE[PAGE.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {re.sub(r"\[(\w+)\]\(.*\)", r"\1", row[0]): row[1:] for row in (rows[0], *rows[2:])}


def test_every_model_is_in_the_table():
    assert sorted(kind for kinds in ROWS.values() for kind in kinds) == sorted(MODELS)


@pytest.mark.parametrize("target", TARGETS)
def test_the_table_says_what_a_target_takes(target):
    table = read_table("scorer")
    column = table.pop("scorer").index(target)
    assert list(table) == list(ROWS)
    for row, cells in table.items():
        for kind in ROWS[row]:
            obstacle = find_target(target).find_obstacle(split_scorer(make_model(kind).scorer, N_FEATURES))
            assert cells[column] == ("no" if obstacle else "yes"), (target, kind, obstacle)


def test_the_table_has_the_precision_and_the_missing_values_of_each_target():
    table = read_table("target")
    del table["target"]
    assert {name: cells[1:] for name, cells in table.items()} == {
        name: [find_target(name).precision, find_target(name).missing] for name in TARGETS
    }


def test_the_table_names_every_cause():
    table = read_table("cause")
    named = {name for row in table for name in re.findall(r"`([^`]+)`", row)}
    sources = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (cause_search, score_causes))
    assert named
    assert all(f'"{name}"' in sources for name in named)
    assert set(re.findall(r'(?:Cause\(|FoundCause\()\s*\*?\(?"([^"]+)"', sources)) - {"none"} <= named
