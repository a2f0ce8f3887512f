"""What every command does with files: no output replaces an input or another output, under whatever name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.cli.app import app

READS, WRITES, FILLS = "reads", "writes", "fills"  # a file or a folder that is read; a file; a folder
ROLES = {  # of every option that takes a path: a new one is listed here, and then tested
    "fit": {"train": READS, "valid": READS, "model": WRITES},
    "auto": {"train": READS, "valid": READS, "model": WRITES, "out": FILLS},
    "predict": {"model": READS, "data": READS, "out": WRITES, "run": WRITES},
    "evaluate": {**dict.fromkeys(("data", "model", "scores", "qrels", "run"), READS), "per_query": WRITES},
    "explain": {"model": READS},
    "export": {"model": READS, "out": WRITES, "names": READS, "data": READS},
    "check": dict.fromkeys(("model", "logged", "names", "parity", "scores", "candidate"), READS),
    "import": {"source": READS, "model": WRITES},
    "inspect": {"data": READS, "against": READS, "page": WRITES},
    "convert": {"data": READS, "judgments": READS, "out": FILLS},
    "clicks": {
        **dict.fromkeys(("data", "features", "ubi_queries"), READS),
        **dict.fromkeys(("out", "examination_out"), WRITES),
    },
    "tune": {"qrels": READS, "run": READS, "out": WRITES},
    "experiment": {"spec": READS, "data": READS, "qrels": READS, "run": READS, "out": FILLS},
    "report": {"folder": FILLS},
    "reproduce": {"data": READS, "out": FILLS, "write": WRITES},
    "compare": {**dict.fromkeys(("data", "model", "scores", "qrels", "run"), READS), "out": FILLS},
    "simulate": {"out": FILLS, "data": READS},
    "demo": {"out": FILLS},
}
NAMED = (
    ("tune", "run"),
    ("compare", "run"),
    ("compare", "model"),
    ("compare", "scores"),
    ("evaluate", "run"),
)  # NAME=FILE is no path
ADDRESSES = {  # paths or addresses that the workers of a cluster open
    "fit": {"train", "valid"},
    "auto": {"train", "valid"},
    "evaluate": {"data"},
    "predict": {"data", "out"},
}
CALLS: dict[str, list[tuple[str, ...]]] = {  # calls that read and write everything a command can; {} is the folder
    "fit": [("regression", "--train={}/train.txt", "--valid={}/valid.txt", "--model={}/new.json")],
    "auto": [("--train={}/train.txt", "--valid={}/valid.txt", "--minutes=0.02", "--model={}/new.json", "--out={}/new")],
    "predict": [("--model={}/model.json", "--data={}/test.txt", "--out={}/new.txt", "--run={}/new.run")],
    "evaluate": [
        ("--data={}/test.txt", "--model={}/model.json", "--per-query={}/new.tsv"),
        ("--data={}/test.txt", "--scores={}/scores.txt", "--per-query={}/new.tsv"),
        ("--qrels={}/qrels", "--run={}/a.run", "--per-query={}/new.tsv"),
    ],
    "export": [("{}/trees.json", "--to=lightgbm", "--out={}/new.txt", "--names={}/names.csv", "--data={}/test.txt")],
    "import": [("{}/lightgbm.txt", "--model={}/new.json")],
    "inspect": [("{}/train.txt", "--against={}/test.txt", "--page={}/new.html")],
    "convert": [("{}/train.txt", "--out={}/new.rwq")],
    "clicks": [
        (
            "{}/log.csv",
            "--features={}/features.csv",
            "--out={}/new.csv",
            "--examination=1",
            "--examination-out={}/new.json",
        )
    ],
    "tune": [("--qrels={}/qrels", "--run={}/a.run", "--run=b={}/b.run", "--out={}/new.run")],
    "experiment": [
        ("{}/spec.toml", "--out={}/new"),
        ("--data={}/train.txt", "--rankers=regression", "--out={}/new"),
        ("--data={}/MQ2008", "--rankers=regression", "--out={}/new"),
        ("--qrels={}/qrels", "--run={}/a.run", "--rankers=regression", "--out={}/new"),
    ],
    "compare": [
        ("--data={}/test.txt", "--scores={}/scores.txt", "--model={}/model.json", "--out={}/new"),
        ("--qrels={}/qrels", "--run={}/a.run", "--run=b={}/b.run", "--out={}/new"),
    ],
    "reproduce": [("mq2008", "--data={}/MQ2008", "--out={}/new", "--write={}/new.md")],
    "simulate": [("smoothing", "--data={}/MQ2008", "--out={}/new")],
}
WRITTEN = {  # what a folder is filled with, as far as it could be read as well
    "auto": ("report.html", "leaderboard.csv"),
    "convert": ("header.json", "X.npy"),
    "experiment": ("results.sqlite", "results.lock", "report.html", "tables/results.csv", "tables/comparisons.tex"),
    "reproduce": ("mq2008/results.sqlite", "mq2008/report.html", "mq2008/tables/results.md"),
    "compare": ("report.html", "tables/results.csv", "tables/comparisons.tex"),
    "simulate": ("smoothing.html", "anything.csv"),
}


def test_every_path_of_every_command_has_a_role():
    found = {}
    for command in app.registered_commands:
        assert command.callback is not None
        hints = get_type_hints(command.callback)
        names = {name for name, hint in hints.items() if "Path" in str(hint)}
        name = command.name or command.callback.__name__
        found[name] = names | ADDRESSES.get(name, set())
    assert {name: names for name, names in found.items() if names} == {
        name: {option for option in roles if (name, option) not in NAMED} for name, roles in ROLES.items()
    }
    writers = {name for name, roles in ROLES.items() if READS in roles.values() and set(roles.values()) != {READS}}
    assert writers == set(CALLS)


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """Every kind of file that a command reads, in a folder of one's own."""
    return Path(shutil.copytree(files, tmp_path / "copy"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("files")
    queries = rw.make_queries(30, n_docs=6, n_features=46, random_state=0)
    parts = {"train": range(18), "valid": range(18, 24), "test": range(24, 30)}
    for name, part in parts.items():
        rw.write_letor(queries.take(part), tmp_path / f"{name}.txt")
    for fold in range(1, 6):
        (tmp_path / "MQ2008" / f"Fold{fold}").mkdir(parents=True)
        for name, own in (("train", "train"), ("valid", "vali"), ("test", "test")):
            rw.write_letor(queries.take(parts[name]), tmp_path / "MQ2008" / f"Fold{fold}" / f"{own}.txt")
    rw.save(rw.SingleFeature().fit(queries), tmp_path / "model.json")
    rw.save(rw.LambdaMART(n_estimators=2).fit(queries), tmp_path / "trees.json")
    rw.export(rw.load(tmp_path / "trees.json"), "lightgbm", tmp_path / "lightgbm.txt")
    (tmp_path / "names.csv").write_text("feature,name\n1,bm25\n")
    (tmp_path / "scores.txt").write_text("".join(f"{i}\n" for i in range(queries.take(parts["test"]).n_docs)))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d{d} {d % 2}\n" for q in range(9) for d in range(4)))
    for name in "ab":
        (tmp_path / f"{name}.run").write_text(
            "".join(f"{q} Q0 d{d} {d} {-d} {name}\n" for q in range(9) for d in range(4))
        )
    (tmp_path / "log.csv").write_text(
        "query,docid,position,clicked\n"
        + "".join(f"{q},d{d},{d + 1},{int(d < 1)}\n" for q in range(9) for d in range(4))
    )
    (tmp_path / "features.csv").write_text(
        "qid,docid,f\n" + "".join(f"{q},d{d},{d}\n" for q in range(9) for d in range(4))
    )
    (tmp_path / "spec.toml").write_text("[data]\nfile = 'train.txt'\n[[methods]]\nranker = 'regression'\n")
    return tmp_path


def options(call: tuple[str, ...]) -> list[tuple[str, str]]:
    """Options and their paths; a positional path is called spec, model or source if it is one, else data."""
    positional = {"{}/spec.toml": "--spec", "{}/trees.json": "--model", "{}/lightgbm.txt": "--source"}
    split = [
        text.partition("=") if text.startswith("--") else (positional.get(text, "--data"), "=", text)
        for text in call
        if "{}" in text
    ]
    return [(name.removeprefix("--").replace("-", "_"), path.rpartition("=")[2]) for name, _, path in split]


def same_file_cases() -> list[Any]:
    """Every output of every call under the name of every input, and through links to it."""
    cases = []
    for command, calls in CALLS.items():
        for number, call in enumerate(calls):
            paths = options(call)
            read = [path for name, path in paths if ROLES[command][name] == READS]
            read = [f"{path}/Fold1/train.txt" if path.endswith("MQ2008") else path for path in read]
            read += ["{}/train.txt"] if "{}/spec.toml" in read else []  # which the spec names
            for option, path in paths:
                role = ROLES[command][option]
                targets = [path] if role == WRITES else [f"{path}/{name}" for name in WRITTEN.get(command, ())]
                for target in targets if role != READS else []:
                    for source in read:
                        for kind in ("link", "hard link", *(("name",) if role == WRITES else ())):
                            label = f"{command}{number}-{option}-{Path(target).name}-{Path(source).name}-{kind}"
                            cases.append(pytest.param(command, call, path, target, source, kind, id=label))
    return cases


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "call", "path", "target", "source", "kind"), same_file_cases())
def test_an_output_that_is_an_input_is_refused(folder, capsys, command, call, path, target, source, kind):
    original, place = Path(source.format(folder)), Path(target.format(folder))
    place.parent.mkdir(parents=True, exist_ok=True)
    arguments = [text.replace("{}", str(folder)) for text in call]
    if kind == "link":
        place.symlink_to(original)
    elif kind == "hard link":
        os.link(original, place)
    else:
        arguments = [text.replace(f"={place}", f"={original}") for text in arguments]
    before = contents(folder)
    status = cli.run([command, *arguments])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert "one of the files that are read; choose another" in err
    assert len(err.splitlines()) == 1
    assert contents(folder) == before


