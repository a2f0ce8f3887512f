"""The networks in RankLib's model texts, which have a sigmoid in every neuron, also in the last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.imports.ranklib_trees import Token, parse_doubles, parse_feature_id
from rankwright.scorers import Network

_LARGEST = 1e300  # of the absolute weights, so that sums of two are finite
_MAX_WEIGHTS = 10_000_000  # of the first layer, which has weights for features that the text does not use


def parse_network(lines: Sequence[Token]) -> tuple[Callable[[int], Network], int]:
    """Return what makes the network for a number of features, and the largest feature id.

    The first line has the ids of the inputs, the second the number of hidden layers, the next ones their sizes. All
    other lines have the layer, the neuron, and the weights of its connections to the next layer. The last neuron of
    the inputs is the bias, which is connected to all neurons of all layers.
    """
    ids = [parse_feature_id(Token(word, lines[0].line)) for word in lines[0].text.split(" ")] if lines else []
    n_hidden = _parse_count(lines, 1, least=0)
    if n_hidden > len(lines):
        raise InputError(f"line {lines[1].line}: {n_hidden} hidden layers; the text ends before their sizes do")
    sizes = [len(ids), *(_parse_count(lines, 2 + k, least=1) for k in range(n_hidden)), 1]
    rows = _parse_rows(lines[2 + n_hidden :], sizes, lines[-1].line)
    weights: list[Floats] = [np.stack(rows[k][: sizes[k]]) for k in range(len(sizes) - 1)]
    biases = np.split(rows[0][-1], np.cumsum(sizes[1:])[:-1])

    def make_network(n_features: int) -> Network:
        """Return the network; its last layer passes on the sigmoid of the one before."""
        if n_features * sizes[1] > _MAX_WEIGHTS:
            raise InputError(f"a network of {n_features} features and {sizes[1]} neurons; expected a smaller one")
        first = np.zeros((n_features, sizes[1]))
        np.add.at(first, np.array(ids) - 1, weights[0])  # an id may occur twice
        layers = [first, *weights[1:], np.ones((1, 1))]
        return Network(
            *(np.zeros(n_features), np.ones(n_features), layers, [*biases, np.zeros(1)], "sigmoid"),
            precision="float64",
        )

    return make_network, max(ids)


def _parse_count(lines: Sequence[Token], at: int, least: int) -> int:
    """Return the whole number that is a line of its own."""
    if at >= len(lines):
        where = lines[-1].line if lines else 1
        raise InputError(f"line {where}: the text ends; expected the layers of a network")
    text, line = lines[at].text, lines[at].line
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) < least:
        raise InputError(f"line {line}: {quote(text)} in place of a number of layers or neurons")
    return int(text)


def _parse_rows(lines: Sequence[Token], sizes: Sequence[int], last_line: int) -> list[list[Floats]]:
    """Return for each layer the weights of each neuron's connections; those of the bias are the last of layer 0."""
    expected = [(layer, neuron) for layer, size in enumerate(sizes[:-1]) for neuron in range(size + (layer == 0))]
    if len(lines) != len(expected):
        raise InputError(f"line {last_line}: {len(lines)} lines of weights; expected {len(expected)}, one for a neuron")
    places, found = set(expected), dict[tuple[int, int], Floats]()
    for line in lines:
        words = line.text.split(" ")
        place = tuple(int(word) if word.isascii() and word.isdigit() and len(word) < 10 else -1 for word in words[:2])
        n_links = sum(sizes[1:]) if place == (0, sizes[0]) else sizes[min(place[0], len(sizes) - 2) + 1]
        if place in found or len(place) < 2 or place not in places or len(words) != n_links + 2:
            raise InputError(
                f"line {line.line}: {quote(' '.join(words[:3]))}; expected a layer, a neuron, and a weight for each of "
                "its connections, once"
            )
        weights = parse_doubles([Token(word, line.line) for word in words[2:]])
        if not (np.abs(weights) < _LARGEST).all():
            raise InputError(f"line {line.line}: a weight beyond {_LARGEST}; expected smaller ones")
        found[(place[0], place[1])] = weights
    rows: list[list[Floats]] = [[] for _ in sizes[:-1]]
    for layer, neuron in expected:
        rows[layer].append(found[(layer, neuron)])
    return rows
