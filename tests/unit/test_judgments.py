"""Files of judgments: qrels, CSV and judgment lists."""

from __future__ import annotations

import gzip

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.data.judgments import load_judgments

RAMBO = {"rambo": {"7555": 4.0, "1370": 3.0}, "rocky ii": {"1366": 0.0}}
BY_ID = {"1": {"7555": 4.0, "1370": 3.0}, "2": {"1366": 0.0}}


@pytest.fixture
def judgments(tmp_path):
    def read(text):
        path = tmp_path / "judgments"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_judgments(path)

    return read


@pytest.mark.parametrize(
    "text",
    [
        "query,docid,rating\nrambo,7555,4\nrambo,1370,3\nrocky ii,1366,0\n",
        "grade,keywords,docId\n4,rambo,7555\n3,rambo,1370\n0,rocky ii,1366\n",  # the plugin's documentation
        "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating\n"
        "t,c,1,rambo,7555,1,Rambo,4\nt,c,1,rambo,1370,2,,3.0\nt,c,1,rocky ii,1366,1,'Rocky, too',0\n".replace("'", '"'),
        "\ufeffQuery_ID;Doc-Id;LABEL\r\nrambo;7555;4\r\nrambo;1370;3\r\n\r\n rocky ii ;1366;-2\r\n",
        "query\tdocument_id\trelevance\nrambo\t7555\t4\nrambo\t1370\t3\nrocky ii\t1366\t0",
        "# made by hand\n\nquery,docid,rating\nrambo,7555,4\nrambo,1370,3\nrocky ii,1366,0\n",
        gzip.compress(b"query,docid,rating\nrambo,7555,4\nrambo,1370,3\nrocky ii,1366,0\n", mtime=0),
    ],
)
def test_csv(judgments, text):
    assert judgments(text).grades == RAMBO
    assert judgments(text).n_unrated == 0


def test_csv_in_quotes(judgments):
    found = judgments('query,docid,rating\n"say ""hi"", you",a,1\n"two\nlines",b,2\n#tag,c,3\n')
    assert found.grades == {'say "hi", you': {"a": 1.0}, "two\nlines": {"b": 2.0}, "#tag": {"c": 3.0}}


def test_rows_without_a_rating_are_counted(judgments):
    found = judgments("query,docid,rating\nrambo,7555,4\nrambo,1370,\nrocky\n")  # as Quepid exports them
    assert found.grades == {"rambo": {"7555": 4.0}}
    assert found.n_unrated == 2


def test_csv_with_ids_and_keywords(judgments):
    found = judgments("query,rating,docid,qid\nrambo,4,7555,1\nrambo,3,1370,1\nrocky ii,0,1366,2\n")
    assert found.grades == BY_ID
    assert found.keywords == {"1": "rambo", "2": "rocky ii"}


@pytest.mark.parametrize(
    "text",
    [
        "# grade (0-4)\tqueryid\t# docId\ttitle\n#\n# qid:1: rambo\n# qid:2: rocky ii\n#\n"
        "4\tqid:1 #\t7555\tRambo\n3 qid:1 # 1370 Rambo III\n0 qid:2 # 1366 Rocky\n",
        "# qid:1: rambo*1\n# qid:2: rocky ii*1\n\n4 qid:1 # 7555\n3 qid:1 # 1370\r\n0 qid:2 #1366",
        "4 qid:1 1:12.3 2:9.8 # 7555 rambo\n3 qid:1 1:1 2:0 # 1370 rambo\n0 qid:2 1:0 # 1366 rocky ii\n",
        "4 qid:1 #docid = 7555 rambo\n3 qid:1 #docid = 1370 rambo\n-1 qid:2 #docid = 1366 rocky ii\n",
    ],
)
def test_judgment_lists(judgments, text):
    assert judgments(text).grades == BY_ID
    assert judgments(text).keywords == {"1": "rambo", "2": "rocky ii"}


def test_titles_are_not_keywords(judgments):
    assert judgments("4 qid:1 # 7555 Rambo\n3 qid:1 # 1370 Rambo III\n1 qid:2 # 5\n").keywords == {}


