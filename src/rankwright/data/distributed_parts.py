"""One data set of partitions on the workers of a cluster, by what their labels say here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.categories import Categories
from rankwright.data.click_counts import ClickCounts
from rankwright.data.distributed_features import DistributedFeatures
from rankwright.data.feature_selection import FeatureSelection
from rankwright.data.grouping import find_runs, fold_query_weights, group_runs
from rankwright.data.ids import join_ids
from rankwright.data.queries import Queries
from rankwright.data.unretrieved import Unretrieved
from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_backend import Dask

_MEANINGS = {"y": "grades", "weight": "query weights", "doc_weight": "document weights", "position": "positions"}


class PartLabels(NamedTuple):
    """A description of a partition: everything but features and document ids. Rows are grouped."""

    y: Floats | None
    qid: NDArray[Any]
    sizes: Ints
    source: Ints | None
    weight: Floats | None
    doc_weight: Floats | None
    unretrieved: Unretrieved | None
    features: tuple[str, ...] | None
    categories: Categories | None
    n_features: int
    has_docid: bool
    position: Ints | None
    clicks: ClickCounts | None


def join_parts(cluster: Dask, parts: Shards[Queries | None], names: Sequence[str], shuffle: bool) -> dict[str, Any]:
    """Return the arguments of ``DistributedQueries`` for partitions, in order; ``None`` is one without documents."""
    every = cluster.gather(_get_labels, parts)
    found = [each for each in every if each is not None]
    if not found:
        raise InputError(f"no documents in {len(names)} partitions, such as {names[0]}; expected at least one")
    named = [(name, each) for name, each in zip(names, every, strict=True) if each is not None]
    features, categories = _agree_on_features(named), _agree_on_categories(found)
    width = max(each.n_features for each in found) if features is None else len(features)
    if any((each.features, each.categories, each.n_features) != (features, categories, width) for each in found):
        parts = cluster.apply(_choose_features, parts, cluster.distribute(names), width, features, categories)
        cluster.wait(parts)
    for name in ("y", "weight", "doc_weight", "position"):
        _check_all_have(name, named)
    if len(found) > 1 and any(each.unretrieved is not None for each in found):
        raise InputError("a partition has judged documents that no run found; expected such data to be read alone")
    if len(found) > 1 and any(each.clicks is not None for each in found):
        raise InputError(
            "a partition has clicks; expected such data to be read alone: DistributedQueries.from_queries sends them"
        )
    runs = join_ids([each.qid for each in found])
    if not shuffle:
        _refuse_split_queries(runs, named)
    sizes = np.concatenate([each.sizes for each in found])
    n, firsts = int(sizes.sum()), find_runs(runs)
    qid, indptr, order = group_runs((np.cumsum(sizes) - sizes)[firsts], runs[firsts], n)
    rows: Any = slice(None) if order is None else order
    weight, doc_weight, position = (
        _join_rows([getattr(each, name) for each in found]) for name in ("weight", "doc_weight", "position")
    )
    clicks = found[0].clicks
    if weight is not None:
        weight = fold_query_weights(np.repeat(weight, sizes)[rows], indptr, qid)
    y = _join_rows([each.y for each in found])
    has_docid = any(each.has_docid for each in found)
    counts = [0 if each is None else int(each.sizes.sum()) for each in every]
    return {
        "X": DistributedFeatures(cluster, parts, counts, width, has_docid, order),
        "y": None if y is None else y[rows],
        "indptr": indptr,
        "qid": qid,
        "weight": weight,
        "features": features,
        "source": _join_sources(found, rows),
        "unretrieved": found[0].unretrieved,
        "doc_weight": None if doc_weight is None else doc_weight[rows],
        "categories": categories,
        "position": None if position is None else position[rows],
        "clicks": clicks if clicks is None or order is None else clicks.take(order, slice(None)),
    }


def _get_labels(part: Queries | None) -> PartLabels | None:
    """Return what the client is to know of a partition."""
    if part is None:
        return None
    own = part._parts()
    names = "y", "qid", "source", "weight", "doc_weight", "unretrieved", "features", "categories", "position", "clicks"
    about: dict[str, Any] = {"sizes": part.sizes, "n_features": part.n_features, "has_docid": own["docid"] is not None}
    return PartLabels(**{name: own[name] for name in names}, **about)


def _agree_on_features(named: Sequence[tuple[str, PartLabels]]) -> tuple[str, ...] | None:
    """Return the names of the features of all partitions, as the first has them; raise InputError if they differ."""
    first, expected = named[0][0], named[0][1].features
    for name, each in named[1:]:
        if (each.features is None) != (expected is None):
            has, lacks = (name, first) if expected is None else (first, name)
            raise InputError(f"{has} has names of features, {lacks} has none; expected partitions of one format")
        if expected is not None and each.features is not None and set(each.features) != set(expected):
            odd = min(set(each.features) ^ set(expected))
            has, lacks = (first, name) if odd in expected else (name, first)
            raise InputError(f"{lacks}: no feature {quote(odd)}, which {has} has; expected the same in each partition")
    return expected


def _agree_on_categories(found: Sequence[PartLabels]) -> Categories | None:
    """Return the values of categorical features in all partitions, in the order of their texts where they differ."""
    known = [each for each in found if each.categories is not None]
    if not known or all((each.features, each.categories) == (found[0].features, found[0].categories) for each in found):
        return found[0].categories
    names = found[0].features or tuple(map(str, range(known[0].n_features)))
    values: dict[str, set[str]] = {}
    for each in known:
        for name, own in zip(each.features or names, each.categories or (), strict=True):
            if own is not None:
                values.setdefault(name, set()).update(own)
    return tuple(tuple(sorted(values[name])) if name in values else None for name in names)


def _choose_features(
    part: Queries | None,
    name: str,
    n_features: int,
    features: tuple[str, ...] | None,
    categories: Categories | None,
) -> Queries | None:
    """Return a partition, grouped, with the features and categories that all partitions are to have."""
    if part is None:
        return None
    selection = FeatureSelection(part.n_features, part.features, part.categories, name)
    selection.choose(n_features, features, categories, "the first partition")
    own = part.grouped()
    return own.replace(X=selection.apply(own.X), features=features, categories=categories)


def _check_all_have(name: str, named: Sequence[tuple[str, PartLabels]]) -> None:
    """Raise InputError if some partitions have grades or weights and others have not."""
    first, expected = named[0][0], getattr(named[0][1], name)
    for other, each in named[1:]:
        if (getattr(each, name) is None) != (expected is None):
            meaning = _MEANINGS[name]
            has, lacks = (other, first) if expected is None else (first, other)
            raise InputError(f"{has} has {meaning}, {lacks} has none; expected the same in each partition")


def _refuse_split_queries(runs: NDArray[Any], named: Sequence[tuple[str, PartLabels]]) -> None:
    """Raise InputError if a query has rows in two partitions."""
    _, first, inverse = np.unique(runs, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse] != np.arange(len(runs)))
    if len(again):
        part = np.repeat(np.arange(len(named)), [len(each.qid) for _, each in named])
        one, other = (named[part[at]][0] for at in (first[inverse[again[0]]], again[0]))
        raise InputError(
            f"query {runs[again[0]]} has rows in {one} and in {other}; expected whole queries in each partition. Leave "
            "shuffle=False out to bring them together"
        )


def _join_rows(values: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return the values of all partitions, or None if they have none."""
    known = [each for each in values if each is not None]
    return np.concatenate(known) if known else None


def _join_sources(found: Sequence[PartLabels], rows: Any) -> Ints | None:
    """Return the place of each grouped row in the order of the partitions and their rows; None if it is the same."""
    if isinstance(rows, slice) and all(each.source is None for each in found):
        return None
    n, places = 0, []
    for each in found:
        size = int(each.sizes.sum())
        places.append(n + (np.arange(size) if each.source is None else each.source))
        n += size
    place = np.concatenate(places)[rows]
    return None if np.array_equal(place, np.arange(n)) else place
