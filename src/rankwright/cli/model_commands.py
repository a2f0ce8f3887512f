"""The commands that fit, apply, evaluate and explain models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, MeasureOption, app, print_json, progress_bar
from rankwright.cli.ranker_options import make_ranker

if TYPE_CHECKING:
    from rankwright.basics.array_types import Floats
    from rankwright.data.queries import Queries
    from rankwright.data.trec import Table
    from rankwright.models.model import Model
    from rankwright.rankers import Ranker


_MEASURES = "ndcg@1,ndcg@5,ndcg@10,map,mrr"
_TREC_MEASURES = ",".join(f"{name}(dialect=trec_eval)" for name in _MEASURES.split(","))


@app.command()
def fit(
    ranker: Annotated[str, typer.Argument(help="The name of a ranker; `rankwright rankers` lists them.")],
    train: Annotated[list[Path], typer.Option(help="A training file in LETOR format; may be repeated.")],
    model: Annotated[Path, typer.Option(help="The file to write the model to, in JSON.")],
    valid: Annotated[
        Path | None, typer.Option(help="A validation file, on which rankers with rounds choose the best round.")
    ] = None,
    measure: MeasureOption = "ndcg@10",
    set_: Annotated[list[str] | None, typer.Option("--set", help="A parameter, name=value; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="The random seed, for rankers that use one.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit a ranker and save the model."""
    import time

    from rankwright.basics.files import check_apart, check_writable
    from rankwright.data.reading import read
    from rankwright.models.model_files import save

    unfitted = make_ranker(ranker, measure, set_ or [], seed)
    check_apart({"--model": [model], "--set training.checkpoint": _list_checkpoint_files(unfitted)}, [*train, valid])
    check_writable(model)
    with progress_bar():
        train_queries = read(*train)
        valid_queries = None if valid is None else read(valid, n_features=train_queries.n_features)
        start = time.perf_counter()
        fitted = unfitted.fit(train_queries, valid=valid_queries)
        seconds = time.perf_counter() - start
    save(fitted, model)
    report: dict[str, Any] = {"model": str(model), "ranker": type(fitted).__name__, "measure": str(fitted.measure)}
    report["train"] = fitted.score(train_queries)
    if valid_queries is not None:
        report["valid"] = fitted.score(valid_queries)
    report["rounds"] = _count_rounds(fitted)
    report["seconds"] = round(seconds, 3)
    if as_json:
        print_json(report)
        return
    parts = [f"{part} {report[part]:.4f}" for part in ("train", "valid") if part in report]
    print(f"{report['ranker']}: {report['measure']} {', '.join(parts)}; {report['rounds']} rounds, {seconds:.1f} s")
    print(f"model: {model}")


