"""Import of RankLib's model texts: the scores of its own classes, and damaged texts."""

import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import damage
from tests.reference import oracle_ranklib

import rankwright as rw
from rankwright.cli import run
from rankwright.models.imports.from_ranklib import import_file
from rankwright.models.imports.ranklib_trees import Token, parse_float32

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "ranklib.json").read_text())["cases"]
CASES = pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["form"])
NETWORKS = ("RankNet", "LambdaRank", "ListNet")  # exponentials differ in the last bit
NAMES = ["1", "2", "3", "4", "5", "6"]
TREE = """## LambdaMART
<ensemble>
<tree id="1" weight="0.5">
<split>
<feature> 2 </feature>
<threshold> 4.25 </threshold>
<split pos="left">
<output> -0.25 </output>
</split>
<split pos="right">
<output> 0.5 </output>
</split>
</split>
</tree>
</ensemble>
"""


def get_rows(case) -> np.ndarray:
    return np.array(case["rows"], dtype=np.float32)


@CASES
def test_the_interpreter_equals_the_classes_of_ranklib(case, tmp_path):
    (tmp_path / "m.txt").write_text(case["text"])
    found = oracle_ranklib.score(tmp_path / "m.txt", get_rows(case), NAMES)
    np.testing.assert_allclose(found, case["scores"], rtol=4e-16 if case["form"] in NETWORKS else 0.0)


@CASES
def test_an_imported_model_scores_as_ranklib(case):
    """Weights, stumps and networks are in double precision; trees are added in float32 by RankLib."""
    model = import_file(case["text"].encode(), n_features=6)
    is_float32 = case["form"] in ("MART", "LambdaMART", "Random Forests")
    found = model.scorer(np.nan_to_num(get_rows(case)))
    np.testing.assert_allclose(found, case["scores"], atol=5e-7 if is_float32 else 1e-14)
    if model.scorer.allow_nan:  # a missing value is 0, as in RankLib
        np.testing.assert_allclose(model.scorer(get_rows(case)), found, atol=1e-14)


@CASES
def test_a_round_trip_keeps_every_number(case, tmp_path):
    """The exported text has the numbers of the imported one, in the same order, so that RankLib has the same bits."""
    (tmp_path / "m.txt").write_text(case["text"])
    rw.save(rw.import_model(tmp_path / "m.txt", n_features=6), tmp_path / "m.json")
    rw.export(rw.load(tmp_path / "m.json"), "ranklib", tmp_path / "out.txt")
    written = (tmp_path / "out.txt").read_text()
    assert written.splitlines()[0] == f"## {case['form']}"
    before, after = (oracle_ranklib.score(tmp_path / name, get_rows(case), NAMES) for name in ("m.txt", "out.txt"))
    assert np.array_equal(before, after)
    assert import_file(written.encode()).scorer.to_json() == import_file(case["text"].encode()).scorer.to_json()


def test_the_number_of_features_is_the_largest_id_or_given(tmp_path):
    (tmp_path / "m.txt").write_text(TREE)
    assert rw.import_model(tmp_path / "m.txt").n_features == 2
    model = rw.import_model(tmp_path / "m.txt", n_features=5)
    assert model.predict(np.array([[0, 4.25, 0, 0, 0], [0, 4.5, 0, 0, 0]])).tolist() == [-0.125, 0.25]
    with pytest.raises(rw.InputError, match=r"m.txt: n_features=1; expected 2, the largest feature of the text"):
        rw.import_model(tmp_path / "m.txt", n_features=1)
    rw.save(model, tmp_path / "m.json")
    with pytest.raises(rw.InputError, match="n_features=5 with a saved model"):
        rw.import_model(tmp_path / "m.json", n_features=5)


def test_the_name_of_the_form_may_have_any_case():
    assert import_file(b"## coordinate ascent\r\n1:0.5 2:0.25").params == {"form": "Coordinate Ascent"}


def test_stumps_that_are_always_or_never_above():
    scorer = import_file(b"## RankBoost\n1:-1e300:0.5 1:1e300:4.0 1:0.1:0.25 # a comment\n").scorer
    x = np.array([[0.1], [0.0], [-3.4e38], [3.4e38]], np.float32)  # the float32 0.1 is above the double
    assert scorer(x).tolist() == [0.75, 0.5, 0.5, 0.75]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(0, 1))
def test_decimals_are_rounded_to_float32_once(value, share):
    low, high = sorted([np.float32(value), np.nextafter(np.float32(value), np.float32(0))])
    middle = (Fraction(float(low)) + Fraction(float(high))) / 2
    nudge = Fraction(int(share * 3) - 1, 10**60)
    decimal = f"{float(low)!r}" if low == high else _write_decimal(middle + nudge)
    (found,) = parse_float32([Token(decimal, 1)])
    if low != high and nudge:
        assert found == (high if nudge > 0 else low)
    else:
        assert found in (low, high)


