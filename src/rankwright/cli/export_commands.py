"""The commands that export models to search engines and other libraries, check their scores, and import models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli.app import JsonOption, app, print_json, print_note, progress_bar
from rankwright.cli.named_files import MODEL_HELP

if TYPE_CHECKING:
    from rankwright.data.queries import Queries
    from rankwright.models.model import Model

# The names of all targets, so that the help need not import them; a test compares them with TARGETS.
TARGET_NAMES = "elasticsearch, opensearch, elastic, solr, vespa, ranklib, onnx, lightgbm, xgboost or c"
NAMES_HELP = "A CSV file with lines feature,name: the names of features in the engine, where they differ."


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help=f"{MODEL_HELP}.")],
    to: Annotated[str, typer.Option(metavar="TARGET", help=f"The target: {TARGET_NAMES}.")],
    out: Annotated[Path, typer.Option(help="The file to write; others beside it have its name and an addition.")],
    names: Annotated[Path | None, typer.Option(help=NAMES_HELP)] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the model in the target (default: that of the file)."),
    ] = None,
    shift: Annotated[
        bool, typer.Option("--shift", help="Add a constant that makes all scores 0 or more, as rescoring needs.")
    ] = False,
    data: Annotated[
        list[Path] | None, typer.Option(help="Documents, some of which the parity file takes; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Export a model to a search engine, ONNX or another library, with a parity file that proves its scores."""
    from rankwright.basics.file_groups import write_files_atomic
    from rankwright.basics.files import check_apart, check_outputs
    from rankwright.models.export.exporting import build_files
    from rankwright.models.model_files import load

    loaded = load(model)
    with progress_bar():
        documents = _read_first_documents(loaded, data) if data else None
        contents, notes = build_files(*(loaded, to, out), names=names, model_name=name, shift=shift, data=documents)
    check_apart({"--out": contents}, [model, names, *(data or [])])
    check_outputs({str(path): path for path in contents}, [])
    write_files_atomic(contents)
    if as_json:
        print_json({"to": to, "files": list(contents), "notes": notes})
        return
    for path in contents:
        print(path)
    for note in notes:
        print_note(f"note: {note}")


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="A model file of LightGBM, XGBoost, CatBoost or RankLib.")],
    model: Annotated[Path, typer.Option(help="The file to write the model to, in JSON.")],
    n_features: Annotated[
        int | None, typer.Option(help="The number of features, if a RankLib text does not use the last one.")
    ] = None,
    drop_first: Annotated[
        bool,
        typer.Option("--drop-first", help="Leave out the empty column of a model that read text which counts from 1."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Import a model of another library, and save it as a model of Rankwright."""
    from rankwright.basics.files import check_outputs
    from rankwright.models.imports import import_model
    from rankwright.models.imports.first_columns import describe_first_column
    from rankwright.models.model_files import save
    from rankwright.models.model_json import compute_digest

    check_outputs({"--model": model}, [source])
    found = import_model(source, n_features=n_features, drop_first=drop_first)
    save(found, model)
    notes = describe_first_column(found)
    if as_json:
        report = {"model": model, "ranker": found.ranker, "scorer": found.scorer.kind, "notes": notes}
        print_json(report | {"features": found.n_features, "digest": compute_digest(found)})
        return
    print(f"{found.ranker}: {found.scorer.kind} of {found.n_features} features")
    print(f"model: {model}")
    for note in notes:
        print_note(f"note: {note}")


@app.command()
def check(
    model: Annotated[Path, typer.Argument(help=f"{MODEL_HELP}: the model that the engine should have.")],
    logged: Annotated[
        list[Path] | None,
        typer.Option(help="Search responses (JSON) with logged features and the engine's scores; may be repeated."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="ENGINE", help="The engine of the responses: elasticsearch, opensearch, solr or vespa."
        ),
    ] = None,
    names: Annotated[Path | None, typer.Option(help=NAMES_HELP)] = None,
    parity: Annotated[
        Path | None,
        typer.Option(help="The parity file of the export, for its names and constant; or its rows, with --scores."),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="With --parity: the target's scores, one per line, in the order of the rows.")
    ] = None,
    candidate: Annotated[
        list[Path] | None, typer.Option(help="Another model that the engine may have; may be repeated.")
    ] = None,
    allow_shift: Annotated[
        bool, typer.Option("--allow-shift", help="Accept scores that differ from the model's by one constant.")
    ] = False,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The field of a hit with its score (default: _score, in Solr score, in Vespa relevance).",
        ),
    ] = None,
    qid: Annotated[
        str | None, typer.Option(metavar="NAME", help="The field with the query id, as in convert --from.")
    ] = None,
    docid: Annotated[str | None, typer.Option(metavar="NAME", help="The field with the document id.")] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the log, or in Solr and Vespa the field with the features."),
    ] = None,
    separators: Annotated[
        str | None,
        typer.Option(metavar="CHARS", help="For Solr: the characters after a name and between features (default =,)."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Compare the scores of an engine with a model's; say which differ, and why. The exit status is 1 if some do."""
    from rankwright.analysis.score_check import check_parity, check_scores
    from rankwright.basics.errors import InputError
    from rankwright.data.score_files import read_score_lines
    from rankwright.models.model_files import load

    options = {"score": score, "qid": qid, "docid": docid, "log": log, "separators": separators}
    given = {name: value for name, value in options.items() if value is not None}
    if (logged is None) == (scores is None) or (scores is not None and parity is None):
        raise InputError("expected either --logged, or --scores with --parity")
    if scores is not None and (given or names or engine):
        raise InputError("--from, --names and names of fields are for --logged; expected --parity and --scores only")
    loaded = load(model)
    others = {str(path): load(path) for path in candidate or []}
    with progress_bar():
        if parity is not None and scores is not None:
            found = check_parity(loaded, parity, read_score_lines(scores), candidates=others)
        else:
            place = {"engine": engine, "names": names, "parity": parity}
            found = check_scores(loaded, logged or [], **place, candidates=others, **given)  # type: ignore[arg-type]
    if as_json:
        print_json(found.to_json())
    else:
        print(found)
    return 0 if found.is_equal or (allow_shift and found.is_shifted) else 1


def _read_first_documents(model: Model, paths: list[Path]) -> Queries:
    """Return the first block of documents in files, with the features of a model."""
    import numpy as np

    from rankwright.basics.errors import InputError
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.queries import Queries
    from rankwright.models.block_scoring import open_for_model

    source = open_for_model(model, list(paths), ColumnRoles())
    block = next(iter(source.read_blocks()), None)
    if block is None:
        raise InputError(f"{paths[0]}: no documents; expected some for the parity file")
    n = len(block.X)
    documents = Queries(block.X, None, np.array([0, n]), np.zeros(1, int))
    return documents.replace(features=source.features, categories=source.categories)
