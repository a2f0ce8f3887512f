"""A backend whose parts are out of the caller's reach trains the same models, bit for bit."""

import re
import warnings
from pathlib import Path

import pytest
from tests.remote_backend import Remote

import rankwright as rw
from rankwright.rankers import RANKERS

ON_SHARDS = [ranker for ranker in RANKERS if ranker not in (rw.BayesRank, rw.NeuralRanker)]  # those train on batches
BUDGETS = ("n_estimators", "n_estimators", "max_iter", "n_restarts")


@pytest.mark.parametrize("ranker", ON_SHARDS, ids=lambda cls: cls.__name__)
def test_training_on_parts_out_of_reach_gives_the_same_bits(ranker):
    train = rw.make_queries(280, n_docs=30, n_features=4, random_state=0)
    remote = Remote()
    assert len(remote.scatter(train)) > 1

    def scores(backend):
        small = {name: 2 for name in BUDGETS if name in ranker().get_params()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two rounds do not converge
            return ranker(measure="ndcg@5", backend=backend, **small).fit(train).predict(train)

    assert scores(remote).tobytes() == scores(rw.Serial()).tobytes()


def test_shards_are_opened_by_the_backend_only():
    root = Path(rw.__file__).parent
    sources = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}
    opened = [name for name, text in sources.items() if re.search(r"\.handles\b|\bShards\(", text)]
    assert opened
    assert all(name.startswith("runtime/") for name in opened)
