"""A backend whose parts are out of the caller's reach trains the same models, bit for bit."""

import pickle
import re
import warnings
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankwright as rw
from rankwright.rankers import RANKERS
from rankwright.runtime.backends import Shards, count_shards


@dataclass(frozen=True, eq=False)
class Remote:
    """A pretended cluster: parts lie pickled under numbers, and whatever travels is pickled."""

    stored: dict[int, bytes] = field(default_factory=dict)
    numbers: Any = field(default_factory=count)

    def map(self, fn, items):
        return map(fn, items)

    def each(self, fn, items):
        return [fn(item) for item in items]

    def scatter(self, queries):
        return self.distribute(queries.shards(count_shards(queries.n_docs)))

    def distribute(self, parts):
        return Shards(tuple(self._store(pickle.dumps(part)) for part in parts))

    def apply(self, fn, shards, *arguments):
        return Shards(tuple(self._store(result) for result in self._run(fn, shards, arguments)))

    def gather(self, fn, shards, *arguments):
        return [pickle.loads(result) for result in self._run(fn, shards, arguments)]

    def sum(self, fn, shards, *arguments):
        return reduce(add, self.gather(fn, shards, *arguments))

    def concat(self, fn, shards, *arguments):
        return np.concatenate(self.gather(fn, shards, *arguments))

    def __deepcopy__(self, memo):
        return self

    def _store(self, result):
        number = next(self.numbers)
        self.stored[number] = result
        return number

    def _run(self, fn, shards, arguments):
        message = pickle.dumps((fn, [None if isinstance(each, Shards) else each for each in arguments]))
        for i, number in enumerate(shards.handles):
            work, own = pickle.loads(message)
            for at, argument in enumerate(arguments):
                if isinstance(argument, Shards):
                    own[at] = pickle.loads(self.stored[argument.handles[i]])
            yield pickle.dumps(work(pickle.loads(self.stored[number]), *own))


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
    assert opened == ["runtime/backends.py"]
