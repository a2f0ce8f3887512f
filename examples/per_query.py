"""Where a model wins and loses: the difference of two models on every query, with a paired test of the mean."""

import numpy as np
import plotly.graph_objects as go

import rankwright as rw


def main() -> go.Figure:
    queries = rw.make_queries(300, kind="mixed", random_state=0)  # your data: rw.read("train.parquet")
    train, valid, test = rw.split_folds(queries, 3, random_state=0)[0]
    models = {
        "linear": rw.ListNet(measure="ndcg@10").fit(train, valid=valid),
        "stumps": rw.RankBoost(measure="ndcg@10").fit(train, valid=valid),
    }
    results = rw.compare_scores(models, test, ["ndcg@10"])
    [found] = results.compare()
    print(f"{found.second} - {found.first}: {found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]")
    print(f"{found.wins} wins, {found.ties} ties, {found.losses} losses; p = {found.p.randomisation:.3f}")

    linear, stumps = results.values()
    difference = np.sort(stumps - linear)[::-1]
    figure = go.Figure(go.Bar(x=np.arange(1, len(difference) + 1), y=difference, marker={"line": {"width": 0}}))
    figure.add_hline(y=found.difference, line={"dash": "dash"}, annotation_text=f"mean {found.difference:+.3f}")
    return figure.update_layout(xaxis_title="test queries, by difference", yaxis_title="stumps minus linear", bargap=0)


if __name__ == "__main__":
    main().show()
