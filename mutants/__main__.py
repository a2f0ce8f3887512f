"""``python -m mutants``: change the code in a sample of places, and see how many changes the tests notice."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mutants.measuring import Measurement, Result
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
    parser.add_argument("--no-compiling", action="store_true", help="skip kernels that are tested compiled only")
    parser.add_argument("--state", type=Path, default=Path(".mutants"), help="the folder that remembers what is done")
    options = parser.parse_args()
    state = options.state.resolve()
    compiles = not options.no_compiling
    measurement = Measurement(Path.cwd(), state, options.jobs, options.seconds, options.ignore, compiles)
    mutations = draw(measurement.sources, options.sample, options.seed)
    while True:
        results = measurement.run(mutations, options.recording, _print_line)
        if not measurement.drop_false_kills(results):
            break
    print(summarise(results))


def _print_line(result: Result) -> None:
    print(f"{result.outcome:<10}{result.seconds:>6.0f} s  {result.place}  {result.operator}", flush=True)


def summarise(results: Sequence[Result]) -> str:
    """Return the share of killed mutants, and every survivor with its change."""
    tested = [result for result in results if not result.is_skipped]
    killed = sum(result.is_killed for result in tested)
    survivors = [f"{result.place} ({result.outcome})\n{result.diff}\n" for result in tested if not result.is_killed]
    counts = Counter(result.outcome for result in results)
    share = f"killed {killed} of {len(tested)} mutants ({killed / max(len(tested), 1):.1%})"
    rest = (
        f"{counts['timed out']} by time; {counts['no test']} are run by no test; {counts['skipped']} more are skipped"
    )
    return "\n".join([*survivors, f"{share}, {rest}"])


if __name__ == "__main__":
    main()
