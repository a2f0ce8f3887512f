"""The commands that evaluate and compare models, scores and runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, app, print_json, progress_bar
from rankwright.cli.backend_option import BackendOption, parse_backend
from rankwright.cli.column_options import add_column_options
from rankwright.cli.data_reading import DATA_HELP, is_read_by_workers, read_queries
from rankwright.cli.named_files import MODEL_HELP, parse_named_files, parse_named_runs

if TYPE_CHECKING:
    from rankwright.analysis.evaluation import Evaluations
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.queries import Queries
    from rankwright.measures import Measure
    from rankwright.runtime.backends import Backend

_MEASURES = "ndcg@1,ndcg@5,ndcg@10,map,mrr"
_TREC_MEASURES = ",".join(f"{name}(dialect=trec_eval)" for name in _MEASURES.split(","))


@app.command()
@add_column_options
def evaluate(
    columns: ColumnRoles,
    data: Annotated[str | None, typer.Option(metavar="PATH", help=f"Judged documents, {DATA_HELP}.")] = None,
    model: Annotated[Path | None, typer.Option(help=f"{MODEL_HELP}.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="A file of scores, one per line, in the order of the data.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Instead of --data: judgments (TREC qrels, CSV or a judgment list), with --run.")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="A TREC run, as FILE or NAME=FILE; may be repeated. By default measures follow trec_eval.",
        ),
    ] = None,
    measures: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURES", help="Measures, separated by commas (default: ndcg@1,ndcg@5,ndcg@10,map,mrr)."
        ),
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="The file to write each query's values to, separated by tabs.")
    ] = None,
    backend: BackendOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a model, the scores of any tool, or TREC runs on judged documents."""
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.measures import parse_measure

    n_rankings = (model is not None) + (scores is not None)
    if (data is None) == (not run) or (qrels is None) == bool(run) or n_rankings != (not run):
        raise InputError("expected either --model or --scores with --data, or --qrels with --run")
    wanted = [parse_measure(name) for name in _split(measures, _TREC_MEASURES if run else _MEASURES)]
    runs = parse_named_runs(run or [])
    check_outputs({"--per-query": per_query}, [data, model, scores, qrels, *runs.values()])
    if qrels is not None:
        columns.check_unused(qrels, "TREC files have no columns to choose")
        with progress_bar():
            results = _evaluate_runs(qrels, runs, wanted)
    elif data is not None:
        with progress_bar():
            results = {"": _evaluate_data(data, columns, model, scores, wanted, parse_backend(backend))}
    if per_query is not None:
        _write_per_query(per_query, {name: each["values"] for name, each in results.items()})
    values = [each.pop("values") for each in results.values()]
    if as_json:
        print_json({"runs": results} if len(results) > 1 else next(iter(results.values())))
    else:
        print(_format_table(results, values[0].measures))


@app.command()
@add_column_options
def compare(
    columns: ColumnRoles,
    data: Annotated[Path | None, typer.Option(help="Judged documents, a table or LETOR text.")] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="Scores, one per line, in the order of the data, as FILE or NAME=FILE; may be repeated.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FILE", help=f"{MODEL_HELP}, as FILE or NAME=FILE; may be repeated."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Instead of --data: judgments (TREC qrels, CSV or a judgment list), with --run.")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="A TREC run, as FILE or NAME=FILE; may be repeated.")
    ] = None,
    measures: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURES",
            help="Measures, separated by commas, the main one first (default: ndcg@10,map; for runs as in trec_eval).",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="A folder for a report page and tables.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare score files, models or TREC runs on judged documents: means, paired tests, wins and losses."""
    from rankwright.analysis.score_comparison import compare_files, compare_runs
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_apart
    from rankwright.report import format_comparisons, format_results, list_report_files, make_results_json, write_report

    if out is not None and (out / "results.sqlite").exists():
        raise InputError(f"{out}: holds an experiment and its report; choose another folder")
    if (data is None) == (qrels is None) or (qrels is None) != (not run) or (qrels is not None and (scores or model)):
        raise InputError("expected --data with --scores and --model, or --qrels with --run")
    runs, named = parse_named_runs(run or []), parse_named_files({"--scores": scores or [], "--model": model or []})
    if out is not None:
        files = [path for paths in named.values() for path in paths.values()]
        check_apart({"--out": list_report_files(out)}, [data, *files, qrels, *runs.values()])
    with progress_bar():
        options: dict[str, Any] = {} if measures is None else {"measures": measures}
        if data is not None:
            results = compare_files(data, named["--scores"], named["--model"], columns=columns, **options)
        elif qrels is not None:
            columns.check_unused(qrels, "TREC files have no columns to choose")
            results = compare_runs(qrels, runs, name=qrels.name, **options)
    if as_json:
        print_json(make_results_json(results))
    else:
        parts = [format_results(results)] + ([format_comparisons(results)] if len(results.methods) > 1 else [])
        print("\n\n".join(parts))
    if out is not None:
        print(f"report: {write_report(results, out)}", file=sys.stderr if as_json else sys.stdout)


