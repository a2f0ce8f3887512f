"""The study of blends: how weights are found, bagged or refitted members, how many members, on many data sets.

``python -m benchmarks.blending --data DIR --out DIR`` fits every member of every case once, in as many processes as
there are cores, and keeps the result in a file of ``--out``; a second run goes on where the first was stopped. Then
every rule that finds weights is measured on test queries, and tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from rankwright.analysis.significance import randomisation
from rankwright.basics.array_types import Floats
from rankwright.data.joined_queries import join_queries
from rankwright.optimisers import blend_weights
from rankwright.optimisers.blend_weights import WeightRule
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.blend.blend_problem import BlendProblem, MeanEstimate
from rankwright.rankers.blend.candidates import Candidate, fit_candidate
from rankwright.rankers.blend.cross_fitting import CrossFitter, FitTask, FittedMember, HeldOutQueries, build_member
from rankwright.rankers.blend.fold_plan import FoldPlan, center_within_queries
from rankwright.rankers.blend.racing import group_by_member
from rankwright.scorers import merge_scorers

MEASURE = "ndcg@10"
N_FOLDS = 5
MANY = 1_000  # queries from which on they are partitioned once, have fewer documents, and slow members are left out
MADE_TEST = 500  # test queries of synthetic data
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
SLOW = ("smoothrank", "directrank", "frank", "svmmap", "permurank", "coordinateascent", "directranktrees", "lambdarank")


class Case(NamedTuple):
    """A data set of the study: a fold of a real one, or synthetic queries of a kind, a number and a seed."""

    name: str
    number: int

    def read(self, data: Path) -> tuple[rw.Queries, rw.Queries]:
        """Return the queries to blend on, and the test queries."""
        if not self.name.startswith("made"):
            train, valid, test = rw.read_folds(data / self.name)[self.number]
            return join_queries([train, valid]), test
        _, kind, n = self.name.split("-")
        shape: dict[str, Any] = {"n_features": 30, "n_docs": 20 if self.is_large else 40, "noise": 2.0}
        made = rw.make_queries(int(n) + MADE_TEST, kind=kind, random_state=self.number, **shape)
        return made.take(np.arange(int(n))), made.take(np.arange(int(n), len(made)))

    @property
    def is_large(self) -> bool:
        """Whether there are many queries."""
        return self.name.startswith("made") and int(self.name.split("-")[2]) > MANY


def list_cases() -> list[Case]:
    """Return the cases, the slowest first."""
    large = [Case("made-mixed-6000", 0), Case("made-mixed-2000", 0), *(Case("made-mixed-600", s) for s in range(2))]
    real = [Case(name, fold) for name in ("MQ2008", "OHSUMED") for fold in range(5)]
    small = [Case(f"made-mixed-{n}", seed) for n in (200, 100, 50) for seed in range(2)]
    return [*large, *real, *small, Case("made-linear-200", 0), Case("made-linear-50", 0)]


def list_candidates(measure: rw.Measure) -> Iterator[Candidate]:
    """Yield the candidates of the twenty members of the study; the first three, six and twelve are blends too."""
    m: dict[str, Any] = {"measure": measure}
    leaves = (4, 8, 16)
    yield Candidate("regression", rw.Regression(**m), (0.001, *ALPHAS, 1000.0))
    yield from (Candidate("lambdamart", rw.LambdaMART(n_estimators=200, num_leaves=n, **m)) for n in leaves)
    yield Candidate("listnet", rw.ListNet(**m), ALPHAS)
    yield from (Candidate("mart", rw.MART(n_estimators=200, num_leaves=n, **m)) for n in leaves)
    yield Candidate("ranksvm", rw.RankSVM(loss="squared_hinge", **m), (0.1, 1.0, 10.0, 100.0, 1000.0))
    yield Candidate("rankboost", rw.RankBoost(**m))
    yield Candidate("smoothrank", rw.SmoothRank(**m), ALPHAS)
    yield Candidate("adarank", rw.AdaRank(**m))
    trees: dict[str, Any] = {"objective": "top_one", "n_estimators": 200, **m}
    yield from (Candidate("listnet trees", rw.BoostedTrees(num_leaves=n, **trees)) for n in leaves)
    yield Candidate("lambdarank", rw.LambdaRank(**m))
    yield Candidate("directrank", rw.DirectRank(n_restarts=3, **m))
    yield Candidate("frank", rw.FRank(n_estimators=200, **m))
    yield Candidate("svmmap", rw.SVMMap(**m), (0.1, 1.0, 10.0, 100.0))
    yield Candidate("ranknet", rw.RankNet(**m), ALPHAS)
    yield Candidate("listmle", rw.ListMLE(**m), ALPHAS)
    yield Candidate("rankcosine", rw.RankCosine(**m), ALPHAS)
    yield Candidate("coordinateascent", rw.CoordinateAscent(n_restarts=1, **m))
    yield Candidate("permurank", rw.PermuRank(**m))
    yield Candidate("directranktrees", rw.DirectRankTrees(num_leaves=8, weight_range=(0.1, 0.5), **m))
    yield Candidate("singlefeature", rw.SingleFeature(**m))


def open_case(case: Case, data: Path) -> tuple[FoldPlan, rw.Queries, rw.Measure, dict[str, list[Candidate]]]:
    """Return the folds of a case, its test queries, the measure, and the candidates by member."""
    pool, test = case.read(data)
    measure = rw.parse_measure(MEASURE).with_max_grade(pool.max_grade)
    plan = FoldPlan.draw(pool.grouped(), N_FOLDS, 1 if case.is_large else 2, np.random.default_rng(0))
    members = group_by_member(list_candidates(measure))
    return plan, test, measure, {name: members[name] for name in members if not case.is_large or name not in SLOW}


def fit_member(case: Case, name: str, data: Path, out: Path) -> str:
    """Cross-fit a member of a case, and fit it to all queries; write its scores to a file."""
    warnings.simplefilter("ignore")
    plan, test, measure, members = open_case(case, data)
    cross, keys = CrossFitter(plan, measure.for_training(), rw.Serial()), plan.list_keys()
    start = time.process_time()
    cross.run([FitTask(candidate, key) for candidate in members[name] for key in keys], Deadline(None))
    held_out = HeldOutQueries.of(plan, keys, cross.measure)
    member = build_member(cross, name, members[name], held_out)
    seconds = time.process_time() - start
    bagged = merge_scorers(member.scorers, member.factors / len(keys), n_features=plan.queries.n_features)
    refitted = _refit(cross, members[name], held_out)
    np.savez_compressed(
        _file(out, case, name),
        scores=member.scores.astype(np.float16),
        bagged=bagged(test.X).astype(np.float16),
        refitted=refitted(test.X).astype(np.float16),
        seconds=seconds,
    )
    return f"{case.name} {case.number} {name}: {seconds:.0f} s"


def _refit(cross: CrossFitter, candidates: Sequence[Candidate], held_out: HeldOutQueries) -> Callable[..., Floats]:
    """Return the variant that is best by cross-validation, fitted to all queries, with scores of deviation 1."""
    queries = cross.plan.queries
    means = [
        np.mean([cross.fits[candidate][key].values.mean(axis=1) for key in held_out.keys], axis=0)
        for candidate in candidates
    ]
    best = int(np.argmax([each.max() for each in means]))
    fit = fit_candidate(candidates[best], (queries, queries.take([0])), cross.measure, None, cross.backend)
    scorer = fit.variants[int(np.argmax(means[best]))]
    deviation = center_within_queries(scorer(queries.X), queries.indptr).std() or 1.0
    return lambda X: scorer(X) / deviation


def _file(out: Path, case: Case, name: str) -> Path:
    return out / f"{case.name}_{case.number}_{name.replace(' ', '-')}.npz"


DEFAULT = "exact, shrunk (the default)"
RULES: Mapping[str, WeightRule] = {
    "equal": blend_weights.WEIGHT_RULES["equal"],
    "exact, no shrinkage": partial(blend_weights.find_overall_and_fold_weights, fit=blend_weights.fit_unpenalised),
    DEFAULT: blend_weights.fit_with_shrinkage,
    "exact, shrunk, no standard error": partial(blend_weights.fit_with_shrinkage, n_standard_errors=0.0),
    "exact, shrunk, 1/2 standard error": partial(blend_weights.fit_with_shrinkage, n_standard_errors=0.5),
    "stacking": blend_weights.WEIGHT_RULES["stacking"],
    "greedy": blend_weights.WEIGHT_RULES["greedy"],
}
SIZES = (3, 6, 12, 20)
KINDS = ("bagged", "refitted")


def evaluate_rules(case: Case, data: Path, out: Path) -> dict[str, Any]:
    """Return the test measure by query of every rule, every number of members, bagged and refitted; and estimates."""
    plan, test, measure, members = open_case(case, data)
    held_out = HeldOutQueries.of(plan, plan.list_keys(), measure.for_training())
    names = [name for name in members if _file(out, case, name).exists()]
    files = {name: np.load(_file(out, case, name)) for name in names}
    fitted = [
        FittedMember(name, (), np.empty(0), files[name]["scores"].astype(np.float64), _score(held_out, files[name]))
        for name in names
    ]
    prepared, weight = measure.prepare(test), held_out.queries.query_weight
    tests = {kind: np.column_stack([files[name][kind] for name in names]).astype(float) for kind in KINDS}
    # a refitted model has no held-out scores: it is given the deviation that the bagged one has on the same documents
    indptr = test.grouped().indptr
    spread = {kind: [center_within_queries(column, indptr).std() for column in tests[kind].T] for kind in KINDS}
    tests["refitted"] *= np.divide(spread["bagged"], np.maximum(spread["refitted"], 1e-12))
    rows = [
        _row("single", name, kind, prepared.values(tests[kind][:, at]), MeanEstimate.of(fitted[at].values, weight))
        for kind in KINDS
        for at, name in enumerate(names)
    ]
    for size in [size for size in SIZES if size <= len(names)]:
        problem = BlendProblem.of(fitted[:size], held_out, rw.Serial())
        for rule, fit in RULES.items():
            weights = fit(problem.scores)
            estimate = MeanEstimate.of(problem.estimate_values(weights), problem.scores.weight)
            for kind in KINDS:
                values = prepared.values(tests[kind][:, :size] @ weights.coef)
                rows.append(_row(rule, size, kind, values, estimate) | {"coef": np.round(weights.coef, 4).tolist()})
    seconds = {name: float(files[name]["seconds"]) for name in names}
    return {"case": case.name, "number": case.number, "rows": rows, "seconds": seconds}


def _score(held_out: HeldOutQueries, file: Any) -> Floats:
    return held_out.prepared_measure.values(file["scores"].astype(np.float64).mean(axis=0))


def _row(rule: str, members: Any, kind: str, values: Floats, estimate: MeanEstimate) -> dict[str, Any]:
    return {"rule": rule, "members": members, "kind": kind, "test": np.round(values, 5).tolist(), "estimate": estimate}


def fit_missing(cases: Sequence[Case], data: Path, out: Path, jobs: int) -> None:
    """Fit every member of every case whose file is not there, in several processes."""
    tasks = [(case, name) for case in cases for name in open_case(case, data)[3] if not _file(out, case, name).exists()]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(fit_member, *task, data, out) for task in tasks]):
            print(done.result(), flush=True)


def summarise(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a Markdown table of the mean test measure: rules with 12 bagged members, then other blends."""
    groups = group_by_case(results)
    yield "| | " + " | ".join(groups) + " | mean |"
    yield "|---" * (2 + len(groups)) + "|"
    wanted: list[tuple[str, str, int | None, str]] = [("best single, by its estimate", "single", None, "bagged")]
    wanted += [(rule, rule, 12, "bagged") for rule in RULES]
    wanted += [(f"exact, shrunk, {size} members", DEFAULT, size, "bagged") for size in SIZES if size != 12]
    wanted += [("exact, shrunk, refitted members", DEFAULT, 12, "refitted")]
    for title, rule, size, kind in wanted:
        cells, means = [], []
        for group in groups.values():
            values = np.concatenate([_find_values(result, rule, size, kind) for result in group])
            own = np.concatenate([_find_values(result, DEFAULT, 12, "bagged") for result in group])
            p = randomisation(values, own) if title != DEFAULT else 1.0
            mark = "" if p >= 0.05 else " ▲" if np.nanmean(values) > np.nanmean(own) else " ▼"
            cells.append(f"{np.nanmean(values):.4f}{mark}")
            means.append(float(np.nanmean(values)))
        yield f"| {title} | " + " | ".join([*cells, f"{np.mean(means):.4f}"]) + " |"