@pytest.mark.parametrize("kind", ["name", "link", "hard link", "relative name"])
def test_two_outputs_that_are_one_file_are_refused(folder, capsys, kind):
    first, second = folder / "first", folder / "second"
    if kind == "link":
        second.symlink_to(first)
    elif kind == "hard link":
        first.touch()
        os.link(first, second)
    else:
        second = first if kind == "name" else folder / "MQ2008" / ".." / "first"
    before = contents(folder)
    arguments = [f"--model={folder}/model.json", f"--data={folder}/test.txt", f"--out={first}", f"--run={second}"]
    assert cli.run(["predict", *arguments]) == 2
    assert "--out is written there too; choose another" in capsys.readouterr().err
    assert contents(folder) == before


def test_the_page_of_a_reproduction_is_not_its_report(folder, capsys):
    page = folder / "new" / "mq2008" / "report.html"
    page.parent.mkdir(parents=True)
    arguments = [f"--data={folder}/MQ2008", f"--out={folder}/new", f"--write={page}"]
    assert cli.run(["reproduce", "mq2008", *arguments]) == 2
    assert "choose another" in capsys.readouterr().err


def test_a_checkpoint_is_not_the_model(folder, capsys):
    arguments = [f"--train={folder}/train.txt", f"--model={folder}/new", f"--set=training.checkpoint={folder}/new"]
    assert cli.run(["fit", "ranknet", *arguments]) == 2
    assert "--model is written there too" in capsys.readouterr().err


def test_what_is_written_may_lie_beside_what_is_read(folder, capsys):
    arguments = [f"--data={folder}/test.txt", f"--scores={folder}/scores.txt", f"--model={folder}/model.json"]
    assert cli.run(["compare", *arguments, f"--out={folder}"]) == 0
    arguments = [f"--model={folder}/model.json", f"--data={folder}/test.txt", "--out=/dev/null", "--run=/dev/null"]
    assert cli.run(["predict", *arguments]) == 0


def test_a_demo_in_a_folder_of_something_else_leaves_no_file(folder, capsys):
    queries = rw.read_letor(folder / "train.txt")
    rw.run_experiment(rw.Experiment(queries, ["singlefeature"]), folder / "other", rw.Serial())
    before = contents(folder)
    assert cli.run(["demo", "--out", str(folder / "other")]) == 2
    assert "of the demo" in capsys.readouterr().err
    assert contents(folder) == before
