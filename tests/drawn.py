"""Whether means of estimates may be what they should be.

Seeds are fixed. At another seed a test would be wrong about estimates that are right with the probability ``ALARM``,
however many means it looks at.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

ALARM = 1e-4
BLOCKS = 40  # whose means are compared by Student's t


def may_be(means: np.ndarray, expected: np.ndarray) -> bool:
    """Whether the means of independent blocks, a row each, have these expectations."""
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    t = np.abs(means.mean(axis=0) - expected) / np.maximum(error, 1e-12)
    return bool((t < stats.t.isf(ALARM / 2 / t.size, len(means) - 1)).all())
