"""The command that searches for the best blend of rankers."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, MeasureOption, app, print_error, print_json, print_note, progress_bar
from rankwright.cli.backend_option import BackendOption, parse_backend
from rankwright.cli.column_options import add_column_options
from rankwright.cli.data_reading import DATA_HELP, read_like, read_queries
from rankwright.cli.search_signals import SearchSignals, handle_signals

if TYPE_CHECKING:
    from rankwright.basics.errors import CollectedWarning
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.queries import Queries
    from rankwright.rankers import AutoRanker
    from rankwright.runtime.backends import Backend


@app.command()
@add_column_options
def auto(
    columns: ColumnRoles,
    train: Annotated[list[str], typer.Option(metavar="PATH", help=f"A training file, {DATA_HELP}; may be repeated.")],
    model: Annotated[Path, typer.Option(help="The file to write the model to, in JSON.")],
    valid: Annotated[
        str | None, typer.Option(metavar="PATH", help="Validation data, whose queries join the training queries.")
    ] = None,
    measure: MeasureOption = "ndcg@10",
    minutes: Annotated[
        float,
        typer.Option(
            metavar="MINUTES", help="The time limit of the search, without reading and the report; may be a fraction."
        ),
    ] = 10.0,
    budget_ms: Annotated[
        float | None,
        typer.Option(
            metavar="MS", help="The milliseconds that the model may take to score 100 documents (default: no limit)."
        ),
    ] = None,
    families: Annotated[
        str,
        typer.Option(
            metavar="FAMILIES",
            help="The families of rankers to try. A blend of stumps,trees goes to every search engine; so does one of "
            "linear, except to Elastic's own learning to rank.",
        ),
    ] = "linear,stumps,trees",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder for leaderboard.csv and the page report.html.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The random seed of the partition into folds.")] = 0,
    backend: BackendOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the best blend of rankers in a given time; Ctrl-C ends the search with the best of what there is."""
    from rankwright.measures import parse_measure
    from rankwright.models.model_files import save
    from rankwright.rankers import AutoRanker
    from rankwright.rankers.blend.auto_ranker import FIT_DONE
    from rankwright.rankers.blend.portfolio import check_families

    _check_positive("--minutes", minutes)
    if budget_ms is not None:
        _check_positive("--budget-ms", budget_ms)
    _check_files(train, valid, model, out)
    chosen: dict[str, Any] = {"measure": str(parse_measure(measure)), "random_state": seed}
    chosen["families"] = check_families([each.strip() for each in families.split(",")])
    chosen["backend"] = parse_backend(backend)
    unfitted = AutoRanker(max_seconds=60.0 * minutes, budget_ms=budget_ms, **chosen)
    signals, written = SearchSignals(AutoRanker._race.__code__, FIT_DONE), list[Path]()
    try:
        with handle_signals(signals):
            with progress_bar():
                sets = _read_sets(train, valid, columns, chosen["backend"])
                fitted, seconds, notes = _search(unfitted, sets, signals)
            save(fitted, model)
            written.append(model)
            page = None if out is None else _write_page(fitted, out, sets, seconds)
            _print_notes(notes)
            _print_result(fitted, model, page, seconds, as_json)
    except KeyboardInterrupt:
        what = f"the model was written to {model}, the rest was not" if written else "nothing was written"
        print_error(f"interrupted: {what}")
        raise typer.Exit(0 if written else signals.status) from None


def _check_positive(option: str, value: float) -> None:
    """Raise InputError unless the value of an option is a number above 0."""
    from rankwright.basics.errors import InputError

    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{option} {value:g}: expected a number above 0")


def _check_files(train: list[str], valid: str | None, model: Path, out: Path | None) -> None:
    """Raise an error if an input does not exist, or if an output cannot be written or would replace an input."""
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_apart, check_writable
    from rankwright.basics.optional_imports import require
    from rankwright.report.leaderboard_page import list_leaderboard_files

    written = [] if out is None else list_leaderboard_files(out)
    check_apart({"--model": [model], "--out": written}, [*train, valid])
    check_writable(model)
    if out is None:
        return
    require("plotly")
    if (out / "results.sqlite").exists():
        raise InputError(f"{out}: holds an experiment and its report; choose another folder")
    parent = next(each for each in (out, *out.absolute().parents) if each.exists())
    if not parent.is_dir():
        raise InputError(f"--out {out}: {parent} is not a folder; expected one to fill")
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"--out {out}: {parent} cannot be written to")
    for path in written if out.exists() else ():
        check_writable(path)


def _read_sets(
    train: list[str], valid: str | None, columns: ColumnRoles, backend: Backend | None
) -> tuple[Queries, Queries | None]:
    """Read the training and the validation queries, and warn of what looks wrong in them."""
    from rankwright.analysis.inspection import warn_of_findings

    train_queries = read_queries(train, columns, backend)
    valid_queries = None if valid is None else read_like(train_queries, valid, columns, backend)
    warn_of_findings(train_queries, valid_queries)
    return train_queries, valid_queries


def _search(
    unfitted: AutoRanker, sets: tuple[Queries, Queries | None], signals: SearchSignals
) -> tuple[AutoRanker, float, list[CollectedWarning]]:
    """Return the fitted ranker, the seconds that it took, and its warnings."""
    import time

    from rankwright.basics.errors import collect_warnings
    from rankwright.basics.progress import listen_also

    start = time.perf_counter()
    with collect_warnings() as found, listen_also(signals.note_progress):
        fitted = unfitted.fit(sets[0], valid=sets[1])
    return fitted, time.perf_counter() - start, found


def _write_page(fitted: AutoRanker, out: Path, sets: tuple[Queries, Queries | None], seconds: float) -> Path:
    """Write the leaderboard and its page to a folder, and return the path of the page."""
    import datetime
    import shlex

    from rankwright.report.leaderboard_page import write_leaderboard

    command = shlex.join(["rankwright", *sys.argv[1:]])
    today = datetime.date.today()
    return write_leaderboard(fitted, out, *sets, command=command, seconds=seconds, date=today)


def _print_notes(found: list[CollectedWarning]) -> None:
    """Print what ended the search as a note, and issue all other warnings."""
    from rankwright.basics.errors import warn
    from rankwright.report.leaderboard_text import format_stop_reason

    for each in found:
        ending = format_stop_reason(each)
        if ending is None:
            warn(each.message, each.category)
        else:
            print_note(f"note: {ending}")


def _print_result(fitted: AutoRanker, model: Path, page: Path | None, seconds: float, as_json: bool) -> None:
    """Print the leaderboard, the time and the files, as text or as JSON."""
    from rankwright.report.leaderboard_page import format_duration
    from rankwright.report.leaderboard_text import format_leaderboard

    if as_json:
        report: dict[str, Any] = {"model": str(model), "page": page, "measure": str(fitted.measure)}
        report |= {"estimate": fitted.estimate_._asdict(), "leaderboard": fitted.leaderboard_}
        print_json(report | {"seconds": round(seconds, 3)})
        return
    print(format_leaderboard(fitted))
    print(f"time: {format_duration(seconds)}")
    print(f"model: {model}")
    if page is not None:
        print(f"report: {page}")
