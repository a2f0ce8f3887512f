"""TREC files: judgments, runs, and both as queries."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import rankwright as rw
from rankwright import cli
from rankwright.data import trec
from rankwright.data.score_files import read_scores


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a -1\nq9 0 z 1\n")
    (tmp_path / "bm25.run").write_text(
        "q1 Q0 b 1 9.5 x\nq1 Q0 a 2 7 x\nq1 Q0 d 3 -1e-1 x\nq2 Q0 e 1 3 x\nq7 Q0 a 1 1 x\n"
    )
    (tmp_path / "dense.run.gz").write_bytes(gzip.compress(b"q1 Q0 a 1 0.5 y\nq1 Q0 c 2 0.25 y\n"))
    return tmp_path


def test_qrels_and_runs(files):
    assert rw.read_qrels(files / "qrels") == {
        "q1": {"a": 2.0, "b": 0.0, "c": 1.0},
        "q2": {"a": 0.0},  # a negative judgment (spam) is not relevant
        "q9": {"z": 1.0},
    }
    assert rw.read_run(files / "dense.run.gz") == {"q1": {"a": 0.5, "c": 0.25}}


def test_join(files):
    queries = rw.read_trec(files / "qrels", [files / "bm25.run", files / "dense.run.gz"])
    assert queries.features == ("bm25", "dense")
    assert queries.qid.tolist() == ["q1", "q2"]  # q9 has no answer, q7 no judgment
    rows = {
        (qid, doc): (*x, grade)
        for qid, doc, x, grade in zip(queries.row_qid, queries.docid, queries.X.tolist(), queries.y, strict=True)
    }
    low = float(np.float32(-0.1))
    assert rows == {
        ("q1", "a"): (7.0, 0.5, 2.0),
        ("q1", "b"): (9.5, 0.25, 0.0),
        ("q1", "c"): (low, 0.25, 1.0),  # judged, and found by one run only
        ("q1", "d"): (low, 0.25, 0.0),  # not judged
        ("q2", "e"): (3.0, 0.0, 0.0),
    }


def test_a_written_run_reads_back(tmp_path):
    queries = rw.make_queries(4, n_docs=6, random_state=2)
    scores = np.random.default_rng(0).normal(size=queries.n_docs)
    rw.write_run(queries, scores, tmp_path / "a.run")
    back = rw.read_run(tmp_path / "a.run")
    for query, rows in zip(queries.qid, queries, strict=True):
        assert back[str(query)] == dict(zip(queries.docid[rows].tolist(), scores[rows].tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("q1 0 a\n", r"qrels:1: 3 fields; expected 'qid iteration docid grade'"),
        ("q1 0 a 1\n\nq1 0 b high\n", r"qrels:3: found 'high'"),
        ("q1 0 a nan\n", "found 'nan'"),
        ("q1 0 a 1e300\n", "found '1e300'"),
        ("q1 0 a 1\nq1 0 a 2\n", r"qrels:2: document a of query q1 a second time"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(rw.InputError, match=message):
        rw.read_qrels(tmp_path / "qrels")


NO_NUMBERS = [
    "1_000", "1e5_0", "٣", "\uff11", "0x10", "infinity", "nan", "1e400", "--1", "+-1", "1e", "e5", ".", "1.2.3", "1,5", "½",
    "1\x1c", "\x1f1", "1\x85", "\u00a01", "1\u2003", "1\0", "1f", "1d5", "True", "1j",
]  # fmt: skip
NUMBERS = ["1", "+1", "-1", "01", "1.", ".5", "1e5", "1E+5", "-1.5e-300", "0" * 400 + "1"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_only_decimal_numbers_in_ascii_are_numbers(tmp_path, text):
    path = tmp_path / "file"
    for line, read in (
        (f"q1 0 a {text}", rw.read_qrels),
        (f"q1 Q0 a 1 {text} x", rw.read_run),
        (text, lambda path: read_scores(path, rw.Queries.from_arrays([[1.0]], [1], [1]))),
    ):
        path.write_bytes(f"{line}\n".encode())
        with pytest.raises(rw.InputError, match=r"file:1: found "):
            read(path)


@pytest.mark.parametrize("text", NUMBERS)
def test_decimal_numbers_are_what_python_makes_of_them(tmp_path, text):
    path = tmp_path / "file"
    path.write_bytes(f"q1 Q0 a 1 {text} x\n".encode())
    assert rw.read_run(path) == {"q1": {"a": float(text)}}
    path.write_bytes(f" \t{text} \r\n".encode())
    assert read_scores(path, rw.Queries.from_arrays([[1.0]], [1], [1])).tolist() == [float(text)]


@pytest.mark.parametrize("space", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u00a0", "\u2003", "\u3000", "\u2028"])
def test_only_ascii_white_space_separates_fields(tmp_path, space):
    path = tmp_path / "file"
    path.write_bytes(f"q1 0 a{space}b 1\n\nq1 0 a 2\n".encode())
    assert rw.read_qrels(path) == {"q1": {f"a{space}b": 1.0, "a": 2.0}}
    path.write_bytes(f"q1 0 a{space}1\n".encode())
    with pytest.raises(rw.InputError, match="file:1: 3 fields"):
        rw.read_qrels(path)


def test_a_byte_order_mark_is_no_part_of_a_score(tmp_path):
    (tmp_path / "s").write_bytes("\ufeff1.5\n".encode())
    assert read_scores(tmp_path / "s", rw.Queries.from_arrays([[1.0]], [1], [1])).tolist() == [1.5]


def test_a_byte_order_mark_is_no_part_of_an_id(tmp_path):
    (tmp_path / "qrels").write_bytes("\ufeffq1 0 a 1\n".encode())
    assert rw.read_qrels(tmp_path / "qrels") == {"q1": {"a": 1.0}}


def test_nothing_in_common(files):
    (files / "other.run").write_text("q8 Q0 b 1 9.5 x\n")
    with pytest.raises(rw.InputError, match="no query of the run is judged"):
        rw.read_trec(files / "qrels", [files / "other.run"])
    with pytest.raises(rw.InputError, match="no run given"):
        rw.read_trec(files / "qrels", [])


class TestBlocks:
    """A file is read some lines at a time; here a line or two."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(trec, "_BLOCK", 40)

    def test_queries_may_be_in_pieces(self, tmp_path):
        lines = [f"q{i % 3} Q0 d{i} 1 {i / 8} t" for i in range(50)]
        (tmp_path / "a.run").write_bytes("\r\n".join(lines).encode())  # and no line end at the end
        run = rw.read_run(tmp_path / "a.run")
        assert list(run) == ["q0", "q1", "q2"]
        assert run["q1"] == {f"d{i}": i / 8 for i in range(1, 50, 3)}

    def test_empty_lines_are_skipped_and_counted(self, tmp_path):
        lines = ["q1 0 a 1", "", "  ", "q1 0 b 2", *[f"q1 0 d{i} 1" for i in range(9)], "", "q2 0 a one"]
        (tmp_path / "qrels").write_text("\n".join(lines))
        with pytest.raises(rw.InputError, match=r"qrels:15: found 'one'"):
            rw.read_qrels(tmp_path / "qrels")
        (tmp_path / "qrels").write_text("\n".join(lines[:-1]))
        assert len(rw.read_qrels(tmp_path / "qrels")["q1"]) == 11

    def test_a_field_too_many_does_not_make_up_for_one_too_few(self, tmp_path):
        (tmp_path / "qrels").write_text("q1 0 a\n1 q1 0 b 1\n")
        with pytest.raises(rw.InputError, match="qrels:1: 3 fields"):
            rw.read_qrels(tmp_path / "qrels")

    @pytest.mark.parametrize("text", ["q1 0 b 1\nq1 0 \0 1\n", "q1 0 b 1\nq1 0 a 1 \0 q1 0 b 1\n"])
    def test_zero_bytes_are_refused(self, tmp_path, text):
        (tmp_path / "qrels").write_text(text)
        with pytest.raises(rw.InputError, match="qrels:2: found a NUL character"):
            rw.read_qrels(tmp_path / "qrels")

    @pytest.mark.parametrize("second", [1, 2, 30])
    def test_a_document_twice_is_named_by_its_line(self, tmp_path, second):
        lines = [f"q1 0 d{i} 1" for i in range(40)]
        lines.insert(second, "q1 0 d0 1")
        (tmp_path / "qrels").write_text("\n".join(lines))
        with pytest.raises(rw.InputError, match=f"qrels:{second + 1}: document d0 of query q1 a second time"):
            rw.read_qrels(tmp_path / "qrels")

    def test_ids_are_unicode_and_bad_bytes_are_refused(self, tmp_path):
        (tmp_path / "qrels").write_bytes("q1 0 naïve 1\nq1 0 漢字 2\n".encode())
        assert rw.read_qrels(tmp_path / "qrels") == {"q1": {"naïve": 1.0, "漢字": 2.0}}
        (tmp_path / "qrels").write_bytes("q1 0 naïve 1\nq1 0 漢字 2\n".encode() + b"q1 0 \xe4 3\n")
        with pytest.raises(rw.InputError, match="qrels:3: not UTF-8; convert the file"):
            rw.read_qrels(tmp_path / "qrels")


