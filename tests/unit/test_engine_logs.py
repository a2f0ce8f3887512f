"""Feature logs of search engines, joined with judgments."""

from __future__ import annotations

import gzip
import json
import logging
import math

import numpy as np
import pytest

import rankwright as rw
from rankwright import cli

GRADES = {"rambo": {"7555": 4, "1370": 3}, "rocky": {"1366": 2, "60375": 1}}
LOGGED = {
    "rambo": {"7555": {"title": 12.5, "body": 9.25}, "1370": {"title": 7.5, "body": None}},
    "rocky": {"1366": {"title": None, "body": 3.0}, "60375": {"title": 1.0, "body": 2.0}},
}


def plugin_hit(document, features, log="main", **more):
    """Return a hit as the plugin of Elasticsearch and OpenSearch logs it: a feature without a match has no value."""
    entry = [{"name": name} | ({} if value is None else {"value": value}) for name, value in features.items()]
    hit = {"_index": "tmdb", "_id": document, "_score": 1.5, "_source": {"sku": f"s{document}"}}
    return hit | {"fields": {"_ltrlog": [{log: entry}]}, "matched_queries": ["logged"]} | more


def plugin_response(*hits):
    total = {"value": len(hits), "relation": "eq"}
    return {"took": 3, "timed_out": False, "hits": {"total": total, "max_score": 1.5, "hits": list(hits)}}


def solr_response(*docs, q="x"):
    header = {"status": 0, "QTime": 0, "params": {"q": q, "fl": "id,score,[features]"}}
    return {"responseHeader": header, "response": {"numFound": len(docs), "start": 0, "docs": list(docs)}}


def solr_doc(document, features, between="=", after=",", field="[features]"):
    text = after.join(f"{name}{between}{value}" for name, value in features.items() if value is not None)
    return {"id": document, "score": 1.0, field: text}


def vespa_hit(document, features, field="matchfeatures"):
    return {"id": f"id:shop::{document}", "relevance": 1.5, "fields": {"sku": document, field: features}}


def vespa_response(*hits, **more):
    return {"root": {"id": "toplevel", "relevance": 1.0, "coverage": {"full": True}, "children": list(hits), **more}}


VESPA = {
    query: vespa_response(*({**vespa_hit(*hit), "id": hit[0]} for hit in hits.items()))
    for query, hits in LOGGED.items()
}
PLUGIN = {query: plugin_response(*(plugin_hit(*hit) for hit in hits.items())) for query, hits in LOGGED.items()}
SOLR = {query: solr_response(*(solr_doc(*hit) for hit in hits.items()), q=query) for query, hits in LOGGED.items()}


def rows(queries):
    """Return the features of each document, in order, None for a missing one."""
    found = {}
    for query, document, values in zip(queries.row_qid, queries.docid, queries.X.tolist(), strict=True):
        named = zip(queries.features, values, strict=True)
        found.setdefault(str(query), {})[str(document)] = {n: None if math.isnan(v) else v for n, v in named}
    return found


