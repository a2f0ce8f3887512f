"""Every measure and dialect that other tools share with us, query by query, from every path that gives values.

``docs/measures.md`` says when values are equal. Lists are random, with ties, graded labels, queries without a relevant
document, single documents, interleaved query ids that are texts; runs also miss judged documents, find unjudged ones,
leave out judged queries and answer queries that nobody judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import dcg_score, ndcg_score

import rankwright as rw
from rankwright.analysis.results import Results
from rankwright.analysis.score_comparison import compare_files
from rankwright.cli import run
from rankwright.experiments import Experiment, Method, run_experiment
from rankwright.experiments.data_sources import TrecFiles
from rankwright.tuning.fusion_result import TUNED

ir_measures = pytest.importorskip("ir_measures")
pytrec_eval = pytest.importorskip("pytrec_eval")

Values = dict[str, dict[str, float]]  # by measure and query
CUTS = (1, 3, 10)
GOLDEN = Path(__file__).parent.parent / "golden" / "catboost.json"


def ours(dialect: str, names: str, cuts: tuple[int, ...] = CUTS, more: str = "") -> list[str]:
    """Names of measures in a dialect; {} in a name is a cut-off."""
    texts = [name.format(k) for name in names.split() for k in (cuts if "{}" in name else (0,))]
    return [str(rw.parse_measure(f"{text}(dialect={dialect}{more})")) for text in texts]


TREC = [
    *ours("trec_eval", "ndcg ndcg@{} map ap@{} p@{} recall@{} mrr"),
    *ours("trec_eval", "ndcg@{}", more=",gain=exp"),
]
TREC += ours("trec_eval", "map ap@{} p@{} recall@{} mrr", more=",rel=2")
ROWS = [*ours("lightgbm", "ndcg@{} ap@{}"), *ours("xgboost", "ndcg ndcg@{} map ap@{}")]
ROWS += [*ours("catboost", "ndcg ndcg@{} map ap@{} mrr rr@{}"), *ours("catboost", "ndcg@{}", more=",gain=exp")]
ROWS += ours("sklearn", "ndcg ndcg@{} dcg dcg@{}")


# Lists of judged documents, as files of features have them


def make_lists(seed: int = 0) -> rw.Queries:
    """Forty queries; the only feature is the score."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[1, 2], rng.integers(1, 25, 38)])
    qid = rng.permutation(np.repeat([f"q-{i}" for i in range(40)], sizes))
    relevant = dict(zip(np.unique(qid), rng.random(40) < 0.85, strict=True))
    y = rng.integers(0, 4, len(qid)) * np.array([relevant[query] for query in qid])
    docid = [f"d{i}" for i in rng.permutation(len(qid))]
    return rw.Queries.from_arrays(rng.integers(0, 9, (len(qid), 1)) / 8, y, qid, docid=docid)


@pytest.fixture(scope="module")
def lists() -> rw.Queries:
    return make_lists()


def by_query(names: list[str], qid: np.ndarray, values: np.ndarray) -> Values:
    return {name: dict(zip(map(str, qid), row, strict=True)) for name, row in zip(names, values.tolist(), strict=True)}


def of_results(results: Results, method: str) -> Values:
    """What a store or a comparison has of a method."""
    at = results.methods.index(method)
    values = np.stack([results.values(name)[at] for name in results.measures])
    return by_query(list(results.measures), results.tables["queries"]["qid"], values)


def of_command(out: Path, *arguments: str) -> Values:
    """What ``evaluate --per-query`` writes."""
    assert run(["evaluate", *arguments, "--measures", ",".join([*TREC, *ROWS] if "--data" in arguments else TREC),
                "--per-query", str(out)]) == 0  # fmt: skip
    header, *rows = (line.split("\t") for line in out.read_text().splitlines())
    return {name: {row[0]: float(row[i]) for row in rows} for i, name in enumerate(header) if i}


