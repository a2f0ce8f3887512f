"""The commands that compare rankers and write reports."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import app, get_command_name, print_error, progress_bar
from rankwright.cli.backend_option import silence_dask
from rankwright.cli.column_options import add_column_options
from rankwright.cli.named_files import MODEL_HELP, parse_named_files

if TYPE_CHECKING:
    from rankwright.analysis.results import Results
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.experiments import Experiment

OutOption = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder of the results; an unfinished experiment in it is resumed.")
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|WHERE",
        help="A number of processes (default: one per core), threads:N, or the address of a Dask scheduler.",
    ),
]


@app.command()
@add_column_options
def experiment(
    columns: ColumnRoles,
    out: OutOption,
    spec: Annotated[Path | None, typer.Argument(metavar="SPEC", help="A spec in TOML, instead of the options.")] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE|DIR",
            help="A folder of folds, or a file to cut into folds, a table or LETOR text; may be repeated.",
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Instead of --data: judgments (TREC qrels, CSV or a judgment list), with --run.")
    ] = None,
    run: Annotated[
        list[Path] | None, typer.Option(help="A TREC run, whose scores are a feature; may be repeated.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="The number of folds to cut a file or runs into (default: 5).")
    ] = None,
    rankers: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Rankers, separated by commas, with their default grids.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help=f"{MODEL_HELP}, as FILE or NAME=FILE, which is tested and not trained; may be repeated.",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(metavar="MEASURE", help="The measure that selects on validation queries (default: ndcg@10)."),
    ] = None,
    measures: Annotated[
        str | None, typer.Option(metavar="MEASURES", help="The measures on test queries, separated by commas.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Random seeds, separated by commas (default: 0).")
    ] = None,
    workers: WorkersOption = None,
) -> None:
    """Compare rankers on folds, with selection, significance tests and a report page; resumable."""
    from rankwright.basics.errors import InputError
    from rankwright.experiments import FixedModel, read_experiment
    from rankwright.report import format_results

    given: dict[str, Any] = {"--data": data, "--qrels": qrels, "--run": run, "--folds": folds, "--rankers": rankers}
    given |= {"--model": model}
    given |= {"--measure": measure, "--measures": measures, "--seeds": seeds}
    given |= {f"--{role.replace('_', '-')}": role for role in columns.list_given()}
    if spec is not None:
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} and a spec; expected one or the other")
        planned = read_experiment(spec)
    elif rankers is None and not model:
        raise InputError("expected a spec, or --data and --rankers (see rankwright experiment --help)")
    else:
        source = _describe_data(data or [], columns, qrels, run or [], folds)
        planned = _make_experiment(source, rankers, model or [], measure, measures, seeds)
    models = [method.path for method in planned.methods if isinstance(method, FixedModel)]
    _check_inputs_kept(out, [spec, *planned.data.files, *models])
    _warn_of_data(planned, out)
    results = _run_experiment(planned, out, workers)
    print(format_results(results))
    print(f"report: {_write_report(results, out)}")
    _exit_if_failed(results)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an experiment.")],
) -> None:
    """Write the report page and the tables of an experiment, finished or not."""
    from rankwright.experiments import read_results

    print(f"report: {_write_report(read_results(folder), folder)}")


@app.command()
def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="One or several protocols: ohsumed, ohsumed-2.0, td2003, td2004, hp2003, hp2004, np2003, np2004, "
            "mq2007, mq2008, mslr-web10k, mslr-web30k, yahoo-set1, yahoo-set2, istella-s.",
        ),
    ],
    data: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the data sets, or of a single one.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A method of the protocols to run, by its name; may be repeated; an unknown name prints the list.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the results, with a folder for each.")] = Path(
        "reproduction"
    ),
    write: Annotated[Path | None, typer.Option(help="A Markdown file to write the tables to.")] = None,
    workers: WorkersOption = None,
) -> None:
    """Run the protocols of papers and print published figures beside ours, with standard errors."""
    from rankwright.basics.aligned_tables import format_aligned
    from rankwright.basics.files import check_outputs, write_atomic
    from rankwright.papers.reproduction import format_page, format_text, make_reproductions, tabulate_winning_numbers

    planned = make_reproductions(names, data, method or ())
    inputs = [path for each in planned.values() for path in each.data.files]
    for name in planned:
        _check_inputs_kept(out / name, inputs)
    check_outputs(
        {"--write": write}, [*inputs, *(path for name in planned for path in _list_experiment_files(out / name))]
    )
    results = {}
    for name, each in planned.items():
        results[name] = _run_experiment(each, out / name, workers)
        _exit_if_failed(results[name])
        print(format_text(results[name]) + f"\n\nreport: {_write_report(results[name], out / name)}\n")
    if len(results) > 1:
        print(format_aligned(tabulate_winning_numbers(results)))
    if write is not None:
        chosen = "".join(f" --method {shlex.quote(name)}" for name in method or ())
        commands = [f"rankwright reproduce {' '.join(results)} --data DIR{chosen} --write {write}"]
        with write_atomic(write) as file:
            file.write(format_page(results, commands))


def _describe_data(
    data: list[Path], columns: ColumnRoles, qrels: Path | None, runs: list[Path], folds: int | None
) -> dict[str, Any]:
    """Return the part of a spec that describes the data of the command's options."""
    from rankwright.basics.errors import InputError
    from rankwright.data.folds import has_folds

    cut = {} if folds is None else {"n_folds": folds}
    roles = {"columns": columns.to_json()} if columns.list_given() else {}
    if data and qrels is None and not runs:
        if len(data) > 1 or not has_folds(data[0]):
            return {"file": [str(path) for path in data], **cut, **roles}
        if cut:
            raise InputError(f"--folds {folds}, but {data[0]} is a folder of folds already")
        return {"folds": str(data[0]), **roles}
    if qrels is not None and runs and not data:
        columns.check_unused(qrels, "TREC files have no columns to choose")
        return {"qrels": str(qrels), "runs": [str(path) for path in runs], **cut}
    raise InputError("expected --data, or --qrels with one --run or several")


