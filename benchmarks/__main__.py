"""``python -m benchmarks``: every benchmark, as one Markdown report."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import (
    boosting,
    bounds,
    converting,
    experimenting,
    measuring,
    pairs,
    reading,
    sampling,
    searching,
    serving,
    smoothing,
    starting,
    stumps,
    tables,
    trees,
    tuning,
)
from benchmarks.report import publish
from rankwright.basics.files import write_atomic


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios against peers, side by side.")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    out: Path | None = parser.parse_args().out
    sections = (
        reading,
        converting,
        tables,
        measuring,
        boosting,
        stumps,
        pairs,
        bounds,
        smoothing,
        sampling,
        searching,
        trees,
        serving,
        tuning,
        experimenting,
        starting,
    )
    report = publish([section.measure for section in sections])
    if out is not None:
        with write_atomic(out) as file:
            file.write(report)


if __name__ == "__main__":
    main()
