"""A backend whose parts are out of the caller's reach, and queries whose features are."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from operator import add
from typing import Any

import numpy as np

import rankwright as rw
from rankwright.runtime.backends import CarriedValues, Shards, count_shards


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

    def fold(self, fn, shards, values):
        for number in shards.handles:
            [values] = self.gather(CarriedValues(fn, values), Shards((number,)))
        return values

    n_workers = 2

    def exchange(self, take, join, shards, parts):
        def make(part):
            return join(
                [take(pickle.loads(self.stored[shards.handles[at]]), what) for at, what in part.pieces], part.argument
            )

        return self.distribute(make(part) for part in parts)

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


class SealedFeatures:
    """A matrix of which only the size can be seen: neither values nor columns; rows can be chosen unseen."""

    def __init__(self, X):
        self._X = X
        self.shape, self.dtype, self.nbytes, self.ndim, self.size = X.shape, X.dtype, X.nbytes, X.ndim, X.size

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, at):
        raise AssertionError("features were opened outside a shard")

    def __array__(self, *_, **__):
        raise AssertionError("features were opened outside a shard")


class SealedQueries(rw.Queries):
    """Queries whose features are with a pretended cluster: labels are here, features cannot be opened."""

    __slots__ = ("backend", "inner")
    _MOST_ROWS = 2_100  # that may be read: a sample

    def __init__(self, inner, backend):
        super().__init__(**inner.grouped()._parts() | {"X": SealedFeatures(inner._X)})
        object.__setattr__(self, "inner", inner.grouped())
        object.__setattr__(self, "backend", backend)

    def __reduce__(self):
        raise AssertionError("features were sent as a whole")

    def replace(self, **parts):
        return super().replace(**parts) if "X" in parts else SealedQueries(self.inner.replace(**parts), self.backend)

    def map_X(self, fn, backend=None):
        return SealedQueries(self.inner.map_X(pickle.loads(pickle.dumps(fn))), self.backend)

    def compute_scores(self, scorer):
        return self.inner.compute_scores(pickle.loads(pickle.dumps(scorer)))

    def read_rows(self, rows):
        assert len(rows) <= self._MOST_ROWS, "too many rows were read"
        return self.inner.read_rows(rows)

    def shards(self, n):
        return self.inner.shards(n)

    def _part(self, rows, indptr, at):
        return SealedQueries(self.inner._part(rows, indptr, at), self.backend)
