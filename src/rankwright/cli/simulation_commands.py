"""The command that recomputes the papers' simulations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli.app import app, progress_bar


@app.command()
def simulate(
    name: Annotated[str, typer.Argument(metavar="bounds|smoothing", help="Which simulation.")],
    out: Annotated[Path, typer.Option(help="The folder to fill with a page and tables.")],
    measure: Annotated[str | None, typer.Option(help="A built-in measure (default: the paper's).")] = None,
    seed: Annotated[int, typer.Option(help="The first of the random seeds.")] = 0,
    data: Annotated[Path | None, typer.Option(help="A folder of folds instead of made-up data, for smoothing.")] = None,
) -> None:
    """Recompute a paper's simulation: its figures as numbers, its claims beside what was found."""
    from rankwright.papers.simulation import simulate as run

    with progress_bar():
        findings, page = run(name, out, measure=measure, seed=seed, data=data)
    print(findings.text)
    print(f"page: {page}")