@pytest.fixture(scope="module")
def paths_of_lists(lists, tmp_path_factory) -> dict[str, Values]:
    """The values of one ranking from every path."""
    folder, names, scores = tmp_path_factory.mktemp("lists"), [*TREC, *ROWS], lists.X[:, 0].astype(float)
    data, model, text = folder / "data.txt", folder / "model.json", folder / "scores.txt"
    rw.write_letor(lists, data)
    fitted = rw.SingleFeature(feature=0, sign=1).fit(lists)
    rw.save(fitted, model)
    text.write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    evaluated = rw.evaluate(scores, lists, names)
    compared = compare_files(data, {"scores": text}, {"model": model}, ",".join(names))
    stored = run_experiment(Experiment(lists, [Method("singlefeature", params={"feature": 0, "sign": 1})],
                                       "ndcg@5", names), folder / "out", workers=rw.Serial())  # fmt: skip
    of_measure = np.stack([rw.parse_measure(name).values(lists, scores) for name in names])
    of_model = rw.evaluate(rw.load(model), rw.read_letor(data), names)
    return {
        "Measure.values": by_query(names, lists.qid, of_measure),
        "evaluate": by_query(names, lists.qid, evaluated.values),
        "evaluate, of a model and a file": by_query(names, of_model.qid, of_model.values),
        "evaluate --scores": of_command(folder / "a.tsv", "--data", str(data), "--scores", str(text)),
        "evaluate --model": of_command(folder / "b.tsv", "--data", str(data), "--model", str(model)),
        "compare, scores": of_results(compared, "scores"),
        "compare, model": of_results(compared, "model"),
        "experiment": of_results(stored, "SingleFeature"),
    }


def each_list(lists: rw.Queries, value: Callable[[np.ndarray, np.ndarray], dict[str, float]]) -> Values:
    """A peer's values by measure and query, from a function of the grades and scores of one list."""
    found: Values = {}
    grouped = lists.grouped()
    for query, rows in zip(lists.qid, grouped, strict=True):
        for name, figure in value(grouped.y[rows], grouped.X[rows, 0].astype(float)).items():
            found.setdefault(name, {})[str(query)] = float(figure)
    return found


def check(expected: Values, paths: dict[str, Values], tolerance: float) -> None:
    """Every path has a peer's value of every query, to within what the peer's precision allows."""
    assert expected
    for path, found in paths.items():
        for name, values in expected.items():
            assert found[name] == pytest.approx(values, abs=tolerance), (path, name)


def test_lightgbm(lists, paths_of_lists):
    lgb = pytest.importorskip("lightgbm")
    told = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": list(CUTS), "verbosity": -1,
            "min_data_in_bin": 1, "min_data_in_leaf": 1, "feature_pre_filter": False, "num_threads": 1}  # fmt: skip

    def value(y, scores):
        data = lgb.Dataset(np.arange(len(y))[:, None], y, group=[len(y)], init_score=scores, params=told)
        for _, name, figure, _ in lgb.Booster(told, data).eval_train():
            yield str(rw.parse_measure(f"{name.replace('map', 'ap')}(dialect=lightgbm)")), figure

    expected = each_list(lists, lambda y, scores: dict(value(y, scores)))
    assert set(expected) == set(ours("lightgbm", "ndcg@{} ap@{}"))
    check(expected, paths_of_lists, 1e-12)


def test_xgboost(lists, paths_of_lists):
    xgb = pytest.importorskip("xgboost")
    told = {"objective": "rank:ndcg", "base_score": 0.0, "nthread": 1}
    graded = xgb.Booster(told | {"eval_metric": ["ndcg", *(f"ndcg@{k}" for k in CUTS)]})
    binary = xgb.Booster(told | {"objective": "rank:map", "eval_metric": ["map", *(f"map@{k}" for k in CUTS)]})

    def value(y, scores):
        for booster, labels in ((graded, y), (binary, y > 0)):
            data = xgb.DMatrix(scores[:, None], labels, base_margin=scores, group=[len(y)])
            booster.set_param({"num_feature": 1})
            for word in booster.eval(data).split()[1:]:
                name, figure = word.removeprefix("eval-").split(":")
                yield str(rw.parse_measure(f"{name.replace('map@', 'ap@')}(dialect=xgboost)")), figure

    expected = each_list(lists, lambda y, scores: dict(value(y, scores)))
    assert set(expected) == set(ours("xgboost", "ndcg ndcg@{} map ap@{}"))
    check(expected, paths_of_lists, 2e-6)  # it prints six digits or so


