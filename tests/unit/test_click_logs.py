"""Click logs: what is read, what is counted, and what is said of bad logs."""

from __future__ import annotations

import json
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.reference.clicks import count_log

import rankwright as rw
from rankwright.data import click_counting, click_records


def make_frame(n_sessions: int = 300, seed: int = 0, n_positions: int = 4) -> pd.DataFrame:
    """Return impressions of lists of some documents, one query per session."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(n_sessions):
        query = f"query {rng.integers(0, 8)}"
        for position, doc in enumerate(rng.permutation(6)[:n_positions], 1):
            rows.append((f"s{session}", query, f"d{doc}", position, bool(rng.random() < 0.5 / position)))
    return pd.DataFrame(rows, columns=["session", "query", "docid", "position", "clicked"])


def count(log: rw.ClickLog) -> dict[tuple, tuple[int, int]]:
    """Return impressions and clicks by query, document, position, ranker and group."""
    query, pair = log.qid[log.pair_query[log.cell_pair]], log.docid[log.cell_pair]
    ranker = [""] * len(pair) if log.ranker is None else [log.rankers[i] for i in log.ranker]
    group = [""] * len(pair) if log.group is None else [log.groups[i] if i >= 0 else "" for i in log.group]
    keys = zip(query.tolist(), pair.tolist(), log.position.tolist(), ranker, group, strict=True)
    return dict(zip(keys, zip(log.n_shown.tolist(), log.n_clicked.tolist(), strict=True), strict=True))


def count_slowly(frame: pd.DataFrame) -> dict[tuple, tuple[int, int]]:
    shown: Counter = Counter()
    clicked: Counter = Counter()
    for row in frame.itertuples():
        group = getattr(row, "shuffled", "")
        key = (row.query, row.docid, row.position, getattr(row, "ranker", ""), group if isinstance(group, str) else "")
        shown[key] += 1
        clicked[key] += bool(row.clicked)
    return {key: (shown[key], clicked[key]) for key in sorted(shown)}


def read(source, **options) -> rw.ClickLog:
    """Read a log that has no faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return rw.read_clicks(source, **{"min_impressions": 0} | options)


def read_faulty(source, *kinds: str, **options) -> rw.ClickLog:
    """Read a log whose findings are of these kinds, each of which is a warning too."""
    with pytest.warns(rw.ClickLogWarning) as found:
        log = rw.read_clicks(source, **{"min_impressions": 0} | options)
    assert [each.kind for each in log.findings] == list(kinds)
    assert [str(each.message) for each in found] == [str(each) for each in log.findings]
    assert all(each.kind in str(log) and each.kind in log._repr_html_() for each in log.findings)
    assert [each["kind"] for each in log.to_json()["findings"]] == list(kinds)
    return log


