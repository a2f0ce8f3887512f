"""The command that compiles kernels ahead, as for the image of a container."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankwright.cli.app import JsonOption, app, print_error, print_json, progress_bar


@app.command()
def warm(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="RANKER", help="Names of rankers; all rankers by default.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE", help="A measure to compile for; may be repeated. Some of each kind by default."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compile the kernels of rankers ahead, and keep them on disk for later processes."""
    import time

    from rankwright.basics import progress
    from rankwright.cli.warming import MEASURES, warm_rankers
    from rankwright.measures import parse_measure
    from rankwright.rankers import RANKERS, find_ranker
    from rankwright.runtime.compilation import list_cache_folders

    rankers = [find_ranker(name) for name in names] if names else list(RANKERS)
    measures = [str(parse_measure(each)) for each in measure or MEASURES]
    start = time.perf_counter()
    with progress_bar():
        found = list(progress.track(warm_rankers(rankers, measures), "rankers", len(rankers)))
    seconds, folders = time.perf_counter() - start, list(map(str, list_cache_folders()))
    if as_json:
        rows: list[dict[str, Any]] = [each._asdict() for each in found]
        print_json({"rankers": rows, "seconds": round(seconds, 3), "folders": folders})
        return
    for each in found:
        if each.left_out is not None:
            print_error(f"warning: {each.ranker} was left out: {each.left_out}")
        elif each.kernels:
            print(f"{each.ranker}: {len(each.kernels)} kernels compiled")
    n_compiled = sum(len(each.kernels) for each in found)
    print(f"{len(found)} rankers: {n_compiled} kernels compiled, all others were there; {seconds:.1f} s")
    print(f"cache: {', '.join(folders) or 'none, so every process compiles again'}")
