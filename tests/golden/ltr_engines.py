"""Scores of the engines' own Java classes, from ltr_engines.json, which says how they were made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankwright.models.export.exporting import find_target, make_request
from rankwright.models.model import Model
from rankwright.models.model_json import parse_model

FILE = Path(__file__).with_suffix(".json")


@dataclass
class Case:
    """A model, rows of its features, its exported files, and the float32 scores of the classes by engine."""

    kind: str
    model: Model
    names: tuple[str, ...]
    X: np.ndarray
    files: dict[str, str]
    scores: dict[str, np.ndarray]

    def __str__(self) -> str:
        return self.kind

    def check_files(self, target: str) -> None:
        """The export of the model is the file whose scores were recorded, and these are the model's."""
        request = make_request(self.model, find_target(target), Path("movies.json"), None, None)
        files = find_target(target).build(request)
        assert files.model.decode() == self.files[target]
        recorded = self.scores["opensearch 3.8" if target == "opensearch" else target]
        np.testing.assert_allclose(recorded, self.model.scorer(self.X) + files.offset, rtol=1e-5, atol=1e-5)


def list_cases(target: str) -> list[Case]:
    """The cases of a target."""
    found = []
    for case in json.loads(FILE.read_text())["cases"]:
        model = parse_model(json.dumps(case["model"]).encode(), FILE)
        rows = [[np.nan if value is None else value for value in row] for row in case["rows"]]
        scores = {engine: np.array(values, np.float32) for engine, values in case["scores"].items()}
        files = {name: "\n".join(lines) + "\n" for name, lines in case["files"].items()}
        kind = "linear" if model.scorer.kind == "linear" else "trees"
        if target in files:
            found.append(Case(kind, model, tuple(case["names"]), np.array(rows, np.float32), files, scores))
    return found
