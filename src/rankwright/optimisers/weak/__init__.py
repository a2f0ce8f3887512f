"""Weak learners: the features, stumps and trees that boosting adds one at a time."""
