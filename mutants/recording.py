"""Which tests execute which lines: recorded once, and read for each mutation."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from coverage import CoverageData

from mutants.plugin import SHARED, name_function


class Recording:
    """The recorded tests: those that passed, their times and the lines that they execute.

    Parameters
    ----------
    folder : Path
        The folder with the files of all processes.
    """

    def __init__(self, folder: Path) -> None:
        tests: dict[str, Any] = {}
        for file in sorted(folder.glob("tests.*.json")):
            tests |= json.loads(file.read_text())
        self.seconds = {name: float(test["seconds"]) for name, test in tests.items() if test["passed"]}
        self._users: dict[str, set[str]] = defaultdict(set)
        for name in self.seconds:
            for fixture in tests[name]["fixtures"]:
                self._users[fixture].add(name)
        self._files = sorted(folder.glob("lines.*"))
        self._by_line: dict[str, dict[int, set[str]]] = {}

    @cached_property
    def _data(self) -> list[CoverageData]:
        data = [CoverageData(str(file)) for file in self._files]
        for one in data:
            one.read()
        return data

    def find_tests(self, path: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that passed and executed any of these lines."""
        if path not in self._by_line:
            self._by_line[path] = self._read(path)
        return {test for line in lines for test in self._by_line[path].get(line, ())}

    def _read(self, path: str) -> dict[int, set[str]]:
        found: dict[int, set[str]] = defaultdict(set)
        for data in self._data:
            file = next((file for file in data.measured_files() if file.endswith(f"/{path}")), "")  # in some copy
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    users = self._users[context] if context.startswith(SHARED) else {context}
                    found[line] |= users & self.seconds.keys()
        return found

    def order(self, tests: Iterable[str], seconds: float) -> list[str]:
        """Return short tests first, a case of each function before the second of any, up to a time in total."""
        rounds: dict[str, int] = defaultdict(int)
        keyed = []
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            keyed.append((rounds[name_function(test)], self.seconds[test], test))
            rounds[name_function(test)] += 1
        chosen: list[str] = []
        for _, one, test in sorted(keyed):
            seconds -= one
            if chosen and seconds < 0:
                break
            chosen.append(test)
        return chosen