def write_lines(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


@pytest.fixture
def write(tmp_path):
    return lambda *values, name="hits.jsonl": write_lines(tmp_path / name, values)


@pytest.mark.parametrize(
    ("engine", "responses"), [("elasticsearch", PLUGIN), ("opensearch", PLUGIN), ("solr", SOLR), ("vespa", VESPA)]
)
@pytest.mark.parametrize("told", [True, False])
def test_responses_by_query(engine, responses, told):
    queries = rw.read_log(responses, GRADES, engine=engine if told else None)
    assert rows(queries) == LOGGED
    assert queries.y.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert queries.features == ("title", "body")
    assert queries.X.dtype == np.float32
    assert queries.unretrieved is None


def test_missing_as_zero():
    queries = rw.read_log(PLUGIN, GRADES, missing="zero")
    assert queries.X.tolist() == [[12.5, 9.25], [7.5, 0.0], [0.0, 3.0], [1.0, 2.0]]


class TestQueryIds:
    """Where the query id of a hit comes from."""

    @pytest.mark.parametrize("responses", [PLUGIN, SOLR])
    def test_beside_the_response(self, write, responses):
        path = write(*({"qid": query, "response": response} for query, response in responses.items()))
        assert rows(rw.read_log(path, GRADES)) == LOGGED
        assert rows(rw.read_log(write(*({"qid": q} | r for q, r in responses.items())), GRADES)) == LOGGED

    def test_of_the_file(self, tmp_path):
        paths = [tmp_path / "rambo.json", tmp_path / "rocky.json.gz"]
        paths[0].write_text("\ufeff\n" + json.dumps(PLUGIN["rambo"], indent=2))
        paths[1].write_bytes(gzip.compress(json.dumps(PLUGIN["rocky"]).encode()))
        assert rows(rw.read_log(paths, GRADES)) == LOGGED
        assert rows(rw.read_log({"rambo": paths[0], "rocky": str(paths[1])}, GRADES)) == LOGGED

    def test_of_multi_search(self, write):
        responses = {"took": 4, "responses": [response | {"status": 200} for response in PLUGIN.values()]}
        assert rows(rw.read_log(write({"qid": list(PLUGIN), "response": responses}), GRADES)) == LOGGED
        with pytest.raises(rw.InputError, match=r"hits.jsonl:1: a multi-search response without query ids. Say qid="):
            rw.read_log(write(responses), GRADES)
        with pytest.raises(rw.InputError, match="2 responses, and 1 query ids"):
            rw.read_log(write({"qid": ["rambo"]} | responses), GRADES)

    def test_of_the_log(self, write):
        parts = [
            plugin_response(*(plugin_hit(*hit, log=query) for hit in hits.items())) for query, hits in LOGGED.items()
        ]
        assert rows(rw.read_log(write({"responses": parts}), GRADES, qid="_ltrlog")) == LOGGED

    def test_of_the_request(self, write):
        assert rows(rw.read_log(write(*SOLR.values()), GRADES, qid="q")) == LOGGED

    @pytest.mark.parametrize("place", ["hit", "_source", "fields", "matched_queries"])
    def test_of_the_hit(self, write, place):
        lines = []
        for query, hits in LOGGED.items():
            for document, features in hits.items():
                hit = plugin_hit(document, features)
                if place == "hit":
                    hit["topic"] = query
                elif place == "matched_queries":
                    hit["matched_queries"] = [query]
                else:
                    hit[place] = hit[place] | {"topic": [query] if place == "fields" else query}
                lines.append(hit)
        qid = place if place == "matched_queries" else "topic"
        assert rows(rw.read_log(write(*lines), GRADES, qid=qid)) == LOGGED
        assert rows(rw.read_log(write(plugin_response(*lines)), GRADES, qid=qid)) == LOGGED
        assert rows(rw.read_log(write(lines), GRADES, qid=qid)) == LOGGED

    def test_of_lines_of_hits(self, write, tmp_path):
        hits = [{"qid": query} | doc for query, r in SOLR.items() for doc in r["response"]["docs"]]
        assert rows(rw.read_log(write(*hits), GRADES)) == LOGGED
        path = write_lines(tmp_path / "rambo.ndjson", SOLR["rambo"]["response"]["docs"])
        assert rows(rw.read_log(path, GRADES)) == {"rambo": LOGGED["rambo"]}

    def test_numbers(self, write):
        found = rw.read_log(write({"qid": 1, "response": PLUGIN["rambo"]}), {1: GRADES["rambo"]})
        assert found.qid.tolist() == ["1"]

    def test_by_keywords(self, tmp_path, caplog):
        path = tmp_path / "list.txt"
        path.write_text(
            "# qid:1: rambo\n# qid:2: rocky\n4 qid:1 # 7555\n3 qid:1 # 1370\n2 qid:2 # 1366\n1 qid:2 # 60375\n"
        )
        with caplog.at_level(logging.INFO, "rankwright"):
            queries = rw.read_log(PLUGIN, path)
        assert rows(queries) == LOGGED
        assert queries.y.tolist() == [4.0, 3.0, 2.0, 1.0]
        assert "2 queries matched by their keywords" in caplog.text


class TestFeatures:
    """Names, order and values of features."""

    def test_scores_of_named_queries(self):
        response = plugin_response(
            {"_id": "7555", "matched_queries": {"title": 12.5, "body": 9.25}},
            {"_id": "1370", "matched_queries": {"title": 7.5}},
        )
        assert rows(rw.read_log({"rambo": response}, GRADES)) == {"rambo": LOGGED["rambo"]}

    def test_one_of_several_logs(self):
        hit = plugin_hit("7555", {"title": 1.0})
        hit["fields"]["_ltrlog"][0]["other"] = [{"name": "clicks", "value": 8}]
        found = rw.read_log({"rambo": plugin_response(hit)}, GRADES, log="other")
        assert rows(found) == {"rambo": {"7555": {"clicks": 8.0}}}
        with pytest.raises(rw.InputError, match=r"the logs 'main, other'; expected one. Choose with log="):
            rw.read_log({"rambo": plugin_response(hit)}, GRADES)
        with pytest.raises(rw.InputError, match=r"hit 1: no log 'mian'; did you mean main?"):
            rw.read_log({"rambo": plugin_response(hit)}, GRADES, log="mian")

    def test_extra_logging_is_no_feature(self):
        hit = plugin_hit("7555", {"title": 1.0})
        hit["fields"]["_ltrlog"][0]["main"].append({"name": "extra_logging", "value": {"derived": 3}})
        assert rw.read_log({"rambo": plugin_response(hit)}, GRADES).features == ("title",)

    def test_not_a_number_is_missing(self):
        hits = [plugin_hit("7555", {"a": "NaN", "b": 1}), plugin_hit("1370", {"a": math.nan, "b": 2})]
        assert rows(rw.read_log({"rambo": plugin_response(*hits)}, GRADES))["rambo"]["1370"] == {"a": None, "b": 2.0}
        doc = solr_doc("7555", {"a": "NaN", "b": "1.0E-5"})
        assert rows(rw.read_log({"rambo": solr_response(doc)}, GRADES))["rambo"]["7555"]["a"] is None
        assert rw.read_log({"rambo": solr_response(doc)}, GRADES, missing="zero").X.tolist() == [[0, np.float32(1e-5)]]

    def test_sparse_text(self):
        docs = [solr_doc("7555", {"c": 1.0}), solr_doc("1370", {"a": 2.0, "c": 3.0, "x=y": 4.0})]
        queries = rw.read_log({"rambo": solr_response(*docs)}, GRADES, missing="zero")
        assert queries.features == ("c", "a", "x=y")  # first appearance
        assert queries.X.tolist() == [[1, 0, 0], [3, 2, 4]]
        none = rw.read_log({"rambo": solr_response(docs[0], solr_doc("1370", {}))}, GRADES)
        assert np.isnan(none.X[1, 0])

    def test_other_separators_and_field(self):
        doc = solr_doc("7555", {"a": 1.0, "b": 2.0}, ":", ";", "fv")
        found = rw.read_log({"rambo": solr_response(doc)}, GRADES, log="fv", separators=":;")
        assert rows(found) == {"rambo": {"7555": {"a": 1.0, "b": 2.0}}}

    def test_chosen_features(self):
        hits = [plugin_hit("7555", {"a": 1.0, "b": 2.0}), plugin_hit("1370", {"b": 3.0, "a": None, "new": 4.0})]
        queries = rw.read_log({"rambo": plugin_response(*hits)}, GRADES, features=["b", "a"])
        assert rows(queries)["rambo"] == {"7555": {"b": 2.0, "a": 1.0}, "1370": {"b": 3.0, "a": None}}
        with pytest.raises(
            rw.InputError, match="feature 'new' is in query 'rambo', hit 2 and not in query 'rambo', hit 1"
        ):
            rw.read_log({"rambo": plugin_response(*hits)}, GRADES)
        with pytest.raises(rw.InputError, match="hit 1: no feature 'new'; it has 'a, b'"):
            rw.read_log({"rambo": plugin_response(*hits)}, GRADES, features=["b", "new"])
        with pytest.raises(rw.InputError, match=r"no hit has the feature 'new'; .* format=dense"):
            rw.read_log(SOLR, GRADES, features=["title", "new"])
        with pytest.raises(rw.InputError, match=r"features=\['a', 'a'\]; expected a list of names, each once"):
            rw.read_log(SOLR, GRADES, features=["a", "a"])

    def test_document_ids_of_another_field(self):
        grades = {"rambo": {"s7555": 1, "s1370": 0}}
        assert rw.read_log({"rambo": PLUGIN["rambo"]}, grades, docid="sku").docid.tolist() == ["s7555", "s1370"]


class TestJoin:
    """Documents and queries that only the log or only the judgments have."""

    def test_unjudged_documents(self, caplog):
        grades = {"rambo": {"1370": 3}}
        with caplog.at_level(logging.INFO, "rankwright"):
            queries = rw.read_log(PLUGIN, grades)
        assert rows(queries) == {"rambo": {"1370": LOGGED["rambo"]["1370"]}}
        assert "1 logged documents without a judgment left out" in caplog.text
        assert "1 logged queries without a judgment left out" in caplog.text
        zero = rw.read_log(PLUGIN, grades, unjudged="zero")
        assert (zero.docid.tolist(), zero.y.tolist()) == (["7555", "1370"], [0.0, 3.0])
        with pytest.raises(
            rw.InputError, match="query 'rambo', hit 1: no judgment of document '7555' of query 'rambo'"
        ):
            rw.read_log(PLUGIN, grades, unjudged="error")
        with pytest.raises(rw.InputError, match="query 'rocky', hit 1: no judgment of query 'rocky'; expected one"):
            rw.read_log(PLUGIN, {"rambo": GRADES["rambo"]}, unjudged="error")

    def test_judged_documents_that_were_not_logged(self, caplog):
        grades = {"rocky": GRADES["rocky"] | {"9": 4}, "rambo": GRADES["rambo"] | {"5": 1, "6": 0}, "bambi": {"1": 1}}
        with caplog.at_level(logging.INFO, "rankwright"):
            queries = rw.read_log(PLUGIN, grades)
        assert queries.qid.tolist() == ["rambo", "rocky"]
        assert queries.unretrieved.y.tolist() == [1.0, 0.0, 4.0]
        assert queries.unretrieved.indptr.tolist() == [0, 2, 3]
        assert "3 judged documents not logged, which count in ideal rankings" in caplog.text
        assert "1 judged queries not logged" in caplog.text
        perfect = rw.evaluate(queries.y, queries, "ndcg@10").means
        assert 0 < next(iter(perfect.values())) < 1

    def test_pages_of_a_query(self, write):
        lines = [
            {"qid": q, "response": plugin_response(hit)}
            for i in (0, 1)
            for q in PLUGIN
            for hit in [PLUGIN[q]["hits"]["hits"][i]]
        ]
        queries = rw.read_log(write(*lines), GRADES)
        assert queries.docid.tolist() == ["7555", "1366", "1370", "60375"]
        assert queries.y.tolist() == [4.0, 2.0, 3.0, 1.0]
        assert rows(queries) == LOGGED

    def test_repeated_hits(self, write, caplog):
        lines = [{"qid": "rambo", "response": PLUGIN["rambo"]}] * 2
        with caplog.at_level(logging.INFO, "rankwright"):
            assert rows(rw.read_log(write(*lines), GRADES)) == {"rambo": LOGGED["rambo"]}
        assert "2 repeated hits kept once" in caplog.text
        other = plugin_response(plugin_hit("7555", {"title": 12.5, "body": 9.5}))
        with pytest.raises(rw.InputError, match=r"hits.jsonl:2, hit 1: document '7555' of query 'rambo' a second time"):
            rw.read_log(write(lines[0], {"qid": "rambo", "response": other}), GRADES)

    def test_without_judgments(self):
        queries = rw.read_log(PLUGIN)
        assert rows(queries) == LOGGED
        assert not queries.has_grades

    def test_nothing_matches(self):
        with pytest.raises(
            rw.InputError,
            match=r"no query of the log is judged: the log has 'rambo', 'rocky', the judg.* '1', '2', ...",
        ):
            rw.read_log(PLUGIN, {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}})
        with pytest.raises(
            rw.InputError, match=r"'rambo' has '7555' in the log and 'https://x' in the judgments.*docid="
        ):
            rw.read_log(PLUGIN, {"rambo": {"https://x": 1}})


