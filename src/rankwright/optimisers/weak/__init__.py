"""Weak rankers: what boosting adds one at a time."""

from rankwright.optimisers.weak.single_features import BestFeature, BoundBestFeature

__all__ = ["BestFeature", "BoundBestFeature"]
