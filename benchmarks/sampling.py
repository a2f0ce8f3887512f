"""Expected measures under Plackett-Luce: the variance of sampled gradients against REINFORCE's, and what they cost."""

from __future__ import annotations

from functools import partial

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, publish
from benchmarks.timing import medians, take_turns
from rankwright.basics.array_types import Floats
from rankwright.objectives import ExpectedMeasure
from rankwright.objectives.listwise_objectives import draw_gumbel_noise

MEASURES = ("ndcg@10", "ndcg", "map", "err")
LENGTHS, SEEDS, SAMPLES, COPIES = (20, 35, 50), 5, 8, 400
SHAPE = (6_000, 120)


def reinforce(measure: str, y: Floats, s: Floats, rng: np.random.Generator, baseline: bool) -> Floats:
    """Gradients of E[measure] by whole rankings, a row for each mean of ``SAMPLES``."""
    n, many = len(y), COPIES * SAMPLES
    keys = s + draw_gumbel_noise(rng, many, n)
    queries = rw.Queries.from_arrays(np.zeros((many * n, 1)), np.tile(y, many), group=[n] * many)
    values = rw.parse_measure(measure).values(queries, keys.ravel()).reshape(COPIES, SAMPLES)
    if baseline:
        values = values - (values.sum(axis=1, keepdims=True) - values) / (SAMPLES - 1)
    order = np.argsort(-keys, axis=1)
    weights = np.exp(s - s.max())[order]
    left = weights[:, ::-1].cumsum(axis=1)[:, ::-1]
    slopes = np.empty((many, n))
    np.put_along_axis(slopes, order, 1.0 - weights * (1.0 / left).cumsum(axis=1), axis=1)
    found: Floats = (values.reshape(many, 1) * slopes).reshape(COPIES, SAMPLES, n).mean(axis=1)
    return found


def ours(measure: str, y: Floats, s: Floats, rng: np.random.Generator) -> Floats:
    """The same by the objective."""
    queries = rw.Queries.from_arrays(np.zeros((COPIES * len(y), 1)), np.tile(y, COPIES), group=[len(y)] * COPIES)
    gradient = ExpectedMeasure(measure, SAMPLES).prepare(queries)(np.tile(s, COPIES), rng).gradient
    return -gradient.reshape(COPIES, len(y))


def factors(measure: str, good: bool) -> tuple[float, float]:
    """Variance of REINFORCE over ours, without and with a baseline: geometric means over lists."""
    found = []
    for length in LENGTHS:
        for seed in range(SEEDS):
            rng = np.random.default_rng((length, seed))
            y = rng.choice(3, length, p=(0.7, 0.2, 0.1)).astype(float)
            y[0] = 1.0
            s = rng.normal(size=length) + (3.0 * y if good else 0.0)
            own = ours(measure, y, s, rng).var(axis=0).sum()
            found.append([reinforce(measure, y, s, rng, base).var(axis=0).sum() / own for base in (False, True)])
    plain, based = np.exp(np.log(found).mean(axis=0)).tolist()
    return plain, based


def measure_variance() -> Table:
    """Against plain REINFORCE, and against that with the mean of the other samples for a baseline."""
    rows = []
    for name in MEASURES:
        for good in (False, True):
            plain, based = factors(name, good)
            scores = "scores that rank well" if good else "random scores"
            rows.append(Row(f"{name}, {scores}", f"{plain:,.0f} times", f"{based:.1f} times with a baseline"))
    notes = [
        f"Variance of REINFORCE's gradient over that of ours, {SAMPLES} samples each, summed over documents: geometric "
        f"means over {len(LENGTHS) * SEEDS} lists of {LENGTHS[0]} to {LENGTHS[-1]} documents.",
        "The baseline is the mean value of the other samples.",
    ]
    return Table("Variance of sampled gradients", rows, notes)


def measure_cost() -> Table:
    """Of an evaluation with its gradient, on one thread."""
    n_queries, length = SHAPE
    rng = np.random.default_rng(0)
    y = rng.choice(5, n_queries * length, p=(0.55, 0.25, 0.13, 0.05, 0.02)).astype(float)
    queries = rw.Queries.from_arrays(np.zeros((len(y), 1)), y, group=[length] * n_queries)
    scores = rng.normal(size=len(y))
    objectives = {
        "ndcg@2, exact": ExpectedMeasure("ndcg@2"),
        "ndcg@10, 8 samples": ExpectedMeasure("ndcg@10", 8),
        "ndcg@50, 8 samples": ExpectedMeasure("ndcg@50", 8),
        "map, 8 samples": ExpectedMeasure("map", 8),
    }
    tasks = {name: partial(objective.prepare(queries), scores, rng) for name, objective in objectives.items()}
    for task in tasks.values():
        task()
    seconds = medians(take_turns(tasks))
    rows = [Row(name, f"{1e9 * each / len(y):.0f} ns a document ({each:.2f} s)") for name, each in seconds.items()]
    return Table(f"Expected measures of {n_queries:,} queries x {length} documents", rows, ["One thread."])


def measure() -> list[Table]:
    """Both."""
    return [measure_variance(), measure_cost()]


if __name__ == "__main__":
    publish([measure])