def catboost_values(lists: rw.Queries) -> Values:
    eval_metric = pytest.importorskip("catboost.utils").eval_metric
    names = {"ndcg(dialect=catboost)": "NDCG", "map(dialect=catboost)": "MAP", "mrr(dialect=catboost)": "MRR"}
    for k in CUTS:
        names |= {f"ndcg@{k}(dialect=catboost)": f"NDCG:top={k}", f"ap@{k}(dialect=catboost)": f"MAP:top={k}"}
        names |= {f"ndcg@{k}(dialect=catboost,gain=exp)": f"NDCG:top={k};type=Exp"}
        names |= {f"rr@{k}(dialect=catboost)": f"MRR:top={k}"}

    def value(y, scores):
        group = np.zeros(len(y), int)
        return {
            str(rw.parse_measure(name)): eval_metric(
                (y > 0) * 1.0 if "MAP" in theirs else y, scores, theirs, group_id=group
            )[0]
            for name, theirs in names.items()
        }

    return each_list(lists, value)


def test_catboost(lists, paths_of_lists):
    """Its figures of the same lists, kept in a file; a large package that tests do not install."""
    expected = json.loads(GOLDEN.read_text())
    assert set(expected) == {name for name in ROWS if "catboost" in name}
    check(expected, paths_of_lists, 1e-12)


def test_catboost_figures_are_its_own(lists):
    pytest.importorskip("catboost", reason="CatBoost is not installed; its figures are in tests/golden/catboost.json")
    assert catboost_values(lists) == json.loads(GOLDEN.read_text())


def test_scikit_learn(lists, paths_of_lists):
    def value(y, scores):
        if len(y) > 1:  # it takes no list of one
            for name, function in (("ndcg", ndcg_score), ("dcg", dcg_score)):
                yield f"{name}(dialect=sklearn)", function(y[None], scores[None])
                yield from ((f"{name}@{k}(dialect=sklearn)", function(y[None], scores[None], k=k)) for k in CUTS)

    expected = each_list(lists, lambda y, scores: dict(value(y, scores)))
    assert set(expected) == set(ours("sklearn", "ndcg ndcg@{} dcg dcg@{}"))
    longer = {
        path: {name: {q: values[q] for q in expected["ndcg(dialect=sklearn)"]} for name, values in found.items()}
        for path, found in paths_of_lists.items()
    }
    check(expected, longer, 1e-12)


# Runs and judgments


def trec_values(qrels: dict[str, dict[str, int]], answers: dict[str, dict[str, float]]) -> Values:
    """Of pytrec_eval, by our names."""
    cuts = ",".join(map(str, CUTS))
    found: Values = {}
    theirs = {"ndcg": "ndcg", "map": "map", "recip_rank": "mrr", "ndcg_cut": "ndcg@{}", "map_cut": "ap@{}", "P": "p@{}",
              "recall": "recall@{}"}  # fmt: skip
    wanted = {f"{name}.{cuts}" if "{" in own else name for name, own in theirs.items()}
    for level in (1, 2):
        for query, values in (
            pytrec_eval.RelevanceEvaluator(qrels, wanted, relevance_level=level).evaluate(answers).items()
        ):
            for name, value in values.items():
                head, _, k = name.rpartition("_")
                own = theirs[head].format(k) if k.isdigit() else theirs[name]
                if level == 1 or "ndcg" not in own:
                    full = str(rw.parse_measure(f"{own}(dialect=trec_eval{',rel=2' if level == 2 else ''})"))
                    found.setdefault(full, {})[query] = value
    return found


