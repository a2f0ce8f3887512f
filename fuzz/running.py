"""Running many cases: each in a worker process that is watched, with progress kept in a file."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from fuzz.cases import Kind, Verdict, check
from fuzz.kinds import KINDS

SECONDS = 10.0  # that a case may take
MEMORY = 3 << 30  # bytes that a worker may take more than it has at its start
STATE = Path(".fuzz")
FINDINGS = Path("tests/fuzz_findings")
_KEPT = 3  # files of a finding
_SAVE_EVERY = 2.0  # seconds
_POLL = 0.2
_START = 300.0  # seconds until the first case: kernels may have to be compiled
_BEAT = struct.Struct("<q")  # the case that runs now
_NO_CASE = -1


@dataclass
class Progress:
    """How far the cases of a kind have come.

    Parameters
    ----------
    seed : int
        What cases are made of, together with the kind and their number.
    done : int
        The number of the next case.
    accepted, refused, undecided : int
        Cases without a finding; of them, those whose outcome the reference did not decide.
    findings : dict
        By what is wrong, how often.
    skipped : list of int
        Cases that hung or crashed a worker; they are findings, too.
    seconds : float
        How long it took.
    """

    seed: int
    done: int = 0
    accepted: int = 0
    refused: int = 0
    undecided: int = 0
    findings: dict[str, int] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def load(cls, path: Path, seed: int) -> Progress:
        """Read what was saved, if it is of this seed."""
        if path.exists():
            found = cls(**json.loads(path.read_text()))
            if found.seed == seed:
                return found
        return cls(seed)

    def save(self, path: Path) -> None:
        """Replace what was saved."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self), indent=1))
        temporary.replace(path)

    def add(self, verdict: Verdict) -> None:
        """Count a case."""
        self.accepted += verdict.outcome == "accepted"
        self.refused += verdict.outcome == "refused"
        self.undecided += not verdict.decided
        if verdict.outcome == "finding":
            self.findings[verdict.detail] = self.findings.get(verdict.detail, 0) + 1


def make_case(kind: Kind, seed: int, number: int) -> bytes:
    """Make the case of this number: the same whatever ran before."""
    return kind.make(Random(f"{seed}/{kind.name}/{number}"))


def keep_finding(kind: str, detail: str, data: bytes, folder: Path) -> None:
    """Write the file of a finding, unless there are some of it already."""
    folder = folder / kind
    folder.mkdir(parents=True, exist_ok=True)
    fault = hashlib.blake2b(detail.encode(), digest_size=5).hexdigest()
    if len(list(folder.glob(f"{fault}-*"))) < _KEPT:
        (folder / f"{fault}-{hashlib.blake2b(data, digest_size=5).hexdigest()}").write_bytes(data)


def run(name: str, cases: int, seed: int, state: Path = STATE, findings: Path = FINDINGS) -> Progress:
    """Run the cases of a kind up to this number, those that are done already left out."""
    path = state / f"{name}.json"
    before = Progress.load(path, seed)
    before.save(path)
    with tempfile.TemporaryFile() as file, tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        file.write(bytes(_BEAT.size))
        file.flush()
        beat = mmap.mmap(file.fileno(), _BEAT.size)
        while Progress.load(path, seed).done < cases:
            arguments = [name, str(cases), str(seed), str(path), str(findings), str(file.fileno()), folder]
            command = [sys.executable, "-m", "fuzz.worker", *arguments]
            with subprocess.Popen(command, pass_fds=[file.fileno()]) as worker:
                problem = _watch(worker, beat)
            if problem:
                _note_problem(name, problem, _BEAT.unpack(beat)[0], path, seed, findings)
    return Progress.load(path, seed)


def _memory_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _watch(worker: subprocess.Popen[bytes], beat: mmap.mmap) -> str:
    """Wait for a worker; say what is wrong if it hangs or crashes."""
    beat[:] = _BEAT.pack(_NO_CASE)
    last, since = _NO_CASE, time.monotonic()
    while worker.poll() is None:
        time.sleep(_POLL)
        [now] = _BEAT.unpack(beat)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > (SECONDS if last >= 0 else _START):
            worker.kill()
            worker.wait()
            if last < 0:
                raise SystemExit(f"the worker did not begin within {_START:g} seconds")
            return f"hangs for more than {SECONDS:g} seconds"
    if worker.returncode == 0:
        return ""
    if last < 0 or worker.returncode > 0:
        raise SystemExit(f"the worker ended with status {worker.returncode} at case {last}")
    return f"crashes: {signal.Signals(-worker.returncode).name}"


def _note_problem(name: str, problem: str, number: int, path: Path, seed: int, findings: Path) -> None:
    """Count a case that no worker can finish, and leave it out from now on."""
    progress = Progress.load(path, seed)
    progress.skipped.append(number)
    progress.add(Verdict("finding", problem))
    progress.save(path)
    with tempfile.TemporaryDirectory() as folder:
        keep_finding(name, problem, make_case(KINDS[name](Path(folder)), seed, number), findings)


def work(name: str, cases: int, seed: int, path: Path, findings: Path, beat_file: int, folder: Path) -> None:
    """Run cases in this process until all are done."""
    warnings.simplefilter("error")
    tempfile.tempdir = str(folder)
    kind, progress = KINDS[name](folder), Progress.load(path, seed)
    skipped = set(progress.skipped)
    beat = mmap.mmap(beat_file, _BEAT.size)
    for number in range(kind.warm_up):  # kernels are compiled, before memory is limited and time is watched
        check(kind, make_case(kind, seed, number))
    _limit_memory()
    saved = time.monotonic()
    for number in range(progress.done, cases):
        beat[:] = _BEAT.pack(number)
        if number not in skipped:
            data = make_case(kind, seed, number)
            verdict = check(kind, data)
            progress.add(verdict)
            if verdict.outcome == "finding":
                keep_finding(name, verdict.detail, data, findings)
        progress.done = number + 1
        if time.monotonic() - saved > _SAVE_EVERY or progress.done == cases:
            progress.seconds += time.monotonic() - saved
            saved = time.monotonic()
            progress.save(path)
    beat[:] = _BEAT.pack(_NO_CASE)


def _limit_memory() -> None:
    """Let an allocation that is out of proportion fail: it becomes a MemoryError, and so a finding."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        size = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
