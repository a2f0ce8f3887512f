"""``python -m benchmarks.threads``: how one round of DirectRank scales with threads. For a machine with many cores."""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import rankwright as rw
from benchmarks.report import Row, Table, publish
from benchmarks.searching import fit_round, make_large
from rankwright.basics.files import write_atomic
from rankwright.runtime.backends import count_cores

COUNTS = (1, 2, 4, 8, 16)
SHAPE = (20_000, 24, 519)
_ONCE = 2  # up to so many threads, one fit is long enough to be timed once


def measure_counts(queries: rw.Queries, counts: tuple[int, ...] = COUNTS) -> Table:
    """Seconds of one round by the number of threads, and whether the weights are the same to the last bit."""
    rows: list[Row] = []
    fit_round(make_large(50, SHAPE[1], 6), max(counts))  # compiles
    alone, weights, steps = 0.0, b"", 0
    for n in counts:
        if n > count_cores():
            rows.append(Row(f"{n} threads", f"skipped: {count_cores()} cores"))
            continue
        fits = [fit_round(queries, n) for _ in range(1 if n <= _ONCE else 3)]
        seconds = median(each for each, _ in fits)
        if not rows:
            alone, weights, steps = seconds, fits[0][1].coef_.tobytes(), len(fits[0][1].history_) - 1
        for _, ranker in fits:
            if ranker.coef_.tobytes() != weights:
                raise AssertionError(f"{n} threads find other weights")
        what, figure = f"{n} thread{'s' if n > 1 else ''}", f"{seconds:.1f} s"
        if n == counts[-1]:
            rows.append(Row(what, figure, f"{alone / seconds:.1f}x", "at least 8x", alone / seconds >= 8.0))
        else:
            rows.append(Row(what, figure, f"{alone / seconds:.1f}x"))
    notes = [
        f"One round of {queries.n_features} coordinates on NDCG@10, {len(queries):,} queries, {queries.n_docs:,} "
        f"documents, half of the features sparse; {steps} steps taken. Whole fits from equal weights.",
        f"The ratio is to one thread. Once with up to {_ONCE} threads, else medians of 3.",
        "All numbers of threads find the same weights, bit for bit.",
    ]
    return Table("Threads: one round of DirectRank", rows, notes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description="One round by threads.")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--columns", type=int, default=SHAPE[2], help="the number of features, 519 by default")
    given = parser.parse_args()
    n_queries, n_docs, _ = SHAPE
    report = publish([lambda: [measure_counts(make_large(n_queries, n_docs, given.columns))]])
    if given.out is not None:
        with write_atomic(given.out) as file:
            file.write(report)


if __name__ == "__main__":
    main()