@app.command()
def predict(
    model: Annotated[Path, typer.Option(help="A model saved by fit.")],
    data: Annotated[Path, typer.Option(help="Documents in LETOR format.")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write scores to, one per line, in the order of the data.")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="The file to write a TREC run to.")] = None,
) -> None:
    """Score documents with a model."""
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.data.score_files import write_scores
    from rankwright.data.trec import write_run
    from rankwright.models.model_files import load

    if out is None and run is None:
        raise InputError("nothing to write; give --out or --run")
    loaded = load(model)
    check_outputs({"--out": out, "--run": run}, [model, data])
    with progress_bar():
        queries, scores = _score_file(loaded, data)
    if out is not None:
        write_scores(scores, out)
    if run is not None:
        write_run(queries, scores, run, tag=loaded.ranker)


@app.command()
def evaluate(
    data: Annotated[Path | None, typer.Option(help="Judged documents in LETOR format.")] = None,
    model: Annotated[Path | None, typer.Option(help="A model saved by fit.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="A file of scores, one per line, in the order of the data.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Instead of --data: TREC judgments, with --run.")] = None,
    run: Annotated[Path | None, typer.Option(help="A TREC run; by default measures follow trec_eval.")] = None,
    measures: Annotated[
        str | None, typer.Option(help="Measures, separated by commas (default: ndcg@1,ndcg@5,ndcg@10,map,mrr).")
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="The file to write each query's values to, separated by tabs.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a model, the scores of any tool, or a TREC run on judged documents."""
    from rankwright.analysis import evaluation
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.data.reading import read
    from rankwright.data.score_files import read_scores
    from rankwright.data.trec import join_runs, read_qrels, read_run
    from rankwright.measures import parse_measure, split_measures
    from rankwright.models.model_files import load

    of_run, counts = run is not None, {}
    n_rankings = (model is not None) + (scores is not None)
    if (data is None) != of_run or (qrels is None) == of_run or n_rankings != (not of_run):
        raise InputError("expected either --model or --scores with --data, or --qrels with --run")
    wanted = [parse_measure(name) for name in split_measures(measures or (_TREC_MEASURES if of_run else _MEASURES))]
    check_outputs({"--per-query": per_query}, [data, model, scores, qrels, run])
    with progress_bar():
        if run is not None and qrels is not None:
            judged, answers = read_qrels(qrels), read_run(run)
            queries, found = join_runs(judged, {run.name: answers})
            found, counts = found[:, 0], _count_queries(judged, answers)
        elif data is not None and model is not None:
            queries, found = _score_file(load(model), data)
        elif data is not None and scores is not None:
            queries = read(data)
            found = read_scores(scores, queries)
        result = evaluation.evaluate(found, queries, wanted)
    if per_query is not None:
        _write_per_query(per_query, result)
    if as_json:
        print_json({"queries": len(queries), "documents": queries.n_docs, "means": result.means, **counts})
        return
    width = max(len(name) for name in result.measures)
    for name, value in result.means.items():
        print(f"{name:<{width}}  {value:.4f}")
    left_out = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    print(f"{'queries':<{width}}  {len(queries)}" + (f" (not counted: {left_out})" if left_out else ""))


@app.command()
def explain(model: Annotated[Path, typer.Option(help="A model saved by fit.")]) -> None:
    """Print the effect of each feature in a model: its weight, step function or importance."""
    from rankwright.analysis import diagnosis
    from rankwright.models.model_files import load

    print(diagnosis.explain(load(model)))


def _count_queries(judged: Table, run: Table) -> dict[str, int]:
    """Return the numbers of queries that trec_eval leaves out: unanswered ones and unjudged ones."""
    return {"unanswered": len(judged.keys() - run.keys()), "unjudged": len(run.keys() - judged.keys())}


def _list_checkpoint_files(ranker: Ranker) -> list[Path]:
    """Return the path of the ranker's checkpoint file in a list, which is empty if it has none."""
    training = ranker.get_params(deep=False).get("training")
    path = training.get("checkpoint") if isinstance(training, dict) else None
    return [Path(path)] if isinstance(path, str) else []


def _count_rounds(fitted: Ranker) -> int:
    """Return how many rounds a ranker was trained for: the length of its history, or the last round in it."""
    history = fitted.history_
    return int(history[-1].get("round", 0)) + 1 if history and fitted.keeps_last else len(history)


def _score_file(model: Model, data: Path) -> tuple[Queries, Floats]:
    """Read the documents of a file with as many features as the model has, and return them with their scores."""
    from rankwright.data.reading import read

    queries = read(data, n_features=model.n_features)
    return queries, model.predict(queries)


def _write_per_query(path: Path, result: Any) -> None:
    """Write the values of measures to a file, with a line for each query."""
    from rankwright.basics.files import write_atomic

    with write_atomic(path) as file:
        file.write("\t".join(("qid", *result.measures)) + "\n")
        for query, row in zip(result.qid, result.values.T.tolist(), strict=True):
            file.write("\t".join((str(query), *(repr(value) for value in row))) + "\n")
