"""Warnings: how they are issued and collected, and what rankers do with theirs."""

from __future__ import annotations

import threading
import warnings

import pytest

import rankwright as rw
from rankwright.basics.errors import collect_warnings, warn


def test_every_category_is_public_and_a_rankwright_warning():
    names = ["MissingQueryId", "SplitQuery", "DegenerateModel", "IneffectiveParameter", "KernelCache"]
    for name in names:
        assert issubclass(getattr(rw, f"{name}Warning"), rw.RankwrightWarning)
    assert issubclass(rw.RankwrightWarning, UserWarning)


def test_a_warning_points_to_the_line_outside_the_library():
    with pytest.warns(rw.DegenerateModelWarning) as found:
        warn("text", rw.DegenerateModelWarning)
    assert found[0].filename == __file__


def test_collected_warnings_are_not_issued_unless_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with collect_warnings() as outer:
            warn("first", rw.SplitQueryWarning)
            with collect_warnings(issue=True) as inner:
                warn("second", rw.DegenerateModelWarning)
    assert [found.message for found in outer] == ["first", "second"]
    assert [found.message for found in inner] == ["second"]
    with pytest.warns(rw.SplitQueryWarning, match="third"), collect_warnings(issue=True) as found:
        warn("third", rw.SplitQueryWarning)
    assert [each.category for each in found] == [rw.SplitQueryWarning]


def test_collecting_in_one_thread_leaves_others_alone():
    issued = []

    def other() -> None:
        try:
            warn("mine", rw.SplitQueryWarning)
        except rw.SplitQueryWarning as warning:
            issued.append(str(warning))

    with collect_warnings() as found:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == []
    assert issued == ["mine"]  # an error, as the suite makes of all warnings
