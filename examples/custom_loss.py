"""A loss of your own: the same function trains a linear model and trees, beside losses that are built in."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

import rankwright as rw

Floats = NDArray[np.float64]


def compute_huber_loss(scores: Floats, queries: rw.Queries) -> tuple[float, Floats]:
    """Return the loss of the scores, and its derivative by each score."""
    rest = scores - queries.y
    loss = np.where(abs(rest) < 1, rest**2 / 2, abs(rest) - 0.5)
    return float(loss.sum()), np.clip(rest, -1, 1)


def main() -> go.Figure:
    train, valid, test = rw.split_folds(rw.make_queries(200, random_state=0), 5, random_state=0)[0]
    losses = {"your own": compute_huber_loss, "squares": "squares", "ListNet's": "top_one", "RankNet's": "logistic"}
    figure = go.Figure()
    linear = [rw.LinearRanker(objective=loss, measure="ndcg@10").fit(train, valid=valid) for loss in losses.values()]
    trees = [rw.BoostedTrees(objective=loss, n_estimators=60).fit(train, valid=valid) for loss in losses.values()]
    for name, rankers in (("linear", linear), ("trees", trees)):
        values = [ranker.score(test) for ranker in rankers]
        print(f"{name:<7}" + "".join(f" {loss}: {value:.4f} " for loss, value in zip(losses, values, strict=True)))
        figure.add_bar(x=list(losses), y=values, name=name)
    return figure.update_layout(yaxis_title="NDCG@10 on test queries", barmode="group")


if __name__ == "__main__":
    main().show()
