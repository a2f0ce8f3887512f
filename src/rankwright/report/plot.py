"""Plots as functions, ``rw.plot``: each returns a Plotly figure, to show, to change or to save.

Plotly is imported when a plot is drawn. Equal input gives equal figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.analysis.evaluation import Evaluations
from rankwright.analysis.explanation import Explanation, explain
from rankwright.analysis.feature_effects import Slope, SummedScorer
from rankwright.analysis.permutation import PermutationImportance
from rankwright.analysis.results import Results
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, make_printable, suggest
from rankwright.data.examination import Examination
from rankwright.measures import Measure, parse_measure
from rankwright.report.query_figures import BLUE, GREY, RED, draw_histogram, draw_pairs, make_figure
from rankwright.report.sections.costs_section import choose_ticks, compute_costs, find_frontier, select_finished
from rankwright.report.sections.learning_lines import choose_heights

__all__ = ["cost_quality", "examination", "importance", "learning_curve", "per_query"]

_ROW, _AXES = 24, 150  # pixels for each bar, and for the title and the axes
_FEW = 30  # points of a line that has markers


def learning_curve(ranker: Any) -> Any:
    """Plot the measure on training and validation queries by round, and mark the round that became the model.

    Parameters
    ----------
    ranker : fitted ranker or Model
        What was trained in rounds; a loaded model keeps its record of training.

    Returns
    -------
    plotly.graph_objects.Figure
        Lines of the measure by round, or by step where a round has several; restarts have a line for each.

    Examples
    --------
    >>> from rankwright import AdaRank, make_queries
    >>> figure = learning_curve(AdaRank().fit(make_queries(40, random_state=0)))
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('round', 'ndcg@10')
    """
    if not hasattr(ranker, "to_model"):
        raise InputError(f"learning_curve of a {type(ranker).__name__}; expected a fitted ranker or a Model")
    model = ranker.to_model()
    history = [row for row in model.history if "train" in row or "valid" in row]
    if not history:
        raise InputError(f"the {model.ranker} model has no record of its training; expected a ranker that was fitted")
    axis, numbers = _number_rows(history)
    data: list[dict[str, Any]] = []
    heights: list[Floats] = []
    for key, name, colour in (("train", "training queries", GREY), ("valid", "validation queries", BLUE)):
        for number, restart in enumerate(dict.fromkeys(row.get("restart") for row in history)):
            rows = [at for at, row in enumerate(history) if row.get("restart") == restart and row.get(key) is not None]
            if not rows:
                continue
            heights.append(np.array([history[at][key] for at in rows], dtype=np.float64))
            points = {"x": [numbers[at] for at in rows], "y": heights[-1].tolist()}
            mode = "lines+markers" if len(rows) <= _FEW else "lines"
            line = {"type": "scatter", "mode": mode, "name": name, "line": {"color": colour}, **points}
            data.append(line | {"legendgroup": key, "showlegend": number == 0})
    kept = next((at for at, row in enumerate(history) if row.get("kept")), None)
    if kept is not None:
        row = history[kept]
        point = {"x": [numbers[kept]], "y": [row["train"] if row.get("valid") is None else row["valid"]]}
        marker = {"size": 12, "symbol": "diamond", "color": RED}
        data.append({"type": "scatter", "mode": "markers", "name": "the model", "marker": marker, **point})
    title = f"{model.ranker}: {model.measure} by {axis} of training"
    figure = make_figure(data, title, axis, model.measure)
    return figure.update_yaxes(range=choose_heights(heights))


def _number_rows(history: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """Return the word for a row of a history and the number of each: its round or, where rounds repeat, its step."""
    rounds = [int(row.get("round", at)) for at, row in enumerate(history)]
    restarts = [row.get("restart") for row in history]
    if len(set(zip(restarts, rounds, strict=True))) == len(history):
        return "round", rounds
    return "step", [restarts[:at].count(restart) for at, restart in enumerate(restarts)]


def importance(found: Any, n_features: int = 20) -> Any:
    """Plot the importance of features as bars, the most important at the top.

    Parameters
    ----------
    found : PermutationImportance, Explanation, fitted ranker, or model of any library
        Of a permutation importance the bars are falls of the measure, with their standard deviation over the shuffles.
        Of a model they are what ``explain`` finds: gains of trees, weights of a linear model, ranges of stumps.
    n_features : int
        The number of features to show at most.

    Returns
    -------
    plotly.graph_objects.Figure
        The bars.

    Examples
    --------
    >>> from rankwright import Regression, make_queries, permutation_importance
    >>> queries = make_queries(40, n_features=5, random_state=0)
    >>> figure = importance(permutation_importance(Regression().fit(queries), queries))
    >>> figure.layout.xaxis.title.text
    'fall of ndcg@10'
    """
    if n_features < 1:
        raise InputError(f"n_features={n_features}; expected at least 1")
    errors: Floats | None = None
    if isinstance(found, PermutationImportance):
        order = np.argsort(-found.means, kind="stable")
        axis, title = f"fall of {found.measure}", f"Fall of {found.measure} when a feature is shuffled"
        names, values = [found.features[at] for at in order], found.means[order]
        errors = found.falls.std(axis=1)[order]
    else:
        explanation = found if isinstance(found, Explanation) else explain(found)
        if explanation.kind is SummedScorer or not explanation.parts:
            raise InputError(
                f"the {explanation.ranker} model has no effects of single features; plot "
                "permutation_importance(ranker, queries)"
            )
        axis = explanation.kind.header[1]
        title = f"{explanation.ranker}: {axis} of each feature"
        names = [part.name for part in explanation.parts]
        values = np.array([part.weight if isinstance(part, Slope) else part.size for part in explanation.parts])
    if len(names) > n_features:
        title += f", the first {n_features} of {len(names):,}"
    shown = [make_printable(name) for name in names[:n_features]]
    bars: dict[str, Any] = {"type": "bar", "orientation": "h", "x": values[:n_features].tolist(), "y": shown}
    bars |= {"marker": {"color": BLUE}, "hovertemplate": "%{y}: %{x:.4g}<extra></extra>"}
    if errors is not None:
        bars["error_x"] = {"type": "data", "array": errors[:n_features].tolist(), "thickness": 1.2, "color": GREY}
    figure = make_figure([bars], title, axis, "feature")
    return figure.update_layout(
        yaxis={"type": "category", "autorange": "reversed", "dtick": 1}, height=_AXES + _ROW * max(len(shown), 4)
    )


def per_query(found: Any, measure: str | Measure | None = None) -> Any:
    """Plot the values of a measure by query: of one method, of one against another, or of several.

    Parameters
    ----------
    found : Evaluations, mapping of str to Evaluations, or Results
        One method is drawn as a histogram of its queries. Of two methods each query is a point, whose id shows under
        the mouse; above the diagonal the second is better. More methods are drawn as boxes.
    measure : str or Measure, optional
        By default the first of the measures; of results the one that decides.

    Returns
    -------
    plotly.graph_objects.Figure
        The histogram, the points or the boxes.

    Examples
    --------
    >>> from rankwright import evaluate, make_queries, Regression
    >>> queries = make_queries(40, random_state=0)
    >>> figure = per_query(evaluate(Regression().fit(queries), queries, ["ndcg@10", "map"]), "map")
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('map', 'queries')
    """
    name, ids, values, means = _collect_values(found, measure)
    if len(values) == 1:
        return draw_histogram(name, *next(iter(values.items())), means[0])
    if len(values) == 2:
        return draw_pairs(name, ids, values)
    data = [
        {"type": "box", "name": make_printable(method), "y": column[~np.isnan(column)].tolist(), "boxmean": True}
        for method, column in values.items()
    ]
    detail = f"quartiles, and the mean as a dashed line, of {len(ids):,} queries"
    return make_figure(data, f"{name} by query", "method", name, detail).update_layout(showlegend=False)


def cost_quality(results: Results, cost: str = "training one model") -> Any:
    """Plot the mean measure of each method of an experiment against its cost.

    Parameters
    ----------
    results : Results
        Those of an experiment, which has measured times on its machine.
    cost : "training one model", "training all candidates" or "scoring"
        The time on the horizontal axis, which is logarithmic.

    Returns
    -------
    plotly.graph_objects.Figure
        A point with its standard error for each method, and a line along those that no cheaper method reaches.
    """
    if not isinstance(results, Results):
        raise InputError(f"cost_quality of a {type(results).__name__}; expected Results, as of rw.read_results")
    finished = select_finished(results) if "trials" in results.tables else {}
    if not finished:
        raise InputError(f"{results.name}: no times of training; expected the results of an experiment")
    costs = compute_costs(finished)
    if cost not in costs:
        raise InputError(f"cost={cost!r}; {suggest(cost, costs)}")
    axis, known = costs[cost]
    means = dict(zip(results.methods, results.means().tolist(), strict=True))
    errors = dict(zip(results.methods, results.errors().tolist(), strict=True))
    shown = {method: value for method, value in known.items() if value > 0.0 and np.isfinite(means[method])}
    if not shown:
        raise InputError(f"{results.name}: no method has finished all folds; expected at least one")
    steps = find_frontier({method: (value, means[method]) for method, value in shown.items()})
    frontier = {"x": [*(shown[each] for each in steps), max(shown.values())]}
    frontier["y"] = [*(means[each] for each in steps), means[steps[-1]]]
    line = {"shape": "hv", "color": GREY, "width": 1.5}
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "name": "the best for the cost", "line": line, **frontier}
    ]
    for method, value in shown.items():
        error = {"type": "data", "array": [np.nan_to_num(errors[method])], "thickness": 1.2, "width": 4}
        point = {"x": [value], "y": [means[method]], "error_y": error, "marker": {"size": 11}}
        data.append({"type": "scatter", "mode": "markers", "name": make_printable(method), **point})
    detail = f"{results.measure} on test queries, with standard errors"
    figure = make_figure(data, results.name, f"{axis}, log scale", results.measure, detail)
    return figure.update_xaxes(**choose_ticks(list(shown.values())))


def _collect_values(found: Any, measure: str | Measure | None) -> tuple[str, list[Any], dict[str, Floats], list[float]]:
    """Return the name of the measure, the ids of the queries, the values of each method by query, and its means."""
    if isinstance(found, Results):
        name = found.measure if measure is None else str(parse_measure(measure))
        values = dict(zip(found.methods, found.values(name), strict=True))
        return name, found.tables["queries"]["qid"].tolist(), values, found.means(name).tolist()
    methods: Mapping[str, Any] = {"": found} if isinstance(found, Evaluations) else found
    if not isinstance(methods, Mapping) or not methods or not all(isinstance(e, Evaluations) for e in methods.values()):
        raise InputError(
            f"per_query of a {type(found).__name__}; expected Evaluations, as of rw.evaluate, a mapping of names to "
            "them, or Results"
        )
    first = next(iter(methods.values()))
    name = first.measures[0] if measure is None else str(parse_measure(measure))
    for method, each in methods.items():
        if name not in each.measures:
            of = f" for {method}" if method else ""
            raise InputError(f"{name} was not evaluated{of}; there are {', '.join(each.measures)}")
        if not np.array_equal(each.qid, first.qid):
            raise InputError(f"{method} has other queries than {next(iter(methods))}; expected the same, in one order")
    values = {method: each.per_query[name] for method, each in methods.items()}
    return name, first.qid.tolist(), values, [each.means[name] for each in methods.values()]


def examination(*found: Examination, names: Sequence[str] = ()) -> Any:
    """Plot the probability that each position is looked at, relative to position 1, with its intervals.

    Parameters
    ----------
    *found : Examination
        One or several, such as estimates by different methods.
    names : sequence of str
        What each is called in the legend; its method by default.

    Returns
    -------
    plotly.graph_objects.Figure
        A line for each; positions whose examination is not known are left out.

    Examples
    --------
    >>> from rankwright import Examination
    >>> figure = examination(Examination.from_power(1.0, 5), Examination.from_power(0.5, 5), names=["steep", "flat"])
    >>> [line.name for line in figure.data]
    ['steep', 'flat']
    """
    if not found or not all(isinstance(each, Examination) for each in found):
        raise InputError("expected one or several Examination, such as rw.estimate_examination(log)")
    if names and len(names) != len(found):
        raise InputError(f"{len(names)} names of {len(found)} examinations; expected one for each")
    data = []
    for number, each in enumerate(found):
        known = np.flatnonzero(~np.isnan(each.probability))
        line: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": names[number] if names else each.method,
        }
        line |= {"x": (known + 1).tolist(), "y": each.probability[known].tolist()}
        line["line"] = {"color": (BLUE, RED, GREY)[number]} if number < 3 else {}
        if each.low is not None and each.high is not None:
            above, below = each.high[known] - each.probability[known], each.probability[known] - each.low[known]
            line["error_y"] = {"array": above.tolist(), "arrayminus": below.tolist()}
        data.append(line)
    level = next((f"bars are {each.confidence:.0%} intervals" for each in found if each.low is not None), "")
    title = "Examination by position, relative to position 1"
    figure = make_figure(data, title, "position", "examination", level)
    return figure.update_yaxes(rangemode="tozero")
