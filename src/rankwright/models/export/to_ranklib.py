"""RankLib's model texts, which the plugins of Elasticsearch and OpenSearch read as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, make_printable, quote
from rankwright.models.export.float32_thresholds import round_down_to_float32
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.models.imports.from_ranklib import parse_terms, sum_terms
from rankwright.models.imports.ranklib_trees import Token
from rankwright.scorers import Stumps
from rankwright.scorers.lightgbm_trees import Tree, make_leaf
from rankwright.scorers.score_parts import ScoreParts

_MAX_DEPTH = 500  # of a tree: RankLib builds nodes inside each other on its stack
_MAX_ID = 2**31 - 1
_BELOW_ALL = "-1e+300"  # a threshold of RankBoost that every value is above


class RankLibTarget(Target):
    """The model texts of RankLib: weights and stumps in float64, trees in float32; a missing value is 0."""

    name: ClassVar[str] = "ranklib"
    title: ClassVar[str] = "RankLib"
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees", "network"})
    missing: ClassVar[str] = "zero"
    reasons: ClassVar[Mapping[str, str]] = {
        "categories": "its trees compare numbers only",
        "kernel sum": "it has weights, stumps, trees and networks of sigmoids only",
        "sum": "a text has weights, or stumps, or trees",
    }

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError if some names are ids of features and others are not."""
        find_ids(names)

    def find_obstacle(self, parts: ScoreParts) -> str | None:
        """Return which of the parts it cannot hold and why; of networks it holds those that were its own."""
        obstacle = super().find_obstacle(parts)
        if obstacle is None and parts.networks and not _is_network_of_sigmoids(parts):
            return "such a network: its own have a sigmoid in every neuron, also in the last"
        return obstacle

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the text of the form that fits: that of the text which was imported, if it still does."""
        ids, parts = find_ids(request.names), request.parts
        form = str(request.record.get("form"))
        if parts.coef is not None:
            form, lines = _write_linear(parts, ids, form, request.record)
        elif parts.networks:
            form, lines = form if form in ("LambdaRank", "ListNet") else "RankNet", _write_network(parts, ids)
        elif parts.stumps and not parts.trees:
            form, lines = "RankBoost", [_write_stumps(parts.stumps, parts.intercept, ids)]
        else:
            form, lines = _write_ensembles(parts, ids, form, request.record)
        head = [f"## {form}", *_describe_features(request.names, ids)]
        text = "\n".join([*head, *lines]) + "\n"
        return ExportedFiles(text.encode("ascii"), notes=_write_notes(parts, ids))


def find_ids(names: Sequence[str]) -> list[int]:
    """Return the ids of features: their names if all of these are whole numbers from 1, else 1, 2, 3, ...

    >>> find_ids(["7", "3"]), find_ids(["bm25", "clicks"])
    ([7, 3], [1, 2])
    """
    numbers = [int(name) if name.isascii() and name.isdigit() and len(name) <= 10 else 0 for name in names]
    if all(1 <= number <= _MAX_ID for number in numbers):
        if len(set(numbers)) < len(numbers):
            raise InputError("two features with the same id; RankLib expects ids that differ")
        return numbers
    if any(numbers):
        other = next(name for name, number in zip(names, numbers, strict=True) if not number)
        raise InputError(
            f"the name {quote(other)} of a feature beside numbers; RankLib knows features by numbers from 1: map all "
            "names to numbers, or none, to have them numbered"
        )
    return list(range(1, len(names) + 1))


def _describe_features(names: Sequence[str], ids: Sequence[int]) -> Iterator[str]:
    """Yield a comment for each feature whose id is not its name."""
    for number, name in zip(ids, names, strict=True):
        if str(number) != name:
            yield f"## feature {number} = {make_printable(name).encode('ascii', 'backslashreplace').decode()}"


def _write_linear(parts: ScoreParts, ids: Sequence[int], form: str, record: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the form and the line of weights; RankLib adds them in the order of the line."""
    assert parts.coef is not None
    terms = [f"{number}:{weight!r}" for number, weight in zip(ids, parts.coef.tolist(), strict=True)]
    recorded = record.get("terms")
    if isinstance(recorded, str) and _are_terms_of(recorded, parts.coef):
        own, weights = parse_terms(Token(recorded, 1))
        terms = [f"{ids[number - 1]}:{weight!r}" for number, weight in zip(own.tolist(), weights.tolist(), strict=True)]
    if parts.intercept or form == "Linear Regression":
        return "Linear Regression", [" ".join([f"0:{parts.intercept!r}", *terms])]
    return "AdaRank" if form == "AdaRank" else "Coordinate Ascent", [" ".join(terms)]


def _are_terms_of(text: str, coef: Floats) -> bool:
    """Return whether terms that were imported still add up to the weights of the model."""
    try:
        own, weights = parse_terms(Token(text, 1))
        return int(own.max()) <= len(coef) and np.array_equal(sum_terms(own, weights, len(coef)), coef)
    except InputError:
        return False


def _write_stumps(sums: Sequence[Stumps], intercept: float, ids: Sequence[int]) -> str:
    """Return the line of stumps; a constant is a stump that every value is above."""
    terms = [
        f"{ids[feature]}:{threshold!r}:{weight!r}"
        for stumps in sums
        for feature, threshold, weight in zip(
            stumps.feature.tolist(), stumps.threshold.tolist(), stumps.weight.tolist(), strict=True
        )
    ]
    if intercept or not terms:
        terms.append(f"{ids[0]}:{_BELOW_ALL}:{intercept!r}")
    return " ".join(terms)


