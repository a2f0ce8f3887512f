"""Data sets on disk: what is written is what is read, in bounded memory, whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.queries import assert_same_queries

import rankwright as rw
from rankwright import cli
from rankwright.basics import mapped_arrays
from rankwright.data import letor_files, letor_source, mapped, mapped_header, mapped_writer, row_files
from rankwright.data.column_roles import NO_ROLES
from rankwright.data.mapped_writer import write_source
from rankwright.data.reading import open_source
from rankwright.data.row_sources import RowBlock, RowSource, join_blocks
from rankwright.data.unretrieved import Unretrieved

CATEGORIES = (None, ("x", "y"), None)


@pytest.fixture
def small(monkeypatch):
    """Everything in small pieces, and mapped however small it is."""
    monkeypatch.setattr(letor_files, "BLOCK", 90)
    monkeypatch.setattr(row_files, "_PIECE", 40)
    monkeypatch.setattr(mapped_writer, "_ROWS", 2)
    monkeypatch.setattr(mapped_writer, "_PIECE", 3)
    monkeypatch.setattr(mapped, "_BLOCK", 24)
    monkeypatch.setattr(mapped_arrays, "MAPPED_FROM", 0)


def make_full() -> rw.Queries:
    """A data set with everything that one may have, its rows not adjacent by query."""
    queries = rw.Queries.from_arrays(
        [[1, 0, np.nan], [2, np.nan, 3], [3, 1, 5], [4, 0, 7], [5, 1, 9]],
        [0, 1, 2, 0, 1],
        ["b", "a", "b", "c", "a"],
        docid=["u", "é" * 3, "w" * 70, "", "z"],
        weight=[1, 2, 0.5],
        doc_weight=[1, 2, 3, 4, 5],
        features=["bm25", "kind", "age"],
        categories=CATEGORIES,
    )
    shown = [9, 8, 7, 6], [1, 2, 3, 4]
    clicks = rw.ClickCounts([0, 1, 1, 3, 4, 4], [1, 2, 3, 1], *shown, [9, 8, 7], [1.0, 0.5, 0.25])
    unretrieved = Unretrieved(np.array([1.0, 2.0]), np.array([0, 1, 1, 2]))
    return queries.replace(unretrieved=unretrieved, position=np.array([1, 3, 2, 1, 1]), clicks=clicks)


class TestWriteQueries:
    def test_everything_comes_back(self, tmp_path, small):
        queries = make_full()
        rw.write_queries(queries, tmp_path / "a.rwq")
        assert_same_queries(rw.read(tmp_path / "a.rwq"), queries)
        rw.write_queries(rw.read(tmp_path / "a.rwq"), tmp_path / "b.rwq")
        assert_same_queries(rw.read(tmp_path / "b.rwq"), queries)
        assert (tmp_path / "a.rwq/header.json").read_text() == (tmp_path / "b.rwq/header.json").read_text()

    @pytest.mark.parametrize("ids", [[7, 7, 8], ["7", "7", "x"], np.array([2**63, 2**63, 1], np.uint64)], ids=str)
    def test_ids_keep_their_kind(self, tmp_path, ids):
        queries = rw.Queries.from_arrays(np.eye(3), None, ids, docid=ids)
        rw.write_queries(queries, tmp_path / "a.rwq")
        found = rw.read(tmp_path / "a.rwq")
        assert found.qid.dtype.kind == queries.qid.dtype.kind
        assert_same_queries(found, queries)

    def test_equal_ids_of_different_queries_stay_apart(self, tmp_path):
        queries = rw.make_queries(2, random_state=0).take([0, 0, 1])
        rw.write_queries(queries, tmp_path / "a.rwq")
        assert len(rw.read(tmp_path / "a.rwq")) == 3

    def test_plain_numpy_reads_the_arrays(self, tmp_path):
        queries = rw.make_queries(3, random_state=0)
        rw.write_queries(queries, tmp_path / "a.rwq")
        X = np.load(tmp_path / "a.rwq" / "X.npy", mmap_mode="r", allow_pickle=False)
        assert X.dtype == np.float32
        assert X.tobytes() == queries.X.tobytes()

    def test_features_are_mapped_and_never_copied(self, tmp_path, monkeypatch):
        monkeypatch.setattr(mapped_arrays, "MAPPED_FROM", 0)
        rw.write_queries(rw.make_queries(30, random_state=0), tmp_path / "a.rwq")
        queries = rw.read(tmp_path / "a.rwq")
        assert not queries.X.flags.writeable
        for each in (queries.grouped(), queries.slice(3, 9), *queries.shards(4), queries.replace(weight=None)):
            assert np.shares_memory(each.X, queries.X)
        with pytest.raises(ValueError, match="read-only"):
            queries.X[0, 0] = 1


class TestConvert:
    @pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
    def test_text_converted_is_text_read(self, tmp_path, small, suffix):
        path = tmp_path / f"a.txt{suffix}"
        rw.write_letor(rw.make_queries(9, n_docs=7, n_features=5, random_state=0), path)
        rw.convert(path, out=tmp_path / "a.rwq")
        assert_same_queries(rw.read(tmp_path / "a.rwq"), rw.read_letor(path))

    @settings(max_examples=20, deadline=None)
    @given(st.data())
    def test_any_text(self, data):
        ids = st.sampled_from(["1", "2", "30", "007", "q", "é", "x" * 70])
        count = data.draw(st.integers(1, 12))
        lines = []
        for _ in range(count):
            indices = sorted(data.draw(st.sets(st.integers(1, 9), max_size=4)))
            words = [str(data.draw(st.integers(0, 3))), f"qid:{data.draw(ids)}", *(f"{i}:{i / 4}" for i in indices)]
            comment = data.draw(st.sampled_from(["", " # d1", " #docid = é", " # " + "y" * 65]))
            lines.append(" ".join(words) + comment)
        with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
            folder = Path(name)
            patch.setattr(letor_files, "BLOCK", data.draw(st.sampled_from([20, 60, 1 << 22])))
            patch.setattr(letor_source, "_LARGEST_TABLE", data.draw(st.sampled_from([1, 60, 1 << 26])))
            patch.setattr(row_files, "_PIECE", data.draw(st.sampled_from([1, 40, 1 << 23])))
            patch.setattr(mapped_arrays, "MAPPED_FROM", 0)
            (folder / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            rw.convert(folder / "a.txt", out=folder / "a.rwq")
            expected = rw.read_letor(folder / "a.txt")
            assert_same_queries(rw.read(folder / "a.rwq"), expected)
            blocks = list(open_source([folder / "a.rwq"], NO_ROLES).read_blocks())
            assert_same_queries(join_blocks(blocks), expected)
            rw.convert(folder / "a.rwq", out=folder / "b.rwq")
            assert_same_queries(rw.read(folder / "b.rwq"), expected)

    def test_several_files_are_one_data_set(self, tmp_path, small):
        (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n")
        (tmp_path / "b.txt").write_text("2 qid:1 3:1 # d\n")
        rw.convert(tmp_path / "a.txt", tmp_path / "b.txt", out=tmp_path / "both.rwq")
        expected = rw.read(tmp_path / "a.txt", tmp_path / "b.txt")
        assert_same_queries(rw.read(tmp_path / "both.rwq"), expected)
        for name in "ab":
            rw.convert(tmp_path / f"{name}.txt", out=tmp_path / f"{name}.rwq")
        assert_same_queries(rw.read(tmp_path / "a.rwq", tmp_path / "b.rwq"), expected)
        assert rw.read(tmp_path / "a.rwq", n_features=3).X.shape == (2, 3)
        with pytest.raises(rw.InputError, match="3 features; expected at most 2"):
            rw.read(tmp_path / "b.rwq", n_features=2)

    def test_weights_and_categories_of_blocks(self, tmp_path, small):
        class Made(RowSource):
            features, categories = ("a", "kind"), (None, ("x", "y"))

            def read(self, backend=None):
                raise NotImplementedError

            def read_blocks(self):
                X = np.array([[1, 0], [2, 1]], np.float32)
                yield RowBlock(X, None, np.array([1, 2]), None, np.array([1.0, 3.0]), np.array([1.0, 2.0]))
                yield RowBlock(X + 5, None, np.array(["q", "1"]), np.array([7, 8]), self.weight, np.ones(2))

        source = Made()
        source.weight = np.array([2.0, 1.0])
        write_source(source, tmp_path / "a.rwq")
        found = rw.read(tmp_path / "a.rwq")
        assert found.qid.tolist() == ["1", "2", "q"]
        assert found.weight.tolist() == [1, 3, 2]
        assert found.doc_weight.tolist() == [1, 2, 1, 1]
        assert found.docid.tolist() == ["", "", "7", "8"]
        assert (found.features, found.categories, found.has_grades) == (source.features, source.categories, False)
        source.weight = np.array([2.0, 9.0])
        with pytest.raises(rw.InputError, match="query 1 has the weights 1 and 9"):
            write_source(source, tmp_path / "b.rwq")
        assert [path.name for path in tmp_path.iterdir()] == ["a.rwq"]

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    @pytest.mark.parametrize(
        ("line", "message"),
        [("x qid:1 1:1", "a.txt{}:41: found 'x' for a label"), ("1 qid:1 0:1", "a.txt{}:41: feature index 0")],
    )
    def test_a_bad_line_is_named_and_nothing_is_written(self, tmp_path, small, line, message, suffix, capsys):
        text = ("1 qid:1 1:1 # d\n" * 40 + line + "\n" + "1 qid:1 1:1\n" * 9).encode()
        (tmp_path / f"a.txt{suffix}").write_bytes(gzip.compress(text) if suffix else text)
        before = sorted(tmp_path.rglob("*"))
        assert cli.run(["convert", str(tmp_path / f"a.txt{suffix}"), "--out", str(tmp_path / "a.rwq")]) == 2
        err = capsys.readouterr().err
        assert message.format(suffix) in err
        assert len(err.splitlines()) == 1
        assert sorted(tmp_path.rglob("*")) == before


class TestFeatureSelection:
    @pytest.fixture
    def path(self, tmp_path):
        rw.write_queries(make_full(), tmp_path / "a.rwq")
        return tmp_path / "a.rwq"

    def test_columns_of_a_model_by_name(self, path, small):
        source = open_source([path], NO_ROLES, features=["age", "bm25"])
        expected = make_full().X[:, [2, 0]].tobytes()
        assert source.features == ("age", "bm25")
        assert source.read().X.tobytes() == expected
        assert b"".join(block.X.tobytes() for block in source.read_blocks()) == expected

    def test_known_categories(self, path):
        known = (None, ("z", "y"), None)
        source = open_source([path], NO_ROLES, features=["bm25", "kind", "age"], categories=known)
        assert source.categories == known
        assert source.read().X[:, 1].tolist()[2] == 1
        assert np.isnan(source.read().X[[0, 1, 3], 1]).all()

    def test_numbers_in_place_of_categories(self, path):
        with pytest.raises(rw.InputError, match=r"feature kind has categories here .* numbers in its place"):
            open_source([path], NO_ROLES, features=["bm25", "kind", "age"], categories=(None,) * 3)

    def test_documents_that_no_run_found_count_in_the_evaluation_of_a_file(self, tmp_path, capsys):
        queries = rw.make_queries(6, n_docs=5, random_state=0)
        left = Unretrieved(np.full(6, 2.0), np.arange(7))
        rw.write_queries(queries.replace(unretrieved=left), tmp_path / "a.rwq")
        model = rw.SingleFeature(feature=0).fit(queries)
        rw.save(model, tmp_path / "m.json")
        assert (
            cli.run(["evaluate", f"--data={tmp_path}/a.rwq", f"--model={tmp_path}/m.json", "--measures=map", "--json"])
            == 0
        )
        expected = rw.evaluate(model, rw.read(tmp_path / "a.rwq"), ["map"]).means["map"]
        assert json.loads(capsys.readouterr().out)["means"]["map"] == expected
        assert expected < rw.evaluate(model, queries, ["map"]).means["map"]

    def test_a_missing_feature_is_named(self, path):
        with pytest.raises(rw.InputError, match="no feature 'clicks'"):
            open_source([path], NO_ROLES, features=["bm25", "clicks"])

    def test_columns_have_their_roles_already(self, path):
        with pytest.raises(rw.InputError, match="chosen when they were converted"):
            rw.read(path, label="age")


class TestDamage:
    @pytest.fixture
    def path(self, tmp_path):
        rw.write_queries(make_full(), tmp_path / "a.rwq")
        return tmp_path / "a.rwq"

    @pytest.mark.parametrize("name", ["X", "y", "indptr", "docid_text", "source"])
    @pytest.mark.parametrize("change", [-1, 1, None])
    def test_files_of_another_size_are_refused(self, path, name, change):
        file = path / f"{name}.npy"
        if change is None:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:-1] if change < 0 else file.read_bytes() + b"x")
        with pytest.raises(rw.InputError, match=f"{name}.npy: (missing|.*bytes; expected)"):
            rw.read(path)

    @pytest.mark.parametrize(
        "name", [each.removesuffix(".npy") for each in mapped_header.ARRAY_FILES if "qid_" not in each]
    )
    def test_changed_values_are_found(self, path, name):
        file = next(each for each in (path / f"{name}.npy", path / f"{name}_text.npy") if each.exists())
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        with pytest.raises(rw.InputError, match=r"damaged"):
            rw.verify_checksums(path)

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("indptr", [0, 2, 9, 5]),
            ("indptr", [0, 2, 2, 5]),
            ("indptr", [1, 2, 4, 5]),
            ("source", [0, 0, 1, 2, 3]),
            ("source", [0, 1, 2, 3, 5]),
            ("y", [0, 1, np.inf, 0, 0]),
            ("weight", [1, -1, 1]),
            ("docid_indptr", [0, 1, 2, 1 << 40, 3, 4]),
        ],
    )
    def test_values_that_would_read_elsewhere_are_refused_when_opened(self, path, name, values):
        file = path / f"{name}.npy"
        old = np.load(file)
        file.write_bytes(file.read_bytes()[:128] + np.array(values, old.dtype).tobytes())
        with pytest.raises(rw.InputError, match=f"{name}.npy: the file was damaged"):
            rw.read(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda header: [],
            lambda header: header | {"format": "other"},
            lambda header: header | {"version": 2},
            lambda header: header | {"extra": 1},
            lambda header: header | {"features": ["a"]},
            lambda header: header | {"features": ["a", "b", 3]},
            lambda header: header | {"categories": [1, 2, 3]},
            lambda header: header | {"arrays": {}},
            lambda header: header | {"arrays": header["arrays"] | {"../x": header["arrays"]["X"]}},
            lambda header: header | {"arrays": header["arrays"] | {"y": {"dtype": "|O", "shape": [5], "sha256": ""}}},
            lambda header: header | {"arrays": header["arrays"] | {"y": header["arrays"]["y"] | {"shape": [-5]}}},
            lambda header: header | {"arrays": header["arrays"] | {"y": header["arrays"]["y"] | {"shape": [10**30]}}},
            lambda header: header | {"arrays": header["arrays"] | {"y": header["arrays"]["y"] | {"shape": [4]}}},
            lambda header: header | {"features": ["bm25", "kind", "ago"]},
        ],
    )
    def test_other_headers_are_refused(self, path, change):
        header = json.loads((path / "header.json").read_text())
        (path / "header.json").write_text(json.dumps(change(header)))
        with pytest.raises(rw.InputError, match=r"header.json: not a header of converted data") as error:
            rw.read(path)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000, b"null"])
    def test_headers_that_are_no_json_are_refused(self, path, text):
        (path / "header.json").write_bytes(text)
        with pytest.raises(rw.InputError, match="not a header of converted data"):
            rw.read(path)

    def test_no_header(self, path):
        (path / "header.json").unlink()
        with pytest.raises(rw.InputError, match=r"no header.json; expected a folder that rankwright convert wrote"):
            rw.read(path)

    def test_check_on_the_command_line(self, path, capsys):
        assert cli.run(["convert", str(path), "--check"]) == 0
        assert capsys.readouterr().out == f"{path}: as it was written\n"
        (path / "X.npy").write_bytes((path / "X.npy").read_bytes()[:-4] + b"1234")
        assert cli.run(["convert", str(path), "--check"]) == 2
        assert "X.npy: damaged" in capsys.readouterr().err


class TestWholeOrNotAtAll:
    @pytest.fixture
    def text(self, tmp_path):
        rw.write_letor(rw.make_queries(4, random_state=0), tmp_path / "a.txt")
        return tmp_path / "a.txt"

    def test_an_older_one_is_replaced_when_the_new_one_is_whole(self, tmp_path, text):
        out = tmp_path / "a.rwq"
        rw.write_queries(make_full(), out)
        (tmp_path / "bad.txt").write_text("1 qid:1 1:1\nx\n")
        with pytest.raises(rw.InputError):
            rw.convert(tmp_path / "bad.txt", out=out)
        assert_same_queries(rw.read(out), make_full())
        older = rw.read(out)
        rw.convert(text, out=out)
        assert_same_queries(rw.read(out), rw.read(text))
        assert_same_queries(older, make_full())  # it is still mapped
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.rwq", "a.txt", "bad.txt"]

    @pytest.mark.parametrize("kind", ["file", "folder", "input", "inside", "around", "suffix", "no folder"])
    def test_targets_that_are_refused_before_anything_is_read(self, tmp_path, text, kind, capsys):
        out, source = tmp_path / "out.rwq", text
        if kind == "file":
            out.write_text("mine")
        elif kind == "folder":
            out.mkdir()
            (out / "mine.txt").write_text("mine")
        elif kind == "input":
            rw.convert(text, out=out)
            source = out
        elif kind == "inside":
            rw.convert(text, out=tmp_path / "in.rwq")
            source, out = tmp_path / "in.rwq", tmp_path / "in.rwq" / "out.rwq"
        elif kind == "around":
            rw.convert(text, out=out)
            source = Path(shutil.copy(text, out / "a.txt"))
        elif kind == "suffix":
            out = tmp_path / "out.txt"
        else:
            out = tmp_path / "no" / "out.rwq"
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert cli.run(["convert", str(source), "--out", str(out)]) == 2
        err = capsys.readouterr().err
        assert len(err.splitlines()) == 1
        assert str(out) in err
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before

    def test_a_full_disk_is_one_line_and_leaves_nothing(self, tmp_path, text):
        code = "import sys; from rankwright import cli; sys.exit(cli.run(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "convert", str(text), "--out", str(tmp_path / "a.rwq")]

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))

        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
        assert done.returncode == 2
        assert done.stderr == f"rankwright: {tmp_path / 'a.rwq'}: File too large\n"
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]

    def test_an_interruption_leaves_nothing(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        code = "import sys; from rankwright import cli; sys.exit(cli.run(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "convert", str(tmp_path / "pipe"), "--out", str(tmp_path / "a.rwq")]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process, (tmp_path / "pipe").open("wb") as pipe:
            pipe.write(b"1 qid:1 1:1\n" * 9)
            pipe.flush()
            deadline = time.monotonic() + 60
            while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) != 0
        assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


_LIMITED = """
import resource, sys
import rankwright as rw
rw.convert(sys.argv[1], out=sys.argv[3])  # imports and compiles
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + int(sys.argv[4]),) * 2)
rw.convert(sys.argv[2], out=sys.argv[3])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_DATA")
@pytest.mark.parametrize("adjacent", [pytest.param(True, marks=pytest.mark.slow), False])
def test_memory_does_not_grow_with_the_input(tmp_path, adjacent):
    """80 MB of features are written with 56 MB more memory than a fifth of them leaves behind."""
    line = " ".join(f"{i}:{i % 7}" for i in range(1, 501))
    for name, n in (("few", 8_000), ("many", 40_000)):
        with (tmp_path / name).open("w") as file:
            file.writelines(f"1 qid:{i // 20 if adjacent else i % 50} {line} # d{i}\n" for i in range(n))
    paths = [str(tmp_path / name) for name in ("few", "many", "a.rwq")]
    subprocess.run([sys.executable, "-c", _LIMITED, *paths, str(56 << 20)], check=True)
    queries = rw.read(tmp_path / "a.rwq")
    assert queries.X.nbytes == 4 * 500 * 40_000
    assert queries.docid[[0, -1]].tolist() == ["d0", "d39999"]
    assert (queries.X[12_345] == np.arange(1, 501) % 7).all()


@pytest.mark.parametrize("ranker", ["Regression", "ListNet", "RankBoost", "LambdaMART", "DirectRank"])
def test_models_of_mapped_data_have_the_same_bits(tmp_path, monkeypatch, ranker):
    monkeypatch.setattr(mapped_arrays, "MAPPED_FROM", 0)
    queries = rw.make_queries(30, n_docs=12, n_features=6, random_state=0)
    rw.write_queries(queries, tmp_path / "a.rwq")
    on_disk = rw.read(tmp_path / "a.rwq")
    scores = [getattr(rw, ranker)().fit(each).predict(each).tobytes() for each in (queries, on_disk)]
    assert scores[0] == scores[1]