def test_the_command_line_evaluates_a_run(files, capsys):
    said = ["--qrels", str(files / "qrels"), "--run", str(files / "bm25.run")]
    assert cli.run(["evaluate", *said]) == 0
    out = capsys.readouterr().out
    expected = rw.evaluate(files / "bm25.run", files / "qrels", "map(dialect=trec_eval)")
    assert f"map(dialect=trec_eval)      {expected['map(dialect=trec_eval)']:.4f}\n" in out
    assert out.endswith("2 (not counted: 1 unanswered, 1 unjudged)\n")
    assert cli.run(["evaluate", *said, "--measures", "p@1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "queries": 2, "documents": 4, "means": {"p@1": 0.0}, "unanswered": 1, "unjudged": 1,
    }  # fmt: skip


def test_the_command_line_compares_runs(files, capsys):
    runs = ["--run", str(files / "bm25.run"), "--run", f"other={files / 'dense.run.gz'}"]
    assert cli.run(["compare", "--qrels", str(files / "qrels"), *runs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = rw.compare_runs(files / "qrels", {"bm25": files / "bm25.run", "other": files / "dense.run.gz"})
    assert list(found["means"]) == ["bm25", "other"]
    assert found["means"]["other"]["map(dialect=trec_eval)"] == expected.means("map(dialect=trec_eval)")[1]
    assert found["queries"] == 2  # of which the other run answers one: the mean is over both
    assert expected.values("map(dialect=trec_eval)")[1].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "said",
    [
        ["evaluate", "--qrels", "q"],
        ["evaluate", "--run", "r"],
        ["evaluate", "--qrels", "q", "--run", "r", "--data", "d"],
        ["evaluate", "--qrels", "q", "--run", "r", "--model", "m"],
        ["evaluate", "--data", "d", "--run", "r"],
        ["evaluate", "--data", "d"],
        ["evaluate"],
        ["compare", "--qrels", "q"],
        ["compare", "--qrels", "q", "--run", "r", "--scores", "s"],
        ["compare", "--data", "d", "--run", "r"],
        ["compare"],
    ],
)
def test_judgments_go_with_runs_and_data_with_models_and_scores(said, capsys):
    assert cli.run(said) == 2
    assert "or --qrels with --run" in capsys.readouterr().err


def test_a_run_needs_judgments_and_scores_need_queries(files):
    with pytest.raises(rw.InputError, match="expected a run with judgments, or scores of rows with Queries"):
        rw.evaluate([1.0, 2.0], files / "qrels", "map")
    with pytest.raises(rw.InputError, match="no query of the runs is judged: the judgments have 'a', a run 'b'"):
        rw.evaluate({"b": {"x": 1.0}}, {"a": {"x": 1}}, "map")