@pytest.mark.parametrize("session", [None, "session"])
def test_every_format_has_the_same_counts(tmp_path, session):
    frame = make_frame()
    frame["ranker"] = np.where(frame["session"].str[1:].astype(int) % 2, "new", "old")
    frame["shuffled"] = np.where(frame["position"] < 3, "1,2", None)
    expected = count_slowly(frame)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv.gz", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    frame.to_feather(tmp_path / "a.feather")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    categories = frame.astype(dict.fromkeys(["query", "docid", "session"], "category"))
    sources = [tmp_path / name for name in ("a.csv", "a.tsv.gz", "a.parquet", "a.feather", "a.jsonl")]
    for source in (*sources, frame, categories, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        log = read(source, session=session, ranker="ranker", shuffled="shuffled")
        assert count(log) == expected
        assert list(count(log)) == list(expected)  # in the order of ids
        table = log.to_pandas()
        assert table["n_clicked"].tolist() == log.n_clicked.tolist()
        assert list(zip(table["qid"], table["ranker"], table["shuffled"].fillna(""), strict=True)) == [
            (key[0], *key[3:]) for key in expected
        ]
        assert len(log) == 8
        assert log.n_lists.sum() == 300
        assert (
            dict(zip(log.qid, log.n_lists, strict=True)) == frame[frame.position == 1]["query"].value_counts().to_dict()
        )


def test_several_files_and_patterns_are_one_log(tmp_path):
    frame = make_frame()
    frame[:500].to_csv(tmp_path / "1.csv", index=False)
    frame[500:][["clicked", "session", "docid", "query", "position"]].to_csv(tmp_path / "2.csv", index=False)
    for source in (tmp_path / "*.csv", tmp_path, [tmp_path / "1.csv", tmp_path / "2.csv"]):
        assert count(read(source, session="session")) == count_slowly(frame)
    frame[500:].rename(columns={"query": "qid", "clicked": "click"}).to_csv(tmp_path / "2.csv", index=False)
    assert count(read(tmp_path)) == count_slowly(frame)


def test_whole_numbers_are_ids_in_text_and_tables(tmp_path):
    frame = make_frame().assign(
        query=lambda f: f["query"].str[-1].astype(int), docid=lambda f: f["docid"].str[1:].astype(int)
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source in (frame, tmp_path / "a.csv", frame.astype({"query": "Int64", "docid": float})):
        log = read(source)
        assert log.qid.dtype.kind == log.docid.dtype.kind == "i"
        assert count(log) == count_slowly(frame)
    with pytest.raises(rw.InputError, match="expected ids of one kind"):
        texts = frame.astype({"docid": str})
        texts.to_parquet(tmp_path / "1.parquet")
        frame.to_parquet(tmp_path / "2.parquet")
        read([tmp_path / "1.parquet", tmp_path / "2.parquet"])


def test_many_rows_go_through_files_and_many_cells_are_added_up(tmp_path, monkeypatch):
    frame = make_frame(2_000).sample(frac=1.0, random_state=0)
    expected = count(read(frame, session="session"))
    monkeypatch.setattr(click_counting, "_MANY_CELLS", 20)
    monkeypatch.setattr(click_records.RecordParts.__init__, "__defaults__", (100,))
    monkeypatch.setattr("rankwright.data.table_files.count_block_rows", lambda n_columns: 150)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    written = []
    write = click_records.RecordParts._write
    monkeypatch.setattr(click_records.RecordParts, "_write", lambda self: (written.append(1), write(self))[1])
    log = read(frame, session="session")
    assert len(written) > 10
    assert count(log) == expected
    assert log.n_lists.sum() == 2_000
    assert not list(tmp_path.iterdir())


def test_positions_from_0_are_an_error_with_the_way_out(tmp_path):
    frame = make_frame()
    zero = frame.assign(position=frame["position"] - 1)
    with pytest.raises(rw.InputError, match=r"row 0 .*the position 'position' is 0; .*first_position=0"):
        read(zero)
    zero.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(rw.InputError, match=r"a.csv:2: the position 'position' is 0"):
        read(tmp_path / "a.csv")
    assert count(read(zero, first_position=0)) == count_slowly(frame)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("position", 1.5, "the position 'position' is 1.5; expected a whole number from 1"),
        ("position", -1, "is -1; expected a whole number from 1"),
        ("position", 1e9, "expected a whole number from 1 to 100000"),
        ("position", np.inf, "is inf; expected a whole number"),
        ("clicked", -1, "the column 'clicked' is -1; expected 0 or 1"),
    ],
)
def test_values_that_cannot_be_used(tmp_path, column, value, said):
    frame = make_frame(5).astype({"clicked": float, "position": float})
    frame.loc[7, column] = value
    with pytest.raises(rw.InputError, match=f"row 7 .*{said}"):
        read(frame)
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(rw.InputError, match=f"a.csv:9: .*{said}"):
        read(tmp_path / "a.csv")


def test_duplicates_are_counted_once(tmp_path):
    frame = make_frame()
    clicks = frame[frame["clicked"]].assign(position=lambda f: f["position"] + 3)
    both = pd.concat([frame.assign(clicked=False), clicks]).sample(frac=1.0, random_state=1)
    log = read_faulty(both, "duplicates", session="session")
    assert count(log) == count_slowly(frame)  # the position is that of the first row of a list
    assert log.findings[0].count == len(clicks)
    assert "time=" in log.findings[0].way_out
    kept = read_faulty(both, "duplicates", "two at one position", session="session", duplicates="keep")
    assert count(kept) == count_slowly(both)
    with pytest.raises(rw.InputError, match="duplicates='merge'"):
        rw.read_clicks(both, session="session", duplicates="error")
    later = pd.concat([frame.assign(at=1), frame.assign(at=2)])
    assert read(later, session="session", time="at").n_lists.sum() == 600
    dates = later.assign(at=pd.to_datetime("2026-01-01") + pd.to_timedelta(later["at"], "h"))
    assert read(dates, session="session", time="at").n_lists.sum() == 600


