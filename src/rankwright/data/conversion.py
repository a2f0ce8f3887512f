"""Conversion of files in any format to data sets on disk, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

from rankwright.basics.files import StrPath
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.mapped import MappedSource
from rankwright.data.mapped_writer import check_target, write_queries, write_source
from rankwright.data.reading import open_source
from rankwright.data.row_sources import RowSource


def convert(
    *paths: StrPath,
    out: StrPath,
    qid: str | None = None,
    label: str | None = None,
    docid: str | None = None,
    weight: str | None = None,
    doc_weight: str | None = None,
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    n_features: int | None = None,
) -> None:
    """Convert files of one format to a data set on disk, which :func:`read` opens at once, whatever its size.

    Files are read block by block: the memory that this takes does not depend on their size. The data set is a folder of
    plain NumPy arrays. It is written whole or not at all, and replaces another one of its kind.

    Parameters
    ----------
    *paths : str or path
        One or more files; the same query id in two files is the same query.
    out : str or path
        The folder to write; its name ends in ``.rwq``.
    qid, label, docid, weight, doc_weight, ignore, features, categorical, n_features : optional
        What :func:`read` takes.
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
    check_target("out", out, paths)
    convert_source(open_source(paths, roles, n_features), out)


def convert_source(source: RowSource, out: StrPath) -> None:
    """Write the documents of a source to a data set on disk."""
    if isinstance(source, MappedSource) and len(source.paths) == 1:
        write_queries(source.read(), out)  # with everything that blocks of rows do not have
    else:
        write_source(source, out)
