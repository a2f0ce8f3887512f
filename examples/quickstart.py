"""From judged documents to a saved model: train on a measure, choose on validation queries, report on test queries."""

import tempfile
from pathlib import Path

import rankwright as rw


def main() -> None:
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


if __name__ == "__main__":
    main()
