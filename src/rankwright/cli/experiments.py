"""Commands that compare rankers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli.app import app, as_called, progress_bar


@app.command()
def demo(out: Annotated[Path, typer.Option(help="The folder to fill.")] = Path("rankwright-demo")) -> None:
    """The whole job on built-in data: train, select, compare, save."""
    import shutil

    from rankwright.demo import run_demo

    with progress_bar():
        table = run_demo(out)
    print(table)
    command = "rankwright" if shutil.which("rankwright") else as_called()
    print(f"Try: {command} evaluate --data {out / 'test.txt'} --model {out / 'adarank.json'}")
