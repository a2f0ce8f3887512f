"""DistributedQueries: labels here, features on the workers of a real cluster of two processes, the same bits."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.dask_cluster import count_kept_groups, list_kept_groups, wait_until
from tests.unit.test_click_training import make_clicked

import rankwright as rw
from rankwright.analysis.inspection import inspect_quickly
from rankwright.cli import run
from rankwright.data import distributed_features
from rankwright.optimisers.landscape import Landscape
from rankwright.runtime import dask_calls
from rankwright.runtime.dask_session import Session

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
TRAIN = rw.make_queries(300, n_docs=30, n_features=5, random_state=0)


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def backend(client):
    return rw.Dask(client)


def make_frame(queries, rng=None):
    """Return queries as a data frame, with rows in any order."""
    frame = pd.DataFrame(queries.X, columns=[f"f{k}" for k in range(queries.n_features)])
    frame = frame.assign(label=queries.y, qid=queries.row_qid, docid=[f"d{row}" for row in range(queries.n_docs)])
    return frame if rng is None else frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)


def write_parts(frame, folder, cuts, kind="parquet"):
    """Write rows of a frame to part files, cut at these rows; return their paths."""
    folder.mkdir(exist_ok=True)
    paths = []
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(frame)], strict=True)):
        part, path = frame.iloc[start:stop], folder / f"part-{number}.{kind}"
        if kind == "parquet":
            part.to_parquet(path)
        elif kind == "csv":
            part.to_csv(path, index=False)
        elif kind == "jsonl":
            part.to_json(path, orient="records", lines=True)
        elif kind == "txt":
            names = [name for name in frame.columns if name.startswith("f")]
            lines = [
                f"{int(row.label)} qid:{row.qid} "
                + " ".join(f"{k + 1}:{getattr(row, n)!r}" for k, n in enumerate(names))
                for row in part.astype(dict.fromkeys(names, float)).itertuples()
            ]
            path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    return paths


def assert_same(found, expected):
    """Assert that distributed queries are those of one machine: labels, order, features, ids."""
    assert isinstance(found, rw.DistributedQueries)
    for name in ("y", "qid", "row_qid", "sizes"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert found.grouped().indptr.tolist() == expected.grouped().indptr.tolist()
    for one, other in ((found, expected), (found.grouped(), expected.grouped())):
        here = one.collect()
        assert here.X.tobytes() == other.X.tobytes()
        assert (here.docid is None) == (other.docid is None)
        assert here.docid is None or here.docid.tolist() == other.docid.tolist()
    assert (found.features, found.categories, found.max_grade) == (
        expected.features,
        expected.categories,
        expected.max_grade,
    )
    assert repr(found) == f"Distributed{expected!r}"
    assert [len(found), found.n_docs, found.n_features] == [len(expected), expected.n_docs, expected.n_features]


def test_many_threads_take_and_scatter_at_once(backend, monkeypatch):
    """Folds of a blend are fitted side by side: one may take rows while another makes shards of the same features."""
    rng, compress = np.random.default_rng(0), distributed_features._compress

    def compress_slowly(rows):
        time.sleep(0.005)  # for others, while this thread is in the middle of something
        return compress(rows)

    def work(at):
        time.sleep(0.02 * at)
        there, rows = twins[at % 4 == 1], choices[at]
        if rows is None:
            return sum(backend.gather(lambda part: part.n_docs, backend.scatter(there))) == here.n_docs
        return there.take(rows).collect().X.tobytes() == here.take(rows).X.tobytes()

    monkeypatch.setattr(distributed_features, "_compress", compress_slowly)
    frame = make_frame(TRAIN)
    delayed = [dask.delayed(frame.iloc[start : start + 1500]) for start in range(0, len(frame), 1500)]
    every = rw.DistributedQueries.from_frame(delayed, qid="qid", label="label", docid="docid", backend=backend)
    order = rng.permutation(300)[:290]
    there, here = every.take(order), TRAIN.take(order)
    twins = there, there.replace(y=1 - there.y.clip(0, 1))
    choices = [None if number % 2 else rng.permutation(290)[:20] for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(work, range(12))) == [True] * 12


class TestReading:
    @pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "txt"])
    @pytest.mark.parametrize("is_shuffled", [False, True])
    def test_files_are_those_of_one_machine(self, kind, is_shuffled, backend, tmp_path):
        small = TRAIN.take(range(40))
        frame = make_frame(small, np.random.default_rng(1) if is_shuffled else None)
        paths = write_parts(frame, tmp_path / "parts", [100, 101, 700], kind)
        expected = rw.read(*paths)
        assert_same(rw.DistributedQueries.read(*paths, backend=backend), expected)
        assert_same(rw.DistributedQueries.read(tmp_path / "parts" / f"part-*.{kind}", backend=backend), expected)
        assert_same(rw.DistributedQueries.read(tmp_path / "parts", backend=backend), expected)

    def test_converted_folders(self, backend, tmp_path):
        for number, cut in enumerate((slice(0, 7), slice(7, 20))):
            rw.write_queries(TRAIN.take(np.arange(len(TRAIN))[cut]), tmp_path / f"part-{number}.rwq")
        paths = sorted(tmp_path.glob("*.rwq"))
        for found in (
            rw.DistributedQueries.read(*paths, backend=backend),
            rw.DistributedQueries.read(tmp_path, backend=backend),
        ):
            assert_same(found, rw.read(*paths))
            assert found.grouped().read_rows([0, 3]).flags.writeable

    def test_addresses_that_fsspec_opens(self, client, backend, tmp_path):
        frame = make_frame(TRAIN.take(range(10)))
        paths = write_parts(frame, tmp_path / "parts", [50])
        expected = rw.read(*paths)
        assert_same(rw.DistributedQueries.read(f"file://{tmp_path}/parts/*.parquet", backend=backend), expected)

        def keep(contents):
            import fsspec

            for name, content in contents.items():
                fsspec.filesystem("memory").pipe(f"/parts/{name}", content)

        client.run(keep, {path.name: path.read_bytes() for path in paths})
        assert_same(rw.DistributedQueries.read("memory://parts", backend=backend), expected)
        with pytest.raises(rw.InputError, match=r"memory://none/\*: no file matches on the worker tcp://"):
            rw.DistributedQueries.read("memory://none/*", backend=backend)
        with pytest.raises(rw.InputError, match=r"nothing-of-the-kind://a: .*expected an address that fsspec can open"):
            rw.DistributedQueries.read("nothing-of-the-kind://a", backend=backend)

    def test_roles_weights_and_categories(self, backend, tmp_path):
        frame = make_frame(TRAIN.take(range(12)))
        frame["w"], frame["dw"] = frame.qid % 3 + 1.0, np.linspace(1, 2, len(frame))
        frame["color"] = np.where(np.arange(len(frame)) < 90, "red", "blue")
        frame.loc[5, "color"] = "green"
        roles = {"weight": "w", "doc_weight": "dw", "categorical": ["color"], "ignore": ["f1"]}
        paths = write_parts(frame, tmp_path, [77, 200], "csv")
        expected, found = rw.read(*paths, **roles), rw.DistributedQueries.read(*paths, **roles, backend=backend)
        assert_same(found, expected)
        assert found.weight.tolist() == expected.weight.tolist()
        assert found.doc_weight.tolist() == expected.doc_weight.tolist()
        assert found.categories[-1] == ("blue", "green", "red")

    def test_later_files_may_have_more_features_of_letor_text_and_tables_another_order(self, backend, tmp_path):
        (tmp_path / "a.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
        (tmp_path / "b.txt").write_text("1 qid:1 3:4\n0 qid:x 1:3\n")
        paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
        assert_same(rw.DistributedQueries.read(*paths, backend=backend), rw.read(*paths))
        found = rw.DistributedQueries.read(*paths, n_features=5, backend=backend)
        assert_same(found, rw.read(*paths, n_features=5))
        (tmp_path / "a.csv").write_text("label,qid,p,q\n1,1,2,3\n")
        (tmp_path / "b.csv").write_text("q,label,qid,p\n3.5,1,1,2\n")
        paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
        assert_same(rw.DistributedQueries.read(*paths, backend=backend), rw.read(*paths))

    def test_a_partition_may_be_empty(self, backend, tmp_path):
        frame = make_frame(TRAIN.take(range(4)))
        paths = write_parts(frame, tmp_path, [0, 60, 60])
        found = rw.DistributedQueries.read(*paths, backend=backend)
        assert_same(found, rw.read(paths[1], paths[3]))
        assert found.take([1, 0]).collect().X.tobytes() == rw.read(*paths[1::2]).take([1, 0]).X.tobytes()
        (tmp_path / "empty.txt").write_text("")
        with pytest.raises(rw.InputError, match=r"no documents in 2 partitions, such as .*empty.txt"):
            rw.DistributedQueries.read(tmp_path / "empty.txt", tmp_path / "empty.txt", backend=backend)

    @pytest.mark.parametrize(
        ("files", "said"),
        [
            ({"a.txt": "1 qid:1 1:2\n", "b.txt": "1 qid:1 1:2\n0 qid:1 1:oh\n"}, r"^\S+b\.txt:2: "),
            (
                {"a.csv": "label,qid,p\n1,1,2\n", "b.csv": "label,qid,q\n1,1,2\n"},
                r"b\.csv: no feature 'p', which \S+a\.csv has; expected the same in each partition",
            ),
            (
                {"a.csv": "label,qid,p\n1,1,2\n", "b.txt": "1 qid:1 1:2\n"},
                r"a\.csv has names of features, \S+b\.txt has none; expected partitions of one format",
            ),
            (
                {"a.csv": "label,qid,p\n1,1,2\n", "b.csv": "qid,p\n1,2\n"},
                r"a\.csv has grades, \S+b\.csv has none; expected the same in each partition",
            ),
        ],
        ids=("line", "features", "format", "grades"),
    )
    def test_bad_partitions_are_named(self, files, said, backend, tmp_path):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        with pytest.raises(rw.InputError, match=said):
            rw.DistributedQueries.read(tmp_path, backend=backend)

    def test_files_that_are_not_there(self, backend, tmp_path):
        with pytest.raises(
            rw.InputError, match=r"part-\*: no file matches on the worker tcp:.*storage that all workers"
        ):
            rw.DistributedQueries.read(tmp_path / "part-*", backend=backend)
        with pytest.raises(
            rw.InputError, match=r"a.txt: there is no such file on the worker tcp:.*that all workers share"
        ):
            rw.DistributedQueries.read(tmp_path / "a.txt", backend=backend)
        with pytest.raises(rw.InputError, match="the folder has no files on the worker"):
            rw.DistributedQueries.read(tmp_path, backend=backend)

    def test_split_queries_are_refused_if_asked_for(self, backend, tmp_path):
        frame = make_frame(TRAIN.take(range(4)))
        paths = write_parts(frame, tmp_path, [frame.qid.tolist().index(2)])
        assert len(rw.DistributedQueries.read(*paths, backend=backend, shuffle=False)) == 4
        paths = write_parts(frame, tmp_path, [3])
        with pytest.raises(rw.InputError, match=r"query 1 has rows in \S+part-0\S+ and in \S+part-1.*shuffle=False"):
            rw.DistributedQueries.read(*paths, backend=backend, shuffle=False)


class TestDaskCollections:
    @pytest.mark.parametrize("is_shuffled", [False, True])
    def test_data_frames(self, is_shuffled, backend):
        dd = pytest.importorskip("dask.dataframe")
        frame = make_frame(TRAIN.take(range(40)), np.random.default_rng(2) if is_shuffled else None)
        found = rw.DistributedQueries.from_frame(dd.from_pandas(frame, npartitions=5), qid="qid", backend=backend)
        assert_same(found, rw.Queries.from_frame(frame, qid="qid"))

    def test_arrays(self, backend):
        da = pytest.importorskip("dask.array")
        part = TRAIN.take(range(20))
        X, y, qid = (da.from_array(each, chunks=100) for each in (part.X, part.y, part.row_qid))
        found = rw.DistributedQueries.from_arrays(X, y.rechunk(77), qid, weight=np.arange(20) + 1.0, backend=backend)
        assert_same(found, rw.Queries.from_arrays(part.X, part.y, part.row_qid))
        assert found.weight.tolist() == list(range(1, 21))
        with pytest.raises(rw.InputError, match="found a ndarray; expected a Dask array for y"):
            rw.DistributedQueries.from_arrays(X, part.y, qid, backend=backend)

    def test_delayed_frames_and_errors(self, client, backend):
        from dask import delayed

        frame = make_frame(TRAIN.take(range(6)))
        parts = [frame.iloc[:50], frame.iloc[50:50], frame.iloc[50:]]
        found = rw.DistributedQueries.from_frame([delayed(part) for part in parts], backend=backend)
        assert_same(found, rw.Queries.from_frame(frame))
        bad = [delayed(parts[0]), delayed(parts[2].assign(label=np.nan))]
        with pytest.raises(rw.InputError, match=r"^partition 1: the frame, row 0"):
            rw.DistributedQueries.from_frame(bad, backend=backend)
        with pytest.raises(rw.InputError, match=r"found a DataFrame; expected a Dask data frame.*from_queries"):
            rw.DistributedQueries.from_frame(frame, backend=backend)

    def test_the_cluster_is_that_of_the_current_client(self, client):
        assert rw.DistributedQueries.from_queries(TRAIN).backend == rw.Dask(client)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The folder of files with the training data in any order, and what one machine reads of them."""
    folder = tmp_path_factory.mktemp("train")
    paths = write_parts(make_frame(TRAIN, np.random.default_rng(3)), folder, [1000, 5000, 5001])
    return folder, rw.read(*paths)


