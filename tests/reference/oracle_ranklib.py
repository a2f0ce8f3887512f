"""RankLib's models, computed as its Java classes do: a missing value is 0, and trees are added in float32."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from rankwright.models.export.to_ranklib import find_ids


def score(path, X, names):
    """Return RankLib's scores of documents; the columns are found by the ids that the export gave to the names."""
    values = np.nan_to_num(np.asarray(X, np.float32), nan=0.0)
    columns = {number: np.ascontiguousarray(values[:, i]) for i, number in enumerate(find_ids(names))}
    first, *lines = Path(path).read_text("ascii").split("\n")
    form = first.removeprefix("## ")
    own = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if form in ("MART", "LambdaMART", "Random Forests"):
        sums = [_add_trees(text, columns, len(X)) for text in re.findall("<ensemble>.*?</ensemble>", "".join(own))]
        return sum(total.astype(np.float64) for total in sums) / len(sums)
    if form in ("RankNet", "LambdaRank", "ListNet"):
        return _run_network(own, columns, len(X))
    terms = [term.split(":") for term in own[0].split(" ")]
    total = np.zeros(len(X))
    for number, *rest in terms:
        if form == "RankBoost":
            total += float(rest[1]) * (columns[int(number)].astype(np.float64) > float(rest[0]))
        elif int(number):
            total += float(rest[0]) * columns[int(number)].astype(np.float64)
        else:
            total += float(rest[0])  # the intercept of Linear Regression, which is written first
    return total


def _add_trees(text, columns, n):
    """Return the sums of trees, rounded to float32 after each."""
    total = np.zeros(n, np.float32)
    for tree in ElementTree.fromstring(text).iter("tree"):
        outputs = np.zeros(n)
        _walk(tree[0], np.arange(n), columns, outputs)
        total = (total + outputs * np.float64(np.float32(tree.get("weight")))).astype(np.float32)
    return total


def _walk(split, rows, columns, outputs):
    if split[0].tag == "output":
        outputs[rows] = np.float32(split[0].text)
        return
    is_left = columns[int(split[0].text)].take(rows) <= np.float32(split[1].text)
    for child, own in ((split[2], rows.compress(is_left)), (split[3], rows.compress(~is_left))):
        if len(own):
            _walk(child, own, columns, outputs)


def _run_network(lines, columns, n):
    """Return the output of a network with a sigmoid in every neuron; the bias is the last input neuron."""
    ids, n_hidden = [int(word) for word in lines[0].split()], int(lines[1])
    sizes = [len(ids), *(int(line) for line in lines[2 : 2 + n_hidden]), 1]
    weights = {}
    for line in lines[2 + n_hidden :]:
        layer, neuron, *own = line.split()
        weights[int(layer), int(neuron)] = [float(word) for word in own]
    values = [columns[number].astype(np.float64) for number in ids]
    at = 0
    for layer, size in enumerate(sizes[1:]):
        totals = [np.zeros(n) for _ in range(size)]
        for neuron, x in enumerate(values):
            for j, weight in enumerate(weights[layer, neuron]):
                totals[j] = totals[j] + x * weight
        bias = weights[0, len(ids)][at : at + size]
        values, at = [1.0 / (1.0 + np.exp(-(t + b))) for t, b in zip(totals, bias, strict=True)], at + size
    return values[0]
