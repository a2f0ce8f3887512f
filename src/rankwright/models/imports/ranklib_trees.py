"""The ensembles of trees in RankLib's model texts, parsed as RankLib does: in float32, with missing values as 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import parse_decimals
from rankwright.scorers.lightgbm_trees import MAX_LEAVES, Tree

_TOKEN = re.compile(r"(<(/?[A-Za-z]+)[^<>]*>)|([^<>]+)|([<>])")  # a tag and its name, a text, a mark that is neither
_WEIGHT = re.compile(r"""<tree\s(?:[^<>]*\s)?weight\s*=\s*["']([^"'<>]*)["'][^<>]*>""")


class Token(NamedTuple):
    """A tag, or a text between tags, and its line."""

    text: str
    line: int
    tag: str = ""  # the name of a tag, with a slash if it closes


def parse_ensembles(lines: Sequence[str]) -> list[list[Tree]]:
    """Return the trees of each ensemble of a text; the weight of a tree is its ``shrinkage``, multiplied in."""
    tokens = _TokenReader(lines)
    ensembles = []
    while not tokens.is_at_end:
        tokens.take("ensemble")
        trees = []
        while tokens.peek().tag == "tree":
            trees.append(_parse_tree(tokens))
        tokens.take("/ensemble")
        ensembles.append(trees)
    return ensembles


class _TokenReader:
    """The tokens of a text, read one after the other; what is not expected is an error with its line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._tokens = [*_list_tokens(lines), Token("", len(lines))]
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are read."""
        return self._at == len(self._tokens) - 1

    def peek(self) -> Token:
        """Return the next token; an empty one at the end."""
        return self._tokens[self._at]

    def take(self, expected: str) -> Token:
        """Return the next token, a tag of this name; raise InputError for anything else."""
        found = self._tokens[self._at]
        if found.tag != expected:
            what = f"found {quote(found.text)}" if found.text else "the text ends"
            raise InputError(f"line {found.line}: {what}; expected <{expected}>")
        self._at += 1
        return found

    def take_content(self, tag: str) -> Token:
        """Return the text between an opening and a closing tag."""
        content = Token("", self.take(tag).line)
        if self.peek().text and not self.peek().tag:
            content = self.peek()
            self._at += 1
        self.take(f"/{tag}")
        return content


def _list_tokens(lines: Sequence[str]) -> Iterator[Token]:
    """Yield tags and the texts between them; lines that begin with # are comments."""
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("#"):
            continue
        for tag, name, text, mark in _TOKEN.findall(line):
            if mark:
                raise InputError(f"line {number}: a tag that is broken; expected whole tags, as RankLib writes them")
            if tag:
                yield Token(tag, number, name)
            elif text.strip():
                yield Token(text.strip(), number)


def _parse_tree(tokens: _TokenReader) -> Tree:
    """Return the tree that begins at the next token."""
    opened = tokens.take("tree")
    written = _WEIGHT.fullmatch(opened.text)
    if written is None:
        raise InputError(f"line {opened.line}: a tree without weight; expected <tree id=... weight=...>")
    weight = float(parse_float32([Token(written[1], opened.line)])[0])
    ids: list[int] = []
    thresholds: list[Token] = []
    outputs: list[Token] = []
    children: list[list[int]] = []  # of each node, those that were read: a leaf is ~leaf
    path: list[int] = []  # the nodes on the way to the next split
    while not children or path:
        tokens.take("split")
        if tokens.peek().tag == "feature":
            child = len(children)
            ids.append(parse_feature_id(tokens.take_content("feature")))
            thresholds.append(tokens.take_content("threshold"))
            children.append([])
        else:
            child = ~len(outputs)
            outputs.append(tokens.take_content("output"))
            tokens.take("/split")
        if path:
            children[path[-1]].append(child)
        if child >= 0:
            path.append(child)
        elif not path:
            break
        while path and len(children[path[-1]]) == 2:
            tokens.take("/split")
            path.pop()
    tokens.take("/tree")
    if len(outputs) > MAX_LEAVES:
        raise InputError(f"line {opened.line}: a tree of {len(outputs)} leaves; expected at most {MAX_LEAVES}")
    sides = np.array(children, dtype=np.int64).reshape(-1, 2)
    threshold = parse_float32(thresholds).astype(np.float64)
    values = parse_float32(outputs).astype(np.float64) * weight  # exact: two float32
    features = np.array(ids, dtype=np.int64) - 1
    tree = Tree.from_nodes(features, threshold, threshold >= 0.0, sides[:, 0], sides[:, 1], values)
    return Tree(tree.columns, weight)


def parse_feature_id(token: Token) -> int:
    """Return the id of a feature, counted from 1; raise InputError if it is not one."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}", token.text, re.ASCII):
        raise InputError(f"line {token.line}: {quote(token.text)} in place of a feature; expected its number, from 1")
    return int(token.text)


def parse_float32(tokens: Sequence[Token]) -> NDArray[np.float32]:
    """Return decimal numbers rounded to float32, as ``Float.parseFloat`` of Java does, in one step.

    >>> parse_float32([Token("0.1", 1)]).tolist()
    [0.10000000149011612]
    """
    words = [token.text for token in tokens]
    exact = parse_doubles(tokens)
    with np.errstate(over="ignore"):
        found = exact.astype(np.float32)
    for i in np.flatnonzero(~np.isfinite(found))[:1].tolist():
        raise InputError(f"line {tokens[i].line}: the number {quote(words[i])}; expected one up to 3.4e38")
    other = np.nextafter(found, np.where(exact > found, np.inf, -np.inf).astype(np.float32))
    # a decimal that is rounded to the middle of two float32 may lie above or below it
    middle = (exact != found) & (exact - found == (other.astype(np.float64) - found) / 2.0)
    for i in np.flatnonzero(middle).tolist():
        decimal, double = Decimal(words[i]), Decimal(float(exact[i]))
        if decimal != double:
            found[i] = max(found[i], other[i]) if decimal > double else min(found[i], other[i])
    return found


def parse_doubles(tokens: Sequence[Token]) -> NDArray[np.float64]:
    """Return decimal numbers; raise InputError with the line of the first text that is none."""
    try:
        return parse_decimals([token.text for token in tokens])
    except ValueError:
        token = next(token for token in tokens if not _is_decimal(token.text))
        raise InputError(f"line {token.line}: {quote(token.text)} in place of a number") from None


def _is_decimal(text: str) -> bool:
    """Return whether a text is a decimal number."""
    try:
        return len(parse_decimals([text])) == 1
    except ValueError:
        return False
