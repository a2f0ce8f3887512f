"""Files that options give as FILE or NAME=FILE: runs, models and scores, and the names of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

# The help of every option that takes a model file.
MODEL_HELP = "A model saved by fit, or a model file of LightGBM, XGBoost, CatBoost or RankLib"


def parse_named_runs(texts: Sequence[str]) -> dict[str, str]:
    """Return run files by name, given texts ``name=file`` or ``file``, which is named after itself."""
    from rankwright.basics.errors import InputError
    from rankwright.data.trec import run_names

    runs: dict[str, str] = {}
    for text in texts:
        name, path = _split_name(text, "--run")
        name = name or run_names([path])[0]
        if name in runs:
            raise InputError(f"--run {text}: another run is called {name}; use NAME=FILE")
        runs[name] = path
    return runs


def parse_named_files(given: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return for each option its files by the name of a method; no two methods of all options share a name.

    Without a name, a method has that of its file up to the first dot or, where another method has that name, the path.

    >>> parse_named_files({"--scores": ["bm25.txt"], "--model": ["a/m.json", "b/m.json", "theirs=lgb.txt"]})
    {'--scores': {'bm25': 'bm25.txt'}, '--model': {'a/m.json': 'a/m.json', 'b/m.json': 'b/m.json', 'theirs': 'lgb.txt'}}
    """
    from rankwright.basics.errors import InputError

    split = [(option, *_split_name(text, option)) for option, texts in given.items() for text in texts]
    short = [name or Path(path).name.partition(".")[0] or path for _, name, path in split]
    found: dict[str, dict[str, str]] = {option: {} for option in given}
    for (option, name, path), own in zip(split, short, strict=True):
        name = name or (own if short.count(own) == 1 else path)
        if any(name in files for files in found.values()):
            raise InputError(f"{option} {path}: given twice as {name}; name methods apart, as in {option} NAME=FILE")
        found[option][name] = path
    return found


def _split_name(text: str, option: str) -> tuple[str, str]:
    """Return the name and the file of a text ``name=file``; the name is empty where the text is a file alone."""
    from rankwright.basics.errors import InputError

    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():  # the name of a file may have an equals sign
        name, path = "", text
    if not path or (equals and not name and path != text):
        raise InputError(f"{option} {text}: expected FILE or NAME=FILE")
    return name, path
