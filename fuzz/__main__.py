"""``python -m fuzz``: run cases of all kinds of files, or of some; what is done already is not done again."""

from __future__ import annotations

import argparse
from pathlib import Path

from fuzz.kinds import KINDS
from fuzz.running import FINDINGS, STATE, Progress, run

# a million in all
CASES = {
    "letor": 300_000,
    "csv": 20_000,
    "jsonl": 20_000,
    "parquet": 20_000,
    "scores": 40_000,
    "qrels": 90_000,
    "run": 90_000,
    "judgments": 20_000,
    "log": 20_000,
    "model": 250_000,
    "spec": 100_000,
    "checkpoint": 20_000,
    "data": 20_000,
    "store": 10_000,
}


def main() -> None:
    """Run the fuzzer and print a table of what came of it; the status is 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all of them if none is named")
    parser.add_argument("--cases", type=int, help="cases of each kind (default: a million of all kinds together)")
    parser.add_argument("--seed", type=int, default=0, help="what cases are made of (default: 0)")
    parser.add_argument("--state", type=Path, default=STATE, help="the folder that remembers what is done")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="the folder for files that show a fault")
    options = parser.parse_args()
    for name in options.kinds:
        if name not in KINDS:
            parser.error(f"no kind {name!r}; there are {', '.join(KINDS)}")
    print(f"{'kind':<12}{'cases':>10}{'accepted':>10}{'refused':>10}{'undecided':>10}{'findings':>10}{'a second':>10}")
    found = False
    for name in options.kinds or KINDS:
        progress = run(name, options.cases or CASES[name], options.seed, options.state, options.findings)
        found |= bool(progress.findings)
        _print_row(name, progress)
    raise SystemExit(found)


def _print_row(name: str, progress: Progress) -> None:
    count, rate = sum(progress.findings.values()), progress.done / max(progress.seconds, 1e-9)
    numbers = (progress.done, progress.accepted, progress.refused, progress.undecided, count, round(rate))
    print(f"{name:<12}" + "".join(f"{number:>10,}" for number in numbers), flush=True)
    for detail, times in sorted(progress.findings.items(), key=lambda item: -item[1]):
        print(f"  {times:,} x {detail}", flush=True)


if __name__ == "__main__":
    main()
