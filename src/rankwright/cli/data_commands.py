"""The commands that look at data and convert them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, app, print_json, progress_bar
from rankwright.cli.column_options import add_column_options

if TYPE_CHECKING:
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.queries import Queries


@app.command()
@add_column_options
def inspect(
    columns: ColumnRoles,
    data: Annotated[list[Path], typer.Argument(help="Judged documents, a table or LETOR text; may be several files.")],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="A set that should be apart, such as test data; may be repeated."),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="The file to write a page to, in HTML.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at data before training: facts, what may be wrong, and the way out."""
    from rankwright.analysis import inspection
    from rankwright.basics.files import check_outputs, write_atomic

    check_outputs({"--page": page}, [*data, *(against or [])])
    with progress_bar():
        queries, other = _read_alike(data, against or [], columns)
        found = inspection.inspect(queries, other)
    if page is not None:
        from rankwright.report.inspection_page import make_inspection_page
        from rankwright.report.page import render_page

        with write_atomic(page) as file:
            file.write(render_page(make_inspection_page(found, data[0].name)))
    if as_json:
        print_json(found.to_json() | {"page": page})
        return
    print(found)
    if page is not None:
        print(f"page: {page}")


@app.command()
@add_column_options
def convert(
    columns: ColumnRoles,
    data: Annotated[list[Path], typer.Argument(help="Files of one format, which become one data set.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write, such as train.rwq; an older one is replaced."),
    ] = None,
    n_features: Annotated[
        int | None, typer.Option(help="The number of features of LETOR text that may not mention the last ones.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Read search responses with logged features: elasticsearch, opensearch, solr or vespa.",
            metavar="ENGINE",
        ),
    ] = None,
    judgments: Annotated[
        Path | None, typer.Option(help="With --from: judgments, as TREC qrels, CSV or a judgment list.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="With --from: what a feature is that did not match, nan (default) or zero."),
    ] = None,
    unjudged: Annotated[
        str | None,
        typer.Option(
            metavar="HOW", help="With --from: what is done with unjudged documents, drop (default), zero or error."
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --from: the name of the log, or the field of Solr that has the features."
        ),
    ] = None,
    separators: Annotated[
        str | None,
        typer.Option(
            metavar="CHARS", help="With --from solr: the characters after a name and between features (default =,)."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Instead of converting, compare converted data with their checksums.")
    ] = False,
) -> None:
    """Convert data to a folder of arrays on disk, which every command opens at once, whatever its size."""
    from rankwright.basics.errors import InputError
    from rankwright.data.conversion import convert_source
    from rankwright.data.mapped import verify_checksums
    from rankwright.data.mapped_writer import check_target, write_queries
    from rankwright.data.reading import open_source, read

    if check == (out is not None):
        raise InputError("expected either --out or --check")
    with progress_bar():
        if out is None:
            for path in data:
                verify_checksums(path)
                print(f"{path}: as it was written")
            return
        check_target("--out", out, [*data, judgments])
        options = {"missing": missing, "unjudged": unjudged, "log": log, "separators": separators}
        if engine is not None:
            write_queries(_read_log(data, columns, engine, judgments, options), out)
        else:
            _check_absent({"judgments": judgments, **options}, "is for --from elasticsearch, opensearch, solr or vespa")
            convert_source(open_source(data, columns, n_features), out)
    queries = read(out)
    size = sum(path.stat().st_size for path in out.iterdir())
    counts = f"{len(queries)} queries, {queries.n_docs} documents, {queries.n_features} features"
    print(f"{out}: {counts}, {size / 1e6:.1f} MB")


def _read_alike(data: list[Path], against: list[Path], columns: ColumnRoles) -> tuple[Queries, Queries | None]:
    """Read one set or two; LETOR text that does not mention the last features of the other set has zeros there."""
    from rankwright.data.letor_source import LetorSource
    from rankwright.data.reading import open_source

    source = open_source(data, columns)
    queries = source.read()
    if not against:
        return queries, None
    other_source = open_source(against, columns)
    other = other_source.read()
    n = max(queries.n_features, other.n_features)
    if isinstance(source, LetorSource) and queries.n_features < n:
        queries = open_source(data, columns, n).read()
    if isinstance(other_source, LetorSource) and other.n_features < n:
        other = open_source(against, columns, n).read()
    return queries, other


def _read_log(
    data: list[Path], columns: ColumnRoles, engine: str, judgments: Path | None, options: dict[str, str | None]
) -> Queries:
    """Read search responses with logged features; of the options that name columns those for ids and features hold."""
    from rankwright.data.engine_logs import read_log

    kept = {"qid": columns.qid, "docid": columns.docid, "features": columns.features}
    others = {name: getattr(columns, name) for name in ("label", "weight", "doc_weight", "ignore", "categorical")}
    _check_absent(others, f"names a column of a table; with --from {engine} grades come from --judgments")
    given = {name: value for name, value in (kept | options).items() if value is not None}
    return read_log(data, judgments, engine=engine, **given)  # type: ignore[arg-type]


def _check_absent(options: dict[str, Any], problem: str) -> None:
    """Raise InputError if one of these options is given."""
    from rankwright.basics.errors import InputError

    for name, value in options.items():
        if value:
            raise InputError(f"--{name.replace('_', '-')} {problem}")
