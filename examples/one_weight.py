"""Why line searches are exact: along one weight, NDCG is a step function, on which a gradient says nothing."""

import numpy as np
import plotly.graph_objects as go

import rankwright as rw


def main() -> go.Figure:
    train = rw.make_queries(20, random_state=0)
    ranker = rw.Regression(measure="ndcg@10").fit(train)
    column = int(np.abs(ranker.coef_ * train.X.std(axis=0)).argsort()[-2])
    scores, step = ranker.predict(train), train.X[:, column] / train.X[:, column].std()

    weights = np.linspace(-0.6, 0.6, 1201)
    measure = rw.NDCG(10)
    values = [measure.mean(train, scores + weight * step) for weight in weights]
    best = int(np.argmax(values))
    print(f"at the weights of the regression: {measure.mean(train, scores):.4f}")
    print(f"best of {len(weights)} points on one weight: {values[best]:.4f}")

    searched = rw.DirectRank(measure="ndcg@10", n_restarts=1, random_state=0).fit(train)
    print(f"all weights by exact line searches: {searched.score(train):.4f}")

    figure = go.Figure(go.Scatter(x=weights, y=values, mode="lines", line={"shape": "hv"}, name="NDCG@10"))
    figure.add_scatter(x=[0.0], y=[measure.mean(train, scores)], mode="markers", name="regression", marker={"size": 11})
    figure.add_scatter(x=[weights[best]], y=[values[best]], mode="markers", name="best point", marker={"size": 11})
    return figure.update_layout(xaxis_title=f"change of the weight of feature {column + 1}", yaxis_title="NDCG@10")


if __name__ == "__main__":
    main().show()
