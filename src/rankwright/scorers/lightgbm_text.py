"""LightGBM's model text of a sum of regression trees: parsed, validated and written.

Model text is validated and re-serialised before LightGBM sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.kernels.scorers.tree_scores import TreeLayout, TreeNodes
from rankwright.scorers.lightgbm_trees import (
    CATEGORICAL,
    COLUMNS,
    Tree,
    make_leaf,
    parse_tree,
)
from rankwright.scorers.tree_layout import arrange_trees

_HEADER = ("max_feature_idx", "feature_names", "monotone_constraints", "feature_infos")
_NAME = re.compile(r'[^\s",:\[\]{}=]+')
_INFO = re.compile(r"none|\[[^\s\[\]=]+:[^\s\[\]=]+\]|-?[0-9]+(:-?[0-9]+)*")


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
        """Return the trees of LightGBM's text, or raise unless they are valid and add up to one score."""
        body, *rest = re.split(r"^end of trees$", text, maxsplit=1, flags=re.MULTILINE)
        head, *blocks = re.split(r"^Tree=[0-9]+$", body, flags=re.MULTILINE)
        header = _parse_lines(head)
        if not head.startswith("tree\n") or header.get("version") not in ("v3", "v4"):
            raise InputError("not the text of a LightGBM model, which begins with 'tree' and a version")
        for name in ("num_class", "num_tree_per_iteration"):
            if header.get(name) != "1":
                raise InputError(f"{name}={quote(header.get(name))} in LightGBM's text; expected one score a document")
        if not blocks or not rest:
            raise InputError("LightGBM's text ends before its trees do; save the model again")
        kept = _check_header({name: header[name] for name in _HEADER if name in header})
        n_features = int(kept["max_feature_idx"]) + 1
        trees = [parse_tree(_parse_lines(block), n_features) for block in blocks]
        if "\naverage_output\n" in head:  # a random forest, whose score is the mean of its trees
            trees = [tree.scale(1.0 / len(trees)) for tree in trees]
        return cls(kept, tuple(trees))

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], n_features: int) -> Forest:
        """Return these trees, at least one, as a forest of features without names."""
        header = {
            "max_feature_idx": str(n_features - 1),
            "feature_names": " ".join(f"Column_{i}" for i in range(n_features)),
            "feature_infos": " ".join(["none"] * n_features),
        }
        return cls(header, tuple(trees))

    @classmethod
    def constant(cls, n_features: int, value: float = 0.0) -> Forest:
        """Return a forest of one leaf with this value."""
        return cls.from_trees([make_leaf(value)], n_features)

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

    @property
    def categorical(self) -> frozenset[int]:
        """The features that a node splits by category."""
        found = [tree.columns["split_feature"][tree.categorical].tolist() for tree in self.trees]
        return frozenset(feature for features in found for feature in features)

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

    def with_names(self, names: Sequence[str]) -> Forest:
        """Return the trees with these names of features, which LightGBM must accept."""
        return replace(self, header={**self.header, "feature_names": " ".join(names)})

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
        joined = {name: np.concatenate([tree.columns[name] for tree in self.trees]) for name in COLUMNS}
        kind, threshold = joined["decision_type"], joined["threshold"]
        categorical = (kind & CATEGORICAL).astype(bool)
        sets = [words for tree in self.trees for words in tree.category_sets] if categorical.any() else []
        return TreeNodes(
            joined["split_feature"].astype(np.int32),
            np.where(categorical, np.nan, threshold),
            np.concatenate([tree.missing_left for tree in self.trees]),
            joined["left_child"].astype(np.int32),
            joined["right_child"].astype(np.int32),
            _compute_starts([len(tree.values) - 1 for tree in self.trees]),
            _compute_starts([len(tree.values) for tree in self.trees]),
            joined["leaf_value"],
            _compute_starts([len(words) for words in sets]) if sets else np.empty(0, np.int64),
            np.concatenate([np.empty(0, np.int64), *sets]).astype(np.uint32),
        )

    @cached_property
    def layout(self) -> TreeLayout:
        """The nodes of all trees arranged for scoring many documents at a time."""
        return arrange_trees(self.nodes, self.n_features)


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
