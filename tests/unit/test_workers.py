"""Workers: every task answered once, errors and deaths included."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import rankwright as rw
from rankwright.basics import progress
from rankwright.runtime.workers import (
    ExecutorWorkers,
    ProcessWorkers,
    SerialWorkers,
    WorkerDiedError,
    WorkersLostError,
    open_workers,
)


class FifoQueue:
    """A queue that gives tasks in their order, whoever asks."""

    def __init__(self, tasks):
        self._tasks = iter(tasks)

    def next(self, previous):
        return next(self._tasks, None)


def square(x: int) -> int:
    if x == 3:
        raise rw.InputError("three")
    progress.report("work", 1, 2)
    return x * x


def kill_three(x: int) -> int:
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


class Two(Exception):
    """Pickles, and does not unpickle."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def raise_two(x: int) -> int:
    raise Two(x, x)


def die_while_answering(x: int) -> bytes:
    if x == 1:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return b"x" * 400_000_000  # does not fit into a pipe: it is killed half-way
    return b""


def unpicklable(x: int):
    return lambda: x


def process_facts(_: int) -> tuple[int, bool, str | None]:
    return os.getpid(), multiprocessing.parent_process() is not None, os.environ.get("OMP_NUM_THREADS")


def call(task: tuple):
    """A task that is a function and its argument, so that one run of processes serves several tests."""
    fn, argument = task
    return fn(argument)


class TwoLists:
    """A worker stays with its list."""

    def __init__(self, lists):
        self.lists = [list(tasks) for tasks in lists]
        self.first = iter(range(len(lists)))
        self.list_of = {task: number for number, tasks in enumerate(lists) for task in tasks}

    def next(self, previous):
        number = next(self.first, None) if previous is None else self.list_of[previous]
        return self.lists[number].pop(0) if number is not None and self.lists[number] else None


SQUARES = [(square, x) for x in range(7)]
FACTS = [[(process_facts, x) for x in numbers] for numbers in ((0, 1, 2), (3, 4, 5))]
FAILING = [(raise_two, 1), (unpicklable, 1)]


@pytest.fixture(scope="module")
def in_processes():
    """The outcomes by task, and the progress reports, of one run of two processes."""
    heard = []
    with progress.listen(lambda *report: heard.append(report)):
        found = list(ProcessWorkers(2).run(call, TwoLists([FACTS[0] + SQUARES, FACTS[1] + FAILING])))
    assert len(found) == len(SQUARES) + 6 + len(FAILING)
    return {outcome.task: outcome for outcome in found}, heard


@pytest.fixture(params=["in place", "executor"])
def workers(request):
    if request.param == "executor":
        with ThreadPoolExecutor(2) as pool:
            yield ExecutorWorkers(pool, lambda: 2, shares_memory=True)
    else:
        yield SerialWorkers()


def test_every_task_is_answered_once(workers):
    found = list(workers.run(square, FifoQueue(iter(range(7)))))
    assert len(found) == 7
    check_squares({outcome.task: outcome for outcome in found})


def test_every_task_is_answered_once_by_processes(in_processes):
    check_squares({x: in_processes[0][square, x] for x in range(7)})


def check_squares(outcomes):
    assert {task: outcome.result for task, outcome in outcomes.items() if task != 3} == {
        x: x * x for x in (0, 1, 2, 4, 5, 6)
    }
    assert outcomes[3].result is None
    assert isinstance(outcomes[3].error, rw.InputError)


def test_no_tasks(workers):
    for each in (workers, ProcessWorkers(2)):
        assert list(each.run(square, FifoQueue([]))) == []


def test_a_dead_process_loses_its_task_only():
    tasks = [(kill_three, 2), (kill_three, 3), (die_while_answering, 0), (die_while_answering, 1), (kill_three, 4)]
    outcomes = {outcome.task: outcome for outcome in ProcessWorkers(2).run(call, FifoQueue(tasks))}
    assert [outcomes[tasks[i]].result for i in (0, 2, 4)] == [4, b"", 16]
    assert isinstance(outcomes[kill_three, 3].error, WorkerDiedError)
    assert "SIGKILL" in str(outcomes[kill_three, 3].error)
    answer = outcomes[die_while_answering, 1].result
    assert answer is None or len(answer) == 400_000_000


def test_an_error_that_cannot_be_sent_is_told(in_processes):
    error = in_processes[0][raise_two, 1].error
    assert isinstance(error, RuntimeError)
    assert str(error) == "Two: 1 and 1"


def test_an_answer_that_cannot_be_sent_is_an_error(in_processes):
    assert isinstance(in_processes[0][unpicklable, 1].error, TypeError)


def test_tasks_run_in_spawned_processes_with_one_thread(in_processes):
    facts = [in_processes[0][task].result for tasks in FACTS for task in tasks]
    assert all(fact[1:] == (True, "1") for fact in facts)
    assert os.getpid() not in {fact[0] for fact in facts}


def test_progress_crosses_processes(in_processes):
    assert ("work", 1, 2) in in_processes[1]


def test_stopping_early_leaves_no_process():
    for _ in ProcessWorkers(2).run(square, FifoQueue(range(100))):
        break
    assert multiprocessing.active_children() == []


