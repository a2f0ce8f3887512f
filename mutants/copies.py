"""Running tests on a copy of the project with a mutation."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 8.0  # the time on the wall may be this many times the processor time that is allowed
_KILLED_BY_TIME = -signal.SIGXCPU
_NO_TESTS = 5  # pytest's status where no test was found


@dataclass(frozen=True)
class Run:
    """The outcome of some tests.

    Parameters
    ----------
    outcome : str
        ``passed``, ``failed``, ``timed out`` or ``no test``.
    failed : tuple of str
        The tests that failed; none where code could not be imported.
    seconds : float
        The time on the wall.
    """

    outcome: str
    failed: tuple[str, ...]
    seconds: float


class Copy:
    """A copy of the project that may be changed.

    Parameters
    ----------
    project : Path
        The project's folder.
    folder : Path
        The folder of the copy; it is replaced.
    """

    def __init__(self, project: Path, folder: Path) -> None:
        self.folder = folder
        self._scratch = folder.with_name(f"{folder.name}.scratch")
        self.log = self._scratch / "log"
        for old in (folder, self._scratch):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(
            project, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.nb[ci]", "build", "dist")
        )
        self._scratch.mkdir()

    def write(self, path: str, source: str) -> None:
        """Replace the content of a file; its bytecode goes, as it may not look older."""
        file = self.folder / path
        file.write_text(source, encoding="utf-8")
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)

    def run_tests(
        self, tests: Sequence[str], seconds: float, settings: Mapping[str, str] | None = None, *options: str
    ) -> Run:
        """Run tests until one fails, within so much processor time."""
        if not tests:
            return Run("no test", (), 0.0)
        chosen = self._scratch / "chosen.json"
        chosen.write_text(json.dumps(tests))
        failed = chosen.with_suffix(".failed")
        failed.unlink(missing_ok=True)
        files = sorted({test.partition("::")[0] for test in tests})
        began = time.monotonic()
        status = self.run_pytest([*files, "--mutants-choose", str(chosen), *options], seconds, settings)
        names = tuple(failed.read_text().splitlines()) if failed.exists() else ()
        if status is None or status == _KILLED_BY_TIME:
            outcome = "timed out"
        elif status == _NO_TESTS:
            raise SystemExit(f"pytest found none of {len(tests)} tests in {', '.join(files)}")
        else:
            outcome = "passed" if status == 0 else "failed"
        return Run(outcome, names, time.monotonic() - began)

    def run_pytest(
        self, arguments: Sequence[str], seconds: float, settings: Mapping[str, str] | None = None
    ) -> int | None:
        """Run pytest in this copy and return its status, or None if it had to be stopped."""
        places = [str(self.folder / "src"), os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[1])]
        search_path = os.pathsep.join(place for place in places if place)
        command = [sys.executable, "-m", "pytest", "-p", "mutants.plugin", "-p", "no:cacheprovider", "-q"]
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [*command, "--basetemp", str(self._scratch / "tmp"), *arguments],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": search_path} | dict(settings or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5)),
            )
            try:
                return process.wait(seconds * _PATIENCE)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):  # also what the tests left running
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
