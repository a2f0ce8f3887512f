"""LETOR text: every good line is read as the obvious reader does, every bad one is named."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference import letor as reference

import rankwright as rw
from rankwright.data import letor, letor_files, table_sizes
from rankwright.data.folds import has_folds, list_missing_files
from rankwright.data.letor_source import LetorSource


def check(path: Path, text: str, **options) -> rw.Queries:
    """Read a file and compare it with the reference reader."""
    path.write_text(text)
    queries = rw.read_letor(path, **options)
    rows = reference.read(text)
    assert queries.n_docs == len(rows)
    ids = queries.row_qid
    for at, (label, qid, values, docid) in enumerate(rows):
        assert queries.y[at] == label
        assert str(ids[at]) == qid
        with np.errstate(over="ignore"):
            expected = {i - 1: np.float32(v) for i, v in values.items()}
        assert {i: v for i, v in enumerate(queries.X[at]) if v} == {i: v for i, v in expected.items() if v}
        if queries.docid is not None:
            assert queries.docid[at] == docid
    return queries


numbers = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e30, 1e30, allow_nan=False).map(repr),
    st.floats(-1e3, 1e3, width=32).map(str),
    st.floats(-2, 2).map(lambda x: f"{x:.6f}"),
    st.from_regex(r"[+-]?[0-9]{0,12}\.[0-9]{1,25}", fullmatch=True),
    st.from_regex(r"[0-9]{1,24}\.?(e-?[0-9])?", fullmatch=True),
    st.sampled_from(
        ["1.00000005960464477539", "0.500000029802322387695", "16777217", "1e-45", "7e-46", "0e999", "00.5"]
    ),
)


@st.composite
def documents(draw):
    indices = sorted(draw(st.sets(st.integers(1, 40), max_size=8)))
    features = "".join(f" {i}:{draw(numbers)}" for i in indices)
    label = draw(st.sampled_from(["0", "1", "2.5", "+3", "0.1234567890123456789", "4e0"]))
    qid = draw(st.sampled_from(["1", "2", "10", "x7", "007"]))
    tail = draw(
        st.sampled_from(["", "#docid = GX01", " # word and more", " #", " #docid = a-b_c inc = 1 prob = 2", "\r"])
    )
    return f"{label} qid:{qid}{features}{tail}"


@given(st.lists(documents(), min_size=1, max_size=12), st.sampled_from(["\n", "\n\n", "\n   \n# comment\n"]))
@example(["0 qid:1 1:1.00000005960464477539"], "\n")
def test_equals_the_obvious_reader(tmp_path_factory, lines, separator):
    folder = tmp_path_factory.mktemp("letor")
    check(folder / "a.txt", separator.join(lines) + "\n")
    check(folder / "b.txt", separator.join(lines))  # no newline at the end


def test_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(letor_files, "BLOCK", 300)
    rng = random.Random(0)
    lines = [
        f"{rng.randint(0, 4)} qid:{q // 7} "
        + " ".join(f"{i}:{rng.random():.{rng.randint(0, 17)}f}" for i in range(1, 9))
        for q in range(200)
    ]
    text = "\n".join(lines) + "\n"
    queries = check(tmp_path / "a.txt", text)
    assert len(queries) == 29
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(text.encode()))
    for other in (
        rw.read_letor(tmp_path / "a.txt.gz"),
        rw.read_letor(tmp_path / "a.txt.xz"),
        rw.read_letor(tmp_path / "a.txt", backend=rw.Serial()),
        rw.read_letor(tmp_path / "a.txt.gz", backend=rw.Threads(3)),
    ):
        for name in ("X", "y", "indptr", "qid"):
            assert getattr(other, name).tobytes() == getattr(queries, name).tobytes()


def test_a_wider_row_in_a_later_block(tmp_path, monkeypatch):
    monkeypatch.setattr(letor_files, "BLOCK", 200)
    lines = [f"1 qid:{i} 1:0.5 2:{i}" for i in range(60)] + ["2 qid:99 2:1 300:7"] + ["0 qid:99 1:3"] * 20
    queries = check(tmp_path / "a.txt", "\n".join(lines))
    assert queries.n_features == 300
    (tmp_path / "a.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert rw.read_letor(tmp_path / "a.gz").X.tolist() == queries.X.tolist()


@pytest.mark.parametrize("mark", ["1.79769313486232E+308", "1.79769313486e+308", "1.7976931348623157E308"])
def test_the_largest_double_is_a_missing_value(tmp_path, mark, monkeypatch):
    monkeypatch.setattr(letor_files, "BLOCK", 400)
    lines = [f"{i % 3} qid:{i // 5} 1:{i} 2:{mark} 3:1e30 4:{mark if i % 2 else 0.1}" for i in range(40)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    X = rw.read_letor(tmp_path / "a.txt").X
    assert np.isnan(X[:, 1]).all()
    assert np.isnan(X[:, 3]).tolist() == [i % 2 == 1 for i in range(40)]
    assert X[:, 0].tolist() == list(range(40))
    assert set(X[:, 2].tolist()) == {float(np.float32(1e30))}
    blocks = np.concatenate([block.X for block in LetorSource([tmp_path / "a.txt"]).read_blocks()])
    assert blocks.tobytes() == X.tobytes()


@pytest.mark.parametrize("word", ["nan", "NaN", "NAN", "nAn"])
def test_nan_is_a_missing_value(tmp_path, word):
    text = f"1 qid:1 1:{word} 2:2 3:{word} #docid = a\n0 qid:1 2:{word}\r\n2 qid:2 1:3 3:{word}"
    for end in ("", "\n", " # comment"):
        (tmp_path / "a.txt").write_text(text + end)
        X = rw.read_letor(tmp_path / "a.txt").X
        assert np.isnan(X).tolist() == [[True, False, True], [False, True, False], [False, False, True]]
        assert np.nan_to_num(X).tolist() == [[0, 2, 0], [0, 0, 0], [3, 0, 0]]


def test_missing_values_are_written_as_nan(tmp_path):
    queries = rw.Queries.from_arrays([[np.nan, 1.5], [2, np.nan]], [1, 0], qid=[1, 1])
    rw.write_letor(queries, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "1 qid:1 1:nan 2:1.5\n0 qid:1 1:2 2:nan\n"
    assert np.array_equal(rw.read_letor(tmp_path / "a.txt").X, queries.X, equal_nan=True)


def test_many_numbers_in_doubt(tmp_path):
    check(tmp_path / "a.txt", "0.12345678901234567 qid:1 1:1.00000005960464477539 2:1.00000005960464477540\n" * 900)


def test_several_files_are_one(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n")
    (tmp_path / "b.txt").write_text("2 qid:1 1:3 2:4\n")
    queries = rw.read_letor(tmp_path / "a.txt", tmp_path / "b.txt")
    assert queries.qid.tolist() == [1, 2]
    assert queries.y.tolist() == [1, 0, 2]
    assert queries.X.tolist() == [[1, 0], [2, 0], [3, 4]]
    assert queries.grouped().y.tolist() == [1, 2, 0]
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress((tmp_path / "b.txt").read_bytes()))
    assert rw.read_letor(tmp_path / "a.txt", tmp_path / "b.txt.gz").X.tolist() == queries.X.tolist()


def test_unsorted_queries_and_the_files_order(tmp_path):
    queries = check(tmp_path / "a.txt", "0 qid:b 1:1\n1 qid:a 1:2\n2 qid:b 1:3\n")
    assert queries.qid.tolist() == ["b", "a"]
    assert queries.y.tolist() == [0, 1, 2]


def test_long_and_foreign_document_ids(tmp_path):
    long = "https://example.org/" + "x" * 100
    (tmp_path / "a.txt").write_text(f"0 qid:1 1:1 #docid = {long}\n0 qid:1 1:1 #docid = häuser\n", encoding="utf-8")
    assert rw.read_letor(tmp_path / "a.txt").docid.tolist() == [long, "häuser"]
    (tmp_path / "b.txt").write_text("0 qid:1 1:1 #docid = é1\n0 qid:1 1:1\n", encoding="utf-8")
    assert rw.read_letor(tmp_path / "b.txt").docid.tolist() == ["é1", ""]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x qid:1 1:1", "found 'x' for a label; expected a finite number"),
        ("1x qid:1 1:1", "found '1x' for a label"),
        ("nan qid:1 1:1", "found 'nan' for a label"),
        ("qid:1 1:1", "found 'qid:1' for a label"),
        ("1 1:0.5", "found '1:0.5'; expected qid:ID after the label"),
        ("1", "found nothing; expected qid:ID"),
        ("1 qid:1 1: 5", "found nothing for a feature value"),
        ("1 qid: 1:1", "expected qid:ID"),
        ("1 qid:1 0:1", "feature index 0; LETOR indices start at 1"),
        ("1 qid:1 2:1 1:1", "feature index '1' after an equal or higher one; expected increasing indices"),
        ("1 qid:1 2:1 2:1", "feature index '2' after an equal or higher one"),
        ("1 qid:1 a:1", "found 'a:1'; expected index:value"),
        ("1 qid:1 -1:1", "found '-1:1'; expected index:value"),
        ("1 qid:1 1 2:1", "found '1'; expected index:value"),
        ("1 qid:1 1:", "expected a finite number"),
        ("1 qid:1 1:abc", "found 'abc' for a feature value; expected a finite number"),
        ("1 qid:1 1:1.2.3", "found '1.2.3' for a feature value"),
        ("1 qid:1 1:1e", "found '1e' for a feature value"),
        ("1 qid:1 1:nano", "found 'nano' for a feature value; expected a finite number, or nan if it is missing"),
        ("1 qid:1 1:-nan", "found '-nan' for a feature value"),
        ("1 qid:1 1:na", "found 'na' for a feature value"),
        ("1 qid:1 1:inf", "found 'inf' for a feature value"),
        ("1 qid:1 1:1e39", "found '1e39' for a feature value"),
        ("1 qid:1 1:1e400", "found '1e400' for a feature value"),
        ("1 qid:1 1:-1.79769313486232E+308", "found '-1.79769313486232E+308' for a feature value"),
        ("1 qid:1 1:1.7e308", "found '1.7e308' for a feature value"),
        ("1.79769313486232E+308 qid:1 1:1", "found '1.79769313486232E+308' for a label; expected a finite number"),
        ("1e400 qid:1 1:1", "found '1e400' for a label; expected a finite number"),
        ("1 qid:1 1:1e400\n1 qid:1 0:1", "found '1e400' for a feature value"),
        pytest.param("1 qid:1 " + "9" * 5000 + ":1", "expected at most 100000 features", id="long index"),
        ("1 qid:1 1000000000:1", "feature index '1000000000'; expected at most 100000 features"),
        ("1 qid:1 99999999999999999999:1", "expected at most 100000 features"),
    ],
)
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("before", [0, 1, 40])
def test_bad_lines_are_named(tmp_path, monkeypatch, line, message, compress, before):
    monkeypatch.setattr(letor_files, "BLOCK", 100)
    text = "0 qid:1 1:0.5 # fine\n" * before + line + "\n" + "0 qid:1 1:0.5\n" * 3
    path = tmp_path / ("a.txt.gz" if compress else "a.txt")
    path.write_bytes(gzip.compress(text.encode()) if compress else text.encode())
    with pytest.raises(rw.InputError) as caught:
        rw.read_letor(path)
    assert str(caught.value).startswith(f"{path}:{before + 1}: ")
    assert message in str(caught.value)


def test_the_line_is_counted_in_its_own_file(tmp_path):
    (tmp_path / "a.txt").write_text("0 qid:1 1:1\n" * 5)
    (tmp_path / "b.txt").write_text("0 qid:1 1:1\n\noops\n")
    with pytest.raises(rw.InputError, match=r"b\.txt:3: found 'oops'"):
        rw.read_letor(tmp_path / "a.txt", tmp_path / "b.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("compress", [False, True])
def test_pipes(tmp_path, compress):
    text = b"".join(b"%d qid:%d 1:%d\n" % (i % 3, i // 10, i) for i in range(3000))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(gzip.compress(text) if compress else text,))
    writer.start()
    queries = rw.read_letor(tmp_path / "pipe")
    writer.join()
    assert queries.X.ravel().tolist() == list(range(3000))


def test_a_carriage_return_before_a_line_loses_nothing(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 qid:1 1:1\n\r2 qid:1 1:2\n \r\t3 qid:1 1:3\n\r\r\n\r")
    assert rw.read_letor(tmp_path / "a.txt").y.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [b"1 qid:1 1:0.5 #docid = a\r2 qid:1 1:0.7 #docid = b\r", b"# made long ago\r1 qid:1 1:0.5\r\n0 qid:1 1:1\n"],
)
def test_a_carriage_return_inside_a_comment_is_refused(tmp_path, text):
    (tmp_path / "a.txt").write_bytes(text)
    with pytest.raises(rw.InputError, match=r"a\.txt:1: found a carriage return inside a comment"):
        rw.read_letor(tmp_path / "a.txt")


def test_windows_line_ends_after_comments(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"# head\r\n1 qid:1 1:0.5 #docid = a\r\n2 qid:1 1:0.7 # b c d e f g h\r\r\n")
    queries = rw.read_letor(tmp_path / "a.txt")
    assert (queries.y.tolist(), queries.docid.tolist()) == ([1, 2], ["a", "b"])


def test_systems_that_cannot_read_at_a_place(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "preadv")
    check(tmp_path / "a.txt", "0 qid:1 1:0.5 3:2 #docid = a\n1 qid:2 2:7\n")


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1 qid:1 1:1.00000000000000000000000000000000\n" * 50)
    count = letor.count_lines

    def count_then_change(text):
        lines = count(text)
        with path.open("r+b") as file:
            file.write(b"1 qid:1 1:1\n" * 150)
        return lines

    monkeypatch.setattr(letor, "count_lines", count_then_change)
    with pytest.raises(rw.InputError, match="the file changed while it was read"):
        rw.read_letor(path)


def test_extreme_exponents(tmp_path):
    check(tmp_path / "a.txt", "0 qid:1 1:0." + "0" * 100_000 + "1e100002 2:1" + "0" * 400 + "e-400\n")


class TestBadFiles:
    @pytest.mark.parametrize("n_features", [0, -1, "46", 2.5])
    def test_no_features(self, tmp_path, n_features):
        with pytest.raises(rw.InputError, match="at least 1"):
            rw.read_letor(tmp_path / "a.txt", n_features=n_features)

    def test_truncated_gzip(self, tmp_path):
        whole = gzip.compress(b"".join(b"0 qid:1 1:%f\n" % random.Random(i).random() for i in range(5000)))
        (tmp_path / "a.gz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(rw.InputError, match=r"a\.gz: the compressed file is damaged or cut off"):
            rw.read_letor(tmp_path / "a.gz")

    def test_damaged_gzip(self, tmp_path):
        whole = bytearray(gzip.compress(b"0 qid:1 1:1\n" * 1000))
        whole[15:25] = b"\x00" * 10
        (tmp_path / "a.gz").write_bytes(whole)
        with pytest.raises(rw.InputError, match=r"a\.gz"):
            rw.read_letor(tmp_path / "a.gz")

    @pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a comment\n"])
    def test_empty(self, tmp_path, content):
        (tmp_path / "a.txt").write_bytes(content)
        with pytest.raises(rw.InputError, match=r"a\.txt: no documents"):
            rw.read_letor(tmp_path / "a.txt")

    def test_one_of_several_is_empty(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"0 qid:1 1:1\n")
        (tmp_path / "b.txt").write_bytes(b"")
        with pytest.raises(rw.InputError, match=r"b\.txt: no documents"):
            rw.read_letor(tmp_path / "a.txt", tmp_path / "b.txt")

    def test_binary(self, tmp_path):
        (tmp_path / "a.bin").write_bytes(bytes(random.Random(0).randbytes(5000)))
        with pytest.raises(rw.InputError, match=r"a\.bin:1: found .* for a label"):
            rw.read_letor(tmp_path / "a.bin")

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            rw.read_letor(tmp_path / "nothing.txt")

    def test_more_features_than_wanted(self, tmp_path):
        (tmp_path / "a.txt").write_text("0 qid:1 1:1 3:1\n")
        assert rw.read_letor(tmp_path / "a.txt", n_features=5).X.shape == (1, 5)
        with pytest.raises(rw.InputError, match=r"a\.txt:1: feature index '3'; expected at most 2 features"):
            rw.read_letor(tmp_path / "a.txt", n_features=2)


class TestWriting:
    @pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz"])
    def test_reads_back_the_same_bits(self, tmp_path, name):
        queries = rw.make_queries(12, random_state=0)
        rw.write_letor(queries, tmp_path / name)
        back = rw.read_letor(tmp_path / name)
        for field in ("X", "y", "indptr", "qid", "docid"):
            assert getattr(back, field).tolist() == getattr(queries, field).tolist()

    def test_refuses_what_the_format_cannot_hold(self, tmp_path):
        queries = rw.Queries.from_arrays([[0.0]], [0], [1], features=["colour"], categories=(("red", "blue"),))
        with pytest.raises(rw.InputError, match="feature colour is categorical; LETOR text has numbers only"):
            rw.write_letor(queries, tmp_path / "a.txt")
        queries = rw.Queries.from_arrays([[1.0]], [0], ["two words"])
        with pytest.raises(rw.InputError, match="query id 'two words'"):
            rw.write_letor(queries, tmp_path / "a.txt")
        assert list(tmp_path.iterdir()) == []


class TestFolds:
    @pytest.mark.parametrize(
        "names", [("train.txt", "vali.txt", "test.txt"), ("trainingset.txt", "validationset.txt", "testset.txt")]
    )
    @pytest.mark.parametrize("compress", [False, True])
    def test_both_layouts(self, tmp_path, names, compress):
        for fold in (1, 2, 10):
            (tmp_path / f"Fold{fold}").mkdir()
            for i, name in enumerate(names):
                text = f"{i} qid:{fold} {i + 1}:1\n".encode()
                path = tmp_path / f"Fold{fold}" / (name + ".gz" if compress else name)
                path.write_bytes(gzip.compress(text) if compress else text)
        folds = rw.read_folds(tmp_path)
        assert [files[0][0].parent.name for files in folds.files] == ["Fold1", "Fold2", "Fold10"]
        train, valid, test = folds[2]
        assert (train.y[0], valid.y[0], test.y[0]) == (0, 1, 2)
        assert train.n_features == valid.n_features == test.n_features == 3
        assert len(folds[1:]) == 2
        assert sum(1 for _ in folds) == 3

    def test_parts_make_folds_as_letor_does(self, tmp_path):
        for part in (1, 2, 3, 4, 10):
            (tmp_path / f"S{part}.txt.gz").write_bytes(gzip.compress(f"1 qid:{part} 1:{part}\n".encode()))
        folds = rw.read_folds(tmp_path)
        assert [[part.qid.tolist() for part in fold] for fold in folds] == [
            [[1, 2, 3], [4], [10]],
            [[2, 3, 4], [10], [1]],
            [[3, 4, 10], [1], [2]],
            [[4, 10, 1], [2], [3]],
            [[10, 1, 2], [3], [4]],
        ]

    def test_only_folds_are_folds(self, tmp_path):
        for name in ("Fold1", "2008", "Fold\u00b2", "Folder3"):
            (tmp_path / name).mkdir()
        for name in ("train", "vali", "test"):
            (tmp_path / "Fold1" / f"{name}.txt").write_text("1 qid:1 1:1\n")
        assert len(rw.read_folds(tmp_path)) == 1

    def test_queries_are_cut_whole(self):
        queries = rw.make_queries(23, n_docs=5, random_state=1)
        folds = rw.split_folds(queries, 5, random_state=3)
        tested = []
        for i, (train, valid, test) in enumerate(folds):
            ids = [set(part.qid.tolist()) for part in (train, valid, test)]
            assert set.union(*ids) == set(queries.qid.tolist())
            assert sum(map(len, ids)) == 23
            assert ids[1] == set(folds[(i - 1) % 5].test.qid.tolist())
            assert train.n_docs + valid.n_docs + test.n_docs == queries.n_docs
            tested += test.qid.tolist()
        assert sorted(tested) == sorted(queries.qid.tolist())
        assert len(folds[1:3]) == 2
        again = rw.split_folds(queries, 5, random_state=3)[-1]
        assert again.test.qid.tolist() == folds[4].test.qid.tolist()

    def test_too_few_to_cut(self):
        with pytest.raises(rw.InputError, match="2 folds; expected at least 3"):
            rw.split_folds(rw.make_queries(9, random_state=0), 2)
        with pytest.raises(rw.InputError, match="4 queries cannot make 5 folds"):
            rw.split_folds(rw.make_queries(4, random_state=0), 5)

    def test_what_is_missing_is_named(self, tmp_path):
        with pytest.raises(rw.InputError, match="not a folder"):
            rw.read_folds(tmp_path / "nothing")
        with pytest.raises(rw.InputError, match="no folds"):
            rw.read_folds(tmp_path)
        (tmp_path / "Fold1").mkdir()
        (tmp_path / "Fold1" / "train.txt").touch()
        with pytest.raises(rw.InputError, match=r"Fold1: no vali\.txt"):
            rw.read_folds(tmp_path)

    def test_all_missing_files_are_listed(self, tmp_path):
        assert list_missing_files(tmp_path / "nothing", 2) == ["Fold1", "Fold2"]
        for name in (
            "fold1/trainingset.txt",
            "fold1/testset.txt.gz",
            "Fold3/vali.txt",
            "set1.train.txt",
            "Set1.vali.txt",
        ):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        assert list_missing_files(tmp_path, 3) == ["fold1/vali.txt", "Fold2", "Fold3/train.txt", "Fold3/test.txt"]
        assert list_missing_files(tmp_path, 1) == ["train.txt", "vali.txt", "test.txt"]
        assert list_missing_files(tmp_path, 1, "set1") == ["set1.test.txt"]
        assert list_missing_files(tmp_path, 1, "set2") == ["set2.train.txt", "set2.valid.txt", "set2.test.txt"]
        (tmp_path / "parts").mkdir()
        (tmp_path / "parts" / "S2.txt.gz").touch()
        assert list_missing_files(tmp_path / "parts", 3) == ["S1.txt", "S3.txt"]


class TestFixedSplits:
    """Folders with one training, one validation and one test file."""

    @pytest.fixture
    def parts(self):
        queries = rw.make_queries(9, n_docs=4, n_features=3, random_state=0)
        return [queries.take(range(3 * i, 3 * i + 3)) for i in range(3)]

    def write(self, folder, parts, *names):
        for name, part in zip(names, parts, strict=True):
            rw.write_letor(part, folder / name)

    def test_the_files_of_a_folder_are_one_fold(self, tmp_path, parts):
        self.write(tmp_path, parts, "train.txt", "vali.txt", "test.txt")
        folds = rw.read_folds(tmp_path)
        assert len(folds) == 1
        assert has_folds(tmp_path)
        assert [part.qid.tolist() for part in folds[0]] == [part.qid.tolist() for part in parts]

    def test_a_split_is_chosen_by_its_name(self, tmp_path, parts):
        self.write(tmp_path, parts, "set1.train.txt", "set1.valid.txt", "set1.test.txt")
        assert rw.read_folds(tmp_path)[0].test.qid.tolist() == parts[2].qid.tolist()  # the only one needs no name
        self.write(tmp_path, parts[::-1], "Set2.train.txt.gz", "Set2.valid.txt.gz", "Set2.test.txt.gz")
        with pytest.raises(rw.InputError, match=r"the splits set1, set2; expected one\. Name it: split='set1'"):
            rw.read_folds(tmp_path)
        assert rw.read_folds(tmp_path, split="set2")[0].test.qid.tolist() == parts[0].qid.tolist()
        with pytest.raises(rw.InputError, match=r"no set3\.train\.txt; expected one of set3\.train\.txt"):
            rw.read_folds(tmp_path, split="set3")

    def test_a_folder_of_tables_is_a_split_only_if_it_is_whole(self, tmp_path):
        for name in ("train.parquet", "test.parquet"):
            (tmp_path / name).touch()
        assert not has_folds(tmp_path)
        (tmp_path / "valid.parquet").touch()
        assert has_folds(tmp_path)

    def test_an_experiment_runs_on_a_split(self, tmp_path, parts):
        self.write(tmp_path, parts, "set1.train.txt", "set1.valid.txt", "set1.test.txt")
        self.write(tmp_path, parts[::-1], "set2.train.txt", "set2.valid.txt", "set2.test.txt")
        spec = tmp_path / "spec.toml"
        spec.write_text('[data]\nfolds = "."\nsplit = "set2"\n[[methods]]\nranker = "regression"\n')
        experiment = rw.read_experiment(spec)
        assert experiment.to_json()["data"] == {"folds": str(tmp_path.resolve()), "split": "set2"}
        assert [path.name for path in experiment.data.files] == ["set2.test.txt", "set2.train.txt", "set2.valid.txt"]
        results = rw.run_experiment(experiment, tmp_path / "out", rw.Serial())
        assert sorted(results.tables["queries"]["qid"].tolist()) == sorted(map(str, parts[0].qid.tolist()))
        spec.write_text('[data]\nfolds = "."\nsplit = 2\n[[methods]]\nranker = "regression"\n')
        with pytest.raises(rw.InputError, match=r"data\.split is 2; expected the name of a split"):
            rw.read_experiment(spec)


@pytest.mark.parametrize("compress", [False, True])
def test_memory_stays_near_the_size_of_the_result(tmp_path, compress, monkeypatch):
    monkeypatch.setattr(
        letor_files, "BLOCK", letor_files.BLOCK // 8
    )  # and an eighth of the text that such blocks are for
    line = b"1 qid:%d " + b" ".join(b"%d:%f" % (i, i / 7) for i in range(1, 101)) + b"\n"
    text = b"".join(line % (i // 50) for i in range(7_500))
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(text, 1) if compress else text)
    del text
    (tmp_path / "small.txt").write_bytes(gzip.compress(line % 1) if compress else line % 1)
    rw.read_letor(tmp_path / "small.txt")  # loads the kernels
    tracemalloc.start()
    try:
        queries = rw.read_letor(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert queries.X.nbytes == 7_500 * 100 * 4
    assert peak < 2.5 * (queries.X.nbytes + queries.y.nbytes)


def test_the_number_of_features_is_the_highest_index_and_no_guess(tmp_path):
    (tmp_path / "a").write_bytes(b"3 qid:1\x0b30:1.5\n1 qid:2 2:1\n")  # a vertical tab is part of an id
    queries = rw.read_letor(tmp_path / "a")
    assert queries.qid.tolist() == ["1\x0b30:1.5", "2"]
    assert queries.X.tolist() == [[0.0, 0.0], [0.0, 1.0]]


class TestByteOrderMark:
    """Some editors write one before UTF-8."""

    TEXT = "\ufeff2 qid:1 1:0.5\n1 qid:1 1:0.25\n".encode()

    @pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
    def test_one_at_the_start_of_each_file_is_skipped(self, tmp_path, compress):
        for name in ("a", "b"):
            (tmp_path / name).write_bytes(compress(self.TEXT))
        queries = rw.read_letor(tmp_path / "a", tmp_path / "b")
        assert queries.y.tolist() == [2.0, 1.0, 2.0, 1.0]
        assert queries.X.ravel().tolist() == [0.5, 0.25, 0.5, 0.25]

    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_nothing_else_is(self, tmp_path, compress):
        (tmp_path / "a").write_bytes(compress(self.TEXT))
        (tmp_path / "twice").write_bytes(compress(self.TEXT[:3] + self.TEXT))
        (tmp_path / "inside").write_bytes(compress(self.TEXT[3:] + self.TEXT))
        (tmp_path / "alone").write_bytes(compress(self.TEXT[:3]))
        for name, message in (("twice", "twice:1: found"), ("inside", "inside:3: found"), ("alone", "no documents")):
            with pytest.raises(rw.InputError, match=message):
                rw.read_letor(tmp_path / "a", tmp_path / name)


class TestRoom:
    """A table that would not fit is refused before it is made, and the line that asks for it is named."""

    ROWS = 20_000

    @pytest.fixture(params=[bytes, gzip.compress], ids=["plain", "gzip"])
    def sparse(self, request, tmp_path):
        """369 kB of text that would be a table of 8 GB."""
        lines = [b"1 qid:%d 1:0.5\n" % (i // 20) for i in range(self.ROWS)]
        lines[7] = b"1 qid:0 1:0.5 100000:1\n"
        (tmp_path / "few").write_bytes(request.param(b"1 qid:0 1:1\n\n"))
        (tmp_path / "wide").write_bytes(request.param(b"".join(lines)))
        return tmp_path

    def test_a_small_text_makes_no_huge_table(self, sparse):
        expected = (
            r"wide:8: feature index 100000 makes a table of 2000\d documents x 100000 features: 8.0 GB from 0.\d MB"
        )
        for files in (["wide"], ["few", "wide"], ["wide", "few"]):
            tracemalloc.start()
            try:
                with pytest.raises(rw.InputError, match=expected):
                    rw.read_letor(*(sparse / name for name in files))
                assert tracemalloc.get_traced_memory()[1] < 100e6
            finally:
                tracemalloc.stop()

    @pytest.mark.parametrize("n_features", [None, 60_000])
    def test_no_table_is_larger_than_the_memory_that_is_free(self, tmp_path, monkeypatch, n_features):
        monkeypatch.setattr(table_sizes, "read_available_memory", lambda: 1_500_000)
        monkeypatch.setattr(table_sizes, "LITTLE", 0)
        text = b"1 qid:1 1:1\n" * 9 + b"1 qid:1 1:1 50000:1\n"
        expected = ":10: feature index 50000 makes" if n_features is None else ": n_features=60000 makes"
        for name, content in (("plain", text), ("packed", gzip.compress(text))):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(rw.InputError, match=rf"{name}{expected} .* GB of memory are free.*rankwright convert"):
                rw.read_letor(tmp_path / name, n_features=n_features)

    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_blank_lines_take_no_room(self, tmp_path, compress):
        (tmp_path / "a").write_bytes(compress(b"1 qid:1 1:1\n" + b"\n" * 100_000 + b"1 qid:1 100000:3\n"))
        queries = rw.read_letor(tmp_path / "a")
        assert queries.X.shape == (2, 100_000)
        assert (queries.X[0, 0], queries.X[1, -1]) == (1.0, 3.0)

    def test_who_says_how_many_features_there_are_means_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(table_sizes, "_SMALL", 0)
        (tmp_path / "a").write_bytes(b"1 qid:1 1:1\n" * 3)
        assert rw.read_letor(tmp_path / "a", n_features=90_000).X.shape == (3, 90_000)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"0 qid:\xff 1:1\n", r":2: the id '\\\\xff' is not UTF-8; convert the file to UTF-8"),
        (b"0 qid:a\0 1:1\n", r":2: the id 'a\\x00' has a NUL byte"),
        (b"0 qid:a 1:1 #docid = \xff\n", ":2: the id .* is not UTF-8"),
        (b"0 qid:a 1:1 #docid = d\0\n", ":2: the id .* has a NUL byte"),
    ],
)
def test_ids_that_would_become_one_are_refused(tmp_path, suffix, bad, message):
    text = b"0 qid:a 1:1 #docid = d\n" + bad + b"1 qid:\\xff 1:1 #docid = \\xff\n"
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(gzip.compress(text) if suffix else text)
    with pytest.raises(rw.InputError, match=message):
        rw.read_letor(path)


def test_one_long_query_id_among_many(tmp_path):
    lines = [f"0 qid:q{i} 1:1\n" for i in range(20_000)]
    lines[9] = f"0 qid:{'x' * 100_000} 1:1\n"
    (tmp_path / "a.txt").write_text("".join(lines))
    queries = rw.read_letor(tmp_path / "a.txt")
    assert len(queries) == 20_000
    assert queries.qid.nbytes + queries.row_qid.nbytes < 1_000_000
