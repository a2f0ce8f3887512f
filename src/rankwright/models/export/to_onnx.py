"""ONNX, which onnxruntime and most inference servers run: every kind of scorer, and sums of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.models.export.onnx_graph import OnnxGraph
from rankwright.models.export.onnx_trees import list_tree_attributes
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers import KernelSum, Network
from rankwright.scorers.lightgbm_trees import Tree

INPUT, OUTPUT = "features", "score"


class OnnxTarget(Target):
    """ONNX: features in single precision go in, all sums are made in double precision, a float32 score comes out."""

    name: ClassVar[str] = "onnx"
    title: ClassVar[str] = "ONNX"
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees", "categories", "network", "kernel sum"})
    mixes: ClassVar[bool] = True

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the ONNX file; names of features and values of categories are in its metadata."""
        shape = f"(N, {request.parts.n_features})"
        notes = [f"the input {INPUT} is float32 of shape {shape}, NaN where missing; the output is {OUTPUT}, (N, 1)"]
        if request.parts.kinds & {"categories"}:
            notes.append("a feature with categories takes the place of its value in the metadata categories, from 0")
        return ExportedFiles(write_onnx(request), notes=notes)


def write_onnx(request: ExportRequest) -> bytes:
    """Return a model as an ONNX file with the input ``features`` and the output ``score``."""
    graph, parts, trees = OnnxGraph(), request.parts, request.parts.list_trees()
    is_constant = parts.coef is None and not (parts.networks or parts.kernel_sums or trees)
    coef = np.zeros(parts.n_features) if is_constant else parts.coef
    terms = []
    if coef is not None or parts.networks or parts.kernel_sums:
        x = _add_complete_features(graph)
        terms += [] if coef is None else [graph.add_node("MatMul", x, graph.add_constant(coef[:, None]))]
        terms += [_add_weight(graph, _add_network(graph, x, network), weight) for weight, network in parts.networks]
        terms += [_add_weight(graph, _add_kernel_sum(graph, x, own), weight) for weight, own in parts.kernel_sums]
    terms += [_add_trees(graph, trees)] if trees else []
    total = graph.add_constant(np.array([[parts.intercept]]))
    for term in terms:
        total = graph.add_node("Add", term, total)
    notes = {"feature_names": request.names, "categories": request.categories}
    known = {name: value for name, value in notes.items() if value is not None}
    return graph.serialise(request.model_name, INPUT, parts.n_features, total, OUTPUT, known)


def _add_complete_features(graph: OnnxGraph) -> str:
    """Add the features in double precision with 0 in place of missing values; return their name."""
    zero = graph.add_constant(np.zeros(1, np.float32))
    return graph.cast(graph.add_node("Where", graph.add_node("IsNaN", INPUT), zero, INPUT), np.float64)


def _add_weight(graph: OnnxGraph, term: str, weight: float) -> str:
    """Add the product of a term and its weight; return its name."""
    return term if weight == 1.0 else graph.add_node("Mul", term, graph.add_constant(np.array([weight])))


def _add_scaling(graph: OnnxGraph, x: str, mean: Floats, factor: Floats) -> str:
    """Add (x - mean) factor; return its name."""
    return graph.add_node("Mul", graph.add_node("Sub", x, graph.add_constant(mean)), graph.add_constant(factor))


def _add_trees(graph: OnnxGraph, trees: list[Tree]) -> str:
    """Add the sum of trees; return its name.

    With thresholds and values in double precision, runtimes compare and add in double precision.
    """
    attributes = {
        name: graph.make_tensor(values, name) if name.endswith("tensor") else values
        for name, values in list_tree_attributes(trees).items()
    }
    x = graph.cast(INPUT, np.float64)
    return graph.cast(graph.add_node("TreeEnsembleRegressor", x, n_targets=1, **attributes), np.float64)


def _add_network(graph: OnnxGraph, x: str, network: Network) -> str:
    """Add the layers of a network; return the name of its output."""
    value = _add_scaling(graph, x, network.mean, network.factor)
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        value = _add_activation(graph, value, network.activation) if layer else value
        product = graph.add_node("MatMul", value, graph.add_constant(weight.astype(np.float64)))
        value = graph.add_node("Add", product, graph.add_constant(bias.astype(np.float64)))
    return value