def _split(measures: str | None, default: str) -> list[str]:
    """Return the names in the option --measures, or in the default without it."""
    from rankwright.basics.errors import InputError
    from rankwright.measures import split_measures

    names = split_measures(default if measures is None else measures)
    if not names:
        raise InputError(f"--measures {measures!r}: no measure; expected names such as ndcg@10,map")
    return names


def _evaluate_data(
    data: str,
    columns: ColumnRoles,
    model: Path | None,
    scores: Path | None,
    measures: Sequence[Measure],
    backend: Backend | None,
) -> dict[str, Any]:
    """Evaluate a model or a file of scores, and return the counts, the means and the values by query."""
    from rankwright.analysis.evaluation import evaluate as evaluate_scores
    from rankwright.data.score_files import read_scores
    from rankwright.models.block_scoring import list_known, score_documents
    from rankwright.models.model_files import load

    models = [] if model is None else [load(model)]
    if is_read_by_workers([data], backend):
        queries = read_queries([data], columns, backend, list_known(models[0]) if models else None)
        found = [each.predict(queries) for each in models]
    else:
        queries, found = score_documents(models, [data], columns)
    if scores is not None:
        found = [read_scores(scores, queries)]
    return _make_entry(queries, evaluate_scores(found[0], queries, measures))


def _evaluate_runs(qrels: Path, runs: Mapping[str, str], measures: Sequence[Measure]) -> dict[str, dict[str, Any]]:
    """Evaluate TREC runs, each on the judged queries that it answers; return counts, means and values by name."""
    from rankwright.analysis.evaluation import evaluate as evaluate_scores
    from rankwright.data.document_pools import join_runs
    from rankwright.data.judgments import read_judgments
    from rankwright.data.trec import read_run

    judged, results = read_judgments(qrels), {}
    for name, path in runs.items():
        answers = read_run(path)
        queries, found = join_runs(judged, {name: answers})
        entry = _make_entry(queries, evaluate_scores(found[:, 0], queries, measures))
        # trec_eval leaves these queries out
        entry |= {"unanswered": len(judged.keys() - answers.keys()), "unjudged": len(answers.keys() - judged.keys())}
        results[name] = entry
    return results


def _make_entry(queries: Queries, values: Evaluations) -> dict[str, Any]:
    """Return the numbers of queries and documents, the means, and the values by query of one ranking."""
    return {"queries": len(queries), "documents": queries.n_docs, "means": values.means, "values": values}


def _format_table(results: Mapping[str, dict[str, Any]], measures: Sequence[str]) -> str:
    """Return the means as text: a line for each measure, a column for each ranking."""
    width = max(len(name) for name in (*measures, "not counted"))
    if len(results) == 1:
        [entry] = results.values()
        width = max(map(len, measures))
        lines = [f"{name:<{width}}  {entry['means'][name]:.4f}" for name in measures]
        left_out = _format_left_out(entry)
        lines.append(f"{'queries':<{width}}  {entry['queries']}" + (f" (not counted: {left_out})" if left_out else ""))
        return "\n".join(lines)
    cells = [(f"{name:<{width}}", *(f"{entry['means'][name]:.4f}" for entry in results.values())) for name in measures]
    for key in ("queries", "unanswered", "unjudged"):
        cells.append((f"{key:<{width}}", *(str(entry[key]) for entry in results.values())))
    heads = [" " * width, *results]
    widths = [max(len(row[at]) for row in (heads, *cells)) for at in range(len(heads))]
    return "\n".join(
        "  ".join(f"{cell:>{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in (heads, *cells)
    )


def _format_left_out(entry: Mapping[str, Any]) -> str:
    """Return how many queries are not counted, as text; nothing if all are."""
    return ", ".join(f"{entry[what]} {what}" for what in ("unanswered", "unjudged") if entry.get(what))


def _write_per_query(path: Path, results: Mapping[str, Evaluations]) -> None:
    """Write the values of measures to a file, with a line for each query, and of each run if there are several."""
    from rankwright.basics.files import write_atomic

    several = len(results) > 1
    measures = next(iter(results.values())).measures
    with write_atomic(path) as file:
        file.write("\t".join((*(("run",) if several else ()), "qid", *measures)) + "\n")
        for name, values in results.items():
            for query, row in zip(values.qid, values.values.T.tolist(), strict=True):
                before = (name,) if several else ()
                file.write("\t".join((*before, str(query), *(repr(value) for value in row))) + "\n")
