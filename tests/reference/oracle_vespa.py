"""An interpreter of what Vespa does with a rank profile and the model that it uses: a JSON of trees, or ONNX.

Of ranking expressions it knows sums, products, numbers, features, ``if``, ``isNan``, ``lightgbm(...)`` and
``sum(onnx(...).score)``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from tests.reference import oracle_onnx


def score(path, X, names, *, narrow=False):
    """``narrow`` is what a content node does with large forests: thresholds and leaves are float32."""
    profile = Path(f"{path}.profile.txt").read_text()
    (expression,) = re.findall(r"first-phase \{\s*expression \{(.*?)\}\s*\}", profile, flags=re.DOTALL)
    (features,) = re.findall(r"match-features \{\n(.*?)\}", profile, flags=re.DOTALL)
    assert features.split() == list(names)
    columns = dict(zip(names, X.astype(np.float64).T, strict=True))
    return Expression(expression, columns, path, narrow).evaluate()


class Expression:
    """A ranking expression, parsed from left to right; products before sums."""

    def __init__(self, text, columns, path, narrow):
        names = sorted(map(re.escape, columns), key=len, reverse=True)
        model = r'lightgbm\("[^"]+"\)|sum\(onnx\(\w+\)\.score\)'
        number = r"\d+\.?\d*(?:[eE][+-]?\d+)?"
        self.tokens = re.findall(rf"\s*({model}|if|isNan|{'|'.join(names)}|{number}|[-+*(),])", text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text)
        self.columns, self.path, self.narrow, self.at = columns, path, narrow, 0

    def evaluate(self):
        found = self.add_up()
        assert self.at == len(self.tokens)
        return np.broadcast_to(found, len(next(iter(self.columns.values())))).copy()

    def take(self, expected=None):
        token = self.tokens[self.at]
        assert expected in (None, token)
        self.at += 1
        return token

    def is_next(self, *tokens):
        return self.at < len(self.tokens) and self.tokens[self.at] in tokens

    def add_up(self):
        total = self.multiply()
        while self.is_next("+"):
            self.take()
            total = total + self.multiply()
        return total

    def multiply(self):
        total = self.read_value()
        while self.is_next("*"):
            self.take()
            total = total * self.read_value()
        return total

    def read_value(self):
        token = self.take()
        if token == "-":
            return -self.read_value()
        if token == "if":
            condition, yes, no = self.read_arguments()
            return np.where(condition, yes, no)
        if token == "isNan":
            return np.isnan(self.read_arguments()[0])
        if token.startswith("lightgbm"):
            return score_trees(json.loads(Path(self.path).read_text()), self.columns, self.narrow)
        if token.startswith("sum(onnx"):
            (listed,) = re.findall(r"\[\[(.*?)\]\]", Path(f"{self.path}.profile.txt").read_text(), flags=re.DOTALL)
            order = [name.strip() for name in re.split(r",\n", listed)]
            tensor = np.stack([self.columns[name] for name in order], axis=1).astype(np.float32)
            return oracle_onnx.score(self.path, tensor, order).astype(np.float64)
        return self.columns[token] if token in self.columns else float(token)

    def read_arguments(self):
        self.take("(")
        found = [self.add_up()]
        while self.is_next(","):
            self.take()
            found.append(self.add_up())
        self.take(")")
        return found


def score_trees(model, columns, narrow):
    """The sum of LightGBM's trees as Vespa's importer reads them: ``x < t``, or ``!(x >= t)`` if missing goes left."""
    names = model["feature_names"]
    assert not model["objective"].startswith(("binary", "cross_entropy", "poisson", "gamma", "tweedie"))
    categorical = [i for i, name in enumerate(names) if model["feature_infos"].get(name, {}).get("values")]
    texts = dict(zip(categorical, model["pandas_categorical"] or [], strict=True))
    total = np.zeros(len(columns[names[0]]))
    for i, info in enumerate(model["tree_info"]):
        root = info["tree_structure"]
        assert "leaf_value" not in root or i == len(model["tree_info"]) - 1, "a constant before a tree"
        pending = [(root, np.arange(len(total)))]
        while pending:
            node, rows = pending.pop()
            if "leaf_value" in node:
                total[rows] += np.float32(node["leaf_value"]) if narrow else node["leaf_value"]
                continue
            x = columns[names[node["split_feature"]]][rows]
            if node["decision_type"] == "==":
                values = texts[node["split_feature"]]
                members = {values[int(number)] for number in node["threshold"].split("||")}
                left = np.array([0 <= v < len(values) and values[int(v)] in members for v in x], dtype=bool)
            else:
                with np.errstate(over="ignore"):  # to infinity
                    t = float(np.float32(node["threshold"])) if narrow else node["threshold"]
                left = ~(x >= t) if node["default_left"] else x < t
            pending += [(node["left_child"], rows[left]), (node["right_child"], rows[~left])]
    return total
