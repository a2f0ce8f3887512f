"""Trees of LightGBM's model text: parsed and validated, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import parse_decimals

WHOLE_COLUMNS = (
    *("split_feature", "decision_type", "left_child", "right_child", "leaf_count", "internal_count"),
    *("cat_boundaries", "cat_threshold"),
)
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
COLUMNS = (
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
_OF_CATEGORIES = ("cat_boundaries", "cat_threshold")  # where the set of each split begins, and the words of all sets
CATEGORICAL, DEFAULT_LEFT, MISSING_ZERO, MISSING_NAN = 1, 2, 4, 8  # bits of decision_type
MAX_LEAVES = 1 << 16  # of a tree: leaves are numbered with two bytes


@dataclass(frozen=True, eq=False)
class Tree:
    """A regression tree of LightGBM: arrays of its nodes and leaves, by their names in LightGBM's text.

    Parameters
    ----------
    columns : mapping
        The arrays by name, with a number for each node or for each leaf. A tree that splits by category also has
        ``cat_boundaries`` and ``cat_threshold``, and as the threshold of such a split its place among them.
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

    @classmethod
    def from_nodes(
        cls, feature: Ints, threshold: Floats, missing_left: NDArray[np.bool_], left: Ints, right: Ints, value: Floats
    ) -> Tree:
        """Return a tree of splits that send ``x <= threshold`` left, and a missing value left or right as given.

        The root is node 0, and a child has a larger number than its parent; ``~leaf`` is a child that is a leaf.
        Gains and counts of documents, which scores do not need, are 0.
        """
        n = len(threshold)
        columns: dict[str, Any] = {
            "split_feature": feature.astype(np.int64),
            "threshold": threshold.astype(np.float64),
            "decision_type": MISSING_NAN | np.where(missing_left, DEFAULT_LEFT, 0),
            "left_child": left.astype(np.int64),
            "right_child": right.astype(np.int64),
            "leaf_value": value.astype(np.float64),
        }
        for name in COLUMNS:
            kind = np.int64 if name in WHOLE_COLUMNS else np.float64
            columns.setdefault(name, np.zeros(n + 1 if name in _OF_LEAVES else n, kind))
        return cls({name: columns[name] for name in COLUMNS})

    @property
    def missing_left(self) -> NDArray[np.bool_]:
        """Whether each node sends a missing value left; a split by category never does."""
        kind = self.columns["decision_type"]
        # LightGBM treats a missing value as 0 where it saw none in training
        sides = np.where(kind & MISSING_NAN, kind & DEFAULT_LEFT, self.columns["threshold"] >= 0.0).astype(bool)
        found: NDArray[np.bool_] = sides & ~self.categorical
        return found

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

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Whether each node splits by category."""
        found: NDArray[np.bool_] = (self.columns["decision_type"] & CATEGORICAL).astype(bool)
        return found

    @property
    def category_sets(self) -> list[Ints]:
        """The set of categories that go left, for each node, as words of 32 bits; no words where it has none."""
        sets: list[Ints] = [np.empty(0, np.int64)] * self.n_splits
        for node in np.flatnonzero(self.categorical).tolist():
            at = int(self.columns["threshold"][node])
            start, stop = self.columns["cat_boundaries"][at : at + 2].tolist()
            sets[node] = self.columns["cat_threshold"][start:stop]
        return sets

    def scale(self, weight: float) -> Tree:
        """Return the tree with its values multiplied."""
        changed = {name: self.columns[name] * weight for name in ("leaf_value", "internal_value")}
        return Tree({**self.columns, **changed}, self.shrinkage * weight)

    def shift(self, value: float) -> Tree:
        """Return the tree with a number added to its values."""
        changed = {name: self.columns[name] + value for name in ("leaf_value", "internal_value")}
        return Tree({**self.columns, **changed}, self.shrinkage)

    def text(self) -> str:
        """Return the tree as LightGBM writes it, without its number; values have enough digits to be exact."""
        lines = [f"num_leaves={len(self.values)}", f"num_cat={int(self.categorical.sum())}"]
        names = [*COLUMNS, *(name for name in _OF_CATEGORIES if name in self.columns)]
        lines += [f"{name}={' '.join(map(repr, self.columns[name].tolist()))}" for name in names]
        return "\n".join([*lines, "is_linear=0", f"shrinkage={self.shrinkage!r}", "\n\n"])


def make_leaf(value: float) -> Tree:
    """Return a tree without splits, whose value is the same for every document."""
    none, empty = np.empty(0, np.int64), np.empty(0)
    leaf = Tree.from_nodes(none, empty, np.empty(0, bool), none, none, np.array([value]))
    return Tree({**leaf.columns, "leaf_count": np.ones(1, np.int64)})


def parse_tree(lines: dict[str, str], n_features: int) -> Tree:
    """Return the tree that these entries of LightGBM's text describe; raise InputError unless they are valid."""
    if lines.get("is_linear", "0") != "0":
        raise InputError(
            "a tree with linear leaves in LightGBM's text; expected leaves with one value: train it with "
            "linear_tree=false"
        )
    columns = {name: _parse_numbers(lines.get(name, ""), name) for name in COLUMNS}
    shrinkage = _parse_numbers(lines.get("shrinkage", "1"), "shrinkage")
    n = len(columns["leaf_value"])
    for name, column in columns.items():
        if name not in _OF_LEAVES and len(column) != n - 1:
            raise InputError(f"{len(column)} numbers as {name} in LightGBM's text; expected {n - 1}")
    if n > MAX_LEAVES or lines.get("num_leaves") != str(n) or len(shrinkage) != 1:
        raise InputError(f"num_leaves={quote(lines.get('num_leaves'))} of a tree in LightGBM's text; found {n}")
    columns |= {name: _fill_leaves(columns[name], n) for name in ("leaf_weight", "leaf_count")}
    _check_shape(columns, n, n_features)
    columns["decision_type"] = _replace_missing_zero(columns["decision_type"], columns["threshold"])
    if lines.get("num_cat") != "0":
        columns |= {name: _parse_numbers(lines.get(name, ""), name) for name in _OF_CATEGORIES}
    _check_categories(columns, lines.get("num_cat"))
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
        most = np.uint32 if name == "cat_threshold" else np.int32
        found = _parse_integers(words, most) if name in WHOLE_COLUMNS else _parse_floats(words, name)
    except (ValueError, OverflowError):
        raise InputError(f"{name}={quote(text)} in LightGBM's text; expected numbers") from None
    known = ~np.isnan(found) & (found > -np.inf) if name == "threshold" else np.isfinite(found)
    if not known.all():  # a threshold may be infinite: it splits missing values from all others
        raise InputError(f"{name} in LightGBM's text has a number that is not finite")
    return found