def test_a_model_is_trained_and_ranks(write, tmp_path):
    rng = np.random.default_rng(0)
    lines, judged = [], ["query,docid,rating"]
    for query in range(12):
        hits = []
        for document in range(8):
            title, body = rng.normal(size=2).round(3).tolist()
            hits.append(plugin_hit(f"d{document}", {"title": title, "body": None if body < -1 else body}))
            judged.append(f"q{query},d{document},{int(title > 0) + int(title > 1)}")
        lines.append({"qid": f"q{query}", "response": plugin_response(*hits)})
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(judged))
    queries = rw.read_log(write(*lines), path)
    ranker = rw.LambdaMART(n_estimators=10, min_child_samples=1, random_state=0).fit(queries)
    assert ranker.score(queries) > 0.95
    linear = rw.Regression().fit(rw.read_log(write(*lines), path, missing="zero"))
    rw.save(linear, tmp_path / "model.json")
    model = rw.load(tmp_path / "model.json")
    assert model.features == ("title", "body")
    new = rw.read_log(write(*lines[:2]), missing="zero", features=model.features)
    assert len(model.predict(new)) == 16


def change(value, path, new):
    """Return a copy of JSON with another value at a place."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return copy


HIT = ("hits", "hits", 0)
ENTRY = (*HIT, "fields", "_ltrlog", 0, "main")


@pytest.mark.parametrize(
    ("path", "new", "problem"),
    [
        (("hits", "hits"), "none", "the hits are 'none'; expected a list"),
        (("hits", "hits"), [3], "hit 1: found 3; expected a response or a hit, an object"),
        (("hits",), {}, "found an object with 'took, timed_out, hits'; expected a response with hits.hits"),
        (("error",), {"reason": "no [sltr]"}, r"the search failed: 'no \[sltr\]'; expected hits"),
        ((*HIT, "_id"), None, "hit 1: the document id is None; expected a text or an integer"),
        ((*HIT, "_id"), 1.5, "the document id is 1.5"),
        ((*HIT, "_id"), "a\0", "the document id .* has a character that no file can have"),
        ((*HIT, "_id"), "\ud800", "the document id .* has a character that no file can have"),
        ((*HIT, "fields"), {}, "hit 1: no fields._ltrlog; .* ext.ltr_log"),
        ((*HIT, "fields", "_ltrlog"), [], "fields._ltrlog is a list of 0; expected a list of one object"),
        (ENTRY, {"a": 1}, "hit 1, log 'main': found an object with 'a'; expected a list of features"),
        ((*ENTRY, 0), {"value": 3}, "found an object with 'value'; expected an object with the name of a feature"),
        ((*ENTRY, 0, "value"), "12.5", "log 'main': feature 'title' is '12.5'; expected a number"),
        ((*ENTRY, 0, "value"), True, "feature 'title' is True"),
        ((*ENTRY, 0, "value"), [1], "feature 'title' is a list of 1"),
        ((*ENTRY, 0, "value"), 1e39, r"feature 'title' is 1e\+39"),
        ((*ENTRY, 0, "value"), 10**400, "feature 'title' is a number of more than 40 digits"),
        ((*ENTRY, 0, "value"), math.inf, "feature 'title' is inf"),
        ((*ENTRY, 0, "name"), "body", "hit 1: feature 'body' a second time"),
        (
            (*ENTRY, 0, "name"),
            "other",
            "hit 2: feature 'other' is in .*hit 1 and not in .*hit 2: the feature set changed",
        ),
    ],
)
def test_bad_hits(write, path, new, problem):
    line = {"qid": "rambo", "response": change(PLUGIN["rambo"], path, new)}
    with pytest.raises(rw.InputError, match=problem) as raised:
        rw.read_log(write({"qid": "rocky", "response": plugin_response()}, line), GRADES, engine="elasticsearch")
    assert "hits.jsonl:2" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title", r"found 'title' in \[features\]; expected name=value. Name other characters with separators="),
        ("title=1.0,=2.0", r"found '2.0' in \[features\]; expected name=value"),
        ("title=1.0,", "expected name=value"),
        ("title=abc", r"found 'abc' in \[features\]; expected a number"),
        ("title=Infinity", "found 'Infinity'"),
        ("a=NaN,title=1e39", "found '1e39'"),
        ("title=1.0,title=2.0", "feature 'title' a second time"),
        (None, r"no field \[features\]; expected a text such as .* fl=id,\[features\]"),
        ({"title": 1}, r"\[features\] is an object with 'title'"),
    ],
)
def test_bad_documents(text, problem):
    doc = {"id": "7555"} | ({} if text is None else {"[features]": text})
    with pytest.raises(rw.InputError, match=problem) as raised:
        rw.read_log({"rambo": solr_response(doc)}, GRADES)
    assert str(raised.value).startswith("query 'rambo', hit 1: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "hits.json: empty; expected JSON"),
        ("{}", "hits.json:1: found an empty object; expected a response with hits.hits or response.docs"),
        ("3", "hits.json:1: found 3; expected a response or a hit"),
        ('{"hits": {"hits": []}}', "no hit in the log"),
        ('{"hits": \n {"hits": [}}', "hits.json:2: not JSON: Expecting value at column 12"),
        ('{}\n{"a"', "hits.json:1: found an empty object"),
        ("[" * 100_000, "hits.json:1: not JSON: nested too deeply"),
        ("9" * 5_000, "hits.json:1: not JSON: Exceeds the limit"),
        ("<response/>", "hits.json:1: not JSON: Expecting value at column 1"),
        ("[[{}]]", "hits.json:1, item 1: found a list of 1"),
        ('{"responses": [{"responses": [{}]}], "qid": ["a"]}', "response 1: found an object with 'responses'"),
    ],
)
def test_bad_files(tmp_path, text, problem):
    path = tmp_path / "hits.json"
    path.write_text(text)
    with pytest.raises(rw.InputError, match=problem):
        rw.read_log(path, GRADES)


def test_broken_lines(tmp_path):
    path = tmp_path / "hits.jsonl"
    good = json.dumps({"qid": "rambo", "response": PLUGIN["rambo"]}).encode()
    for bad, problem in ((good[:-1], "not JSON"), (b'"\xff"', "not UTF-8"), (b"NaN", "found nan")):
        path.write_bytes(good + b"\n\n" + bad + b"\n")
        with pytest.raises(rw.InputError, match=f"hits.jsonl:3: {problem}"):
            rw.read_log(path, GRADES)


def test_bad_ids_of_queries(write):
    with pytest.raises(
        rw.InputError, match=r"hits.jsonl:2: a second response of this file without a query id. Say qid="
    ):
        rw.read_log(write(PLUGIN["rambo"], PLUGIN["rocky"]), {"hits": GRADES["rambo"]})
    with pytest.raises(rw.InputError, match=r"hits.jsonl:2, hit 1: the query ids 1 and '1' are one text"):
        rw.read_log(write({"qid": 1} | PLUGIN["rambo"], {"qid": "1"} | PLUGIN["rocky"]))
    with pytest.raises(rw.InputError, match="no field 'topic' with the query id in an object with '_index, _id"):
        rw.read_log(PLUGIN, GRADES, qid="topic")
    with pytest.raises(rw.InputError, match="the query id is an empty object"):
        rw.read_log(write({"qid": {}} | PLUGIN["rambo"]), GRADES)


def test_bad_arguments(write):
    for options, problem in (
        ({"missing": "0"}, "missing='0'; there are nan, zero"),
        ({"unjudged": "droop"}, "unjudged='droop'; did you mean drop?"),
        ({"engine": "lucene"}, "engine='lucene'; there are elasticsearch, opensearch, solr, vespa"),
        ({"separators": "="}, "separators='='; expected two characters"),
        ({"engine": "solr"}, "expected a response with response.docs"),
    ):
        with pytest.raises(rw.InputError, match=problem):
            rw.read_log(PLUGIN, GRADES, **options)
    with pytest.raises(rw.InputError, match="no file to read"):
        rw.read_log([], GRADES)
    with pytest.raises(rw.InputError, match=r"hits has an object with .*; expected files, or a mapping of query ids"):
        rw.read_log([PLUGIN["rambo"]], GRADES)


def test_clients_objects():
    class Answer:
        def __init__(self, name, value):
            setattr(self, name, value)

    found = rw.read_log({"rambo": Answer("body", PLUGIN["rambo"]), "rocky": Answer("body", PLUGIN["rocky"])}, GRADES)
    assert rows(found) == LOGGED
    assert rows(rw.read_log({"rambo": Answer("raw_response", SOLR["rambo"])}, GRADES)) == {"rambo": LOGGED["rambo"]}


def test_convert(write, tmp_path, capsys):
    hits = str(write(*({"topic": query, "response": response} for query, response in SOLR.items())))
    judged, out = tmp_path / "ratings.csv", tmp_path / "a.rwq"
    rows_of = [f"{query},{document},{grade}\n" for query, found in GRADES.items() for document, grade in found.items()]
    judged.write_text("query,docid,rating\n" + "".join(rows_of) + "rocky,9,4\n")
    command = ["convert", hits, "--from", "solr", "--qid", "q", "--judgments", str(judged), "--out", str(out)]
    assert cli.run([*command, "--missing", "zero", "--features", "body,title"]) == 0
    captured = capsys.readouterr()
    assert "2 queries, 4 documents, 2 features" in captured.out
    assert "1 judged documents not logged" in captured.err
    queries = rw.read(out)
    assert (queries.features, queries.X.tolist()[1]) == (("body", "title"), [0.0, 7.5])
    assert queries.unretrieved.y.tolist() == [4.0]
    for options, problem in (
        (["--label", "x"], "--label names a column of a table; with --from solr grades come from --judgments"),
        (["--missing", "0"], "missing='0'; there are nan, zero"),
        (["--from", "lucene"], "engine='lucene'; there are"),
    ):
        assert cli.run([*command[:-1], str(tmp_path / "b.rwq"), *options]) == 2
        captured = capsys.readouterr()
        assert problem in captured.err
        assert captured.err.count("\n") == 1
    assert cli.run(["convert", hits, "--judgments", str(judged), "--out", str(tmp_path / "b.rwq")]) == 2
    assert "--judgments is for --from elasticsearch, opensearch, solr or vespa" in capsys.readouterr().err
    assert not (tmp_path / "b.rwq").exists()


class TestQueryWeights:
    """Weights of queries in a judgment list, ``# qid:1: rambo *2``."""

    @pytest.mark.parametrize(("head", "weight"), [("rambo *2", 2.0), ("rambo*2.5", 2.5), ("rambo  * 0", 0.0)])
    def test_are_kept(self, tmp_path, caplog, head, weight):
        lines = [f"# qid:1: {head}", "# qid:2: rocky", "1 qid:2 # b", "4 qid:1 # a", "0 qid:1 # b"]
        (tmp_path / "list").write_text("\n".join(lines))
        hits = {"rocky": plugin_response(plugin_hit("b", {"x": 1.0}))}
        hits["rambo"] = plugin_response(plugin_hit("a", {"x": 2.0}), plugin_hit("b", {"x": 3.0}))
        caplog.set_level("INFO", "rankwright")
        queries = rw.read_log(hits, tmp_path / "list")  # matched by keywords
        assert dict(zip(queries.qid.tolist(), queries.weight.tolist(), strict=True)) == {"rocky": 1.0, "rambo": weight}
        assert "1 queries with a weight from the judgment list" in caplog.text
        rw.write_queries(queries, tmp_path / "a.rwq")
        assert rw.read(tmp_path / "a.rwq").weight.tolist() == queries.weight.tolist()

    def test_are_not_dropped_silently(self, tmp_path, caplog):
        (tmp_path / "list").write_text("# qid:1: rambo *2\n4 qid:1 # a\n")
        caplog.set_level("INFO", "rankwright")
        assert rw.read_judgments(tmp_path / "list") == {"1": {"a": 4.0}}
        assert "the weights of queries, such as 2 of '1', are left out; read_log keeps them" in caplog.text

    def test_of_one_are_no_weights(self, tmp_path, caplog):
        (tmp_path / "list").write_text("# qid:1: rambo*1\n4 qid:1 # a\n")
        hits = {"1": plugin_response(plugin_hit("a", {"x": 1.0}))}
        caplog.set_level("INFO", "rankwright")
        assert rw.read_log(hits, tmp_path / "list").weight is None
        rw.read_judgments(tmp_path / "list")
        assert "weight" not in caplog.text


