"""Every parameter of every ranker, set on the command line to what it should not be: used, or refused in one line."""

from __future__ import annotations

import pytest

import rankwright as rw
from rankwright.basics.errors import make_printable
from rankwright.cli import run
from rankwright.cli.app import list_parameters
from rankwright.rankers import RANKERS

TEXTS = (
    *("x", "", "-1", "1e308", "nan", "[]", "[1, [2]]", "[NaN]", '{"a": 1}', "true", "9" * 30, "9" * 5000, "[" * 3000),
    *("1_000", "\x1b[2J", "\u0663"),
)
FEW = {
    "n_estimators": 2,
    "max_iter": 3,
    "n_restarts": 1,
    "n_perturbations": 0,
    "n_samples": 4,
}  # so that what is right is soon done


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "train.txt"
    rw.write_letor(rw.make_queries(3, n_docs=5, n_features=2, random_state=0), path)
    return path


def texts(ranker, name: str) -> tuple[str, ...]:
    """Return some texts for a parameter: all of them, if those for other rankers that have it are added."""
    owners = [each for each in RANKERS if name in list_parameters(each)]
    share = min(len(TEXTS), len(owners))
    return TEXTS[owners.index(ranker) % share :: share]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
def test_every_setting_is_used_or_refused_in_one_line(ranker, data, capsys):
    known = list_parameters(ranker)
    for name in known:
        few = [f"--set={key}={value}" for key, value in FEW.items() if key in known and key != name]
        if "hidden" in known and name != "training":
            few.append("--set=training.n_epochs=1")
        for text in texts(ranker, name):
            command = ["fit", ranker.__name__.lower(), "--train", str(data), "--model", str(data.with_suffix(".json"))]
            status = run([*command, *few, "--set", f"{name}={text}"])
            said = capsys.readouterr().err
            where = (name, text[:20], said)
            assert status in (0, 2), where
            assert make_printable(said, keep="\n") == said, where
            assert all(line.startswith("rankwright: ") and len(line) < 1_500 for line in said.splitlines()), where
            errors = [line for line in said.splitlines() if not line.startswith("rankwright: warning: ")]
            assert len(errors) == (status == 2), where
