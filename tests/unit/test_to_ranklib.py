"""Export to RankLib: the form that fits, ids of features, missing values, and wrong exporters."""

import numpy as np
import pytest
from tests.exported import N_FEATURES, make_model
from tests.reference import oracle_ranklib

import rankwright as rw
from rankwright.models.export import to_ranklib
from rankwright.models.export.exporting import build_files
from rankwright.models.export.parity_rows import choose_rows
from rankwright.models.model import Model
from rankwright.scorers import Linear, Network, Stumps, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.score_parts import split_scorer


def make(scorer, features=None) -> Model:
    return Model("Regression", {}, "ndcg@10", scorer, 2, features)


def write(model: Model, folder, **options) -> list[str]:
    rw.export(model, "ranklib", folder / "m.txt", **options)
    return (folder / "m.txt").read_text().splitlines()


def test_weights_have_the_form_that_holds_the_intercept(tmp_path):
    assert write(make(Linear(np.array([0.5, 0.1]))), tmp_path) == ["## Coordinate Ascent", "1:0.5 2:0.1"]
    assert write(make(Linear(np.array([0.5, 0.1]), -2.0)), tmp_path) == ["## Linear Regression", "0:-2.0 1:0.5 2:0.1"]


def test_stumps_are_rankboost_and_a_shift_is_a_stump(tmp_path):
    stumps = Stumps(np.array([1, 0]), np.array([0.1, -2.0], np.float32), np.array([0.7, -0.5]))
    assert write(make(stumps), tmp_path) == ["## RankBoost", "2:0.10000000149011612:0.7 1:-2.0:-0.5"]
    X = np.array([[0.0, 0.1], [-3.0, 0.2], [0.0, 0.0]], np.float32)
    write(make(stumps), tmp_path, shift=True)
    found = oracle_ranklib.score(tmp_path / "m.txt", X, ["1", "2"])
    np.testing.assert_allclose(found, stumps(X) + 0.5, atol=1e-5)
    empty = Stumps(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0))
    assert write(make(empty), tmp_path) == ["## RankBoost", "1:-1e+300:0.0"]


def test_a_constant_is_a_leaf(tmp_path):
    lines = [line.strip() for line in write(make(Trees(Forest.constant(2, 0.25))), tmp_path)]
    assert lines[2:] == [
        *("<ensemble>", '<tree id="1" weight="1.0">', "<split>", "<output> 0.25 </output>", "</split>", "</tree>"),
        "</ensemble>",
    ]


def test_features_are_numbered_and_described_or_mapped_to_ids(tmp_path):
    model = make(Linear(np.array([0.5, 0.1])), ("Größe", "clicks"))
    assert write(model, tmp_path)[1:] == ["## feature 1 = Gr\\xf6\\xdfe", "## feature 2 = clicks", "1:0.5 2:0.1"]
    assert write(model, tmp_path, names={"Größe": "7", "clicks": "3"})[1:] == ["7:0.5 3:0.1"]
    for names in ({"clicks": "3"}, {"Größe": "7", "clicks": "07"}):
        with pytest.raises(rw.InputError, match=r"map all names to numbers|two features with the same id"):
            write(model, tmp_path, names=names)


def test_a_note_says_that_missing_values_are_0(tmp_path):
    def get_notes(kind: str) -> list[str]:
        return [note for note in build_files(make_model(kind), "ranklib", tmp_path / "m.txt")[1] if "missing" in note]

    assert get_notes("trees") == []
    assert len(get_notes("trees with missing")) == 1


def test_a_model_that_changed_since_its_import_is_not_written_as_it_was(tmp_path):
    (tmp_path / "ada.txt").write_text("## AdaRank\n2:0.5 1:0.25 2:0.5\n")
    model = rw.import_model(tmp_path / "ada.txt")
    assert write(model, tmp_path) == ["## AdaRank", "2:0.5 1:0.25 2:0.5"]
    changed = Model(model.ranker, model.params, model.measure, Linear(np.array([0.25, 2.0])), 2)
    assert write(changed, tmp_path) == ["## AdaRank", "1:0.25 2:2.0"]


def test_a_network_needs_a_sigmoid_at_its_end(tmp_path):
    layers = [np.array([[0.5], [2.0]]), np.array([[1.0]])]
    network = Network(np.array([1.0, 0.0]), np.array([0.5, 1.0]), layers, [np.zeros(1), np.zeros(1)], "sigmoid")
    assert write(make(network), tmp_path) == ["## RankNet", "1 2", "0", "0 0 0.25", "0 1 2.0", "0 2 -0.25"]
    other = Network(network.mean, network.factor, layers, [np.zeros(1), np.ones(1)], "sigmoid")
    with pytest.raises(rw.InputError, match="sigmoid in every neuron, also in the last; the nearest target"):
        write(make(other), tmp_path)


def test_numbers_too_large_for_float32_are_refused(tmp_path):
    with pytest.raises(rw.InputError, match="a leaf of 1e\\+39; RankLib has float32 numbers"):
        write(make(Trees(Forest.constant(2, 1e39))), tmp_path)
    assert not list(tmp_path.iterdir())


def compare_below(monkeypatch):
    own = to_ranklib.round_down_to_float32
    monkeypatch.setattr(to_ranklib, "round_down_to_float32", lambda t: np.nextafter(own(t), np.float32(-np.inf)))


def swap_children(monkeypatch):
    own = to_ranklib._write_tree
    swapped = {"left": "right", "right": "left"}

    def write_swapped(tree, *rest):
        columns = {**tree.columns, **{f"{a}_child": tree.columns[f"{b}_child"] for a, b in swapped.items()}}
        return own(type(tree)(columns, tree.shrinkage), *rest)

    monkeypatch.setattr(to_ranklib, "_write_tree", write_swapped)


def count_from_0(monkeypatch):
    monkeypatch.setattr(to_ranklib, "find_ids", lambda names: [2, 1, 3, 4, 5])


@pytest.mark.parametrize("break_exporter", [compare_below, swap_children, count_from_0])
def test_a_wrong_exporter_is_caught(break_exporter, monkeypatch, tmp_path):
    model = make_model("trees")
    X = choose_rows(split_scorer(model.scorer, N_FEATURES), 1_000)

    def count_differences() -> int:
        write(model, tmp_path)
        found = oracle_ranklib.score(tmp_path / "m.txt", X, [str(i + 1) for i in range(N_FEATURES)])
        return int((np.abs(found - model.scorer(X)) > 1e-5).sum())

    assert count_differences() == 0
    break_exporter(monkeypatch)
    assert count_differences() > 0
