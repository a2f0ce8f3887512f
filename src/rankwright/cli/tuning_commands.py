"""The command that tunes the weights of runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli.app import JsonOption, MeasureOption, app, print_json, progress_bar
from rankwright.cli.named_files import parse_named_runs


@app.command()
def tune(
    qrels: Annotated[
        Path, typer.Option(help="Judgments: TREC qrels (qid iteration docid grade), CSV or a judgment list.")
    ],
    run: Annotated[
        list[str], typer.Option(metavar="[NAME=]FILE", help="A TREC run, as FILE or NAME=FILE; at least two.")
    ],
    measure: MeasureOption = "ndcg@10",
    normalise: Annotated[
        str,
        typer.Option(metavar="HOW", help="How scores are normalised within a query: min-max, z, rank, rrf or none."),
    ] = "min-max",
    folds: Annotated[
        int, typer.Option(help="The number of folds of the cross-validation that measures gains; 1 for none.")
    ] = 5,
    negative: Annotated[bool, typer.Option("--negative", help="Allow negative weights.")] = False,
    seed: Annotated[int, typer.Option(help="The random seed of the cut into folds.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The file to write the fused run to, with all queries of the runs.")
    ] = None,
    depth: Annotated[int, typer.Option(help="The number of documents to write for each query.")] = 1000,
    as_json: JsonOption = False,
) -> None:
    """Find the best weights of runs for a hybrid search, and measure their gain."""
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.tuning import tune_fusion

    if depth < 1:
        raise InputError(f"--depth {depth}: expected at least 1")
    runs = parse_named_runs(run)
    if out is not None:
        _check_not_output(out)
    check_outputs({"--out": out}, [qrels, *runs.values()])
    with progress_bar():
        found = tune_fusion(
            qrels,
            runs,
            measure=measure,
            normalise=normalise,
            folds=folds,
            nonnegative=not negative,
            random_state=seed,
        )
        if out is not None:
            found.write_run(out, depth=depth)
    if as_json:
        print_json(found.to_json() | {"out": out})
        return
    print(found)
    if out is not None:
        print(f"fused run: {out}")


def _check_not_output(out: Path) -> None:
    """Raise InputError if the fused run would go to standard output, where the table is printed."""
    from rankwright.basics.errors import InputError

    if out.exists() and not out.is_file() and os.path.samestat(out.stat(), os.fstat(1)):
        raise InputError(f"--out {out}: the table goes there; choose a file")
