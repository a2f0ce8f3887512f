"""The variance of a measure from clicks by the clicks alone."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.measures.click_relevance import ClickRelevance


def compute_click_variances(
    arrays: MeasureArrays, discounts: Floats, norm_slope: Floats | None, estimate: ClickRelevance
) -> Floats:
    """Return the variance of the value of each query, a function of independent binomial counts.

    The function is taken as linear about the counts found; sums are linear.

    Parameters
    ----------
    arrays : MeasureArrays
        The measure; its gains are the estimated relevance.
    discounts : array of shape (n_docs,)
        The discount of each document at its rank.
    norm_slope : array of shape (n_docs,), optional
        The derivative of the norm of its query by the gain of each document; None where the norm is constant.
    estimate : ClickRelevance
        The variance of the estimates.
    """
    firsts = arrays.indptr[:-1]
    query = np.repeat(np.arange(len(firsts)), np.diff(arrays.indptr))
    slope = discounts
    if norm_slope is not None:
        slope = slope - (np.add.reduceat(slope * arrays.gain, firsts) * arrays.scale)[query] * norm_slope
    slope = slope * arrays.scale[query]
    if estimate.total is not None:  # the gains are parts of a total that depends on the clicks, too
        total = estimate.total[query]
        slope = slope - np.add.reduceat(slope * arrays.gain, firsts)[query]
        slope = np.divide(slope, total, out=np.zeros(len(query)), where=total > 0)
    variances: Floats = np.add.reduceat(slope**2 * estimate.variance, firsts)
    return variances


def spread_discounts(order: Ints, arrays: MeasureArrays) -> Floats:
    """Return the discount of each document when the documents of each query are in this order."""
    rank = np.arange(len(order)) - np.repeat(arrays.indptr[:-1], np.diff(arrays.indptr))
    depth = len(arrays.discount)
    discounts = np.empty(len(order))
    discounts[order] = np.where(rank < depth, arrays.discount[np.minimum(rank, depth - 1)], 0.0)
    return discounts


def average_tied(values: Floats, scores: Floats, indptr: Ints) -> Floats:
    """Return for each document the mean of the values of the documents of its query that have its score."""
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    tied = np.unique(np.column_stack([query, scores]), axis=0, return_inverse=True)[1].ravel()
    means: Floats = (np.bincount(tied, values) / np.bincount(tied))[tied]
    return means
