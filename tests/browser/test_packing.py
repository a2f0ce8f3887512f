"""Packed text comes out of the page's script as it went in, whatever blocks the packer chose."""

from __future__ import annotations

import random
import zlib
from base64 import b64encode
from importlib.resources import files

import pytest

from rankwright.report.page import _pack

SOURCE = files("rankwright.report").joinpath("packing.js").read_text(encoding="utf-8")
TEXTS = {
    "one letter": "a",
    "repeated": "ab" * 50_000,
    "words": " ".join(
        random.Random(0).choices(["query", "document", "grade", "Ünïcode", "文書", "\U0001f600"], k=20_000)
    ),
    "noise": "".join(random.Random(1).choices("".join(map(chr, range(32, 256))), k=90_000)),
}


def deflate(text, level, strategy):
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 9, strategy)
    return b64encode(packer.compress(text.encode()) + packer.flush()).decode()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_survives(browser, text):
    page = browser.new_page()
    ways = [_pack(text), deflate(text, 0, zlib.Z_DEFAULT_STRATEGY), deflate(text, 6, zlib.Z_FIXED), deflate(text, 1, zlib.Z_HUFFMAN_ONLY)]  # fmt: skip
    for packed in ways:
        assert page.evaluate(f"([packed, size]) => {{ {SOURCE}; return unpacked(packed, size); }}",
                             [packed, len(text.encode())]) == text  # fmt: skip
    page.close()
