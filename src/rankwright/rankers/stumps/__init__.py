"""Rankers that boost threshold stumps on pairs of documents."""
