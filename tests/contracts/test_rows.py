"""Whatever goes in or comes out by row is in the caller's order: every public function that has rows, on one data set
whose query ids are interleaved and on the same data with its rows adjacent."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankwright as rw
from rankwright.cli import run
from rankwright.rankers import RANKERS
from rankwright.rankers.trees.tree_ranker import TreeRanker


class Shuffled:
    """One data set twice: ``mixed`` has interleaved query ids, ``sorted`` adjacent ones; ``order`` leads from one to
    the other: row i of ``sorted`` is row ``order[i]`` of ``mixed``."""

    def __init__(self, n_queries: int = 40, seed: int = 0) -> None:
        made = rw.make_queries(n_queries, n_docs=9, n_features=6, random_state=seed)
        rng = np.random.default_rng(seed)
        names = np.array([f"q{q}" for q in made.row_qid])
        order = rng.permutation(made.n_docs)
        self.X, self.y, self.qid = made.X[order], made.y[order], names[order]
        self.docid = np.array([f"d{i}" for i in range(made.n_docs)])
        firsts = {name: i for i, name in reversed(list(enumerate(self.qid)))}
        self.order = np.array(sorted(range(made.n_docs), key=lambda i: (firsts[self.qid[i]], i)))
        self.weight = rng.uniform(0.5, 2.0, len(firsts))
        self.mixed = self.queries(np.arange(made.n_docs))
        self.sorted = self.queries(self.order)
        self.scores = rng.normal(size=made.n_docs)  # of the rows of ``mixed``

    def queries(self, rows: np.ndarray, named: bool = True) -> rw.Queries:
        docid = self.docid[rows] if named else None
        return rw.Queries.from_arrays(self.X[rows], self.y[rows], self.qid[rows], docid=docid, weight=self.weight)

    @property
    def table(self) -> pd.DataFrame:
        frame = pd.DataFrame(self.X, columns=[f"f{i}" for i in range(self.X.shape[1])])
        return frame.assign(grade=self.y, query=self.qid, doc=self.docid)


@pytest.fixture(scope="module")
def data() -> Shuffled:
    return Shuffled()


@pytest.fixture(scope="module")
def model(data) -> rw.Ranker:
    return rw.Regression().fit(data.sorted)


def test_a_queries_shows_the_callers_rows(data):
    mixed = data.mixed
    assert mixed.grouped() is not mixed
    assert data.sorted.grouped() is data.sorted
    assert mixed.X.tolist() == data.X.tolist()
    assert mixed.y.tolist() == data.y.tolist()
    assert mixed.docid.tolist() == data.docid.tolist()
    assert mixed.row_qid.tolist() == data.qid.tolist()
    assert mixed.qid.tolist() == data.sorted.qid.tolist() == list(dict.fromkeys(data.qid))
    assert mixed.grouped().X.tolist() == data.sorted.X.tolist()
    assert mixed.grouped().docid.tolist() == data.sorted.docid.tolist()
    other = mixed.with_X(data.X * 2)
    assert other.X.tolist() == (data.X * 2).tolist()
    assert other.grouped().X.tolist() == (data.sorted.X * 2).tolist()


def test_rows_that_are_not_adjacent_cannot_be_taken_for_adjacent_ones(data):
    for use in (lambda q: q.indptr, list, lambda q: q.slice(0, 1), lambda q: q.shards(2), rw.NDCG(10).prepare):
        with pytest.raises(rw.InputError, match=r"use queries.grouped\(\)"):
            use(data.mixed)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: r.__name__)
@pytest.mark.parametrize("scale", ["of the ranker", "query"])
def test_rankers(ranker, scale, data):
    fast = {"n_estimators": 5} if "n_estimators" in ranker().get_params() else {}
    fast |= {"scale": scale} if scale == "query" and "scale" in ranker().get_params() else {}
    fast |= {"training": {"n_epochs": 2}} if ranker is rw.NeuralRanker else {}
    fitted = ranker(**fast).fit(data.sorted, valid=data.sorted)
    expected = np.empty(len(data.y))
    expected[data.order] = fitted.predict(data.sorted)
    assert fitted.predict(data.mixed).tobytes() == expected.tobytes()
    assert fitted.predict(data.X, qid=data.qid).tobytes() == expected.tobytes()
    assert rw.evaluate(fitted, data.mixed, "map")["map"] == rw.evaluate(fitted, data.sorted, "map")["map"]
    assert rw.evaluate(expected, data.mixed, "map")["map"] == rw.evaluate(fitted, data.sorted, "map")["map"]
    assert fitted.score(data.mixed) == fitted.score(data.sorted)
    ranked, same = fitted.rank(data.mixed), fitted.rank(data.sorted)
    assert {q: d.tolist() for q, d in ranked.items()} == {q: d.tolist() for q, d in same.items()}
    if isinstance(fitted, TreeRanker):
        found, adjacent = fitted.contributions(data.mixed), fitted.contributions(data.sorted)
        assert found[data.order].tobytes() == adjacent.tobytes()
        assert fitted.contributions(data.X, qid=data.qid).tobytes() == found.tobytes()


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: r.__name__)
def test_rankers_train_on_interleaved_rows_as_on_adjacent_ones(ranker, data):
    """Grouping is stable, so a ranker sees the same rows in the same order."""
    fast = {"n_estimators": 5} if "n_estimators" in ranker().get_params() else {}
    fast |= {"training": {"n_epochs": 2}} if ranker is rw.NeuralRanker else {}
    one = ranker(**fast).fit(data.mixed, valid=data.mixed).predict(data.X)
    other = ranker(**fast).fit(data.sorted, valid=data.sorted).predict(data.X)
    assert one.tobytes() == other.tobytes()


def test_clicks_and_positions(data):
    """Counts go in and come out by row, in the caller's order."""
    n, rng = len(data.y), np.random.default_rng(0)
    shown, examination = rng.integers(1, 30, n), [1.0, 0.5, 0.25]
    cells = np.arange(n + 1), rng.integers(1, 4, n), shown, rng.binomial(shown, 0.4)
    counts = rw.ClickCounts(*cells, np.ones(len(data.mixed)), examination)
    mixed = data.mixed.replace(clicks=counts, position=counts.position)
    adjacent = data.sorted.replace(clicks=counts.take(data.order, slice(None)), position=counts.position[data.order])
    assert mixed.clicks.n_clicked.tolist() == counts.n_clicked.tolist()
    assert mixed.position.tolist() == counts.position.tolist()
    assert mixed.grouped().clicks.n_clicked.tolist() == adjacent.clicks.n_clicked.tolist()
    measure = rw.parse_measure("ndcg@5(clicks=ips)")
    expected = counts.n_clicked / np.array(examination)[counts.position - 1] / counts.n_shown
    assert measure.label(mixed).y == pytest.approx(expected)
    assert measure.label(adjacent).y == pytest.approx(expected[data.order])
    one = rw.evaluate(data.scores, mixed, str(measure))
    other = rw.evaluate(data.scores[data.order], adjacent, str(measure))
    assert one.per_query[str(measure)].tolist() == other.per_query[str(measure)].tolist()
    assert one.click_errors == pytest.approx(other.click_errors)


