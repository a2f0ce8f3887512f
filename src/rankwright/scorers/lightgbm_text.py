"""LightGBM's model text of a sum of regression trees: parsed, validated and written.

Model text is validated and re-serialised before LightGBM sees it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import parse_decimals
from rankwright.kernels.scorers.tree_scores import TreeNodes

_HEADER = ("max_feature_idx", "feature_names", "monotone_constraints", "feature_infos")
_WHOLE = ("split_feature", "decision_type", "left_child", "right_child", "leaf_count", "internal_count")
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_ORDER = (
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "leaf_weight",
    "leaf_count",
    "internal_value",
    "internal_weight",
    "internal_count",
)
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_ZERO, _MISSING_NAN = 1, 2, 4, 8
_NAME = re.compile(r'[^\s",:\[\]{}=]+')
_INFO = re.compile(r"none|\[[^\s\[\]=]+:[^\s\[\]=]+\]")
MAX_LEAVES = 1 << 16  # of a tree: leaves are numbered with two bytes


@dataclass(frozen=True, eq=False)
class Tree:
    """A regression tree of LightGBM: arrays of its nodes and leaves, by their names in LightGBM's text.

    Parameters
    ----------
    columns : mapping
        The arrays by name, with a number for each node or for each leaf.
    shrinkage : float
        The factor by which the values were multiplied after they were fitted.
    """

    columns: Mapping[str, Any]
    shrinkage: float = 1.0

    @property
    def values(self) -> Floats:
        """The value of each leaf."""
        values: Floats = self.columns["leaf_value"]
        return values

    @property
    def n_splits(self) -> int:
        """The number of splits; 0 for a single leaf."""
        return len(self.values) - 1

    @property
    def depth(self) -> int:
        """The largest number of splits on the way to a leaf."""
        below = np.ones(self.n_splits, dtype=np.int64)  # splits from the root to each node, with its own
        for node, children in enumerate(zip(self.columns["left_child"].tolist(), self.columns["right_child"].tolist())):
            for child in children:
                if child >= 0:
                    below[child] = below[node] + 1
        return int(below.max(initial=0))

    def scale(self, weight: float) -> Tree:
        """Return the tree with its values multiplied."""
        changed = {name: self.columns[name] * weight for name in ("leaf_value", "internal_value")}
        return Tree({**self.columns, **changed}, self.shrinkage * weight)

    def text(self) -> str:
        """Return the tree as LightGBM writes it, without its number; values have enough digits to be exact."""
        lines = [f"num_leaves={len(self.values)}", "num_cat=0"]
        lines += [f"{name}={' '.join(map(repr, self.columns[name].tolist()))}" for name in _ORDER]
        return "\n".join([*lines, "is_linear=0", f"shrinkage={self.shrinkage!r}", "\n\n"])


@dataclass(frozen=True, eq=False)
class Forest:
    """A sum of regression trees, as LightGBM's model text describes it.

    Parameters
    ----------
    header : mapping
        The entries about features in the head of LightGBM's text, by name.
    trees : tuple of Tree
        The trees, at least one.
    """

    header: Mapping[str, str]
    trees: tuple[Tree, ...]

    @classmethod
    def from_text(cls, text: str) -> Forest:
        """Return the trees of LightGBM's text, or raise unless they have numeric splits and add up to one score."""
        body, *rest = re.split(r"^end of trees$", text, maxsplit=1, flags=re.MULTILINE)
        head, *blocks = re.split(r"^Tree=[0-9]+$", body, flags=re.MULTILINE)
        header = _parse_lines(head)
        if not head.startswith("tree\n") or header.get("version") not in ("v3", "v4"):
            raise InputError("not the text of a LightGBM model, which begins with 'tree' and a version")
        for name in ("num_class", "num_tree_per_iteration"):
            if header.get(name) != "1":
                raise InputError(f"{name}={quote(header.get(name))} in LightGBM's text; expected one score a document")
        if "\naverage_output" in head:
            raise InputError("LightGBM's text is of a random forest, whose trees are averaged; expected a sum")
        if not blocks or not rest:
            raise InputError("LightGBM's text ends before its trees do")
        kept = _check_header({name: header[name] for name in _HEADER if name in header})
        n_features = int(kept["max_feature_idx"]) + 1
        return cls(kept, tuple(_parse_tree(_parse_lines(block), n_features) for block in blocks))

    @classmethod
    def constant(cls, n_features: int) -> Forest:
        """Return a forest of one leaf with the value 0."""
        header = {
            "max_feature_idx": str(n_features - 1),
            "feature_names": " ".join(f"Column_{i}" for i in range(n_features)),
            "feature_infos": " ".join(["none"] * n_features),
        }
        leaf = {name: np.zeros(1) for name in ("leaf_value", "leaf_weight")} | {"leaf_count": np.ones(1, np.int64)}
        empty = {name: np.empty(0, np.int64 if name in _WHOLE else np.float64) for name in _ORDER if name not in leaf}
        return cls(header, (Tree(leaf | empty),))

    def __len__(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        return f"Forest({len(self)} trees of {self.n_features} features)"

    @property
    def n_features(self) -> int:
        """The number of features that documents must have."""
        return int(self.header["max_feature_idx"]) + 1

    @property
    def is_monotone(self) -> bool:
        """Whether it was trained to be monotone in a feature."""
        return "1" in self.header.get("monotone_constraints", "")

    def take_first(self, n: int) -> Forest:
        """Return the first ``n`` trees."""
        return replace(self, trees=self.trees[:n]) if n > 0 else Forest.constant(self.n_features)

    def append_trees(self, *others: Forest) -> Forest:
        """Return these trees followed by others; monotone constraints stay only where all forests have them."""
        held, header = "monotone_constraints", dict(self.header)
        if any(other.header.get(held) != header.get(held) for other in others):
            header.pop(held, None)
        return Forest(header, self.trees + tuple(tree for other in others for tree in other.trees))

    def with_weights(self, weights: Sequence[float] | Floats) -> Forest:
        """Return the trees with their values multiplied; a negative weight removes monotone constraints."""
        header = dict(self.header)
        if min(weights) < 0.0:
            header.pop("monotone_constraints", None)
        return Forest(header, tuple(t.scale(float(w)) for t, w in zip(self.trees, weights, strict=True)))

    def text(self) -> str:
        """Return the model text that LightGBM reads."""
        trees = [f"Tree={i}\n{tree.text()}" for i, tree in enumerate(self.trees)]
        head = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
        head += [f"{name}={self.header[name]}" for name in _HEADER if name in self.header]
        head.append(f"tree_sizes={' '.join(str(len(tree.encode())) for tree in trees)}")
        return "\n".join([*head, "", "".join(trees) + "end of trees", "", "parameters:", "end of parameters", ""])

    @cached_property
    def nodes(self) -> TreeNodes:
        """The nodes of all trees as arrays for kernels."""
        joined = {name: np.concatenate([tree.columns[name] for tree in self.trees]) for name in _ORDER}
        kind, threshold = joined["decision_type"], joined["threshold"]
        # LightGBM treats a missing value as 0 where it saw none in training
        missing_left = np.where(kind & _MISSING_NAN, kind & _DEFAULT_LEFT, threshold >= 0.0).astype(bool)
        return TreeNodes(
            joined["split_feature"].astype(np.int32),
            threshold,
            missing_left,
            joined["left_child"].astype(np.int32),
            joined["right_child"].astype(np.int32),
            _compute_starts([len(tree.values) - 1 for tree in self.trees]),
            _compute_starts([len(tree.values) for tree in self.trees]),
            joined["leaf_value"],
        )


def are_valid_names(names: Sequence[str]) -> bool:
    """Return whether LightGBM accepts these feature names."""
    distinct = len(set(names)) == len(names)
    return distinct and all(name.isprintable() and _NAME.fullmatch(name) for name in names)


def _compute_starts(sizes: list[int]) -> Ints:
    """Return where each of consecutive blocks of these sizes starts, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _parse_lines(block: str) -> dict[str, str]:
    """Return the values of a text's lines ``name=value``, by name."""
    return {name: value for name, mark, value in (line.partition("=") for line in block.split("\n")) if mark}


def _check_header(header: dict[str, str]) -> dict[str, str]:
    """Return the header; raise InputError unless its entries about features are valid."""
    last = header.get("max_feature_idx", "")
    if not (last.isascii() and last.isdecimal() and len(last) < 8):
        raise InputError(f"max_feature_idx={quote(last)} in LightGBM's text; expected a whole number")
    n = int(last) + 1
    for name, pattern in (("feature_names", _NAME), ("feature_infos", _INFO)):
        words = header.get(name, "").split(" ")
        if len(words) != n or not all(word.isprintable() and pattern.fullmatch(word) for word in words):
            raise InputError(f"{name} in LightGBM's text; expected one for each of {n} features")
    signs = header.get("monotone_constraints")
    if signs is not None and not (len(signs.split(" ")) == n and set(signs.split(" ")) <= {"-1", "0", "1"}):
        raise InputError(f"monotone_constraints={quote(signs)} in LightGBM's text; expected -1, 0 or 1 by feature")
    return header


def _parse_tree(lines: dict[str, str], n_features: int) -> Tree:
    """Return the tree that these entries of LightGBM's text describe; raise InputError unless they are valid."""
    if lines.get("num_cat") != "0" or lines.get("is_linear", "0") != "0":
        raise InputError("a tree with categories or linear leaves in LightGBM's text; expected numeric splits")
    columns = {name: _parse_numbers(lines.get(name, ""), name) for name in _ORDER}
    shrinkage = _parse_numbers(lines.get("shrinkage", "1"), "shrinkage")
    n = len(columns["leaf_value"])
    for name, column in columns.items():
        if name not in _OF_LEAVES and len(column) != n - 1:
            raise InputError(f"{len(column)} numbers as {name} in LightGBM's text; expected {n - 1}")
    if n > MAX_LEAVES or lines.get("num_leaves") != str(n) or len(shrinkage) != 1:
        raise InputError(f"num_leaves={quote(lines.get('num_leaves'))} of a tree in LightGBM's text; found {n}")
    columns |= {name: _fill_leaves(columns[name], n) for name in ("leaf_weight", "leaf_count")}
    _check_shape(columns, n, n_features)
    return Tree(columns, float(shrinkage[0]))


def _fill_leaves(column: Any, n: int) -> Any:
    """Return numbers by leaf, or zeros if the text has no numbers, as for merged models."""
    if len(column) not in (0, n):
        raise InputError(f"{len(column)} numbers of a tree's leaves in LightGBM's text; expected {n}")
    return column if len(column) == n else np.zeros(n, column.dtype)


def _parse_numbers(text: str, name: str) -> Any:
    """Return the numbers of an entry of LightGBM's text as an array; raise InputError unless they are valid."""
    words = [word for word in text.split(" ") if word]
    try:
        found = _parse_integers(words) if name in _WHOLE else _parse_floats(words, name)
    except (ValueError, OverflowError):
        raise InputError(f"{name}={quote(text)} in LightGBM's text; expected numbers") from None
    known = ~np.isnan(found) & (found > -np.inf) if name == "threshold" else np.isfinite(found)
    if not known.all():  # a threshold may be infinite: it splits missing values from all others
        raise InputError(f"{name} in LightGBM's text has a number that is not finite")
    return found


def _parse_integers(words: list[str]) -> Ints:
    """Parse whole numbers into an array; raise unless they are ASCII digits that fit into 32 bits."""
    if "".join(words).encode("utf-8", errors="surrogatepass").translate(None, b"0123456789-"):
        raise ValueError("no whole number")
    return np.array(list(map(int, words)), dtype=np.int32).astype(np.int64)


def _parse_floats(words: list[str], name: str) -> Floats:
    """Parse decimals into an array; thresholds may be infinite."""
    if name == "threshold" and "inf" in words:
        return np.array([np.inf if word == "inf" else parse_decimals([word])[0] for word in words])
    return parse_decimals(words)


def _check_shape(columns: Mapping[str, Any], n: int, n_features: int) -> None:
    """Raise InputError unless the nodes and leaves form one tree and every split is possible."""
    left, right, feature = columns["left_child"], columns["right_child"], columns["split_feature"]
    children = np.concatenate([left, right])
    expected = np.concatenate([np.arange(-n, 0), np.arange(1, max(n - 1, 1))]) if n > 1 else np.empty(0, np.int64)
    parents = np.tile(np.arange(n - 1), 2)
    if not np.array_equal(np.sort(children), expected) or (children[children >= 0] <= parents[children >= 0]).any():
        raise InputError("a tree in LightGBM's text whose nodes do not make a tree")
    if ((feature < 0) | (feature >= n_features)).any():
        raise InputError(f"a split of a feature in LightGBM's text that is not one of {n_features}")
    if any((columns[name] < 0).any() for name in ("leaf_count", "internal_count")):
        raise InputError("a count below 0 in a tree of LightGBM's text")
    if (columns["decision_type"] & ~(_DEFAULT_LEFT | _MISSING_NAN)).any():
        raise InputError("a split in LightGBM's text by category, or with 0 for missing; expected numeric splits")