RANKERS = [
    rw.ListNet(max_iter=3),
    rw.RankSVM(max_iter=3),
    rw.DirectRank(n_restarts=1, max_iter=2),
    rw.AdaRank(n_estimators=3),
    rw.RankBoost(n_estimators=3),
    rw.Regression(scale="query"),
]


class TestFits:
    @pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
    def test_models_have_the_bits_of_one_machine(self, ranker, backend, parts):
        folder, here = parts
        there = rw.DistributedQueries.read(folder, backend=backend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a few rounds do not converge
            expected = ranker.set_params(measure="ndcg@5", backend=rw.Serial()).fit(here)
            scores, history = expected.predict(here), expected.history_
            found = ranker.set_params(backend=None).fit(there)
        assert found.predict(there).tobytes() == scores.tobytes()
        assert found.predict(here).tobytes() == scores.tobytes()
        assert found.history_ == history
        assert found.score(there) == found.score(here)

    def test_partitions_change_nothing(self, backend, tmp_path):
        frame = make_frame(TRAIN.take(range(200)))
        models = []
        for number, cuts in enumerate(([10], [3000], [17, 99, 2000, 4000])):
            folder = tmp_path / str(number)
            write_parts(frame.sample(frac=1, random_state=number), folder, cuts)
            train = rw.DistributedQueries.read(folder, backend=backend)
            models.append(rw.Regression().fit(train).predict(TRAIN).tobytes())
        assert len(set(models)) == 1

    def test_parts_of_it_have_the_bits_of_parts_in_memory(self, backend, parts):
        folder, here = parts
        there = rw.DistributedQueries.read(folder, backend=backend)
        half, other = np.arange(0, 300, 2), np.arange(299, 0, -2)
        train, valid = there.take(half), there.take(other)
        assert_same(train, here.take(half))
        relabelled = [
            part.replace(y=np.minimum(part.y, 1.0), weight=np.arange(len(part)) + 1.0)
            for part in (train, here.take(half))
        ]
        assert_same(relabelled[0], relabelled[1])
        found, expected = (
            rw.RankBoost(n_estimators=4).fit(one, valid=other).predict(TRAIN)
            for one, other in zip(relabelled, (valid, here.take(other)), strict=True)
        )
        assert found.tobytes() == expected.tobytes()

    def test_evaluation_ranking_and_scores(self, backend, parts):
        folder, here = parts
        there = rw.DistributedQueries.read(folder, backend=backend)
        ranker = rw.Regression(scale="query").fit(here)
        for scored in (ranker, ranker.to_model(), here.y):
            found, expected = (rw.evaluate(scored, each, "ndcg@5,map,mrr(ties=docid)") for each in (there, here))
            assert found.means == expected.means
            assert found.values.tobytes() == expected.values.tobytes()
        ranked = ranker.rank(there, k=3)
        assert {query: ids.tolist() for query, ids in ranked.items()} == {
            query: ids.tolist() for query, ids in ranker.rank(here, k=3).items()
        }

    def test_queries_of_this_machine(self, backend):
        there = rw.DistributedQueries.from_queries(TRAIN, backend)
        assert_same(there, TRAIN)
        assert (
            rw.Regression().fit(there).predict(TRAIN).tobytes() == rw.Regression().fit(TRAIN).predict(TRAIN).tobytes()
        )

    def test_clicks_and_positions_go_with_their_rows(self, backend):
        made, rng = make_clicked(20), np.random.default_rng(0)
        here = made.replace(position=rng.integers(1, 6, made.n_docs))
        there = rw.DistributedQueries.from_queries(here, backend)
        array = pytest.importorskip("dask.array").from_array
        given = {"clicks": here.clicks, "position": here.position, "backend": backend}
        others = rw.DistributedQueries.from_arrays(
            *(
                array(values, chunks=(50, -1)[: values.ndim])
                for values in (here.X, np.zeros(made.n_docs), here.row_qid)
            ),
            **given,
        )
        measure, scores = "ndcg@5(clicks=coec)", rng.normal(size=made.n_docs)
        for far in (there, others):
            assert far.position.tolist() == here.position.tolist()
            assert far.clicks.n_clicked.tolist() == here.clicks.n_clicked.tolist()
            assert rw.evaluate(scores, far, measure)[measure] == rw.evaluate(scores, here, measure)[measure]
            one, other = (rw.DirectRank(measure=measure, n_restarts=1).fit(each) for each in (here, far))
            assert one.coef_.tobytes() == other.coef_.tobytes()
        with pytest.raises(rw.InputError, match="LightGBM debiases positions on one machine only"):
            rw.LambdaMART(lambdas="lightgbm", backend=backend).fit(there.replace(y=np.zeros(made.n_docs)))

    def test_large_data_keep_their_order(self, backend, parts, monkeypatch):
        folder, here = parts
        for module in ("rankwright.data.row_hashes", "rankwright.rankers.base"):
            monkeypatch.setattr(f"{module}.LARGEST", 1000)
        there = rw.DistributedQueries.read(folder, backend=backend)
        assert rw.ListNet(max_iter=3).fit(there).predict(here).tobytes() == (
            rw.ListNet(max_iter=3).fit(here).predict(here).tobytes()
        )


class TestInspection:
    def test_findings_are_those_of_one_machine(self, backend, tmp_path):
        rng = np.random.default_rng(0)
        frame = make_frame(TRAIN.take(range(180)))
        frame = frame.assign(copy=frame.f0, leak=frame.label * 2, constant=1.0, kind=rng.choice(["a", "b"], len(frame)))
        frame.loc[::7, "f1"] = np.nan
        roles = {"categorical": ["kind"]}
        paths = write_parts(frame, tmp_path, [800, 3000], "csv")
        other = write_parts(frame.iloc[: len(frame) // 2], tmp_path / "other", [99], "csv")
        here, there = (
            rw.inspect(read(*paths, **roles), read(*other, **roles))
            for read in (rw.read, lambda *files, **named: rw.DistributedQueries.read(*files, **named, backend=backend))
        )
        assert {finding.kind for finding in here.findings} >= {
            "duplicated-columns",
            "label-leak",
            "constant-feature",
            "shared-queries",
        }
        exact = ("missing", "zeros", "low", "high", "varying", "keys")
        assert {finding.kind for finding in there.findings} == {finding.kind for finding in here.findings}
        for name in exact:
            assert getattr(there.features, name).tolist() == getattr(here.features, name).tolist(), name

    def test_quick_findings(self, backend):
        leaking = TRAIN.with_X(np.column_stack([TRAIN.X[:, :4], 7 - 2 * TRAIN.y]).astype(np.float32))
        found, expected = (
            [str(finding) for finding in inspect_quickly(each, each)]
            for each in (rw.DistributedQueries.from_queries(leaking, backend), leaking)
        )
        assert found
        assert [text[:30] for text in found] == [text[:30] for text in expected]


class TestPlace:
    def test_features_are_never_here(self, backend, tmp_path, monkeypatch):
        wide = rw.Queries.from_arrays(np.tile(TRAIN.X, 20), TRAIN.y, TRAIN.row_qid)
        rw.write_queries(wide, tmp_path / "wide.rwq")
        received = []

        def send_all(session, messages, own=dask_calls._send_all):
            answers = own(session, messages)
            received.extend(sum(len(frame) for frame in answer["frames"]) for answer in answers)
            return answers

        monkeypatch.setattr(dask_calls, "_send_all", send_all)
        there = rw.DistributedQueries.read(tmp_path / "wide.rwq", backend=backend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a few rounds do not converge
            fitted = rw.LinearRanker(max_iter=2).fit(there)
            moved = Landscape.of(there, rw.NDCG(5), backend)
        point = moved.evaluate(np.ones(100))
        moved.exact_steps = False  # as on large data, where each step is a call on the results of the one before
        for step in range(60):
            point = moved.step(point, step, 0.1)
        rw.evaluate(fitted, there, "ndcg@5")
        assert len(received) > 60
        assert max(received) < 0.2 * wide.X.nbytes  # labels, scores, 1,100 rows of a sample
        received.clear()
        params = {"n_estimators": 60, "max_bins": 64}  # more rounds than results stay there only
        boosted = rw.RankBoost(**params).fit(there)
        assert max(received) < 0.12 * wide.X.nbytes  # 1,000 rows of a sample; the documents in bins have 0.125 of it
        assert boosted.scorer_(wide.X).tobytes() == rw.RankBoost(**params).fit(wide).scorer_(wide.X).tobytes()
        expected = Landscape.of(wide, rw.NDCG(5), rw.Serial())
        assert point.value == pytest.approx(expected.evaluate(point.coef).value, abs=1e-3)

    @pytest.mark.parametrize(
        "use",
        [
            lambda X: np.asarray(X),
            lambda X: X[:, 0],
            lambda X: X[3],
            lambda X: X.astype(float),
            lambda X: X.T,
            lambda X: pickle.dumps(X),
        ],
    )
    def test_values_are_refused(self, use, backend):
        there = rw.DistributedQueries.from_queries(TRAIN.take([0, 1]), backend)
        with pytest.raises(
            rw.InputError, match=r"on the workers of tcp://.*read_rows\(rows\), or all with queries.coll"
        ):
            use(there.X)

    def test_what_cannot_be_done_from_here_is_refused(self, backend, tmp_path):
        there = rw.DistributedQueries.from_queries(TRAIN.take([0, 1]), backend)
        for fails in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(rw.InputError, match=r"cannot be pickled, copied or saved from here"):
                fails(there)
        for fails in (
            lambda: rw.write_queries(there, tmp_path / "q.rwq"),
            lambda: rw.write_letor(there, tmp_path / "q"),
        ):
            with pytest.raises(rw.InputError, match="on the workers of"):
                fails()
        assert not list(tmp_path.iterdir())
        with pytest.raises(
            rw.InputError, match=r"features are on the workers of .*backend=Serial\(\); leave backend out"
        ):
            rw.ListNet(backend=rw.Serial()).fit(there)
        mart = rw.MART(n_estimators=2).fit(TRAIN.take(range(20)))
        with pytest.raises(rw.InputError, match=r"polish_model needs them here: .*take\(positions\).collect"):
            rw.polish_model(mart, there)
        assert mart.contributions(there).tobytes() == mart.contributions(TRAIN.take([0, 1])).tobytes()
        with pytest.raises(rw.InputError, match="expected that backend, or None"):
            rw.Serial().scatter(there)

    def test_partitions_are_freed_when_shards_are_made(self, client, backend, parts):
        before, others = list_kept_groups(client)
        session = Session.of_client(client)
        there = rw.DistributedQueries.read(parts[0], backend=backend).grouped()
        shards = backend.scatter(there)
        assert backend.scatter(there) is shards
        assert len(set(session.in_use) - others) == 2  # the partitions are not among them
        del there, shards
        assert set(session.in_use) <= others
        assert wait_until(lambda: count_kept_groups(client) <= before)

    def test_rows_that_are_read(self, backend, parts):
        folder, here = parts
        there = rw.DistributedQueries.read(folder, backend=backend)
        rows = [3, 8700, 0, 17, 17]
        for _ in range(2):
            assert there.read_rows(rows).tobytes() == here.read_rows(rows).tobytes()
            backend.scatter(there.grouped())  # after which rows are those of shards


def kill_one(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


class TestLosses:
    def test_partitions_are_read_again(self, client, backend, parts):
        folder, here = parts
        there = rw.DistributedQueries.read(folder, backend=backend)
        kill_one(client)
        assert there.collect().X.tobytes() == here.X.tobytes()
        shards = backend.scatter(there.grouped())
        kill_one(client)
        found = np.concatenate(backend.gather(lambda part: part.X, shards))
        assert found.tobytes() == here.grouped().X.tobytes()

    def test_a_fit_survives_to_the_same_bits(self, backend, parts, tmp_path):
        def make_objective(marker):
            def squares(scores, queries):
                if marker is not None and not marker.exists():
                    marker.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return 0.5 * float(((scores - queries.y) ** 2).sum()), scores - queries.y

            return squares

        folder, here = parts
        there = rw.DistributedQueries.read(folder, backend=backend)
        found = rw.LinearRanker(objective=make_objective(tmp_path / "killed"), max_iter=5).fit(there)
        assert (tmp_path / "killed").exists()
        expected = rw.LinearRanker(objective=make_objective(None), max_iter=5, backend=rw.Serial()).fit(here)
        assert found.predict(here).tobytes() == expected.predict(here).tobytes()

    def test_delayed_partitions_are_computed_again(self, client, backend):
        dask = pytest.importorskip("dask")
        frame = make_frame(TRAIN.take(range(30)))
        there = rw.DistributedQueries.from_frame(
            [dask.delayed(frame.iloc[:333]), dask.delayed(frame.iloc[333:])], backend=backend
        )
        kill_one(client)
        assert there.collect().X.tobytes() == frame[["f0", "f1", "f2", "f3", "f4"]].to_numpy().tobytes()

    def test_a_worker_that_dies_while_it_reads(self, client, backend, tmp_path):
        from dask import delayed

        marker, frame = tmp_path / "killed", make_frame(TRAIN.take(range(3)))

        def load():
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return frame

        there = rw.DistributedQueries.from_frame([delayed(load)()], backend=backend)
        assert marker.exists()
        assert_same(there, rw.Queries.from_frame(frame))


class TestFilesOfScores:
    def test_they_are_those_of_one_machine(self, backend, parts, tmp_path):
        folder, here = parts
        model = rw.Regression().fit(here)
        files = rw.score_files(model, folder, tmp_path / "out", backend=backend)
        assert [file.rpartition("/")[2] for file in files] == [f"part-{number}.parquet.scores" for number in range(4)]
        scores = np.concatenate([np.loadtxt(file, ndmin=1) for file in files])
        assert scores.tobytes() == model.predict(here).tobytes()
        inside = rw.score_files(model, folder, folder / "scores", backend=backend)
        try:
            assert rw.DistributedQueries.read(folder, backend=backend).n_docs == here.n_docs
            assert len(rw.score_files(model, f"file://{folder}", tmp_path / "again", backend=backend)) == len(files)
        finally:
            shutil.rmtree(folder / "scores")
        assert len(inside) == len(files)
        with pytest.raises(
            rw.InputError, match=r"query \S+ has rows in \S+ and in \S+ the model scales features within"
        ):
            rw.score_files(rw.Regression(scale="query").fit(here), folder, tmp_path / "other", backend=backend)
        assert not (tmp_path / "other").exists()

    def test_addresses_and_bad_lines(self, client, backend, parts, tmp_path):
        _, here = parts
        model = rw.Regression().fit(here.replace(features=None))
        write_parts(make_frame(TRAIN.take(range(3))), tmp_path, [9], "txt")
        files = rw.score_files(model, f"file://{tmp_path}/part-*.txt", "memory://scores", backend=backend)
        found = client.run(lambda: __import__("fsspec").filesystem("memory").find("/scores"))
        assert sorted(f"memory:/{file}" for own in found.values() for file in own) == files
        (tmp_path / "part-2.txt").write_text("1 qid:1 1:2\n1 qid:1 1:oh\n")
        with pytest.raises(rw.InputError, match=r"^\S+part-2\.txt:2: "):
            rw.score_files(model, tmp_path, tmp_path / "out", backend=backend)

    @pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs a path that differs between processes")
    def test_a_folder_that_workers_do_not_share(self, backend, client, tmp_path):
        def move(folder):
            before = str(Path.cwd())
            os.chdir(folder)
            return before

        assert wait_until(lambda: backend.n_workers == 2)  # a test before may have killed one
        rw.write_letor(TRAIN.take([0, 1]), tmp_path / "part.txt")
        before = client.run(move, str(tmp_path))
        try:
            for number, worker in enumerate(sorted(before)):
                (tmp_path / str(number)).mkdir()
                client.run(move, str(tmp_path / str(number)), workers=[worker])
            model = rw.Regression().fit(TRAIN)
            with pytest.raises(rw.InputError, match=r"/scores: the worker \S+ does not see what \S+ writes there"):
                rw.score_files(model, tmp_path / "part.txt", "/proc/self/cwd/scores", backend=backend)
            assert not list(tmp_path.glob("*/scores/*"))
        finally:
            for worker, folder in before.items():
                client.run(move, folder, workers=[worker])


class TestCommandLine:
    def test_data_of_the_workers(self, client, parts, tmp_path, capsys):
        folder, here = parts
        models = []
        for train, where in (
            (f"{folder}/part-*.parquet", client.scheduler.address),
            (folder, client.scheduler.address),
        ):
            model = tmp_path / f"{len(models)}.json"
            command = ["fit", "regression", "--train", str(train), "--valid", str(folder / "part-0.parquet")]
            assert run([*command, "--model", str(model), "--backend", where]) == 0, capsys.readouterr().err
            models.append(model)
        assert rw.load(models[0]).predict(here).tobytes() == rw.load(models[1]).predict(here).tobytes()
        assert rw.load(models[0]).predict(here).tobytes() == rw.Regression().fit(here).predict(here).tobytes()
        capsys.readouterr()
        options = ["--model", str(models[0]), "--backend", client.scheduler.address, "--data", f"{folder}/*.parquet"]
        assert run(["evaluate", *options, "--json"]) == 0, capsys.readouterr().err
        expected = rw.evaluate(rw.load(models[0]), here, "ndcg@10")["ndcg@10"]
        assert json.loads(capsys.readouterr().out)["means"]["ndcg@10"] == expected
        assert run(["predict", *options, "--out", str(tmp_path / "scores")]) == 0, capsys.readouterr().err
        assert len(list((tmp_path / "scores").iterdir())) == 4

    def test_what_needs_a_cluster_or_a_folder(self, client, parts, tmp_path, capsys):
        folder, here = parts
        model = tmp_path / "model.json"
        assert run(["fit", "regression", "--train", "s3://data/train", "--model", str(model)]) == 2
        assert "s3://data/train: an address; expected --backend with a Dask scheduler" in capsys.readouterr().err
        rw.save(rw.Regression().fit(here), model)
        options = ["--model", str(model), "--data", str(folder), "--backend", client.scheduler.address]
        assert run(["predict", *options, "--run", str(tmp_path / "run")]) == 2
        assert "expected --out with a folder, and no --run" in capsys.readouterr().err
