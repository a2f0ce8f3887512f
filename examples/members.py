"""Members of a blend: each alone, and all together, on queries that neither models nor weights saw."""

import plotly.graph_objects as go

import rankwright as rw


def main() -> go.Figure:
    queries = rw.make_queries(250, kind="mixed", random_state=0)
    train, valid, test = rw.split_folds(queries, 5, random_state=0)[0]
    members = [
        rw.Regression(),
        rw.ListNet(),
        rw.RankBoost(n_estimators=200),
        rw.LambdaMART(n_estimators=80, num_leaves=4),
    ]
    blend = rw.Blend(rankers=members, measure="ndcg@10").fit(train, valid=valid)
    print(f"the blend: {blend.estimate_}; on test queries {blend.score(test):.4f}")

    rows = [(row["member"], row["mean"], row["low"], row["high"], row["weight"]) for row in blend.members_]
    for name, mean, low, high, weight in rows:
        print(f"{name:<11} {mean:.4f} [{low:.4f}, {high:.4f}]  weight {weight:.2f}")
    rows = [*rows[::-1], ("the blend", *blend.estimate_, 1.0)]
    names, means, lows, highs, _ = zip(*rows, strict=True)
    above = [high - mean for high, mean in zip(highs, means, strict=True)]
    below = [mean - low for low, mean in zip(lows, means, strict=True)]
    error = {"type": "data", "array": above, "arrayminus": below}
    figure = go.Figure(go.Scatter(x=means, y=names, mode="markers", error_x=error, marker={"size": 11}))
    return figure.update_layout(xaxis_title="NDCG@10, 95% interval")


if __name__ == "__main__":
    main().show()
