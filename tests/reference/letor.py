"""LETOR text read the obvious way."""

from __future__ import annotations


def read(text):
    """(label, qid, {index: value}, docid) of every document line."""
    rows = []
    for line in text.splitlines():
        body, _, comment = line.partition("#")
        tokens = body.split()
        if not tokens:
            continue
        assert tokens[1].startswith("qid:")
        values = {int(i): float(v) for i, v in (token.split(":") for token in tokens[2:])}
        words = comment.replace("=", " = ").split()
        docid = words[2] if words[:2] == ["docid", "="] else (words[0] if words else "")
        rows.append((float(tokens[0]), tokens[1][4:], values, docid))
    return rows
