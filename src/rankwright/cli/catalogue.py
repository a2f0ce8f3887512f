"""The commands that list rankers and measures."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, app, list_parameters, print_json

if TYPE_CHECKING:
    from rankwright.rankers import Ranker


@app.command()
def rankers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A ranker, whose parameters are described.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the rankers with their parameters, or describe the parameters of one."""
    from rankwright.rankers import RANKERS, find_ranker

    if name is not None:
        _describe_ranker(find_ranker(name), as_json)
        return
    rows: list[dict[str, Any]] = []
    for ranker in RANKERS:
        rows.append({"name": ranker.__name__.lower(), "summary": _summarise(ranker)})
        rows[-1]["parameters"] = list_parameters(ranker)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['name']}\n  {row['summary']}")
        print("  " + ", ".join(f"{name}={value}" for name, value in row["parameters"].items()))


@app.command()
def measures(as_json: JsonOption = False) -> None:
    """List the measures, with their options and dialects."""
    from rankwright.measures import DEFINITIONS, DIALECTS

    rows: list[dict[str, Any]] = [
        {
            "name": d.full_name or name,
            "cut": f"{name}@k" if d.takes_cut_off else None,
            "title": d.title,
            "options": d.options,
        }
        for name, d in DEFINITIONS.items()
    ]
    dialects = {name: {m: not isinstance(e, str) for m, e in d.measures.items()} for name, d in DIALECTS.items()}
    if as_json:
        known = {name: [m for m, defined in table.items() if defined] for name, table in dialects.items()}
        print_json({"measures": rows, "dialects": known})
        return
    heads = [", ".join(dict.fromkeys(name for name in (row["name"], row["cut"]) if name)) for row in rows]
    for head, row in zip(heads, rows, strict=True):
        print(f"{head:<{max(map(len, heads))}}  {row['title']} ({', '.join(row['options'])})")
    print("\ndialects, as in ndcg@10(dialect=trec_eval):")
    for name, table in dialects.items():
        print(f"  {name:<11}{', '.join(m for m, defined in table.items() if defined)}")


def _describe_ranker(ranker: type[Ranker], as_json: bool) -> None:
    """Print a ranker's summary and its parameters, as a table or as JSON."""
    from rankwright.cli.parameter_table import (
        describe_options,
        describe_parameters,
        format_parameters,
        get_width,
    )

    rows = describe_parameters(ranker)
    name, summary = ranker.__name__.lower(), _summarise(ranker)
    if as_json:
        print_json({"name": name, "summary": summary, "parameters": rows})
        return
    width = get_width()
    print(f"{textwrap.fill(summary, width)}\n\n{format_parameters(rows)}\n")
    print(textwrap.fill(describe_options(name, rows), width, break_on_hyphens=False))


def _summarise(ranker: type[Ranker]) -> str:
    """Return the first line of a ranker's docstring."""
    return (ranker.__doc__ or "").strip().splitlines()[0]
