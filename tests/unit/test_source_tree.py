"""A source tree that was never installed: there is no metadata to ask for the version."""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.papers.simulation.bounds_figures import bounds_curves


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
def test_a_simulation_ends_with_its_page(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds_curves, "N_SEEDS", 1)
    assert cli.run(["simulate", "bounds", "--out", str(tmp_path)]) == 0
    assert f"Rankwright {rw.__version__}" in (tmp_path / "bounds.html").read_text(encoding="utf-8")


def test_compiled_files_are_enough(tmp_path):
    package = shutil.copytree(
        Path(rw.__file__).parent, tmp_path / "rankwright", ignore=shutil.ignore_patterns("__pycache__")
    )
    assert compileall.compile_dir(package, quiet=1, legacy=True)
    for source in package.rglob("*.py"):
        source.unlink()
    code = "import rankwright as rw; print(rw.__file__, *rw.__all__); rw.make_queries(2, random_state=0)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    found = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    where, *names = found.stdout.split()
    assert where == str(package / "__init__.pyc")
    assert names == rw.__all__
