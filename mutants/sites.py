"""The places where a mutation is possible, and a seeded sample of mutations."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from mutants.code import Module

KERNELS = "kernels"
_DECORATOR = "core/RemoveDecorator"
_WITHOUT_EFFECT = {"final", "overload", "override"}  # decorators for the type checker
# the nodes that operators change; asking every operator about every comma takes minutes
_LEAVES = {"operator", "number", "keyword"}
_INNER = {"comparison", "factor", "not_test", "if_stmt", "while_stmt", "for_stmt", "assert_stmt", "test"}
_INNER |= {"except_clause", "decorator"}
_PUNCTUATION = set("()[]{},:.;=@")

Position = tuple[int, int]


@dataclass(frozen=True)
class Mutation:
    """A change to the code in one place.

    Parameters
    ----------
    path : str
        The file, from the project's folder.
    line, column : int
        Where the change begins.
    operator : str
        The name of cosmic-ray's operator.
    occurrence : int
        The number of the place among all places in this file that the operator can change.
    """

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def is_kernel(self) -> bool:
        """Whether the code is compiled by Numba."""
        return KERNELS in Path(self.path).parts

    def apply(self, source: str) -> str | None:
        """Return the changed source, or None if it is no Python or means the same."""
        changed = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        try:
            same = changed is None or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source))
        except (SyntaxError, ValueError):
            return None
        return None if same else str(changed)

    def compare(self, source: str) -> str:
        """Return the difference between the source and the changed source."""
        changed = self.apply(source) or ""
        lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), self.path, self.path, "", "", 1, "")
        return "\n".join(lines)

    def identify(self, source: str) -> str:
        """Return a key for this change to this source."""
        text = f"{self.path}\n{self.operator}\n{self.occurrence}\n{source}"
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def list_sites(path: str, source: str) -> dict[Position, list[Mutation]]:
    """Return the possible mutations at each place of a file, those without any effect left out."""
    module = Module(path, source)
    operators = {name: get_operator(name)() for name in operator_names() if not get_operator(name).arguments()}
    counts: dict[str, int] = defaultdict(int)
    sites: dict[Position, list[Mutation]] = defaultdict(list)
    for node in ast_nodes(get_ast(source)):
        if node.type not in _LEAVES | _INNER or getattr(node, "value", None) in _PUNCTUATION:
            continue
        for name, operator in operators.items():
            for (line, column), _ in operator.mutation_positions(node):
                mutation = Mutation(path, line, column, name, counts[name])
                counts[name] += 1
                if not module.is_for_types(line, column) and not _is_without_effect(mutation, node):
                    sites[line, column].append(mutation)
    return sites


def _is_without_effect(mutation: Mutation, node: Any) -> bool:
    """Tell whether a decorator only informs the type checker, or compiles a kernel."""
    if mutation.operator != _DECORATOR:
        return False
    return mutation.is_kernel or bool(_WITHOUT_EFFECT & set(node.get_code().strip(" @\n").split(".")))


def draw(sources: dict[str, str], size: int, seed: int) -> list[Mutation]:
    """Draw places at random, and one mutation at each of them."""
    sites = [
        several for path, source in sorted(sources.items()) for _, several in sorted(list_sites(path, source).items())
    ]
    rng = Random(seed)
    rng.shuffle(sites)
    drawn = (mutation for mutations in sites for mutation in _choose(mutations, sources, rng))
    return list(islice(drawn, size))


def _choose(mutations: list[Mutation], sources: dict[str, str], rng: Random) -> Iterator[Mutation]:
    """Yield one of the mutations at a place that changes something, if there is any."""
    for mutation in rng.sample(mutations, len(mutations)):
        if mutation.apply(sources[mutation.path]) is not None:
            yield mutation
            return