def test_a_column_of_a_frame(data, model):
    frame = data.table
    queries = rw.Queries.from_frame(frame, label="grade", qid="query", docid="doc")
    frame["score"] = model.predict(queries.X)
    with pytest.warns(rw.UnnamedFeaturesWarning):  # the model was trained on arrays
        assert frame["score"].tolist() == model.predict(queries).tolist() == model.predict(data.X).tolist()


def evaluate(data, model, tmp_path):
    expected = rw.evaluate(data.scores[data.order], data.sorted, ["ndcg@3", "map", "mrr(ties=docid)"])
    assert rw.evaluate(data.scores, data.mixed, ["ndcg@3", "map", "mrr(ties=docid)"]).means == expected.means
    tied = np.round(data.scores)
    for measure in ("ndcg@3(ties=file)", "map(dialect=trec_eval)", "ndcg(dialect=sklearn)", "p@2"):
        found = rw.evaluate(tied, data.mixed, measure).values
        assert found.tolist() == rw.evaluate(tied[data.order], data.sorted, measure).values.tolist()
        assert rw.parse_measure(measure).values(data.mixed, tied).tolist() == found[0].tolist()


def compare_scores(data, model, tmp_path):
    methods = {"a": data.scores, "b": model.predict(data.X)}
    found = rw.compare_scores(methods, data.mixed, "ndcg@3,map")
    same = rw.compare_scores({name: row[data.order] for name, row in methods.items()}, data.sorted, "ndcg@3,map")
    for name, table in same.tables.items():
        for column, values in table.items():
            assert found.tables[name][column].tolist() == values.tolist(), (name, column)


