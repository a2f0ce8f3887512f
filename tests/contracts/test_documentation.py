"""Every example runs: the files in ``examples/``, and the blocks of Python and of commands in README and the pages of docs.

A page runs from top to bottom in a folder with the files that it names, on small data. Names that a reader brings
(``X``, ``train``, ...) are in GIVEN. Commands with a placeholder, or that take minutes, have their options checked only.

A block whose language is ``output`` is what the block before it prints, and is compared; ``...`` stands for what varies.
Output that depends on the machine, the time or data that are not here is in a block without language, or a comment.
"""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import shlex
import shutil
import tomllib
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from threadpoolctl import threadpool_limits

import rankwright as rw
from rankwright.cli import run
from rankwright.cli.app import make_command

ROOT = Path(__file__).parents[2]
SYNOPSIS = re.compile(r"\[--|\[OPTION|\bDIR\b|\bFOLDS\b|\bMODEL\b|\.\.\.|^rankwright (demo|reproduce)\b|tcp://")
MOST_QUERIES = 24  # that a block may make, on pages without output to compare
NOT_EVERYWHERE = {"docs/start/text-search.md": "bm25s"}  # libraries of single pages; the extra "dev" has them
SHOWN = {"hybrid": "docs/tuning.md"}  # the page that shows what an example prints
COMPARISON = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
make_queries, run_experiment, AutoRanker = rw.make_queries, rw.run_experiment, rw.AutoRanker


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each ``rankwright`` command, without settings before it and comments after it."""
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(rankwright .*?)(\s{2,}#.*)?$", line)
        if found:
            yield shlex.split(found[1])


def pages() -> list[str]:
    """Return the pages with something to run."""
    names = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    return [
        name
        for name in names
        if any(block.language in ("python", "toml") or list(commands(block.text)) for block in blocks(name))
    ]


def check_options(arguments: list[str]) -> None:
    """Raise if the command has no such options."""
    command = make_command().commands[arguments[1]]
    while hasattr(command, "commands"):
        command = command.commands[arguments[2]]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    used = {option for argument in arguments[2:] for option in re.findall(r"--[a-z-]+", argument.split("=")[0])}
    assert used <= known, f"{' '.join(arguments)}: no option {used - known}"


def load_example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with the files that the pages name."""
    path = tmp_path_factory.mktemp("reader")
    queries = rw.make_queries(MOST_QUERIES, n_docs=10, n_features=30, random_state=0)
    for name in ("MQ2008", "OHSUMED"):
        for number, fold in enumerate(rw.split_folds(queries, 5, random_state=0), 1):
            (path / name / f"Fold{number}").mkdir(parents=True)
            for part, file in zip(fold, ("train.txt", "vali.txt", "test.txt"), strict=True):
                rw.write_letor(part, path / name / f"Fold{number}" / file)
    for part, file in zip(rw.split_folds(queries, 4, random_state=1)[0], ("train", "vali", "test"), strict=True):
        rw.write_letor(part, path / f"{file}.txt")
    table = pd.DataFrame({"search_id": queries.row_qid, "clicked": queries.y, "bm25": queries.X[:, 0], "url_text": "x"})
    (path / "logs").mkdir()
    table.to_csv(path / "logs" / "day.csv.gz", index=False)
    table.drop(columns="url_text").set_axis(["qid", "label", "bm25"], axis=1).to_parquet(path / "train.parquet")
    (path / "new.txt").write_bytes((path / "test.txt").read_bytes())
    test = rw.read_letor(path / "test.txt")
    for column, file in enumerate(("mine", "theirs", "scores")):
        np.savetxt(path / f"{file}.txt", test.X[:, column])
    for file, X in (("lgb", queries.X), ("of-libsvm", np.pad(queries.X, ((0, 0), (1, 0))))):
        trees = lightgbm.LGBMRanker(n_estimators=5, verbosity=-1, n_jobs=1).fit(X, queries.y, group=queries.sizes)
        trees.booster_.save_model(path / f"{file}.txt")
    for file in ("ours", "last-month", "model"):
        rw.save(rw.Regression().fit(queries), path / f"{file}.json")
    write_responses(path)
    load_example("hybrid").write_files(path, n_queries=15, n_found=30, n_docs=45)
    write_clicks(path)
    return path


