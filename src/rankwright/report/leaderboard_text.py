"""The leaderboard of an automatic search as text and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwright.basics.errors import CollectedWarning, InputError, InterruptedFitWarning, quote
from rankwright.basics.number_texts import MISSING, format_interval, format_number
from rankwright.report.notation import format_count

if TYPE_CHECKING:
    from rankwright.rankers import AutoRanker

FIELDS = ("member", "candidate", "n_fits", "mean", "low", "high", "seconds", "weight")  # of a row of the leaderboard
BLEND = "the blend"
NESTED = "estimated on queries that neither its models nor its weights saw"
VARIANT_NOTE = (
    "A candidate's figure is that of its best variant on queries that it was not fitted to: a little too high. "
    "Candidates with few fits were measured on fewer queries."
)


def format_leaderboard(ranker: AutoRanker) -> str:
    """Return the leaderboard of a fitted ``AutoRanker`` as text: a line for the blend, and one for each candidate.

    Parameters
    ----------
    ranker : AutoRanker
        A fitted one.

    Examples
    --------
    >>> import rankwright as rw
    >>> queries = rw.make_queries(40, random_state=0)
    >>> print(rw.format_leaderboard(rw.AutoRanker(max_seconds=20).fit(queries)))  # doctest: +SKIP
    candidate                 fits  ndcg@10  95% interval      seconds  weight
    the blend                   20   0.7157  [0.6544, 0.7770]     10.6   1.000
    regression                  10   0.7124  [0.6512, 0.7736]      1.9   0.512
    ranksvm                     10   0.7101  [0.6480, 0.7722]      2.3   0.488
    lambdamart, num_leaves=4    10   0.6987  [0.6370, 0.7604]      6.4       –
    """
    rows = get_leaderboard(ranker)
    blend = {
        **ranker.estimate_._asdict(),
        "n_fits": sum(row["n_fits"] for row in rows),
        "seconds": sum(row["seconds"] for row in rows),
        "weight": 1.0,
    }
    head = ("candidate", "fits", str(ranker.measure), "95% interval", "seconds", "weight")
    cells = [
        (
            name,
            str(row["n_fits"]),
            format_number(row["mean"]),
            format_interval(row["low"], row["high"]),
            f"{row['seconds']:.1f}",
            format_weight(row["weight"]),
        )
        for name, row in zip([BLEND, *name_candidates(rows)], [blend, *rows], strict=True)
    ]
    widths = [max(len(line[at]) for line in (head, *cells)) for at in range(len(head))]
    lines = [_align(line, widths) for line in (head, *cells)]
    return "\n".join([*lines, "", VARIANT_NOTE, describe_blend(ranker)])


def describe_blend(ranker: AutoRanker) -> str:
    """Return a sentence on the blend: how many members it has, and its measure on queries that it did not see."""
    used = [row for row in get_leaderboard(ranker) if row["weight"] > 0.0]
    n_members = len({row["member"] for row in used})
    low, high = ranker.estimate_.low, ranker.estimate_.high
    figure = f"{ranker.measure} {format_number(ranker.estimate_.mean)} {format_interval(low, high)}"
    parts = f"{format_count(n_members, 'member')} ({format_count(len(used), 'candidate')})"
    if np.isnan(ranker.estimate_.mean):
        return f"The blend of {parts}: no query could be held out to estimate its measure"
    return f"The blend of {parts}, {NESTED}: {figure}"


def format_stop_reason(warning: CollectedWarning) -> str | None:
    """Return a sentence for a warning that a limit or the user ended the search; None for any other warning."""
    if issubclass(warning.category, ConvergenceWarning):
        ending = "the time limit ended the search before it was complete; more time may find a better blend"
        sampled = re.search(r"the models are those of a sample of [\d,]+ documents", warning.message)
        if sampled is None:
            return ending
        return f"{ending}: {sampled[0]}" if "max_seconds" in warning.message else sampled[0]
    if issubclass(warning.category, InterruptedFitWarning):
        return "the search was interrupted; the model is the best of what was fitted by then"
    return None


def name_candidates(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a short name for each candidate: its member, and the parameters in which candidates of it differ.

    >>> both = [{"member": "mart", "candidate": f"MART(n_estimators=200, num_leaves={n})"} for n in (4, 8)]
    >>> name_candidates([*both, {"member": "listnet", "candidate": "ListNet(alpha=0.01 to 100)"}])
    ['mart, num_leaves=4', 'mart, num_leaves=8', 'listnet']
    >>> texts = ["MART()", "MART(lightgbm_params={'bagging_freq': 1})"]
    >>> name_candidates([{"member": "mart", "candidate": text} for text in texts])
    ['mart', 'mart, lightgbm_params={...}']
    """
    shown = [re.sub(r"\{[^{}]+\}", "{...}", row["candidate"]) for row in rows]  # options of a library are long
    parts = [re.split(r", (?=\w+=)", text.partition("(")[2].removesuffix(")")) for text in shown]
    n_candidates = Counter(row["member"] for row in rows)
    counts = Counter((row["member"], part) for row, own in zip(rows, parts, strict=True) for part in own)
    seen, names = Counter[str](), list[str]()
    for row, own in zip(rows, parts, strict=True):
        member = row["member"]
        name = ", ".join([member, *(part for part in own if part and counts[member, part] < n_candidates[member])])
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def format_weight(weight: float) -> str:
    """Return the share of a candidate in the blend as text, or a dash if it has none."""
    return format_number(weight, 3) if weight > 0.0 else MISSING


def format_leaderboard_csv(ranker: AutoRanker) -> str:
    """Return the leaderboard of a fitted ``AutoRanker`` as CSV, a line for each candidate."""
    file = io.StringIO()
    writer = csv.DictWriter(file, FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(get_leaderboard(ranker))
    return file.getvalue()


def get_leaderboard(ranker: AutoRanker) -> list[dict[str, Any]]:
    """Return the rows of the leaderboard of a fitted ``AutoRanker``; raise InputError if there is none."""
    rows: list[dict[str, Any]] | None = getattr(ranker, "leaderboard_", None)
    if rows is None:
        raise InputError(f"{quote(ranker)} has no leaderboard; expected a fitted AutoRanker")
    return rows


def _align(line: tuple[str, ...], widths: list[int]) -> str:
    """Return the cells of a line in columns: names and intervals to the left, numbers to the right."""
    signs = "<>><>>"
    return "  ".join(f"{cell:{sign}{width}}" for cell, sign, width in zip(line, signs, widths, strict=True)).rstrip()
