"""The commands that fit, apply, evaluate and explain models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankwright.cli.app import JsonOption, MeasureOption, ProgressBar, app, print_error, print_json, progress_bar
from rankwright.cli.backend_option import BackendOption, parse_backend
from rankwright.cli.column_options import add_column_options
from rankwright.cli.data_reading import DATA_HELP, is_read_by_workers, read_like, read_queries
from rankwright.cli.named_files import MODEL_HELP
from rankwright.cli.ranker_options import make_ranker

if TYPE_CHECKING:
    from rankwright.basics.array_types import Floats
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.queries import Queries
    from rankwright.rankers import Ranker
    from rankwright.runtime.dask_backend import Dask


@app.command()
@add_column_options
def fit(
    columns: ColumnRoles,
    ranker: Annotated[
        str, typer.Argument(metavar="RANKER", help="The name of a ranker; `rankwright rankers` lists them.")
    ],
    train: Annotated[list[str], typer.Option(metavar="PATH", help=f"A training file, {DATA_HELP}; may be repeated.")],
    model: Annotated[Path, typer.Option(help="The file to write the model to, in JSON.")],
    valid: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Validation data, on which rankers with rounds choose the best round."),
    ] = None,
    measure: MeasureOption = "ndcg@10",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The random seed, for rankers that use one.")] = 0,
    backend: BackendOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a ranker and save the model."""
    import time

    from rankwright.analysis.inspection import warn_of_findings
    from rankwright.basics.files import check_apart, check_writable
    from rankwright.models.model_files import save

    unfitted = make_ranker(ranker, measure, set_ or [], seed)
    check_apart({"--model": [model], "--set training.checkpoint": _list_checkpoint_files(unfitted)}, [*train, valid])
    check_writable(model)
    where = parse_backend(backend)
    unfitted.set_params(backend=where)
    try:
        with progress_bar() as bar:
            train_queries = read_queries(train, columns, where)
            valid_queries = None if valid is None else read_like(train_queries, valid, columns, where)
            warn_of_findings(train_queries, valid_queries)
            start = time.perf_counter()
            fitted = _fit_watched(unfitted, train_queries, valid_queries, bar)
            seconds = time.perf_counter() - start
        save(fitted, model)
    except KeyboardInterrupt:
        print_error("interrupted: nothing was written")
        raise typer.Exit(130) from None
    report: dict[str, Any] = {"model": str(model), "ranker": type(fitted).__name__, "measure": str(fitted.measure)}
    report["train"] = fitted.score(train_queries)
    if fitted.pools_valid:
        report["estimate"] = fitted.estimate_.mean
    elif valid_queries is not None:
        report["valid"] = fitted.score(valid_queries)
    report["rounds"] = _count_rounds(fitted)
    report["seconds"] = round(seconds, 3)
    if as_json:
        print_json(report)
        return
    parts = [f"{part} {report[part]:.4f}" for part in ("train", "valid", "estimate") if part in report]
    print(f"{report['ranker']}: {report['measure']} {', '.join(parts)}; {report['rounds']} rounds, {seconds:.1f} s")
    print(f"model: {model}")


@app.command()
@add_column_options
def predict(
    columns: ColumnRoles,
    model: Annotated[Path, typer.Option(help=f"{MODEL_HELP}.")],
    data: Annotated[
        str, typer.Option(metavar="PATH", help=f"Documents, {DATA_HELP}. Labels are not needed in a table.")
    ],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The file to write scores to, one per line, in the order of the data; with the ending .csv a table "
            "of qid, docid and score. Where the workers of a cluster read, the folder of a file of scores for each "
            "file of data.",
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="The file to write a TREC run to.")] = None,
    backend: BackendOption = None,
) -> None:
    """Score documents with a model."""
    import numpy as np

    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.data.row_sources import RowBlock, join_blocks
    from rankwright.data.score_files import open_score_table, open_scores
    from rankwright.data.trec import write_run
    from rankwright.models.block_scoring import open_for_model, score_blocks
    from rankwright.models.file_scoring import score_parts
    from rankwright.models.model_files import load

    if out is None and run is None:
        raise InputError("nothing to write; give --out or --run")
    loaded, where = load(model), parse_backend(backend)
    if is_read_by_workers([data], where):
        if out is None or run is not None:
            raise InputError(f"{data}: read by the workers of a cluster; expected --out with a folder, and no --run")
        files = score_parts(loaded, [data], out, cast("Dask", where), columns)
        print(f"{len(files)} files of scores: {out}")
        return
    check_outputs({"--out": out, "--run": run}, [model, data])
    documents: list[RowBlock] = []
    found: list[Floats] = []
    table = out if out is not None and out.lower().endswith(".csv") else None
    with progress_bar(), open_scores(None if table else out) as write, open_score_table(table) as write_rows:
        for block, [scores] in score_blocks([loaded], open_for_model(loaded, [data], columns)):
            write(scores)
            write_rows(block.qid, block.docid, scores)
            if run is not None:
                documents.append(block.without_features())
                found.append(scores)
        if run is not None:
            write_run(join_blocks(documents), np.concatenate(found), run, tag=loaded.ranker)


@app.command()
def explain(model: Annotated[Path, typer.Option(help=f"{MODEL_HELP}.")]) -> None:
    """Print the effect of each feature in a model: its weight, step function or importance."""
    from rankwright.analysis import diagnosis
    from rankwright.models.model_files import load

    print(diagnosis.explain(load(model)))


def _list_checkpoint_files(ranker: Ranker) -> list[Path]:
    """Return the path of the ranker's checkpoint file in a list, which is empty if it has none."""
    training = ranker.get_params(deep=False).get("training")
    path = training.get("checkpoint") if isinstance(training, dict) else None
    return [Path(path)] if isinstance(path, str) else []


def _fit_watched(unfitted: Ranker, train: Queries, valid: Queries | None, bar: ProgressBar | None) -> Ranker:
    """Fit a ranker, show the measure of its rounds on the progress bar, and return the ranker."""
    from rankwright.rankers.common_parameters import IterativeRanker
    from rankwright.rankers.training_watch import COMPILING
    from rankwright.runtime.compilation import listen_to_compilation

    if bar is None:
        return unfitted.fit(train, valid=valid)
    if isinstance(unfitted, IterativeRanker) and not unfitted.pools_valid:
        unfitted.set_params(callbacks=[lambda found: bar.show_values(found.record)])
    with listen_to_compilation(lambda: bar.show_note(COMPILING)):
        return unfitted.fit(train, valid=valid)


def _count_rounds(fitted: Ranker) -> int:
    """Return how many rounds a ranker was trained for: the length of its history, or the last round in it."""
    history = fitted.history_
    return int(history[-1].get("round", 0)) + 1 if history and fitted.keeps_last else len(history)
