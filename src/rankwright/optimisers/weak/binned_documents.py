"""Documents that LightGBM has binned, for one fit or for several that share them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.optional_imports import require
from rankwright.data.categories import list_categorical
from rankwright.data.queries import Queries
from rankwright.runtime.shared_preparations import prepare_once
from rankwright.scorers.lightgbm_text import are_valid_names

# What the bins do not depend on. Whatever is not named here counts, also the seed, which draws the sample for bins.
_OF_BOOSTERS = (
    *("objective", "metric", "sigmoid", "lambdarank_truncation_level", "lambdarank_norm", "label_gain"),
    "lambdarank_position_bias_regularization",
    *("num_leaves", "learning_rate", "max_depth", "lambda_l1", "lambda_l2", "min_gain_to_split"),
    *("min_sum_hessian_in_leaf", "max_delta_step", "path_smooth"),
)
_FEWEST = "min_data_in_leaf"


class BinnedDocuments(NamedTuple):
    """The documents of queries in LightGBM's bins.

    Parameters
    ----------
    data : lightgbm.Dataset
        It is not changed when trees are grown, so that several threads may grow trees on it.
    used : array of shape (n_features,)
        Whether each feature can split the documents.
    fewest : int
        The fewest documents in a leaf. LightGBM leaves out features that cannot split into two such leaves.
    """

    data: Any
    used: NDArray[np.bool_]
    fewest: int

    @classmethod
    def of(cls, queries: Queries, params: Mapping[str, Any], start: Floats | None = None) -> BinnedDocuments:
        """Bin documents by LightGBM's parameters; ``start`` are the scores that its own objective begins with."""
        weight = None if queries.weight is None else np.repeat(queries.weight, queries.sizes)
        if queries.doc_weight is not None:
            weight = queries.doc_weight if weight is None else weight * queries.doc_weight
        names = list(queries.features) if queries.features and are_valid_names(queries.features) else "auto"
        data = require("lightgbm").Dataset(
            queries.X,
            queries.y,
            group=queries.sizes,
            weight=weight,
            init_score=start,
            feature_name=names,
            categorical_feature=list_categorical(queries.categories),
            params=dict(params),
            position=queries.position,
        )
        data.construct()
        data.label = None  # LightGBM has a copy of its own
        used = np.array([data.feature_num_bin(i) > 1 for i in range(queries.n_features)], dtype=bool)
        return cls(data, used, int(params[_FEWEST]))

    def uses_all(self, X: Floats) -> bool:
        """Return whether every feature that differs between documents is used."""
        others = X[:, ~self.used]
        first = others[:1]
        return bool(((others == first) | (np.isnan(others) & np.isnan(first))).all())


class SharedBins:
    """The bins of one data set, for fits that differ only in what the bins do not depend on.

    LightGBM leaves out features by the fewest documents in a leaf. Fewer features may mean other trees, by the way
    that features are bundled and drawn, so bins are shared only where the same features are left out.
    """

    def __init__(self) -> None:
        self.found: list[BinnedDocuments] = []
        self.lock = threading.Lock()  # held while documents are binned, not while trees are grown

    def find_or_make(self, queries: Queries, params: Mapping[str, Any]) -> BinnedDocuments:
        """Return documents binned as ``BinnedDocuments.of`` does."""
        with self.lock:
            known = self._find(int(params[_FEWEST]))
            if known is None:
                known = BinnedDocuments.of(queries, params)
                if known.uses_all(queries.X):  # so do the bins for fewer documents in a leaf
                    self.found = [each for each in self.found if each.fewest > known.fewest]
                    self.found.append(known._replace(fewest=0))
                self.found.append(known)
            return known

    def _find(self, fewest: int) -> BinnedDocuments | None:
        """Return bins with the features of this number of documents: the more documents, the fewer features."""
        below = [each for each in self.found if each.fewest <= fewest]
        above = [each for each in self.found if each.fewest >= fewest]
        for low in below:
            for high in above:
                if np.array_equal(low.used, high.used):
                    return low
        return None


def bin_documents(queries: Queries, params: Mapping[str, Any]) -> BinnedDocuments:
    """Return documents binned by LightGBM's parameters, shared inside a block of ``PreparationCache.use``.

    The trees that are grown on shared bins are those of bins of their own, to the bit.
    """
    relevant = {name: value for name, value in params.items() if name not in (*_OF_BOOSTERS, _FEWEST)}
    key = "tree bins", repr(sorted(relevant.items()))
    return prepare_once(queries, key, SharedBins, queries.X.size).find_or_make(queries, params)