def polish(data, model, tmp_path):
    scores = np.column_stack([data.scores, model.predict(data.X), data.X[:, 0]])
    found = rw.polish(scores, data.mixed, "ndcg@3", valid=(scores, data.mixed))
    same = rw.polish(scores[data.order], data.sorted, "ndcg@3", valid=(scores[data.order], data.sorted))
    assert found.weights.tolist() == same.weights.tolist()
    assert rw.evaluate(found(scores), data.mixed, "ndcg@3")["ndcg@3"] == pytest.approx(found.after, abs=1e-12)


def polish_model(data, model, tmp_path):
    trees = rw.MART(n_estimators=5, num_leaves=4).fit(data.sorted)
    found, same = (rw.polish_model(trees, queries, "map", valid=queries) for queries in (data.mixed, data.sorted))
    assert found.predict(data.X).tobytes() == same.predict(data.X).tobytes()


def diagnose(data, model, tmp_path):
    assert str(rw.diagnose(model, data.mixed)) == str(rw.diagnose(model, data.sorted))


def select(data, model, tmp_path):
    found, same = (
        rw.select(rw.Regression(), {"alpha": [0.01, 100.0]}, queries, queries) for queries in (data.mixed, data.sorted)
    )
    assert found.selection_ == same.selection_


def scale_features(data, model, tmp_path):
    for kind in ("standard", "query"):
        found, same = rw.scale_features(data.mixed, kind).X, rw.scale_features(data.sorted, kind).X
        assert found[data.order] == pytest.approx(same, abs=1e-6)


def write_run(data, model, tmp_path):
    rw.write_run(data.mixed, data.scores, tmp_path / "a.run")
    rw.write_run(data.sorted, data.scores[data.order], tmp_path / "b.run")
    assert (tmp_path / "a.run").read_text() == (tmp_path / "b.run").read_text()
    score = dict(zip(zip(data.qid, data.docid, strict=True), data.scores, strict=True))
    assert rw.read_run(tmp_path / "a.run") == {
        q: {d: score[q, d] for d in documents} for q, documents in rw.read_run(tmp_path / "b.run").items()
    }
    unnamed = data.queries(np.arange(len(data.y)), named=False)
    rw.write_run(unnamed, data.scores, tmp_path / "c.run")
    for query, documents in rw.read_run(tmp_path / "c.run").items():
        assert all(data.qid[int(name) - 1] == query for name in documents)
        assert all(data.scores[int(name) - 1] == value for name, value in documents.items())


def write_letor(data, model, tmp_path):
    rw.write_letor(data.mixed.replace(weight=None), tmp_path / "a.txt")
    again = rw.read_letor(tmp_path / "a.txt")
    assert again.y.tolist() == data.y.tolist()
    assert again.X.tolist() == data.X.tolist()
    assert again.docid.tolist() == data.docid.tolist()