class TestVespa:
    """What is particular to Vespa's responses."""

    def test_fields_of_ids_and_features(self):
        hit = vespa_hit(
            "7555", {"bm25(title)": 2.0, "attribute(x)": None, "vespa.summaryFeatures.cached": 0.0}, "summaryfeatures"
        )
        queries = rw.read_log({"rambo": vespa_response(hit)}, GRADES, docid="sku", log="summaryfeatures")
        assert queries.features == ("bm25(title)", "attribute(x)")
        assert rows(queries)["rambo"]["7555"] == {"bm25(title)": 2.0, "attribute(x)": None}

    def test_a_response_without_features_is_refused(self):
        for features, found in ((None, "no matchfeatures"), ([1], "matchfeatures is a list")):
            hit = vespa_hit("a", features)
            with pytest.raises(rw.InputError, match=rf"hit 1: {found}.*match-features of a rank profile"):
                rw.read_log({"1": vespa_response(hit)}, engine="vespa")
        with pytest.raises(rw.InputError, match=r"feature 'closest\(e\)' is"):
            rw.read_log({"1": vespa_response(vespa_hit("a", {"closest(e)": {"4": 1.0}}))})

    def test_scores_of_an_exported_model_are_checked(self):
        names = ("bm25(title)", "attribute(clicks)")
        model = rw.Regression().fit(rw.make_queries(8, n_features=2, random_state=0).replace(features=names))
        X = np.array([[1.5, 2.0], [0.5, -1.0]], np.float32)
        hits = [
            vespa_hit(str(i), dict(zip(names, x.tolist(), strict=True))) | {"relevance": score}
            for i, (x, score) in enumerate(zip(X, model.scorer_(X).tolist(), strict=True))
        ]
        assert rw.check_scores(model, {"q": vespa_response(*hits)}).is_equal
        hits[1]["relevance"] += 0.01
        assert rw.check_scores(model, {"q": vespa_response(*hits)}).rows.tolist() == [1]