def _make_experiment(
    source: dict[str, Any],
    rankers: str | None,
    models: list[str],
    measure: str | None,
    measures: str | None,
    seeds: str | None,
) -> Experiment:
    """Return the experiment that the command's options describe."""
    from rankwright.basics.errors import InputError, quote
    from rankwright.experiments import experiment_from_json
    from rankwright.measures import split_measures

    names = [] if rankers is None else rankers.split(",")
    methods = [{"ranker": name.strip(), "grid": "default"} for name in names]
    files = parse_named_files({"--model": models})["--model"]
    methods += [{"model": file, "name": name} for name, file in files.items()]
    path = Path(source.get("folds") or source.get("qrels") or source["file"][0])
    content: dict[str, Any] = {"data": source, "methods": methods, "name": path.resolve().name}
    if measure is not None:
        content["measure"] = measure
    if measures is not None:
        content["measures"] = split_measures(measures)
        if not content["measures"]:
            raise InputError(f"--measures {measures!r}: no measure; expected names such as ndcg@10,map")
    if seeds is not None:
        texts = [seed.strip() for seed in seeds.split(",")]
        if not all(text.isascii() and text.isdecimal() and len(text) < 20 for text in texts):  # int() accepts 1_000 too
            raise InputError(f"--seeds {quote(seeds)}: expected whole numbers from 0 up, as in 0,1,2")
        content["seeds"] = [int(text) for text in texts]
    return experiment_from_json(content, Path())


def _list_experiment_files(folder: Path) -> list[Path]:
    """Return the paths of the files that an experiment writes into its folder."""
    from rankwright.experiments.storage.schema import FILE, LOCK
    from rankwright.report import list_report_files

    return [folder / FILE, folder / LOCK, *list_report_files(folder)]


def _check_inputs_kept(folder: Path, inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError if an experiment in this folder would overwrite its own input files."""
    from rankwright.basics.files import check_apart

    check_apart({"--out": [folder, *_list_experiment_files(folder)]}, inputs)


def _exit_if_failed(results: Results) -> None:
    """Print an error and exit with status 1 if trials failed."""
    trials = results.tables["trials"]
    failed = trials["status"] == "failed"
    if failed.any():
        at = int(failed.argmax())
        where = f"{results.methods[trials['method'][at]]} on fold {trials['fold'][at]}"
        print_error(f"{failed.sum()} of {len(failed)} trials failed, such as {where}: {trials['error'][at]}")
        raise SystemExit(1)


def _warn_of_data(planned: Experiment, out: Path) -> None:
    """Warn if the training or test queries of the first fold look wrong; not again where an experiment continues."""
    from rankwright.analysis.inspection import warn_of_findings
    from rankwright.basics.errors import InputError
    from rankwright.experiments.storage.schema import FILE

    if (out / FILE).exists():
        return
    with suppress(InputError, OSError), progress_bar():  # the experiment itself says what cannot be read
        fold = planned.data.read_fold(0)
        warn_of_findings(fold.train, fold.test)


def _run_experiment(planned: Experiment, out: Path, workers: str | None) -> Results:
    """Run an experiment with a progress bar and the workers of the option --workers, and return its results."""
    from rankwright.experiments import run_experiment

    try:
        with progress_bar(), _open_workers(workers) as opened:
            return run_experiment(planned, out, opened, command=shlex.join(["rankwright", *sys.argv[1:]]))
    except KeyboardInterrupt:
        print_error(f"interrupted; finished trials are kept in {out}: run the experiment again to continue")
        raise


def _write_report(results: Results, folder: Path) -> Path:
    """Write the report page of results into a folder and return its path."""
    from rankwright.report import write_report

    return write_report(results, folder)


@contextmanager
def _open_workers(text: str | None) -> Iterator[Any]:
    """Yield the workers that the option --workers describes; a connection to a cluster is closed at the end."""
    from rankwright.basics.errors import InputError
    from rankwright.basics.optional_imports import require
    from rankwright.runtime.backends import Threads

    if text is None or text.isdecimal():
        yield None if text is None else int(text)
        return
    kind, colon, rest = text.partition(":")
    if kind == "threads" and rest.isdecimal():
        yield Threads(int(rest))
    elif colon and rest.startswith("//"):
        distributed = require("distributed")
        silence_dask()
        try:
            client = distributed.Client(text)
        except (OSError, ValueError) as error:
            raise InputError(f"--workers {text}: no Dask scheduler answers: {error}") from None
        try:
            yield client
        finally:
            with suppress(Exception):  # the scheduler may be gone
                client.close()
    else:
        raise InputError(f"--workers {text}: expected a number, threads:N, or an address such as tcp://scheduler:8786")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")] = Path("rankwright-demo"),
) -> None:
    """Compare rankers and their blend on built-in data: five folds, selection, significance tests, a report page."""
    import shutil

    from rankwright.cli.demo import run_demo

    with progress_bar():
        results, text = run_demo(out)
    print(text)
    _exit_if_failed(results)
    command = "rankwright" if shutil.which("rankwright") else get_command_name()
    print(f"Try: add a method to the spec, then {command} experiment {out / 'spec.toml'} --out {out}")
