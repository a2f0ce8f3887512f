"""Commands that train, predict and evaluate."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli.app import JsonOption, MeasureOption, app, parameters, print_json, progress_bar

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
    ranker: Annotated[str, typer.Argument(help="Which ranker; `rankwright rankers` lists them.")],
    train: Annotated[list[Path], typer.Option(help="Training file in LETOR format; may be repeated.")],
    model: Annotated[Path, typer.Option(help="Where to write the model (JSON).")],
    valid: Annotated[
        Path | None, typer.Option(help="Validation file; it chooses the best round of rankers that have any.")
    ] = None,
    measure: MeasureOption = "ndcg@10",
    set_: Annotated[list[str] | None, typer.Option("--set", help="A parameter, name=value; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="The random seed, for rankers that have randomness.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a ranker and save the model."""
    import time

    from rankwright.basics.files import check_apart, check_writable
    from rankwright.data.letor import read_letor
    from rankwright.models.model_files import save

    untrained = _make_ranker(ranker, measure, set_ or [], seed)
    check_apart({"--model": [model], "--set training.checkpoint": _checkpoint_files(untrained)}, [*train, valid])
    check_writable(model)
    with progress_bar():
        train_queries = read_letor(*train)
        valid_queries = None if valid is None else read_letor(valid, n_features=train_queries.n_features)
        start = time.perf_counter()
        fitted = untrained.fit(train_queries, valid=valid_queries)
        seconds = time.perf_counter() - start
    save(fitted, model)
    report: dict[str, Any] = {"model": str(model), "ranker": type(fitted).__name__, "measure": str(fitted.measure)}
    report["train"] = fitted.score(train_queries)
    if valid_queries is not None:
        report["valid"] = fitted.score(valid_queries)
    report["rounds"] = _n_rounds(fitted)
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
    out: Annotated[Path | None, typer.Option(help="Where to write one score per line, in the file's order.")] = None,
    run: Annotated[Path | None, typer.Option(help="Where to write a TREC run.")] = None,
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
    scores: Annotated[Path | None, typer.Option(help="A score per line, in the order of the data.")] = None,
    qrels: Annotated[Path | None, typer.Option(help="Instead of --data: TREC judgments, with --run.")] = None,
    run: Annotated[Path | None, typer.Option(help="A TREC run; measures are trec_eval's by default.")] = None,
    measures: Annotated[
        str | None, typer.Option(help="Measures, separated by commas (default: ndcg@1,ndcg@5,ndcg@10,map,mrr).")
    ] = None,
    per_query: Annotated[Path | None, typer.Option(help="Where to write each query's values (tab-separated).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a model, any tool's scores, or a TREC run on judged documents."""
    from rankwright.analysis import evaluation
    from rankwright.basics.errors import InputError
    from rankwright.basics.files import check_outputs
    from rankwright.data.letor import read_letor
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
            queries = read_letor(data)
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
    """Say what a model makes of each feature: its step function or its weight."""
    from rankwright.analysis import diagnosis
    from rankwright.models.model_files import load

    print(diagnosis.explain(load(model)))


def _count_queries(judged: Table, run: Table) -> dict[str, int]:
    """Return how many queries do not count, and why, as in trec_eval."""
    return {"unanswered": len(judged.keys() - run.keys()), "unjudged": len(run.keys() - judged.keys())}


def _make_ranker(name: str, measure: str, settings: list[str], seed: int) -> Ranker:
    """Build the ranker that the options describe."""
    from rankwright.basics.errors import InputError
    from rankwright.data.feature_numbers import numbers_to_columns
    from rankwright.measures import parse_measure
    from rankwright.rankers import find_ranker
    from rankwright.rankers.parameter_names import explain_unknown

    ranker_class = find_ranker(name)
    defaults = parameters(ranker_class)
    known = [name for name in defaults if name != "backend"]
    chosen: dict[str, Any] = {"measure": str(parse_measure(measure))}
    if "random_state" in defaults:
        chosen["random_state"] = seed
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {_shorten(setting)}: expected name=value")
        key, dot, part = key.partition(".")  # training.learning_rate=0.01, lightgbm_params.lambda_l2=1
        if key == "measure":
            raise InputError(f"--set {_shorten(setting)}: use --measure")
        if key not in known or (dot and key not in ranker_class.nested_names):
            unknown = explain_unknown(ranker_class.__name__, f"{key}{dot}{part}", known, ranker_class.nested_names)
            raise InputError(f"--set {_shorten(setting)}: {unknown}")
        if dot:
            if not isinstance(chosen.get(key) or {}, dict):
                raise InputError(f"--set {setting}: {key} is {chosen[key]!r} already; expected one or the other")
            chosen[key] = {**(chosen.get(key) or {}), part: _read_value(part, text, None)}
        else:
            chosen[key] = _read_value(key, text, defaults[key])
    if chosen.get("warm_start") is True:
        raise InputError(
            "--set warm_start=true: nothing was fitted before; continue a saved model by --set init_model=PATH"
        )
    return ranker_class(**numbers_to_columns(chosen))


def _checkpoint_files(ranker: Ranker) -> list[Path]:
    """Return the file that training keeps its state in, if the ranker was given one."""
    training = ranker.get_params(deep=False).get("training")
    path = training.get("checkpoint") if isinstance(training, dict) else None
    return [Path(path)] if isinstance(path, str) else []


def _read_value(key: str, text: str, default: Any) -> Any:
    """Return a parameter's value from text, of the kind its default is of."""
    from rankwright.basics.errors import InputError

    if text.lower() in ("none", "null"):
        return None
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except json.JSONDecodeError:
        value = text
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        raise InputError(f"--set {key}={_shorten(text)}: too long; expected a value like {default!r}") from None
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 10**300 else math.copysign(math.inf, value)
    if key == "hidden":  # a width, or several
        return [int(width) for width in text.split(",")] if re.fullmatch(r"\d+(,\d+)*", text) else value
    if isinstance(default, tuple) and (numbers := _numbers(text)) is not None:
        return numbers
    if default is not None and type(value) is not type(default):
        raise InputError(f"--set {key}={_shorten(text)}: expected a value like {default!r}")
    return value  # what else is wrong with it, the ranker says


def _shorten(text: str) -> str:
    """Return what a message says of an option's text."""
    return text if len(text) <= 60 else text[:57] + "..."


def _numbers(text: str) -> tuple[float, ...] | None:
    """Parse several numbers, in brackets or not."""
    try:
        return tuple(float(word) for word in text.strip("()[] ").split(","))
    except ValueError:
        return None


def _n_rounds(fitted: Ranker) -> int:
    """Return how many rounds training had; the last record knows its number where not every round has a record."""
    history = fitted.history_
    return int(history[-1].get("round", 0)) + 1 if history and fitted.keeps_last else len(history)


def _score_file(model: Model, data: Path) -> tuple[Queries, Floats]:
    """Read documents as the model expects them, and score them."""
    from rankwright.data.letor import read_letor

    queries = read_letor(data, n_features=model.n_features)
    return queries, model.predict(queries)


def _write_per_query(path: Path, result: Any) -> None:
    from rankwright.basics.files import write_atomic

    with write_atomic(path) as file:
        file.write("\t".join(("qid", *result.measures)) + "\n")
        for query, row in zip(result.qid, result.values.T.tolist(), strict=True):
            file.write("\t".join((str(query), *(repr(value) for value in row))) + "\n")
