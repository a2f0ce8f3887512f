"""Random numbers: generators from seeds."""

from __future__ import annotations

import numpy as np

from rankwright.basics.errors import InputError


def make_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """Return a random generator for a seed, or the generator that is given; None seeds from the system.

    >>> make_generator(0).permutation(3).tolist() == make_generator(0).permutation(3).tolist()
    True
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state={random_state!r}; expected a whole number of at least 0, a Generator or None"
        ) from None
