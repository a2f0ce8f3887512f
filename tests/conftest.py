"""Shared fixtures: real data where there is some, small queries of every awkward kind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import rankwright as rw
from rankwright.rankers.blend import auto_ranker, blend, portfolio
from rankwright.rankers.blend.candidates import Candidate
from rankwright.runtime.backends import count_shards

settings.register_profile(
    "rankwright", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rankwright")

ROOT = Path(__file__).parent.parent


def data_folder(name: str) -> Path:
    """The folder of a real data set, or a skipped test that says how to provide it."""
    places = [Path(os.environ["RANKWRIGHT_DATA"])] if "RANKWRIGHT_DATA" in os.environ else []
    for place in (*places, ROOT.parent / "shared" / "data"):
        if (place / name).is_dir():
            return place / name
    pytest.skip(f"{name} is not here; set RANKWRIGHT_DATA to a folder that has it")


@st.composite
def ranked_lists(draw: st.DrawFn, most: int = 7, top: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Grades and scores of one query, with many ties; single documents and equal grades included."""
    n = draw(st.integers(1, most))
    grades = draw(st.lists(st.integers(0, top), min_size=n, max_size=n))
    scores = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, 1e6]), min_size=n, max_size=n))
    return np.array(grades, dtype=float), np.array(scores)


def one_query(grades: np.ndarray, docid: list[str] | None = None) -> rw.Queries:
    """One query whose only feature is the row number."""
    n = len(grades)
    return rw.Queries.from_arrays(np.arange(n, dtype=float)[:, None], grades, np.zeros(n, int), docid=docid)


def random_queries(rng: np.random.Generator, m: int = 12, most: int = 9, d: int = 4) -> rw.Queries:
    """Queries of 1 to ``most`` documents with integer (tied) features; some without a relevant document."""
    sizes = rng.integers(1, most + 1, m)
    n = int(sizes.sum())
    y = rng.integers(0, 3, n) * np.repeat(rng.random(m) < 0.8, sizes)
    return rw.Queries.from_arrays(rng.integers(0, 4, (n, d)), y, np.repeat(np.arange(m), sizes))


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even small data into several shards."""
    monkeypatch.setattr(sys.modules[count_shards.__module__], "_DOCS_PER_SHARD", 300)


def shrink_portfolio(candidates: list[Candidate]) -> list[Candidate]:
    """Return of the candidates for a blend a linear one of two strengths and one of few trees."""
    found = []
    for candidate in candidates:
        if candidate.name == "regression":
            found.append(Candidate(candidate.name, candidate.estimator, candidate.path_values[2:4]))
        elif isinstance(candidate.estimator, rw.MART) and "mart" not in {each.name for each in found}:
            small = candidate.estimator.get_params() | {"n_estimators": 5, "num_leaves": 4}
            found.append(Candidate("mart", rw.MART(**small)))
    return found


@pytest.fixture(scope="session", autouse=True)
def small_portfolio() -> Iterator[None]:
    """Blend the two quickest candidates by default: all of the portfolio would take minutes for every data set.

    Which candidates the data allow is still decided by the portfolio itself. Tests of it take ``whole_portfolio``.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((auto_ranker, "list_auto_candidates"), (blend, "list_default_candidates")):
            whole = getattr(module, name)
            patch.setattr(module, name, lambda *given, whole=whole: shrink_portfolio(whole(*given)))
        yield


@pytest.fixture
def whole_portfolio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo ``small_portfolio`` for one test."""
    monkeypatch.setattr(auto_ranker, "list_auto_candidates", portfolio.list_auto_candidates)
    monkeypatch.setattr(blend, "list_default_candidates", portfolio.list_default_candidates)
