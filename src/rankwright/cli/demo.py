"""The demonstration: a comparison of rankers and their blend on built-in data, with a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankwright.analysis.results import Results
from rankwright.analysis.significance import Comparison
from rankwright.basics.errors import InputError
from rankwright.basics.files import write_atomic
from rankwright.basics.number_texts import format_interval, format_p_equals, format_signed
from rankwright.data.letor import write_letor
from rankwright.data.synthetic import make_queries
from rankwright.experiments import read_experiment, read_trial_model, run_experiment
from rankwright.models.model_files import save
from rankwright.report import format_results, write_report

SPEC = """\
# Add a method and run: rankwright experiment spec.toml --out .  (finished trials are not run again)
name = "Demonstration"
measure = "ndcg@10"             # selects on validation queries
measures = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr", "err@10"]

[data]
file = "queries.txt"            # judged documents in LETOR format
n_folds = 5                     # cut into folds by query

[[methods]]
ranker = "mart"                 # the baseline: regression trees on the grades
set = { n_estimators = 200 }
grid = { num_leaves = [4, 10] } # chosen on validation queries

[[methods]]
ranker = "lambdamart"           # trees on the measure
name = "LambdaMART on NDCG"
set = { n_estimators = 200 }
grid = { num_leaves = [4, 10] }

[[methods]]
ranker = "lambdamart"
name = "LambdaMART on MAP"
measure = "map"
set = { n_estimators = 200 }
grid = { num_leaves = [4, 10] }

[[methods]]
ranker = "directranktrees"      # the exact best weight of every tree
set = { num_leaves = 4 }

[[methods]]
ranker = "rankboost"            # boosts thresholds of features; the report draws them

[[methods]]
ranker = "blend"                # all that take missing values, by exact weights on held-out queries
set = { n_folds = 3 }
"""
_FILES = ("queries.txt", "model.json", "report.html", "tables", "results.sqlite", "results.lock")


def run_demo(folder: Path) -> tuple[Results, str]:
    """Compare rankers on random data, write every file to ``folder``, and return the results and a text on them.

    No ranker is at its best alone on these data: relevance is in parts linear, saturating, joint, or up to the query.
    Values are missing, so that only rankers that take missing values are compared.
    """
    queries = make_queries(300, n_docs=25, n_features=30, kind="mixed", missing=0.05, random_state=7)
    spec = folder / "spec.toml"
    _check_overwrites(folder, spec)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{folder}: not a folder; expected one to fill") from None
    with write_atomic(spec) as file:
        file.write(SPEC)
    if not (folder / "queries.txt").exists():
        write_letor(queries, folder / "queries.txt")
    results = run_experiment(read_experiment(spec), folder)
    page = write_report(results, folder)
    best = results.methods[int(np.argmax(results.means()))]
    save(read_trial_model(folder, best), folder / "model.json")
    text = "\n\n".join(
        [
            f"{len(queries)} made-up queries, {queries.n_docs:,} judged documents, {queries.n_features} features; "
            f"{np.isnan(queries.X).mean():.0%} of the values are missing.",
            format_results(results),
            _describe_comparisons(results, results.methods[0]),
            f"The model of {best} from fold 1: {folder / 'model.json'}\n"
            f"The spec, to edit and run again: {folder / 'spec.toml'}\n"
            f"The report, to open in a browser: {page}",
        ]
    )
    return results, text


def _check_overwrites(folder: Path, spec: Path) -> None:
    """Raise InputError if the demo would overwrite a file that it did not write."""
    if spec.exists():
        if spec.read_text(encoding="utf-8", errors="replace") == SPEC:
            return
        raise InputError(
            f"{spec}: not the spec of the demo; run it with rankwright experiment, or choose another folder"
        )
    for name in _FILES:
        if (folder / name).exists():
            raise InputError(f"{folder / name}: not a file of the demo, which would write there; choose another folder")


def _describe_comparisons(results: Results, baseline: str) -> str:
    """Return one sentence per method that compares it with the baseline."""
    return "\n".join(_format_comparison(found) for found in results.compare(baseline=baseline))


def _format_comparison(found: Comparison) -> str:
    """Return the sentence that compares two methods: difference, interval, wins, losses and p-value."""
    return (
        f"{found.second} against {found.first}: {format_signed(found.difference)} "
        f"{format_interval(found.low, found.high)}, better on {found.wins} queries "
        f"and worse on {found.losses}, {format_p_equals(found.adjusted.randomisation)}"
    )
