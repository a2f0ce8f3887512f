"""Names that are no parameters: what the error says, in Python, on the command line and in specs."""

from __future__ import annotations

import pytest

import rankwright as rw
from rankwright.cli import run
from rankwright.rankers import RANKERS

HINTS = [
    (rw.LambdaMART, "n_leaves", "it is called num_leaves here"),
    (rw.LambdaMART, "eta", "it is called learning_rate here"),
    (rw.LambdaMART, "num_leavs", "did you mean num_leaves?"),
    (rw.MART, "max_depth", "pass it as lightgbm_params={'max_depth': ...}"),
    (rw.MART, "reg_lambda", "pass it as lightgbm_params={'lambda_l2': ...}"),
    (rw.MART, "eval_set", "validation queries are passed to fit(valid=...)"),
    (rw.RankNet, "reg_lambda", "it is called alpha here"),
    (rw.RankNet, "lr", "pass it as training={'learning_rate': ...}"),
    (rw.AdaRank, "num_boost_round", "it is called n_estimators here"),
    (rw.RankSVM, "n_iter", "it is called max_iter here"),
    (rw.Regression, "xyz", "there are measure, backend, scale, alpha"),
]


@pytest.mark.parametrize(("ranker", "name", "hint"), HINTS)
def test_constructors_and_set_params_explain(ranker, name, hint):
    for call in (ranker, ranker().set_params):
        with pytest.raises(rw.InputError) as found:
            call(**{name: 1})
        assert isinstance(found.value, TypeError)
        assert str(found.value) == f"{ranker.__name__} has no parameter {name!r}; {hint}"


def test_the_command_line_and_specs_explain_alike(capsys):
    command = ["fit", "lambdamart", "--train", "x", "--set", "eta=0.1", "--model", "m"]
    assert run(command) == 2
    said = "LambdaMART has no parameter 'eta'; it is called learning_rate here"
    assert said in capsys.readouterr().err
    with pytest.raises(rw.InputError, match=said):
        rw.Method("lambdamart", params={"eta": 0.1})


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
def test_every_parameter_is_documented_in_the_order_of_the_signature(ranker):
    section = ranker.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0]
    documented = [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]
    assert documented == ranker.parameter_names()
