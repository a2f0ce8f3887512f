"""A source tree that was never installed: there is no metadata to ask for the version."""

from __future__ import annotations

import importlib.metadata

import pytest

import rankwright as rw
from rankwright import cli


@pytest.fixture
def _not_installed(monkeypatch):
    find = importlib.metadata.distribution

    def find_others(name: str):
        if name == "rankwright":
            raise importlib.metadata.PackageNotFoundError(name)
        return find(name)

    monkeypatch.setattr(importlib.metadata, "distribution", find_others)


@pytest.mark.usefixtures("_not_installed")
def test_an_experiment_ends_with_its_report(tmp_path):
    queries = rw.make_queries(30, n_docs=5, n_features=3, random_state=0)
    results = rw.run_experiment(rw.Experiment(queries, ["singlefeature"]), tmp_path, rw.Serial())
    page = rw.write_report(results, tmp_path)
    assert f"Rankwright {rw.__version__}" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("_not_installed")
def test_a_simulation_ends_with_its_page(tmp_path):
    assert cli.run(["simulate", "bounds", "--out", str(tmp_path)]) == 0
    assert f"Rankwright {rw.__version__}" in (tmp_path / "bounds.html").read_text(encoding="utf-8")
