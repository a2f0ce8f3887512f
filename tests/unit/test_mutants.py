"""The mutation tester: the places it changes, the tests it chooses, and its results for a small project."""

from __future__ import annotations

import pytest

pytest.importorskip("cosmic_ray")
pytest.importorskip("coverage")

from mutants.__main__ import summarise
from mutants.code import Module, Project
from mutants.measuring import Measurement
from mutants.sites import draw, list_sites

SUMS = '''from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    NUMBER = 1 + 2

LIMIT = 10


@final
class Pair:
    """The sum 1 + 1."""

    both: int | None = None


def add(a: int | None, b: int) -> int | None:
    return a + b if a is not None else None


def unused(a: int) -> int:
    return a * 2


def is_large(a: int) -> bool:
    return a > LIMIT
'''
TESTS = """from tiny.sums import add, is_large

def test_add():
    assert add(2, 3) == 5

def test_is_large():
    assert is_large(10**6)
"""


def test_annotations_and_decorators_for_the_type_checker_are_not_mutated():
    lines = {line for line, _ in list_sites("src/tiny/sums.py", SUMS)}
    assert lines == {8, 19, 23, 27}


def test_the_same_seed_draws_the_same_mutations():
    first, again, other = (draw({"sums.py": SUMS}, 4, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert len({(mutation.line, mutation.column) for mutation in first}) == 4
    assert all(mutation.apply(SUMS) not in (None, SUMS) for mutation in first)


def test_lines_of_a_statement_end_where_its_body_begins():
    module = Module(
        "a.py", "def f(x):\n    if (x and\n            x > 1):\n        return g(\n            x)\n    return 0\n"
    )
    assert module.find_lines(3) == {2, 3}
    assert module.find_lines(5) == {4, 5}
    assert [function.name for function in module.find_functions(5)] == ["f"]


def test_callers_of_a_kernel_are_found_through_other_kernels_and_tables():
    sources = {
        "src/p/kernels/low.py": "def low(x):\n    return x\n",
        "src/p/kernels/high.py": "from p.kernels.low import low\n\ndef high(x):\n    return low(x)\n",
        "src/p/use.py": "from p.kernels import high\n\nTABLE = {'h': high.high}\n\ndef use(x):\n    return TABLE['h'](x)\n",
    }
    project = Project(sources, {"tests/test_low.py": "from p.kernels.low import low", "tests/test_x.py": "slow"})
    assert project.find_users("src/p/kernels/low.py", ("low",), "kernels") == {("src/p/use.py", 6)}
    assert project.find_test_files("src/p/kernels/low.py", ("low",)) == {"tests/test_low.py"}


def test_a_small_project_is_measured_and_goes_on_where_it_was(tmp_path):
    for path, text in {"src/tiny/sums.py": SUMS, "src/tiny/__init__.py": "", "tests/test_sums.py": TESTS}.items():
        file = tmp_path / "project" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "project" / "pytest.ini").write_text("[pytest]\n")
    measurement = Measurement(tmp_path / "project", tmp_path / "state", jobs=2, seconds=10)
    by_line = {mutation.line: mutation for mutation in draw(measurement.sources, 99, 0)}
    mutations = [by_line[19], by_line[23]]
    results = measurement.run(mutations, 60, lambda result: None)
    assert measurement.drop_false_kills(results) == 0
    assert [result.outcome for result in results] == ["killed", "survived"]
    assert "sums.py:23 (survived)" in summarise(results)
    assert "killed 1 of 2" in summarise(results)
    again = Measurement(tmp_path / "project", tmp_path / "state", jobs=1, seconds=10)
    assert again.run(mutations, 60, lambda result: pytest.fail("tested twice")) == results
