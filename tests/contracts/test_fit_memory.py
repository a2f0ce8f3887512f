"""Fits from data on disk: the same bits as in memory, within the estimated memory, or an error before they start."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import rankwright as rw
from rankwright.basics.errors import InputError
from rankwright.rankers import RANKERS, find_ranker, fit_memory

QUICK = {"n_estimators": 3, "max_iter": 2, "n_restarts": 1, "max_inner_iter": 2}
FROM_DISK = ("Regression", "ListNet", "RankBoost", "AdaRank", "SingleFeature", "RankSVM")


def make(name: str) -> rw.Ranker:
    kind = find_ranker(name)
    return kind(**{key: value for key, value in QUICK.items() if key in kind().get_params()})


@pytest.fixture
def mapped(tmp_path):
    """The same documents in memory and in a file that is mapped for reading."""
    queries = rw.make_queries(40, n_docs=10, n_features=6, random_state=0)
    np.save(tmp_path / "X.npy", queries.X)
    X = np.asarray(np.load(tmp_path / "X.npy", mmap_mode="r"))
    return queries, rw.Queries(X, queries.y, queries.indptr, queries.qid)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FROM_DISK, "MART"])
def test_documents_on_disk_train_the_same_model(name, mapped):
    in_memory, on_disk = (make(name).fit(each).predict(each) for each in mapped)
    assert in_memory.tobytes() == on_disk.tobytes()


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
def test_a_fit_that_needs_more_memory_than_is_free_is_refused_before_it_starts(ranker, mapped, monkeypatch):
    monkeypatch.setattr(fit_memory, "_LITTLE", 0)
    monkeypatch.setattr(fit_memory, "read_available_memory", lambda: 1_000_000)
    monkeypatch.setattr(ranker, "_fit", lambda *_: pytest.fail("training started"))
    with pytest.raises(InputError, match=rf"{ranker.__name__} needs about \d+ MB of memory .* 1 MB are free"):
        ranker().fit(mapped[1])


def test_the_error_names_rankers_and_parameters_that_need_less(monkeypatch):
    monkeypatch.setattr(fit_memory, "read_available_memory", lambda: 2_000_000_000)
    size = fit_memory.DataSize(7_000_000, 136, 60_000)
    with pytest.raises(InputError, match=r"With scale='standard' it needs about 1.3 GB. .*Regression \(734 MB\), "):
        fit_memory.check_memory(rw.ListNet(scale="query"), size)
    fit_memory.check_memory(rw.ListNet(), size)


_UNDER_LIMIT = """
import hashlib, json, resource, sys, warnings
import numpy as np, rankwright as rw
from rankwright.rankers import find_ranker
warnings.simplefilter("ignore")
name, folder, params, limit = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
X = np.asarray(np.load(f"{folder}/X.npy", mmap_mode="r"))
y, indptr = np.load(f"{folder}/y.npy"), np.load(f"{folder}/indptr.npy")
queries = rw.Queries(X, y, indptr, np.arange(len(indptr) - 1))
few = queries.slice(0, 5)
find_ranker(name)(**params, backend=rw.Threads(2)).fit(few).predict(few)  # loads code
if limit:
    text = open("/proc/self/status").read()
    used = int(text.split("VmData:")[1].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + limit, used + limit))
else:
    queries = queries.with_X(X.copy())
ranker = find_ranker(name)(**params, backend=rw.Threads(2)).fit(queries)
print(hashlib.sha256(ranker.predict(queries).tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mapped memory elsewhere")
@pytest.mark.parametrize("name", [*FROM_DISK, "LinearRanker", "RankNet", "SVMMap"])
def test_fits_take_no_more_memory_than_estimated_and_less_than_the_data(name, tmp_path_factory):
    folder, n, d = tmp_path_factory.getbasetemp(), 600_000, 136
    if not (folder / "indptr.npy").exists():
        rng = np.random.default_rng(0)
        X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(n, d))
        for start in range(0, n, 20_000):
            X[start : start + 20_000] = rng.normal(size=(20_000, d))
        y = np.clip(np.round(X[:, 0] + rng.normal(size=n)), 0, 4).astype(np.float64)
        np.save(folder / "y.npy", y)
        np.save(folder / "indptr.npy", np.arange(0, n + 1, 100))
    params = json.dumps({key: value for key, value in make(name).get_params().items() if key in QUICK})

    def run(limit: int) -> str:
        command = [sys.executable, "-c", _UNDER_LIMIT, name, str(folder), params, str(limit)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    limit = make(name).estimate_memory(n, d, n // 100) + (4 << 20)  # what the process itself takes meanwhile
    assert limit < 0.6 * 4 * n * d
    assert run(limit) == run(0)
