"""Files: what is written to pipes and devices, and what checks leave alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rankwright as rw
from rankwright import cli
from rankwright.basics.files import check_writable, write_atomic, write_atomic_binary
from rankwright.rankers.networks.epoch_training import Checkpoint

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


class Reader:
    """A thread that reads a pipe to its end, as the program at the other end does."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.content: bytes | None = None
        self._thread = threading.Thread(target=self._read, args=(path,), daemon=True)
        self._thread.start()

    def _read(self, path: Path) -> None:
        self.content = path.read_bytes()

    def read(self) -> bytes:
        self._thread.join(20)
        assert self.content is not None, "the pipe was never written to"
        return self.content


@pipes
@pytest.mark.parametrize(("write", "content"), [(write_atomic, "text é"), (write_atomic_binary, b"\0bytes")])
def test_a_pipe_that_was_checked_is_written_to(tmp_path, write, content):
    reader = Reader(tmp_path / "pipe")
    check_writable(tmp_path / "pipe")
    with write(tmp_path / "pipe") as file:
        file.write(content)
    assert reader.read() == (content.encode() if isinstance(content, str) else content)
    assert (tmp_path / "pipe").is_fifo()


@pipes
def test_checking_a_pipe_that_nobody_reads_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=check_writable, args=(tmp_path / "pipe",), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pipes
def test_commands_write_to_pipes(tmp_path):
    queries = rw.make_queries(8, n_docs=5, n_features=3, random_state=0)
    rw.write_letor(queries, tmp_path / "data.txt")
    data = str(tmp_path / "data.txt")
    model = Reader(tmp_path / "model")
    assert cli.run(["fit", "singlefeature", "--train", data, "--model", str(tmp_path / "model")]) == 0
    (tmp_path / "model.json").write_bytes(model.read())
    scores, run, table = (Reader(tmp_path / name) for name in ("scores", "run", "table"))
    arguments = ["--model", str(tmp_path / "model.json"), "--data", data]
    assert cli.run(["predict", *arguments, "--out", str(tmp_path / "scores"), "--run", str(tmp_path / "run")]) == 0
    assert len(scores.read().splitlines()) == len(run.read().splitlines()) == queries.n_docs
    assert cli.run(["evaluate", *arguments, "--per-query", str(tmp_path / "table")]) == 0
    assert len(table.read().splitlines()) == 1 + len(queries)


@pipes
def test_arrays_are_written_to_pipes(tmp_path):
    reader = Reader(tmp_path / "pipe")
    Checkpoint(tmp_path / "pipe", {}).save({"x": np.arange(3)}, {})
    (tmp_path / "file").write_bytes(reader.read())
    arrays, _ = Checkpoint(tmp_path / "file", {}).load() or ({}, {})
    assert arrays["x"].tolist() == [0, 1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_process_substitution(tmp_path):
    code = (
        "import sys\nfrom rankwright.basics.files import check_writable, write_atomic\ncheck_writable(sys.argv[1])\n"
        "with write_atomic(sys.argv[1]) as file: file.write('3\\n1\\n2\\n')\n"
    )
    command = (
        f"{sys.executable} -c '{code.replace(chr(39), chr(34))}' >(sort > {tmp_path}/sorted; touch {tmp_path}/end)"
    )
    subprocess.run(
        ["bash", "-c", f"{command}; until [ -e {tmp_path}/end ]; do sleep 0.02; done"], check=True, timeout=60
    )
    assert (tmp_path / "sorted").read_text() == "1\n2\n3\n"


def test_a_check_names_what_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_writable(tmp_path / "no" / "file")
    monkeypatch.setattr(os, "access", lambda *_: False)  # permissions do not bind root
    with pytest.raises(PermissionError, match="/dev/null"):
        check_writable("/dev/null")
