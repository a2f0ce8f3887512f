"""Every ranker tells which of its parameters are wrong without any data, as fit does with them."""

from __future__ import annotations

import pytest

import rankwright as rw
from rankwright.basics.errors import collect_warnings
from rankwright.rankers import RANKERS

WRONG = [-1, "nonsense", float("nan"), [[1]], {"x": 1}]
SHORT = {"n_estimators": 2, "max_iter": 3, "n_restarts": 1}
SMALL = [rw.make_queries(8, n_docs=6, n_features=n, random_state=3) for n in (3, 4)]


def refusal(call, *arguments, **options) -> str | None:
    """Return what the error says; None if there is none."""
    try:
        with collect_warnings():
            call(*arguments, **options)
    except rw.InputError as error:
        return str(error)
    except OSError as error:
        return f"file: {error}"
    return None


def short(ranker, **given):
    known = ranker().get_params(deep=False)
    made = ranker(**{name: value for name, value in SHORT.items() if name in known} | given)
    if "training" in known and "training" not in given:
        made.set_params(training={"n_epochs": 30})
    return made


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
def test_wrong_parameters_are_refused_without_data(ranker):
    """With the same words, unless these depend on the data or on a file."""
    names = {*ranker().get_params(deep=False)} - {"backend", "random_state", "network"}
    refused = set()
    for name in sorted(names):
        for value in WRONG:
            made = short(ranker, **{name: value})
            without = refusal(made.check_parameters)
            with_data = [refusal(made.fit, part, valid=part) for part in SMALL]
            if without is not None:
                refused.add(name)
                assert name in ("prior", "start") or with_data == [without] * 2, (name, value)
            else:
                depends = with_data[0] != with_data[1] or str(with_data[0]).startswith("file: ")
                assert with_data[0] is None or depends, (name, value)
    assert refused == names


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
@pytest.mark.parametrize("measure", ["ndcg@10", "map", "err@3(max=data)"])
def test_right_parameters_are_taken_without_data(ranker, measure):
    made = ranker(measure=measure)
    assert refusal(made.check_parameters) is None
    assert not hasattr(made, "model_")
    for name, values in ranker.default_grid.items():
        for value in values:
            assert refusal(ranker(measure=measure, **{name: value}).check_parameters) is None
