"""Kernel maps: features in which a linear ranker is a kernel machine, by scikit-learn's Nystroem or KernelPCA."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.utils import check_random_state

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.landmarks import compute_kernel_features
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.runtime.backends import Backend, limit_blas
from rankwright.scorers import Kernel, KernelSum, Linear
from rankwright.scorers.linear import StandardScaling

MOST_DOCUMENTS = 2000  # that a map is fitted on: kernel PCA's time grows with their cube, that of prediction with them
_COMPONENTS = 100
_ALIASES = {"polynomial": "poly"}  # scikit-learn's other names
MAPS = {
    "nystroem": lambda: Nystroem(kernel="rbf", n_components=_COMPONENTS, random_state=0),
    "kernel_pca": lambda: KernelPCA(kernel="rbf", n_components=_COMPONENTS, random_state=0),
}


class _LandmarkMap(NamedTuple):
    """A map of scaled documents: their kernels with landmarks, times ``projection``, plus ``offset``."""

    kernel: Kernel
    mean: Floats
    factor: Floats
    landmarks: Floats
    projection: Floats
    offset: Floats

    def features(self, X: Floats) -> Floats:
        """Return the kernels of every row, each by itself: equal documents stay equal, to the bit."""
        columns = np.ascontiguousarray(self.landmarks.T)
        return compute_kernel_features(
            X, self.mean, self.factor, columns, *self.kernel.arguments, self.projection, self.offset
        )


@dataclass(frozen=True, slots=True, eq=False)
class KernelMap:
    """A feature space whose dot products are nearly a kernel's, made of the kernels with landmark documents.

    Mapped features are float64: weights of landmarks are large and of both signs, and scores in training must be those
    of prediction. They are not scaled one by one: but for a factor, |w| is the norm that belongs to the kernel.
    """

    scale: ClassVar[str | None] = None
    at: _LandmarkMap
    backend: Backend

    def __call__(self, queries: Queries) -> Queries:
        """Return the mapped documents."""
        return queries.map_X(partial(_map_documents, at=self.at), self.backend).replace(features=None)

    def scorer(self, linear: Linear) -> KernelSum:
        """Return the scorer whose weights of landmarks stand for weights of mapped features."""
        kernel, mean, factor, landmarks, projection, offset = self.at
        dual = compute_linear_scores(projection, linear.coef, 0.0)
        [intercept] = compute_linear_scores(offset[None, :], linear.coef, linear.intercept)
        return KernelSum(kernel, mean, factor, landmarks, dual, float(intercept))


def learn_map(kernel_map: Any, train: Queries, scale: str | None, backend: Backend) -> KernelMap:
    """Learn the feature space that the parameter ``kernel_map`` asks for from the training documents; return it.

    Parameters
    ----------
    kernel_map : "nystroem", "kernel_pca", Nystroem or KernelPCA
        A name stands for 100 components (or as many as there are documents) of the RBF kernel and the seed 0, which is
        also that of an instance without one. An instance is not changed.
    train : Queries
        The map is fitted on a sample of at most 2,000 of the documents (as many as components, if these are more),
        drawn by its seed.
    scale : "standard", "query" or None
        Standard scaling is done here, and is part of the scorer; features that are constant in training are left out.
    backend : Backend
        Where the work runs.
    """
    unfitted = _copy_unfitted(kernel_map)
    kernel = _read_kernel(unfitted, train.n_features)
    standard = StandardScaling.fit(train, backend)
    factor = standard.factor_for(scale)
    mean = standard.mean if scale == "standard" else np.zeros(len(factor))
    X = (train.read_rows(_draw_sample(unfitted, train.n_docs)) - mean) * factor
    landmarks, projection = _fit_landmarks(unfitted, X)
    at = _LandmarkMap(kernel, mean, factor, landmarks, projection, np.zeros(projection.shape[1]))
    return KernelMap(_normalise_map(at), backend)


def _copy_unfitted(kernel_map: Any) -> Any:
    """Return a Nystroem or KernelPCA that is not fitted and has a seed; raise InputError for anything else."""
    if isinstance(kernel_map, str) and kernel_map in MAPS:
        return MAPS[kernel_map]()
    if type(kernel_map) not in (Nystroem, KernelPCA):
        names = ", ".join(map(repr, MAPS))
        raise InputError(f"kernel_map={quote(kernel_map)}; expected None, {names}, a Nystroem or a KernelPCA")
    unfitted = clone(kernel_map)
    return unfitted.set_params(random_state=0) if unfitted.random_state is None else unfitted


def _read_kernel(unfitted: Any, n_features: int) -> Kernel:
    """Return the kernel of a Nystroem or KernelPCA, with scikit-learn's defaults for missing parameters."""
    if not isinstance(unfitted.kernel, str) or unfitted.kernel == "precomputed":
        raise InputError(f"kernel_map with the kernel {quote(unfitted.kernel)}; expected the name of one, as 'rbf'")
    if unfitted.kernel_params is not None:
        raise InputError("kernel_map with kernel_params; expected gamma, coef0 and degree by themselves")
    given = {name: getattr(unfitted, name) for name in ("gamma", "coef0", "degree")}
    values = {"gamma": 1.0 / n_features} | {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in given.items()
        if value is not None
    }
    try:
        return Kernel(_ALIASES.get(unfitted.kernel, unfitted.kernel), **values).validate()
    except InputError as error:
        raise InputError(f"kernel_map: {error}") from None