def _add_activation(graph: OnnxGraph, value: str, activation: str) -> str:
    """Add an activation; return its name."""
    if activation in ("relu", "tanh"):
        return graph.add_node(activation.capitalize(), value)
    if activation == "gelu":
        half = graph.add_node("Mul", value, graph.add_constant(np.array([np.sqrt(0.5)])))
        erf = graph.cast(
            graph.add_node("Erf", graph.cast(half, np.float32)), np.float64
        )  # onnxruntime has no wider one
        one, part = graph.add_constant(np.ones(1)), graph.add_constant(np.full(1, 0.5))
        return graph.add_node("Mul", value, graph.add_node("Mul", graph.add_node("Add", erf, one), part))
    sigmoid = graph.add_node("Sigmoid", value)
    return sigmoid if activation == "sigmoid" else graph.add_node("Mul", value, sigmoid)


def _add_kernel_sum(graph: OnnxGraph, x: str, scorer: KernelSum) -> str:
    """Add the kernels of a scaled document and each landmark, and their weighted sum; return its name."""
    kernel, scaled = scorer.kernel, _add_scaling(graph, x, scorer.mean, scorer.factor)
    if kernel.name in ("rbf", "laplacian"):
        add_distances = _add_squared_distances if kernel.name == "rbf" else _add_absolute_distances
        scale = graph.add_constant(np.array([-kernel.gamma]))
        values = graph.add_node("Exp", graph.add_node("Mul", add_distances(graph, scaled, scorer.columns), scale))
    else:
        values = graph.add_node("MatMul", scaled, graph.add_constant(scorer.columns))
    if kernel.name in ("poly", "sigmoid"):
        product = graph.add_node("Mul", values, graph.add_constant(np.array([kernel.gamma])))
        values = graph.add_node("Add", product, graph.add_constant(np.array([kernel.coef0])))
    if kernel.name == "poly":
        values = graph.add_node("Pow", values, graph.add_constant(np.array([float(kernel.degree)])))
    elif kernel.name == "sigmoid":
        values = graph.add_node("Tanh", values)
    total = graph.add_node("MatMul", values, graph.add_constant(scorer.dual[:, None]))
    return graph.add_node("Add", total, graph.add_constant(np.array([scorer.intercept])))


def _add_squared_distances(graph: OnnxGraph, scaled: str, columns: Floats) -> str:
    """Add |x - z|^2 = |x|^2 + |z|^2 - 2 x'z of each row and landmark, of which a matrix product is the costly part.

    Scaled features are small enough for the difference to be right to single precision.
    """
    axis = graph.add_constant(np.array([1], np.int64))
    squares = graph.add_node("ReduceSum", graph.add_node("Mul", scaled, scaled), axis, keepdims=1)
    products = graph.add_node("MatMul", scaled, graph.add_constant(-2.0 * columns))
    own = graph.add_node("Add", squares, graph.add_constant((columns**2).sum(axis=0)))
    return graph.add_node("Max", graph.add_node("Add", own, products), graph.add_constant(np.zeros(1)))


def _add_absolute_distances(graph: OnnxGraph, scaled: str, columns: Floats) -> str:
    """Add the sum of |x - z| over the features of each row and landmark, by a loop over the features.

    The loop needs memory for one number per row and landmark only.
    """
    body = OnnxGraph("step")
    row = body.add_node("Unsqueeze", "x", body.add_constant(np.array([1], np.int64)))
    total = body.add_node("Add", "total", body.add_node("Abs", body.add_node("Sub", row, "z")))
    start = graph.add_node("MatMul", scaled, graph.add_constant(np.zeros_like(columns)))
    loop = body.make_body(["total", "x", "z"], total)
    own = {"body": loop, "num_scan_inputs": 2, "scan_input_axes": [1, 0]}
    return graph.add_node("Scan", start, scaled, graph.add_constant(columns), **own)
