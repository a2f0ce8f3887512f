"""Networks on a GPU learn what they learn on a CPU. Skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rankwright as rw
from rankwright import objectives as on
from rankwright.optimisers.step_rules import Adam
from rankwright.optimisers.torch_modules import build_network
from rankwright.optimisers.torch_trainer import TorchTrainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")

OBJECTIVES = [
    on.Squares(),
    on.TopOne(),
    on.Likelihood(),
    on.Cosine(),
    on.Logistic("query"),
    on.Fidelity(),
    on.Hinge("query"),
    on.SquaredHinge("query"),
    on.Exponential("query"),
    on.Lambdas("ndcg@10"),
    on.Lambdas("map"),
    on.Lambdas("err"),
    on.SoftPositions("ndcg@50"),
    on.SoftPositions("map"),
    on.SoftPositions("err"),
    on.SigmoidRanks("ndcg"),
    on.SigmoidRanks("map"),
    on.NoisyRanks("ndcg@10", 1.0),
    on.ExpectedMeasure("ndcg@2"),
]


@pytest.fixture(scope="module")
def queries() -> rw.Queries:
    return rw.scale_features(rw.make_queries(100, n_docs=30, n_features=20, random_state=0), "standard")


def trained(queries: rw.Queries, objective: object, device: str, n_epochs: int = 2) -> tuple[np.ndarray, float]:
    trainer = TorchTrainer(
        build_network(20, (16,), "tanh", 0),
        queries,
        objective,
        0.1,
        batch_size=16,
        device=device,
        backend=rw.Serial(),
    )
    adam = Adam(1e-4, trainer.w)
    for number in range(n_epochs):
        loss = trainer.epoch(adam, (0, number))
    return trainer.array(trainer.w), loss


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_a_gpu_takes_the_same_steps(queries, objective):
    (w, loss), (theirs, its_loss) = (trained(queries, objective, device) for device in ("cpu", "cuda"))
    assert its_loss == pytest.approx(loss, rel=1e-4)
    # Adam's steps are of the size of the rate whatever the gradient: where that is nearly 0, its sign is chance
    assert np.mean(np.abs(w - theirs) > 1e-5) < 0.02
    assert np.abs(w - theirs).max() < 5e-3


@pytest.mark.parametrize("measure", ["ndcg@10", "map", "err"])
def test_samples_on_a_gpu_are_unbiased(queries, measure):
    """Losses of many epochs at a rate of nearly 0 are estimates of one number."""
    objective = on.ExpectedMeasure(measure, 8)
    trainers = {
        device: TorchTrainer(
            build_network(20, (16,), "tanh", 0),
            queries,
            objective,
            0.0,
            batch_size=16,
            device=device,
            backend=rw.Serial(),
        )
        for device in ("cpu", "cuda")
    }
    losses = {
        device: [trainer.epoch(Adam(1e-12, trainer.w), (1, number)) for number in range(40)]
        for device, trainer in trainers.items()
    }
    error = np.hypot(*(np.std(values) / np.sqrt(len(values)) for values in losses.values()))
    assert abs(np.mean(losses["cpu"]) - np.mean(losses["cuda"])) < 4.0 * error
    assert len(set(losses["cuda"])) > 30  # fresh samples in every epoch


def test_a_ranker_trains_on_a_gpu_and_predicts_without(queries):
    ranker = rw.LambdaRank(hidden=(16,), training={"device": "cuda", "n_epochs": 30}).fit(queries, valid=queries)
    assert ranker.score(queries) > rw.LambdaRank(hidden=(16,), training={"n_epochs": 1}).fit(queries).score(queries)
    kept = next(row for row in ranker.history_ if row.get("kept"))
    assert ranker.score(queries) == pytest.approx(kept["valid"], abs=1e-3)


def test_a_seed_gives_the_same_samples_again(queries):
    runs = [trained(queries, on.ExpectedMeasure("ndcg@10", 4), "cuda")[1] for _ in range(2)]
    assert runs[0] == pytest.approx(runs[1], rel=1e-5)
