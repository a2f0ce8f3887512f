"""Solvers of quadratic programmes, on those that cutting planes have to solve."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import daqp
import numpy as np
from scipy import sparse

from benchmarks.timing import find_peer
from rankwright.basics.array_types import Floats

Programme = tuple[Floats, Floats, Floats, Floats, Floats, Any]  # H, f, A, upper, lower, kinds; as daqp takes them


def record_programmes(fit: Callable[[], object]) -> list[Programme]:
    """The QPs of a fit."""
    found: list[Programme] = []
    solve = daqp.solve

    def spy(*programme: Any, **settings: Any) -> Any:
        found.append(programme)
        return solve(*programme, **settings)

    daqp.solve = spy
    try:
        fit()
    finally:
        daqp.solve = solve
    return found


Solver = Callable[[Programme], Floats]


def by_daqp(p: Programme) -> Floats:
    """Dense, by active sets."""
    x: Floats = daqp.solve(*p)[0]
    return x


def by_clarabel(clarabel: Any, p: Programme) -> Floats:
    """Sparse, by interior points."""
    H, f, A, upper, lower, _ = p
    n, settings = len(f), clarabel.DefaultSettings()
    settings.verbose = False
    rows, limits = sparse.csc_matrix(np.vstack([-np.eye(n), A])), np.append(-lower[:n], upper[n:])
    cones = [clarabel.NonnegativeConeT(len(limits))]
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(H)), f, rows, limits, cones, settings)
    return np.array(solver.solve().x)


def by_osqp(osqp: Any, p: Programme) -> Floats:
    """Sparse, by splitting; as precise as it gets in 20,000 steps."""
    H, f, A, upper, lower, _ = p
    n, solver = len(f), osqp.OSQP()
    rows = sparse.csc_matrix(np.vstack([np.eye(n), A]))
    wanted = {"verbose": False, "eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 20_000}
    solver.setup(sparse.csc_matrix(np.triu(H)), f, rows, lower, upper, **wanted)
    return np.array(solver.solve(raise_error=False).x)


def by_quadprog(quadprog: Any, p: Programme) -> Floats:
    """Dense, by Goldfarb and Idnani's dual method."""
    H, f, A, upper, _, _ = p
    n = len(f)
    x: Floats = quadprog.solve_qp(H, -f, np.column_stack([np.eye(n), -A.T]), np.append(np.zeros(n), -upper[n:]))[0]
    return x


def solve_all(solve: Solver, programmes: list[Programme]) -> None:
    """Every one of them."""
    for programme in programmes:
        solve(programme)


def value(p: Programme, x: Floats) -> float:
    """The value of a solution, once made feasible."""
    x = np.maximum(x, 0.0)
    x = x * min(1.0, float(p[3][-1]) / max(float(x.sum()), 1e-300))
    return float(0.5 * x @ p[0] @ x + p[1] @ x)


PEERS = {"clarabel": by_clarabel, "osqp": by_osqp, "quadprog": by_quadprog}


def find_solvers() -> dict[str, Solver]:
    """Ours, and those peers that are installed."""
    found = {name: partial(solve, module) for name, solve in PEERS.items() if (module := find_peer(name))}
    return {"daqp": by_daqp, **found}