def summarise_singles(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a Markdown table of the mean test measure of every member alone, the mean of its fold models."""
    groups = group_by_case(results)
    yield "| member | " + " | ".join(groups) + " |"
    yield "|---" * (1 + len(groups)) + "|"
    found: dict[str, dict[str, list[Floats]]] = {}
    for name, group in groups.items():
        for row in [row for result in group for row in result["rows"]]:
            if row["rule"] == "single" and row["kind"] == "bagged":
                found.setdefault(row["members"], {}).setdefault(name, []).append(np.array(row["test"]))
    for member, by_group in found.items():
        cells = [f"{np.nanmean(np.concatenate(by_group[name])):.4f}" if name in by_group else "" for name in groups]
        yield f"| {member} | " + " | ".join(cells) + " |"


def group_by_case(results: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the results by the name of their data set: real ones first, then by kind and size."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for result in sorted(results, key=lambda result: _sort_key(str(result["case"]))):
        groups.setdefault(str(result["case"]), []).append(result)
    return groups


def _sort_key(name: str) -> tuple[bool, str, int]:
    """Return what orders data sets in a table."""
    kind, _, size = name.rpartition("-")
    return (True, kind, int(size)) if kind else (False, name, 0)


def _find_values(result: Mapping[str, Any], rule: str, size: int | None, kind: str) -> Floats:
    """Return the test values of a rule; of a single member, that of the highest estimate; of about ``size`` members."""
    rows = [row for row in result["rows"] if row["rule"] == rule and row["kind"] == kind]
    if rule == "single":
        return np.array(max(rows, key=lambda row: float(row["estimate"][0]))["test"])
    return np.array(min(rows, key=lambda row: abs(row["members"] - (size or 0)))["test"])


def main() -> None:
    """Fit what is missing, measure every rule, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cases", nargs="*", help="names such as OHSUMED or made-mixed-600; all by default")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = [case for case in list_cases() if not options.cases or case.name in options.cases]
    fit_missing(cases, options.data, options.out, options.jobs)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(evaluate_rules, cases, [options.data] * len(cases), [options.out] * len(cases)))
    with gzip.open(options.out / "results.json.gz", "wt") as file:
        json.dump(found, file)
    print("\n".join([*summarise(found), "", *summarise_singles(found)]))


if __name__ == "__main__":
    main()
