"""The structure of the code: statements, functions, and where names are mentioned."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef
Span = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Mention:
    """A line that mentions a name.

    Parameters
    ----------
    path : str
        The file.
    line : int
        The line.
    function : str or None
        The outermost function that it is in, if it is in the body of one.
    bound : tuple of str
        Outside functions: the names that the statement defines.
    """

    path: str
    line: int
    function: str | None
    bound: tuple[str, ...]


class Module:
    """One file of Python code.

    Parameters
    ----------
    path : str
        The file.
    source : str
        Its content.
    """

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self._lines = source.splitlines()
        self._tree = ast.parse(source)

    def is_for_types(self, line: int, column: int) -> bool:
        """Tell whether a place is in an annotation or in a block that only the type checker reads."""
        return any(begin <= (line, column) < end for begin, end in self._spans_for_types)

    @cached_property
    def _spans_for_types(self) -> list[Span]:
        spans = []
        for node in ast.walk(self._tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                spans.append(((node.lineno, 0), self._span(node.body[-1])[1]))
            for field in ("annotation", "returns"):
                if isinstance(part := getattr(node, field, None), ast.expr):
                    spans.append(self._span(part))
        return spans

    def _span(self, node: ast.stmt | ast.expr) -> Span:
        end = node.end_lineno or node.lineno
        return (
            (node.lineno, self._count_characters(node.lineno, node.col_offset)),
            (end, self._count_characters(end, node.end_col_offset or 0)),
        )

    def _count_characters(self, line: int, n_bytes: int) -> int:
        return len(self._lines[line - 1].encode()[:n_bytes].decode())

    def find_lines(self, line: int) -> set[int]:
        """Return the lines of the innermost statement at a line; of a compound statement those of its head."""
        found: set[int] = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.stmt | ast.ExceptHandler) and line in (lines := _head(node)):
                found = set(lines)  # inner statements come later
        return found or {line}

    def find_functions(self, line: int) -> list[Function]:
        """Return the functions whose bodies a line is in, the outermost first."""
        return [function for function in self._functions if line in _body(function)]

    @cached_property
    def _functions(self) -> list[Function]:
        found = [node for node in ast.walk(self._tree) if isinstance(node, Function)]
        return sorted(found, key=lambda node: (node.lineno, -(node.end_lineno or 0)))

    def find_names(self, line: int) -> tuple[str, ...]:
        """Return the names that the statement at a line outside functions defines."""
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.stmt) or line not in _head(node):
                continue
            if isinstance(node, Function | ast.ClassDef):
                return (node.name,)
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                return tuple(leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
        return ()

    def find_body(self, line: int) -> set[int]:
        """Return the lines in functions of the function or class whose head (decorators, defaults) is at a line."""
        for node in ast.walk(self._tree):
            if isinstance(node, Function) and line in _head(node):
                return set(_body(node))
            if isinstance(node, ast.ClassDef) and line in _head(node):
                functions = (inner for inner in ast.walk(node) if isinstance(inner, Function))
                return {number for function in functions for number in _body(function)}
        return set()

    def list_function_lines(self) -> set[int]:
        """Return all lines in bodies of functions."""
        return {line for function in self._functions for line in _body(function)}

    def find_mentions(self, names: tuple[str, ...]) -> set[int]:
        """Return the lines in functions that mention one of these names."""
        return {mention.line for name, mention in self.list_mentions() if name in names and mention.function}

    def list_mentions(self) -> Iterator[tuple[str, Mention]]:
        """Yield every name in this file with the place where it is mentioned."""
        for node in ast.walk(self._tree):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name is not None and isinstance(node, ast.expr):
                functions = self.find_functions(node.lineno)
                bound = () if functions else self.find_names(node.lineno)
                yield name, Mention(self.path, node.lineno, functions[0].name if functions else None, bound)


def _head(node: ast.stmt | ast.ExceptHandler) -> range:
    """Return the lines of a statement before its body, decorators included."""
    begin = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    if (body := getattr(node, "body", None)) and isinstance(body, list):
        return range(begin, max(body[0].lineno, node.lineno + 1))
    return range(begin, (node.end_lineno or node.lineno) + 1)


def _body(function: Function) -> range:
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


class Project:
    """All code that is mutated, and the tests' files as text.

    Parameters
    ----------
    sources : dict
        The code of each file.
    tests : dict
        The text of each file of tests.
    """

    def __init__(self, sources: dict[str, str], tests: dict[str, str]) -> None:
        self.modules = {path: Module(path, source) for path, source in sources.items()}
        self._sources, self._tests = sources, tests

    @cached_property
    def _mentions(self) -> dict[str, list[Mention]]:
        found = defaultdict(list)
        for module in self.modules.values():
            for name, mention in module.list_mentions():
                found[name].append(mention)
        return found

    def find_users(self, path: str, names: tuple[str, ...], compiled: str) -> set[tuple[str, int]]:
        """Return the lines in functions that use names of a file, also through other names.

        Parameters
        ----------
        path : str
            The file that defines the names.
        names : tuple of str
            The names.
        compiled : str
            The folder of code whose lines cannot be recorded: the users of its functions are looked for in turn.
        """
        lines: set[tuple[str, int]] = set()
        seen: set[tuple[str, str]] = set()
        waiting = [(path, name) for name in names]
        while waiting:
            path, name = waiting.pop()
            if (path, name) in seen:
                continue
            seen.add((path, name))
            for mention in self._mentions.get(name, []):
                if mention.path != path and not _is_word(_stem(path), self._sources[mention.path]):
                    continue
                if mention.function is None:
                    waiting += [(mention.path, other) for other in mention.bound]
                elif f"/{compiled}/" in mention.path:
                    waiting.append((mention.path, mention.function))
                else:
                    lines.add((mention.path, mention.line))
        return lines

    def find_test_files(self, path: str, names: tuple[str, ...]) -> set[str]:
        """Return the files of tests that mention both a file and one of its names."""
        return {
            test
            for test, text in self._tests.items()
            if _is_word(_stem(path), text) and any(_is_word(name, text) for name in names)
        }


def _stem(path: str) -> str:
    return path.removesuffix("/__init__.py").removesuffix(".py").rsplit("/", 1)[-1]


def _is_word(word: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None
