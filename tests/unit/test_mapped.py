"""Data sets on disk: what is written is what is read, in bounded memory, whole or not at all."""

from __future__ import annotations

import pytest
from tests.queries import assert_same_queries

import rankwright as rw
from rankwright.data import letor_files


class TestConvert:
    @pytest.mark.parametrize("block", [1 << 22, 3_000, 100])
    @pytest.mark.parametrize("packed", [False, True])
    def test_text_converted_is_text_read(self, tmp_path, monkeypatch, block, packed):
        monkeypatch.setattr(letor_files, "BLOCK", block)
        queries = rw.make_queries(9, n_docs=7, n_features=5, random_state=0)
        path = tmp_path / ("a.txt.gz" if packed else "a.txt")
        rw.write_letor(queries, path)
        rw.convert(path, out=tmp_path / "a.rwq")
        assert_same_queries(rw.read(tmp_path / "a.rwq"), rw.read_letor(path))