def write_clicks(path: Path) -> None:
    """Write a click log, features of its documents, and events and queries of User Behavior Insights."""
    rng = np.random.default_rng(0)
    rows, queries, events = [], [], []
    for i in range(400):
        query, docs = f"q{i % 8}", [f"d{d}" for d in rng.permutation(9)[:5]]
        queries.append({"query_id": f"id{i}", "user_query": query, "query_response_hit_ids": docs})
        for position, doc in enumerate(docs, 1):
            clicked = int(rng.random() < 0.5 / position)
            rows.append((f"s{i}", f"arm {i % 2}", query, doc, position, clicked))
            if clicked:
                target = {"object": {"object_id": doc}}
                events.append({"action_name": "click", "query_id": f"id{i}", "event_attributes": target})
    log = pd.DataFrame(rows, columns=["session", "ranker", "query", "docid", "position", "clicked"])
    log.to_csv(path / "log.csv", index=False)
    features = log[["query", "docid"]].drop_duplicates()
    features.assign(bm25=rng.random(len(features))).to_csv(path / "features.csv", index=False)
    for name, objects in (("ubi_queries", queries), ("ubi_events", events)):
        (path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")


def write_responses(path: Path) -> None:
    """Write search responses of two queries with features, as logs of the plugin and as named queries; and judgments."""
    rng = np.random.default_rng(0)
    judgments = ["query,docid,rating"]
    for query in ("rambo", "rocky"):
        hits: dict[str, list[dict[str, Any]]] = {"log": [], "named": []}
        for docid in map(str, range(40)):
            found = {name: float(np.float32(rng.gamma(2.0))) for name in ("title", "body", "popularity")}
            judgments.append(f"{query},{docid},{int(found['title'] > 1.5) + int(found['popularity'] > 3.0)}")
            if rng.random() < 0.3:
                del found["body"]
            log = [{"name": name} | ({"value": found[name]} if name in found else {}) for name in ("title", "body")]
            log.append({"name": "popularity", "value": found["popularity"]})
            hits["log"].append({"_id": docid, "_score": 1.0, "fields": {"_ltrlog": [{"main": log}]}})
            hits["named"].append({"_id": docid, "_score": 1.0, "matched_queries": found})
        for folder, own in hits.items():
            (path / folder).mkdir(exist_ok=True)
            (path / folder / f"{query}.json").write_text(json.dumps({"hits": {"hits": own}}), encoding="utf-8")
    (path / "judgments.csv").write_text("\n".join(judgments) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def brought(folder) -> dict[str, Any]:
    """Return the names that a reader brings."""
    train, valid, test = rw.read_folds(folder / "MQ2008")[0]
    X, y, qid = train.X[:59], train.y[:59], train.row_qid[:59]
    frame = pd.DataFrame(X[:, :3], columns=["bm25", "clicks", "age"])
    trees = lightgbm.LGBMRanker(n_estimators=5, num_leaves=4, min_child_samples=1, verbosity=-1, n_jobs=1)
    return {
        "__name__": "__main__",
        "rw": rw,
        "np": np,
        "train": train,
        "valid": valid,
        "test": test,
        "queries": train,
        "X": X,
        "y": y,
        "qid": qid,
        "frame": frame.assign(grade=y, query=qid, url=[f"u{i}" for i in range(len(y))]),
        "model": rw.Regression().fit(X[:, :3], y, qid=qid),
        "scores": torch.zeros(2, 3, requires_grad=True),
        "labels": torch.tensor([[1, 0, 2], [0, 1, 0]]),
        "lengths": torch.tensor([3, 2]),
        "lightgbm_or_xgboost_model": trees.fit(train.X, train.y, group=train.sizes),
        "new_bm25": {"q": {"a": 1.0, "b": 0.5}},
        "new_dense": {"q": {"a": 0.1, "c": 0.5}},
    }


@pytest.fixture
def given(folder, brought, monkeypatch) -> Iterator[dict[str, Any]]:
    """Return the names for one page; the working directory is ``folder``, and nothing else outlasts the page."""

    def run_anew(experiment, out, workers=None):
        shutil.rmtree(out, ignore_errors=True)
        return run_experiment(experiment, out, rw.Serial())

    monkeypatch.chdir(folder)
    monkeypatch.setattr(rw, "run_experiment", run_anew)
    monkeypatch.setattr(rw, "AutoRanker", lambda **options: AutoRanker(**{**options, "max_seconds": 3.0}))
    monkeypatch.setattr(rw, "make_queries", lambda n=200, **options: make_queries(min(n, MOST_QUERIES), **options))
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(1)
    # on small data, threads of LightGBM and XGBoost cost more than they gain, most of all beside other tests
    with warnings.catch_warnings(), sklearn.config_context(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of little data; what is shown must not raise
        yield dict(brought)
    torch.set_rng_state(state)
    torch.set_num_threads(threads)


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Run a block, at its own line numbers; with prompts it is a doctest."""
    if block.text.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.text, names, block.page, block.page, block.line - 1)
        result = doctest.DocTestRunner(optionflags=COMPARISON).run(test, clear_globs=False)
        names.update(test.globs)
        assert result.failed == 0, f"{block.page}:{block.line}"
    else:
        exec(compile("\n" * (block.line - 1) + block.text, str(ROOT / block.page), "exec"), names)


def run_command(arguments: list[str], capsys, where: str) -> None:
    """Check the options of a command, and run it unless it is a synopsis."""
    check_options(arguments)
    if SYNOPSIS.search(" ".join(arguments)):
        return
    first = [argument for argument in arguments if re.fullmatch(r"\w+=model.json", argument)]
    if first:  # a model to go on from
        assert run([*arguments[1:3], "--train", "train.txt", "--set", "n_estimators=3", "--model", "model.json"]) == 0
    workers = ["--minutes", "0.05"] if arguments[1] == "auto" else []
    if arguments[1] == "experiment":
        workers = ["--workers", "threads:1"]
        shutil.rmtree(arguments[arguments.index("--out") + 1], ignore_errors=True)  # of another block's
    assert run([*arguments[1:], *workers]) == 0, f"{where}: {capsys.readouterr().err}"


def check_output(block: Block, printed: str) -> None:
    """Raise if a block of output is not what was printed."""
    same = doctest.OutputChecker().check_output(block.text, printed, COMPARISON)
    assert same, f"{block.page}:{block.line} shows\n{block.text}\nwhere the block before it prints\n{printed}"


@pytest.mark.parametrize("page", pages())
def test_pages(page, given, folder, capsys, monkeypatch):
    if page in NOT_EVERYWHERE:
        pytest.importorskip(NOT_EVERYWHERE[page], reason="it is in the extra dev: pip install '.[dev]'")
    if any(block.text.startswith(">>>") or block.language == "output" for block in blocks(page)):
        monkeypatch.setattr(rw, "make_queries", make_queries)  # what is printed depends on the number of queries
    for block in blocks(page):
        if block.language == "toml" and "data" in tomllib.loads(block.text):
            (folder / "spec.toml").write_text(block.text, encoding="utf-8")
    for block in blocks(page):
        if block.language == "output":
            check_output(block, capsys.readouterr().out)
            continue
        capsys.readouterr()
        if block.language == "python":
            run_python(block, given)
        elif block.language in ("", "sh", "console"):
            for arguments in commands(block.text):
                run_command(arguments, capsys, f"{block.page}:{block.line}")


def test_output_follows_what_prints_it():
    for page in pages():
        for before, block in pairwise(blocks(page)):
            assert block.language != "output" or before.language in ("python", "", "sh"), f"{page}:{block.line}"


def test_output_that_is_not_printed_is_found():
    block = Block("page.md", 7, "output", "ndcg@10 0.51...\n")
    check_output(block, "ndcg@10   0.5117\n")
    with pytest.raises(AssertionError, match=r"page.md:7 shows"):
        check_output(block, "ndcg@10 0.4117\n")


def test_targets_of_make():
    """Every ``make`` command in a block of README and CONTRIBUTING has its target."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        used = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert {name for pair in used for name in pair if name} <= targets


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "examples").glob("*.py")))
def test_examples(name, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", [name, *([str(tmp_path)] if name == "hybrid" else [])])
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    load_example(name).main()
    captured = capsys.readouterr()
    assert captured.out
    assert captured.err == ""
    for block in blocks(SHOWN.get(name, "docs/gallery.md")):
        if block.text.startswith(captured.out.splitlines()[0]):
            check_output(
                block._replace(text=block.text.replace("fused run: fused.run", "fused run: ...")), captured.out
            )
            break
    else:
        assert name not in SHOWN, f"{SHOWN[name]} does not show what the example {name} prints"