def test_qrels(judgments, tmp_path):
    assert judgments("1 0 7555 4\n1 0 1370 3\n2 Q0 1366 -1\n").grades == BY_ID
    assert rw.read_judgments(tmp_path / "judgments") == rw.read_qrels(tmp_path / "judgments")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no judgment; expected qrels"),
        ("# only words\n\n", "no judgment"),
        ("rambo,7555,4\n", ":1: found 'rambo,7555,4'; expected qrels .* or CSV whose first line names"),
        ("\n{}\n", ":2: found '{}'"),
        ("query,docid,rating\nrambo,7555,good\n", ":2: found the grade 'good'; expected a number"),
        ("query,docid,rating\nrambo,7555,nan\n", ":2: found the grade 'nan'"),
        ("query,docid,rating\nrambo,7555,1e999\n", ":2: found the grade '1e999'"),
        ("query,docid,rating\nrambo,a,1\n\nrambo,a,2\n", ":4: document 'a' of query 'rambo' a second time"),
        ("query,docid,rating\n,a,1\n", ":2: a row without a query"),
        ("query,docid,rating\nshoes, red,a,1\n", ":2: 4 fields; the first line names 3 columns"),
        ("query,docid,rating\nrambo,,\n", "1 rows, none with a document and a rating"),
        ("query,docid,rating\n", "0 rows, none"),
        ("query,docid,rating,grade\nrambo,a,1,2\n", ":1: the columns 'rating' and 'grade' may both be the grade"),
        ('query,docid,rating\nrambo,a,1\nrambo,"b,1\n', ":3: not CSV: unexpected end of data"),
        ("4 qid:1 # 7555\n4 qid:1 # 7555\n", ":2: document '7555' of query '1' a second time"),
        ("4 qid:1 # 7555\n4 qid:1\n", ":2: no document id after '#'"),
        ("4 qid:1 # 7555\n4 qid:1 words # 1\n", ":2: found '4 qid:1 words # 1'; expected 'grade qid:ID # docid'"),
        ("4 qid:1 # 7555\n1 0 7555 4\n", ":2: found '1 0 7555 4'"),
        ("x qid:1 # 7555\n", ":1: found the grade 'x'"),
        ("1 0 a 1\n1 0 b\n", ":2: 3 fields; expected 'qid iteration docid grade'"),
        (b"query,docid,rating\n\xff,a,1\n", ":2: not UTF-8"),
        (b"query,docid,rating\na\0,a,1\n", ":2: found a NUL character"),
        ('query,docid,rating\n"' + "x" * 200_000 + '",a,1\n', ":2: not CSV: field larger"),
    ],
)
def test_bad_files(judgments, text, problem):
    with pytest.raises(rw.InputError, match=problem) as raised:
        judgments(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_everywhere_qrels_are_taken(tmp_path, capsys):
    ids = [f"q{i}" for i in range(6)]
    texts = {
        "qrels.txt": "".join(f"{q} 0 a 2\n{q} 0 b 0\n{q} 0 c 1\n" for q in ids),
        "ratings.csv": "query,docid,rating\n" + "".join(f"{q},a,2\n{q},b,0\n{q},c,1\n" for q in ids),
        "list.txt": "".join(f"2 qid:{q} # a\n0 qid:{q} # b\n1 qid:{q} # c\n" for q in ids),
    }
    for name, scores in (("one", {"a": 1, "b": 3, "d": 2}), ("two", {"b": 1, "c": 2, "a": 3})):
        lines = [f"{q} Q0 {d} 1 {s} x\n" for q in ids for d, s in scores.items()]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    runs = ["--run", str(tmp_path / "one.run"), "--run", str(tmp_path / "two.run")]
    found: dict[str, set[str]] = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        qrels = ["--qrels", str(tmp_path / name)]
        for command in (
            ["evaluate", *qrels, *runs[:2], "--json"],
            ["compare", *qrels, *runs, "--json"],
            ["tune", *qrels, *runs, "--folds", "2", "--json"],
        ):
            assert cli.run(command) == 0, capsys.readouterr().err
            found.setdefault(command[0], set()).add(capsys.readouterr().out.replace(name, "judgments"))
        assert rw.read_trec(tmp_path / name, [tmp_path / "one.run"]).unretrieved.y.tolist() == [1.0] * 6
        rankers = ["--rankers", "singlefeature", "--folds", "3", "--out", str(tmp_path / f"out_{name}")]
        assert cli.run(["experiment", *qrels, *runs, *rankers, "--workers", "threads:1"]) == 0, capsys.readouterr().err
        capsys.readouterr()
    assert {command: len(outputs) for command, outputs in found.items()} == {"evaluate": 1, "compare": 1, "tune": 1}