def _parse_integers(words: list[str], kind: type[np.integer[Any]]) -> Ints:
    """Parse whole numbers into an array; raise unless they are ASCII digits that fit into this type."""
    if "".join(words).encode("utf-8", errors="surrogatepass").translate(None, b"0123456789-"):
        raise ValueError("no whole number")
    return np.array(list(map(int, words)), dtype=kind).astype(np.int64)


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
    if (columns["decision_type"] & ~(CATEGORICAL | DEFAULT_LEFT | MISSING_ZERO | MISSING_NAN)).any():
        raise InputError("decision_type in LightGBM's text has a bit without a meaning")


def _replace_missing_zero(kind: Ints, threshold: Floats) -> Ints:
    """Return kinds of splits for NaN in place of those that take 0 for missing.

    Raise InputError if such a split sends 0, and with it a missing value, to the side where its threshold does not.
    """
    takes_zero = (kind & MISSING_ZERO).astype(bool) & ~(kind & CATEGORICAL).astype(bool)
    if (takes_zero & ((kind & DEFAULT_LEFT).astype(bool) != (threshold >= 0.0))).any():
        raise InputError(
            "a split in LightGBM's text that takes 0 for missing and sends it to the other side of its threshold; "
            "expected NaN for missing values: train it with zero_as_missing=false"
        )
    replaced: Ints = np.where(takes_zero, (kind & ~MISSING_ZERO) | MISSING_NAN, kind & ~MISSING_ZERO)
    return replaced


def _check_categories(columns: Mapping[str, Any], num_cat: str | None) -> None:
    """Raise InputError unless each split by category has a set of categories of its own."""
    own = columns["threshold"][(columns["decision_type"] & CATEGORICAL).astype(bool)]
    if num_cat != str(len(own)):
        raise InputError(f"num_cat={quote(num_cat)} in LightGBM's text; found {len(own)} splits by category")
    if not len(own):
        return
    starts, words = columns["cat_boundaries"], columns["cat_threshold"]
    is_complete = len(starts) == len(own) + 1 and np.array_equal(np.sort(own), np.arange(len(own)))
    if not is_complete or starts[0] != 0 or starts[-1] != len(words) or (np.diff(starts) < 1).any():
        raise InputError("cat_boundaries in LightGBM's text; expected a set of categories for each split by category")
