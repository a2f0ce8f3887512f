"""Other libraries' JSON models with values replaced: they are read, or refused in one line."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import xgboost

import rankwright as rw
from rankwright.models.imports import parse_file

FOLDER = Path(__file__).parents[1] / "golden" / "models"
N_CHANGES = 150
WRONG = [
    None,
    True,
    -1,
    0,
    7,
    10**30,
    1e300,
    0.5,
    "",
    "x",
    "1",
    [],
    {},
    [None],
    ["a", 1],
    [[0]],
    {"value": []},
    [1e400],
]


def make_texts():
    """Return a model of each kind as parsed JSON, by name."""
    rng = np.random.default_rng(0)
    data = xgboost.DMatrix(rng.normal(size=(80, 3)), rng.normal(size=80), feature_names=list("abc"))
    found = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("catboost_[!.]*[!s].json")}
    for booster in ("gbtree", "dart", "gblinear"):
        trained = xgboost.train({"booster": booster, "nthread": 1, "max_depth": 2, "verbosity": 0}, data, 2)
        trained.set_attr(best_iteration="0", scikit_learn="{}")
        found[booster] = json.loads(trained.save_raw("json"))
    return {name: content for name, content in found.items() if "rows" not in content}


TEXTS = make_texts()


def list_places(value, path=()):
    """Yield the path of every value inside a value of JSON."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from list_places(value[key], (*path, key))


def try_to_parse(data):
    """Return the model, or the text of the error."""
    try:
        return parse_file(data, "m.json"), ""
    except rw.InputError as error:
        return None, str(error)


@pytest.mark.parametrize("name", TEXTS)
def test_wrong_values_are_read_or_refused_in_one_line(name):
    rng = np.random.default_rng(0)
    places = list(list_places(TEXTS[name]))
    n_refused = 0
    for _ in range(N_CHANGES):
        content = copy.deepcopy(TEXTS[name])
        *path, last = places[int(rng.integers(len(places)))]
        holder = content
        for key in path:
            holder = holder[key]
        if rng.random() < 0.2:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(WRONG[int(rng.integers(len(WRONG)))])
        model, problem = try_to_parse(json.dumps(content).encode())
        if model is None:
            n_refused += 1
            assert "\n" not in problem
            assert problem.startswith("m.json: ")
        else:
            assert np.isfinite(model.scorer(np.zeros((2, model.n_features), np.float32))).all()
    assert n_refused > N_CHANGES / 8
