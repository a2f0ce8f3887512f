"""What a model learned: the effect of each feature on the score, as a step function."""

import plotly.graph_objects as go

import rankwright as rw


def main() -> go.Figure:
    queries = rw.make_queries(150, kind="mixed", missing=0.05, random_state=0)  # values may be missing
    train, valid, test = rw.split_folds(queries, 5, random_state=0)[0]
    ranker = rw.RankBoost(measure="ndcg@10", n_estimators=200).fit(train, valid=valid)
    print(rw.evaluate(ranker, test, ["ndcg@10"]))
    effects = rw.explain(ranker)
    print(effects)

    table = effects.to_pandas()
    figure = go.Figure()
    for effect in list(effects)[:4]:
        values = train.X[:, int(effect.name) - 1]
        low, high = float(min(values[values == values])), float(max(values[values == values]))
        rows = table[(table["feature"] == effect.name) & ~table["missing"]]
        edges = rows["from"].clip(low, high)
        place = [*((edges - low) / (high - low)), 1.0]
        figure.add_scatter(
            x=place, y=[*rows["value"], rows["value"].iloc[-1]], name=f"feature {effect.name}", line={"shape": "hv"}
        )
    return figure.update_layout(
        xaxis_title="value, from the lowest to the highest in the data", yaxis_title="effect on the score"
    )


if __name__ == "__main__":
    main().show()
