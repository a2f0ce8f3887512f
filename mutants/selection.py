"""The tests that can notice a mutation."""

from __future__ import annotations

from mutants.code import Project
from mutants.recording import Recording
from mutants.sites import KERNELS, Mutation


class Selection:
    """The choice of tests by the lines that they execute.

    Parameters
    ----------
    project : Project
        The code.
    compiled : Recording
        The tests with the compiler on, under which kernels have no lines.
    interpreted : Recording or None
        Some tests with the compiler off.
    """

    def __init__(self, project: Project, compiled: Recording, interpreted: Recording | None = None) -> None:
        self._project, self._compiled, self._interpreted = project, compiled, interpreted

    def choose(self, mutation: Mutation, seconds: float) -> tuple[list[str], str]:
        """Return tests to run, the most promising first, and whether the compiler is to be ``on`` or ``off``."""
        module = self._project.modules[mutation.path]
        names = module.find_names(mutation.line)
        if module.find_functions(mutation.line):
            lines = module.find_lines(mutation.line)
        else:  # executed at import: take the lines that use the name
            lines = module.find_body(mutation.line) | module.find_mentions(names)
        if tests := self._compiled.find_tests(mutation.path, lines):
            return self._compiled.order(tests, seconds), "on"
        if self._interpreted and (tests := self._interpreted.find_tests(mutation.path, lines)):
            return self._interpreted.order(tests, seconds), "off"
        if mutation.is_kernel:
            return self._choose_callers(mutation, seconds), "on"
        tests = self._find_users(mutation, names)
        if not tests:  # lines of another process, say
            tests = self._compiled.find_tests(mutation.path, module.list_function_lines())
        return self._compiled.order(tests, seconds), "on"

    def _choose_callers(self, mutation: Mutation, seconds: float) -> list[str]:
        """Return tests of files that name the kernel, then tests that execute a line which calls it."""
        module = self._project.modules[mutation.path]
        functions = module.find_functions(mutation.line)
        names = (functions[0].name,) if functions else module.find_names(mutation.line)
        files = self._project.find_test_files(mutation.path, names)
        direct = {test for test in self._compiled.seconds if test.partition("::")[0] in files}
        first = self._compiled.order(direct, seconds / 2)
        return first + self._compiled.order(self._find_users(mutation, names) - set(first), seconds / 2)

    def _find_users(self, mutation: Mutation, names: tuple[str, ...]) -> set[str]:
        users = self._project.find_users(mutation.path, names, KERNELS)
        return {test for path, line in users for test in self._compiled.find_tests(path, [line])}