def test_two_documents_at_one_position():
    frame = make_frame()
    frame.loc[frame["session"] == "s3", "position"] = 2
    log = read_faulty(frame, "two at one position", session="session")
    assert (count(log), log.findings[0].count) == (count_slowly(frame), 1)
    log = read_faulty(frame, "two at one position", session="session", clashes="drop")
    assert count(log) == count_slowly(frame[frame["session"] != "s3"])
    with pytest.raises(rw.InputError, match="clashes='drop'"):
        rw.read_clicks(frame, session="session", clashes="error")


def test_sessions_of_bots_are_left_out():
    frame = make_frame()
    bot = make_frame(60, seed=1).assign(session="bot", at=lambda f: np.arange(len(f)) // 4)
    both = pd.concat([frame.assign(at=0), bot])
    log = read_faulty(both, "bots", session="session", time="at", max_clicks=20)
    assert count(log) == count_slowly(frame)
    assert log.findings[0].count == 1
    assert "240 rows" in log.findings[0].way_out
    assert count(read(both, session="session", time="at")) == count_slowly(both)


def test_rows_without_values_and_clicks_without_impressions_are_counted(tmp_path):
    frame = make_frame().astype({"position": float, "clicked": float})
    frame.loc[:9, "position"] = np.nan
    frame.loc[20:22, "docid"] = None
    frame.loc[23, "query"] = None
    frame.loc[[30, 31], "clicked"] = np.nan
    frame.loc[40, "session"] = None
    lost = int((frame.loc[[*range(10), 20, 21, 22, 23], "clicked"] > 0).sum())
    assert lost > 0
    frame.to_csv(tmp_path / "a.csv", index=False)
    whole = frame.dropna()
    for source in (frame, tmp_path / "a.csv"):
        log = read_faulty(source, *["missing values"] * 5, "clicks without impressions", session="session")
        assert count(log) == count_slowly(whole)
        found = {each.text.split(" have no ")[1].split(" and ")[0]: each.count for each in log.findings[:5]}
        assert found == {"query": 1, "document id": 3, "position": 10, "click": 2, "session": 1}
        assert log.findings[5].count == lost
    with pytest.raises(rw.InputError, match="missing='drop'"):
        rw.read_clicks(frame, session="session", missing="error")


def test_clicks_that_say_nothing():
    frame = make_frame()
    with pytest.raises(rw.InputError, match="none of 1,200 impressions is clicked"):
        read(frame.assign(clicked=0))
    with pytest.raises(rw.InputError, match=r"all .* impressions are clicked; expected a row for each document"):
        read(frame[frame["clicked"]])
    log = read_faulty(frame.assign(clicked=frame["clicked"] * 3), "several clicks")
    assert count(log) == count_slowly(frame)
    log = read_faulty(frame.assign(time=np.arange(len(frame))), "single documents", session="session", time="time")
    assert "leave out a time" in log.findings[0].way_out


def test_queries_with_few_impressions_are_named():
    frame = pd.concat([make_frame(), make_frame(1).assign(query="rare")])
    log = read_faulty(frame, "few impressions", min_impressions=10)
    assert log.findings[0].count == 1
    assert "1 of 9 queries" in log.findings[0].text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": "quer"}, "no column 'quer' for query= .*did you mean query"),
        ({"docid": "query", "query": "query"}, "is named by query= .* and by docid="),
        ({"clicked": "session"}, "'session' is .*; expected 0 and 1"),
        ({"duplicates": "merg"}, "did you mean merge"),
        ({"clashes": "x"}, "there are keep, drop, error"),
        ({"missing": "x"}, "there are drop, error"),
        ({"max_clicks": -1}, "max_clicks=-1"),
        ({"first_position": 2}, "expected 0 or 1"),
    ],
)
def test_wrong_options(options, said):
    with pytest.raises(rw.InputError, match=said):
        rw.read_clicks(make_frame(3), **options)


