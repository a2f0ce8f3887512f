"""Published figures on real data (LETOR's splits and definitions); `python -m benchmarks.figures` prints them."""

from __future__ import annotations

import pytest
from benchmarks.figures import FIGURES, measure_figure, read_data_set
from tests.conftest import data_folder

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figure(figure):
    found = measure_figure(figure, read_data_set(data_folder(figure.data)))
    for name, goal in figure.goals.items():
        assert goal is not None
        assert found[name] >= goal.lowest, f"{name}: {found[name]:.4f} is below {goal.lowest:.4f}"
        assert goal.highest is None or found[name] <= goal.highest, f"{name}: {found[name]:.4f}"