def test_a_worker_is_given_what_suits_it(in_processes):
    by_list = [{in_processes[0][task].result[0] for task in tasks} for tasks in FACTS]
    assert [len(processes) for processes in by_list] == [1, 1]
    assert by_list[0] != by_list[1]


def test_what_a_user_may_say():
    with open_workers(3) as chosen:
        assert chosen == ProcessWorkers(3)
    with open_workers(rw.Serial()) as chosen:
        assert chosen == SerialWorkers()
    with open_workers(rw.Threads(2)) as chosen:
        assert sorted(outcome.result for outcome in chosen.run(square, FifoQueue([1, 2]))) == [1, 4]
    for wrong in (0, -1, "two"):
        with pytest.raises(rw.InputError, match="workers"), open_workers(wrong):
            pass


class Counted:
    """A queue that knows how many of its tasks are not answered yet."""

    def __init__(self, n: int) -> None:
        self.left, self.out, self.most, self.returned = list(range(n)), 0, 0, []

    def next(self, previous: int | None) -> int | None:
        if previous is not None:
            self.returned.append(previous)
        if not self.left:
            return None
        self.out += 1
        self.most = max(self.most, self.out)
        return self.left.pop()


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("make", [rw.Threads, ThreadPoolExecutor])
def test_no_more_tasks_are_taken_than_there_are_workers(make, n):
    queue = Counted(40)
    with open_workers(make(n)) as workers:
        for outcome in workers.run(square, queue):
            assert outcome.task not in queue.left
            queue.out -= 1  # the caller has it
    assert queue.most == n
    assert len(set(queue.returned)) >= 40 - n + 1  # what a worker did last is said when it gets another


def test_answers_that_nobody_takes_are_few():
    begun = []
    with open_workers(rw.Threads(2)) as workers:
        outcomes = workers.run(begun.append, FifoQueue(range(50)))
        next(outcomes)
        time.sleep(0.2)
        assert len(begun) <= 3
        assert len(list(outcomes)) == 49


class Dies(Executor):
    """An executor whose workers go away after some tasks."""

    def __init__(self, after: int, how: str) -> None:
        self.left, self.how = after, how

    def submit(self, fn, *arguments):
        self.left -= 1
        future: Future = Future()
        if self.left >= 0:
            future.set_result(fn(*arguments))
        elif self.how == "refuses":
            raise OSError("the connection is closed")
        elif self.how == "cancels":
            future.cancel()
            future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("how", ["refuses", "cancels"])
def test_workers_that_go_away_are_told_in_one_error(how):
    outcomes = []
    with pytest.raises(WorkersLostError, match="the workers are gone"), open_workers(Dies(5, how)) as workers:
        outcomes.extend(workers.run(abs, FifoQueue(range(9))))
    assert sorted(outcome.result for outcome in outcomes) == list(range(len(outcomes)))


def test_a_broken_pool_of_processes_is_told_in_one_error():
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, mp_context=context) as pool,
        open_workers(pool) as workers,
        pytest.raises(WorkersLostError, match="BrokenProcessPool"),
    ):
        list(workers.run(kill_three, FifoQueue([3])))


def _kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def _exit_self():
    os._exit(3)


class EndsItsProcess:
    """A function whose process ends when it receives it."""

    def __init__(self, how) -> None:
        self.how = how

    def __reduce__(self):
        return self.how, ()

    def __call__(self, x: int) -> int:
        return x


@pytest.mark.parametrize(
    ("how", "told"), [(_kill_self, "SIGKILL before it began"), (_exit_self, "status 3 before it began")]
)
def test_a_process_that_ends_at_its_start_is_not_blamed_on_a_missing_guard(how, told):
    outcomes = list(ProcessWorkers(1).run(EndsItsProcess(how), FifoQueue(range(2))))
    assert sorted(outcome.task for outcome in outcomes) == [0, 1]
    for outcome in outcomes:
        assert isinstance(outcome.error, WorkerDiedError)
        assert told in str(outcome.error)
        assert "__main__" not in str(outcome.error)


def test_a_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from rankwright.runtime.workers import ProcessWorkers\n"
        f"{inspect.getsource(FifoQueue)}print(list(ProcessWorkers(1).run(abs, FifoQueue([1]))))\n"
    )
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert 'if __name__ == "__main__":' in found.stderr.splitlines()[-1]
    assert found.stderr.count("Traceback") == 1  # not the worker's as well


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_follow_a_killed_parent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import os, time\nfrom rankwright.runtime.workers import ProcessWorkers\n{inspect.getsource(FifoQueue)}"
        "def work(x):\n    time.sleep(60 * (x > 1))\n    return os.getpid()\n"
        "if __name__ == '__main__':\n"
        "    for outcome in ProcessWorkers(2).run(work, FifoQueue(range(9))):\n        print(outcome.result, flush=True)\n"
    )
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = {int(parent.stdout.readline()) for _ in range(2)}
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(_alive(child) for child in children):
        time.sleep(0.02)
    assert not any(_alive(child) for child in children)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