def test_columns_that_cannot_be_found(tmp_path):
    frame = make_frame(3)
    with pytest.raises(rw.InputError, match=r"no column of positions, such as 'position'; .*Name it with position="):
        read(frame.rename(columns={"position": "where"}))
    with pytest.raises(rw.InputError, match="'docid', 'doc' may each be the document ids"):
        read(frame.assign(doc=1))
    (tmp_path / "empty.csv").write_text("query,docid,position,clicked\n")
    with pytest.raises(rw.InputError, match="no rows"):
        read(tmp_path / "empty.csv")
    rw.write_letor(rw.make_queries(2, random_state=0), tmp_path / "train.txt")
    with pytest.raises(rw.InputError, match="LETOR text; expected a table of impressions"):
        read(tmp_path / "train.txt")
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read(tmp_path / "none.csv")
    with pytest.raises(rw.InputError, match="expected at least one"):
        read([])
    with pytest.raises(rw.InputError, match="expected names of files"):
        read([frame])


def write_ubi(folder, *, wrap: bool = False):
    """Write queries of User Behavior Insights with results, and events: clicks and others."""
    rng = np.random.default_rng(0)
    queries, events, shown, clicked = [], [], Counter(), Counter()
    for i in range(400):
        text, docs = f"tea {i % 5}", rng.permutation(8)[:4].tolist()
        query = {"query_id": f"id{i}", "user_query": text, "client_id": f"c{i % 50}"}
        queries.append(query | {"query_response_hit_ids": [f"d{doc}" for doc in docs], "timestamp": "2026-01-01"})
        events.append({"action_name": "page_load", "query_id": f"id{i}"})
        for position, doc in enumerate(docs, 1):
            shown[text, f"d{doc}", position] += 1
            if rng.random() < 0.4 / position:
                clicked[text, f"d{doc}", position] += 1
                attributes = {"object": {"object_id": f"d{doc}"}, "position": {"ordinal": position}}
                event = {"action_name": "click", "query_id": f"id{i}", "client_id": f"c{i % 50}"}
                events += [event | {"event_attributes": attributes}] * int(rng.integers(1, 3))  # some click twice
    rng.shuffle(events)
    for name, objects in (("queries", queries), ("events", events)):
        lines = [json.dumps({"_index": name, "_source": each} if wrap else each) for each in objects]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    expected = {(*key, "", ""): (shown[key], clicked[key]) for key in sorted(shown)}
    return folder / "events.jsonl", folder / "queries.jsonl", expected


@pytest.mark.parametrize("wrap", [False, True])
def test_events_of_user_behavior_insights(tmp_path, wrap, monkeypatch):
    events, queries, expected = write_ubi(tmp_path, wrap=wrap)
    log = read(events, ubi_queries=queries)
    assert count(log) == expected
    assert log.n_lists.tolist() == [80] * 5
    monkeypatch.setattr(click_records.RecordParts.__init__, "__defaults__", (100,))
    assert count(read(events, ubi_queries=queries)) == expected


def test_faults_of_user_behavior_insights(tmp_path):
    events, queries, expected = write_ubi(tmp_path)
    lost = {"action_name": "click", "query_id": "id1", "event_attributes": {"object": {"object_id": "elsewhere"}}}
    nowhere = {"action_name": "click", "query_id": "unknown", "event_attributes": {"object": {"object_id": "d1"}}}
    without = {"action_name": "click", "query_id": "id1"}
    bot = [{**lost, "client_id": "robot"}] * 50
    before = events.read_text()
    events.write_text(before + "\n".join(map(json.dumps, [lost, nowhere, without, *bot])))
    log = read_faulty(
        events, "missing values", "clicks without impressions", "bots", ubi_queries=queries, max_clicks=40
    )
    assert count(log) == expected
    assert [each.count for each in log.findings] == [1, 2, 1]
    for text, said in (
        ("{", "no JSON"),
        ("[]", "expected a JSON object"),
        ('{"action_name": "look"}', "no event is a click .*'look'"),
    ):
        events.write_text(text)
        with pytest.raises(rw.InputError, match=said):
            rw.read_clicks(events, ubi_queries=queries)
    queries.write_text('{"query_id": "a", "user_query": "b", "query_response_hit_ids": 3}')
    with pytest.raises(rw.InputError, match=r"queries.jsonl:1: 'query_response_hit_ids' is 3; expected a list"):
        rw.read_clicks(events, ubi_queries=queries)
    with pytest.raises(rw.InputError, match="query= names a column of a table"):
        rw.read_clicks(events, ubi_queries=queries, query="q")


