"""Blends: rankers that are weighted sums of other rankers."""
