"""Where random numbers come from."""

from __future__ import annotations

import numpy as np

from rankwright.basics.errors import InputError


def generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """The generator of a seed, or the one that is given; None seeds from the system.

    >>> generator(0).permutation(3).tolist() == generator(0).permutation(3).tolist()
    True
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state={random_state!r}; expected a whole number of at least 0, a Generator or None"
        ) from None
