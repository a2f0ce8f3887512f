"""The memory that a fit needs beside its data set, and the refusal of a fit that needs more than is free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.base import clone

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.data.row_hashes import LARGEST
from rankwright.rankers.input_checks import is_changed
from rankwright.runtime.process_limits import read_available_memory
from rankwright.runtime.shared_preparations import MAX_SHARED

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

FIXED = 32 << 20  # bytes of any fit: stacks of threads, compiled code, blocks of rows in work
_LITTLE = 64 << 20  # bytes that any machine has
VALUE = 4  # bytes of a value of a feature
_SORTING = 40  # bytes per document while rows are sorted by their content
_SCALING = 0.5  # bytes per value beside the copy that scaling per query makes: the range of each query
_SLOT = 20  # bytes per value where every value has a bin of its own
_SAMPLED = 16  # bytes of a sampled value in LightGBM: a double, its row, and room to grow
_HISTOGRAM = 16  # bytes of a bin in a leaf's histogram
_MOST_NAMED = 8  # rankers that an error names


class DataSize(NamedTuple):
    """The size of a data set: its documents, features and queries."""

    n_docs: int
    n_features: int
    n_queries: int

    @classmethod
    def of(cls, queries: Queries) -> DataSize:
        """Return the size of some queries."""
        return cls(queries.n_docs, queries.n_features, len(queries))

    @property
    def n_values(self) -> int:
        """The number of values of features."""
        return self.n_docs * self.n_features


def estimate_copies(ranker: Ranker, size: DataSize) -> float:
    """Return the bytes of the copies of the features that a fit makes before training: scaled, or sorted by content."""
    if getattr(ranker, "scale", None) == "query":
        return (VALUE + _SCALING) * size.n_values
    if ranker._sorts_rows() and VALUE * size.n_values <= LARGEST:
        return VALUE * size.n_values + _SORTING * size.n_docs
    return 0.0


def estimate_bins(size: DataSize, max_bins: int | None) -> float:
    """Return the bytes of the bins of stumps: the bin of each value and, with a bin for each value, sums over bins."""
    if max_bins is None:
        return _SLOT * size.n_values
    return (1 if max_bins < 256 else 2 if max_bins < 65_536 else VALUE) * size.n_values


def estimate_shared(size: DataSize) -> float:
    """Return the bytes of what the fits of a blend share: sorted rows and the bin of each value, of about five folds.

    They are kept up to a limit; the bins of one fold are kept in any case.
    """
    return min(max(MAX_SHARED, size.n_values), 5 * (VALUE + 1) * size.n_values)


def estimate_trees(size: DataSize, num_leaves: int, params: Mapping[str, Any], per_doc: int) -> float:
    """Return the bytes that LightGBM takes: a sample of the documents, the bin of each value, and histograms.

    The sample is freed before the first tree, so it counts only as far as it is larger than what trees need: the bytes
    of each document, given as ``per_doc``, and histograms.
    """
    sample = min(size.n_docs, int(params.get("bin_construct_sample_cnt", 200_000)))
    max_bin = int(params.get("max_bin", 255))
    histograms = _HISTOGRAM * min(num_leaves, size.n_docs) * (max_bin + 1) * size.n_features
    later = per_doc * size.n_docs + histograms
    before = size.n_features * _SAMPLED * sample
    return (1 if max_bin < 256 else 2) * size.n_values + max(before, later) - per_doc * size.n_docs


def check_memory(ranker: Ranker, size: DataSize, more: float = 0.0) -> None:
    """Raise InputError if a fit on data of this size, with ``more`` bytes, needs more memory than is free."""
    try:
        needed = ranker.estimate_memory(*size) + more
    except (TypeError, ValueError, AttributeError):  # a wrong parameter, for which training has an error of its own
        return
    free = read_available_memory() if needed > _LITTLE else None
    if free is None or needed <= free:
        return
    name = type(ranker).__name__
    documents = f"{size.n_docs:,} documents x {size.n_features} features"
    problem = f"{name} needs about {_format(needed)} of memory beside the data to train on {documents}"
    ways = [*_find_cheaper_parameters(ranker, size, free - more), _name_cheaper_rankers(size, free)]
    others = "Fewer queries (queries.take) or features need less"
    raise InputError(f"{problem}; {_format(free)} are free. {'. '.join(way for way in ways if way)}. {others}")


def _find_cheaper_parameters(ranker: Ranker, size: DataSize, free: float) -> Iterator[str]:
    """Yield each parameter whose default value would make the fit need less memory than is free."""
    for name, parameter in signature(type(ranker)).parameters.items():
        if is_changed(ranker, name):
            needed = clone(ranker).set_params(**{name: parameter.default}).estimate_memory(*size)
            if needed <= free and needed < ranker.estimate_memory(*size):
                yield f"With {name}={parameter.default!r} it needs about {_format(needed)}"


def _name_cheaper_rankers(size: DataSize, free: float) -> str:
    """Return the rankers that, with their default parameters, need no more memory than is free."""
    from rankwright.rankers import RANKERS  # which imports this module

    needs = sorted((kind().estimate_memory(*size), kind.__name__) for kind in RANKERS)
    named = [f"{name} ({_format(needed)})" for needed, name in needs if needed <= free][:_MOST_NAMED]
    return f"Rankers that need no more than is free: {', '.join(named)}" if named else ""


def _format(size: float) -> str:
    """Return a number of bytes as text, such as 1.5 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
