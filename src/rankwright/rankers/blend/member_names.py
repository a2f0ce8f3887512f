"""Names of the members of a blend."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.models.model import Model

_METHODS = ("fit", "predict", "get_params")


def name_members(rankers: Any, reserved: Collection[str]) -> list[tuple[str, Any]]:
    """Return members with names: the given ones, or the class in lower case, with a number where it is there twice.

    >>> from rankwright.rankers import MART
    >>> [name for name, _ in name_members([MART(), ("small", MART(num_leaves=4)), MART()], [])]
    ['mart', 'small', 'mart-2']
    """
    if isinstance(rankers, (str, bytes)) or not isinstance(rankers, Sequence):
        raise InputError(f"rankers={quote(rankers)}; expected 'default' or a list of rankers")
    named: list[tuple[str, Any]] = []
    taken: set[str] = set()
    given = {each[0] for each in rankers if _is_pair(each)}
    for each in rankers:
        is_pair = _is_pair(each)
        member = each[1] if is_pair else each
        _check_member(member)
        usual = member.ranker if isinstance(member, Model) else type(member).__name__
        name = each[0] if is_pair else _number(usual.lower().replace(" ", "-"), taken | given)
        if name in taken or name in reserved or "__" in name or not name:
            raise InputError(
                f"a member is called {name!r}; expected names that differ from each other and from the parameters of "
                "a blend, without '__'"
            )
        taken.add(name)
        named.append((name, member))
    return named


def _is_pair(each: Any) -> bool:
    """Return whether a member comes with a name."""
    return isinstance(each, (tuple, list)) and len(each) == 2 and isinstance(each[0], str)


def _number(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken, by adding a number if need be."""
    candidates = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    return next(each for each in candidates if each not in taken)


def _check_member(member: Any) -> None:
    """Raise InputError unless an object can be a member: a model, or an estimator of scikit-learn's interface."""
    if isinstance(member, type):
        name = member.__name__
        raise InputError(f"found the class {name} among the rankers; expected an object: {name}()")
    # of the class: an estimator may have a method only once it is fitted
    has_all = all(hasattr(type(member), name) or hasattr(member, name) for name in _METHODS)
    if not isinstance(member, Model) and not has_all:
        raise InputError(
            f"found {quote(member)} among the rankers; expected rankers, regressors with fit, predict and get_params, "
            "fitted models, or pairs of a name and one of these"
        )
