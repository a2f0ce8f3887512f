"""The commands that list rankers and measures."""

from __future__ import annotations

from typing import Any

from rankwright.cli.app import JsonOption, app, list_parameters, print_json


@app.command()
def rankers(as_json: JsonOption = False) -> None:
    """List the rankers, with their parameters."""
    from rankwright.rankers import RANKERS

    rows: list[dict[str, Any]] = []
    for ranker in RANKERS:
        summary = (ranker.__doc__ or "").strip().splitlines()[0]
        rows.append({"name": ranker.__name__.lower(), "summary": summary, "parameters": list_parameters(ranker)})
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
