"""Weak rankers: what boosting adds one at a time."""

from rankwright.weak.features import BestFeature, BoundBestFeature

__all__ = ["BestFeature", "BoundBestFeature"]