def _write_ensembles(
    parts: ScoreParts, ids: Sequence[int], form: str, record: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Return the form and the lines of trees: the bags of an imported random forest, or one sum."""
    trees = parts.list_trees()
    bags = record.get("bags")
    if form == "Random Forests" and isinstance(bags, list) and _are_bags_of(bags, trees) and not parts.intercept:
        starts = np.cumsum([0, *bags]).tolist()
        sums = [trees[start:end] for start, end in pairwise(starts)]
    else:
        form = "MART" if form == "MART" else "LambdaMART"
        sums = [[*trees, make_leaf(parts.intercept)] if parts.intercept or not trees else trees]
    lines = [""]
    for own in sums:
        lines.append("<ensemble>")
        for number, tree in enumerate(own, start=1):
            lines += _write_tree(tree, number, ids, len(sums))
        lines.append("</ensemble>")
    return form, lines


def _are_bags_of(bags: list[Any], trees: Sequence[Tree]) -> bool:
    """Return whether the trees are those of imported bags: numbers in float32, divided by the number of bags."""
    if not all(type(n) is int and n >= 0 for n in bags) or sum(bags) != len(trees):
        return False
    return all(_split_weight(tree, len(bags)) is not None for tree in trees)


def _split_weight(tree: Tree, n_bags: int) -> tuple[np.float32, Floats] | None:
    """Return weight and outputs in float32 whose product, divided by the number of bags, is the tree's values.

    Trees of RankLib have such numbers; for others it is None.
    """
    weight = np.float32(tree.shrinkage * n_bags)
    if not np.isfinite(weight) or weight == 0.0:
        return None
    with np.errstate(over="ignore"):
        outputs = (tree.values * n_bags / float(weight)).astype(np.float32)
    is_equal = np.array_equal(outputs.astype(np.float64) * float(weight) / n_bags, tree.values)
    return (weight, outputs) if is_equal and float(weight) / n_bags == tree.shrinkage else None


def _write_tree(tree: Tree, number: int, ids: Sequence[int], n_bags: int) -> Iterator[str]:
    """Yield the lines of a tree: a tag a line, and the left child before the right one."""
    if tree.depth > _MAX_DEPTH:
        raise InputError(f"RankLib cannot hold a tree of {tree.depth} levels; expected at most {_MAX_DEPTH}")
    with np.errstate(over="ignore"):
        weight, outputs = _split_weight(tree, n_bags) or (np.float32(1.0), tree.values.astype(np.float32))
    if not np.isfinite(outputs).all():
        raise InputError(f"a leaf of {np.abs(tree.values).max():.3g}; RankLib has float32 numbers, up to 3.4e38")
    feature, left, right = (tree.columns[name].tolist() for name in ("split_feature", "left_child", "right_child"))
    thresholds = round_down_to_float32(tree.columns["threshold"])
    yield f'\t<tree id="{number}" weight="{weight!s}">'
    pending: list[tuple[str, int]] = [("<split>", 0 if feature else ~0)]  # what is to be written, the last first
    while pending:
        tag, node = pending.pop()
        yield f"\t\t{tag}"
        if tag == "</split>":
            continue
        if node < 0:
            yield f"\t\t\t<output> {outputs[~node]!s} </output>"
            yield "\t\t</split>"
            continue
        yield f"\t\t\t<feature> {ids[feature[node]]} </feature>"
        yield f"\t\t\t<threshold> {thresholds[node]!s} </threshold>"
        pending += [("</split>", 0), ('<split pos="right">', right[node]), ('<split pos="left">', left[node])]
    yield "\t</tree>"


def _is_network_of_sigmoids(parts: ScoreParts) -> bool:
    """Return whether the score is one network that only passes on the sigmoid of its last neuron but one."""
    (weight, network), *others = parts.networks
    last = (network.weights[-1].tolist(), network.biases[-1].tolist())
    is_plain = not others and weight == 1.0 and not parts.intercept
    return is_plain and len(network) > 1 and network.activation == "sigmoid" and last == ([[1.0]], [0.0])


def _write_network(parts: ScoreParts, ids: Sequence[int]) -> list[str]:
    """Return the lines of a network: ids, sizes of hidden layers, and the connections of each neuron.

    The bias is the last neuron of the inputs, and is connected to the neurons of all layers.
    """
    network = parts.networks[0][1]
    weights = [weight.astype(np.float64) for weight in network.weights[:-1]]
    biases = [bias.astype(np.float64) for bias in network.biases[:-1]]
    biases[0] = biases[0] - (network.mean * network.factor) @ weights[0]
    weights[0] = network.factor[:, None] * weights[0]
    hidden = [str(len(bias)) for bias in biases[:-1]]
    rows: list[list[Floats]] = [[*weights[0], np.concatenate(biases)], *(list(weight) for weight in weights[1:])]
    return [
        " ".join(map(str, ids)),
        *(str(len(hidden)), *hidden),
        *(
            f"{layer} {neuron} {' '.join(map(repr, own.tolist()))}"
            for layer, neurons in enumerate(rows)
            for neuron, own in enumerate(neurons)
        ),
    ]


def _write_notes(parts: ScoreParts, ids: Sequence[int]) -> list[str]:
    """Return what the user must know about the text."""
    notes = [f"RankLib knows features by their numbers, here 1 to {max(ids)}, in the order of your data"]
    trees = parts.list_trees()
    if any((tree.missing_left != (tree.columns["threshold"] >= 0.0)).any() for tree in trees):
        notes.append(
            "RankLib takes a missing value as 0, and this model does not: it scores documents with missing values "
            "differently; export to solr, elastic or onnx instead, or fill them with 0 and train again"
        )
    return notes