def _draw_sample(unfitted: Any, n_docs: int) -> Ints:
    """Return the rows of the documents to fit the map on: all, or if they are too many, a random sample."""
    most = MOST_DOCUMENTS
    if isinstance(unfitted, Nystroem) and isinstance(unfitted.n_components, (int, np.integer)):
        most = max(most, int(unfitted.n_components))
    if n_docs <= most:
        return np.arange(n_docs)
    return np.sort(check_random_state(unfitted.random_state).permutation(n_docs)[:most])


def _fit_landmarks(unfitted: Any, X: Floats) -> tuple[Floats, Floats]:
    """Fit a Nystroem or KernelPCA; return its landmarks, and the matrix that kernels with them are multiplied by."""
    n = unfitted.n_components
    if isinstance(n, (int, np.integer)) and n > len(X):
        unfitted.set_params(n_components=len(X))
    try:
        with limit_blas(), np.errstate(all="ignore"):
            fitted = unfitted.fit(X)
    except ValueError as error:  # a parameter, or a kernel that is none; of a few lines the first says it
        raise InputError(f"kernel_map: {str(error).splitlines()[0]}") from None
    if isinstance(fitted, Nystroem):
        return fitted.components_, np.ascontiguousarray(fitted.normalization_.T)
    size = np.sqrt(fitted.eigenvalues_)
    projection = fitted.eigenvectors_ * np.divide(1.0, size, out=np.zeros(len(size)), where=size > 0)
    if not projection.shape[1]:  # documents that are all alike
        projection = np.zeros((len(X), 1))
    return fitted.X_fit_, projection - projection.mean(axis=0)  # kernels less their mean over the landmarks


def _normalise_map(at: _LandmarkMap) -> _LandmarkMap:
    """Return the map shifted and scaled to mean 0 and mean variance 1 over its landmarks.

    One factor for all components leaves the kernel what it is, but for a factor; with it the strengths of penalties
    and the smoothing mean what they mean for standardised features. The mean is taken off here and not by an intercept,
    so that documents which are far from all landmarks tie in training as they tie in prediction.
    """
    d = at.landmarks.shape[1]
    features = at._replace(mean=np.zeros(d), factor=np.ones(d)).features(at.landmarks)  # they are scaled already
    variance = float(features.var(axis=0).mean())
    size = 1.0 / np.sqrt(variance) if variance > 0.0 else 1.0
    return at._replace(projection=at.projection * size, offset=-features.mean(axis=0) * size)


def _map_documents(queries: Queries, at: _LandmarkMap) -> Floats:
    """Return the mapped features of the documents of these queries."""
    mapped = at.features(queries.X)
    if not np.isfinite(mapped).all():
        raise InputError(f"kernel_map: the {at.kernel.name} kernel of some documents is too large; scale features")
    return mapped
