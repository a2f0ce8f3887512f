"""Ordinary mistakes with data: each is an error or a warning of one line that names the way out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankwright as rw
from rankwright.cli import run

QUERIES = rw.make_queries(12, n_docs=6, n_features=3, random_state=0)
NAMES = ("bm25", "clicks", "price")


def make_frame() -> pd.DataFrame:
    """Return the queries as a data frame with names of columns."""
    frame = pd.DataFrame(QUERIES.X.astype(float), columns=list(NAMES))
    return frame.assign(qid=QUERIES.row_qid, label=QUERIES.y)


class TestColumnNames:
    @pytest.mark.parametrize("role", ["ignore", "features", "categorical"])
    def test_takes_one_name_as_a_text(self, role: str, tmp_path: Path) -> None:
        make_frame().to_csv(tmp_path / "a.csv", index=False)
        one, several = (rw.read(tmp_path / "a.csv", **{role: value}) for value in ("clicks", ["clicks"]))
        framed = rw.Queries.from_frame(make_frame(), **{role: "clicks"})  # type: ignore[arg-type]
        assert one.features == several.features == framed.features

    @pytest.mark.parametrize(("role", "value"), [("qid", 3), ("label", ["label"]), ("ignore", [3]), ("features", 7)])
    def test_refuses_what_is_no_name(self, role: str, value: object, tmp_path: Path) -> None:
        make_frame().to_csv(tmp_path / "a.csv", index=False)
        with pytest.raises(rw.InputError, match=re.escape(f"{role}={value!r}; expected ")):
            rw.read(tmp_path / "a.csv", **{role: value})  # type: ignore[arg-type]

    def test_names_decimal_commas(self, tmp_path: Path) -> None:
        make_frame().to_csv(tmp_path / "a.csv", index=False, sep=";", decimal=",")
        with pytest.raises(
            rw.InputError, match=r"decimal commas: 'bm25' .* pandas.read_csv\(file, sep=';', decimal=','"
        ):
            rw.read(tmp_path / "a.csv")

    def test_names_the_way_out_for_grades_that_are_words(self, tmp_path: Path) -> None:
        make_frame().assign(label="good").to_csv(tmp_path / "a.csv", index=False)
        with pytest.raises(
            rw.InputError, match=r"'good'; expected numbers. Write it as numbers, .* label= \(--label\)"
        ):
            rw.read(tmp_path / "a.csv")

    def test_checks_the_number_of_features_of_tables(self, tmp_path: Path) -> None:
        make_frame().to_csv(tmp_path / "a.csv", index=False)
        assert rw.read(tmp_path / "a.csv", n_features=3).n_features == 3
        with pytest.raises(rw.InputError, match="n_features=-1; expected a whole number"):
            rw.read(tmp_path / "a.csv", n_features=-1)
        with pytest.raises(rw.InputError, match=r"a.csv: 3 columns of features; expected 5"):
            rw.read(tmp_path / "a.csv", n_features=5)


@pytest.mark.parametrize(
    ("call", "way_out"),
    [
        (lambda: rw.read(["a.csv"]), r"rw.read\(\*files\)"),  # type: ignore[arg-type]
        (lambda: rw.read(make_frame()), "rw.Queries.from_frame"),
        (lambda: rw.inspect("a.csv"), r"rw.read\(file\)"),  # type: ignore[arg-type]
        (lambda: rw.inspect(QUERIES, make_frame()), "rw.Queries.from_frame"),
    ],
)
def test_names_the_function_that_takes_what_was_given(call, way_out: str) -> None:
    with pytest.raises(rw.InputError, match=way_out):
        call()


class TestModels:
    def test_warns_where_a_model_without_names_scores_a_table(self, tmp_path: Path, capsys) -> None:
        model = rw.Regression().fit(QUERIES.X, QUERIES.y, qid=QUERIES.row_qid)
        rw.save(model, tmp_path / "m.json")
        make_frame()[[*NAMES[::-1], "qid"]].to_csv(tmp_path / "a.csv", index=False)
        with pytest.warns(
            rw.UnnamedFeaturesWarning, match="columns 'price', 'clicks', 'bm25' are taken in their order"
        ):
            model.predict(rw.read(tmp_path / "a.csv"))
        files = ["--model", tmp_path / "m.json", "--data", tmp_path / "a.csv", "--out", tmp_path / "s.txt"]
        assert run(["predict", *map(str, files)]) == 0
        assert capsys.readouterr().err.count("are taken in their order") == 1
        with pytest.warns(UserWarning, match="names") as found:
            model.predict(make_frame()[list(NAMES)])
        assert len(found) == 1  # not scikit-learn's beside ours
        model.predict(QUERIES)  # without names there is nothing to warn of
        model.predict(QUERIES.replace(features=("1", "2", "3")))

    def test_names_the_way_out_for_frames_with_other_columns(self) -> None:
        frame = make_frame()
        model = rw.Regression().fit(frame[list(NAMES)], QUERIES.y, qid=QUERIES.row_qid).to_model()
        for other in (frame, frame[list(NAMES[::-1])]):
            with pytest.raises(rw.InputError, match=r"frame\[list\(model.features\)\]"):
                model.predict(other)

    @pytest.mark.parametrize("name", ["a.csv", "a.rwq"])
    def test_refuses_to_evaluate_without_grades_before_scoring(self, name: str, tmp_path: Path, capsys) -> None:
        frame = make_frame()
        rw.save(rw.Regression().fit(frame[list(NAMES)], QUERIES.y, qid=QUERIES.row_qid), tmp_path / "m.json")
        bare = frame.drop(columns="label").assign(bm25=np.nan)  # scoring would fail by this
        bare.to_csv(tmp_path / "a.csv", index=False)
        rw.convert(tmp_path / "a.csv", out=tmp_path / "a.rwq")
        for command in (["evaluate", "--data"], ["fit", "regression", "--model", str(tmp_path / "x.json"), "--train"]):
            model = ["--model", str(tmp_path / "m.json")] if command[0] == "evaluate" else []
            assert run([*command, str(tmp_path / name), *model]) == 2
            assert f"{name}: no column of grades" in capsys.readouterr().err
        assert not (tmp_path / "x.json").exists()


def test_experiments_refuse_documents_without_grades_before_they_start(tmp_path: Path, capsys) -> None:
    make_frame().drop(columns="label").to_csv(tmp_path / "a.csv", index=False)
    options = ["--data", tmp_path / "a.csv", "--rankers", "regression", "--out", tmp_path / "results"]
    assert run(["experiment", *map(str, options)]) == 2
    assert "a.csv: no column of grades" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


class TestWriting:
    @pytest.mark.parametrize("lost", ["weight", "doc_weight", "features"])
    def test_letor_text_refuses_what_it_cannot_hold(self, lost: str, tmp_path: Path) -> None:
        values = {"weight": np.ones(12), "doc_weight": np.ones(QUERIES.n_docs), "features": NAMES}
        queries = QUERIES.replace(**{lost: values[lost]})
        with pytest.raises(rw.InputError, match=rf"queries.replace\({lost}=None\), .* rw.write_queries"):
            rw.write_letor(queries, tmp_path / "a.txt")
        assert not (tmp_path / "a.txt").exists()
        rw.write_letor(queries.replace(**{lost: None}), tmp_path / "a.txt")

    def test_converted_folders_agree_on_grades_and_weights(self, tmp_path: Path) -> None:
        rw.write_queries(QUERIES, tmp_path / "a.rwq")
        for name, lost in {"y": "grades", "weight": "query weights"}.items():
            other = QUERIES.replace(y=None) if name == "y" else QUERIES.replace(weight=np.ones(12))
            rw.write_queries(other, tmp_path / "b.rwq")
            for order in (["a.rwq", "b.rwq"], ["b.rwq", "a.rwq"]):
                with pytest.raises(rw.InputError, match=rf"rwq has {lost}, .*rwq has none"):
                    rw.read(*(tmp_path / file for file in order))

    def test_runs_name_the_document_that_occurs_twice(self, tmp_path: Path) -> None:
        queries = QUERIES.replace(docid=np.array(["same"] * QUERIES.n_docs))
        with pytest.raises(rw.InputError, match=r"have the id 'same'; .* Keep one row of it"):
            rw.write_run(queries, queries.y, tmp_path / "a.run")

    def test_runs_name_the_way_out_for_ids_with_spaces(self, tmp_path: Path) -> None:
        queries = QUERIES.replace(qid=np.array([f"two words {i}" for i in range(12)]))
        with pytest.raises(rw.InputError, match=r"has spaces or '#'\. Use ids without them"):
            rw.write_run(queries, queries.y, tmp_path / "a.run")


class TestFramesOfAModel:
    """What a model says to columns that differ from those of training."""

    fitted = rw.Regression().fit(rw.Queries.from_frame(make_frame()))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda frame: frame.drop(columns="price"), "have no feature 'price', which the model was trained on"),
            (lambda frame: frame.rename(columns={"clicks": "clcks"}), "no feature 'clicks', .* did you mean clcks"),
            (
                lambda frame: frame.assign(other=1.0),
                r"other columns \('other'\) beside the 3 features .*by name: frame\[",
            ),
            (lambda frame: frame[[*NAMES[::-1], "qid"]], "feature 1 is called 'price'.* 'bm25' in its place"),
        ],
    )
    def test_names_the_columns_of_queries_and_frames(self, change: Any, message: str) -> None:
        changed = change(make_frame())
        for ranker in (self.fitted, self.fitted.to_model()):
            with pytest.raises(rw.InputError, match=message):
                ranker.predict(rw.Queries.from_frame(changed))
        with pytest.raises(rw.InputError, match=message):
            self.fitted.to_model().predict(changed.drop(columns=["qid", "label"], errors="ignore"))

    def test_does_not_ask_for_categories_of_columns_that_are_no_features(self) -> None:
        frame = make_frame().assign(url="x")
        for ranker in (self.fitted, self.fitted.to_model()):
            with pytest.raises(rw.InputError, match=r"'url'.* Choose columns by name: frame\[list\("):
                ranker.predict(frame[[*NAMES, "url"]])
            assert len(ranker.predict(frame[list(NAMES)])) == len(frame)

    def test_names_the_columns_of_validation_rows(self) -> None:
        frame, train = make_frame(), rw.Queries.from_frame(make_frame())
        fewer = frame[["bm25", "clicks"]]
        for valid in (
            (fewer, frame.label, frame.qid),
            rw.Queries.from_frame(frame.drop(columns="price")),
        ):
            with pytest.raises(rw.InputError, match="the validation documents have no feature 'price', which training"):
                rw.Regression().fit(train, valid=valid)
        unnamed = rw.Queries.from_arrays(QUERIES.X[:, :2], QUERIES.y, QUERIES.row_qid)
        with pytest.raises(rw.InputError, match="the validation documents have 2 features; training has 3"):
            rw.Regression().fit(train, valid=unnamed)


class TestArguments:
    """What functions say to an argument of another kind."""

    def test_compare_scores(self) -> None:
        with pytest.raises(rw.InputError, match="scores is a list; expected a mapping of names to models or scores"):
            rw.compare_scores([QUERIES.y], QUERIES)  # type: ignore[arg-type]
        with pytest.raises(rw.InputError, match=r"queries is a DataFrame; expected Queries \(rw.Queries.from_frame"):
            rw.compare_scores({"a": QUERIES.y}, make_frame())  # type: ignore[arg-type]

    def test_evaluate(self) -> None:
        said = "^a model with a DataFrame; expected Queries as the second argument: .*from_frame"
        with pytest.raises(rw.InputError, match=said):
            rw.evaluate(TestFramesOfAModel.fitted, make_frame(), "map")  # type: ignore[arg-type]

    def test_fit(self) -> None:
        with pytest.raises(rw.InputError, match=r"fit takes no group; pass qid=.*from_arrays\(X, y, group="):
            rw.Regression().fit(QUERIES.X, QUERIES.y, group=[6] * 12)
        for name in ("train.txt", Path("train.txt")):
            with pytest.raises(
                rw.InputError, match=r"'train.txt'; expected documents: read the file first, fit\(rw.read"
            ):
                rw.Regression().fit(name)

    def test_measures_of_functions(self) -> None:
        with pytest.raises(rw.InputError, match="make_measure makes one of a function"):
            rw.parse_measure(np.mean)  # type: ignore[arg-type]
        for value in (None, "much", [1, 2]):
            measure = rw.make_measure(lambda grades, value=value: value, name="no_number")
            with pytest.raises(rw.InputError, match=r"measure no_number returned .*; expected a number from 0 to 1"):
                rw.evaluate(QUERIES.y, QUERIES, measure)

    def test_folds(self, tmp_path: Path) -> None:
        for name in ("train.txt", "vali.txt", "test.txt"):
            rw.write_letor(QUERIES, tmp_path / name)
        folds = rw.read_folds(tmp_path)
        with pytest.raises(IndexError, match="no fold 5; there are the folds 0 to 0"):
            folds[5]
        assert len(list(folds)) == 1

    @pytest.mark.parametrize(
        ("arguments", "is_said"),
        [
            (["fit", "mart", "--n-estimators", "3"], True),
            (["fit", "mart", "--foo", "3"], False),
            (["evaluate", "--n-estimators", "3"], False),
        ],
    )
    def test_options_that_are_parameters(
        self, arguments: list[str], is_said: bool, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(arguments) == 2
        error = capsys.readouterr().err
        assert "No such option" in error
        assert ("given by --set n_estimators=VALUE" in error) == is_said


def test_group_sizes_say_what_they_add_up_to() -> None:
    with pytest.raises(rw.InputError, match="add up to 66; expected the 69 rows"):
        rw.Queries.from_arrays(QUERIES.X, QUERIES.y, group=[6] * 11)
    with pytest.raises(rw.InputError, match="expected the size of each query"):
        rw.Queries.from_arrays(QUERIES.X, QUERIES.y, group=[6.5] * 11)


def test_a_second_column_of_grades_is_not_a_feature_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("qid,label,other,bm25\n1,1,0,2.5\n1,0,1,1.5\n")
    with pytest.warns(rw.InspectionWarning, match="'label' among the features may be grades too.*--ignore"):
        assert rw.read(tmp_path / "a.csv", label="other").features == ("label", "bm25")
    for chosen in ({"ignore": "label"}, {"features": ["bm25"]}):  # without a warning
        assert rw.read(tmp_path / "a.csv", label="other", **chosen).features == ("bm25",)
