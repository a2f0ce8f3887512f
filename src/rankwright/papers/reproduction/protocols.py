"""Published protocols: their specs, and the public data sets that they need.

A protocol is a TOML file beside this one: the spec of an experiment, whose ``[data]`` says where the files of the data
set may be. ``like`` names another protocol, whose measures and methods it has.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from rankwright.basics.errors import InputError, suggest
from rankwright.basics.files import StrPath
from rankwright.data.file_formats import LETOR, recognise_format
from rankwright.data.folds import list_missing_files, list_usual_names, read_folds
from rankwright.data.table_texts import read_head
from rankwright.experiments import Experiment, experiment_from_json
from rankwright.experiments.data_sources import FoldFolder

NAMES = (
    "ohsumed",
    "ohsumed-2.0",
    "td2003",
    "td2004",
    "hp2003",
    "hp2004",
    "np2003",
    "np2004",
    "mq2007",
    "mq2008",
    "mslr-web10k",
    "mslr-web30k",
    "yahoo-set1",
    "yahoo-set2",
    "istella-s",
)

_INDEX = re.compile(rb"(?<=\s)(\d+):")


@dataclass(frozen=True, slots=True)
class PublicData:
    """A public data set, which the package does not have: its name, where its files may be, and its features."""

    title: str  # the name under which its owner gives it to users
    folders: tuple[str, ...]  # where it may be in the folder of all data sets; the first one is that of its archive
    n_features: int
    n_folds: int = 5  # 1 is a fixed split
    split: str = ""  # the name in front of the files' names
    has_zeros: bool = True  # whether every line has all features

    def find_folder(self, data: Path, is_only: bool) -> FoldFolder:
        """Return the source of the folds, in ``data`` or, if it is the only data set, in that folder itself.

        Raises
        ------
        InputError
            If files are missing, or have another number of features; the message names them.
        """
        places = [place for folder in self.folders if (place := data / folder).is_dir()]
        places += [data] if is_only or self.split else []
        missing = {place: list_missing_files(place, self.n_folds, self.split) for place in places}
        folder = next((place for place in places if not missing[place]), places[0] if places else data)
        if folder == data and missing.get(data, self._list_names()) == self._list_names():
            raise InputError(f"{data}: no folder {' or '.join(self.folders)}; {self._describe_files()}")
        if missing[folder]:
            raise InputError(f"{folder}: no {', '.join(missing[folder])}; {self._describe_files()}")
        n_folds = len(read_folds(folder, split=self.split))
        if n_folds != self.n_folds:
            raise InputError(f"{folder}: {n_folds} folds; {self._describe_files()}")
        source = FoldFolder(str(folder.resolve()), split=self.split)
        self._check_features(source)
        return source

    def _list_names(self) -> list[str]:
        """Return the names of all that the folder of the data set must have: folders of folds, or the files of one."""
        return list_usual_names(self.split) if self.n_folds == 1 else [f"Fold{i + 1}" for i in range(self.n_folds)]

    def _describe_files(self) -> str:
        """Return which files are expected, and what the data set is called, for messages."""
        *first, last = list_usual_names(self.split)
        folds = "" if self.n_folds == 1 else f"Fold1 to Fold{self.n_folds}, each with "
        return f"expected {folds}{', '.join(first)} and {last}, which are in {self.title}"

    def _check_features(self, source: FoldFolder) -> None:
        """Raise InputError if the first lines of a file have features that the data set does not have, or lack some."""
        folds = read_folds(source.folds, split=source.split)
        for path in sorted({path for fold in folds.files for part in fold for path in part}):
            if path.is_dir() or recognise_format(path) != LETOR:  # converted data, or a table with names
                continue
            lines = read_head(path, 1 << 16).splitlines()[:100]
            highest = [max(map(int, _INDEX.findall(line.partition(b"#")[0])), default=0) for line in lines]
            found = max(highest, default=0)
            if found > self.n_features or (self.has_zeros and 0 < found < self.n_features):
                at = highest.index(found) + 1
                expected = f"{self.n_features} features" if self.has_zeros else f"at most {self.n_features} features"
                raise InputError(
                    f"{path}:{at}: {found} features; expected {expected}, as {self.title} has. To compare methods on "
                    "other data, use rankwright experiment"
                )


def make_reproductions(names: Sequence[str], data: StrPath, methods: Sequence[str] = ()) -> dict[str, Experiment]:
    """Return the experiments of published protocols by name.

    Parameters
    ----------
    names : sequence of str
        The names of the protocols.
    data : path
        The folder that has a folder of each one's data set. If there is but one, it may be that folder.
    methods : sequence of str
        The names of the methods to keep; by default all.
    """
    wanted = dict.fromkeys(names)
    protocols = {name: _read_protocol(name) for name in wanted}
    known = dict.fromkeys(method.name for spec, _ in protocols.values() for method in spec.methods)
    for method in methods:
        if method not in known:
            hint = suggest(repr(method), map(repr, known))  # names of methods contain commas
            raise InputError(f"unknown method {method!r} of {', '.join(wanted)}; {hint}")
    return {
        name: _choose_methods(spec, methods, name).with_data(public.find_folder(Path(data), len(wanted) == 1))
        for name, (spec, public) in protocols.items()
    }


def _choose_methods(spec: Experiment, names: Sequence[str], protocol: str) -> Experiment:
    """Return an experiment with the methods of these names only, and their published figures; with none, as it is."""
    if not names:
        return spec
    kept = tuple(method for method in spec.methods if method.name in names)
    if not kept:
        raise InputError(f"{protocol} has none of the methods {', '.join(names)}; choose one of its own")
    published = tuple(figure for figure in spec.published if figure.method in names)
    return replace(spec, methods=kept, published=published)


def _read_protocol(name: str) -> tuple[Experiment, PublicData]:
    """Return the experiment of a protocol, whose data are still to be found, and its data set."""
    if name not in NAMES:
        raise InputError(f"unknown reproduction {name!r}; {suggest(name, NAMES)}")
    content = _load(name)
    public = content.pop("data")
    public["folders"] = tuple(public["folders"])
    if "like" in content:
        other = _load(content.pop("like"))
        content = {key: other[key] for key in ("measure", "measures", "methods")} | content
    content["data"] = {"folds": public["folders"][0]}
    return experiment_from_json(content, Path()), PublicData(**public)


def _load(name: str) -> dict[str, Any]:
    """Return the content of a protocol's file."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))
