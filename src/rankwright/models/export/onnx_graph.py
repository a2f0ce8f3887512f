"""ONNX graphs under construction: nodes, constants, and the file that they become."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.optional_imports import require
from rankwright.basics.version import __version__

# The oldest versions that have all operators: runtimes read models up to their own versions.
_OPSET, _ML_OPSET, _IR_VERSION = 13, 3, 8
_ML = "ai.onnx.ml"


class OnnxGraph:
    """A list of ONNX nodes and constants that compute a score in double precision from features in single precision.

    Parameters
    ----------
    prefix : str
        The beginning of the names of all values; a loop's body needs one of its own.

    Examples
    --------
    >>> graph = OnnxGraph()
    >>> graph.add_node("Add", "a", graph.add_constant(np.ones(1)))
    'value2'
    """

    def __init__(self, prefix: str = "value") -> None:
        self._onnx = require("onnx")
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._n_values = 0

    def add_node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output, and return the name of that output."""
        output = self._make_name()
        domain = _ML if operator.startswith("TreeEnsemble") else ""
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def add_constant(self, values: Floats) -> str:
        """Add an array, and return its name."""
        name = self._make_name()
        self._constants.append(self.make_tensor(values, name))
        return name

    def cast(self, value: str, dtype: type[np.floating[Any]]) -> str:
        """Return the name of a value in another precision."""
        return self.add_node("Cast", value, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def make_tensor(self, values: Floats, name: str) -> Any:
        """Return an array as an ONNX tensor, for attributes."""
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)

    def make_body(self, inputs: list[str], output: str) -> Any:
        """Return the nodes as the body of a loop over double-precision values of unknown shape."""
        helper, double = self._onnx.helper, self._onnx.TensorProto.DOUBLE
        infos = [helper.make_tensor_value_info(name, double, None) for name in (*inputs, output)]
        return helper.make_graph(self._nodes, "body", infos[:-1], infos[-1:], self._constants)

    def serialise(
        self, name: str, features: str, n_features: int, total: str, score: str, notes: Mapping[str, Any]
    ) -> bytes:
        """Return the ONNX file of a model.

        Its input ``features`` has shape (N, n_features); its output ``score``, the value ``total``, has shape (N, 1).
        """
        helper, single = self._onnx.helper, self._onnx.TensorProto.FLOAT
        self._nodes.append(helper.make_node("Cast", [total], [score], to=single))
        inputs = [helper.make_tensor_value_info(features, single, ["N", n_features])]
        outputs = [helper.make_tensor_value_info(score, single, ["N", 1])]
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_ML, _ML_OPSET)]
        own = {"producer_name": "rankwright", "producer_version": __version__, "ir_version": _IR_VERSION}
        model = helper.make_model(graph, opset_imports=opsets, **own)
        helper.set_model_props(model, {key: json.dumps(value) for key, value in notes.items()})
        content: bytes = model.SerializeToString(deterministic=True)
        return content

    def _make_name(self) -> str:
        """Return a new name for a value."""
        self._n_values += 1
        return f"{self._prefix}{self._n_values}"
