"""Tests in which a warning is expected: they say which, and any other is an error as everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def allow_warnings(*categories: type[Warning]) -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings of these categories, which may or may not be issued; raise any other."""
    with warnings.catch_warnings(record=True) as found:
        for category in categories:
            warnings.simplefilter("always", category)
        yield found


may_learn_nothing = pytest.mark.filterwarnings("ignore::rankwright.basics.errors.DegenerateModelWarning")
may_not_converge = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
may_have_warned_in_trials = pytest.mark.filterwarnings("ignore::rankwright.basics.errors.TrialWarning")
may_lack_qid = pytest.mark.filterwarnings("ignore::rankwright.basics.errors.MissingQueryIdWarning")
may_be_ineffective = pytest.mark.filterwarnings("ignore::rankwright.basics.errors.IneffectiveParameterWarning")
