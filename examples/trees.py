"""LambdaMART on a measure: trained, its trees weighted anew by exact line searches, saved as JSON and by LightGBM."""

import tempfile
from pathlib import Path

import plotly.graph_objects as go

import rankwright as rw


def main() -> go.Figure:
    queries = rw.make_queries(300, n_docs=30, random_state=0)  # your data: rw.read_letor("train.txt")
    train, valid, test = (queries.take(part) for part in (range(180), range(180, 240), range(240, 300)))

    ranker = rw.LambdaMART(measure="ndcg@10", num_leaves=4, early_stopping_rounds=30).fit(train, valid=valid)
    print(f"{len(ranker.scorer_)} trees: {rw.evaluate(ranker, test, ['ndcg@10', 'map'])}")
    best = ranker.feature_importances_.argmax()
    print(f"feature {best + 1} has {ranker.feature_importances_[best]:.0%} of the gain")

    polished = rw.polish_model(ranker, train, "ndcg@10", valid=valid)  # the ranker itself where nothing is gained
    for name, each in (("valid", valid), ("test", test)):  # only the first cannot fall
        print(f"{name}: {rw.NDCG(10).mean(each, ranker.predict(each)):.4f} -> ", end="")
        print(f"{rw.NDCG(10).mean(each, polished.predict(each)):.4f} polished")

    folder = Path(tempfile.mkdtemp())
    rw.save(polished, folder / "model.json")
    model = rw.load(folder / "model.json")  # JSON: loading runs no code, predicting needs no LightGBM
    ranker.booster_.save_model(folder / "model.txt")  # LightGBM's own
    query, documents = next(iter(model.rank(test, k=3).items()))
    print(f"query {query}: {', '.join(documents)}")
    return draw_importance(ranker)


def draw_importance(ranker: rw.LambdaMART) -> go.Figure:
    gains = ranker.feature_importances_
    order = gains.argsort()[-12:]
    figure = go.Figure(go.Bar(x=gains[order], y=[f"feature {i + 1}" for i in order], orientation="h"))
    return figure.update_layout(xaxis_title="share of the gain of all splits", xaxis_tickformat=".0%")


if __name__ == "__main__":
    main().show()
