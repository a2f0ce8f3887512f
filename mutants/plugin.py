"""A pytest plugin that records the lines each test executes, and runs chosen tests in a given order."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

SHARED = "fixture "  # a context of this prefix is a fixture that several tests share
_SAVE_EVERY = 20.0  # seconds
IMPORTED = ""  # the context of lines that no test executes: modules are imported outside tests


class TooSlow(BaseException):
    """A test took longer than the limit; no test catches this."""


class Recorder:
    """The lines that each test executes, and how long each passing test takes.

    Parameters
    ----------
    folder : Path
        The folder to write to: a coverage file and a JSON file for each process.
    name : str
        The end of the files' names.
    source : Path
        The folder of the code whose lines are recorded.
    """

    def __init__(self, folder: Path, name: str, source: Path) -> None:
        import coverage

        self._file = folder / f"tests.{name}.json"
        self._tests: dict[str, dict[str, Any]] = {}
        self._coverage = coverage.Coverage(data_file=folder / f"lines.{name}", source=[str(source)], config_file=False)
        self._coverage.start()
        self._saved = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Credit lines and processor time to this test; the time on the wall depends on what else runs."""
        self._coverage.switch_context(item.nodeid)
        began = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            self._coverage.switch_context(IMPORTED)
            self._tests[item.nodeid]["seconds"] = sum(os.times()[:4]) - began

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Credit the lines of a shared fixture to all tests that use it, not to the first one alone."""
        if fixturedef.scope == "function":
            return (yield)
        self._coverage.switch_context(_name_fixture(fixturedef))
        try:
            return (yield)
        finally:
            self._coverage.switch_context(os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record whether all phases of a test passed."""
        report = yield
        test = self._tests.setdefault(item.nodeid, {"passed": True, "seconds": 0.0, "fixtures": _list_shared(item)})
        test["passed"] &= report.passed
        return report

    def pytest_runtest_logfinish(self) -> None:
        """Write the records now and then: a test may hang, or end the process."""
        if time.monotonic() > self._saved + _SAVE_EVERY:
            self._save()

    def pytest_sessionfinish(self) -> None:
        """Write the records of this process."""
        self._coverage.stop()
        self._save()

    def _save(self) -> None:
        self._coverage.save()
        self._file.write_text(json.dumps(self._tests))
        self._saved = time.monotonic()


def _name_fixture(fixture: pytest.FixtureDef[Any]) -> str:
    return f"{SHARED}{fixture.baseid} {fixture.argname}"


def _list_shared(item: pytest.Item) -> list[str]:
    info = getattr(item, "_fixtureinfo", None)
    fixtures = [one for several in info.name2fixturedefs.values() for one in several] if info else []
    return [_name_fixture(fixture) for fixture in fixtures if fixture.scope != "function"]


class Part:
    """A part of the suite, in a random order: with parameters, one case for each value of each parameter.

    Parameters
    ----------
    number, count : int
        The number of this part, and of all parts.
    seconds : float
        The time after which no further test begins.
    """

    def __init__(self, number: int, count: int, seconds: float) -> None:
        self._number, self._count = number, count
        self._end = time.monotonic() + seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop all other tests; cases of one function stay together, as they may share fixtures."""
        cases = defaultdict(list)
        for item in items:
            cases[name_function(item.nodeid)].append(item)
        functions = sorted(cases)
        Random(0).shuffle(functions)
        items[:] = [item for name in functions[self._number :: self._count] for item in _thin(cases[name])]

    def pytest_runtest_logfinish(self) -> None:
        """Stop at the end of the time."""
        if time.monotonic() > self._end:
            pytest.exit("the time for recording is over", returncode=0)


def name_function(test: str) -> str:
    """Return a test's node id without its parameters."""
    return test.partition("[")[0]


def _thin(items: list[pytest.Item]) -> list[pytest.Item]:
    seen: set[tuple[int, str]] = set()
    kept: list[pytest.Item] = []
    for item in items:
        values = set(enumerate(getattr(getattr(item, "callspec", None), "_idlist", [])))
        if not kept or values - seen:
            seen |= values
            kept.append(item)
    return kept


class Chooser:
    """The tests to run, in this order; the first that fails is written to a file.

    Parameters
    ----------
    file : Path
        A JSON list of node ids. The name of the other file is this one's with the suffix ``.failed``.
    """

    def __init__(self, file: Path) -> None:
        self._failed = file.with_suffix(".failed")
        self._places = {name: place for place, name in enumerate(json.loads(file.read_text()))}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop all other tests, and sort those that remain."""
        chosen = (item for item in items if item.nodeid in self._places)
        items[:] = sorted(chosen, key=lambda item: self._places[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test that failed to the file."""
        if report.failed:
            with self._failed.open("a") as file:
                file.write(report.nodeid + "\n")


class Limiter:
    """A limit on the processor time of a single test, which fails when it is exceeded.

    Parameters
    ----------
    seconds : float
        The limit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        signal.signal(signal.SIGPROF, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        raise TooSlow(f"longer than {self._seconds:g} seconds")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        """Limit the fixtures of a test."""
        with self._watch():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        """Limit the test itself."""
        with self._watch():
            return (yield)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_PROF, self._seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("mutants")
    group.addoption("--mutants-record", metavar="FOLDER/NAME", help="record the lines each test executes")
    group.addoption("--mutants-part", metavar="I/N/SECONDS", help="run part I of N of the suite, no longer than this")
    group.addoption("--mutants-choose", type=Path, metavar="FILE", help="run these tests: a JSON list of node ids")
    group.addoption("--mutants-limit", type=float, metavar="SECONDS", help="fail a test that takes longer")


def pytest_configure(config: pytest.Config) -> None:
    """Switch on what the options ask for."""
    register = config.pluginmanager.register
    if target := config.getoption("--mutants-record"):
        register(Recorder(Path(target).parent, Path(target).name, config.rootpath / "src"))
    if part := config.getoption("--mutants-part"):
        number, count, seconds = part.split("/")
        register(Part(int(number), int(count), float(seconds)))
    if file := config.getoption("--mutants-choose"):
        register(Chooser(file))
    if seconds := config.getoption("--mutants-limit"):
        register(Limiter(seconds))
