"""Protocols of public data sets: each runs on made files in the layout of its archive, and says what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, get_type_hints

import numpy as np
import pytest

import rankwright as rw
from rankwright import cli
from rankwright.cli.app import app
from rankwright.papers import reproduction
from rankwright.papers.reproduction import NAMES, make_reproductions
from rankwright.papers.reproduction.protocols import _load, _read_protocol

FOLDS = [f"Fold{fold}/{part}.txt" for fold in range(1, 6) for part in ("train", "vali", "test")]
LARGEST = "1.79769313486232E+308"  # Istella's mark of a missing value


class Layout(NamedTuple):
    """The files of a data set as its archive has them, its features and grades."""

    folder: str
    files: list[str]
    n_features: int
    highest_grade: int
    kind: str = "dense"  # sparse: zeros are left out; marked: some values are the largest double


GOV = {
    name: Layout(f"Gov/QueryLevelNorm/{name[2:]}_{name[:2]}_dataset", FOLDS, 64, 1)
    for name in ("td2003", "td2004", "hp2003", "hp2004", "np2003", "np2004")
}
LAYOUTS = {
    "ohsumed": Layout("OHSUMED/QueryLevelNorm", FOLDS, 45, 2),
    "ohsumed-2.0": Layout(
        "OHSUMED-2.0", [f"Fold{f}/{p}set.txt" for f in range(1, 6) for p in ("training", "validation", "test")], 25, 2
    ),
    **GOV,
    "mq2007": Layout("MQ2007", [*FOLDS, *(f"S{i}.txt" for i in range(1, 6))], 46, 2),
    "mq2008": Layout("MQ2008", FOLDS, 46, 2),
    "mslr-web10k": Layout("MSLR-WEB10K", FOLDS, 136, 4),
    "mslr-web30k": Layout("MSLR-WEB30K", FOLDS, 136, 4),
    "yahoo-set1": Layout("ltrc_yahoo", [f"set1.{p}.txt" for p in ("train", "valid", "test")], 699, 4, "sparse"),
    "yahoo-set2": Layout("ltrc_yahoo", [f"set2.{p}.txt" for p in ("train", "valid", "test")], 700, 4, "sparse"),
    "istella-s": Layout("istella-s-letor/sample", ["train.txt", "vali.txt", "test.txt"], 220, 4, "marked"),
}
QUICK = {name: "MART" if name == "istella-s" else "Regression" for name in NAMES}


def write_layout(root: Path, layout: Layout, n_queries: int = 5, n_docs: int = 12) -> Path:
    """Write made files in the layout of a data set; the grade of a document is in its first two features."""
    folder = root / layout.folder
    rng = np.random.default_rng(0)
    for number, name in enumerate(layout.files):
        lines = []
        for query in range(n_queries):
            X = np.round(rng.random((n_docs, layout.n_features)), 3)
            y = np.round(layout.highest_grade * (X[:, 0] + X[:, 1]) / 2).astype(int)
            y[:2] = 0, layout.highest_grade
            X[1, :2] = 1
            for grade, row in zip(y, X, strict=True):
                shown = [f"{i + 1}:{value}" for i, value in enumerate(row) if keep(layout.kind, i, value)]
                if layout.kind == "marked":
                    shown[9] = f"10:{LARGEST}"
                docid = f" #docid = G{len(lines)}" if layout.kind == "dense" else ""
                lines.append(f"{grade} qid:{100 * number + query} {' '.join(shown)}{docid}\n")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(lines))
    return folder


def keep(kind: str, column: int, value: float) -> bool:
    return kind != "sparse" or column < 2 or value > 0.7


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = cli.run([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def test_every_protocol_has_a_file_a_layout_and_a_line_of_help():
    folder = Path(reproduction.__file__).parent
    assert {path.stem for path in folder.glob("*.toml")} == set(NAMES) == set(LAYOUTS)
    command = next(c for c in app.registered_commands if c.callback is not None and c.callback.__name__ == "reproduce")
    assert command.callback is not None
    help_text = str(get_type_hints(command.callback, include_extras=True)["names"].__metadata__[0].help)
    page = (Path(__file__).parents[2] / "docs" / "protocols.md").read_text()
    for name in NAMES:
        assert name in help_text
        assert f"`{name}`" in page


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_of_a_protocol_is_valid(name):
    spec, public = _read_protocol(name)
    for method in spec.methods:
        method.check_candidates(spec.measure)
    names = {method.name for method in spec.methods}
    assert QUICK[name] in names
    assert names >= {figure.method for figure in spec.published}
    assert public.n_features >= LAYOUTS[name].n_features
    assert public.folders[0] == LAYOUTS[name].folder


def test_shared_methods_are_not_repeated():
    for name in NAMES:
        content = _load(name)
        assert ("like" in content) != ("methods" in content)


@pytest.mark.parametrize("name", ["td2003", "mq2007", "mslr-web10k", "yahoo-set1", "yahoo-set2", "istella-s"])
def test_a_protocol_runs_on_files_in_the_layout_of_its_archive(name, capsys, tmp_path):
    layout = LAYOUTS[name]
    write_layout(tmp_path / "data", layout)
    if name == "yahoo-set2":
        write_layout(tmp_path / "data", LAYOUTS["yahoo-set1"])  # both sets are in one folder
    arguments = ["--data", tmp_path / "data", "--out", tmp_path / "out", "--workers", "threads:1"]
    status, out, err = run(capsys, "reproduce", name, "--method", QUICK[name], *arguments)
    assert (status, err) == (0, "")
    results = rw.read_results(tmp_path / "out" / name)
    n_folds = 5 if "Fold1/train.txt" in layout.files else 1
    assert results.tables["trials"]["fold"].max() == n_folds
    tested = [100 * at + q for at, file in enumerate(layout.files[: 3 * n_folds]) if "test" in file for q in range(5)]
    assert sorted(map(int, results.tables["queries"]["qid"])) == tested
    measure = _read_protocol(name)[0].measure
    assert results.means(measure)[0] > 0.5
    assert "All methods: means of the fold means on test queries (map" in out
    if name == "td2003":
        assert "Chapelle & Wu, table 2" in out


def test_the_mark_of_a_missing_value_is_read_as_missing(tmp_path):
    write_layout(tmp_path, LAYOUTS["istella-s"])
    fold = make_reproductions(["istella-s"], tmp_path)["istella-s"].data.read_fold(0)
    for part in fold:
        assert np.isnan(part.X[:, 9]).all()
        assert np.isfinite(np.delete(part.X, 9, axis=1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_is_found_where_users_keep_it(name, tmp_path):
    folder = write_layout(tmp_path, LAYOUTS[name], n_queries=1, n_docs=2)
    for place in (tmp_path, folder, *(parent for parent in folder.parents if tmp_path in parent.parents)):
        found = make_reproductions([name], place)[name].data
        assert Path(found.folds) == folder.resolve()
        assert found.n_folds == (5 if "Fold" in LAYOUTS[name].files[0] else 1)


def test_several_data_sets_of_one_archive(tmp_path):
    for layout in GOV.values():
        write_layout(tmp_path, layout, n_queries=1, n_docs=2)
    for data in (tmp_path, tmp_path / "Gov"):
        found = make_reproductions(list(GOV), data)
        assert [Path(each.data.folds).name for each in found.values()] == [
            Path(layout.folder).name for layout in GOV.values()
        ]


class TestMissing:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (
                "mslr-web30k",
                "{t}: no folder MSLR-WEB30K; expected Fold1 to Fold5, each with train.txt, vali.txt and test.txt, which are "
                "in Microsoft Learning to Rank Datasets, MSLR-WEB30K",
            ),
            (
                "yahoo-set1",
                "{t}: no folder ltrc_yahoo or Webscope_C14B or Webscope_C14; expected set1.train.txt, set1.valid.txt and "
                "set1.test.txt, which are in C14, Yahoo! Learning to Rank Challenge",
            ),
            ("istella-s", "expected train.txt, vali.txt and test.txt, which are in Istella LETOR, Istella-S"),
            (
                "hp2004",
                "no folder Gov/QueryLevelNorm/2004_hp_dataset or QueryLevelNorm/2004_hp_dataset or 2004_hp_dataset",
            ),
        ],
    )
    def test_the_folder(self, name, message, capsys, tmp_path):
        status, out, err = run(capsys, "reproduce", name, "--data", tmp_path, "--out", tmp_path / "out")
        assert (status, out) == (2, "")
        assert message.format(t=tmp_path) in err
        assert not (tmp_path / "out").exists()

    def test_files(self, capsys, tmp_path):
        folder = write_layout(tmp_path, LAYOUTS["mslr-web10k"], n_queries=1, n_docs=2)
        (folder / "Fold2" / "vali.txt").unlink()
        for part in ("train", "vali", "test"):
            (folder / "Fold4" / f"{part}.txt").unlink()
        (folder / "Fold4").rmdir()
        for data in (tmp_path, folder):
            status, _, err = run(capsys, "reproduce", "mslr-web10k", "--data", data, "--out", tmp_path / "out")
            assert status == 2
            assert f"{folder}: no Fold2/vali.txt, Fold4; expected Fold1 to Fold5" in err

    def test_all_files_of_a_folder(self, tmp_path):
        (tmp_path / "MQ2007").mkdir()
        with pytest.raises(
            rw.InputError, match=r"MQ2007: no Fold1, Fold2, Fold3, Fold4, Fold5; expected Fold1 to Fold5"
        ):
            make_reproductions(["mq2007"], tmp_path)

    def test_files_of_one_of_two_sets(self, capsys, tmp_path):
        write_layout(tmp_path, LAYOUTS["yahoo-set1"], n_queries=1, n_docs=2)
        folder = write_layout(tmp_path, LAYOUTS["yahoo-set2"], n_queries=1, n_docs=2)
        (folder / "set2.valid.txt").unlink()
        make_reproductions(["yahoo-set1"], folder)
        with pytest.raises(rw.InputError, match=r"ltrc_yahoo: no set2\.valid\.txt; expected set2\.train\.txt"):
            make_reproductions(["yahoo-set1", "yahoo-set2"], folder)

    def test_too_many_folds(self, tmp_path):
        files = [*FOLDS, *(f"Fold6/{part}.txt" for part in ("train", "vali", "test"))]
        write_layout(tmp_path, LAYOUTS["mq2007"]._replace(files=files), n_queries=1, n_docs=2)
        with pytest.raises(rw.InputError, match=r"MQ2007: 6 folds; expected Fold1 to Fold5"):
            make_reproductions(["mq2007"], tmp_path)

    @pytest.mark.parametrize(
        ("name", "n_features", "message"),
        [
            (
                "mq2007",
                45,
                r"Fold1.test\.txt:1: 45 features; expected 46 features, as LETOR 4\.0 of Microsoft Research",
            ),
            ("mslr-web10k", 137, r"Fold1.test\.txt:1: 137 features; expected 136 features"),
            ("istella-s", 221, r"test\.txt:1: 221 features; expected at most 220 features"),
        ],
    )
    def test_features(self, name, n_features, message, tmp_path):
        write_layout(tmp_path, LAYOUTS[name]._replace(n_features=n_features), n_queries=1, n_docs=2)
        with pytest.raises(rw.InputError, match=message):
            make_reproductions([name], tmp_path)

    def test_methods(self, tmp_path):
        for name in ("mslr-web10k", "istella-s"):
            write_layout(tmp_path, LAYOUTS[name], n_queries=1, n_docs=2)
        with pytest.raises(
            rw.InputError, match="unknown method 'LambdaMART' of istella-s; did you mean 'LambdaMART on NDCG'"
        ):
            make_reproductions(["istella-s"], tmp_path, ["LambdaMART"])
        with pytest.raises(rw.InputError, match="istella-s has none of the methods RankSVM"):
            make_reproductions(["mslr-web10k", "istella-s"], tmp_path, ["RankSVM"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rankwright.TrialWarning")  # few queries: some fits stop early, and say so
@pytest.mark.parametrize("name", ["td2003", "mslr-web10k", "yahoo-set1", "istella-s"])
def test_all_methods_of_a_protocol_run(name, tmp_path):
    write_layout(tmp_path, LAYOUTS[name], n_queries=20)
    protocol = make_reproductions([name], tmp_path)[name]
    results = rw.run_experiment(protocol, tmp_path / "out", rw.Threads(2))
    assert set(results.tables["trials"]["status"]) == {"done"}
    assert reproduction.format_text(results)