def read_letor(data, model, tmp_path):
    write_letor(data, model, tmp_path)
    rw.save(model, tmp_path / "model.json")
    options = ["--model", str(tmp_path / "model.json"), "--data", str(tmp_path / "a.txt")]
    assert run(["predict", *options, "--out", str(tmp_path / "scores")]) == 0
    expected = [float(line) for line in (tmp_path / "scores").read_text().split()]
    assert expected == model.predict(rw.read_letor(tmp_path / "a.txt")).tolist()
    assert expected == model.predict(data.X).tolist()


def split_folds(data, model, tmp_path):
    mixed, adjacent = rw.split_folds(data.mixed, 4, 0), rw.split_folds(data.sorted, 4, 0)
    for one, other in zip(mixed, adjacent, strict=True):
        for part, same in zip(one, other, strict=True):
            assert part.docid.tolist() == same.docid.tolist()
            assert rw.evaluate(model.predict(part.X), part, "map").means == rw.evaluate(model, same, "map").means


def run_experiment(data, model, tmp_path):
    found, same = (
        rw.run_experiment(
            rw.Experiment(queries, [rw.Method("regression")], measure="map", measures=["map"]),
            tmp_path / name,
            rw.Serial(),
        )
        for name, queries in (("mixed", data.mixed), ("sorted", data.sorted))
    )
    for name in ("queries", "documents", "scores", "values"):
        for column, values in same.tables[name].items():
            assert found.tables[name][column].tolist() == values.tolist(), (name, column)


def inspect_data(data, model, tmp_path):
    found, same = (rw.inspect(queries).to_json() for queries in (data.mixed, data.sorted))
    assert found.pop("rows_adjacent") is False
    assert same.pop("rows_adjacent") is True
    assert found == same


def check_same_rows(found: rw.Queries, data: Shuffled) -> None:
    """Check that documents are in the order of the rows of ``mixed``, each with its own features, grade and ids."""
    assert found.docid.tolist() == data.docid.tolist()
    assert found.X.tolist() == data.X.tolist()
    assert found.row_qid.tolist() == data.qid.tolist()
    assert found.y.tolist() == data.y.tolist()
    assert found.grouped().docid.tolist() == data.sorted.docid.tolist()


def write_queries(data, model, tmp_path):
    rw.write_queries(data.mixed, tmp_path / "a.rwq")
    again = rw.read(tmp_path / "a.rwq")
    check_same_rows(again, data)
    assert again.weight.tolist() == data.weight.tolist()
    assert model.predict(again).tolist() == model.predict(data.X).tolist()


def convert(data, model, tmp_path):
    rw.write_letor(data.mixed.replace(weight=None), tmp_path / "a.txt")
    data.table.to_csv(tmp_path / "a.csv", index=False)
    data.table.to_parquet(tmp_path / "a.parquet", row_group_size=50)
    for name in ("a.txt", "a.csv", "a.parquet"):
        rw.convert(tmp_path / name, out=tmp_path / "a.rwq")
        check_same_rows(rw.read(tmp_path / "a.rwq"), data)


def read_table(data, model, tmp_path):
    data.table.to_json(tmp_path / "a.jsonl", orient="records", lines=True, double_precision=15)
    data.table.to_csv(tmp_path / "a.csv", index=False)
    data.table.to_parquet(tmp_path / "a.parquet", row_group_size=50)
    data.table.to_feather(tmp_path / "a.feather")
    for name in ("a.jsonl", "a.csv", "a.parquet", "a.feather"):
        check_same_rows(rw.read(tmp_path / name), data)


def read_log(data, model, tmp_path):
    lines, judgments = [], ["query,docid,rating"]
    for values, query, document, grade in zip(data.X, data.qid, data.docid, data.y, strict=True):
        log = [{"name": f"f{i}", "value": float(value)} for i, value in enumerate(values)]
        lines.append(json.dumps({"qid": query, "_id": document, "fields": {"_ltrlog": [{"main": log}]}}))
        judgments.append(f"{query},{document},{grade}")
    (tmp_path / "hits.jsonl").write_text("\n".join(lines))
    for name, order in (("judgments.csv", judgments), ("reversed.csv", [judgments[0], *judgments[:0:-1]])):
        (tmp_path / name).write_text("\n".join(order))
        check_same_rows(rw.read_log(tmp_path / "hits.jsonl", tmp_path / name), data)


