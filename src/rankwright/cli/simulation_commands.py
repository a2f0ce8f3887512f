"""The command that runs the simulations of papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli.app import app, progress_bar


@app.command()
def simulate(
    name: Annotated[str, typer.Argument(metavar="bounds|smoothing", help="The name of the simulation.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write a page and tables to.")],
    measure: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="A built-in measure (default: the paper's).")
    ] = None,
    seed: Annotated[int, typer.Option(help="The first of the random seeds.")] = 0,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder of folds instead of made-up data, for smoothing.")
    ] = None,
) -> None:
    """Run a paper's simulation and compare its figures and claims with the results."""
    from rankwright.papers.simulation import simulate as run

    with progress_bar():
        findings, page = run(name, out, measure=measure, seed=seed, data=data)
    print(findings.text)
    print(f"page: {page}")
