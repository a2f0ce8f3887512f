"""From judged documents to a saved model: train on a measure, choose on validation queries, report on test queries."""

import tempfile
from pathlib import Path

import plotly.graph_objects as go

import rankwright as rw


def main() -> go.Figure:
    queries = rw.make_queries(300, n_docs=30, random_state=0)  # your data: rw.read_letor("train.txt")
    train, valid, test = (queries.take(part) for part in (range(180), range(180, 240), range(240, 300)))

    ranker = rw.AdaRank(measure="ndcg@10").fit(train, valid=valid)
    print(rw.evaluate(ranker, test, ["ndcg@1", "ndcg@10", "map"]))

    best = rw.select(rw.Regression(measure="ndcg@10"), {"alpha": [0.01, 0.1, 1, 10, 100]}, train, valid)
    print(f"alpha={best.alpha}: {best.score(test):.4f}")

    path = Path(tempfile.mkdtemp()) / "model.json"
    rw.save(ranker, path)
    model = rw.load(path)  # JSON: loading runs no code
    query, documents = next(iter(model.rank(test, k=3).items()))
    print(f"query {query}: {', '.join(documents)}")
    return draw_learning_curve(ranker)


def draw_learning_curve(ranker: rw.AdaRank) -> go.Figure:
    rounds = [row["round"] for row in ranker.history_]
    figure = go.Figure()
    for name, part in (("training queries", "train"), ("validation queries", "valid")):
        figure.add_scatter(x=rounds, y=[row[part] for row in ranker.history_], name=name, line={"shape": "hv"})
    kept = next(row for row in ranker.history_ if row.get("kept"))
    figure.add_scatter(x=[kept["round"]], y=[kept["valid"]], name="the model", mode="markers", marker={"size": 11})
    return figure.update_layout(xaxis_title="round of AdaRank", yaxis_title="NDCG@10")


if __name__ == "__main__":
    main().show()
