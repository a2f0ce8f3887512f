"""The command that makes training data of click logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, app, print_json, print_note, progress_bar
from rankwright.cli.column_options import split_lists

if TYPE_CHECKING:
    from rankwright.data.click_grades import ClickGrades
    from rankwright.data.click_log import ClickLog
    from rankwright.data.examination import Examination
    from rankwright.data.queries import Queries

_ESTIMATED = ("auto", "swaps", "harvesting", "em")


@app.command()
def clicks(
    data: Annotated[
        list[Path],
        typer.Argument(help="Logs with a row for each document that was shown, or events with --ubi-queries."),
    ],
    query: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of queries (default: query, qid, ...).")
    ] = None,
    docid: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of document ids (default: docid, ...).")
    ] = None,
    position: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of positions (default: position, rank, ...).")
    ] = None,
    clicked: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of clicks (default: clicked, click, ...).")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of sessions: finds duplicates, bots and lists.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of when a list was shown, the same in all its rows.")
    ] = None,
    ranker: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of the ranker, or arm of a test, that made the list.")
    ] = None,
    shuffled: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column of groups of positions that were put in random order."),
    ] = None,
    features: Annotated[
        list[Path] | None, typer.Option(help="Features to join by query and document; may be repeated.")
    ] = None,
    feature_qid: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of queries in --features (default: qid, ...).")
    ] = None,
    feature_docid: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of document ids in --features.")
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of --features to leave out: names or patterns, by commas."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Features that are categories: names or patterns, by commas."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The training data to write: .csv, .parquet, or a folder .rwq.")
    ] = None,
    examination: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How probable it is that positions are looked at: auto, swaps, harvesting or em estimates it; power "
            "fits 1 / position ** eta to that of auto; a number is eta; or a file that --examination-out wrote.",
        ),
    ] = None,
    examination_out: Annotated[Path | None, typer.Option(help="The file to write the examination to, as JSON.")] = None,
    grades: Annotated[
        str, typer.Option(metavar="HOW", help="What grades are made of: coec, clicks over expected clicks, or ctr.")
    ] = "coec",
    cuts: Annotated[
        str | None,
        typer.Option(
            metavar="VALUES",
            help="Where the next grade begins, by commas (default 0.5,1,2); a whole number of grades; or none.",
        ),
    ] = None,
    prior: Annotated[
        float | None, typer.Option(help="How many expected clicks the average counts for (default: estimated).")
    ] = None,
    min_shown: Annotated[int, typer.Option(help="Leave out documents with fewer impressions.")] = 1,
    max_position: Annotated[int | None, typer.Option(help="Leave out impressions at larger positions.")] = None,
    first_position: Annotated[int, typer.Option(help="The number of the first position, 0 or 1.")] = 1,
    duplicates: Annotated[
        str, typer.Option(metavar="HOW", help="A document twice in a list: merge, keep or error.")
    ] = "merge",
    clashes: Annotated[
        str, typer.Option(metavar="HOW", help="Two documents at one position of a list: keep, drop or error.")
    ] = "keep",
    missing: Annotated[str, typer.Option(metavar="HOW", help="Rows without a value: drop or error.")] = "drop",
    max_clicks: Annotated[int, typer.Option(help="Leave out sessions with more clicks, as those of robots.")] = 1000,
    min_impressions: Annotated[int, typer.Option(help="Warn of queries with fewer impressions.")] = 10,
    ubi_queries: Annotated[
        list[Path] | None,
        typer.Option(help="Queries of OpenSearch User Behavior Insights, whose results are the impressions."),
    ] = None,
    click_action: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An event that is a click; may be repeated.")
    ] = None,
    impression_action: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An event that is an impression; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make training data of click logs: findings, the examination of positions, and grades made of the clicks."""
    from rankwright.basics.errors import InputError, collect_warnings
    from rankwright.basics.files import write_atomic
    from rankwright.data.click_reading import read_clicks
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.reading import open_source

    if (out is None) != (features is None):
        raise InputError("expected --out and --features together, or neither: training data needs features")
    if features is None:
        options: dict[str, Any] = {"--feature-qid": feature_qid, "--feature-docid": feature_docid, "--ignore": ignore}
        options |= {"--categorical": categorical, "--min-shown": min_shown if min_shown != 1 else None}
        for option in (option for option, value in options.items() if value):
            raise InputError(f"{option} has no effect without --features and --out")
    bounds = _parse_cuts(cuts)
    _check_files(out, examination_out, [*data, *(features or []), *(ubi_queries or [])], examination)
    columns: dict[str, Any] = {"query": query, "docid": docid, "position": position, "clicked": clicked}
    columns |= {"session": session, "time": time, "ranker": ranker, "shuffled": shuffled}
    rules: dict[str, Any] = {"duplicates": duplicates, "clashes": clashes, "missing": missing}
    rules |= {"max_clicks": max_clicks, "min_impressions": min_impressions, "first_position": first_position}
    if click_action:
        rules["click_actions"] = click_action
    with progress_bar():
        with collect_warnings() as _:  # findings are printed with the log
            log = read_clicks(
                data, **columns, **rules, ubi_queries=ubi_queries, impression_actions=impression_action or ()
            )
        source = None
        if features is not None:
            lists: dict[str, Any] = {
                "ignore": split_lists("ignore", ignore),
                "categorical": split_lists("categorical", categorical),
            }
            source = open_source(features, ColumnRoles(qid=feature_qid, docid=feature_docid, **lists)).read()
        found = _find_examination(log, examination, source, max_position)
        graded = log.grade(grades, prior=prior, examination=found, max_position=max_position)
        y = graded.cut(bounds)
        queries = None
        if out is not None:
            queries = log.to_queries(
                source,
                grades=grades,
                cuts=bounds,
                prior=prior,
                examination=found,
                max_position=max_position,
                min_shown=min_shown,
            )
            _write(queries, out)
    if found is not None and examination_out is not None:
        with write_atomic(examination_out) as file:
            file.write(json.dumps(found.to_json()) + "\n")
    if as_json:
        _print_json(log, found, graded, y, queries, out)
        return
    print(log)
    if session is None and ubi_queries is None:
        print_note("duplicates, bots and two documents at one position were not looked for: that needs --session")
    if found is not None:
        print(f"\n{found}")
    else:
        print_note("grades without --examination correct too much where the best documents are first; see --help")
    print(f"\n{_format_grades(graded, y)}")
    if queries is not None:
        print(f"{out}: {len(queries)} queries, {queries.n_docs} documents, {queries.n_features} features")


