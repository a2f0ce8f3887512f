"""onnxruntime itself."""

from __future__ import annotations

import json

import onnxruntime


def score(path, X, names):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    assert json.loads(session.get_modelmeta().custom_metadata_map["feature_names"]) == list(names)
    (scores,) = session.run(["score"], {"features": X})
    assert scores.shape == (len(X), 1)
    return scores[:, 0]
