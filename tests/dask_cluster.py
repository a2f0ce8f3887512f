"""A Dask cluster that tests can kill."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import time

from rankwright.runtime.dask_session import Session
from rankwright.runtime.dask_store import WorkerStores


def count_kept_groups(client):
    """Return how many groups of parts the workers keep for the session of a client, all together."""
    name = Session.of_client(client).name

    def count(dask_worker):
        stores = WorkerStores.of(dask_worker).stores
        return len(stores[name].groups) if name in stores else 0

    return sum(client.run(count).values())


def list_kept_groups(client):
    """Return how many groups the workers keep of tests before, and those of them that are in use, which this keeps."""
    gc.collect()
    session = Session.of_client(client)
    wait_until(lambda: not session.dropped)
    return count_kept_groups(client), set(session.in_use)


def wait_until(condition):
    """Wait until a condition holds, and return whether it does."""
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Cluster:
    """A Dask scheduler and a worker, as processes of their own."""

    def __init__(self, folder) -> None:
        start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
        file = folder / "scheduler.json"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes = [subprocess.Popen([*start, "--scheduler-file", str(file)], **quiet)]
        start = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.processes.append(subprocess.Popen([*start, "--scheduler-file", str(file)], **quiet))
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]

    def kill_scheduler(self) -> None:
        self.processes[0].send_signal(signal.SIGKILL)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
