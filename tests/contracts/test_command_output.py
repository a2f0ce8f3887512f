"""What every command prints can be shown: on any terminal, and redirected to any encoding."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rankwright as rw
from rankwright import cli
from rankwright.cli import output
from rankwright.cli.app import app
from rankwright.models.export.parity import read_parity
from rankwright.papers.simulation.bounds_figures import bounds_curves

ENCODINGS = ("ascii", "latin-1", "cp1252", "cp437", "shift_jis", "utf-8")
CALLS: dict[str, list[tuple[str, ...]]] = {  # {} is a folder whose name, files and ids need Unicode
    "fit": [("regression", "--train={}/train.txt", "--model={}/new–model.json")],
    "auto": [("--train={}/train.txt", "--minutes=0.02", "--model={}/new–blend.json", "--out={}/new–search")],
    "predict": [("--model={}/model.json", "--data={}/train.txt", "--out=/dev/stdout")],
    "evaluate": [("--model={}/model.json", "--data={}/train.txt")],
    "convert": [("{}/train.txt", "--out={}/new–data.rwq")],
    "explain": [("--model={}/model.json",)],
    "export": [("{}/trees.json", "--to=lightgbm", "--out={}/new–trees.txt", "--name=模型")],
    "check": [("{}/trees.json", "--parity={}/trees.txt.parity.json", "--scores={}/returned.txt")],
    "import": [("{}/trees.txt", "--model={}/new–import.json")],
    "inspect": [("{}/train.txt", "--against={}/train.txt", "--page={}/new–page.html")],
    "clicks": [("{}/log–模.csv", "--examination=1")],
    "tune": [("--qrels={}/qrels", "--run=é▼={}/a.run", "--run=模型={}/b.run", "--folds=3", "--out={}/new.run")],
    "experiment": [("{}/spec.toml", "--out={}/new", "--workers=threads:1")],
    "report": [("{}/done",)],
    "compare": [("--data={}/train.txt", "--scores={}/∞.txt", "--scores={}/模.txt", "--model={}/model.json")],
    "simulate": [("bounds", "--out={}/simulated")],
    "rankers": [()],
    "measures": [()],
    "warm": [("singlefeature", "--measure=map")],
    "reproduce": [("mq2008", "--data={}/none")],  # what it prints of results is what experiment prints
    "demo": [("--out={}/qrels",)],
}
SPEC = """
name = "Vergleich – ∞"
[data]
file = 'train.txt'
n_folds = 3
[[methods]]
ranker = 'regression'
name = 'Modèle 模型 ▼'
[[methods]]
ranker = 'singlefeature'
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("Ordner–模型")
    queries = rw.make_queries(60, n_docs=8, n_features=4, random_state=0)
    rw.write_letor(queries, folder / "train.txt")
    rw.save(rw.Regression().fit(queries), folder / "model.json")
    rw.save(rw.LambdaMART(n_estimators=2).fit(queries), folder / "trees.json")
    rw.export(rw.load(folder / "trees.json"), "lightgbm", folder / "trees.txt")
    expected = read_parity(folder / "trees.txt.parity.json").scores.tolist()
    (folder / "returned.txt").write_text("".join(f"{score!r}\n" for score in expected))
    for name, step in (("∞", 1), ("模", 7)):
        (folder / f"{name}.txt").write_text("".join(f"{i * step % 5}\n" for i in range(queries.n_docs)))
    (folder / "qrels").write_text("".join(f"{q}é 0 d{d}模 {d % 2}\n" for q in range(9) for d in range(4)), "utf-8")
    for name in "ab":
        lines = [f"{q}é Q0 d{d}模 {d} {-d} {name}\n" for q in range(9) for d in range(4)]
        (folder / f"{name}.run").write_text("".join(lines), "utf-8")
    rows = [f"{q}é▼,d{d}模,{d + 1},{int(d < 1)}\n" for q in range(9) for d in range(4)]
    (folder / "log–模.csv").write_text("query,docid,position,clicked\n" + "".join(rows), "utf-8")
    (folder / "spec.toml").write_text(SPEC, "utf-8")
    assert cli.run(["experiment", str(folder / "spec.toml"), "--out", str(folder / "done"), "--workers=threads:1"]) == 0
    return folder


def test_every_command_is_called_here():
    names = {command.name or getattr(command.callback, "__name__", None) for command in app.registered_commands}
    assert names == set(CALLS)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
@pytest.mark.parametrize("command", sorted(CALLS))
def test_every_command_prints_in_every_encoding(folder, monkeypatch, command, encoding):
    calls = CALLS[command] if encoding == "ascii" or command in ("evaluate", "compare") else []
    for call in (*calls, ("--help",), ("--no–such",)):
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(bounds_curves, "N_SEEDS", 1)
            status = cli.run([command, *(text.replace("{}", str(folder)) for text in call)])
        for stream in (out, err):
            stream.flush()
        fails = call == ("--no–such",) or command in ("reproduce", "demo")
        assert status == (2 if fails and call != ("--help",) else 0), err.buffer.getvalue()
        printed = out.buffer.getvalue() if status == 0 else err.buffer.getvalue()
        assert printed or command == "predict"


@pytest.mark.parametrize("settings", [
    {"PYTHONIOENCODING": "latin-1:strict"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
])  # fmt: skip
def test_a_redirected_comparison_ends_with_its_table(folder, settings):
    arguments = [f"--data={folder}/train.txt", f"--scores={folder}/模.txt", f"--model={folder}/model.json"]
    command = [sys.executable, "-m", "rankwright", "compare", *arguments, "--measures=ndcg@10"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    found = subprocess.run(command, env=environment | settings, capture_output=True, check=False)
    assert (found.returncode, found.stderr) == (0, b"")
    if settings.get("PYTHONUTF8") == "0" or "PYTHONIOENCODING" in settings:
        assert b"v" in found.stdout.splitlines()[2] + found.stdout.splitlines()[3]
        assert b"\\u" in found.stdout


def test_no_character_fails():
    text = "".join(map(chr, range(1, 0x3000))) + "\ud800\udc80\U0001f600"
    output.replace_unencodable_characters()
    for encoding in ENCODINGS:
        encoded = text.encode(encoding, "rankwright-plain")
        assert encoded.decode(encoding)


@pytest.mark.parametrize(("text", "plain"), [
    ("0.4▼", "0.4v"), ("0.4▲", "0.4^"), ("–", "-"), ("[–∞, ∞]", "[-inf, inf]"), ("2⁻¹⁰", "2^-10"),
    ("“two” ≤ π/4", '"two" <= pi/4'), ("naïve", "na\\xefve"),
])  # fmt: skip
def test_our_signs_become_plain_marks(text, plain):
    output.replace_unencodable_characters()
    assert text.encode("ascii", "rankwright-plain") == plain.encode()


def test_every_sign_in_the_source_has_a_plain_mark():
    found: dict[str, str] = {}
    for path in Path(rw.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        scopes = (ast.Module, ast.ClassDef, ast.FunctionDef)
        docs = {
            id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, scopes) and isinstance(n.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                found |= {sign: path.name for sign in node.value if not sign.isascii() and sign.isprintable()}
    assert {sign: place for sign, place in found.items() if sign not in output._PLAIN} == {}