def _check_files(out: Path | None, examination_out: Path | None, inputs: list[Path], examination: str | None) -> None:
    """Raise an error if an output cannot be written, has no known format, or would replace an input."""
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.data.mapped_header import SUFFIX
    from rankwright.data.mapped_writer import check_target
    from rankwright.data.table_writing import FORMATS

    if examination is not None and Path(examination).is_file():
        inputs = [*inputs, Path(examination)]
    if examination_out is not None and examination is None:
        raise InputError("--examination-out writes what --examination finds; expected --examination, such as auto")
    outputs = {"--out": out, "--examination-out": examination_out}
    if out is not None and out.suffix == SUFFIX:
        check_target("--out", out, inputs)
        outputs["--out"] = None
    elif out is not None and out.suffix not in FORMATS:
        raise InputError(f"--out {out}: expected a name that ends in {', '.join(FORMATS)} or {SUFFIX}")
    check_outputs(outputs, inputs)


def _parse_cuts(text: str | None) -> Any:
    """Return the values at which grades begin, a number of grades, or None for grades that are fractions."""
    from rankwright.basics.errors import InputError, quote
    from rankwright.data.click_grades import CUTS

    if text is None:
        return CUTS
    if text.strip().lower() == "none":
        return None
    try:
        return int(text) if text.strip().isdecimal() else [float(each) for each in text.split(",")]
    except ValueError:
        raise InputError(
            f"--cuts {quote(text)}: expected numbers such as 0.5,1,2, a number of grades, or none"
        ) from None


def _find_examination(
    log: ClickLog,
    how: str | None,
    features: Queries | None,
    max_position: int | None,
) -> Examination | None:
    """Return the examination that an option estimates, gives as a number, or reads from a file."""
    from rankwright.basics.errors import InputError, quote
    from rankwright.data.examination import Examination

    if how is None:
        return None
    if how in (*_ESTIMATED, "power"):
        from rankwright.analysis.clicks.examination_estimate import estimate_examination

        method: Any = "auto" if how == "power" else how
        found = estimate_examination(log, method, features=features, max_position=max_position)
        return found.fit_power() if how == "power" else found
    try:
        eta = float(how)
    except ValueError:
        if not Path(how).is_file():
            raise InputError(
                f"--examination {quote(how)}: expected {', '.join(_ESTIMATED)}, power, a number eta, or a file of JSON"
            ) from None
    else:
        return Examination.from_power(eta, log.n_positions)
    try:
        content = json.loads(Path(how).read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{how}: no JSON: {error}; expected a file that --examination-out wrote") from None
    return Examination.from_json(content, how)


def _write(queries: Queries, out: Path) -> None:
    """Write the training data in the format of the name."""
    from rankwright.data.mapped_header import SUFFIX
    from rankwright.data.mapped_writer import write_queries
    from rankwright.data.table_writing import write_table

    (write_queries if out.suffix == SUFFIX else write_table)(queries, out)


def _count_grades(y: Any) -> dict[str, int]:
    """Return the number of documents of each grade, of fractions by whole numbers that they are not below."""
    import numpy as np

    values, counts = np.unique(np.floor(y), return_counts=True)
    return {f"{value:g}": int(count) for value, count in zip(values, counts, strict=True)}


def _format_grades(graded: ClickGrades, y: Any) -> str:
    """Return a summary of grades as text."""
    counts = ", ".join(f"{grade}: {count:,}" for grade, count in _count_grades(y).items())
    return f"grades by {graded.kind}, with a prior of {graded.prior:.3g} clicks: {counts} documents"


def _print_json(
    log: ClickLog, found: Examination | None, graded: ClickGrades, y: Any, queries: Queries | None, out: Path | None
) -> None:
    """Print all that was found as JSON."""
    content: dict[str, Any] = log.to_json()
    content["examination"] = None if found is None else found.to_json()
    content["grades"] = {"kind": graded.kind, "prior": graded.prior, "n_documents": _count_grades(y)}
    content["out"] = out
    if queries is not None:
        content["written"] = {"n_queries": len(queries), "n_documents": queries.n_docs}
    print_json(content)