class TestPartialResponses:
    """Responses that lack documents, and say so."""

    @pytest.mark.parametrize("lack", [{"timed_out": True}, {"_shards": {"total": 5, "failed": 1}}])
    def test_of_elasticsearch(self, write, lack):
        whole = {"qid": 1, "response": plugin_response(plugin_hit("a", {"x": 1.0}))}
        partial = {"qid": 2, "response": plugin_response(plugin_hit("b", {"x": 1.0})) | lack}
        path = write(whole, partial, partial | {"qid": 3})
        name, value = next(iter(lack.items()))
        said = f"{name}: true" if value is True else "_shards.failed: 1"
        with pytest.warns(rw.PartialResponseWarning, match=rf":2 \({said}\) and 1 others: partial.*longer timeout"):
            assert rw.read_log(path).n_docs == 3

    def test_of_solr(self):
        response = solr_response(solr_doc("a", {"x": 1.0}))
        response["responseHeader"]["partialResults"] = True
        with pytest.warns(rw.PartialResponseWarning, match=r"query '1' \(partialResults: true\): partial"):
            rw.read_log({"1": response})

    @pytest.mark.parametrize("lack", [{"coverage": {"full": False}}, {"errors": [{"code": 12}]}])
    def test_of_vespa(self, lack):
        response = vespa_response(vespa_hit("a", {"x": 1.0}), **lack)
        with pytest.warns(
            rw.PartialResponseWarning, match=r"query '1' \((coverage.full: false|root.errors)\): partial"
        ):
            rw.read_log({"1": response})

    def test_whole_ones_do_not_warn(self, recwarn):
        response = plugin_response(plugin_hit("a", {"x": 1.0})) | {"_shards": {"total": 5, "failed": 0}}
        rw.read_log({"1": response})
        assert not recwarn