def test_impressions_may_be_events(tmp_path):
    queries = [{"query_id": "1", "user_query": "tea", "query_response_hit_ids": ["a", "b", "c"]}]
    events = [
        {
            "action_name": action,
            "query_id": "1",
            "event_attributes": {"object": {"object_id": doc}, "position": {"ordinal": place}},
        }
        for action, doc, place in (("impression", "a", 0), ("impression", "b", 1), ("click", "b", 1))
    ]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    options = {"ubi_queries": tmp_path / "queries.jsonl", "impression_actions": ["impression"]}
    log = read(tmp_path / "events.jsonl", first_position=0, **options)
    assert count(log) == {("tea", "a", 1, "", ""): (1, 0), ("tea", "b", 2, "", ""): (1, 1)}
    with pytest.raises(rw.InputError, match=r"position.ordinal is 0; .*first_position=0"):
        read(tmp_path / "events.jsonl", **options)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("in_memory", [50, 10**6])
def test_random_logs_with_every_fault_are_counted_as_by_the_slow_twin(seed, in_memory, monkeypatch):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 400))
    frame = pd.DataFrame({
        "session": rng.integers(0, n // 4 + 1, n),
        "query": rng.choice(["a", "b", "c"], n),
        "docid": rng.integers(0, 6, n),
        "position": rng.integers(1, 5, n),
        "clicked": rng.integers(0, 2, n) * rng.integers(0, 2, n),
    })  # fmt: skip
    frame.loc[frame.index[:2], "clicked"] = [1, 0]
    rules = {"duplicates": rng.choice(["merge", "keep"]), "clashes": rng.choice(["keep", "drop"]), "max_clicks": 3}
    cells, n_lists, faults = count_log(frame.to_dict("records"), **rules)
    monkeypatch.setattr(click_records.RecordParts.__init__, "__defaults__", (in_memory,))
    n_clicked = sum(clicked for _, clicked in cells.values())
    if not 0 < n_clicked < sum(shown for shown, _ in cells.values()):
        with pytest.raises(rw.InputError, match="impression"):
            rw.read_clicks(frame, session="session", min_impressions=0, **rules)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = rw.read_clicks(frame, session="session", min_impressions=0, **rules)
    assert {key[:3]: value for key, value in count(log).items()} == cells
    assert dict(zip(log.qid.tolist(), log.n_lists.tolist(), strict=True)) == n_lists
    assert {each.kind: each.count for each in log.findings if each.kind != "single documents"} == faults


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"first_position": 0}, "no row has position 0; leave out first_position=0"),
        ({"clicked": 0.5}, {}, "the column 'clicked' is 0.5; expected 0 or 1"),
        ({"clicked": "yes"}, {}, "the column 'clicked' is text; expected 0 and 1, or true and false. Convert it"),
        ({}, {"max_clicks": None}, "max_clicks=None; expected a whole number"),
        ({}, {"click_actions": ["tap"]}, "names of events have no effect without ubi_queries="),
    ],
)
def test_what_would_be_counted_wrongly_is_refused(change, options, message):
    with pytest.raises(rw.InputError, match=message):
        rw.read_clicks(make_frame().assign(**change), **options)


def test_clicks_on_rows_of_their_own():
    """Rows of clicks that have no position: which were left out, and what to do."""
    frame = make_frame()
    events = frame[frame["clicked"]].assign(position=np.nan)
    apart = pd.concat([frame.assign(clicked=False), events])
    with pytest.raises(rw.InputError, match=r"none of .* clicks are on rows without a place\. Log each document"):
        rw.read_clicks(apart)
    empty = frame.assign(clicked=frame["clicked"].astype(float).replace(0.0, np.nan))
    with pytest.raises(rw.InputError, match="rows have no value of click: write 0 where that means not clicked"):
        rw.read_clicks(empty)


def test_rows_without_a_ranker_are_counted():
    frame = make_frame()
    frame["ranker"] = np.where(frame.index % 3 == 0, None, "a")
    log = read_faulty(frame, "missing rankers", ranker="ranker")
    assert [finding.count for finding in log.findings if finding.kind == "missing rankers"] == [400]