def _write_decimal(value) -> str:
    """A finite decimal expansion with enough digits to be exact but for the last of 250."""
    scaled = int(value * 10**250)
    sign, digits = "-" if scaled < 0 else "", str(abs(scaled)).rjust(251, "0")
    return f"{sign}{digits[:-250]}.{digits[-250:]}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("## SVM\n1:0.5", "line 1: a RankLib model called 'SVM'; expected one of MART"),
        ("## AdaRank\n", "line 2: the text ends; expected a line of weights"),
        ("## AdaRank\n1:0.5 x:2", "line 2: 'x' in place of a feature"),
        ("## AdaRank\n1:0.5 0:2", "line 2: '0' in place of a feature"),
        ("## AdaRank\n1:0.5\n2:1", "line 3: '2:1' behind the weights"),
        ("## AdaRank\n1:NaN", "line 2: 'NaN' in place of a number"),
        ("## AdaRank\n1:1e999", "line 2: the number '1e999'; expected a finite one"),
        ("## AdaRank\n1:1e308 1:1e308", "add up to infinity"),
        ("## AdaRank\n1:2:3", "line 2: '1:2:3'; expected id:weight"),
        ("## AdaRank\n9999999999:2", "a feature with the number 9999999999"),
        ("## Linear Regression\n1:2", "line 2: 0 intercepts"),
        ("## RankBoost\n1:2", "line 2: '1:2'; expected id:threshold:weight"),
        ("## LambdaMART\n", "line 2: 0 ensembles"),
        ("## LambdaMART\n<ensemble>\n</ensemble>", "line 3: the text ends; expected at least one tree"),
        (TREE.replace(' weight="0.5"', ""), "line 3: a tree without weight"),
        (TREE.replace("4.25", "4,25"), "line 6: '4,25' in place of a number"),
        (TREE.replace("<output> 0.5 </output>\n", ""), "line 11: found '</split>'; expected <output>"),
        (TREE.replace("</tree>\n", ""), "line 14: found '</ensemble>'; expected </tree>"),
        (TREE.replace("0.5 </output>", "1e99 </output>"), "line 11: the number '1e99'; expected one up to 3.4e38"),
        (TREE.replace("0.5 </output>", "1e999 </output>"), "line 11: the number '1e999'; expected one up to 3.4e38"),
        (TREE.replace("<feature>", "<feature"), "line 5: "),
        ("## RankNet\n1 2\n1\n", "line 3: the text ends; expected the layers of a network"),
        ("## RankNet\n1\n0\n0 0 1.0", "line 4: 1 lines of weights; expected 2"),
        ("## RankNet\n1\n0\n0 0 1.0\n0 0 1.0", "line 5: '0 0 1.0'; expected a layer, a neuron"),
        ("## RankNet\n1\n0\n0 0 1.0\n0 1 x", "line 5: 'x' in place of a number"),
    ],
)
def test_a_damaged_text_is_an_error_with_its_line(text, message, tmp_path):
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(rw.InputError) as error:
        rw.load(tmp_path / "m.txt")
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'm.txt'}: ")
    assert "\n" not in str(error.value)


@CASES
def test_damage_is_an_input_error_and_nothing_else(case):
    chance = random.Random(case["form"])
    for _ in range(150):
        data = chance.choice(damage.KINDS)(case["text"].encode(), chance)
        try:
            model = import_file(b"## " + data.removeprefix(b"## "))
        except rw.InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert model.scorer(np.zeros((1, model.n_features), np.float32)).shape == (1,)


def test_random_words_are_an_input_error():
    words = ["<split>", "</split>", "<tree weight='1'>", "</tree>", "<ensemble>", "</ensemble>", "<output>", "1", "0"]
    words += [
        "</output>",
        "<feature>",
        "</feature>",
        "<threshold>",
        "</threshold>",
        "1:2",
        "1:2:3",
        "\n",
        " ",
        "<",
        "#",
    ]
    chance = random.Random(0)
    for _ in range(2_000):
        form = chance.choice([case["form"] for case in GOLDEN])
        text = f"## {form}\n" + "".join(chance.choices(words, k=chance.randrange(30)))
        try:
            import_file(text.encode())
        except rw.InputError:
            continue


def test_the_command_takes_the_number_of_features(tmp_path, capsys):
    (tmp_path / "m.txt").write_text(TREE)
    arguments = ["import", str(tmp_path / "m.txt"), "--model", str(tmp_path / "m.json")]
    assert run([*arguments, "--n-features", "46"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "RankLib: trees of 46 features"
    assert rw.load(tmp_path / "m.json").n_features == 46
    assert run([*arguments, "--n-features", "0"]) == 2