class Trec:
    """Judgments and two runs as files, with everything in them that may be."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.qrels: dict[str, dict[str, int]] = {}
        self.runs: dict[str, dict[str, dict[str, float]]] = {"first": {}, "second": {}}
        for query in (f"q{i}" for i in range(40)):
            names = np.array([f"doc{i}" for i in rng.permutation(60)[: rng.integers(3, 40)]])
            grades = rng.integers(-1, 4, len(names)) * (rng.random() < 0.85)
            judged = rng.random(len(names)) < 0.6
            if rng.random() < 0.9:
                judged[0] = True
                self.qrels[query] = dict(zip(names[judged].tolist(), grades[judged].tolist(), strict=True))
            for answers in self.runs.values():
                found = names[rng.random(len(names)) < 0.6]
                if rng.random() < 0.9 and len(found):
                    scores = rng.integers(0, 12, len(found)) / 8 + rng.choice([0.0, 1e-10])
                    answers[query] = dict(zip(found.tolist(), scores.tolist(), strict=True))
        self.folder, self.judgments = folder, folder / "qrels"
        lines = [f"{q} 0 {d} {g}\n" for q, found in self.qrels.items() for d, g in found.items()]
        self.judgments.write_text("".join(rng.permutation(lines).tolist()))  # queries interleaved
        self.files = {name: folder / f"{name}.run" for name in self.runs}
        for name, answers in self.runs.items():
            lines = [f"{q} Q0 {d} 0 {s!r} x\n" for q, found in answers.items() for d, s in found.items()]
            self.files[name].write_text("".join(rng.permutation(lines).tolist()))

    def expected(self, name: str) -> Values:
        return trec_values(self.qrels, self.runs[name])


@pytest.fixture(scope="module")
def trec(tmp_path_factory) -> Trec:
    return Trec(tmp_path_factory.mktemp("trec"))


def test_there_is_everything_in_the_runs(trec):
    qrels, answers = trec.qrels, trec.runs["first"]
    both = [query for query in qrels if query in answers]
    assert set(qrels) - set(answers)
    assert set(answers) - set(qrels)
    assert any(set(qrels[query]) - set(answers[query]) for query in both)
    assert any(set(answers[query]) - set(qrels[query]) for query in both)
    assert any(max(qrels[query].values()) <= 0 for query in both)
    assert any(min(qrels[query].values()) < 0 for query in both)
    assert any(len(set(answers[query].values())) < len(answers[query]) for query in both)


def of_one_run(trec: Trec, name: str) -> dict[str, Values]:
    """The values of a run from every path that evaluates it alone."""
    folder, file = trec.folder, trec.files[name]
    evaluated = rw.evaluate(file, trec.judgments, TREC)
    mapped = rw.evaluate(trec.runs[name], trec.qrels, TREC)
    queries = rw.read_trec(trec.judgments, [file])
    read = rw.evaluate(queries.X[:, 0], queries, TREC)
    ranker = rw.SingleFeature(feature=0, sign=1, measure="map(dialect=trec_eval)").fit(queries)
    assert ranker.score(queries) == pytest.approx(evaluated["map(dialect=trec_eval)"], abs=1e-15)
    source = TrecFiles(qrels=str(trec.judgments), runs=(str(file),))
    method = Method("singlefeature", params={"feature": name, "sign": 1})
    stored = run_experiment(Experiment(source, [method], "ndcg@5", TREC), folder / name, workers=rw.Serial())
    in_python = run_experiment(Experiment(queries, [method], "ndcg@5", TREC), folder / f"{name}2", workers=rw.Serial())
    rw.write_run(queries, ranker.predict(queries), folder / "written.run")
    return {
        "evaluate, files": by_query(TREC, evaluated.qid, evaluated.values),
        "evaluate, mappings": by_query(TREC, mapped.qid, mapped.values),
        "read_trec": by_query(TREC, read.qid, read.values),
        "evaluate --run": of_command(folder / "a.tsv", "--qrels", str(trec.judgments), "--run", str(file)),
        "compare": of_results(rw.compare_scores({"x": queries.X[:, 0]}, queries, TREC), "x"),
        "compare_runs": of_results(rw.compare_runs(trec.judgments, [file], TREC), name),
        "experiment": of_results(stored, "SingleFeature"),
        "experiment, Queries": of_results(in_python, "SingleFeature"),
        "write_run": trec_values(trec.qrels, rw.read_run(folder / "written.run")),
    }


@pytest.mark.parametrize("name", ["first", "second"])
def test_pytrec_eval(trec, name):
    expected = trec.expected(name)
    assert set(expected) == {measure for measure in TREC if "gain=exp" not in measure}
    check(expected, of_one_run(trec, name), 1e-12)


def test_ir_measures(trec):
    found = of_one_run(trec, "first")
    names = {"nDCG": "ndcg", "AP": "map", "RR": "mrr", "AP(rel=2)": "map(rel=2)", "RR(rel=2)": "mrr(rel=2)"}
    for k in CUTS:
        names |= {f"nDCG@{k}": f"ndcg@{k}", f"AP@{k}": f"ap@{k}", f"P@{k}": f"p@{k}", f"R@{k}": f"recall@{k}"}
        names |= {f"P(rel=2)@{k}": f"p@{k}(rel=2)", f"R(rel=2)@{k}": f"recall@{k}(rel=2)"}
    wanted = {ir_measures.parse_measure(theirs): own for theirs, own in names.items()}
    answered = trec.qrels.keys() & trec.runs["first"].keys()  # it counts the others as 0
    expected: Values = {}
    for row in ir_measures.iter_calc(list(wanted), trec.qrels, trec.runs["first"]):
        text = wanted[row.measure]
        full = f"{text[:-1]},dialect=trec_eval)" if text.endswith(")") else f"{text}(dialect=trec_eval)"
        if row.query_id in answered:
            expected.setdefault(str(rw.parse_measure(full)), {})[row.query_id] = row.value
        else:
            assert row.value == 0.0
    del found["write_run"]  # pytrec_eval's own
    check(expected, found, 1e-12)
    for theirs, own in names.items():
        assert rw.parse_measure(theirs) == rw.parse_measure(own)  # their names parse


def test_two_runs_together(trec):
    """Each is evaluated on what it found; a query that it does not answer is 0."""
    tuned = {
        measure: rw.tune_fusion(trec.judgments, trec.files, measure=measure, folds=None)
        for measure in ("ndcg@10(dialect=trec_eval)", "map(dialect=trec_eval)", "recall@3(dialect=trec_eval)")
    }
    compared = rw.compare_runs(trec.judgments, trec.files, TREC)
    for name in trec.runs:
        expected, found = trec.expected(name), of_results(compared, name)
        for measure, values in expected.items():
            assert found[measure] == pytest.approx({q: values.get(q, 0.0) for q in found[measure]}, abs=1e-12)
            assert found[measure].keys() >= values.keys()
        for measure, result in tuned.items():
            own = dict(zip(result.qid.tolist(), result.per_query[name].tolist(), strict=True))
            assert own == pytest.approx(found[measure], abs=1e-12)


def test_what_a_ranker_makes_of_two_runs(trec, tmp_path):
    """It orders what any run found; trec_eval gives the same values for the run that is written."""
    queries = rw.read_trec(trec.judgments, list(trec.files.values()))
    ranker = rw.DirectRank(measure="map(dialect=trec_eval)", n_restarts=1, random_state=0).fit(queries)
    rw.write_run(queries, ranker.predict(queries), tmp_path / "fused.run")
    evaluated = rw.evaluate(ranker, queries, TREC)
    found = by_query(TREC, evaluated.qid, evaluated.values)
    check(trec_values(trec.qrels, rw.read_run(tmp_path / "fused.run")), {"ranker": found}, 1e-12)
    judged = rw.evaluate(tmp_path / "fused.run", trec.judgments, "map(dialect=trec_eval)")
    assert ranker.score(queries) == pytest.approx(judged["map(dialect=trec_eval)"], abs=1e-15)


def test_a_fused_run(trec, tmp_path):
    result = rw.tune_fusion(trec.judgments, trec.files, measure="map(dialect=trec_eval)", folds=None)
    result.write_run(tmp_path / "fused.run")
    expected = trec_values(trec.qrels, rw.read_run(tmp_path / "fused.run"))["map(dialect=trec_eval)"]
    assert dict(zip(result.qid.tolist(), result.per_query[TUNED].tolist(), strict=True)) == pytest.approx(expected)
    assert result.train == pytest.approx(np.mean(list(expected.values())), abs=1e-12)
