"""Reading of data sets in any format, which is recognised by the content and the name of the files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from rankwright.basics.errors import InputError, suggest
from rankwright.basics.files import StrPath
from rankwright.data.categories import Categories
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.file_formats import LETOR, TABLE_FILES, find_format_by_name, recognise_format
from rankwright.data.group_files import GroupSource, check_all_groups, find_group_file, list_files_beside
from rankwright.data.letor import check_n_features
from rankwright.data.letor_source import LetorSource
from rankwright.data.mapped import MappedSource
from rankwright.data.mapped_header import is_mapped
from rankwright.data.queries import Queries
from rankwright.data.row_sources import RowSource
from rankwright.data.table_columns import logger
from rankwright.data.tables import TableSource
from rankwright.runtime.backends import Backend


def read(
    *paths: StrPath,
    qid: str | None = None,
    label: str | None = None,
    docid: str | None = None,
    weight: str | None = None,
    doc_weight: str | None = None,
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    n_features: int | None = None,
    backend: Backend | None = None,
) -> Queries:
    """Read files of one format and return their documents as one data set.

    Parameters
    ----------
    *paths : str or path
        One or more files; the same query id in two files is the same query.
    qid, label, docid, weight, doc_weight : str, optional
        The columns of a table that have the query ids, grades, document ids, query weights and document weights.
    ignore : sequence of str
        Columns of a table to leave out: names, or patterns such as ``*_text``.
    features : sequence of str, optional
        Columns of a table that are features: names, or patterns; by default every other column of numbers.
    categorical : sequence of str
        Features of a table whose values are categories.
    n_features : int, optional
        The number of features of LETOR text, where the files may not mention the last ones.
    backend : Serial, Threads or None
        Where to parse.

    Returns
    -------
    Queries
        The documents, in the order of the files.
    """
    roles = ColumnRoles(
        qid=qid,
        label=label,
        docid=docid,
        weight=weight,
        doc_weight=doc_weight,
        ignore=ignore,
        features=features,
        categorical=categorical,
    )
    return open_source(paths, roles, n_features).read(backend)


def open_source(
    paths: Sequence[StrPath],
    roles: ColumnRoles,
    n_features: int | None = None,
    *,
    features: Sequence[str] | None = None,
    categories: Categories | None = None,
    owner: str = "the model",
    zero_based: bool = False,
    open_ended: bool = False,
) -> RowSource:
    """Return the documents of files as a source of rows; raise InputError if their format is unknown.

    Parameters
    ----------
    paths : sequence of path
        One or more files of one format.
    roles : ColumnRoles
        The roles of columns that the caller gave; an error where the format has no columns to choose.
    n_features : int, optional
        The number of features of a format without names, where the files may not mention the last ones.
    features : sequence of str, optional
        The names of the features that a model or other documents have. A format with names is read for them: columns
        may be in any order, others are left out, and a missing one is an error.
    categories : tuple, optional
        The values of categorical features that a model or other documents have; a value that is not there is missing.
    owner : str
        What has these features and categories, for messages: the model, or the training data.
    zero_based : bool
        Whether ``n_features`` without names are the indices of group files, from 0, and not the numbers from 1.
    open_ended : bool
        Whether the files may have other than ``n_features`` features; the caller takes the first ones.
    """
    if not paths:
        raise InputError("no file to read; expected at least one")
    check_n_features(n_features)
    for path in paths:
        if not isinstance(path, str | PathLike):
            hint = "rw.read(*files)" if isinstance(path, list | tuple) else "rw.Queries.from_frame takes data frames"
            raise InputError(f"found a {type(path).__name__} for a file; expected names of files: {hint}")
    folders = [is_mapped(Path(path)) for path in paths]
    if any(folders):
        if not all(folders):
            first, other = paths[folders.index(True)], paths[folders.index(False)]
            raise InputError(f"{first} is converted data, {other} is not; expected files of one format")
        roles.check_unused(paths[0], "the columns of converted data were chosen when they were converted")
        return MappedSource(paths, None if open_ended else n_features, features, categories, owner)
    files = [file for path in paths for file in find_files(path)]
    groups = [find_group_file(file) if file.is_file() else None for file in files]
    if any(groups):
        roles.check_unused(files[0], "text without a header has no columns to choose")
        return GroupSource(files, check_all_groups(files, groups), n_features, features, zero_based)
    formats = [recognise_format(file) for file in files]
    for file, name in zip(files, formats, strict=True):
        if name != formats[0]:
            raise InputError(f"{files[0]} is {formats[0]}, {file} is {name}; expected files of one format")
    if formats[0] == LETOR:
        roles.check_unused(paths[0], "LETOR text has no columns")
        if features and features[0] == "0" and all(name.isdecimal() for name in features):
            raise InputError(
                f"{files[0]}: LETOR text counts features from 1; {owner} has a feature 0. If the columns of a model of "
                "another library are the features in order: rw.import_model(..., features=['1', '2', ...])"
            )
        return LetorSource(files, None if open_ended else n_features)
    source = TableSource([TABLE_FILES[formats[0]](file) for file in files], roles, features, categories, owner)
    if n_features is not None and not open_ended and len(source.columns.features) != n_features:
        raise InputError(f"{files[0]}: {len(source.columns.features)} columns of features; expected {n_features}")
    return source


def list_input_files(paths: Sequence[StrPath]) -> list[Path]:
    """Return every file that is read for these paths, also those in folders and beside files, to notice changes."""
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            files += sorted(file for file in path.rglob("*") if file.is_file())
        else:
            files += [each for file in find_files(path) for each in (file, *list_files_beside(file))]
    return files


def find_files(path: StrPath) -> list[Path]:
    """Return the files that a path means: itself, the tables in a folder, or those that match a pattern."""
    whole = Path(path)
    if whole.is_dir():
        inside = sorted(file for file in whole.rglob("*") if file.is_file() and find_format_by_name(file))
        files = [file for file in inside if not any(part[0] in "._" for part in file.relative_to(whole).parts)]
        if not files:
            raise InputError(
                f"{path}: a folder without tables; expected Parquet, CSV, Arrow or JSON lines in it. For LETOR text "
                f"name the files, and for folders Fold1, Fold2, ... use rw.read_folds or rankwright experiment"
            )
        if any("=" in part for file in files for part in file.relative_to(whole).parts[:-1]):
            logger.info("%s: columns that the names of folders have, such as fold=1, are left out", path)
        return files
    if whole.exists() or not any(character in str(path) for character in "*?["):
        return [whole]
    start = Path(whole.anchor)
    files = sorted(file for file in start.glob(str(whole.relative_to(start))) if file.is_file())
    if not files:
        beside = sorted(each.name for each in whole.parent.iterdir())[:100] if whole.parent.is_dir() else []
        hint = suggest(whole.name, beside) if beside else "the folder is empty or not there"
        raise InputError(f"{path}: no file matches this pattern; {hint if len(hint) < 200 else 'there are others'}")
    return files
