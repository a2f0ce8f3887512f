"""The measurement: record the tests, test each mutation of a sample, and keep the results in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import TypeVar

from mutants.code import Project
from mutants.copies import Copy, Run
from mutants.recording import Recording
from mutants.selection import Selection
from mutants.sites import Mutation

T = TypeVar("T")
_INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
_NUMBERS = ("overflow", "divide by zero", "invalid value")  # no compiled kernel warns of these
_QUIET = [option for problem in _NUMBERS for option in ("-W", f"ignore:{problem} encountered:RuntimeWarning")]
_CANDIDATES = 25  # tests of a kernel that are tried with the compiler off
_SLOW = 5.0  # seconds after which a test is too slow with the compiler off
_BATCH = 30  # mutations that are tested before the kernels of others are recorded
_START = 60.0  # seconds of processor time for imports and collection
_COMPILING = 900.0  # seconds of processor time for kernels to be compiled
_LONG = 6 * 3600.0


@dataclass(frozen=True)
class Result:
    """The result of testing a mutation.

    Parameters
    ----------
    key : str
        The mutation's key.
    place : str
        File and line.
    operator : str
        The name of cosmic-ray's operator.
    diff : str
        The change.
    outcome : str
        ``killed``, ``timed out`` (counts as killed), ``survived``, ``no test`` (counts as survived)
        or ``skipped`` (does not count).
    compiler : str
        ``on`` or ``off``.
    test : str
        The test that failed; empty where code could not be imported.
    n_tests : int
        The number of tests chosen.
    seconds : float
        The time on the wall.
    """

    key: str
    place: str
    operator: str
    diff: str
    outcome: str
    compiler: str
    test: str
    n_tests: int
    seconds: float

    @property
    def is_killed(self) -> bool:
        """Whether the tests noticed the change."""
        return self.outcome in ("killed", "timed out")

    @property
    def is_skipped(self) -> bool:
        """Whether no test was run because kernels would have to be compiled."""
        return self.outcome == "skipped"


class Measurement:
    """The state of a measurement in a folder.

    Parameters
    ----------
    root : Path
        The project.
    folder : Path
        The folder for copies, recordings and results.
    jobs : int
        How many processes run tests at a time.
    seconds : float
        The time of the tests chosen for a mutation.
    ignored : sequence of str
        Paths of tests to leave out.
    compiles : bool
        Whether kernels that no test reaches with the compiler off are compiled, which takes minutes each time.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        jobs: int,
        seconds: float,
        ignored: Sequence[str] = (),
        compiles: bool = True,
    ) -> None:
        self._folder, self._seconds, self._ignored = folder, seconds, ignored
        self.sources = _read(root, "src")
        self._project = Project(self.sources, _read(root, "tests"))
        self._digest = _digest([self.sources, _read(root, "tests"), list(ignored)])
        self._copies = [Copy(root, folder / "copies" / str(number)) for number in range(jobs)]
        self._compiles = compiles
        self._unreliable: set[tuple[str, str]] = set()  # tests with the compiler on or off
        self.results: dict[str, Result] = {}
        self._file = folder / f"results-{self._digest}.json"
        self._lock = Lock()
        if self._file.exists():
            self.results = {entry["key"]: Result(**entry) for entry in json.loads(self._file.read_text())}

    def run(self, mutations: Sequence[Mutation], seconds: float, report: Callable[[Result], None]) -> list[Result]:
        """Test mutations that have no result yet, and return the results of all of them.

        Parameters
        ----------
        mutations : sequence of Mutation
            The mutations.
        seconds : float
            The time for recording which tests execute which lines.
        report : callable
            Called with each new result.
        """
        keys = {mutation: mutation.identify(self.sources[mutation.path]) for mutation in mutations}
        known = {key for key, result in self.results.items() if not (result.is_skipped and self._compiles)}
        waiting = [mutation for mutation in mutations if keys[mutation] not in known]
        compiled = self._record_suite(seconds) if waiting else None
        while waiting and compiled:
            batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
            selection = Selection(self._project, compiled, self._record_kernels(batch, compiled))

            def test(mutation: Mutation, copy: Copy, selection: Selection = selection) -> None:
                result = self._test_mutation(mutation, keys[mutation], selection, copy)
                with self._lock:
                    self.results[result.key] = result
                    self._save()
                    report(result)

            self._spread(test, batch)
        return [self.results[keys[mutation]] for mutation in mutations]

    def drop_false_kills(self, results: Sequence[Result]) -> int:
        """Forget results of tests that fail on the code as it is, and never choose these tests again."""
        for compiler, settings, options in (("on", {}, []), ("off", _INTERPRETED, _QUIET)):
            tests = {result.test for result in results if result.test and result.compiler == compiler}
            run = self._copies[0].run_tests(sorted(tests), _LONG, settings, *options)
            self._unreliable |= {(test, compiler) for test in run.failed}
        false = [result.key for result in results if (result.test, result.compiler) in self._unreliable]
        for key in false:
            del self.results[key]
        self._save()
        return len(false)

    def _record_suite(self, seconds: float) -> Recording:
        folder = self._folder / f"suite-{self._digest}"
        if not (folder / "done").exists():
            folder.mkdir(parents=True, exist_ok=True)
            count = len(self._copies)
            ignored = [argument for path in self._ignored for argument in ("--ignore", path)]

            def record(number: int, copy: Copy) -> None:
                part = ["--mutants-record", str(folder / str(number)), "--mutants-part", f"{number}/{count}/{seconds}"]
                copy.run_pytest([*part, *ignored], _LONG)
                if not (folder / f"tests.{number}.json").exists():
                    raise SystemExit(f"the tests did not run: see {copy.log}")

            self._spread(record, range(count))
            (folder / "done").touch()
        return Recording(folder)

    def _record_kernels(self, mutations: Sequence[Mutation], compiled: Recording) -> Recording:
        """Try tests of kernels with the compiler off: which pass in time, and which lines do they execute."""
        selection = Selection(self._project, compiled)
        kernels = [mutation for mutation in mutations if mutation.is_kernel]
        chosen = [selection.choose(mutation, self._seconds)[0] for mutation in kernels]
        folder = self._folder / f"kernels-{self._digest}"
        folder.mkdir(parents=True, exist_ok=True)
        earlier = list(folder.glob("tests.*.json"))
        tried = {test for file in earlier for test in json.loads(file.read_text())}
        tests = sorted({test for candidates in chosen for test in candidates[:_CANDIDATES]} - tried)

        def record(number: int, copy: Copy) -> None:
            target = folder / f"{len(earlier)}-{number}"
            options = [*_QUIET, "--mutants-limit", str(_SLOW), "--mutants-record", str(target)]
            part = tests[number :: len(self._copies)]
            copy.run_tests(part, _START + _SLOW * len(part), _INTERPRETED, *options)

        self._spread(record, range(len(self._copies)))
        return Recording(folder)

    def _test_mutation(self, mutation: Mutation, key: str, selection: Selection, copy: Copy) -> Result:
        source = self.sources[mutation.path]
        copy.write(mutation.path, mutation.apply(source) or source)
        allowed = _START + 3 * self._seconds
        try:
            chosen, compiler = selection.choose(mutation, self._seconds)
            tests = [test for test in chosen if (test, compiler) not in self._unreliable]
            if compiler == "off":
                settings = _INTERPRETED
            elif mutation.is_kernel and not self._compiles:
                return self._describe(mutation, key, Run("skipped", (), 0.0), "on", 0)
            elif mutation.is_kernel:  # any change in this folder has all kernels compiled again
                settings, allowed = {"NUMBA_CACHE_DIR": str(copy.folder / ".numba")}, allowed + _COMPILING
            else:
                settings = {}
            run = copy.run_tests(tests, allowed, settings, "-x", *(_QUIET if compiler == "off" else []))
        finally:
            copy.write(mutation.path, source)
        return self._describe(mutation, key, run, compiler, len(tests))

    def _describe(self, mutation: Mutation, key: str, run: Run, compiler: str, n_tests: int) -> Result:
        place, diff = f"{mutation.path}:{mutation.line}", mutation.compare(self.sources[mutation.path])
        outcome = {"passed": "survived", "failed": "killed"}.get(run.outcome, run.outcome)
        test = run.failed[0] if run.failed else ""
        return Result(key, place, mutation.operator, diff, outcome, compiler, test, n_tests, run.seconds)

    def _spread(self, work: Callable[[T, Copy], None], things: Sequence[T]) -> None:
        """Do work on each thing, as many at a time as there are copies."""
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in self._copies:
            free.put(copy)

        def take(thing: T) -> None:
            copy = free.get()
            try:
                work(thing, copy)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(len(self._copies)) as pool:
            list(pool.map(take, things))

    def _save(self) -> None:
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps([asdict(result) for result in self.results.values()], indent=1))
        temporary.replace(self._file)


def _read(root: Path, folder: str) -> dict[str, str]:
    files = sorted((root / folder).rglob("*.py"))
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _digest(content: object) -> str:
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()
