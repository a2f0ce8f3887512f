"""``python -m mutants``: change the code in a sample of places, and see how many changes the tests notice."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from mutants.measuring import Measurement, Verdict
from mutants.sites import draw


def main() -> None:
    """Run the measurement; print the share of killed mutants and a list of the others."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=150, help="how many mutations are tried (default: 150)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sample (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of the tests of a mutation (default: 60)")
    parser.add_argument("--recording", type=float, default=7200.0, help="time to record the suite (default: 7200)")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATH", help="tests to leave out")
    parser.add_argument("--state", type=Path, default=Path(".mutants"), help="the folder that remembers what is done")
    options = parser.parse_args()
    state = options.state.resolve()
    measurement = Measurement(Path.cwd(), state, options.jobs, options.seconds, options.ignore)
    mutations = draw(measurement.sources, options.sample, options.seed)
    while True:
        verdicts = measurement.run(mutations, options.recording, _print_line)
        if not measurement.drop_false_kills(verdicts):
            break
    print(summarise(verdicts))


def _print_line(verdict: Verdict) -> None:
    print(f"{verdict.outcome:<10}{verdict.seconds:>6.0f} s  {verdict.place}  {verdict.operator}", flush=True)


def summarise(verdicts: Sequence[Verdict]) -> str:
    """Return the share of killed mutants, and every survivor with its change."""
    killed = sum(verdict.is_killed for verdict in verdicts)
    counts = {outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in ("timed out", "no test")}
    survivors = [
        f"{verdict.place} ({verdict.outcome})\n{verdict.diff}\n" for verdict in verdicts if not verdict.is_killed
    ]
    share = f"killed {killed} of {len(verdicts)} mutants ({killed / max(len(verdicts), 1):.1%})"
    return "\n".join([*survivors, f"{share}, {counts['timed out']} by time; {counts['no test']} are run by no test"])


if __name__ == "__main__":
    main()