def permutation_importance(data, model, tmp_path):
    found, same = (rw.permutation_importance(model, queries) for queries in (data.mixed, data.sorted))
    assert found.falls.tolist() == same.falls.tolist()
    assert found.falls.any()


def simulate_clicks(data, model, tmp_path):
    log = rw.simulate_clicks(data.mixed, data.scores, n_sessions=5_000, swaps="first", random_state=0)
    same = rw.simulate_clicks(data.sorted, data.scores[data.order], n_sessions=5_000, swaps="first", random_state=0)
    for name in ("qid", "docid", "position", "n_shown", "n_clicked", "n_lists"):
        assert getattr(log, name).tolist() == getattr(same, name).tolist(), name
    assert log.truth.relevance.tolist() == same.truth.relevance.tolist()


def make_click_queries(data, model, tmp_path):
    log = rw.simulate_clicks(data.sorted, data.scores[data.order], n_sessions=5_000, random_state=0)
    found, same = (
        rw.make_click_queries(log, queries, grades="ctr", cuts=None, examination=log.truth.examination)
        for queries in (data.mixed, data.sorted)
    )
    own = {docid: i for i, docid in enumerate(data.docid)}
    rows = [own[docid] for docid in found.docid]
    assert rows == sorted(rows)  # in the order of the features
    assert found.X.tolist() == data.X[rows].tolist()
    assert found.row_qid.tolist() == data.qid[rows].tolist()
    for name in ("y", "position"):
        values = dict(zip(same.docid, getattr(same, name), strict=True))
        assert getattr(found, name).tolist() == [values[docid] for docid in found.docid], name
    clicks = dict(zip(same.docid, same.clicks.sum_by_doc(same.clicks.n_clicked), strict=True))
    counts = found.clicks
    assert counts.sum_by_doc(counts.n_clicked).tolist() == [clicks[docid] for docid in found.docid]
    lists = dict(zip(same.qid, same.clicks.n_lists, strict=True))
    assert counts.n_lists.tolist() == [lists[name] for name in found.qid]


CASES: dict[str, Callable] = {
    check.__name__: check
    for check in (
        evaluate,
        compare_scores,
        polish,
        polish_model,
        diagnose,
        permutation_importance,
        select,
        scale_features,
        write_run,
        write_letor,
        read_letor,
        read_log,
        write_queries,
        convert,
        split_folds,
        run_experiment,
        simulate_clicks,
        make_click_queries,
    )
} | {"inspect": inspect_data, "read": read_table}


def has_rows(function: Callable) -> bool:
    """Whether a function of the public API takes or returns a Queries, or scores by row."""
    text = str(inspect.signature(function))
    return any(word in text for word in ("Queries", "scores", "qid"))


def test_every_public_function_with_rows_has_a_case():
    functions = {name: getattr(rw, name) for name in rw.__all__ if inspect.isfunction(getattr(rw, name))}
    found = {name for name, function in functions.items() if has_rows(function)}
    of_other_tests = {"make_queries", "read_trec", "read_folds"}  # whose rows are adjacent, or are read_letor's
    of_other_tests |= {"export", "check_parity"}  # which score single documents, without queries
    of_other_tests |= {"write_leaderboard"}  # which counts rows
    of_other_tests |= {"estimate_examination"}  # which counts clicks, and joins features as make_click_queries does
    of_other_tests |= {"score_files"}  # which keeps the order of files
    assert found - of_other_tests <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_functions(name, data, model, tmp_path: Path):
    CASES[name](data, model, tmp_path)
